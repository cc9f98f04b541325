"""Tables whose columns are called like the steps and the results of the checks."""

from __future__ import annotations

import re
from typing import Any

import duckdb
import pytest

NAMES = ["size", "class_size", "is_reference", "candidates", "box", "t", "l", "k", "rows", "people", "classes", "value"]
NAMES += ["class", "person", "cols", "nulls", "tbl", "total", "members", "share", "place", "kind", "counts", "farness"]
NAMES += ["_duckanon_classes", "_duckanon_source", "row_count", "_sizes", "_risks", "record", "call", "columns", "c"]


REFUSED = {"class_size", "t", "_duckanon_classes", "_duckanon_source"}
"""Names that some checks refuse."""


def groups() -> list[list[str]]:
    """Put three names into a group, each of which comes in every place; one that is refused hides no other."""
    others = [name for name in NAMES if name not in REFUSED]
    threes = [(others[place:] + others)[:3] for place in range(0, len(others), 3)]
    return [*threes, *([name, "s", "p"] for name in NAMES if name in REFUSED)]


@pytest.mark.thorough
@pytest.mark.parametrize("group", groups(), ids="-".join)
def test_columns_called_like_the_steps_of_a_check(con: duckdb.DuckDBPyConnection, group: list[str]) -> None:
    """Columns that carry a check's own names give what they give under plain names, or a refusal."""
    source = "SELECT i % 3 AS {}, i % 7 % 4 AS {}, i % 5 AS {}, i // 3 AS {} FROM range(60) AS t(i)"
    con.execute(f"CREATE TABLE plain AS {source.format('q1', 'q2', 's', 'p')}").fetchall()
    for place in range(3):  # a name is that of a quasi-identifier, of the sensitive column, of the person
        first, *others = [*group[place:], *group[:place]]
        names = [first, "q2", *others]
        quoted = ['"' + one + '"' for one in names]
        con.execute(f"CREATE OR REPLACE TABLE named AS {source.format(*quoted)}").fetchall()
        for call in (
            "k_anonymity('{t}', {c}{p})",
            "class_sizes('{t}', {c}{p})",
            "small_classes('{t}', {c}, 5{p})",
            "risky_rows('{t}', {c}, 5{p})",
            "l_diversity('{t}', {c}, '{s}'{p})",
            "l_diversity_classes('{t}', {c}, '{s}'{p})",
            "t_closeness('{t}', {c}, '{s}'{p})",
            "t_closeness_classes('{t}', {c}, '{s}'{p})",
            "reidentification_risk('{t}', {c}{p})",
            "quasi_identifier('{t}', {c}{p})",
        ):
            for with_person in (False, True):
                compare(con, call, names, with_person)
        compare_lists(con, "quasi_identifiers('{t}', person := '{p}')", names)
        assert [row[1:] for row in con.execute("FROM anon.column_profile('named')").fetchall()] == [
            row[1:] for row in con.execute("FROM anon.column_profile('plain')").fetchall()
        ]


def plain_and_named(names: list[str], call: str, with_person: bool) -> list[str]:
    return [
        "FROM anon."
        + call.format(t=t, c=[first, second], s=sensitive, p=f", person := '{person}'" if with_person else "")
        for t, (first, second, sensitive, person) in (("plain", ["q1", "q2", "s", "p"]), ("named", names))
    ]


def compare(con: duckdb.DuckDBPyConnection, call: str, names: list[str], with_person: bool) -> None:
    plain, named = plain_and_named(names, call, with_person)
    expected = con.execute(plain).fetchall()
    try:
        found = con.execute(named).fetchall()
    except duckdb.Error as error:
        own_name = "called like one of the check's own; got |begins with _duckanon_; got "
        assert re.search(own_name, str(error))  # noqa: PT017 - a refusal is right too
        assert REFUSED & set(names)
        return
    assert values_of(found) == values_of(expected)


def values_of(rows: list[tuple]) -> list[tuple[Any, ...]]:
    """Rows without the names in structs, in an order of their own."""
    return sorted(
        (tuple(tuple(cell.values()) if isinstance(cell, dict) else cell for cell in row) for row in rows), key=repr
    )


def compare_lists(con: duckdb.DuckDBPyConnection, call: str, names: list[str]) -> None:
    expected = con.execute("FROM anon." + call.format(t="plain", p="p")).fetchall()
    try:
        found = con.execute("FROM anon." + call.format(t="named", p=names[3])).fetchall()
    except duckdb.Error as error:
        assert "a column that begins with _duckanon_; got " in str(error)  # noqa: PT017 - as above
        assert any(name.startswith("_duckanon_") for name in names)
        return
    assert sorted(row[1:] for row in found) == sorted(row[1:] for row in expected)
