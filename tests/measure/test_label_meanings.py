"""Labels as Python reads them, against the SQL that reads them for checks which DuckDB computes."""

from __future__ import annotations

import itertools
import math
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from duckanon._measure.coarse.label_meanings import label_meanings, read_ends
from duckanon._measure.queries.labels import Meaning

NUMBERS = ["17", "-3", "2.5", "1e3", "x", "1 2", "inf", " 40 "]
DATES = [
    *("2024-03-17", "2024-02-30", "2024-W11", "2024-W60", "2024-03", "2024-13", "2024-Q1", "2024-H2", "2024"),
    *("2020-2024", "2024-2020", "1950s", "12024-01-01", "1969-12-31", "99", "2024-03-17 10:00:00"),
    *("2024-03-17T23:59:59.25", "0044-03-15 (BC)"),
]


def labels_of(cells: list[str]) -> list[str]:
    """Put cells between all signs, those that do not go together among them."""
    single = [
        sign + cell + finish
        for sign, cell, finish in itertools.product(["", "<", "<=", ">", ">=", "[", "("], cells, ["", "+", "]", ")"])
    ]
    pairs = [
        f"{sign}{first}, {second}{finish}"
        for sign, (first, second), finish in itertools.product(
            ["", "<", "[", "("], itertools.product(cells, cells[:6]), ["", "+", "]", ")"]
        )
    ]
    return single + pairs


@pytest.mark.parametrize(("kind", "cells"), [("numeric", NUMBERS), ("date", DATES)])
def test_bounds_are_those_of_sql(shared: duckdb.DuckDBPyConnection, kind: str, cells: list[str]) -> None:
    labels = labels_of(cells)
    shared.register("labels_to_read", pa.table({"place": range(len(labels)), "label": labels}))
    rows = shared.execute(
        f"SELECT anon._label_bounds(label, '{kind}') AS bounds FROM labels_to_read ORDER BY place"
    ).fetchall()
    understood = 0
    for label, (bounds,) in zip(labels, rows, strict=True):
        ends = read_ends(label, kind == "date", 0.0)
        if bounds is None or (None not in (bounds["lower"], bounds["upper"]) and bounds["lower"] > bounds["upper"]):
            assert ends is None, label
            continue
        low = -math.inf if bounds["lower"] is None else bounds["lower"]
        high = math.inf if bounds["upper"] is None else bounds["upper"]
        expected = (
            low if bounds["lower_closed"] else math.nextafter(low, math.inf),
            high if bounds["upper_closed"] else math.nextafter(high, -math.inf),
        )
        assert ends == expected, label
        understood += 1
    assert 60 < understood < len(labels) - 60


COLUMNS = {  # SQL of a column of 40 rows, and labels of which some are shown
    "whole": ("range % 23 - 3", ["[-3, 5)", "<2", "7", "20+", "(5, 9]", "*", "2.5", "(3, 4)", "big", "<=1e1"]),
    "real": ("range / 7", ["[0.5, 1.25)", ">2", "(1, 3]", "*", "3.0", "<=0.25"]),
    "amount": ("(range / 4)::DECIMAL(6, 2)", ["[0.50, 1.25)", ">=2", "2.50", "*"]),
    "day": ("DATE '2023-12-20' + (range % 31)::INTEGER", ["2023-12", "2024", "2024-W01", "<2024", "*", "late"]),
    "moment": ("TIMESTAMP '2024-01-01 06:00' + to_hours(range)", ["2024-01-01", "[2024-01-01 08:00:00, 2024-01-02)"]),
    "code": ("1000 + 37 * range", ["10**", "1*", "other", "1037", "2***"]),
    "share": ("range / 8", ["0.*", "1.5", "other", "2.0", "4*"]),
    "flag": ("range % 2 = 0", ["true", "*", "{false, true}"]),
    "word": (
        "['aa', 'ab', 'b', 'c, d', 'other', 'ä*'][1 + range % 6]",
        ["a*", '{b, "c, d"}', "{aa, other}", "*", "low", "c", "b", "{ab, NULL}", "ä**", "{b, other, NULL}"],
    ),
    "hard": (  # values that look like labels
        "['*', 'other', '{b, c}', '021**', '02145', 'b', 'c'][1 + range % 7]",
        ["*", "other", '{"*"}', '{"other"}', "{b, c}", "021**", '{b, "*"}', "{c, other}", "{other}", "b"],
    ),
    "job": ("['cook', 'nurse', 'judge'][1 + range % 3]", ["cook", "other", "{cook, other}", "{nurse, judge}"]),
}
TREES = {"word": [("aa", "low"), ("b", "low")], "day": [("2023-12-31", "late"), ("2024-01-03", "late")]}
TREES["whole"] = [("19", "big"), ("18.0", "big"), ("77", "big")]


