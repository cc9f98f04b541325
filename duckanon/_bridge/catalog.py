"""The catalog ``anon`` for DuckDB's Python client: connects to a database and registers everything in it.

What a connection's queries have on their way goes with it, when it is closed or collected. DuckDB tells nobody that a
connection or cursor is closed, and cursors are made by the connections themselves. So two methods of DuckDB's class are
wrapped, once: ``cursor`` notes the cursors of registered connections, ``close`` lets go. Those of anybody else are left
as they are.
"""

from __future__ import annotations

import functools
import threading
import weakref
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import duckdb

from duckanon._bridge import errors
from duckanon._bridge.engine import Connection, Engine
from duckanon._bridge.registration import register_database
from duckanon._bridge.waiting import WAITING


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
        _watch(con, is_fresh=True)
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
    register_database(con, Engine(duckdb.__version__, duckdb.connect, _parse, _type), "duckanon.register")
    _watch(con, is_fresh=False)
    return con


_TYPES: dict[str, Any] = {}
"""The types that functions return, by their text: reading it for each database took half the time of creating them."""


def _type(cursor: Connection, text: str) -> Any:
    if text not in _TYPES:
        assert isinstance(cursor, duckdb.DuckDBPyConnection)
        _TYPES[text] = cursor.sqltype(text)
    return _TYPES[text]


@functools.lru_cache(maxsize=1)
def _parse(script: str) -> Sequence[duckdb.Statement]:
    """Parse a script once for the process: that is half of running it.

    A connection of its own reads it, since what another one has set changes how a query is read.
    """
    with duckdb.connect() as con:
        return con.extract_statements(script)


Place: TypeAlias = tuple[int, int]
"""The number of a database, and that of a connection in it."""

_PLACES: weakref.WeakKeyDictionary[duckdb.DuckDBPyConnection, Place | None] = weakref.WeakKeyDictionary()
"""The connections whose end is watched. None: not known yet, since asking would end a result that is being read."""

_OWN_PLACE = "SELECT anon._database(), system.main.current_connection_id()"
"""As calls are told apart (``anon._owner``): a user's macro of that name would send the end of one to another."""

_WRAPPING = threading.Lock()


def _watch(con: duckdb.DuckDBPyConnection, is_fresh: bool) -> None:
    """Let what a connection has on its way go with it; a fresh one, whose result nobody reads, is asked its number."""
    _wrap_methods()
    if _PLACES.get(con) is not None:
        return
    _PLACES[con] = None
    if is_fresh:
        _note_place(con)


def _note_place(con: duckdb.DuckDBPyConnection) -> Place | None:
    try:
        ((database, connection),) = con.execute(_OWN_PLACE).fetchall()
    except duckdb.Error:  # it is closed, or its transaction was aborted
        return None
    _PLACES[con] = database, connection
    weakref.finalize(con, WAITING.drop_connection, database, connection).atexit = False
    return database, connection


def _wrap_methods() -> None:
    with _WRAPPING:
        connection_class = duckdb.DuckDBPyConnection
        if getattr(connection_class.cursor, "__module__", None) == __name__:
            return
        connection_class.cursor = _noting_cursor(connection_class.cursor)  # type: ignore[method-assign]
        connection_class.close = _letting_go(connection_class.close)  # type: ignore[method-assign]


def _noting_cursor(cursor: Callable[..., duckdb.DuckDBPyConnection]) -> Callable[..., duckdb.DuckDBPyConnection]:
    @functools.wraps(cursor, assigned=("__name__", "__doc__"))
    def noting(self: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
        con = cursor(self)
        if self in _PLACES:
            _watch(con, is_fresh=True)
        return con

    return noting


def _letting_go(close: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(close, assigned=("__name__", "__doc__"))
    def letting_go(self: duckdb.DuckDBPyConnection, *arguments: Any) -> None:
        place = (_PLACES.pop(self) or _note_place(self)) if self in _PLACES else None
        close(self, *arguments)
        if place is not None:
            WAITING.drop_connection(*place)

    return letting_go
