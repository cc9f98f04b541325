"""The prepared catalog: all macros as DuckDB has parsed them, in a file that registering copies.

Reading, parsing and creating the macros takes more than a second, copying what came of it a twentieth of that. The file
lies where Python keeps the compiled modules of this package, under the same conditions: it is written by the first
process that needs it, belongs to one version of DuckDB and of the macros, and nothing depends on it. Where it cannot be
written or read, the macros are created one by one.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib.util
import os
import sys
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path

from duckanon._bridge.engine import Connection, Engine, LateFunction, kind_of

_ALIAS = "_duckanon_prepared"
_FUNCTIONS = "_python_functions"
"""The table of the functions that the macros call."""


def copy_catalog(
    cursor: Connection,
    engine: Engine,
    create_functions: Callable[[Connection, Engine, Iterable[LateFunction]], None],
    create_all: Callable[[Connection, Engine], Iterable[LateFunction]],
) -> bool:
    """Copy all functions and macros into the empty catalog ``anon`` of a connection, and tell whether it was possible.

    If not, there are no macros, and maybe functions. Where no file is at hand, `create_all` creates functions and
    macros in the catalog ``anon`` of another connection, and returns the functions.
    """
    try:
        path = _path(engine.version)
        if not path.exists() and not _write(path, engine, create_all):
            return False
    except OSError:  # no folder, no room, no right to write
        return False
    except Exception as error:
        if kind_of(error) != "io":
            raise
        return False
    try:
        cursor.execute(f"ATTACH '{_quoted(path)}' AS {_ALIAS} (READ_ONLY)").fetchall()
    except Exception as error:
        if not kind_of(error):
            raise
        if kind_of(error) != "permission":  # it is damaged, unless this database may not open files
            with contextlib.suppress(OSError):
                path.unlink()  # the next process writes it anew
        return False
    try:
        rows = cursor.execute(f"SELECT name, sql_type, is_constant FROM {_ALIAS}.{_FUNCTIONS}").fetchall()
        create_functions(cursor, engine, [LateFunction(*row) for row in rows])  # CREATE MACRO looks for them
        cursor.execute(f"COPY FROM DATABASE {_ALIAS} TO anon").fetchall()
    except Exception as error:
        if kind_of(error) in ("", "interrupt"):
            raise
        return False
    finally:
        cursor.execute(f"DETACH {_ALIAS}").fetchall()
    return True


def sql_folder() -> Path:
    """Find the folder of macros: inside the installed package, or beside it in a source tree."""
    package = Path(__file__).parent.parent
    for folder in (package / "sql", package.parent / "sql"):
        if folder.is_dir():
            return folder
    raise FileNotFoundError("duckanon: the folder sql/ with its macros is missing; install the package again.")


@functools.cache
def _path(version: str) -> Path:
    """Name the file for a version of DuckDB and these macros, as they were last changed."""
    package = Path(__file__).parent.parent
    sources = [*sql_folder().glob("*/*.sql"), *package.glob("**/declared.py"), *package.glob("_core/common/*.py")]
    sources = sorted([*sources, *Path(__file__).parent.glob("*.py")])
    states = [(str(source), source.stat().st_mtime_ns, source.stat().st_size) for source in sources]
    key = hashlib.sha256(repr(states).encode()).hexdigest()[:16]
    folder = Path(importlib.util.cache_from_source(__file__)).parent
    return folder / f"catalog.duckdb-{version}.{key}"


def _write(path: Path, engine: Engine, create_all: Callable[[Connection, Engine], Iterable[LateFunction]]) -> bool:
    """Write the file under a name of its own and rename it; files of earlier macros go."""
    if sys.dont_write_bytecode:
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent, ignore_cleanup_errors=True) as folder:
        written = Path(folder, "catalog")
        con = engine.open()
        try:
            con.execute(f"ATTACH '{_quoted(written)}' AS anon (STORAGE_VERSION 'latest')").fetchall()
            functions = create_all(con, engine)
            rows = ", ".join(f"('{one.name}', $${one.sql_type}$$, {one.is_constant})" for one in functions)
            table = f"anon.{_FUNCTIONS} AS FROM (VALUES {rows}) AS _(name, sql_type, is_constant)"
            con.execute(f"CREATE TABLE {table}").fetchall()
            con.execute("DETACH anon").fetchall()
        finally:
            con.close()
        os.replace(written, path)
    for old in path.parent.glob(f"{path.stem}.*"):
        if old != path:
            with contextlib.suppress(OSError):  # another process has it open, or was quicker
                old.unlink()
    return True


def _quoted(path: Path) -> str:
    return str(path).replace("'", "''")
