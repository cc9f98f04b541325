"""Refusals do not depend on the columns that one asks for: DuckDB leaves out what nobody reads, errors included."""

from __future__ import annotations

import re
from pathlib import Path

import duckdb
import pytest

from duckanon._core.common.arguments import sentence_of
from duckanon._core.common.labels import Numbers
from duckanon._methods.intervals import regions
from tests.sqltest import ROOT, each_test_file, parse

SLOW = {"assess", "known_events", "quasi_identifier", "quasi_identifiers"}
QUICK = {path.stem for path in (ROOT / "tests" / "assess").glob("*.test")} - SLOW
"""Those that are quick; all others are for the thorough run."""

WHOLE_TABLE = re.compile(r"(?:WITH\b.*\)\s*)?FROM anon\.\w+\([^;]*;?", re.DOTALL)
"""A statement that asks a function for all its columns."""


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


def test_what_a_library_says_of_a_value_is_not_repeated() -> None:
    """Our own sentences are; of a builtin, which leaves no frame of its own in our code, only the place is."""
    with pytest.raises(ValueError, match="Anna") as of_builtin:
        Numbers(is_whole=True).text("Anna")  # type: ignore[arg-type]
    assert re.fullmatch(
        r"it failed unexpectedly \(ValueError in labels\.py, line \d+\)\.", sentence_of(of_builtin.value)
    )
    with pytest.raises(ValueError, match="condition") as ours:
        regions.parse_condition("")
    assert sentence_of(ours.value) == str(ours.value)
