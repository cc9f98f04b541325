"""The `.test` files: SQL in, rows out, in the form that DuckDB's own tests have.

A file is a list of records separated by blank lines; lines that begin with ``#`` are comments::

    statement ok
    CREATE TABLE t AS SELECT 1 AS i;

    statement error
    FROM anon.swap('nope', ['i']);
    ----
    Table with name nope does not exist

    query IRT
    SELECT 1, 0.5, 'x';
    ----
    1	0.5	x

One letter a column: I whole number, R real number (compared to six digits), T text and everything else. Expected values
are separated by tabs; NULL is NULL. After the letters may follow ``rowsort``: the order of the rows does not count.
``require python`` on a line of its own keeps a file out of the stock shell; ``require opendp`` out of environments that
lack the module.
"""

from __future__ import annotations

import functools
import itertools
import math
import os
import subprocess
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import duckdb
import pytest

import duckanon

ROOT = Path(__file__).parent.parent


def find_data(name: str) -> Path | None:
    """Find a file of real data, in $DUCKANON_DATA or beside the project; None where it is not there."""
    folders = [os.environ.get("DUCKANON_DATA"), ROOT.parent / "shared" / "data"]
    found = (Path(folder) / name for folder in folders if folder)
    return next((path for path in found if path.exists()), None)


def data_file(name: str) -> Path:
    """Find a file of real data, or skip the test that asks for it."""
    return find_data(name) or pytest.skip(f"the data file {name} is not there")


@functools.cache
def registered() -> duckdb.DuckDBPyConnection:
    """Return the one database of this process in which everything is registered, which takes a second."""
    return duckanon.connect()


schema_numbers = itertools.count()


@contextmanager
def empty_schema(database: Callable[[], duckdb.DuckDBPyConnection] = registered) -> Iterator[duckdb.DuckDBPyConnection]:
    """Connect to a database that many tests share, in a schema of one's own.

    Tables, views and macros go with the schema; temporary tables, registered objects and settings with the connection.
    """
    schema = f"schema_of_test_{next(schema_numbers)}"
    connection = database().cursor()
    connection.execute(f"CREATE SCHEMA {schema}; USE {schema}").fetchall()
    try:
        yield connection
    finally:
        connection.close()
        database().execute(f"DROP SCHEMA {schema} CASCADE").fetchall()


@dataclass(frozen=True)
class Record:
    line: int
    kind: str  # "ok", "error" or "query"
    sql: str
    types: str = ""
    rowsort: bool = False
    expected: tuple[str, ...] = ()


@dataclass(frozen=True)
class Outcome:
    rows: tuple[tuple[str, ...], ...] = ()
    error: str | None = None


class Engine(Protocol):
    def run(self, records: Sequence[Record]) -> list[Outcome]: ...


class MismatchError(AssertionError):
    pass


def parse(path: Path) -> tuple[list[Record], set[str]]:
    """Read a file: its records and what it requires."""
    records, requirements = [], set()
    lines = path.read_text(encoding="utf-8").splitlines()
    paragraphs: list[tuple[int, list[str]]] = []
    for number, line in enumerate(lines, 1):
        if line.startswith("#"):
            continue
        if not line.strip():
            paragraphs.append((number + 1, []))
        elif paragraphs and paragraphs[-1][1]:
            paragraphs[-1][1].append(line)
        else:
            paragraphs.append((number, [line]))
    for number, paragraph in paragraphs:
        if not paragraph:
            continue
        head, *body = paragraph
        cut = body.index("----") if "----" in body else len(body)
        sql, expected = "\n".join(body[:cut]), tuple(body[cut + 1 :])
        match head.split():
            case ["require", *what]:
                requirements.add(" ".join(what))
            case ["statement", ("ok" | "error") as kind]:
                records.append(Record(number, kind, sql, expected=expected))
            case ["query", types, *rest] if set(types) <= set("IRT") and rest in ([], ["rowsort"]):
                records.append(Record(number, "query", sql, types, bool(rest), expected))
            case _:
                raise MismatchError(f"{path.name}:{number}: not a record: {head}")
    return records, requirements


