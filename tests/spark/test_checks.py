"""The checks on Spark against those of anon on the same rows."""

from __future__ import annotations

import math
from typing import Any

import duckdb
import pytest

pytestmark = pytest.mark.engines

PEOPLE = [None, "patient"]
COLS = ["age", "sex"]


def same(rows: list[Any], expected: list[tuple[Any, ...]]) -> None:
    """Compare rows cell by cell, numbers to ten digits."""
    assert len(rows) == len(expected)
    for row, other in zip(rows, expected, strict=True):
        assert len(row) == len(other)
        for cell, wanted in zip(row, other, strict=True):
            if isinstance(wanted, dict):
                assert tuple(cell) == tuple(wanted.values())
            elif isinstance(wanted, float) and cell is not None:
                assert cell == wanted or math.isclose(cell, wanted, rel_tol=1e-10)
            else:
                assert cell == wanted


def options(**given: Any) -> str:
    return "".join(f", {name} := {value!r}" for name, value in given.items() if value is not None)


@pytest.mark.parametrize("person", PEOPLE)
def test_classes(frame: Any, people: duckdb.DuckDBPyConnection, person: str | None) -> None:
    from duckanon import spark

    for nulls in ("value", "drop"):
        asked = f"('people', {COLS}{options(nulls=nulls, person=person)})"
        for name in ("k_anonymity", "class_sizes"):
            expected = people.execute(f"FROM anon.{name}{asked}")
            found = getattr(spark, name)(frame, COLS, nulls=nulls, person=person)
            assert found.columns == [column[0] for column in expected.description]
            same(found.collect(), expected.fetchall())


@pytest.mark.parametrize(
    ("cols", "sensitive", "person"),
    [(COLS, "visits", None), (COLS, "visits", "patient"), (["sex"], "illness", None), (["zip"], "visits", "patient")],
)
def test_sensitive_values(
    frame: Any, people: duckdb.DuckDBPyConnection, cols: list[str], sensitive: str, person: str | None
) -> None:
    from duckanon import spark

    asked = f"('people', {cols}, '{sensitive}'{options(person=person)})"
    for name in ("l_diversity", "t_closeness"):
        expected = people.execute(f"FROM anon.{name}{asked}")
        found = getattr(spark, name)(frame, cols, sensitive, person=person)
        assert found.columns == [column[0] for column in expected.description]
        same(found.collect(), expected.fetchall())


@pytest.mark.parametrize(
    "asked",
    [
        {"weight": "weight"},
        {"population": 40_000, "household": "home", "person": "patient"},
        {"population": 2000, "household": "home", "method": "approximate", "nulls": "drop"},
    ],
)
def test_individual_risk(frame: Any, people: duckdb.DuckDBPyConnection, asked: dict[str, Any]) -> None:
    from duckanon import spark

    query = f"FROM anon.individual_risk('people', {COLS}{options(**asked)}) ORDER BY number"
    expected = people.execute(query)
    found = spark.individual_risk(frame, COLS, **asked).orderBy("number")
    assert found.columns == [column[0] for column in expected.description]
    same(found.collect(), expected.fetchall())


@pytest.mark.parametrize(
    ("name", "asked", "sentence"),
    [
        ("k_anonymity", {"nulls": "any"}, "nulls must be 'value' or 'drop' on Spark; got 'any'"),
        ("k_anonymity", {"alpha": 0.5}, "alpha must be 1 on Spark"),
        ("k_anonymity", {"person": "age"}, "person must not be one of cols"),
        ("class_sizes", {"cols": "age"}, "cols must be a list of column names"),
        ("l_diversity", {"sensitive": "age"}, "sensitive must not be one of cols"),
        ("t_closeness", {"sensitive": "visits", "distance": "near"}, "distance must be one of"),
        ("individual_risk", {"weight": "home"}, "weight must name a column of positive numbers"),
        ("individual_risk", {"population": 3}, "population must be at least the number of rows"),
    ],
)
def test_refusals(frame: Any, name: str, asked: dict[str, Any], sentence: str) -> None:
    from duckanon import spark

    with pytest.raises(ValueError, match=rf"^duckanon\.spark\.{name}: {sentence}"):
        getattr(spark, name)(frame, **{"cols": COLS, **asked})


def test_a_table_without_rows_is_refused(frame: Any) -> None:
    from duckanon import spark

    with pytest.raises(ValueError, match="the table has no rows to look at"):
        spark.k_anonymity(frame.where("age > 1000"), COLS)


@pytest.mark.parametrize("name", ["swap", "rhs", "copula_synthesize"])
def test_what_is_not_there_is_refused_in_a_sentence(name: str) -> None:
    from duckanon import spark

    with pytest.raises(AttributeError, match=rf"duckanon\.spark\.{name} does not exist: .*\.$"):
        getattr(spark, name)
