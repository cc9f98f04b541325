"""What is rendered, executed on PostgreSQL and Spark: the labels of `anon.apply_plan`, the numbers of the checks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

import duckanon
from duckanon._render import expressions
from tests import profiles
from tests.rendered.cases import Case, cases, large_classes, plan_table
from tests.rendered.servers import Postgres, postgres_server, spark_session
from tests.rendered.test_checks import COLS, TYPES, agree, asked, people

pytestmark = pytest.mark.engines


@pytest.fixture(scope="module")
def postgres() -> Iterator[Postgres]:
    with postgres_server() as server:
        yield server


@pytest.fixture(scope="module", params=["postgres", "spark"])
def engine(request: pytest.FixtureRequest) -> Iterator[tuple[str, Any]]:
    """Each engine that is installed."""
    if request.param == "postgres":
        yield "postgres", request.getfixturevalue("postgres")
        return
    with spark_session() as spark:
        yield "spark", spark


@profiles.dear
@given(case=cases(), with_types=st.booleans(), is_many=st.booleans(), k=st.integers(2, 3))
def test_labels_are_those_of_apply_plan(
    shared: duckdb.DuckDBPyConnection, engine: tuple[str, Any], case: Case, with_types: bool, is_many: bool, k: int
) -> None:
    dialect, server = engine
    with pytest.MonkeyPatch.context() as patch:
        if is_many:
            patch.setattr(expressions, "MANY", 1)
            patch.setattr(expressions, "CHAIN", 3)
        expected = case.expected(shared)
        assert server.labels(case, case.rendered(dialect, with_types)) == expected
        assert server.labels(case, case.rendered(dialect, with_types, k=k)) == large_classes(expected, k)


def test_checks_say_what_anon_says(shared: duckdb.DuckDBPyConnection, engine: tuple[str, Any]) -> None:
    dialect, server = engine
    table = people(shared)
    server.load("people", table, TYPES) if dialect == "postgres" else server.load("people", table)
    for check, options, expected in asked(shared):
        query = duckanon.render_check(check, COLS, dialect, "people", **options)
        agree(server.rows(query), expected)


def test_a_collation_that_does_not_tell_letters_apart_changes_nothing(postgres: Postgres) -> None:
    """Two rows of F and one of f: three of a kind to such a column, but a reader would see who is alone."""
    postgres.run("""
        DROP TABLE IF EXISTS people;
        CREATE COLLATION IF NOT EXISTS any_case (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
        CREATE TABLE people (sex TEXT COLLATE any_case);
        INSERT INTO people VALUES ('F'), ('F'), ('f');""")
    plan = plan_table(["sex"], [("sex", "value", "F", "F"), ("sex", "value", "f", "f")])
    assert postgres.rows("SELECT count(*) AS n FROM people GROUP BY sex") == [{"n": 3}]
    assert postgres.rows(duckanon.render(plan, "postgres", "people", k=3)) == []
    assert postgres.rows(duckanon.render(plan, "postgres", "people", k=2)) == [{"sex": "F"}] * 2
