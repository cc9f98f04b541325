"""Kept columns that give a coarse one away: copies of it in any form, columns that have nothing to do with it."""

from __future__ import annotations

import datetime
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from duckanon._core.common.codes import rank_values
from duckanon._core.privacy.narrowing import find_narrow_pairs, list_sort_keys, measure_dependence

DAYS = [datetime.date(1950, 1, 1) + datetime.timedelta(days=int(day)) for day in range(0, 18_000, 9)]
FORMS = {
    "the same": lambda x, day: x,
    "scaled": lambda x, day: 1.1 * x,
    "turned around": lambda x, day: -x,
    "logarithm": lambda x, day: np.log(x + 1),
    "distance from the middle": lambda x, day: np.abs(x - 1000.2),
    "text": lambda x, day: [f"{value:.1f}" for value in x],
    "price": lambda x, day: [f"EUR {value:.1f}" for value in x],
    "code": lambda x, day: [f"P-{int(value):07d}-X" for value in x],
    "day": lambda x, day: day,
    "moment": lambda x, day: [datetime.datetime.combine(one, datetime.time(8)) for one in day],
    "day first": lambda x, day: [one.strftime("%d.%m.%Y") for one in day],
    "month first": lambda x, day: [one.strftime("%m/%d/%y") for one in day],
    "name of the month": lambda x, day: [f"{one:%A}, {one:%B} {one.day}, {one.year}" for one in day],
    "noise of a tenth of a label": lambda x, day: x + np.random.default_rng(1).normal(0, 2, len(x)),
}


