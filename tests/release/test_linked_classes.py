"""`anon.release_linked`: with a ladder, what is in one class changes nothing in another; and NULL is a value."""

from __future__ import annotations

import datetime
import itertools
import math
import random
from collections import Counter
from decimal import Decimal
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from duckanon._core.common.parameters import Kept
from duckanon._methods.linked import ladders
from duckanon._methods.linked.class_levels import _check_promise
from duckanon._methods.linked.declared import SensitiveLimits
from duckanon._methods.linked.ladders import find_column_levels, find_steps
from duckanon._methods.linked.release import release_linked
from duckanon._methods.linked.sensitive_values import SensitiveValues
from tests.profiles import seeds

COLUMNS = {"day": pa.date32(), "cost": pa.float64(), "code": pa.string(), "level": pa.int64()}
LADDER = [
    {"day": "month", "cost": "10", "code": "0"},
    {"day": "quarter", "cost": "50", "code": "1"},
    {"day": "year", "cost": "200", "level": "5"},
    {"day": "*", "cost": "*", "code": "*", "level": "*"},
]
CODES = [code + number for code in "abcdefgh" for number in ("", *map(str, range(90)))]
WARDS = [{"column_name": "code", "leaf": code, "level": 1, "label": "xyz"[ord(code[0]) * 7 % 3]} for code in CODES]


def random_row(draw: random.Random, people: range, row_id: int, *, is_far: bool = False) -> tuple:
    """Return an event of one of some people: person, number, and values, which nobody else has where it is far."""
    code = draw.choice(CODES if is_far and draw.random() < 0.5 else "abcdefgh")
    values = [
        datetime.date(2025, 1, 1) - datetime.timedelta(draw.randrange(9_000 if is_far else 200)),
        draw.randrange(100_000 if is_far else 120) / 4,
        code,
        draw.randrange(-5_000, 5_000) if is_far else draw.choice([1, 2, 3, 7, 12]),
    ]
    return (draw.choice(people), row_id, *(None if draw.random() < 0.1 else value for value in values))


