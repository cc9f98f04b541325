"""Slots: the lists in which the columns of a released table travel back to DuckDB, one list for each kind of type."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from duckanon._core.common.arrays import is_text, sql_type

SLOTS: dict[str, tuple[str, pa.DataType]] = {
    "i": ("BIGINT", pa.int64()),
    "f": ("DOUBLE", pa.float64()),
    "d": ("DATE", pa.date32()),
    "t": ("TIMESTAMP", pa.timestamp("us")),
    "z": ("TIMESTAMPTZ", pa.timestamp("us", "UTC")),
    "s": ("VARCHAR", pa.string()),
}
"""The lists that a released column can travel in: their DuckDB and their Arrow type. One of them is filled."""

CODES = "c"
"""One more list: the places, from 1, of the values of all rows, where the other list has each different value once."""

RELEASED_TYPE = (
    "STRUCT(names VARCHAR[], columns STRUCT("
    + ", ".join(f"{slot} {sql}[]" for slot, (sql, _) in SLOTS.items())
    + f", {CODES} INTEGER[])[])"
)
"""The type that every algorithm's function returns to DuckDB, whatever the table looks like."""

_EXACT_DECIMAL_DIGITS = 15  # a double holds every decimal number of so many digits


def slot_of(arrow_type: pa.DataType) -> str | None:
    """Tell which slot carries a type, as ``anon._unpack`` does; None: nested values, binary strings and intervals."""
    if pa.types.is_dictionary(arrow_type):
        return "s" if is_text(arrow_type.value_type) else None
    return next((slot for test, slot in _TRAVELS_IN if test(arrow_type)), None)


_TRAVELS_IN: tuple[tuple[Callable[[pa.DataType], bool], str], ...] = (
    (pa.types.is_boolean, "i"),
    (pa.types.is_uint64, "s"),
    (pa.types.is_integer, "i"),
    (pa.types.is_floating, "f"),
    (lambda kind: pa.types.is_decimal(kind) and kind.precision <= _EXACT_DECIMAL_DIGITS, "f"),
    (pa.types.is_decimal, "s"),
    (pa.types.is_date32, "d"),
    (lambda kind: pa.types.is_timestamp(kind) and kind.unit != "us", "s"),
    (lambda kind: pa.types.is_timestamp(kind) and kind.tz is None, "t"),
    (pa.types.is_timestamp, "z"),
    (lambda kind: is_text(kind) or pa.types.is_time(kind) or pa.types.is_null(kind), "s"),
)
"""The slot of the first test that holds."""


def refuse_types_that_cannot_travel(schema: pa.Schema) -> None:
    """Raise a ValueError that names the first column whose type cannot travel."""
    for field in schema:
        if slot_of(field.type) is None:
            raise ValueError(
                f'column "{field.name}" holds values of a type that cannot be released ({sql_type(field.type)}); '
                f"leave it out, or cast it to VARCHAR or a number first."
            )


def pack(table: list[pa.Table], coded: bool = False) -> pa.Array:
    """Turn a table into the one value that ``anon._unpack`` expects: the names, and each column as a list.

    The table comes in a list that is emptied: where nobody else holds the table, its memory goes piece by piece as the
    lists are filled, and there is never a second copy of it. Where dictionaries are `coded`, they travel as codes and
    each value once, which ``anon._unpack`` does not read.
    """
    names, columns = table[0].column_names, table.pop().columns
    codes: list[pa.Array | None] = [None] * len(columns)
    if coded:
        for place, column in enumerate(columns):
            if pa.types.is_dictionary(column.type):
                columns[place], codes[place] = _split_dictionary(column)
    slots, lengths = [slot_of(column.type) for column in columns], list(map(len, columns))
    lists = []
    for slot, (_, arrow_type) in SLOTS.items():
        is_in_slot = np.array([slot_of_column == slot for slot_of_column in slots], dtype=bool)
        in_slot = [columns[index] for index in np.flatnonzero(is_in_slot)]
        for index in np.flatnonzero(is_in_slot):
            columns[index] = None
        ends = np.cumsum(np.concatenate([[0], is_in_slot * np.array(lengths, np.int64)]))
        lists.append(list_array(ends, _concatenate(in_slot, arrow_type), ~is_in_slot))
    lists.append(_code_lists(codes))
    columns_list = pa.StructArray.from_arrays(lists, names=[*SLOTS, CODES])
    ends = np.array([0, len(names)])
    return pa.StructArray.from_arrays(
        [list_array(ends, pa.array(names, pa.string())), list_array(ends, columns_list)], names=["names", "columns"]
    )


