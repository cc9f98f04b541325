"""Arrow columns as numpy arrays and back: exact codes, floats or categories."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from duckanon._core.common.arrays import Array, Bools, Floats, Ints, Reals, is_number, is_text, sql_type

ArrowKind: TypeAlias = Literal["exact", "float", "category"]

_SIGN = np.uint64(2**63)
_WIDE_DICTIONARY = 4096  # a longer dictionary is probably that of a larger table: only the values that occur are listed


def arrow_kind(name: str, type_: pa.DataType) -> ArrowKind:
    """Say how a column is read: as exact codes (whole steps), as floats or as categories; refuse other types."""
    types = pa.types
    if types.is_floating(type_):
        return "float"
    if is_number(type_) or is_moment(type_):
        return "exact"
    if types.is_boolean(type_) or is_text(type_):
        return "category"
    if types.is_dictionary(type_) and (is_text(type_.value_type) or types.is_integer(type_.value_type)):
        return "category"
    if types.is_null(type_):
        raise ValueError(f'column "{name}" holds nothing but NULL; leave it out of cols.')
    raise ValueError(
        f'column "{name}" must hold numbers, booleans, texts, dates or times; got {sql_type(type_)}: cast it or leave '
        "it out."
    )


def is_moment(type_: pa.DataType) -> bool:
    """Say whether a type is a date, a time or a duration: whole steps since an arbitrary origin."""
    types = pa.types
    return bool(types.is_date(type_) or types.is_timestamp(type_) or types.is_time(type_) or types.is_duration(type_))


def zero_of(type_: pa.DataType) -> int:
    """Return the code that stands for 0: unsigned 64-bit integers are moved down by 2^63 to fit signed codes."""
    return -(2**63) if pa.types.is_uint64(type_) else 0


def scale_of(type_: pa.DataType) -> int:
    """Return the digits after the point that one code step stands for."""
    return int(type_.scale) if pa.types.is_decimal(type_) else 0


def find_valid(array: pa.Array) -> Bools | None:
    """Return which rows are not NULL, None where all are."""
    return array.is_valid().to_numpy(zero_copy_only=False) if array.null_count else None


def read_codes(name: str, array: pa.Array) -> Ints:
    """Read a column of whole steps as signed 64-bit codes; what stands at NULLs is arbitrary."""
    type_ = array.type
    if pa.types.is_decimal(type_):
        return _read_decimals(name, array)
    values = _view_buffer(array, buffer_type(type_))
    if pa.types.is_uint64(type_):
        return (values ^ _SIGN).view(np.int64)
    return values.astype(np.int64, copy=False)


def read_floats(array: pa.Array) -> Reals:
    """Read a column of floats in their own precision; what stands at NULLs is arbitrary."""
    return _view_buffer(array, buffer_type(array.type))


def read_reals(array: pa.Array) -> Floats:
    """Read a column of any number type as doubles; what stands at NULLs is arbitrary."""
    if not array.null_count and (pa.types.is_integer(array.type) or pa.types.is_floating(array.type)):
        return _view_buffer(array, buffer_type(array.type)).astype(
            np.float64
        )  # a cast of Arrow's takes five times as long
    return np.asarray(array.cast(pa.float64(), safe=False).fill_null(0.0).to_numpy())


def make_array(values: Array, type_: pa.DataType, valid: Bools | None = None) -> pa.Array:
    """Make an Arrow column of codes or floats, the other way round than `read_codes` and `read_floats`."""
    if pa.types.is_decimal(type_):
        words = np.empty((len(values), 2), np.int64)
        words[:, 0] = values
        words[:, 1] = values >> 63  # the sign, extended
        narrow = pa.decimal128(max(type_.precision, 19) if type_.precision <= 38 else 38, type_.scale)
        return _wrap_buffer(words, narrow, valid).cast(type_)
    if pa.types.is_uint64(type_):
        values = values.view(np.uint64) ^ _SIGN
    return _wrap_buffer(values.astype(buffer_type(type_), copy=False), type_, valid)


def read_categories(array: pa.Array) -> tuple[NDArray[np.intp], list[Any]]:
    """Read a column of categories as the index of every row, -1 for NULL, and the values that they point to."""
    type_ = array.type
    if pa.types.is_boolean(type_):
        indices, values = array.cast(pa.int8()), [False, True]
    else:
        if pa.types.is_dictionary(type_) and len(array.dictionary) > _WIDE_DICTIONARY:
            array = array.dictionary_decode()
        if pa.types.is_string_view(array.type):
            array = array.cast(pa.large_string())
        if not pa.types.is_dictionary(array.type):
            array = array.dictionary_encode()
        indices, values = array.indices, array.dictionary.to_pylist()
    if indices.null_count:
        indices = pc.fill_null(indices.cast(pa.int64()), -1)
    return indices.to_numpy().astype(np.intp, copy=False), values


def make_categories(codes: Array, values: list[Any], type_: pa.DataType) -> pa.Array:
    """Make an Arrow column of categories; a value of None is NULL."""
    if not pa.types.is_dictionary(type_):
        storage = pa.large_string() if pa.types.is_string_view(type_) else type_
        return pa.array(values, storage).take(pa.array(codes)).cast(type_)
    known = [value for value in values if value is not None]  # NULL is the last one
    mask = codes == len(known) if len(known) < len(values) else None
    indices = pa.array(codes.astype(buffer_type(type_.index_type)), mask=mask)
    return pa.DictionaryArray.from_arrays(indices, pa.array(known, type_.value_type), ordered=type_.ordered)


def buffer_type(type_: pa.DataType) -> np.dtype[Any]:
    """Return numpy's type for what an Arrow column of numbers or times keeps."""
    if is_moment(type_):
        return np.dtype(np.int32 if type_.bit_width == 32 else np.int64)
    if pa.types.is_floating(type_):
        return np.dtype(f"f{type_.bit_width // 8}")
    return np.dtype(f"{'i' if pa.types.is_signed_integer(type_) else 'u'}{type_.bit_width // 8}")


def _view_buffer(array: pa.Array, dtype: np.dtype[Any]) -> Array:
    data = array.buffers()[1]
    if len(array) == 0 or data is None:
        return np.zeros(len(array), dtype)
    return np.frombuffer(data, dtype, count=len(array), offset=array.offset * dtype.itemsize)


def _wrap_buffer(values: Array, type_: pa.DataType, valid: Bools | None) -> pa.Array:
    bits = None if valid is None else pa.array(valid).buffers()[1]
    return pa.Array.from_buffers(type_, len(values), [bits, pa.py_buffer(np.ascontiguousarray(values))])


def _read_decimals(name: str, array: pa.Array) -> Ints:
    if not pa.types.is_decimal128(array.type):
        try:
            array = array.cast(pa.decimal128(38, array.type.scale))
        except pa.ArrowInvalid:
            raise ValueError(_too_many_digits(name)) from None
    if len(array) == 0:
        return np.zeros(0, np.int64)
    words = np.frombuffer(array.buffers()[1], np.int64, count=2 * len(array), offset=16 * array.offset).reshape(-1, 2)
    low, high = words[:, 0], words[:, 1]
    fits = high == low >> 63
    valid = find_valid(array)
    if not (fits if valid is None else fits | ~valid).all():
        raise ValueError(_too_many_digits(name))
    return np.ascontiguousarray(low)


def _too_many_digits(name: str) -> str:
    return f'column "{name}" holds numbers of more than 18 digits; cast it to DOUBLE or leave it out of cols.'
