"""The catalog ``anon`` for DuckDB's Python client: connects to a database and registers everything in it."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb

from duckanon._bridge import connections, errors
from duckanon._bridge.engine import Connection, Engine
from duckanon._bridge.registration import register_database


def connect(path: str | Path = ":memory:", read_only: bool = False) -> duckdb.DuckDBPyConnection:
    """Open a database with everything registered.

    Args:
        path: The database file, or ``:memory:``.
        read_only: Open the file read-only; the functions work all the same.

    Returns:
        An ordinary connection.

    Examples:
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

    All goes into an attached in-memory catalog called ``anon``: nothing is written to the user's database file. A
    cursor of its own does the work, so that a result which the connection has not finished reading stays as it is.

    An error of a function is a ``duckdb.Error`` whose text is the function's own sentence.

    Args:
        con: Any connection to the database; None means DuckDB's default connection, which notebook SQL cells use.

    Returns:
        The same connection. Every other connection, cursor and thread of its database sees the functions too.

    Examples:
        >>> import duckdb, duckanon
        >>> con = duckanon.register(duckdb.connect())
        >>> con.execute("CREATE TABLE people AS SELECT i % 3 AS age FROM range(9) AS t(i)").fetchall()
        [(9,)]
        >>> con.execute("SELECT k FROM anon.k_anonymity('people', ['age'])").fetchall()
        [(3,)]
    """
    errors.speak_plainly()
    con = duckdb.default_connection() if con is None else con
    register_database(con, Engine(duckdb.__version__, duckdb.connect, _parsed, _type), "duckanon.register")
    connections.watch(con, is_fresh=False)
    return con


_TYPES: dict[str, Any] = {}
"""The types that functions return, by their text: reading it for each database took half the time of creating them."""


def _type(cursor: Connection, text: str) -> Any:
    if text not in _TYPES:
        assert isinstance(cursor, duckdb.DuckDBPyConnection)
        _TYPES[text] = cursor.sqltype(text)
    return _TYPES[text]


@functools.lru_cache(maxsize=1)
def _parsed(script: str) -> Sequence[duckdb.Statement]:
    """Parse a script once for the process: that is half of running it.

    A connection of its own reads it, since what another one has set changes how a query is read.
    """
    with duckdb.connect() as con:
        return con.extract_statements(script)
