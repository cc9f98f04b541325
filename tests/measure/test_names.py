"""Columns that are called like the steps and results of the measures: everything works, and no result depends on it."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest

CURSED = [
    "size", "class_size", "is_reference", "candidates", "box", "record", "distance", "cells", "duckanon_distance",
    "names", "source", "key", "release", "coarse_names", "u size", "position", "is_original", "_duckano", "label",
    "value", "duckanon_",
]  # fmt: skip
CALLS = [
    "prediction_risk('m', '{release}', {columns})",
    "privacy_test('m', '{release}', {columns}, reference := 'o', holdout := 'o', seed := 1)",
    "linkage_risk('m', '{release}', {known}, {secret}, control := 'o', seed := 1)",
    "singling_out_risk('m', '{release}', {columns}, control := 'o', attacks := 100, seed := 1)",
    "containment_candidates('m', '{release}', {columns})",
    "containment_risk('m', '{release}', {columns}, population := 'o')",
    "utility('m', '{release}', {columns}, seed := 1)",
    "kernel_utility('m', '{release}', {columns}, reference := 'o', seed := 1)",
    "kernel_components('m', '{release}', {columns}, points := 50, seed := 1)",
    "classifier_utility('m', '{release}', {columns}, {target}, seed := 1)",
    "detectability('m', '{release}', {columns}, seed := 1)",
    "query_utility('m', '{release}', {columns}, queries := 100, seed := 1)",
    "compare_releases('m', MAP {{'first': '{release}', 'second': 'o'}}, {columns}, reference := 'o', seed := 1)",
    "verdict('m', '{release}', {columns}, k := 2, max_correlation_difference := 1, seed := 1)",
    "matching_attack('m', 'o', {columns})",
]


@pytest.fixture(scope="module")
def names(shared: duckdb.DuckDBPyConnection) -> Iterator[duckdb.DuckDBPyConnection]:
    """Make the same 300 people twice, under the cursed names and under plain ones, which have as many letters."""
    for schema, spelled in (("cursed", CURSED), ("plain", [f"c{place}" for place in range(len(CURSED))])):
        values, labels = [], []
        for place, name in enumerate(spelled):
            word = f"['x', 'y', 'z'][1 + (hash(i, {place}) % 3)::INTEGER]"
            number = f"(hash(i, {place}) % 20)::INTEGER"
            values.append(f'{word if place % 3 == 0 else number} AS "{name}"')
            coarse = f"CASE WHEN {word} = 'x' THEN 'x' ELSE 'other' END"
            if place % 3 == 1:
                coarse = f"CASE WHEN {number} < 10 THEN '<10' ELSE '>=10' END"
            elif place % 3 == 2:
                coarse = f"{{'lo': {number} - 1, 'hi': {number} + 1}}"
            labels.append(f'{coarse} AS "{name}"')
        shared.execute(f"CREATE SCHEMA {schema}").fetchall()
        for table, columns, rows in (("m", values, "0, 150"), ("o", values, "150, 300"), ("coarse", labels, "0, 150")):
            shared.execute(
                f"CREATE TABLE {schema}.{table} AS SELECT {', '.join(columns)} FROM range({rows}) AS _(i)"
            ).fetchall()
    yield shared
    for schema in ("cursed", "plain"):
        shared.execute(f"DROP SCHEMA {schema} CASCADE").fetchall()


@pytest.mark.thorough
@pytest.mark.parametrize("release", ["coarse", "o"])
@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.split("(")[0])
def test_names_change_nothing(names: duckdb.DuckDBPyConnection, call: str, release: str) -> None:
    """Columns under plain names give the same numbers as under cursed ones; the tables have all of them."""
    half = len(CURSED) // 2
    for places in (range(half), range(half, len(CURSED))):
        found = []
        for schema, spelled in (("cursed", CURSED), ("plain", [f"c{place}" for place in range(len(CURSED))])):
            columns = [spelled[place] for place in places]
            text = call.format(
                release=release, columns=columns, known=columns[:3], secret=columns[3:6], target=repr(columns[0])
            )
            for table in ("m", "o", "coarse"):
                text = text.replace(f"'{table}'", f"'{schema}.{table}'")
            rows = names.execute(f"FROM anon.{text}").fetchall()
            numbers = [[round(value, 9) for value in row if isinstance(value, float | bool)] for row in rows]
            found.append(sorted(str(row) for row in numbers))
        assert found[0] == found[1]


def test_new_columns_replace_those_of_the_same_name(con: duckdb.DuckDBPyConnection) -> None:
    con.execute(
        'CREATE TABLE t AS SELECT i AS id, true AS is_reference, -1 AS "Candidates" FROM range(40) AS _(i)'
    ).fetchall()
    marked = con.execute("SELECT count(*) FILTER (is_reference) FROM anon.split_reference('t', 0.25)").fetchall()
    assert marked == [(10,)]
    assert con.sql("FROM anon.split_reference('t')").columns == ["id", "Candidates", "is_reference"]
    con.execute("CREATE TABLE shown AS SELECT '*' AS id FROM t").fetchall()
    counted = con.sql("FROM anon.containment_candidates('t', 'shown', ['id'])")
    assert counted.columns == ["id", "is_reference", "candidates"]
    assert {row[-1] for row in counted.fetchall()} == {40}