def labels_of(rows: list[tuple], people: int, known: int, is_second_class: bool) -> list[tuple]:
    """Release events and return the rows of one class, of which the first half of the people is one."""
    person, row_id, *values = (list(column) for column in zip(*rows, strict=True))
    nothing = [None] * people
    table = {
        "table_name": ["events"] * len(rows) + ["people"] * people,
        "patient": person + list(range(people)),
        "id": pa.array(row_id + nothing, pa.int64()),
        **{name: pa.array(column + nothing, COLUMNS[name]) for name, column in zip(COLUMNS, values, strict=True)},
        "half": [None] * len(rows) + [one >= people // 2 for one in range(people)],
    }
    found = release_linked(
        [pa.table(table)],
        table_names=["events"],
        columns_of_tables=[{"table_name": "events", "column_name": name} for name in COLUMNS],
        person="patient",
        cols=list(COLUMNS),
        k=3,
        known=[known],
        class_columns=["half"],
        people="people",
        hierarchies=WARDS,
        ladder=LADDER,
        kept=Kept(["patient", "id"], ["id"]),
        counts=None,
        sensitive=SensitiveLimits(),
        max_suppressed_fraction=1,
        seed=1,
    )
    is_of_class = [
        row for row in found.to_pylist() if row["id"] is not None and (row["patient"] >= people // 2) == is_second_class
    ]
    return sorted((row["patient"], row["id"], *(row[name] for name in COLUMNS)) for row in is_of_class)


@pytest.mark.parametrize("seed", [6, 48, 58, 64, 110, *seeds(1, 4)])
def test_a_row_of_one_class_changes_no_label_of_another(seed: int) -> None:
    """Rows come and go in the first class, with values that are the first or the farthest of the table.

    A table is drawn anew where hardly a label of the second class shows anything.
    """
    draw = random.Random(seed)
    people, known = draw.choice([40, 60, 80]), 1 + seed % 2
    first, second = range(people // 2), range(people // 2, people)
    before: list[tuple] = []
    while sum(label != "*" for row in before for label in row[2:]) <= len(before):  # else there is nothing to change
        rows = [random_row(draw, first if number % 2 else second, number) for number in range(3 * people)]
        before = labels_of(rows, people, known, True)
    own = labels_of(rows, people, known, False)
    for number in range(3):
        changed = list(rows) if number % 2 else [row for row in rows if row[0] in second or draw.random() < 0.9]
        changed.insert(0, random_row(draw, first, 1_000 + number, is_far=True))
        assert labels_of(changed, people, known, True) == before
    assert labels_of(changed, people, known, False) != own


@pytest.mark.parametrize(
    "value",
    [
        "DATE '2025-01-01' + (i * 37 % 300)::INTEGER",
        "TIMESTAMP '2025-01-01 10:30:00' + INTERVAL (i * 37 % 300) DAY",
        "TIMESTAMPTZ '2025-01-01 10:30:00+00' + INTERVAL (i * 37 % 300) DAY",
        "i * 37 % 50 - 20",
        "(i * 37 % 50)::DECIMAL(8, 2) / 4",
        "(i * 37 % 50)::DOUBLE / 4",
        "'w' || i * 37 % 9",
    ],
)
def test_null_is_a_value_that_k_people_share(con: duckdb.DuckDBPyConnection, value: str) -> None:
    """Whoever knows any two events of somebody, a NULL among them, finds k people; and labels tell the truth."""
    con.execute(
        "CREATE OR REPLACE TABLE events AS SELECT i % 60 AS patient, i AS id, CASE WHEN i % 11 > 0 THEN 'w' || i % 3 "
        f"END AS ward, CASE WHEN i % 7 > 1 THEN {value} END AS value FROM range(170) AS t(i)"
    )
    rows = con.execute(
        "SELECT patient, r.ward, r.value, e.ward, e.value FROM anon.release_linked(['events'], 'patient', ['ward', "
        "'value'], 4, keep := ['patient', 'id'], narrowing := ['id'], max_suppressed_fraction := 1, seed := 1) AS "
        "r JOIN events AS e USING (patient, id)"
    ).fetchall()
    events: dict[int, list] = {}
    for patient, *labels, ward, original in rows:
        events.setdefault(patient, []).append(tuple(labels))
        assert labels[0] in (ward, "*")
        assert is_label_of(labels[1], original), (labels[1], original)
    holders: Counter = Counter()
    for own in events.values():
        holders.update({tuple(sorted(some, key=str)) for size in (1, 2) for some in itertools.combinations(own, size)})
    assert min(holders.values()) >= 4
    assert sum(None in labels for own in events.values() for labels in own) > 10
    assert len(rows) > 120


def is_label_of(label: str | None, value: object) -> bool:
    """Tell whether a label is true of a value, read as the reference explains labels."""
    if label is None or value is None or label == "*":
        return label == "*" or value is None
    if isinstance(value, datetime.date):
        half, quarter = (value.month + 5) // 6, (value.month + 2) // 3
        return label in (
            f"{value:%Y-%m-%d}", f"{value:%Y-%m}", f"{value.year}-Q{quarter}", f"{value.year}-H{half}", f"{value.year}"
        )  # fmt: skip
    if label.startswith("["):
        low, high = map(Decimal, label[1:-1].split(", "))
        return low <= Decimal(str(value)) < high
    return label == value if isinstance(value, str) else Decimal(label) == Decimal(str(value))


def test_a_given_ladder_holds_for_any_data(con: duckdb.DuckDBPyConnection) -> None:
    """Where each month has one day, all days lie in one year, all numbers are one, or there is none at all."""
    for day, level, shown in (
        ("DATE '2025-01-15' + INTERVAL (i % 2) MONTH", "7", {("2025-01", "[0, 15)"), ("2025-02", "[0, 15)")}),
        ("DATE '2025-01-15'", "i % 30", {("2025-01", "[0, 15)"), ("2025-01", "[15, 30)"), ("2020s", "*")}),
        ("NULL::DATE", "NULL::INTEGER", {(None, None)}),
        ("NULL::DATE", "i % 2 * 1000", {(None, "[0, 15)"), (None, "[990, 1005)"), (None, "*")}),
    ):
        con.execute(
            f"CREATE OR REPLACE TABLE events AS SELECT i // 2 AS p, {day} AS day, {level} AS level FROM range(40) t(i)"
        )
        rows = con.execute(
            "SELECT DISTINCT day, level FROM anon.release_linked(['events'], 'p', ['day', 'level'], 3, known := 1, "
            "ladder := [MAP {'day': 'month', 'level': '15'}, MAP {'day': 'decade', 'level': '*'}], "
            "max_suppressed_fraction := 1)"
        ).fetchall()
        assert set(rows) <= shown
        assert set(rows) & {("2025-01", "[0, 15)"), (None, None), (None, "[0, 15)")}


def test_the_result_has_the_name_of_a_file_without_its_path(con: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    files = [str(tmp_path / name) for name in ("visits.parquet", "persons.2025.CSV")]
    con.execute(f"COPY (SELECT i % 20 AS p, i % 2 AS ward FROM range(60) t(i)) TO '{files[0]}'")
    con.execute(f"COPY (SELECT i AS p FROM range(20) t(i)) TO '{files[1]}' (FORMAT csv)")
    known = f"known := MAP {{'{files[0]}': 1}}"
    rows = con.execute(
        f"FROM anon.release_linked(['{files[0]}'], 'p', ['ward'], 3, people := '{files[1]}', {known})"
    ).fetchall()
    assert Counter(row[0] for row in rows) == {"visits": 60, "persons.2025": 20}
    assert str(tmp_path) not in str(rows)


@pytest.mark.parametrize("seed", seeds(3, 30))
def test_the_ladder_is_that_of_the_definition(seed: int) -> None:
    """Each step takes the column in which a coarser level joins most people for what it loses, tried one by one."""
    random_numbers = np.random.default_rng(seed)
    count, rows, k = 2 + seed % 5, 120, 4
    tops = random_numbers.integers(2, 40, count).tolist()
    columns = [
        find_column_levels(f"c{place}", pa.chunked_array([random_numbers.integers(0, top, rows)]), None)
        for place, top in enumerate(tops)
    ]
    classes = random_numbers.integers(0, 3, rows)

    def hidden(levels: list[int]) -> float:
        shown = [column.codes(level) for column, level in zip(columns, levels, strict=True)]
        labels = list(zip(classes.tolist(), *(codes.tolist() for codes in shown), strict=True))
        sizes = Counter(labels)
        return sum(min(math.log10(sizes[label] / k), 3) for label in labels) / rows

    current, path = [0] * count, [[0] * count]
    while any(level < len(column.levels) - 1 for level, column in zip(current, columns, strict=True)):
        scores = {}
        for place, column in enumerate(columns):
            if current[place] < len(column.levels) - 1:
                tried = [level + (other == place) for other, level in enumerate(current)]
                lost = float((column.losses(tried[place]) - column.losses(current[place])).mean())
                scores[place] = (hidden(tried) - hidden(current) + 1e-9) / (lost + 1e-3)
        current[max(scores, key=lambda place: scores[place])] += 1
        path.append(list(current))
    found = find_steps(columns, classes, k)
    assert [list(step) for step in found] == [step for step in path if tuple(step) in set(found)]
    assert (found[0], found[-1]) == (tuple(path[0]), tuple(path[-1]))


def test_a_ladder_of_many_columns_joins_each_a_few_times(monkeypatch: pytest.MonkeyPatch) -> None:
    """A try joins the labels of the other columns at once: with one after the other, sixty took fourteen seconds."""
    columns = [
        find_column_levels(f"c{place}", pa.chunked_array([pa.array([1, 2, 3] * 10)]), None) for place in range(20)
    ]
    calls: list[int] = []
    ranked = ladders.rank_keys
    monkeypatch.setattr(ladders, "rank_keys", lambda keys: (calls.append(1), ranked(keys))[1])
    find_steps(columns, np.zeros(30, np.int64), 3)
    tries = sum(range(sum(len(column.levels) - 1 for column in columns) + 1))
    assert len(calls) < 4 * tries


def test_rows_that_tell_too_much_are_not_released() -> None:
    """The count before a release: of six people with a row each, both of the second label have the same value."""
    person, items, k = np.arange(6), np.array([[1, 1, 1, 1, 2, 2]]), 2
    values = pa.chunked_array([["a", "b", "a", "b", "a", "a"]])

    def check(level: list[int], k: int, limits: SensitiveLimits | None) -> None:
        sure = None if limits is None else SensitiveValues.of_column(values, person, limits).of(person)
        _check_promise(person, np.zeros(6, np.int64), [1], items, np.array(level), k, sure, 6)

    half = SensitiveLimits(sensitive="value", max_confidence=0.5)
    check([0] * 6, k, None)
    check([0] * 4 + [1] * 2, k, half)  # level 1 is beyond the ladder: these rows go
    check([0] * 6, k, SensitiveLimits(sensitive="value", max_confidence=1))
    for limits in (half, SensitiveLimits(sensitive="value", l=2)):
        with pytest.raises(AssertionError, match="tells too much about sensitive values"):
            check([0] * 6, k, limits)
    with pytest.raises(AssertionError, match="held by fewer than 3 people"):
        check([0] * 6, 3, None)