def each_test_file(quick: Collection[str]) -> list[Any]:
    """Return `.test` files as a test's parameter: the quick ones, and the others for the thorough run."""
    paths = sorted(ROOT.glob("tests/*/*.test"))
    return [
        pytest.param(path, id=path.stem, marks=() if path.stem in quick else pytest.mark.thorough) for path in paths
    ]


def check(path: Path, records: Sequence[Record], outcomes: Sequence[Outcome]) -> None:
    """Compare what came with what was expected; raise a `MismatchError` that shows both."""
    for record, outcome in zip(records, outcomes, strict=True):
        where = f"{path.name}:{record.line}: {' '.join(record.sql.split())[:200]}"
        if record.kind == "error":
            if outcome.error is None:
                raise MismatchError(f"{where}\nshould have failed")
            for text in record.expected:
                if text not in outcome.error:
                    raise MismatchError(f"{where}\nexpected error: {text}\ngot:            {outcome.error}")
            continue
        if outcome.error is not None:
            raise MismatchError(f"{where}\nfailed: {outcome.error}")
        if record.kind == "query":
            _check_rows(where, record, outcome.rows)


def _check_rows(where: str, record: Record, rows: Sequence[tuple[str, ...]]) -> None:
    expected = [tuple(line.split("\t")) for line in record.expected]
    got = list(rows)
    if record.rowsort:
        expected, got = sorted(expected), sorted(got)
    same = len(expected) == len(got) and all(
        len(wanted) == len(have) == len(record.types) and all(map(_same, record.types, wanted, have))
        for wanted, have in zip(expected, got, strict=True)
    )
    if not same:
        show = "\n".join("\t".join(row) for row in got)
        wanted = "\n".join("\t".join(row) for row in expected)
        raise MismatchError(f"{where}\nexpected:\n{wanted}\ngot:\n{show}")


def _same(letter: str, expected: str, got: str) -> bool:
    if letter != "R" or "NULL" in (expected, got):
        return expected == got
    return math.isclose(float(expected), float(got), rel_tol=1e-6, abs_tol=1e-12)


class PythonEngine:
    """Runs records on a registered connection of the Python client."""

    def __init__(self, con: duckdb.DuckDBPyConnection) -> None:
        self._con = con

    def run(self, records: Sequence[Record]) -> list[Outcome]:
        return [self._run(record) for record in records]

    def _run(self, record: Record) -> Outcome:
        try:
            if record.kind != "query":
                self._con.execute(record.sql).fetchall()
                return Outcome()
            # One statement is bound once, where a relation and its projection are bound one after the other.
            query = record.sql.rstrip().rstrip(";")
            rows = self._con.execute(f"SELECT CAST(COLUMNS(*) AS VARCHAR) FROM ({query}\n)").fetchall()
        except duckdb.Error as error:
            return Outcome(error=str(error))
        return Outcome(tuple(tuple("NULL" if value is None else value for value in row) for row in rows))


class ShellEngine:
    """Runs records in the unmodified DuckDB shell, after a script: that of `duckanon sql`, or LOAD of the extension."""

    MARK = "@@record"

    def __init__(self, binary: Path, init_script: Path, *options: str) -> None:
        # its output goes to a pipe: line by line, so that results and errors come in the order of the statements
        self._command = ["stdbuf", "-oL", str(binary), "-init", str(init_script), "-list", *options]

    def run(self, records: Sequence[Record]) -> list[Outcome]:
        script = ['.separator "\\t" "\\n"', ".nullvalue NULL", ".headers off"]
        for record in records:
            script += [f".print {self.MARK}", record.sql.rstrip().rstrip(";") + ";"]
        done = subprocess.run(
            self._command,
            input="\n".join(script) + "\n",
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=300,
        )
        outputs = done.stdout.split(self.MARK + "\n")[1:]
        assert len(outputs) == len(records), done.stdout
        return [self._outcome(record, output) for record, output in zip(records, outputs, strict=True)]

    @staticmethod
    def _outcome(record: Record, output: str) -> Outcome:
        if "Error:" in output and record.kind != "query":
            return Outcome(error=output)
        if " Error: " in output.split("\n", 1)[0]:
            return Outcome(error=output)
        return Outcome(tuple(tuple(line.split("\t")) for line in output.splitlines()))
