"""Rendered plans give every row the labels of `anon.apply_plan`, and leave out exactly the small classes."""

from __future__ import annotations

import re
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import sqlglot
from hypothesis import given
from hypothesis import strategies as st

import duckanon
from duckanon._render import expressions
from duckanon._render.dialects import DIALECTS
from duckanon.cli.main import main
from tests import profiles
from tests.rendered.cases import Case, cases, in_duckdb, in_sqlite, large_classes, plan_table


@pytest.mark.thorough
@profiles.dear
@given(case=cases(), with_types=st.booleans(), is_many=st.booleans(), k=st.integers(2, 3))
def test_duckdb_gives_the_labels_of_apply_plan(
    shared: duckdb.DuckDBPyConnection, case: Case, with_types: bool, is_many: bool, k: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        if is_many:
            patch.setattr(expressions, "MANY", 1)
            patch.setattr(expressions, "CHAIN", 3)
        expected = case.expected(shared)
        assert in_duckdb(shared, case, case.rendered("duckdb", with_types)) == expected
        assert in_duckdb(shared, case, case.rendered("duckdb", with_types, k=k)) == large_classes(expected, k)


@pytest.mark.thorough
@profiles.dear
@given(case=cases(booleans=False, nan=False), is_many=st.booleans(), k=st.integers(2, 3))
def test_sqlite_gives_the_labels_of_apply_plan(
    shared: duckdb.DuckDBPyConnection, case: Case, is_many: bool, k: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        if is_many:
            patch.setattr(expressions, "MANY", 1)
            patch.setattr(expressions, "CHAIN", 3)
        expected = case.expected(shared)
        labelled, counted = (case.rendered("sqlite", with_types=True, k=least) for least in (None, k))
        for declared in ("", "COLLATE NOCASE"):
            assert in_sqlite(case, labelled, declared) == expected
            assert in_sqlite(case, counted, declared) == large_classes(expected, k)


@pytest.mark.thorough
@profiles.dear
@given(case=cases(booleans=False), k=st.none() | st.just(2))
def test_every_dialect_can_be_read_again(case: Case, k: int | None) -> None:
    """Labels and values come back from the text as they went in, whatever is in them."""
    rows = case.plan.to_pylist()
    texts = {row[name] for name in ("label", "lower") for row in rows}
    for dialect in DIALECTS:
        tree = sqlglot.parse_one(case.rendered(dialect, with_types=True, k=k), read=dialect)
        literals = {node.name for node in tree.find_all(sqlglot.exp.Literal) if node.is_string}
        literals |= {node.name for node in tree.find_all(sqlglot.exp.National)}
        assert {text for text in literals if "-" not in text and ":" not in text} <= texts | {"integer", "real", "text"}
        assert {row["label"] for row in rows if row["covers"] != "rest"} - {None} <= literals, dialect
        assert isinstance(tree, sqlglot.exp.Select)


BOTH = (("sqlite", in_sqlite), ("duckdb", lambda case, query: in_duckdb(duckdb.connect(), case, query)))
SEXES = plan_table(["sex"], [("sex", "value", "F", "F"), ("sex", "value", "f", "f"), ("sex", "rest", None, None)])


@pytest.mark.parametrize("labels", [("F", "f"), ("F", "F "), ("", None), ("*", "＊")])
def test_labels_that_a_collation_holds_for_equal_are_counted_apart(labels: tuple[str, str | None]) -> None:
    """Two rows of one label and one of the other: to NOCASE three of a kind, to a reader not."""
    rows = [("sex", "value", "1", labels[0]), ("sex", "value", "2", labels[1])]
    query = duckanon.render(plan_table(["sex"], rows), "sqlite", "people", k=3)
    with sqlite3.connect(":memory:") as database:
        database.execute("CREATE TABLE people (sex TEXT COLLATE NOCASE)")
        database.executemany("INSERT INTO people VALUES (?)", [("1",), ("1",), ("2",)])
        assert database.execute(query).fetchall() == []
        by_label = f"SELECT * FROM ({duckanon.render(plan_table(['sex'], rows), 'sqlite', 'people', k=2)})"
        assert database.execute(by_label).fetchall() == [(labels[0],)] * 2


def test_a_value_is_not_taken_for_one_of_another_case() -> None:
    with sqlite3.connect(":memory:") as database:
        database.execute("CREATE TABLE people (sex TEXT COLLATE NOCASE)")
        database.executemany("INSERT INTO people VALUES (?)", [("f",), ("F ",), ("F",)])
        assert database.execute(duckanon.render(SEXES, "sqlite", "people")).fetchall() == [("f",), (None,), ("F",)]


def test_null_labels_are_a_class_and_small_ones_are_left_out() -> None:
    """Neither joined away nor counted with anybody else."""
    case = Case(SEXES, pa.table({"id": [1, 2, 3, 4, 5], "sex": [None, "x", "F", "F", "f"]}), {})
    for dialect, run in BOTH:
        assert run(case, case.rendered(dialect, False, k=2)) == [(None, 1), (None, 2), ("F", 3), ("F", 4)]
        assert run(case, case.rendered(dialect, False, k=3)) == []


def test_k_counts_people_where_it_is_said_whose_a_row_is() -> None:
    """Three rows of one person are one, and rows of nobody count as nobody."""
    rows = [("F", "ann"), ("F", "ann"), ("F", "ann"), ("F", None), ("f", "bob"), ("f", "eve"), ("f", None)]
    table = pa.table({"id": range(7), "sex": [row[0] for row in rows], "who": [row[1] for row in rows]})
    case = Case(SEXES, table, {})
    for dialect, run in BOTH:
        assert run(case, case.rendered(dialect, False, k=2, person="who")) == [("f", 4), ("f", 5), ("f", 6)]
        assert len(run(case, case.rendered(dialect, False, k=2))) == 7


def test_rows_come_in_another_order_where_classes_are_left_out() -> None:
    plan = plan_table(["sex"], [("sex", "rest", None, "*")])
    with duckdb.connect() as con:
        con.execute("CREATE TABLE patients AS SELECT i AS id, 'F' AS sex FROM range(1000) AS r(i)").fetchall()
        first, second = (con.execute(duckanon.render(plan, k=2, keep=["id"])).fetchall() for _ in range(2))
    assert sorted(first) == sorted(second) == [("*", place) for place in range(1000)]
    assert len({tuple(first), tuple(second), tuple(sorted(first))}) == 3


@pytest.mark.thorough
def test_very_many_values_are_joined_and_no_row_is_doubled() -> None:
    rows = [("zip", "value", f"{code:05}", f"{code // 100:03}**") for code in range(3000)]
    plan = plan_table(["zip"], [*rows, ("zip", "rest", None, "*")])
    query = duckanon.render(plan)
    assert query.count("CASE") == 1
    assert "LEFT JOIN" in query
    with duckdb.connect() as con:
        con.execute(
            "CREATE TABLE patients AS SELECT lpad(i::VARCHAR, 5, '0') AS zip FROM range(4000) AS r(i)"
        ).fetchall()
        found = con.execute(f"SELECT zip, count(*) FROM ({query}) GROUP BY zip").fetchall()
    assert dict(found) == {f"{code:03}**": 100 for code in range(30)} | {"*": 1000}


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_sql_says_whether_it_was_ever_executed(dialect: str) -> None:
    comment = duckanon.render(SEXES, dialect).splitlines()[0]
    assert comment.startswith("-- duckanon.render: a plan of 1 column")
    assert ("rendered, not executed" in comment) == (dialect not in ("duckdb", "postgres", "spark", "sqlite"))


def column_plan(covers: str, *lowers: str | None) -> pa.Table:
    return plan_table(["x"], [("x", covers, lower, f"l{place}") for place, lower in enumerate(lowers)])


@pytest.mark.parametrize(
    ("plan", "options", "sentence"),
    [
        (SEXES, {"dialect": "oracle"}, "dialect must be one of 'duckdb', 'postgres', .*; got 'oracle'."),
        (SEXES, {"k": 1}, "k must be NULL or a whole number of at least 2; got 1."),
        (SEXES, {"table": "patients; DROP TABLE x"}, "table must be the name of a table .*"),
        (SEXES, {"table": "a JOIN b ON true"}, "table must be the name of a table .*"),
        (SEXES, {"table": ""}, "table must be the name of a table .*"),
        (SEXES, {"keep": ["*"]}, "keep must name the columns one by one; got \\*."),
        (SEXES, {"keep": ["Sex"]}, 'keep must not name a column of the plan; got "Sex".'),
        (SEXES, {"keep": "id"}, "keep must be a list of column names such as .*; got 'id'."),
        (SEXES, {"keep": ["_duckanon_people"]}, "keep must not name a column that begins with _duckanon_; .*"),
        (SEXES, {"person": "who"}, "person must be None where no k is asked for; .*"),
        (SEXES, {"types": "INTEGER"}, "types must be a pyarrow.Schema or a dictionary such as .*"),
        (column_plan("value", "true", "false"), {"dialect": "sqlite"}, 'column "x" holds .* booleans, .* sqlite .*'),
        (column_plan("value", "1.5", "2.0"), {"dialect": "sqlite"}, 'column "x" holds .* floating-point .* sqlite .*'),
        (column_plan("value", "1.5", "2.0"), {"dialect": "postgres"}, 'column "x" .* floating-point .* postgres .*'),
        (column_plan("value", "1"), {"dialect": "sqlite", "types": {"X": "DOUBLE"}}, 'column "x" .* floating-point .*'),
        (column_plan("number", "1"), {"types": {"x": "BOOLEAN"}}, 'column "x" must hold numbers, .*'),
        (column_plan("number", "1"), {"dialect": "postgres", "types": {"x": "VARCHAR"}}, 'column "x" is text .*'),
        (column_plan("time", "1999-01-01"), {"types": {"x": "VARCHAR"}}, 'column "x" must hold dates .*'),
        (column_plan("number", "1", "one"), {}, 'plan must say by numbers where the buckets of column "x" begin; .*'),
        (column_plan("number", None, None), {}, 'plan must say by numbers where the buckets of column "x" begin; .*'),
        (column_plan("number", "1", "1.0"), {}, 'plan must have one bucket that begins at a place; column "x" has .*'),
        (column_plan("value", "a", "a"), {}, 'plan must have one label for a value; column "x" has two.'),
        (column_plan("shape", "a"), {}, 'plan must cover column "x" by one of number, time, value or prefix; .*'),
        (SEXES.drop_columns(["released"]), {}, "plan must have a column released, a STRUCT of its columns; .*"),
        (SEXES.drop_columns(["covers"]), {}, "plan must be a table as anon.plan makes it; got one without .* covers."),
        (SEXES.slice(0, 0), {}, "plan must have rows; got none: make one with anon.plan."),
        (
            "nowhere.parquet",
            {},
            "plan must be a table or the path of a Parquet file; there is no file nowhere.parquet.",
        ),
        (7, {}, "plan must be an Arrow table or the path of a Parquet file; got a int."),
    ],
)
def test_what_cannot_be_rendered_is_refused_with_a_sentence(plan: Any, options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match=f"^{sentence}$"):
        duckanon.render(plan, **options)


def test_a_type_that_is_said_ends_the_doubt() -> None:
    query = duckanon.render(column_plan("value", "true", "false"), "sqlite", types={"x": "VARCHAR"})
    assert "'true'" in query
    schema = pa.schema([("x", pa.decimal128(4, 1))])
    assert '"x" = 1.5' in duckanon.render(column_plan("value", "1.5", "2.0"), "postgres", types=schema)


def test_times_with_a_zone_are_compared_in_utc() -> None:
    """As anon.apply_plan compares them, whatever the session's time zone is."""
    plan = column_plan("time", None, "2024-01-01 00:00:00")
    query = duckanon.render(plan, types={"x": "TIMESTAMP WITH TIME ZONE"})
    with duckdb.connect() as con:
        con.execute("SET TimeZone = 'Pacific/Kiritimati'").fetchall()
        con.execute("CREATE TABLE patients AS SELECT '2023-12-31 23:00:00+00'::TIMESTAMPTZ AS x").fetchall()
        assert con.execute(query).fetchall() == [("l0",)]


def test_the_command_prints_what_the_function_returns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    pq.write_table(SEXES, "plan.parquet")
    asked = [
        "render",
        "plan.parquet",
        "--dialect",
        "bigquery",
        "--table",
        "c.t",
        "--k",
        "5",
        "--keep",
        "a",
        "--keep",
        "b",
    ]
    assert main(asked) == 0
    assert capsys.readouterr().out == duckanon.render("plan.parquet", "bigquery", "c.t", 5, ["a", "b"])
    assert main(["render", "plan.parquet", "--dialect", "db3"]) == 1
    assert capsys.readouterr().err.startswith("duckanon render: dialect must be one of 'duckdb', ")
    assert main(["render", "plan.parquet", "--dialect", "sqlite", "--type", "sex"]) == 1
    assert capsys.readouterr().err == "duckanon render: --type must be COLUMN=TYPE such as smoker=VARCHAR; got sex.\n"


def test_duckanon_is_imported_without_sqlglot() -> None:
    code = "import sys, duckanon; sys.exit('sqlglot' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_reference_says_of_every_dialect_whether_it_is_executed() -> None:
    page = (Path(duckanon.__file__).parent / "_render" / "README.md").read_text(encoding="utf-8")
    said = {}
    for names, state in re.findall(r"^\| (`\w+`(?:, `\w+`)*) \| (executed|rendered, not executed)", page, re.MULTILINE):
        said |= dict.fromkeys(re.findall(r"\w+", names), state == "executed")
    assert said == {name: dialect.is_executed for name, dialect in DIALECTS.items()}
