"""What a report says where little is left to say: erased columns, rows without a person, people with many rows."""

from __future__ import annotations

import copy
from typing import Any

import duckdb
import pytest

from duckanon import report
from duckanon.report.safe import NOT_TOLD, step_for
from tests.report.records import Page, entry, make_tables, record

NO_PERSON = 81
"""Rows of the visits that have no person."""


def text(html: str, tag: str = "body") -> str:
    return " ".join(" ".join(found for _, found in Page(html).all(tag)).split())


def measured(con: duckdb.DuckDBPyConnection, original: str, released: str, **roles: str) -> dict[str, Any]:
    columns = [{"name": name, "role": role, "treatment": ""} for name, role in roles.items()]
    table = entry(columns=columns, people=None)
    table["measures"] = report.measured(con, original, released, table)
    return table


@pytest.mark.parametrize(
    "label",
    [
        "'*'",
        pytest.param("NULL::VARCHAR", marks=pytest.mark.thorough),
        pytest.param("{'lo': 20, 'hi': 80}", marks=pytest.mark.thorough),
    ],
)
def test_an_erased_column_is_not_compared(con: duckdb.DuckDBPyConnection, label: str) -> None:
    """A value drawn within `*` is distributed as the original: it says nothing about what the release tells."""
    make_tables(con)
    con.execute(
        f"""CREATE TABLE country AS SELECT *, 'CH' AS country FROM people;
            CREATE TABLE nothing AS SELECT {label} AS age, sex, occupation, country FROM country"""
    ).fetchall()
    roles = {"age": "quasi_identifier", "sex": "quasi_identifier", "occupation": "free", "country": "free"}
    table = measured(con, "country", "nothing", **roles)
    measures = table["measures"]
    assert measures["erased"] == ["age"]  # the country was the same before
    assert {row["column"] for row in measures["utility"]["marginals"]} == {"sex", "occupation", "country"}
    figures = report.figures(con, "country", "nothing", table)
    assert figures
    assert not [figure.title for figure in figures if "age" in figure.title.split(": ")[-1].split(", ")]
    page = Page(report.html(record(table), {"people": figures}))
    rows = [" ".join(found.split()) for _, found in page.all("tr")]
    assert "ageerased" in rows
    assert len([row for row in rows if row.startswith("age") and "erased: the same in every row" in row]) == 1
    assert "Erased: age. Every row of the release says the same there" in text(report.html(record(table), {}))


@pytest.fixture
def visits(con: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    """Make 900 people with a visit each, and visits without a person, of which some are in a ward of their own."""
    con.execute(
        f"""CREATE TABLE visits AS
            SELECT 'P' || i AS person_id, i % 5 AS ward, ['nurse', 'clerk'][1 + i % 2] AS occupation
            FROM range(900) AS t(i)
            UNION ALL SELECT NULL, CASE WHEN i % 5 = 0 THEN 9 ELSE i % 5 END, 'nurse' FROM range({NO_PERSON}) AS t(i)"""
    ).fetchall()
    return con


@pytest.mark.thorough
def test_rows_without_a_person_are_not_one_person(visits: duckdb.DuckDBPyConnection) -> None:
    table = measured(visits, "visits", "visits", person_id="person", ward="quasi_identifier", occupation="free")
    assert table["measures"]["utility"]["step"] == step_for(900) == 0.02
    figures = report.figures(visits, "visits", "visits", table)
    assert "fewer than 10 rows of the original" in "".join(figure.caption for figure in figures)
    sizes = visits.execute("SELECT count(DISTINCT person_id) FROM visits GROUP BY ward, occupation").fetchall()
    assert table["measures"]["classes"]["after"]["smallest"] == min(size for (size,) in sizes) == 0
    page = text(report.html(record(table), {}))
    assert "finds as few as 0" not in page
    assert "finds in some cases only rows without a person, where 0 people are counted: the chance may be 100 %" in page
    assert "0 people: rows without a person" in page


@pytest.mark.thorough
def test_numbers_that_few_people_could_move_are_not_told(con: duckdb.DuckDBPyConnection) -> None:
    """Eight people have 200 rows each: ten of these would move every share by more than the step."""
    con.execute(
        """CREATE TABLE visits AS
           SELECT i AS person_id, i % 7 AS ward, 20.0 + i % 50 AS cost FROM range(992) AS t(i)
           UNION ALL SELECT 5000 + i % 8, i % 7, 20.0 + i % 50 FROM range(1600) AS t(i)"""
    ).fetchall()
    table = measured(con, "visits", "visits", person_id="person", ward="quasi_identifier", cost="free")
    utility = table["measures"]["utility"]
    assert utility["step"] == NOT_TOLD
    assert [row["distance"] for row in utility["marginals"]] == [None, None]
    assert {row["original"] for row in utility["correlations"]} == {None}
    figures = report.figures(con, "visits", "visits", table)
    assert "Correlations before and after" not in [figure.title for figure in figures]
    page = text(report.html(record(table), {"people": figures}))
    assert "The numbers are not told: there are too few people" in page
    assert "costnot told" in page
    few = copy.deepcopy(table)
    few["measures"]["risk"]["before"]["average"] = None
    assert "on average, over all rowsnot told" in text(report.html(record(few), {}))


def test_a_release_that_refuses_narrowing_columns_says_so() -> None:
    """Without a plan the report measures nothing, but the release did."""

    def told(method: str, **parameters: Any) -> str:
        kept = [{"kept": "income", "k": 12, "narrows": None}]
        table = entry(method={"name": method, "parameters": {"k": 10, **parameters}}, measures={"narrowing": kept})
        page = text(report.html(record(table), {}))
        return page.partition("may also narrow down a generalized one: ")[2].partition(".")[0]

    assert told("generalize") == "the release refuses any that does"
    allowed = told("boxes", narrowing=["income"])
    assert allowed == "the release refuses any that does, but for income, which the policy lets do so"
    assert told("another method") == "it was not measured for this method"
