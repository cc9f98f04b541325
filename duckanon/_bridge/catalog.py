"""The catalog ``anon``: registers every macro and every function in a DuckDB database."""

from __future__ import annotations

import contextlib
import functools
import inspect
import itertools
import os
import threading
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from duckanon._bridge import connections, errors, macros, prepared
from duckanon._bridge.calls import ArrowFunction
from duckanon._bridge.registry import WAITING, functions

_DATABASES = itertools.count(1)
"""The numbers by which registered databases are told apart."""

_REGISTERING = threading.Lock()
"""Threads that register the same database at the same time wait for each other."""

_TYPES: dict[str, Any] = {}
"""The types that functions return, by their text: reading it for each database took half the time of creating them."""

_ANY_ARGUMENTS = inspect.Signature([inspect.Parameter("arguments", inspect.Parameter.VAR_POSITIONAL)])


def connect(path: str | Path = ":memory:", read_only: bool = False) -> duckdb.DuckDBPyConnection:
    """Open a database with everything registered.

    Parameters
    ----------
    path
        The database file, or ``:memory:``.
    read_only
        Open the file read-only; the functions work all the same.

    Returns
    -------
    duckdb.DuckDBPyConnection
        An ordinary connection.

    Examples
    --------
    >>> import duckanon
    >>> con = duckanon.connect()
    >>> con.sql("SELECT count(*) > 0 AS found FROM anon.functions()").fetchall()
    [(True,)]
    """
    con = duckdb.connect(str(path), read_only=read_only)
    try:
        register(con)
        connections.watch(con, is_fresh=True)
    except BaseException:
        con.close()
        raise
    return con


def register(con: duckdb.DuckDBPyConnection | None = None) -> duckdb.DuckDBPyConnection:
    """Load every macro and function into the database of a connection; doing it again is harmless.

    Parameters
    ----------
    con
        Any connection to the database; None means DuckDB's default connection, which notebook SQL cells use.

    Returns
    -------
    duckdb.DuckDBPyConnection
        The same connection. Every other connection, cursor and thread of its database sees the functions too.

    Examples
    --------
    >>> import duckdb, duckanon
    >>> con = duckanon.register(duckdb.connect())
    >>> con.execute("CREATE TABLE people AS SELECT i % 3 AS age FROM range(9) AS t(i)").fetchall()
    [(9,)]
    >>> con.execute("SELECT k FROM anon.k_anonymity('people', ['age'])").fetchall()
    [(3,)]

    Notes
    -----
    All goes into an attached in-memory catalog called ``anon``: nothing is written to the user's database file. A
    cursor of its own does the work, so that a result which the connection has not finished reading stays as it is.

    An error of a function is a ``duckdb.Error`` whose text is the function's own sentence.
    """
    errors.speak_plainly()
    con = duckdb.default_connection() if con is None else con
    with _REGISTERING:
        cursor = con.cursor()
        try:
            is_attached = _is_attached(cursor)
            _refuse_schema(cursor)
            cursor.execute(macros.ATTACH)
            if not is_attached or not _is_registered(cursor):
                if is_attached:
                    _refuse_objects(cursor)
                _create_functions(cursor)
                if not prepared.copy_macros(cursor, _create_all):
                    _create_macros(cursor)
                cursor.execute(macros.numbered(next(_DATABASES))).fetchall()  # comes last: _is_registered asks for it
        finally:
            cursor.close()
    connections.watch(con, is_fresh=False)
    return con


def _is_attached(cursor: duckdb.DuckDBPyConnection) -> bool:
    """Tell whether there is a catalog called anon; refuse to write into a user's own database of that name."""
    attached = cursor.execute("SELECT path FROM system.main.duckdb_databases() WHERE database_name = 'anon'").fetchall()
    for (path,) in attached:
        if path is not None:
            raise ValueError(
                f"duckanon.register: the name anon is taken by the database file {path}; "
                f"attach that file under another name (ATTACH '{path}' AS other_name)."
            )
    return bool(attached)


