"""`anon.assess`: dependencies and uniqueness against brute force; roles are in test_roles.py."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import duckdb
import hypothesis.strategies as st
import pytest
from hypothesis import given

from tests.assess.test_people import TABLES, TYPES, fill
from tests.profiles import dear
from tests.sqltest import data_file


def follows(rows: list[tuple], one: int, other: int) -> bool:
    seen: dict[Any, set] = defaultdict(set)
    for row in rows:
        seen[row[one]].add(row[other])
    return all(len(values) == 1 for values in seen.values())


def alone(rows: list[tuple], place: int, person: bool) -> float:
    """Share of the people, or rows, who have a value that nobody else has."""
    owners: dict[Any, set] = defaultdict(set)
    for number, row in enumerate(rows):
        owners[row[place]] |= {row[3]} - {None} if person else {number}
    everybody = set().union(*owners.values())
    return len(set().union(*(group for group in owners.values() if len(group) == 1))) / len(everybody)


@pytest.mark.thorough
@dear
@given(rows=TABLES, person=st.booleans())
def test_dependencies_and_uniqueness(shared: duckdb.DuckDBPyConnection, rows: list[tuple], person: bool) -> None:
    fill(shared, rows)
    names = list(TYPES)
    shares = [alone(rows, place, person) for place in range(4)]
    found = shared.execute(f"""SELECT column_name, unique_fraction, determines, determined_by
                               FROM anon.assess('visits', person := {"'WHO'" if person else "NULL"})""").fetchall()
    expected = {
        (one, other)
        for one in range(4)
        for other in range(4)
        if one != other and shares[one] <= 0.5 and len({row[other] for row in rows}) > 1 and follows(rows, one, other)
        if len({row[one] for row in rows}) < len(rows)
    }
    assert [line[0] for line in found] == names
    for place, (_, share, determines, determined_by) in enumerate(found):
        assert abs(share - shares[place]) < 1e-12
        assert determines == [names[other] for one, other in sorted(expected) if one == place]
        assert determined_by == [names[one] for one, other in sorted(expected) if other == place]


@pytest.mark.thorough
def test_dependencies_of_adult(con: duckdb.DuckDBPyConnection) -> None:
    con.execute(f"CREATE TABLE adult AS FROM '{data_file('adult.csv')}'").fetchall()
    found = con.execute("SELECT column_name, determines, role FROM anon.assess('adult')").fetchall()
    assert {name: determines for name, determines, _ in found}["education"] == ["education_num"]
    assert {name for name, _, role in found if role == "sensitive"} == {"capital_gain", "capital_loss"}


@pytest.mark.thorough
def test_wide_tables_are_not_a_matter_of_every_pair(con: duckdb.DuckDBPyConnection) -> None:
    """200 columns, of which one is a copy of another under another name."""
    columns = ", ".join(f"hash(i * {place} + {place}) % {2 + place % 50} AS c{place}" for place in range(1, 199))
    con.execute(f"CREATE TABLE wide AS SELECT i % 40 AS a, 'v' || i % 40 AS b, {columns} FROM range(2000) t(i)")
    found = con.execute("SELECT column_name, determines FROM anon.assess('wide') WHERE len(determines) > 0").fetchall()
    assert found == [("a", ["b"]), ("b", ["a"])]
