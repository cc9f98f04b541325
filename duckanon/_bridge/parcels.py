"""Parcels: rows on their way from a query's scan to the Python function that will be called with them.

A scan hands its rows over in blocks of at most 2,048, from several threads. Each call of a macro collects its blocks in
accumulators of its own, one a thread; what travels on through the query is the call's number, its ticket.

Columns on their way to Python: in their plain types, and put together from small blocks to few, large arrays.

DuckDB hands over the same column in other types of Arrow where ``arrow_output_version``, ``arrow_large_buffer_size``,
``arrow_lossless_conversion`` or ``produce_arrow_string_view`` say so. The algorithms know those of a connection on
which nothing is set.
"""

from __future__ import annotations

import functools
import threading
import uuid
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from duckanon._bridge.waiting import FOR_EVERY_ROW, Owner, Waiting

POOL = pa.system_memory_pool()
"""Of the C library: Arrow's own pool keeps, for each thread of a scan, what another thread has freed."""
MOST_BYTES = 2**31 - 1
"""A column of texts that takes more is refused: so many bytes are what Arrow's offsets can tell."""


def column_builder(arrow_type: pa.DataType) -> _FixedWidthColumn | _OtherColumn:
    """Make the builder for a column of a type."""
    is_fixed_width = pa.types.is_primitive(arrow_type) or pa.types.is_decimal(arrow_type)
    width = _RAW.get(arrow_type.bit_width) if is_fixed_width else None
    return _OtherColumn(arrow_type) if width is None else _FixedWidthColumn(arrow_type, np.dtype(width))


_RAW = {8: "u1", 16: "u2", 32: "u4", 64: "u8", 128: "c16"}
"""By bits: a numpy type whose values are copied as they are, whatever they mean."""


class _FixedWidthColumn:
    """Values of one width, copied into ever larger pieces of memory, at most a million values each."""

    text_bytes = 0

    def __init__(self, arrow_type: pa.DataType, raw: np.dtype[Any]) -> None:
        self._type, self._raw = arrow_type, raw
        self._full: list[pa.Array] = []
        self._length = self._used = 0
        self._values = np.empty(0, raw)
        self._valid: NDArray[np.bool_] | None = None

    def append(self, array: pa.Array) -> None:
        start, length = array.offset, len(array)
        if self._used + length > len(self._values):
            self._begin_anew(max(length, min(self._length, 1 << 20)))
        span = slice(self._used, self._used + length)
        self._values[span] = np.frombuffer(array.buffers()[1], self._raw, start + length)[start:]
        if array.null_count:
            if self._valid is None:
                self._valid = np.ones(len(self._values), bool)
            self._valid[span] = array.is_valid().to_numpy(zero_copy_only=False)
        self._used += length
        self._length += length

    def append_whole(self, array: pa.Array) -> None:
        self._begin_anew(0)
        self._full.append(array)
        self._length += len(array)

    def finish(self) -> pa.ChunkedArray:
        self._begin_anew(0)
        pieces, self._full, self._length = self._full, [], 0
        return pa.chunked_array(pieces, self._type)

    def _begin_anew(self, size: int) -> None:
        if self._used:
            valid = self._valid
            bitmap = None if valid is None else pa.py_buffer(np.packbits(valid[: self._used], bitorder="little"))
            values = pa.py_buffer(self._values[: self._used])
            self._full.append(pa.Array.from_buffers(self._type, self._used, [bitmap, values]))
        self._values, self._valid, self._used = np.empty(size, self._raw), None, 0


class _OtherColumn:
    """Text and whatever else has no fixed width: small arrays put together by Arrow, many at a time."""

    def __init__(self, arrow_type: pa.DataType) -> None:
        self._type = arrow_type
        self._small: list[pa.Array] = []
        self._large: list[pa.Array] = []
        self._small_bytes = 0
        self.text_bytes = 0

    def append(self, array: pa.Array) -> None:
        size = array.nbytes
        if self._small_bytes + size > MOST_BYTES // 4:
            self._join()
        self._small.append(array)
        self._small_bytes += size
        self.text_bytes += size
        if len(self._small) >= 16:
            self._join()

    def append_whole(self, array: pa.Array) -> None:
        self._join()
        self._large.append(array)
        self.text_bytes += array.nbytes

    def finish(self) -> pa.ChunkedArray:
        self._join()
        pieces, self._large = self._large, []
        return pa.chunked_array(pieces, self._type)

    def _join(self) -> None:
        if self._small:
            self._large.append(pa.concat_arrays(self._small, POOL))
            self._small, self._small_bytes = [], 0