def _refuse_schema(cursor: duckdb.DuckDBPyConnection) -> None:
    """Refuse a database with a schema called anon: to DuckDB, anon.swap could then mean either."""
    schemas = cursor.execute(
        "SELECT database_name, schema_name FROM system.main.duckdb_schemas() "
        "WHERE system.main.lower(schema_name) = 'anon' AND database_name = system.main.current_database()"
    )
    for database, schema in schemas.fetchall():
        raise ValueError(
            f"duckanon.register: the database {database} has a schema called {schema}, so that anon.swap could mean "
            f"either; move its tables to a schema of another name and drop it (DROP SCHEMA {schema})."
        )


def _refuse_objects(cursor: duckdb.DuckDBPyConnection) -> None:
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
        raise ValueError(
            f"duckanon.register: the name anon is taken by a database in memory that holds {min(objects)}; "
            f"attach it under another name (ATTACH ':memory:' AS other_name) and move what is in it there."
        )


def _create_functions(cursor: duckdb.DuckDBPyConnection) -> None:
    for name, (function, sql_type, is_constant) in functions().items():
        if sql_type not in _TYPES:
            _TYPES[sql_type] = cursor.sqltype(sql_type)
        with contextlib.suppress(duckdb.CatalogException):  # it is there, from a time when the macros failed
            cursor.create_function(  # type: ignore[call-overload]
                name,
                _without_annotations(function),
                None,
                _TYPES[sql_type],
                type="arrow",
                null_handling="special",
                side_effects=not is_constant,
            )


@functools.cache
def _without_annotations(function: ArrowFunction) -> ArrowFunction:
    """Hide the annotations of a function: DuckDB would evaluate them for each database, and does not need them."""

    def call(*arguments: pa.Array) -> pa.Array:
        return function(*arguments)

    call.__signature__ = _ANY_ARGUMENTS  # type: ignore[attr-defined]
    return call


def _create_all(con: duckdb.DuckDBPyConnection) -> None:
    """Create functions and macros on a connection of our own, for the prepared catalog."""
    _create_functions(con)
    _create_macros(con)


def _create_macros(cursor: duckdb.DuckDBPyConnection) -> None:
    """Create all macros, or none where one fails or the user interrupts."""
    _divide_exactly(cursor)
    cursor.execute("BEGIN").fetchall()
    try:
        for statement in _statements():
            cursor.execute(statement).fetchall()
        cursor.execute("COMMIT").fetchall()
    except BaseException:
        cursor.execute("ROLLBACK").fetchall()
        raise


@functools.cache
def _statements() -> tuple[duckdb.Statement, ...]:
    """Parse the macros once for the process: that is half of creating them. The database has the number 0 in them.

    A connection of its own reads them, since what another one has set changes how a query is read.
    """
    with duckdb.connect() as con:
        return tuple(con.extract_statements(macros.script(0)))


def _divide_exactly(cursor: duckdb.DuckDBPyConnection) -> None:
    """Let a slash mean division while the macros are parsed: with integer_division, every risk would be 0."""
    if cursor.execute("SELECT system.main.current_setting('integer_division')").fetchall() == [(True,)]:
        try:
            cursor.execute("SET SESSION integer_division = false").fetchall()
        except duckdb.InvalidInputException as error:
            raise ValueError(
                "duckanon.register: integer_division must be off, and the configuration is locked; register first."
            ) from error


def _is_registered(cursor: duckdb.DuckDBPyConnection) -> bool:
    """Tell whether the database has its number, which comes after all the rest."""
    try:
        return cursor.execute("SELECT anon._database()").fetchall() != [(0,)]
    except duckdb.CatalogException:
        return False


def _begin_anew_after_fork() -> None:
    """Give a forked process locks of its own: the threads that held the old ones are not in it, and never let go."""
    global _REGISTERING
    _REGISTERING = threading.Lock()
    WAITING.forget_all()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_anew_after_fork)