def _split_dictionary(column: pa.ChunkedArray) -> tuple[pa.ChunkedArray, pa.Array]:
    """Return the dictionary of a column, and the place of each row's value in it, from 1 as lists count in SQL."""
    whole = column.combine_chunks()
    whole = whole.chunk(0) if isinstance(whole, pa.ChunkedArray) else whole
    places = whole.indices.cast(pa.int32()).fill_null(-1).to_numpy() + 1
    return pa.chunked_array([whole.dictionary]), pa.array(places, pa.int32(), mask=places == 0)


def _code_lists(codes: list[pa.Array | None]) -> pa.Array:
    """Return one list of codes a column, NULL where it has none; the list is emptied."""
    ends = np.cumsum([0, *(0 if own is None else len(own) for own in codes)])
    missing = np.array([own is None for own in codes], dtype=bool)
    filled = [own for own in codes if own is not None]
    codes.clear()
    return list_array(ends, pa.concat_arrays(filled) if filled else pa.array([], pa.int32()), missing)


def _concatenate(columns: list[pa.ChunkedArray], arrow_type: pa.DataType) -> pa.Array:
    """Put columns behind each other as one array of a type; the list is emptied, so that they can go meanwhile."""
    if arrow_type == pa.string():
        texts = [_as(column, arrow_type) for column in columns]
        if sum(column.nbytes for column in texts) >= 2**31:  # more than 32-bit offsets can tell
            arrow_type = pa.large_string()
        chunks = [chunk for column in texts for chunk in _as(column, arrow_type).chunks]
        return pa.concat_arrays(chunks) if chunks else pa.array([], arrow_type)
    length, start = sum(map(len, columns)), 0
    raw = np.dtype(f"u{arrow_type.bit_width // 8}")
    values = np.empty(length, raw)
    valid = np.ones(length, bool) if any(column.null_count for column in columns) else None
    columns.reverse()
    while columns:
        chunks = _as(columns.pop(), arrow_type).chunks[::-1]
        while chunks:
            chunk = chunks.pop()
            span = slice(start, start := start + len(chunk))
            values[span] = np.frombuffer(chunk.buffers()[1], raw, chunk.offset + len(chunk))[chunk.offset :]
            if valid is not None:
                valid[span] = chunk.is_valid().to_numpy(zero_copy_only=False)
    bitmap = None if valid is None else pa.py_buffer(np.packbits(valid, bitorder="little"))
    return pa.Array.from_buffers(arrow_type, length, [bitmap, pa.py_buffer(values)])


def list_array(offsets: Any, values: pa.Array, missing: Any = None) -> pa.Array:
    """Make an array of lists from where each begins and ends, with wide offsets only where they are needed."""
    mask = None if missing is None else pa.array(missing)
    if offsets[-1] < np.iinfo(np.int32).max:
        return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), values, mask=mask)
    return pa.LargeListArray.from_arrays(pa.array(offsets, pa.int64()), values, mask=mask)


def _as(column: pa.ChunkedArray, arrow_type: pa.DataType) -> pa.ChunkedArray:
    if pa.types.is_time(column.type) and arrow_type == pa.string():
        return _times_as_text(column)
    return column if column.type == arrow_type else column.cast(arrow_type)


def _times_as_text(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Write times of day; 24:00:00 is one to DuckDB, and none to Arrow."""
    whole = pa.int32() if column.type.bit_width == 32 else pa.int64()
    numbers = column.cast(whole).fill_null(-1).to_numpy()
    is_midnight = numbers == _A_DAY[column.type.unit]
    times = pa.array(numbers, mask=is_midnight | (numbers < 0)).cast(column.type)
    texts = times.cast(pa.string()).to_numpy(zero_copy_only=False)
    texts[is_midnight] = "24:00:00"
    return pa.chunked_array([pa.array(texts, pa.string())])


_A_DAY = {"s": 86_400, "ms": 86_400_000, "us": 86_400_000_000, "ns": 86_400_000_000_000}