def plain(array: pa.Array) -> pa.Array:
    """Turn an array into the type that it has by default; most arrays have it, and are returned as they are."""
    return array if _plain_type(array.type) is None else _convert(array)


@functools.lru_cache(maxsize=1024)
def _plain_type(kind: pa.DataType) -> pa.DataType | None:
    """Return the type that values of a type are turned into; None where they stay as they are."""
    if pa.types.is_struct(kind):
        fields = [pa.field(field.name, _plain_type(field.type) or field.type) for field in kind]
        return None if all(_plain_type(field.type) is None for field in kind) else pa.struct(fields)
    if isinstance(kind, pa.BaseExtensionType):
        if kind.extension_name == "arrow.opaque" and kind.type_name == "hugeint":
            return pa.decimal128(38, 0)
        return _EXTENSIONS.get(kind.extension_name)
    if str(kind).startswith(("decimal32", "decimal64")) and not hasattr(pa, "decimal32"):
        raise ValueError(
            f"anon: arrow_output_version asks for types that pyarrow {pa.__version__} does not know; "
            f"RESET arrow_output_version, or install a newer pyarrow."
        )
    if pa.types.is_large_string(kind) or str(kind) == "string_view":
        return pa.string()
    if pa.types.is_large_binary(kind) or str(kind) == "binary_view":
        return pa.binary()
    if pa.types.is_decimal(kind) and kind.bit_width < 128:
        return pa.decimal128(kind.precision, kind.scale)
    return None


_EXTENSIONS = {"arrow.bool8": pa.bool_(), "arrow.uuid": pa.string(), "arrow.json": pa.string()}
"""The types of DuckDB that Arrow has no plain ones for, and yet they travel in one."""


def _convert(array: pa.Array) -> pa.Array:
    kind = array.type
    if pa.types.is_struct(kind):
        parts = [plain(array.field(index)) for index in range(kind.num_fields)]
        fields = [pa.field(field.name, part.type) for field, part in zip(kind, parts, strict=True)]
        mask = array.is_null() if array.null_count else None
        return pa.StructArray.from_arrays(parts, fields=fields, mask=mask)
    if not isinstance(kind, pa.BaseExtensionType):
        return array.cast(_plain_type(kind))
    if kind.extension_name == "arrow.uuid":
        texts = [None if value is None else str(uuid.UUID(bytes=value)) for value in array.storage.to_pylist()]
        return pa.array(texts, pa.string())
    if kind.extension_name == "arrow.opaque":  # a HUGEINT has the bytes of a decimal without a scale
        plain_type = _plain_type(kind)
        return pa.Array.from_buffers(plain_type, len(array), array.storage.buffers(), offset=array.storage.offset)
    return array.storage.cast(_plain_type(kind))


class Accumulator(Protocol):
    """Collector of blocks of rows."""

    def add(self, rows: pa.Array, *extras: pa.Array) -> None:
        """Take in a block: a struct array with the rows, and whatever else the macro passes along."""

    def merge(self, other: Any) -> None:
        """Take in what another accumulator of the same call has collected."""


