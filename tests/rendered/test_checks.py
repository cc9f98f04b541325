"""Rendered checks say what the functions of `anon` say."""

from __future__ import annotations

import math
import sqlite3
from typing import Any

import duckdb
import pyarrow as pa
import pytest
import sqlglot

import duckanon
from duckanon._render.dialects import DIALECTS

COLS = ["age", "Sex"]
TYPES = {"id": "INTEGER", "age": "INTEGER", "Sex": "VARCHAR", "score": "INTEGER", "who": "VARCHAR", "weight": "DOUBLE"}
UNDER = ", ".join(f"rows_under_{limit}" for limit in (2, 3, 5, 10, 20))


def people(con: duckdb.DuckDBPyConnection, rows: int = 400) -> pa.Table:
    """People with NULLs in every column that is looked at, several rows of some, and weights."""
    con.execute(f"""
        CREATE OR REPLACE TABLE people AS
        SELECT i::INTEGER AS id, CASE WHEN i % 11 > 0 THEN (hash(i) % 8)::INTEGER END AS age,
               CASE hash(i, 1) % 4 WHEN 0 THEN 'F' WHEN 1 THEN 'f' WHEN 2 THEN 'F ' END AS "Sex",
               CASE WHEN i % 7 > 0 THEN (hash(i, 2) % 5 * (hash(i, 3) % 3))::INTEGER END AS score,
               CASE WHEN i % 5 > 0 THEN 'p' || i // 3 END AS who, (1 + hash(i, 4) % 30)::DOUBLE / 2 AS weight
        FROM range({rows}) AS r(i)""").fetchall()
    return con.sql("FROM people ORDER BY id").to_arrow_table()


def asked(con: duckdb.DuckDBPyConnection) -> list[tuple[str, dict[str, Any], list[tuple[Any, ...]]]]:
    """Every check with its options, and what `anon` says of the table `people`."""

    def ask(query: str) -> list[tuple[Any, ...]]:
        return con.execute(query).fetchall()

    k = f'SELECT k, classes, "rows", singletons, {UNDER} FROM anon.k_anonymity'
    diversity = "anon.l_diversity('people', ['age', 'Sex'], 'score')"
    risk = "anon.individual_risk('people', ['age', 'Sex'], weight := {}, method := 'approximate') ORDER BY id"
    columns = "id, sample_frequency, population_frequency, risk"
    return [
        ("k", {}, ask(f"{k}('people', ['age', 'Sex'])")),
        ("k", {"person": "who"}, ask(f"{k}('people', ['age', 'Sex'], person := 'who')")),
        (
            "l",
            {"sensitive": "score"},
            ask(f"""SELECT max(l) FILTER (measure = 'distinct'), max(l) FILTER (measure = 'entropy'),
                           max(CASE WHEN isfinite(c) THEN c END) FILTER (measure = 'recursive' AND l = 2)
                    FROM {diversity}"""),
        ),
        *(
            (
                "t",
                {"sensitive": "score", "distance": distance},
                ask(f"""SELECT t, average_t, classes
                        FROM anon.t_closeness('people', ['age', 'Sex'], 'score', distance := '{distance}')"""),
            )
            for distance in ("ordered", "equal")
        ),
        ("individual_risk", {}, ask(f"SELECT {columns} FROM {risk.format('NULL')}")),
        ("individual_risk", {"weight": "weight"}, ask(f"SELECT {columns} FROM {risk.format(repr('weight'))}")),
    ]


def agree(rows: list[dict[str, Any]], expected: list[tuple[Any, ...]]) -> None:
    """Compare the rows of a check, those of people by their id, up to rounding."""
    if rows and "risk" in rows[0]:
        names = ("id", "sample_frequency", "population_frequency", "risk")
        rows = [{name: row[name] for name in names} for row in sorted(rows, key=lambda row: row["id"])]
    assert len(rows) == len(expected)
    for row, wanted in zip(rows, expected, strict=True):
        for (name, found), value in zip(row.items(), wanted, strict=True):
            same = found == value if None in (found, value) else math.isclose(float(found), value, abs_tol=1e-9)
            assert same, f"{name}: {found}, not {value}"


def named(cursor: Any) -> list[dict[str, Any]]:
    names = [described[0] for described in cursor.description]
    return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


@pytest.mark.thorough
def test_duckdb_and_sqlite_say_what_anon_says(shared: duckdb.DuckDBPyConnection) -> None:
    """Also where SQLite's column holds F and f for equal."""
    table = people(shared)
    with sqlite3.connect(":memory:") as database:
        database.execute('CREATE TABLE people (id, age, "Sex" TEXT COLLATE NOCASE, score, who, weight)')
        rows = list(zip(*(column.to_pylist() for column in table.columns), strict=True))
        database.executemany("INSERT INTO people VALUES (?, ?, ?, ?, ?, ?)", rows)
        for check, options, expected in asked(shared):
            assert expected
            agree(named(shared.execute(duckanon.render_check(check, COLS, "duckdb", "people", **options))), expected)
            agree(named(database.execute(duckanon.render_check(check, COLS, "sqlite", "people", **options))), expected)


def test_a_class_of_one_value_has_no_recursive_diversity() -> None:
    with duckdb.connect() as con:
        con.execute("CREATE TABLE people AS FROM (VALUES (1, 'a'), (1, 'b'), (2, 'a')) AS t(x, y)").fetchall()
        query = duckanon.render_check("l", ["x"], table="people", sensitive="y")
        assert con.execute(query).fetchall() == [(1, 1.0, None)]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_dialect_can_be_read_again(dialect: str) -> None:
    for check, options in (
        ("k", {"person": "who"}),
        ("l", {"sensitive": "score"}),
        ("t", {"sensitive": "score", "distance": "ordered"}),
        ("t", {"sensitive": "score", "distance": "equal"}),
        ("individual_risk", {"weight": "weight"}),
    ):
        query = duckanon.render_check(check, COLS, dialect, "clinic.people", **options)
        assert query.startswith(f"-- duckanon.render_check: {check} ({dialect}: ")
        assert isinstance(sqlglot.parse_one(query, read=dialect), sqlglot.exp.Select)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"check": "m"}, "check must be one of 'k', 'l', 't', 'individual_risk'; got 'm'."),
        ({"check": "k", "cols": []}, "cols must be a list of column names such as .*; got \\[\\]."),
        ({"check": "l"}, "sensitive must be the name of a column for the check l; got NULL."),
        ({"check": "t", "sensitive": "x"}, "distance must be one of 'ordered', 'equal'; got NULL."),
        ({"check": "k", "sensitive": "x"}, "sensitive must be None for the check k; got 'x'."),
        ({"check": "individual_risk", "weight": 3}, "weight must be the name of a column; got 3."),
    ],
)
def test_what_cannot_be_asked_is_refused_with_a_sentence(given: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match=f"^{sentence}$"):
        duckanon.render_check(**{"cols": ["age"], **given})
