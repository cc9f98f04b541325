"""The code of ``LOAD './duckanon.duckdb_extension'``: the shim calls `start` in every database, `stop` in the end."""

from __future__ import annotations

import sys

import duckanon
from duckanon._bridge.engine import Engine
from duckanon._bridge.registration import register_database
from duckanon._extension.c_api import SUCCESS, Access, Api, address, pointer
from duckanon._extension.connection import Callbacks, Connection

_BOUND: list[tuple[Api, Callbacks]] = []
"""One for the process: DuckDB keeps the callback for as long as a database has the functions."""


def start(info: int, access_address: int, version: str) -> None:
    """Register everything in the database that loads the extension; LOAD shows the sentence of an error.

    `info` and `access_address` come from DuckDB; `version` is that of the duckanon which wrote the extension's file.
    """
    if version != duckanon.__version__:
        raise ValueError(
            f"duckanon: this extension was written by duckanon {version}, and {duckanon.__version__} is installed; "
            "renew it: duckanon extension."
        )
    access = Access.from_address(access_address)
    if not _BOUND:
        api = Api(info, access)
        _BOUND.append((api, Callbacks(api)))
    api, callbacks = _BOUND[0]
    con = Connection(api, access.get_database(info)[0], callbacks)
    try:
        engine = Engine(
            version=api.version.removeprefix("v"),
            open=lambda: _empty_database(api, callbacks),
            parsed=lambda script: [script],
            type_of=lambda _, text: text,
        )
        register_database(con, engine, "duckanon")
    finally:
        con.close()


class _OwnDatabase(Connection):
    """A connection to a database of its own, which is closed with it."""

    def close(self) -> None:
        super().close()
        self._api.close(address(self._database))


def _empty_database(api: Api, callbacks: Callbacks) -> Connection:
    database = pointer()
    if api.open_ext(None, address(database), None, None) != SUCCESS:
        raise ValueError("duckanon: DuckDB cannot open a database in memory.")
    return _OwnDatabase(api, database, callbacks)


def stop() -> None:
    """Let running algorithms end before the program does."""
    registry = sys.modules.get("duckanon._bridge.registry")
    if registry is not None:
        registry.TASKS.stop()
