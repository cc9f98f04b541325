"""People who look the same: codes in memory count what plain Python counts."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from typing import Any

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from duckanon.workbench.counts import Counts, Risk
from tests.profiles import cheap

COLUMNS = {"a": "INTEGER", "b": "VARCHAR", "c": "DOUBLE", "d": "DATE", "e": "INTEGER[]", "who": "VARCHAR"}
some = st.tuples(
    st.none() | st.integers(-2, 2),
    st.none() | st.sampled_from(["", "x", "y"]),
    st.none() | st.sampled_from([0.0, -0.0, float("nan"), 1.5]),
    st.none() | st.sampled_from([date(2020, 1, 1), date(1, 1, 1)]),
    st.none() | st.lists(st.integers(0, 1), max_size=2),
    st.none() | st.sampled_from("pqr"),
)


@pytest.fixture(scope="module")
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as opened:
        yield opened


def same(value: Any) -> Any:
    """Return what is equal for values that SQL takes for one."""
    return "nan" if value != value else str(value) if isinstance(value, list) else value


def counted(rows: list[tuple[Any, ...]], columns: list[str], person: str | None) -> Risk:
    classes: dict[tuple[Any, ...], set[Any]] = {}
    nobody = 0
    for place, row in enumerate(rows):
        told = dict(zip(COLUMNS, row, strict=True))
        whose = place if person is None else told[person]
        if whose is not None:
            classes.setdefault(tuple(same(told[name]) for name in columns), set()).add(whose)
        else:
            nobody += 1
            classes.setdefault(tuple(same(told[name]) for name in columns), set())
    people = set().union(*classes.values(), set())
    unique = set().union(*(members for members in classes.values() if len(members) == 1), set())
    return Risk(min(map(len, classes.values()), default=0), len(unique), len(people), nobody)


@cheap
@given(st.lists(some, max_size=12), st.lists(st.sampled_from("abcde"), unique=True), st.sampled_from([None, "who"]))
def test_counts_are_plain_counts(
    con: duckdb.DuckDBPyConnection, rows: list[tuple[Any, ...]], columns: list[str], person: str | None
) -> None:
    declared = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
    con.execute(f"CREATE OR REPLACE TABLE people ({declared})").fetchall()
    if rows:
        con.executemany("INSERT INTO people VALUES (?, ?, ?, ?, ?, ?)", rows)
    counts = Counts("people")
    assert counts.risk(con, columns, person) == counted(rows, columns, person)
    for _ in range(2):  # counted, and remembered
        without = dict(counts.without_each(con, columns, person))
        assert without == {
            name: counted(rows, [one for one in columns if one != name], person) for name in sorted(columns)
        }


def test_many_columns_of_many_values_are_counted(con: duckdb.DuckDBPyConnection) -> None:
    """More combinations than a number of 64 bits holds."""
    names = [f"c{number}" for number in range(12)]
    listed = ", ".join(f"hash(i // 3, {number}) % 1000 AS {name}" for number, name in enumerate(names))
    con.execute(f"CREATE OR REPLACE TABLE people AS SELECT {listed}, i // 9 AS who FROM range(3000) AS t(i)").fetchall()
    counts = Counts("people")
    assert counts.risk(con, names) == Risk(3, 0, 3000)
    assert counts.risk(con, names, "who") == Risk(1, 334, 334)
    assert dict(counts.without_each(con, names)) == dict.fromkeys(names, Risk(3, 0, 3000))
