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
from collections.abc import Callable
from pathlib import Path

import duckdb

from duckanon._bridge.macros import sql_folder

_ALIAS = "_duckanon_prepared"


def copy_macros(cursor: duckdb.DuckDBPyConnection, create: Callable[[duckdb.DuckDBPyConnection], None]) -> bool:
    """Copy all macros into the catalog ``anon`` of a connection.

    Parameters
    ----------
    cursor
        A connection whose catalog ``anon`` is empty, with the Python functions registered.
    create
        Creates functions and macros in the empty catalog ``anon`` of another connection, where no file is at hand.

    Returns
    -------
    bool
        Whether it was possible; if not, nothing has changed.
    """
    try:
        path = _path()
        if not path.exists() and not _write(path, create):
            return False
    except (OSError, duckdb.IOException):  # no folder, no room, no right to write
        return False
    try:
        cursor.execute(f"ATTACH '{_quoted(path)}' AS {_ALIAS} (READ_ONLY)").fetchall()
    except duckdb.PermissionException:  # this database may not open files
        return False
    except duckdb.Error:  # it is damaged: the next process writes it anew
        with contextlib.suppress(OSError):
            path.unlink()
        return False
    try:
        cursor.execute(f"COPY FROM DATABASE {_ALIAS} TO anon").fetchall()
    except duckdb.InterruptException:
        raise
    except duckdb.Error:
        return False
    finally:
        cursor.execute(f"DETACH {_ALIAS}").fetchall()
    return True


@functools.cache
def _path() -> Path:
    """Name the file for this version of DuckDB and these macros, as they were last changed."""
    package = Path(__file__).parent.parent
    sources = [*sql_folder().glob("*/*.sql"), *package.glob("**/declared.py"), *package.glob("_core/common/*.py")]
    sources = sorted([*sources, *Path(__file__).parent.glob("*.py")])
    states = [(str(source), source.stat().st_mtime_ns, source.stat().st_size) for source in sources]
    key = hashlib.sha256(repr(states).encode()).hexdigest()[:16]
    folder = Path(importlib.util.cache_from_source(__file__)).parent
    return folder / f"catalog.duckdb-{duckdb.__version__}.{key}"


def _write(path: Path, create: Callable[[duckdb.DuckDBPyConnection], None]) -> bool:
    """Write the file under a name of its own and rename it; files of earlier macros go."""
    if sys.dont_write_bytecode:
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent, ignore_cleanup_errors=True) as folder:
        written = Path(folder, "catalog")
        with duckdb.connect() as con:
            con.execute(f"ATTACH '{_quoted(written)}' AS anon (STORAGE_VERSION 'latest')").fetchall()
            create(con)
            con.execute("DETACH anon").fetchall()
        os.replace(written, path)
    for old in path.parent.glob(f"{path.stem}.*"):
        if old != path:
            with contextlib.suppress(OSError):  # another process has it open, or was quicker
                old.unlink()
    return True


def _quoted(path: Path) -> str:
    return str(path).replace("'", "''")
