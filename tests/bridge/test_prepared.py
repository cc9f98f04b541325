"""The prepared catalog: a file that only makes registering quicker."""

from __future__ import annotations

import sys
from pathlib import Path

import duckdb
import pytest

import duckanon
from duckanon._bridge import prepared

COMMENTED = """
    SELECT function_name, function_type, parameters::VARCHAR, comment FROM duckdb_functions()
    WHERE database_name = 'anon' AND NOT internal AND function_name <> '_database' ORDER BY ALL
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Name a file that is not there yet, in a folder with a quote in its name."""
    path = tmp_path / "it's" / "catalog.duckdb-1.new"
    monkeypatch.setattr(prepared, "_path", lambda _: path)
    monkeypatch.setattr(sys, "dont_write_bytecode", False)  # whatever the environment says
    return path


def catalog_of(con: duckdb.DuckDBPyConnection) -> list[tuple]:
    """Return all macros, after one of them was called."""
    con.execute("CREATE TABLE people AS SELECT i % 3 AS age FROM range(9) AS t(i)").fetchall()
    assert con.execute("SELECT k FROM anon.k_anonymity('people', ['age'])").fetchall() == [(3,)]
    assert len(con.execute("FROM anon.swap('people', ['age'])").fetchall()) == 9
    found = con.execute(COMMENTED).fetchall()
    attached = con.execute("SELECT database_name FROM duckdb_databases() WHERE NOT internal ORDER BY ALL").fetchall()
    assert attached == [("anon",), ("memory",)]
    con.close()
    return found


@pytest.mark.rotating
def test_it_is_written_once_and_copied_with_comments(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file.parent.mkdir()
    (file.parent / "catalog.duckdb-1.old").touch()
    (file.parent / "catalog.duckdb-2.new").touch()
    first = catalog_of(duckanon.connect())
    assert sorted(path.name for path in file.parent.iterdir()) == ["catalog.duckdb-1.new", "catalog.duckdb-2.new"]
    monkeypatch.setattr(prepared, "_write", None)
    assert catalog_of(duckanon.connect()) == first
    monkeypatch.setattr(prepared, "copy_catalog", lambda *_: False)
    assert catalog_of(duckanon.connect()) == first


@pytest.mark.rotating
def test_a_file_that_cannot_be_read_is_removed(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file.parent.mkdir()
    file.write_text("no database")
    assert catalog_of(duckanon.connect())
    assert not file.exists()


@pytest.mark.rotating
def test_no_file_where_python_writes_none(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    assert catalog_of(duckanon.connect())
    assert not file.parent.exists()


@pytest.mark.rotating
def test_no_file_where_duckdb_may_open_none(file: Path) -> None:
    duckanon.connect().close()
    assert catalog_of(duckanon.register(duckdb.connect(config={"enable_external_access": False})))
    assert file.exists()