def as_sql_reads(
    con: duckdb.DuckDBPyConnection, shown: dict[str, list[str | None]], released: pa.Table
) -> dict[str, dict[Any, Meaning]]:
    places = [
        (place, label, released.column(name).to_pylist().count(label))
        for place, (name, labels) in enumerate(shown.items(), 1)
        for label in labels
    ]
    columns = zip(*places, strict=True)
    con.register("shown_labels", pa.table(dict(zip(("place", "label", "size"), map(list, columns), strict=True))))
    names = list(shown)
    found: dict[str, dict[Any, Meaning]] = {name: {} for name in names}
    read = con.execute(
        f"""SELECT place, label, rule, held_from, held_to, value, anon._any_number(value)
            FROM anon._label_rules('anon.test', 'read_people', 'shown_labels', {names},
                                   {{'word': 'tree_word', 'day': 'tree_day', 'whole': 'tree_whole'}})"""
    ).fetchall()
    for place, label, rule, low, high, value, number in read:
        meaning = found[names[place - 1]].setdefault(label, Meaning(rule))
        if rule == "interval":
            found[names[place - 1]][label] = Meaning(rule, low, high)
        elif rule == "listed":
            meaning.values.append((value, number))
    return found


def is_itself(label: str | None, meaning: Meaning) -> bool:
    if meaning.rule == "listed":
        return [value for value, _ in meaning.values] == [label] != [None]
    return meaning.rule == "interval" and meaning.low == meaning.high


@pytest.mark.parametrize("seed", range(4))
def test_labels_hold_what_sql_says(shared: duckdb.DuckDBPyConnection, seed: int) -> None:
    """With some labels of each column, with and without NULL in either table."""
    random = np.random.default_rng(seed)
    nulls = {name: random.random(2) < 0.4 for name in COLUMNS}
    chosen = ", ".join(
        f"CASE WHEN range >= {40 - 3 * nulls[name][0]} THEN NULL ELSE {text} END AS {name}"
        for name, (text, _) in COLUMNS.items()
    )
    shared.execute(f"CREATE OR REPLACE TEMP TABLE read_people AS SELECT {chosen} FROM range(40)")
    for name, pairs in TREES.items():
        values = ", ".join(f"('{leaf}', '{label}')" for leaf, label in pairs)
        shared.execute(f"CREATE OR REPLACE TEMP TABLE tree_{name} AS FROM (VALUES {values})")
    shown: dict[str, list[str | None]] = {}
    for name, (_, labels) in COLUMNS.items():
        count = int(random.integers(2, len(labels) + 1)) if len(labels) > 2 else 2
        shown[name] = [*random.permutation(labels)[:count].tolist(), *([None] if nulls[name][1] else [])]
    original = shared.table("read_people").to_arrow_table()
    longest = max(map(len, shown.values()))
    released = pa.table({name: pa.array((labels * longest)[:longest], pa.string()) for name, labels in shown.items()})
    rows = [
        {"column_name": name, "leaf": leaf, "level": 1, "label": label}
        for name, pairs in TREES.items()
        for leaf, label in pairs
    ]
    found = label_meanings(original, released, rows)
    for name, expected in as_sql_reads(shared, shown, released).items():
        kind = original.schema.field(name).type
        is_number = name == "amount" or (pa.types.is_primitive(kind) and name != "flag")
        for label, meaning in expected.items():
            if label not in found[name]:
                assert is_itself(label, meaning), (name, label, meaning)
                continue
            own = found[name][label]
            assert own.rule == meaning.rule, (name, label)
            if meaning.rule == "interval":
                assert (own.low, own.high) == (meaning.low, meaning.high), (name, label)
            held, wanted = (
                sorted((number is None, number) if is_number else (value is None, value) for value, number in each)
                for each in (own.values, meaning.values)
            )
            assert held == wanted, (name, label)


def test_texts_that_stand_for_no_others_are_values() -> None:
    """Names of other people are no labels; one star, one NULL, or nothing but beginnings of values make them so."""
    original = pa.table({"name": ["anna", "bert", "carl"]})

    def read(labels: list[str | None]) -> Any:
        return label_meanings(original, pa.table({"name": pa.array(labels, pa.string())}), None)["name"]

    assert read(["anna", "bert"]) == {}
    assert read(["dora", "anna"]) == {}
    assert read(["an", "be", "carl"]) == {
        "an": Meaning("listed", values=[("anna", None)]),
        "be": Meaning("listed", values=[("bert", None)]),
    }
    assert read([None, "anna"]) == {None: Meaning("everything")}
    with pytest.raises(ValueError, match="column name of the release has a label that is no value"):
        read(["dora", "*"])
