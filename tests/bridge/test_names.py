"""What a user has called macros, tables and schemas does not reach inside the functions of ``anon``."""

from __future__ import annotations

import functools
import itertools
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pytest

import duckanon
from duckanon._bridge import macros
from duckanon._bridge.qualified import qualify
from tests.sqltest import PythonEngine, check, each_test_file, parse

QUICK = {"l_diversity", "swap"}
"""The `.test` files that are run on every change; all others are for the thorough run."""

OF_GRAMMAR = {"row", "list_value", "struct_pack", "list_filter", "map", "to_days", "to_hours"}
"""What lists, structs, maps, intervals and COLUMNS(lambda ...) call: a `.test` file cannot do without."""

REFUSED_BY_DUCKDB = {"struct_extract"}
"""What fields and subscripts call, x.y and x[1]: where it is a macro, DuckDB says so and runs nothing."""

HARMLESS_MACROS = {"nullif"}
"""DuckDB's own macros that call no function by its name."""


def bodies() -> Iterator[tuple[str, str]]:
    """Return the query of each macro as it is registered, by the macro's name."""
    for file in macros.macro_files():
        code = re.sub(r"(?m)^\s*--.*$", "", file.immune_sql)
        head = re.search(r"CREATE OR REPLACE MACRO anon\.\w+\((.*?)\) AS\b(\s+TABLE\b)?", code, re.DOTALL)
        assert head is not None
        body = re.split(r";\s*(?:$|\nCOMMENT ON)", code[head.end() :])[0]
        yield file.name, body if head[2] else f"SELECT ({body}\n)"


def calls(node: Any) -> Iterator[dict[str, Any]]:
    """Find all calls of functions in a query that DuckDB has parsed."""
    if isinstance(node, dict):
        if node.get("class") in ("FUNCTION", "WINDOW") and not node.get("is_operator"):
            yield node
        if node.get("class") == "LAMBDA":  # its names come as a row, which is none
            node = node | {"lhs": None}
        node = list(node.values())
    if isinstance(node, list):
        for member in node:
            yield from calls(member)


@functools.cache
def parsed_calls() -> list[tuple[str, dict[str, Any]]]:
    """Return the calls of all macros, each with the macro's name."""
    con = duckdb.connect()
    found = []
    for name, body in bodies():
        (serialized,) = con.execute("SELECT json_serialize_sql($1::VARCHAR)", [body]).fetchall()
        statement = json.loads(serialized[0])
        assert not statement["error"], (name, statement)
        found += [(name, call) for call in calls(statement)]
    return found


def builtins() -> set[str]:
    return {call["function_name"] for _, call in parsed_calls() if call["schema"] != "anon"}


@pytest.mark.thorough
def test_every_call_says_whose_function_it_is() -> None:
    """DuckDB's parser finds the calls: what the text of a macro hides (lists, structs, choices of columns) as well."""
    unqualified = {
        (name, call["function_name"])
        for name, call in parsed_calls()
        if call["schema"] != "anon" and (call["catalog"], call["schema"]) != ("system", "main")
    }
    assert unqualified == set()
    assert len(builtins()) > 100


@pytest.mark.thorough
def test_no_macro_of_duckdb_is_called() -> None:
    """Their bodies look names up along the user's path, whatever ours do."""
    own = duckdb.sql(
        "SELECT DISTINCT function_name FROM duckdb_functions() WHERE function_type LIKE '%macro'"
    ).fetchall()
    assert builtins() & {name for (name,) in own} <= HARMLESS_MACROS


def hostile_macros(con: duckdb.DuckDBPyConnection, names: set[str]) -> None:
    """Call a macro like each of DuckDB's functions, whatever arguments it takes."""
    variants = ["(" + ", ".join("abcdef"[:count]) + ")" for count in range(7)]
    for name in sorted(names):
        con.execute(f'CREATE MACRO "{name}"' + ", ".join(f"{variant} AS 99" for variant in variants)).fetchall()
        con.execute(
            f'CREATE MACRO "{name}"' + ", ".join(f"{variant} AS TABLE (SELECT 99 AS x)" for variant in variants)
        ).fetchall()


@pytest.fixture(scope="module")
def hostile() -> Iterator[duckdb.DuckDBPyConnection]:
    """Open a database in which nearly every function that we call is a user's macro."""
    connection = duckanon.connect()
    hostile_macros(connection, builtins() - OF_GRAMMAR - REFUSED_BY_DUCKDB)
    yield connection
    connection.close()


numbers = itertools.count()


