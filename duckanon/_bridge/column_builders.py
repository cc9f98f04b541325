"""Column builders: put the small blocks of one column together to few, large arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

MOST_BYTES = 2**31 - 1
"""A column of texts that takes more is refused: so many bytes are what Arrow's offsets can tell."""


def column_builder(arrow_type: pa.DataType) -> _FixedWidthColumn | _OtherColumn:
    """Make the builder for a column of a type."""
    width = _RAW.get(arrow_type.bit_width) if _is_fixed_width(arrow_type) else None
    return _OtherColumn(arrow_type) if width is None else _FixedWidthColumn(arrow_type, np.dtype(width))


def _is_fixed_width(arrow_type: pa.DataType) -> bool:
    return bool(pa.types.is_primitive(arrow_type) or pa.types.is_decimal(arrow_type))


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
            self._large.append(pa.concat_arrays(self._small))
            self._small, self._small_bytes = [], 0
