"""``%load_ext duckanon``: the functions of ``anon`` in the connections that SQL cells use, and views of some results.

DuckDB's default connection is registered at once. Connections of jupysql are registered when a cell begins, wherever
they come from (``%sql con`` or ``%sql duckdb:///clinic.duckdb``), and so are DuckDB connections in variables of the
notebook; one that duckdb-engine opens is registered when it is opened. Work that takes longer shows a bar.
"""

from __future__ import annotations

import contextlib
import sys
import warnings
from collections.abc import Iterator
from typing import Any

import duckdb

from duckanon._bridge.catalog import register
from duckanon.notebook import views

__all__ = ["load", "unload"]


class _Extension:
    """Hooks of an IPython shell while the extension is loaded."""

    def __init__(self, shell: Any) -> None:
        self._shell = shell

    def before_cell(self, *_: object) -> None:
        """Register the connections that have come since the last cell: doing it again is harmless."""
        for con in self._connections():
            with contextlib.suppress(duckdb.ConnectionException):  # it was closed
                try:
                    register(con)
                except ValueError as error:  # the name anon is taken: other cells may not need it
                    warnings.warn(str(error), stacklevel=2)

    def _connections(self) -> Iterator[duckdb.DuckDBPyConnection]:
        for value in [*self._shell.user_ns.values()]:
            if isinstance(value, duckdb.DuckDBPyConnection):
                yield value
        jupysql = sys.modules.get("sql.connection")
        known = getattr(getattr(jupysql, "ConnectionManager", None), "connections", {})
        for connection in [*known.values()]:
            # DuckDB's own, or SQLAlchemy's, in which that of duckdb-engine is
            yield from _find_connections(getattr(connection, "_connection", None))


def _find_connections(connection: Any) -> Iterator[duckdb.DuckDBPyConnection]:
    """Yield the connection of DuckDB's within one of duckdb-engine or SQLAlchemy, or that is one; of others nothing."""
    with contextlib.suppress(Exception):  # one of SQLAlchemy that is closed opens itself, or says so
        connection = getattr(connection, "connection", connection)
    connection = getattr(connection, "dbapi_connection", connection)
    for value in [connection, *getattr(connection, "__dict__", {}).values()]:
        if isinstance(value, duckdb.DuckDBPyConnection):
            yield value
            return


def _engine_opened(connection: Any, *_: object) -> None:
    """Register a connection of duckdb-engine, which wraps DuckDB's own; others are left alone."""
    for value in _find_connections(connection):
        register(value)


_LOADED: dict[int, _Extension] = {}  # by the identity of the shell: loading twice is loading once


def load(shell: Any) -> None:
    """Do what ``%load_ext duckanon`` asks for."""
    if id(shell) in _LOADED:
        return
    extension = _LOADED[id(shell)] = _Extension(shell)
    register()
    extension.before_cell()
    shell.events.register("pre_run_cell", extension.before_cell)
    formatter = shell.display_formatter.formatters["text/html"]
    formatter.for_type(duckdb.DuckDBPyRelation, views.of_relation)
    formatter.for_type_by_name("sql.run.resultset", "ResultSet", views.of_result)
    with contextlib.suppress(ImportError):
        from sqlalchemy import event
        from sqlalchemy.pool import Pool

        event.listen(Pool, "connect", _engine_opened)


def unload(shell: Any) -> None:
    """Do what ``%unload_ext duckanon`` asks for; what is registered stays."""
    extension = _LOADED.pop(id(shell), None)
    if extension is None:
        return
    shell.events.unregister("pre_run_cell", extension.before_cell)
    formatter = shell.display_formatter.formatters["text/html"]
    formatter.pop(duckdb.DuckDBPyRelation, None)
    formatter.pop("sql.run.resultset.ResultSet", None)
    with contextlib.suppress(ImportError):
        from sqlalchemy import event
        from sqlalchemy.pool import Pool

        if event.contains(Pool, "connect", _engine_opened):
            event.remove(Pool, "connect", _engine_opened)
