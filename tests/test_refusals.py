"""Refusals do not depend on the columns that one asks for: DuckDB leaves out what nobody reads, errors included."""

from __future__ import annotations

import re
from pathlib import Path

import duckdb
import pytest

from tests.sqltest import ROOT, each_test_file, parse

QUICK = {path.stem for path in (ROOT / "tests" / "assess").glob("*.test")} - {"quasi_identifiers", "assess"}
"""Those that are quick; all others are for the thorough run."""

WHOLE_TABLE = re.compile(r"(?:WITH\b.*\)\s*)?FROM anon\.\w+\([^;]*;?", re.DOTALL)
"""A statement that asks a function for all its columns."""


@pytest.mark.rotating
@pytest.mark.parametrize("path", each_test_file(QUICK))
def test_every_single_column_of_a_refused_call_is_refused(path: Path, con: duckdb.DuckDBPyConnection) -> None:
    """All failing calls of the `.test` files, with one of their columns at a time."""
    answered = []
    for record in parse(path)[0]:
        if record.kind == "ok":
            con.execute(record.sql).fetchall()
        if record.kind != "error" or not WHOLE_TABLE.fullmatch(record.sql.strip()):
            continue
        call = record.sql.strip().rstrip(";")
        for column in columns(con, call):
            try:
                con.execute(f"SELECT {column} FROM ({call})").fetchall()
                answered.append(f"{path.name}:{record.line}: {column}")
            except duckdb.Error:
                continue
    assert answered == []


def columns(con: duckdb.DuckDBPyConnection, call: str) -> list[str]:
    """The columns of a call, quoted; none where it is refused before they are known, whichever are asked for."""
    try:
        described = con.execute(f"DESCRIBE {call}").fetchall()
    except duckdb.Error:
        return []
    return ['"' + name.replace('"', '""') + '"' for name, *_ in described]
