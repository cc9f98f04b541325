"""Registration: fills the catalog ``anon`` of a database with every macro and every function.

It works on any `engine.Connection` and imports neither DuckDB's client nor the libraries of algorithms: a database is
registered from the prepared catalog, and a function is imported when it is first called.

The prepared catalog: all macros as DuckDB has parsed them, in a file that registering copies.

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
import itertools
import os
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable
from pathlib import Path

from duckanon._bridge.engine import Connection, Engine, LateFunction, kind_of, late_functions
from duckanon._bridge.waiting import WAITING

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
        cursor.execute(f"ATTACH '{_quote_path(path)}' AS {_ALIAS} (READ_ONLY)").fetchall()
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
            con.execute(f"ATTACH '{_quote_path(written)}' AS anon (STORAGE_VERSION 'latest')").fetchall()
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


def _quote_path(path: Path) -> str:
    return str(path).replace("'", "''")


_DATABASES = itertools.count(1)
"""The numbers by which registered databases are told apart."""

_REGISTERING = threading.Lock()
"""Threads that register the same database at the same time wait for each other."""

ATTACH = "ATTACH IF NOT EXISTS ':memory:' AS anon (READ_WRITE);"


def register_database(con: Connection, engine: Engine, caller: str) -> None:
    """Load every macro and function into the database of a connection; doing it again is harmless.

    A cursor of its own does the work, so that a result which the connection has not finished reading stays. Errors name
    the caller.
    """
    with _REGISTERING:
        cursor = con.cursor()
        try:
            _register(cursor, engine)
        except RefusedError as error:
            raise ValueError(f"{caller}: {error}") from error.__cause__
        finally:
            cursor.close()


class RefusedError(ValueError):
    """The database cannot be registered; the sentence lacks the caller's name."""


def _register(cursor: Connection, engine: Engine) -> None:
    is_attached = _is_attached(cursor)
    _refuse_schema(cursor)
    cursor.execute(ATTACH).fetchall()
    if is_attached:
        if _is_registered(cursor):
            return
        _refuse_objects(cursor)
    if not copy_catalog(cursor, engine, _create_functions, _create_all):
        _create_all(cursor, engine)
    cursor.execute(database_macro(next(_DATABASES))).fetchall()  # comes last: _is_registered asks for it


def database_macro(number: int) -> str:
    """Return the macro that knows the number of a database."""
    return f"CREATE OR REPLACE MACRO anon._database() AS {number};\n"


def _is_attached(cursor: Connection) -> bool:
    """Tell whether there is a catalog called anon; refuse to write into a user's own database of that name."""
    attached = cursor.execute("SELECT path FROM system.main.duckdb_databases() WHERE database_name = 'anon'").fetchall()
    for (path,) in attached:
        if path is not None:
            raise RefusedError(
                f"the name anon is taken by the database file {path}; "
                f"attach that file under another name (ATTACH '{path}' AS other_name)."
            )
    return bool(attached)


def _refuse_schema(cursor: Connection) -> None:
    """Refuse a database with a schema called anon: to DuckDB, anon.swap could then mean either."""
    schemas = cursor.execute(
        "SELECT database_name, schema_name FROM system.main.duckdb_schemas() "
        "WHERE system.main.lower(schema_name) = 'anon' AND database_name = system.main.current_database()"
    )
    for database, schema in schemas.fetchall():
        raise RefusedError(
            f"the database {database} has a schema called {schema}, so that anon.swap could mean "
            f"either; move its tables to a schema of another name and drop it (DROP SCHEMA {schema})."
        )


def _refuse_objects(cursor: Connection) -> None:
    """Refuse a user's own database in memory that is called anon and has something in it, which might be replaced."""
    objects = {
        name
        for (name,) in cursor.execute(
            "SELECT table_name FROM system.main.duckdb_tables() WHERE database_name = 'anon' UNION ALL "
            "SELECT view_name FROM system.main.duckdb_views() WHERE database_name = 'anon' AND NOT internal UNION ALL "
            "SELECT function_name FROM system.main.duckdb_functions() WHERE database_name = 'anon' AND NOT internal"
        ).fetchall()
    }
    if objects and "_signatures" not in objects:  # which the script of `duckanon sql` leaves
        raise RefusedError(
            f"the name anon is taken by a database in memory that holds {min(objects)}; "
            f"attach it under another name (ATTACH ':memory:' AS other_name) and move what is in it there."
        )


def _create_all(cursor: Connection, engine: Engine) -> list[LateFunction]:
    """Create functions and macros in the catalog ``anon``, and return the functions."""
    functions = late_functions()
    _create_functions(cursor, engine, functions)
    _create_macros(cursor, engine)
    return functions


def _create_functions(cursor: Connection, engine: Engine, functions: Iterable[LateFunction]) -> None:
    for function in functions:
        try:
            cursor.create_function(
                function.name,
                function.function,
                None,
                engine.type_of(cursor, function.sql_type),
                type="arrow",
                null_handling="special",
                side_effects=not function.is_constant,
            )
        except Exception as error:
            if kind_of(error) not in ("catalog", "not implemented"):  # it is there, from a time when the macros failed
                raise


def _create_macros(cursor: Connection, engine: Engine) -> None:
    """Create all macros, or none where one fails or the user interrupts."""
    from duckanon._bridge.macros import script  # which reads all of them

    _divide_exactly(cursor)
    statements = engine.parsed(script(0))
    cursor.execute("BEGIN").fetchall()
    try:
        for statement in statements:
            cursor.execute(statement).fetchall()
        cursor.execute("COMMIT").fetchall()
    except BaseException:
        cursor.execute("ROLLBACK").fetchall()
        raise


def _divide_exactly(cursor: Connection) -> None:
    """Let a slash mean division while the macros are parsed: with integer_division, every risk would be 0."""
    if cursor.execute("SELECT system.main.current_setting('integer_division')").fetchall() == [(True,)]:
        try:
            cursor.execute("SET SESSION integer_division = false").fetchall()
        except Exception as error:
            if kind_of(error) != "invalid input":
                raise
            raise RefusedError(
                "integer_division must be off, and the configuration is locked; register first."
            ) from error


def _is_registered(cursor: Connection) -> bool:
    """Tell whether the database has its number, which comes after all the rest."""
    try:
        return cursor.execute("SELECT anon._database()").fetchall() != [(0,)]
    except Exception as error:
        if kind_of(error) != "catalog":
            raise
        return False


def _begin_anew_after_fork() -> None:
    """Give a forked process locks of its own: the threads that held the old ones are not in it, and never let go."""
    global _REGISTERING
    _REGISTERING = threading.Lock()
    WAITING.forget_all()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_anew_after_fork)
