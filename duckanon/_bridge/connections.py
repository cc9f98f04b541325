"""Connections: what a connection's queries have on their way goes with it, when it is closed or collected.

DuckDB tells nobody that a connection or cursor is closed, and cursors are made by the connections themselves. So two
methods of DuckDB's class are wrapped, once: ``cursor`` notes the cursors of registered connections, ``close`` lets go.
Connections of anybody else are left as they are.
"""

from __future__ import annotations

import functools
import threading
import weakref
from collections.abc import Callable
from typing import Any, TypeAlias

import duckdb

from duckanon._bridge.waiting import WAITING

Place: TypeAlias = tuple[int, int]
"""The number of a database, and that of a connection in it."""

_PLACES: weakref.WeakKeyDictionary[duckdb.DuckDBPyConnection, Place | None] = weakref.WeakKeyDictionary()
"""The connections whose end is watched. None: not known yet, since asking would end a result that is being read."""

_OWN_PLACE = "SELECT anon._database(), system.main.current_connection_id()"
"""As calls are told apart (``anon._owner``): a user's macro of that name would send the end of one to another."""

_WRAPPING = threading.Lock()


def watch(con: duckdb.DuckDBPyConnection, is_fresh: bool) -> None:
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
        made = cursor(self)
        if self in _PLACES:
            watch(made, is_fresh=True)
        return made

    return noting


def _letting_go(close: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(close, assigned=("__name__", "__doc__"))
    def letting_go(self: duckdb.DuckDBPyConnection, *arguments: Any) -> None:
        place = (_PLACES.pop(self) or _note_place(self)) if self in _PLACES else None
        close(self, *arguments)
        if place is not None:
            WAITING.drop_connection(*place)

    return letting_go
