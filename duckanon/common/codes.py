"""Dense integer codes for the columns of an Arrow table."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

Codes: TypeAlias = "NDArray[np.integer[Any]]"
Column: TypeAlias = "tuple[Codes, int]"


def encode(table: pa.Table) -> list[Column]:
    """Encode every column of an Arrow table as dense integer codes.

    NULL is a value with a code of its own, all NaN are one value, and -0.0 equals 0.0.

    Parameters
    ----------
    table : pyarrow.Table
        Columns of any type that Arrow can dictionary-encode, or of a dictionary type.

    Returns
    -------
    list of (ndarray, int)
        For each column the code of every row, in 0 .. distinct-1 and of the smallest unsigned type that holds it, and
        the number of distinct values that occur.

    Raises
    ------
    ValueError
        For a nested column.
    """
    return [_encode_column(column) for column in table.columns]


def _encode_column(column: pa.ChunkedArray) -> Column:
    kind = column.type
    if isinstance(kind, pa.BaseExtensionType):
        return _encode_column(pa.chunked_array([chunk.storage for chunk in column.chunks], kind.storage_type))
    if pa.types.is_null(kind) or len(column) == 0:
        return np.zeros(len(column), np.uint8), min(len(column), 1)
    if pa.types.is_dictionary(kind):
        return _encode_dictionary(column)
    if pa.types.is_nested(kind):
        raise ValueError(f"columns of nested types such as {kind} cannot be compared; leave them out of cols.")
    if pa.types.is_floating(kind):
        values = column.cast(pa.float64()).to_numpy() + 0.0  # -0.0 + 0.0 is 0.0
        values[np.isnan(values)] = np.nan  # one NaN out of many; NULL became one too, hence the mask
        column = pa.chunked_array([pa.array(values, mask=column.is_null().to_numpy())])
    elif pa.types.is_boolean(kind):
        column = column.cast(pa.uint8())
    elif pa.types.is_temporal(kind) and kind.bit_width <= 64:
        column = column.cast(pa.int32() if kind.bit_width == 32 else pa.int64())
    elif pa.types.is_string_view(kind) or pa.types.is_binary_view(kind):
        column = column.cast(pa.large_string() if pa.types.is_string_view(kind) else pa.large_binary())
    if pa.types.is_integer(column.type):
        ranged = _encode_range(column)
        if ranged is not None:
            return ranged
    encoded = column.dictionary_encode(null_encoding="encode")  # the chunks share one dictionary
    count = len(encoded.chunk(0).dictionary)
    indices = np.concatenate([chunk.indices.to_numpy() for chunk in encoded.chunks])
    return indices.astype(_unsigned(count)), count


def _encode_range(column: pa.ChunkedArray) -> Column | None:
    """Encode integers of a small range by a lookup table; None when the range is too wide for that."""
    bounds = pc.min_max(column).as_py()
    if bounds["min"] is None:
        return np.zeros(len(column), np.uint8), 1
    low, width = bounds["min"], bounds["max"] - bounds["min"] + 1
    if width > max(2**16, 2 * len(column)):
        return None
    values = column.fill_null(low).to_numpy()
    if values.dtype == np.uint64:
        offsets = (values - np.uint64(low)).astype(np.int64)
    else:
        offsets = np.subtract(values, low, dtype=np.int64)
    if column.null_count:
        offsets[column.is_null().to_numpy()] = width
        width += 1
    return _compact(offsets, width)


def _encode_dictionary(column: pa.ChunkedArray) -> Column:
    """Encode a dictionary column, whose dictionary may have unused, repeated or null entries."""
    values: list[pa.Array] = []
    indices: list[NDArray[np.int64]] = []
    start = end = 0
    for chunk in column.chunks:
        if not values or not chunk.dictionary.equals(values[-1]):
            values.append(chunk.dictionary)
            start, end = end, end + len(chunk.dictionary)
        offsets = chunk.indices.cast(pa.int64()).fill_null(-1).to_numpy()
        indices.append(np.where(offsets < 0, -1, offsets + start))
    codes, count = _encode_column(pa.chunked_array([*values, pa.nulls(1, column.type.value_type)]))
    return _compact(codes.take(np.concatenate(indices), mode="wrap"), count)  # NULL takes the last, which is null


def _compact(codes: Codes, cells: int) -> Column:
    """Renumber codes so that each of 0 .. count-1 occurs."""
    present = np.bincount(codes, minlength=cells) > 0
    count = int(np.count_nonzero(present))
    if count == cells:
        return codes.astype(_unsigned(count)), count
    return (np.cumsum(present) - 1).astype(_unsigned(count)).take(codes), count


def _unsigned(count: int) -> type[np.unsignedinteger[Any]]:
    return np.uint8 if count <= 2**8 else np.uint16 if count <= 2**16 else np.uint32