@pytest.mark.parametrize("path", each_test_file(QUICK))
def test_macros_of_a_user_do_not_take_the_place_of_builtins(path: Path, hostile: duckdb.DuckDBPyConnection) -> None:
    """The file's own queries name DuckDB's functions as we do."""
    cursor, schema = hostile.cursor(), f"schema_{next(numbers)}"
    cursor.execute(f"CREATE SCHEMA {schema}; SET search_path = '{schema},main'").fetchall()
    called = "|".join(sorted(builtins() - OF_GRAMMAR))
    records = [
        replace(record, sql=re.sub(rf"(?<![\w.'])({called})\(", r"system.main.\1(", record.sql))
        for record in parse(path)[0]
    ]
    check(path, records, PythonEngine(cursor).run(records))
    cursor.close()


def test_a_database_with_macros_of_a_user_can_be_registered() -> None:
    """Python asks DuckDB itself about databases, schemas, tables and settings."""
    asked = {"databases", "schemas", "tables", "views"}
    with duckdb.connect() as con:
        hostile_macros(con, {f"duckdb_{name}" for name in asked} | {"current_setting", "current_database", "lower"})
        duckanon.register(con)
        con.execute("CREATE TABLE people AS FROM (VALUES (1), (1)) AS t(age)").fetchall()
        assert con.execute("SELECT k FROM anon.k_anonymity('people', ['age'])").fetchall() == [(2,)]


@pytest.mark.thorough
def test_lists_and_structs_are_duckdbs_own(own_con: duckdb.DuckDBPyConnection) -> None:
    """Where the user's macros are called like the functions behind [...] and {...}, the arguments name DuckDB's."""
    own_con.execute("CREATE TABLE people AS SELECT i % 4 AS age, i % 3 AS sex, i AS income FROM range(48) AS t(i)")
    own_con.execute("CREATE VIEW released AS SELECT age, sex FROM people")
    queries = [
        "SELECT k FROM anon.k_anonymity('people', ['age', 'sex'])",
        "SELECT l FROM anon.l_diversity('people', ['age'], 'sex')",
        "SELECT age, sex FROM anon.swap('people', ['age', 'sex'], seed := 3) ORDER BY ALL",
        "SELECT age, sex FROM anon.generalize('people', ['age', 'sex'], 2, keep := ['income'],"
        " narrowing := ['income']) ORDER BY ALL",
        "SELECT column_name, role FROM anon.assess('people')",
        "FROM anon.compare_releases('people', {'same': 'released'}, ['age', 'sex'], seed := 1)",
        "SELECT * FROM anon.generalization_loss('people', 'released', ['age'])",
    ]
    before = [own_con.execute(query).fetchall() for query in queries]
    hostile_macros(own_con, OF_GRAMMAR)
    assert [own_con.execute(qualify(query)).fetchall() for query in queries] == before


@pytest.mark.thorough
def test_setseed_makes_no_release_repeatable(own_con: duckdb.DuckDBPyConnection) -> None:
    own_con.execute("CREATE TABLE people AS SELECT i % 2 AS sex, i AS id FROM range(200) AS t(i)").fetchall()
    for query in (
        "SELECT id FROM anon.generalize('people', ['sex'], 3, keep := ['id'], narrowing := ['id'])",
        "SELECT id FROM anon.split_reference('people') WHERE is_reference ORDER BY id",
        "SELECT lower FROM anon.sampled_partition('people', 'id', 5, sample_rows := 50)",
    ):
        drawn = []
        for _ in range(3):
            own_con.execute("SELECT setseed(0.25)").fetchall()
            drawn.append(own_con.execute(query).fetchall())
        assert drawn[0] != drawn[1] or drawn[0] != drawn[2]


def test_a_macro_called_struct_pack_does_not_stop_us(con: duckdb.DuckDBPyConnection) -> None:
    """DuckDB calls it for whole rows: no step of ours hands on a row by the name of its table."""
    con.execute("CREATE TABLE people AS SELECT i % 5 AS n, 'z' || i % 3 AS zip FROM range(60) AS r(i)").fetchall()
    con.execute("CREATE TABLE zips AS SELECT DISTINCT zip, '*' AS all_of_them FROM people").fetchall()
    con.execute("CREATE MACRO struct_pack(x) AS 1").fetchall()
    for call in ("plan('people', ['n', 'zip'], 5", "recode('people', ['n', 'zip'], 5"):
        rows = con.execute(f"FROM anon.{call}, hierarchies := MAP {{'zip': 'zips'}})").fetchall()
        assert rows
