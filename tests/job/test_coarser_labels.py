"""Coarser labels of a plan: true of everybody who has the plan's label, fewer rung by rung, unknown in the end."""

from __future__ import annotations

import itertools

import duckdb
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from duckanon.job.coarser_labels import CoarserLabels, Ladder, coarser_labels, levels_of
from duckanon.job.coarser_labels import _merge_buckets as merged
from duckanon.job.coarser_labels import _shorten_prefixes as shortened
from duckanon.job.policy import Table
from tests.profiles import dear

REGIONS = {"Ulm": "south", "Munich": "south", "Kiel": "north", "Bremen": "north", "Oslo": "north", "Rome": "south"}
COLUMNS = ["age", "born", "zip", "town", "sex"]


@pytest.fixture(scope="module")
def labels(database: duckdb.DuckDBPyConnection) -> CoarserLabels:
    towns = ", ".join(f"('{town}', '{region}', 'anywhere')" for town, region in REGIONS.items())
    for name in ("plan", "people", "towns"):
        database.execute(f"DROP TABLE IF EXISTS {name}").fetchall()
    database.execute(f"CREATE TABLE towns AS FROM (VALUES {towns}) AS t(town, region, root)").fetchall()
    database.execute("""
        CREATE TABLE people AS SELECT 20 + i % 50 AS age, DATE '1950-01-01' + (i * 37 % 20000)::INTEGER AS born,
            (10000 + i % 5 * 10000 + i // 5 % 20 * 500)::VARCHAR AS zip, ['f', 'm'][1 + i % 2] AS sex,
            ['Ulm', 'Munich', 'Kiel', 'Bremen', 'Oslo', 'Rome'][1 + i % 6] AS town
        FROM range(2000) AS t(i)""").fetchall()
    plans = [
        f"FROM anon.plan('people', ['{column}'], 30, hierarchies := MAP {{'town': 'towns'}})"
        if column == "town"
        else f"FROM anon.plan('people', ['{column}'], 30)"
        for column in COLUMNS
    ]
    columns = "column_name, covers, lower, upper, label"
    parts = " UNION ALL ".join(f"SELECT {columns} FROM ({plan})" for plan in plans)
    database.execute(f"CREATE TABLE plan AS {parts}").fetchall()
    table = Table.model_validate(
        {
            "source": {"path": "people.parquet"},
            "target": {"path": "release.csv", "no_formulas": True},
            "columns": dict.fromkeys(COLUMNS, "quasi_identifier"),
            "method": {"name": "generalize"},
        }
    )
    found = coarser_labels(database, table, {"town": "towns"})
    database.execute("DROP TABLE plan").fetchall()
    return found


@pytest.mark.thorough
def test_rungs_are_fewer_and_true(labels: CoarserLabels) -> None:
    age, born, zip_code, town, sex = labels.ladders
    assert [len(ladder.rungs) for ladder in labels.ladders] == [1, 1, 1, 1, 0]
    assert town.rungs[0] == REGIONS | {"anywhere": "anywhere"}
    assert (town.label("Ulm", 2), sex.label("f", 1), age.label(None, 1)) == (None, None, None)
    for label, coarser in zip_code.rungs[0].items():
        assert coarser.rstrip("*") == label[: len(coarser.rstrip("*"))]
        assert len(coarser) == len(label)
    for ladder in (age, born):
        names = list(dict.fromkeys(ladder.rungs[0].values()))
        assert 2 < len(names) <= 2 + ladder.count**0.5
    assert {"*", "<", ">"} == {name[0] for name in born.rungs[0].values() if name[0] != "["}
    for label, coarser in age.rungs[0].items():  # the interval of the label is in that of the coarser one
        if label == coarser:
            continue
        low, high = _ends(label)
        assert _ends(coarser)[0] <= low <= high <= _ends(coarser)[1]


def _ends(label: str) -> tuple[float, float]:
    if label.startswith(("<", ">=")):
        return (-np.inf, float(label[1:])) if label[0] == "<" else (float(label[2:]), np.inf)
    low, high = label.strip("[)").split(", ") if "," in label else (label, label)
    return float(low), float(high)


@dear
@given(st.lists(st.tuples(st.integers(1, 40), st.integers(0, 2)), min_size=1, max_size=9))
def test_levels_lose_ever_more_and_end_where_all_is_unknown(given_ladders: list[tuple[int, int]]) -> None:
    ladders = [
        Ladder(count, tuple({str(one): str(one // 2 ** (rung + 1)) for one in range(count)} for rung in range(rungs)))
        for count, rungs in given_ladders
    ]
    levels = list(levels_of(ladders))
    assert levels[0] == (0,) * len(ladders)
    assert levels[-1] == tuple(len(ladder.rungs) + 1 for ladder in ladders)
    assert len(set(levels)) == len(levels) <= 256 + len(ladders)
    lost = [sum(ladder.count_lost_bits(rung) for ladder, rung in zip(ladders, level, strict=True)) for level in levels]
    assert all(before <= after + 1e-6 for before, after in itertools.pairwise(lost[:-1]))
    singles = {tuple(one if place == other else 0 for other in range(len(ladders))) for place, one in [(0, 1)]}
    assert singles <= set(levels)


def test_codes_that_look_like_labels_are_shortened_as_others_are() -> None:
    """A whole code that ends in a star is in quotation marks, which count for no length."""
    codes = [f"{start}{i}" for start in ("02", "03") for i in (10, 11, 12)]
    rows = [("prefix", code, None, code) for code in codes] + [("prefix", "021*", None, '{"021*"}')]
    assert shortened(rows) == {label: f"{prefix[:3]}*" for _, prefix, _, label in rows}


def test_of_more_than_256_levels_those_at_which_few_columns_are_coarser() -> None:
    """Columns are shown or unknown: eight have 256 levels; of nine up to three are unknown, or one after the other."""
    unknown = [Ladder(5, ())] * 9
    assert sorted(levels_of(unknown[:8])) == sorted(itertools.product((0, 1), repeat=8))
    levels = [sum(level) for level in levels_of(unknown)]
    assert [levels.count(number) for number in range(10)] == [1, 9, 36, 84, 1, 1, 1, 1, 1, 1]


def test_three_buckets_of_nine_become_one_that_ends_where_they_do() -> None:
    ends = [None, *map(str, range(10, 90, 10)), None]
    rows = [("number", lower, upper, f"{lower} {upper}") for lower, upper in itertools.pairwise(ends)]
    assert list(merged(rows).values()) == ["<30"] * 3 + ["[30, 60)"] * 3 + [">=60"] * 3