class Parcels:
    """The accumulators that wait for their function, of all calls in all databases."""

    def __init__(self, waiting: Waiting | None = None) -> None:
        self._waiting = Waiting() if waiting is None else waiting

    def open(self, *arguments: pa.Array) -> pa.Array:
        """Begin a call, for ``anon._call``: takes its owner, and returns the call's number."""
        if len(arguments[0]) > 1:
            raise ValueError(f"anon: a function was called in a correlated subquery, but {FOR_EVERY_ROW}")
        return pa.array([self._waiting.open(Owner(*arguments[0][0].as_py()))], pa.int64())

    def park(self, make: Callable[..., Accumulator]) -> Callable[..., pa.Array]:
        """Return the function that takes a block of rows; `make` makes an accumulator from the first block's arguments.

        Its arguments are the rows, the call's number, and what else the accumulator wants. It returns the number where
        a thread's first block began, the ticket, and NULL everywhere else.
        """

        def park(*arguments: pa.Array) -> pa.Array:
            rows, calls, *extras = arguments
            rows = pa.chunked_array(map(plain, rows.chunks)) if isinstance(rows, pa.ChunkedArray) else plain(rows)
            call, thread = calls[0].as_py(), threading.get_ident()
            accumulators = self._waiting.thing(call, dict)  # by thread
            is_first = thread not in accumulators
            if is_first:
                accumulators[thread] = make(rows, *extras)
            accumulators[thread].add(rows, *extras)  # nobody else touches this one: threads need not wait here
            if not is_first:
                return pa.nulls(len(rows), pa.int64())
            return pa.array([call] + [None] * (len(rows) - 1), pa.int64())

        return park

    def redeem(self, tickets: list[int] | None) -> Any:
        """Take the accumulator of a call, what all its threads have collected; None where no row came."""
        if not tickets:
            return None
        first, *rest = self._waiting.take(tickets[0]).values()
        for other in rest:
            first.merge(other)
        return first

    def __len__(self) -> int:
        """Count the calls that have rows on their way."""
        return sum(isinstance(thing, dict) for thing in self._waiting.things())


class TableBuilder:
    """Puts blocks of rows together to an Arrow table of few, large chunks, so that the small blocks can go at once."""

    def __init__(self, rows: pa.Array, keys: pa.Array | None = None) -> None:
        self._names = [field.name for field in rows.type]
        self._columns = [column_builder(field.type) for field in rows.type]
        self._keys = None if keys is None else column_builder(keys.type)
        self._blocks: list[pa.Array] = []
        self._block_bytes = 0

    def add(self, rows: pa.Array, *extras: pa.Array) -> None:
        """Take in a block, and the keys to order its rows by where their order matters."""
        self._blocks += _chunks(rows)
        self._block_bytes += rows.nbytes
        if len(self._blocks) >= 16 or self._is_long():
            self._sort_into_columns()
        if self._keys is not None:
            for chunk in _chunks(extras[0]):
                self._keys.append(chunk)

    def merge(self, other: TableBuilder) -> None:
        """Put the rows that another thread has collected behind these."""
        other._sort_into_columns()
        self._sort_into_columns()
        self._refuse_too_long(other)
        into, from_other = ([*builder._columns, builder._keys] for builder in (self, other))
        for column, more in zip(into, from_other, strict=True):
            if column is not None and more is not None:
                for chunk in more.finish().chunks:
                    column.append_whole(chunk)

    def table(self) -> pa.Table:
        """Return the table, in the order of the keys where there are any; afterwards the builder is empty."""
        self._sort_into_columns()
        columns = [column.finish() for column in self._columns]
        if self._keys is not None:
            order = pa.array(np.argsort(self._keys.finish().to_numpy(), kind="stable"))
            for place in range(len(columns)):  # one by one: there is never a second copy of all of them
                columns[place] = pc.take(columns[place], order, memory_pool=POOL)
        return pa.table(columns, names=self._names)

    def _is_long(self) -> bool:
        return self._block_bytes > MOST_BYTES // 16

    def _sort_into_columns(self) -> None:
        """Hand several blocks at once to the columns: one by one, the calls would cost more than the copying."""
        if self._blocks:
            # Long ones go one by one: together they may be too long for Arrow.
            blocks = self._blocks if self._is_long() else [pa.concat_arrays(self._blocks, POOL)]
            self._blocks, self._block_bytes = [], 0
            for rows in blocks:
                for index, column in enumerate(self._columns):
                    column.append(rows.field(index))
            self._refuse_too_long()

    def _refuse_too_long(self, other: TableBuilder | None = None) -> None:
        """Refuse a column that is too long, alone or with what another thread has collected."""
        for place, column in enumerate(self._columns):
            if column.text_bytes + (other._columns[place].text_bytes if other else 0) > MOST_BYTES:
                raise ValueError(
                    f'anon: column "{self._names[place]}" holds more than 2 GB of text; leave it out, or shorten it '
                    f"first: left({self._names[place]}, 1000)."
                )


def _chunks(array: pa.Array | pa.ChunkedArray) -> list[pa.Array]:
    return array.chunks if isinstance(array, pa.ChunkedArray) else [array]
