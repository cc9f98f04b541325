"""Hierarchy tables that name a value twice: with other labels they are refused, with the same ones harmless."""

from __future__ import annotations

import re

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from duckanon._methods.generalize.hierarchies import HierarchyTable, read_hierarchies
from duckanon._methods.generalize.leaves import Holders, read_text_leaves
from duckanon._methods.generalize.methods import Hierarchy
from duckanon._methods.generalize.recoding.axes import ColumnRecoding
from tests.sqltest import registered

_COMPARED = "'people', 'shown', ['city', 'age']"
_CALLS = {
    "audit_table": "'cells', ['city']",
    "classifier_utility": "'people', 'shown', ['city', 'age'], 'ill'",
    "compare_releases": "'people', MAP {'a': 'shown'}, ['city', 'age']",
    "generalize": "'people', ['city'], 3",
    "linkage_risk": "'people', 'shown', ['city'], ['age']",
    "plan": "'people', ['city'], 3",
    "protect_table": "'people', ['city'], k := 3",
    "recode": "'people', ['city'], 3",
    "recode_classes": "'shown', ['city']",
    "release_linked": "['people'], 'person', ['city'], 3, known := 1",
}
"""The arguments of the functions that take hierarchies; all others compare a release with its original."""


@pytest.fixture(scope="module")
def con() -> duckdb.DuckDBPyConnection:
    con = registered().cursor()
    for name, query in {
        "people": "SELECT ['Mainz', 'Bonn', 'Ulm'][1 + i % 3] AS city, 20 + i * 7 % 40 AS age, i % 2 = 0 AS ill, "
        "i AS person FROM range(90) AS t(i)",
        "shown": "SELECT CASE city WHEN 'Bonn' THEN 'West' ELSE 'South' END AS city, age, ill FROM people",
        "cells": "SELECT city, count(*) AS value FROM people GROUP BY CUBE (city)",
        "tree": "FROM (VALUES ('Mainz', 'South'), ('Bonn', 'West'), ('Ulm', 'South')) AS t(city, area)",
        "twice": "SELECT t.* FROM people LEFT JOIN tree AS t USING (city)",
        "contradicted": "FROM tree UNION ALL SELECT 'Mainz', 'West'",
    }.items():
        con.execute(f"CREATE TEMP TABLE {name} AS {query}").fetchall()
    con.execute("UPDATE cells SET city = coalesce(city, 'Total')").fetchall()
    return con


def functions(con: duckdb.DuckDBPyConnection) -> dict[str, str]:
    """Return a call of each function with hierarchies; `{}` is for the table."""
    names = con.execute(
        "SELECT function_name FROM duckdb_functions() WHERE database_name = 'anon' AND function_name[1] <> '_' "
        "AND list_contains(parameters, 'hierarchies') ORDER BY ALL"
    ).fetchall()
    calls = {
        name: f"anon.{name}({_CALLS.get(name, _COMPARED)}, hierarchies := MAP {{'city': '%s'}})" for (name,) in names
    }
    return calls | {"hierarchy_level": "anon.hierarchy_level('people', 'city', '%s', 2)"}


@pytest.mark.thorough
def test_a_value_with_two_labels_is_refused_by_every_function(con: duckdb.DuckDBPyConnection) -> None:
    """Not by some, while others take the last row; and none quotes the value, which is one of the table."""
    calls = functions(con)
    assert calls.keys() > _CALLS.keys()
    sentence = 'the hierarchy of column "city" must give each value one label of each level; got 1 with several.'
    for name, call in calls.items():
        with pytest.raises(duckdb.Error) as refused:
            con.execute(f"FROM {call % 'contradicted'}").fetchall()
        assert re.fullmatch(rf".*anon\.\w+: {re.escape(sentence)}", str(refused.value).splitlines()[0]), name


@pytest.mark.parametrize(
    "name", ["generalization_loss", "hierarchy_level", "protect_table", "recode", "recode_classes"]
)
def test_equal_rows_are_one(con: duckdb.DuckDBPyConnection, name: str) -> None:
    """A hierarchy made of a table of people has a row for each person."""
    once, often = (
        con.execute(f"FROM {functions(con)[name] % tree} ORDER BY ALL").fetchall() for tree in ("tree", "twice")
    )
    assert once == often
    assert once


def test_rows_of_spark_are_refused_too() -> None:
    """There the rows come from a DataFrame, not through SQL."""
    rows = [{"column_name": "city", "leaf": "Ulm", "level": 1, "label": label} for label in ("South", "South", "East")]
    assert read_hierarchies(rows[:2])["city"].path("Ulm") == ("Ulm",)
    with pytest.raises(ValueError, match=r'the hierarchy of column "city" must give .* got 1 with several\.$'):
        read_hierarchies(rows)


def test_values_that_nobody_is_released_with_are_called_as_the_root() -> None:
    """By name, or by their province, the plan would tell of people who are suppressed."""
    provinces = {"Linz": "Upper Austria", "Wels": "Upper Austria", "Graz": "Styria", "Leoben": "Styria"}
    rows = [(town, level, label) for town, name in provinces.items() for level, label in ((1, name), (2, "*"))]
    towns = pa.chunked_array([["Graz", "Linz", "Wels"]])
    leaves = read_text_leaves("town", towns, Holders(np.array([2, 20, 20])))
    groups = ColumnRecoding(np.array([2, 0, 1]), np.array([0.0, 0.0, 1.0]), np.array([20, 20, 0]), rest=2)
    buckets = Hierarchy(leaves, HierarchyTable("town", rows)).buckets(groups)
    labels = {bucket.lower: bucket.label for bucket in buckets if bucket.covers == "value"}
    assert labels == {"Linz": "Linz", "Wels": "Wels", "Graz": "*", "Leoben": "*"}
