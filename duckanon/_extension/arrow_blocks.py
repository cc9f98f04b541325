"""Blocks of rows between DuckDB and Arrow, as Python functions take and return them.

DuckDB converts with a connection. One to the user's database would keep that open after the shell has closed it, so
conversions have connections of their own to an empty database in memory. They are taken from a pool: ctypes gives a
thread of DuckDB's a new Python state for every call, so that nothing can be kept by thread.
"""

from __future__ import annotations

import contextlib
import ctypes
import threading
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from duckanon._extension.c_api import SUCCESS, Api, address, pointer

_RELEASE = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_Schema, _Array = ctypes.c_uint64 * 9, ctypes.c_uint64 * 10
_OF_SCHEMA, _OF_ARRAY = 7, 8
"""The places of ``release`` in the structs ArrowSchema and ArrowArray, which have nine and ten words."""


class ArrowBlocks:
    """Converts blocks of DuckDB's to Arrow arrays and back."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._lock = threading.Lock()
        self._database: Any = None
        self._idle: list[_Converter] = []

    @contextlib.contextmanager
    def converter(self) -> Iterator[_Converter]:
        """Lend a converter that no other thread has."""
        try:
            converter = self._idle.pop()
        except IndexError:
            with self._lock:
                self._database = self._database or _empty_database(self._api)
                converter = _Converter(self._api, self._database)
        try:
            yield converter
        finally:
            self._idle.append(converter)


def _empty_database(api: Api) -> Any:
    """Open a database in memory that starts no threads."""
    config, database = pointer(), pointer()
    api.create_config(address(config))
    try:
        api.set_config(config, b"threads", b"1")
        if api.open_ext(None, address(database), config, None) != SUCCESS:
            raise ValueError("anon: DuckDB cannot open a database in memory; free some memory and run it again.")
    finally:
        api.destroy_config(address(config))
    return database


class _Converter:
    """A connection for conversions, used by one thread at a time."""

    def __init__(self, api: Api, database: Any) -> None:
        self._api = api
        self._connection, self._options = pointer(), pointer()
        if api.connect(database, address(self._connection)) != SUCCESS:
            raise ValueError("anon: DuckDB cannot open another connection; run it again.")
        api.connection_get_arrow_options(self._connection, address(self._options))
        self._casts: dict[tuple[str, pa.DataType], pa.DataType | None] = {}

    def arrays(self, chunk: int) -> list[pa.Array]:
        """Return the columns of a block."""
        count = self._api.data_chunk_get_column_count(chunk)
        vectors = [self._api.data_chunk_get_vector(chunk, place) for place in range(count)]
        schema, array = _Schema(), _Array()
        self._describe(vectors, schema)
        self._check(self._api.data_chunk_to_arrow(self._options, chunk, address(array)))
        columns: list[pa.Array] = pa.RecordBatch._import_from_c(address(array), address(schema)).columns
        return columns

    def put(self, function: str, result: pa.Array | pa.ChunkedArray, output: int) -> None:
        """Write what a function has returned into DuckDB's vector, in the type that the function is declared with."""
        result = result.combine_chunks() if isinstance(result, pa.ChunkedArray) else result
        kind = function, result.type
        if kind not in self._casts:
            with self._convert(result) as vector:
                expected, got = self._type_of(output), self._type_of(vector)
            self._casts[kind] = None if expected == got else expected
        if (cast := self._casts[kind]) is not None:  # DuckDB would read the one as the other
            result = result.cast(cast)
        with self._convert(result) as vector:
            self._api.vector_reference_vector(output, vector)

    @contextlib.contextmanager
    def _convert(self, result: pa.Array) -> Iterator[int]:
        """Give an Arrow array as a vector of DuckDB's."""
        schema, array = _Schema(), _Array()
        converted, chunk = pointer(), pointer()
        pa.record_batch([result], names=["result"])._export_to_c(address(array), address(schema))
        try:
            self._check(self._api.schema_from_arrow(self._connection, address(schema), address(converted)))
            self._check(self._api.data_chunk_from_arrow(self._connection, address(array), converted, address(chunk)))
            yield self._api.data_chunk_get_vector(chunk, 0)
        finally:
            self._api.destroy_data_chunk(address(chunk))
            self._api.destroy_arrow_converted_schema(address(converted))
            for struct, place in ((schema, _OF_SCHEMA), (array, _OF_ARRAY)):
                if struct[place]:
                    _RELEASE(struct[place])(address(struct))

    def _type_of(self, vector: int) -> pa.DataType:
        schema = _Schema()
        self._describe([vector], schema)
        return pa.Schema._import_from_c(address(schema)).field(0).type

    def _describe(self, vectors: list[int], schema: Any) -> None:
        """Write the types of vectors as an Arrow schema."""
        count = len(vectors)
        types, names = (ctypes.c_void_p * count)(), (ctypes.c_char_p * count)(*[b"c"] * count)
        for place, vector in enumerate(vectors):
            types[place] = self._api.vector_get_column_type(vector)
        try:
            self._check(
                self._api.to_arrow_schema(self._options, address(types), address(names), count, address(schema))
            )
        finally:
            for place in range(count):
                self._api.destroy_logical_type(address(types) + place * ctypes.sizeof(ctypes.c_void_p))

    def _check(self, error: int | None) -> None:
        if not error:
            return
        message = (self._api.error_data_message(error) or b"").decode("utf-8", "replace")
        self._api.destroy_error_data(address(pointer(error)))
        if message:
            raise ValueError(message)
