"""The code of ``LOAD './duckanon.duckdb_extension'``: the shim calls `start` in every database, `stop` in the end.

A connection of DuckDB's C API has the methods of the Python client that registering takes.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import duckanon
from duckanon._bridge.engine import Engine
from duckanon._bridge.registration import register_database
from duckanon._core.common.imports import import_function
from duckanon._extension.c_api import (
    INTEGER_TYPES,
    SCALAR_FUNCTION,
    SUCCESS,
    TYPE_ANY,
    TYPE_BOOLEAN,
    Access,
    Api,
    Result,
    address,
    pointer,
)

ArrowFunction = Callable[..., Any]


class DuckDBError(Exception):
    """An error of DuckDB's, whose message begins with its kind: ``Catalog Error: ...``."""


class Callbacks:
    """Calls Python functions for DuckDB: one callback for all of them, which finds them by their numbers."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._numbers: dict[str, int] = {}
        self._functions: list[tuple[str, ArrowFunction]] = []
        self._blocks: Any = None
        self.pointer = SCALAR_FUNCTION(self._call)

    def number(self, name: str, function: ArrowFunction) -> int:
        """Return the number of a function: the same one for every database of the process."""
        if name not in self._numbers:
            self._functions.append((name, function))
            self._numbers[name] = len(self._functions) - 1
        return self._numbers[name]

    def _call(self, info: int, chunk: int, output: int) -> None:
        try:
            name, function = self._functions[self._api.scalar_function_get_extra_info(info) or 0]
            with self._arrow_blocks().converter() as converter:
                arguments = converter.arrays(chunk)
            result = function(*arguments)
            with self._arrow_blocks().converter() as converter:
                converter.put(name, result, output)
        except BaseException as error:
            message = str(error) or type(error).__name__
            self._api.scalar_function_set_error(info, message.encode("utf-8", "replace"))

    def _arrow_blocks(self) -> Any:
        """Import pyarrow at the first call, not while the extension is loaded."""
        if self._blocks is None:
            self._blocks = import_function("duckanon._extension.arrow_blocks:ArrowBlocks")(self._api)
        return self._blocks


class Connection:
    """A connection to a database; queries return numbers, texts, truth values and NULL, others as text."""

    def __init__(self, api: Api, database: Any, callbacks: Callbacks) -> None:
        self._api, self._database, self._callbacks = api, database, callbacks
        self._connection = pointer()
        self._rows: list[tuple[Any, ...]] = []
        if api.connect(database, address(self._connection)) != SUCCESS:
            raise ValueError("duckanon: DuckDB cannot open a connection to the database.")

    def cursor(self) -> Connection:
        """Open another connection to the same database."""
        return Connection(self._api, self._database, self._callbacks)

    def close(self) -> None:
        """Close the connection; doing it again is harmless."""
        self._api.disconnect(address(self._connection))

    def execute(self, query: str) -> Connection:
        """Run statements and read the rows of the last one."""
        with self._result(query) as result:
            columns = range(self._api.column_count(result))
            kinds = [self._api.column_type(result, column) for column in columns]
            self._rows = [
                tuple(self._value(result, column, row, kinds[column]) for column in columns)
                for row in range(self._api.row_count(result))
            ]
        return self

    def fetchall(self) -> list[tuple[Any, ...]]:
        """Return the rows of the last statement."""
        return self._rows

    def create_function(
        self,
        name: str,
        function: ArrowFunction,
        parameters: None,
        return_type: str,
        /,
        *,
        type: str,
        null_handling: str,
        side_effects: bool,
    ) -> None:
        """Register a function of any arguments, which takes Arrow arrays and sees NULL: other kinds are not needed.

        DuckDB computes one without side effects while it binds a query, where its arguments are constants.
        """
        assert (parameters, type, null_handling) == (None, "arrow", "special")
        api = self._api
        with self._result(f"SELECT NULL::{return_type}") as result:
            returned = pointer(api.column_logical_type(result, 0))
        handle, any_type = pointer(api.create_scalar_function()), pointer(api.create_logical_type(TYPE_ANY))
        try:
            api.scalar_function_set_name(handle, name.encode())
            api.scalar_function_set_varargs(handle, any_type)
            api.scalar_function_set_return_type(handle, returned)
            api.scalar_function_set_special_handling(handle)
            if side_effects:
                api.scalar_function_set_volatile(handle)
            api.scalar_function_set_extra_info(handle, self._callbacks.number(name, function), None)
            api.scalar_function_set_function(handle, self._callbacks.pointer)
            if api.register_scalar_function(self._connection, handle) != SUCCESS:
                raise DuckDBError(f"Catalog Error: the function {name} cannot be registered.")
        finally:
            api.destroy_scalar_function(address(handle))
            api.destroy_logical_type(address(any_type))
            api.destroy_logical_type(address(returned))

    @contextmanager
    def _result(self, query: str) -> Iterator[Any]:
        result = Result()
        try:
            if self._api.query(self._connection, query.encode(), result) != SUCCESS:
                raise DuckDBError((self._api.result_error(result) or b"").decode("utf-8", "replace"))
            yield result
        finally:
            self._api.destroy_result(result)

    def _value(self, result: Any, column: int, row: int, kind: int) -> Any:
        text = self._api.value_varchar(result, column, row)
        if text is None:
            return None
        value = ctypes.string_at(text).decode()
        self._api.free(text)
        if kind == TYPE_BOOLEAN:
            return value == "true"
        return int(value) if kind in INTEGER_TYPES else value


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
