"""The prepared catalog: a file that only makes registering quicker."""

from __future__ import annotations

import sys
from pathlib import Path

import duckdb
import pytest

import duckanon
from duckanon._bridge import registration

COMMENTED = """
    SELECT function_name, function_type, parameters::VARCHAR, comment FROM duckdb_functions()
    WHERE database_name = 'anon' AND NOT internal AND function_name <> '_database' ORDER BY ALL
"""


@pytest.fixture
def file(caches: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Name the file, which is not there yet."""
    monkeypatch.setattr(sys, "dont_write_bytecode", False)  # whatever the environment says
    return registration._path(duckdb.__version__)


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


@pytest.mark.thorough
def test_it_is_written_once_and_copied_with_comments(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file.parent.mkdir(parents=True)
    of_others = file.with_name("catalog.duckdb-0.1.new")
    of_others.touch()
    file.with_suffix(".old").touch()
    first = catalog_of(duckanon.connect())
    assert set(file.parent.glob("catalog.*")) == {file, of_others}
    written = file.stat()
    assert catalog_of(duckanon.connect()) == first
    assert file.stat() == written
    file.unlink()
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    assert catalog_of(duckanon.connect()) == first
    assert not file.exists()


@pytest.mark.thorough
def test_a_file_that_cannot_be_read_is_removed(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file.parent.mkdir(parents=True)
    file.write_text("no database")
    assert catalog_of(duckanon.connect())
    assert not file.exists()


@pytest.mark.thorough
def test_no_file_where_python_writes_none(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    assert catalog_of(duckanon.connect())
    assert not list(file.parent.glob("catalog.*"))


@pytest.mark.thorough
def test_no_file_where_duckdb_may_open_none(file: Path) -> None:
    duckanon.connect().close()
    assert catalog_of(duckanon.register(duckdb.connect(config={"enable_external_access": False})))
    assert file.exists()