def _judge(values: np.ndarray, kept: Any, size: int) -> tuple[list[Any], list[Any]]:
    """Return what is narrowed and unjudged where classes are `size` values that follow each other."""
    classes = np.minimum(values.argsort().argsort() // size, len(values) // size - 1)
    column = {"kept": pa.chunked_array([pa.array(kept)])}
    return find_narrow_pairs({"x": values}, {"x": classes}, column, classes, np.random.default_rng(0))


@pytest.mark.thorough
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("size", [3, 20])
def test_a_copy_narrows_in_every_form(form: str, size: int) -> None:
    places = np.random.default_rng(2).permutation(len(DAYS))[:600]
    kept = FORMS[form](places.astype(np.float64), [DAYS[place] for place in places])
    if size == 3 and form.startswith("noise"):
        return  # it is as large as the label
    if size == 3 and form.startswith("distance"):
        return  # pairs and triples say nothing by themselves of which the sign changes: counted below
    assert _judge(places.astype(np.float64), kept, size) == ([("kept", "x")], [])


@pytest.mark.parametrize("rows", [30, 100, 1000])
@pytest.mark.parametrize("size", [3, 10])
def test_columns_that_have_nothing_to_do_with_it_pass(rows: int, size: int) -> None:
    generator = np.random.default_rng(rows + size)
    values = generator.permutation(rows).astype(np.float64)
    outsiders = {
        "numbers": generator.normal(size=rows),
        "codes": [f"{value:x}" for value in generator.integers(0, 2**40, rows)],
        "days": [DAYS[place] for place in generator.integers(0, len(DAYS), rows)],
        "correlated": values + generator.normal(0, rows / 3, rows),
        "groups": generator.integers(0, 3, rows),
        "nothing": pa.nulls(rows, pa.string()),
    }
    assert {name: _judge(values, kept, size) for name, kept in outsiders.items()} == {
        name: ([], []) for name in outsiders
    }


def test_too_few_rows_to_tell() -> None:
    values = np.array([3.0, 1, 2, 11, 12, 10, 20, 22, 21, 30, 31, 32])
    for kept in (values, values[::-1], np.arange(12.0)):
        assert _judge(values, kept, 3) == ([], [("kept", "x")])
    assert _judge(values, values, 6) == ([("kept", "x")], [])
    assert _judge(values, ["F", "M"] * 6, 3) == ([], [])
    assert _judge(np.repeat([1.0, 2, 3, 4], 3), values, 3) == ([], [])  # labels that are values leave nothing to tell


def test_a_column_whose_labels_are_nearly_always_its_values_is_judged() -> None:
    """That two of its values share a label in a few rows is no reason to refuse columns of a large table."""
    values = np.repeat(np.arange(100.0), 5)
    labels = np.where(values == 99, 98, values).astype(np.int64)
    kept = {"kept": pa.chunked_array([np.random.default_rng(0).normal(size=500)])}
    assert find_narrow_pairs({"x": values}, {"x": labels}, kept, labels, np.random.default_rng(0)) == ([], [])
    few = np.array([0, 1, 2, 3, 4, 5, 495, 496, 497, 498, 499])
    kept = {"kept": kept["kept"].take(pa.array(few))}
    judged = find_narrow_pairs({"x": values[few]}, {"x": labels[few]}, kept, labels[few], np.random.default_rng(0))
    assert judged == ([], [])


def test_the_correlation_is_that_of_the_definition() -> None:
    """Spearman's coefficient in every class of different values, weighted by rows less one."""
    generator = np.random.default_rng(5)
    classes, values = generator.integers(0, 30, 400), generator.permutation(400)
    kept = values + generator.normal(0, 60, 400)
    total = weight = 0.0
    for entry in np.unique(classes):
        indexes, other = values[classes == entry].argsort().argsort(), kept[classes == entry].argsort().argsort()
        size = len(indexes)
        total += (size - 1) * (1 - 6 * ((indexes - other) ** 2).sum() / (size * (size**2 - 1)))
        weight += size - 1
    results = measure_dependence(classes, np.zeros(400, np.int64), values, pa.chunked_array([kept]))
    assert results.correlation == pytest.approx(total / weight)


@pytest.mark.thorough
def test_sql_and_python_judge_alike(shared: duckdb.DuckDBPyConnection) -> None:
    cursor = shared.cursor()
    cursor.execute(
        """CREATE OR REPLACE TEMP TABLE judged AS
           SELECT ward, x, x + (hash(i, 2) % 400)::INTEGER AS noisy, hash(i, 3)::VARCHAR AS code,
                  strftime(DATE '2000-01-01' + x, '%d.%m.%Y') AS day
           FROM (SELECT i, (hash(i) % 5000)::INTEGER AS x, i % 40 AS ward FROM range(800) AS r(i))"""
    )
    cursor.execute(
        """CREATE OR REPLACE TEMP TABLE judging AS
           SELECT 'x' AS column_name, 'number' AS covers, '0' AS lower, NULL AS upper, 'any' AS label, 800 AS "rows",
                  NULL::STRUCT(x VARCHAR, ward BIGINT) AS released UNION ALL BY NAME
           SELECT 'ward' AS column_name, 'value' AS covers, i::VARCHAR AS lower, i::VARCHAR AS upper, 'w' || i AS label,
                  20 AS "rows" FROM range(40) AS r(i)"""
    )
    seen = cursor.execute(
        """SELECT kept_column, rank_correlation, narrows
           FROM anon.kept_column_risk('judged', ['x', 'ward'], ['noisy', 'code', 'day'], plan := 'judging')
           WHERE column_name = 'x'"""
    ).fetchall()
    table = cursor.sql("FROM judged").to_arrow_table()
    classes = table.column("ward").to_numpy().astype(np.int64)
    ranks = rank_values(table.column("x"))
    for name, correlation, narrows in seen:
        expected = measure_dependence(classes, np.zeros(len(ranks), np.int64), ranks, table.column(name))
        assert correlation == pytest.approx(expected.correlation, abs=1e-6)
        assert narrows == expected.is_beyond_chance
    assert [narrows for *_, narrows in seen] == [True, False, True]


@pytest.mark.parametrize("form", ["%Y-%m-%d", "%d.%m.%Y", "%m/%d/%Y", "%d %B %Y", "%A, %B %d, %Y"])
def test_one_of_the_orders_of_dates_is_theirs(form: str) -> None:
    days = np.random.default_rng(1).permutation(np.array(DAYS))
    written = pa.chunked_array([pa.array([day.strftime(form) for day in days])])
    ranks = np.argsort(np.argsort(days))
    assert any(np.array_equal(np.argsort(np.argsort(keys)), ranks) for keys in list_sort_keys(written))
