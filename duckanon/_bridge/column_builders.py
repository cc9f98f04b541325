"""Columns on their way to Python: in their plain types, and put together from small blocks to few, large arrays.

DuckDB hands over the same column in other types of Arrow where ``arrow_output_version``, ``arrow_large_buffer_size``,
``arrow_lossless_conversion`` or ``produce_arrow_string_view`` say so. The algorithms know those of a connection on
which nothing is set.
"""

from __future__ import annotations

import functools
import uuid
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

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
    return array if _plain_type(array.type) is None else _converted(array)


@functools.lru_cache(maxsize=1024)
def _plain_type(kind: pa.DataType) -> pa.DataType | None:
    """Return the type that values of a type are turned into; None where they stay as they are."""
    if pa.types.is_struct(kind):
        fields = [pa.field(field.name, _plain_type(field.type) or field.type) for field in kind]
        return None if all(_plain_type(field.type) is None for field in kind) else pa.struct(fields)
    if isinstance(kind, pa.BaseExtensionType):
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


def _converted(array: pa.Array) -> pa.Array:
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
    return array.storage.cast(_plain_type(kind))
