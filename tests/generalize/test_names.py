"""Tests of tables whose columns are called as something of ours is."""

from __future__ import annotations

import duckdb
import pytest

NAMES = ["size", "class_size", "box", "label", "lower", "rows", "value", "released"]
PLANNED = {
    "quantile_partition": "SELECT label, \"rows\" FROM anon.quantile_partition('t', '{x}', buckets := 4)",
    "sampled_partition": "SELECT label, \"rows\" FROM anon.sampled_partition('t', '{x}', 4)",
    "optimal_partition": "SELECT label, \"rows\" FROM anon.optimal_partition('t', '{x}', 50)",
    "apply_partition": """
        WITH parts AS (FROM anon.sampled_partition('t', '{x}', 4))
        SELECT "{x}", "{y}", count(*) FROM anon.apply_partition('t', '{x}', 'parts', keep := ['{y}']) GROUP BY ALL""",
    "generalize": """
        SELECT "{x}", other, "{y}", count(*) FROM anon.generalize('t', ['{x}', 'other'], 9, keep := ['{y}'])
        GROUP BY ALL""",
    "apply_plan": """
        WITH plans AS (FROM anon.plan('t', ['{x}', 'other'], 9))
        SELECT "{x}", other, "{y}", count(*) FROM anon.apply_plan('t', 'plans', keep := ['{y}']) GROUP BY ALL""",
    "plan_coverage": """
        WITH plans AS (FROM anon.plan('t', ['{x}', 'other'], 9))
        SELECT * EXCLUDE (column_name) FROM anon.plan_coverage('t', 'plans')""",
    "generalization_loss": """
        WITH coarse AS (SELECT "{x}" // 10 * 10 AS "{x}" FROM t)
        SELECT * EXCLUDE (column_name) FROM anon.generalization_loss('t', 'coarse', ['{x}'])""",
}


def answers(con, function, x, y):
    con.execute(f"""
        CREATE OR REPLACE TABLE t AS
        SELECT i % 20 AS "{x}", i // 20 % 2 AS other, i // 40 % 2 AS "{y}", 1 AS unnamed FROM range(400) AS r(i)""")
    return sorted(map(str, con.execute(PLANNED[function].format(x=x, y=y)).fetchall()))


@pytest.mark.thorough
@pytest.mark.parametrize("function", PLANNED)
def test_names_change_nothing(con, function):
    """A column ``released`` was lost on its way."""
    expected = answers(con, function, "x", "y")
    assert expected
    for x, y in zip(NAMES, NAMES[1:] + NAMES[:1], strict=True):
        assert answers(con, function, x, y) == expected, (x, y)


@pytest.fixture(scope="module")
def planned(shared):
    """A plan and a partition of a table t with the column x."""
    shared.execute("CREATE TABLE t AS SELECT i % 5 AS x FROM range(50) AS r(i)")
    shared.execute("CREATE TABLE plans AS FROM anon.plan('t', ['x'], 2)")
    shared.execute("CREATE TABLE parts AS FROM anon.sampled_partition('t', 'x', 2)")
    return shared


@pytest.mark.parametrize(
    "name", ["_duckanon_x", "_duckanon_none", "_DUCKANON_lists", "_duckanon_person", "_duckanon_size"]
)
@pytest.mark.parametrize(
    ("call", "parameter"),
    [
        ("generalize('t', ['{n}'], 2)", "cols"),
        ("generalize('t', ['x'], 2, keep := ['{n}'])", "keep"),
        ("generalize('t', ['x'], 2, person := '{n}')", "person"),
        ("plan('t', ['{n}'], 2)", "cols"),
        ("apply_plan('t', 'plans', keep := ['{n}'])", "keep"),
        ("apply_partition('t', '{n}', 'parts')", "cols"),
    ],
)
@pytest.mark.thorough
def test_names_of_our_own_steps_are_refused(planned, name, call, parameter):
    """Some were taken for a step of ours: the label of ``_duckanon_none`` was NULL in every row."""
    planned.execute(f'CREATE OR REPLACE TABLE t AS SELECT i % 5 AS x, 1 AS "{name}" FROM range(50) AS r(i)')
    with pytest.raises(duckdb.Error) as raised:
        planned.execute(f"FROM anon.{call.format(n=name)}").fetchall()
    function = call.partition("(")[0]
    assert (
        f"anon.{function}: {parameter} must not name a column that begins with _duckanon_; got {name}: rename it first."
    ) in str(raised.value)


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["_duckanon_x", "_duckanon_none", "_duckanon_lists", "_duckanon_person"])
def test_columns_that_nobody_names_do_no_harm(planned, name):
    """Functions that call Python refuse a table with such a column; what is pure SQL reads the named columns alone."""
    planned.execute(f'CREATE OR REPLACE TABLE t AS SELECT i % 5 AS x, i AS "{name}" FROM range(50) AS r(i)')
    assert planned.execute("SELECT count(*), count(x) FROM anon.apply_plan('t', 'plans')").fetchall() == [(50, 50)]
    assert len(planned.execute("FROM anon.plan_coverage('t', 'plans')").fetchall()) == 1
    try:
        result = planned.execute("SELECT count(*), count(x) FROM anon.generalize('t', ['x'], 2)").fetchall()
        assert result == [(50, 50)]
    except duckdb.Error as error:
        assert f"a column that begins with _duckanon_; got {name}: rename it first." in str(error)  # noqa: PT017
