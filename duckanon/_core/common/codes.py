"""Dense integer codes for the columns of an Arrow table.

Equal values have equal codes as SQL holds them equal: NULL is a value of its own, all NaN are one value, and -0.0
equals 0.0. Whole numbers of a narrow range are looked up in a table, everything else in a dictionary of Arrow's, which
costs one pass. Codes are of the smallest unsigned type, so that later passes over them are quick.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from duckanon._core.common.arrays import sql_type

Codes: TypeAlias = "NDArray[np.integer[Any]]"
CodedColumn: TypeAlias = "tuple[Codes, int]"
"""The code of each row, and the number of distinct codes."""


def encode_columns(table: pa.Table) -> list[CodedColumn]:
    """Encode every column of an Arrow table as dense integer codes.

    NULL is a value with a code of its own, all NaN are one value, and -0.0 equals 0.0. The codes of a column are
    0 .. distinct-1, of the smallest unsigned type that holds them. Nested columns are refused.

    Examples:
        >>> [(codes, distinct)] = encode_columns(pa.table({"city": ["Rome", None, "Oslo", "Rome"]}))
        >>> codes.tolist(), distinct
        ([0, 1, 2, 0], 3)
    """
    return [_encode_column(column) for column in table.columns]


def rank_values(column: pa.ChunkedArray) -> NDArray[np.int64]:
    """Return the rank of each value from 1, equal ones with equal ranks, NULL behind all others."""
    ((codes, _),) = encode_columns(pa.table({"value": column}))
    firsts = np.unique(codes, return_index=True)[1]
    different = column.take(pa.array(firsts))
    if pa.types.is_dictionary(different.type):
        different = different.cast(different.type.value_type)
    ranks = np.empty(len(firsts), np.int64)
    ranks[np.asarray(pc.sort_indices(different))] = np.arange(1, len(firsts) + 1)
    return ranks[codes.astype(np.int64)]


def read_float_bits(column: pa.ChunkedArray) -> NDArray[np.int64]:
    """Return a whole number for each float, equal ones for values that `encode_columns` holds equal.

    NULL has a number of its own. To sort them takes a tenth of the time of codes where most values are different.
    """
    bits = _floats(column).view(np.int64)
    bits[column.is_null().to_numpy()] = -1  # the bits of a NaN that is none of numpy's
    return bits


def _encode_column(column: pa.ChunkedArray) -> CodedColumn:
    arrow_type = column.type
    if isinstance(arrow_type, pa.BaseExtensionType):
        return _encode_column(pa.chunked_array([chunk.storage for chunk in column.chunks], arrow_type.storage_type))
    if pa.types.is_null(arrow_type) or len(column) == 0:
        return np.zeros(len(column), np.uint8), min(len(column), 1)
    if pa.types.is_dictionary(arrow_type):
        return _encode_dictionary(column)
    if pa.types.is_nested(arrow_type):
        raise ValueError(
            f"columns of nested types such as {sql_type(arrow_type)} cannot be compared; leave them out of cols."
        )
    column = _cast_comparable(column)
    in_range = _encode_range(column) if pa.types.is_integer(column.type) else None
    if in_range is not None:
        return in_range
    encoded = column.dictionary_encode(null_encoding="encode")  # the chunks share one dictionary
    count = len(encoded.chunk(0).dictionary)
    indices = np.concatenate([chunk.indices.to_numpy() for chunk in encoded.chunks])
    return indices.astype(_code_type(count)), count


def _cast_comparable(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Cast a column to a type whose values Arrow tells apart as SQL does, to integers where that is quicker."""
    arrow_type = column.type
    if pa.types.is_floating(arrow_type):
        return pa.chunked_array([pa.array(_floats(column), mask=column.is_null().to_numpy())])
    if pa.types.is_boolean(arrow_type):
        return column.cast(pa.uint8())
    if pa.types.is_temporal(arrow_type) and arrow_type.bit_width <= 64:
        return column.cast(pa.int32() if arrow_type.bit_width == 32 else pa.int64())
    if pa.types.is_string_view(arrow_type):  # Arrow cannot dictionary-encode views
        return column.cast(pa.large_string())
    if pa.types.is_binary_view(arrow_type):
        return column.cast(pa.large_binary())
    return column


def _floats(column: pa.ChunkedArray) -> NDArray[np.float64]:
    """Return floats with one 0.0 and one NaN, which also stands for NULL."""
    values: NDArray[np.float64] = column.cast(pa.float64()).to_numpy() + 0.0  # -0.0 + 0.0 is 0.0
    values[np.isnan(values)] = np.nan  # NaN has many bit patterns
    return values


def _encode_range(column: pa.ChunkedArray) -> CodedColumn | None:
    """Encode integers by a lookup table of their range; None when the range is too wide for that."""
    bounds = pc.min_max(column).as_py()
    if bounds["min"] is None:
        return np.zeros(len(column), np.uint8), 1
    low, width = bounds["min"], bounds["max"] - bounds["min"] + 1
    if width > max(2**16, 2 * len(column)):  # the table would take longer to fill than a dictionary of the values
        return None
    values = column.fill_null(low).to_numpy()
    if values.dtype == np.uint64:
        offsets = (values - np.uint64(low)).astype(np.int64)
    else:
        offsets = np.subtract(values, low, dtype=np.int64)
    if column.null_count:
        offsets[column.is_null().to_numpy()] = width
        width += 1
    return _drop_unused_codes(offsets, width)


def _encode_dictionary(column: pa.ChunkedArray) -> CodedColumn:
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
    return _drop_unused_codes(codes.take(np.concatenate(indices), mode="wrap"), count)  # -1 takes the last entry, NULL


def _drop_unused_codes(codes: Codes, cells: int) -> CodedColumn:
    """Renumber codes below `cells` so that each of 0 .. count-1 occurs."""
    present = np.bincount(codes, minlength=cells) > 0
    count = int(np.count_nonzero(present))
    if count == cells:
        return codes.astype(_code_type(count)), count
    return (np.cumsum(present) - 1).astype(_code_type(count)).take(codes), count


def _code_type(count: int) -> type[np.unsignedinteger[Any]]:
    """Return the smallest type that holds the codes 0 .. count-1."""
    return np.uint8 if count <= 2**8 else np.uint16 if count <= 2**16 else np.uint32
