"""The script of ``duckanon sql``: what needs Python says so where there is none."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

import duckanon
from duckanon._bridge import macros
from tests.extension.shells import stock_shell

NEEDING_PYTHON = [file for file in macros.macro_files() if file.is_public and file.needs_python]


@pytest.fixture(scope="module")
def stock() -> Iterator[duckdb.DuckDBPyConnection]:
    """Open a database that knows duckanon's script and nothing of Python."""
    connection = duckdb.connect()
    connection.execute(macros.script()).fetchall()
    yield connection
    connection.close()


def call(file: macros.MacroFile) -> str:
    """Write a call with as little as the function can be given."""
    needed = [parameter for parameter in file.parameters.split(", ") if ":=" not in parameter]
    return f"anon.{file.name}({', '.join(['NULL'] * len(needed))})"


@pytest.mark.parametrize("file", NEEDING_PYTHON, ids=lambda file: file.name)
def test_a_function_that_needs_python_says_so(stock: duckdb.DuckDBPyConnection, file: macros.MacroFile) -> None:
    queries = [f"SELECT {call(file)}"]
    if file.is_table:
        queries = [f"FROM {call(file)}", f"SELECT count(*) FROM {call(file)}", f"SELECT age FROM {call(file)}"]
    for query in queries:
        with pytest.raises(duckdb.InvalidInputException) as raised:
            stock.execute(query).fetchall()
        said = str(raised.value).removeprefix("Invalid Input Error: ").partition("\n")[0]
        assert said == (
            f"anon.{file.name}: it needs Python, which is not available here; "
            f"call it in `duckanon shell`, or in Python after `duckanon.register(con)`."
        )


def test_only_what_works_is_listed(stock: duckdb.DuckDBPyConnection) -> None:
    names = {name for (name,) in stock.execute("SELECT name FROM anon.functions()").fetchall()}
    assert "anon.k_anonymity" in names
    assert names.isdisjoint(f"anon.{file.name}" for file in NEEDING_PYTHON)


@pytest.mark.thorough
def test_registering_later_makes_them_work() -> None:
    con = duckdb.connect()
    con.execute(macros.script()).fetchall()
    duckanon.register(con)
    con.execute("CREATE TABLE t AS SELECT 7 AS i").fetchall()
    assert con.execute("FROM anon.swap('t', ['i'])").fetchall() == [(7,)]
    assert con.execute("SELECT len(anon.box_halfwidths([1, 2], 1, 3))").fetchall() == [(2,)]
    con.close()


@pytest.mark.shell
def test_the_stock_shell_says_so_in_one_sentence(tmp_path: Path) -> None:
    binary = stock_shell()
    script = tmp_path / "duckanon.sql"
    script.write_text(macros.script(), encoding="utf-8")
    command = [str(binary), "-init", str(script), "-c", "SELECT age FROM anon.pica('patients', ['age'], seed := 1)"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "anon.pica: it needs Python, which is not available here; call it in `duckanon shell`" in done.stderr
