"""A column in two parts: a choice between values that many share, and a number for those who have another one.

Categories are a choice alone. A number with special values (zeros, codes, NULL) is the choice between these and
"regular", and the regular number. No choice is held by fewer than k people: rare ones are merged.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from duckanon._core.common.arrays import Bools, Floats, Ints
from duckanon._core.encoding import arrow
from duckanon._core.encoding.column_codecs import NumberColumn


@dataclass(frozen=True)
class ColumnParts:
    """A column of a table, split into a choice and numbers.

    Attributes:
        codes: The choice of every row.
        outcomes: What the codes stand for, None for NULL; the last code of a column with numbers is the regular one,
            for which nothing stands here.
        regular: How regular numbers are rounded, their range and steps; None for categories.
        array: The column itself.
        merged: What texts that fewer than k people share are called together; None where there are none.
    """

    name: str
    type: pa.DataType
    codes: Ints
    outcomes: tuple[Any, ...]
    regular: NumberColumn | None
    array: pa.Array
    merged: str | None = None

    @property
    def choices(self) -> int:
        """The number of codes."""
        return len(self.outcomes) + (self.regular is not None)

    @property
    def is_regular(self) -> Bools:
        """The rows that hold a regular number; a NULL that few have is none, though it counts as regular."""
        if self.regular is None:
            return np.zeros(len(self.codes), np.bool_)
        valid = arrow.find_valid(self.array)
        is_last = self.codes == len(self.outcomes)
        return np.asarray(is_last if valid is None else is_last & valid)

    def numbers(self) -> Floats:
        """Return the column as doubles, NaN for NULL."""
        return read_doubles(self.array)

    def join(self, codes: Ints, numbers: pa.Array | None) -> pa.Array:
        """Recombine the column from the choice and, but for categories, the number of every row."""
        if numbers is None:
            return arrow.make_categories(codes, list(self.outcomes), self.type)
        if not self.outcomes:
            return numbers
        known = pa.array([*self.outcomes, None], self.type)
        return pc.if_else(pa.array(codes == len(self.outcomes)), numbers, known.take(pa.array(codes)))


def read_doubles(array: pa.Array) -> Floats:
    """Take a column of numbers, dates or times as doubles, NaN for NULL."""
    if arrow.is_moment(array.type):
        array = array.cast(pa.int32() if array.type.bit_width == 32 else pa.int64())
    values = arrow.read_reals(array).copy()
    valid = arrow.find_valid(array)
    if valid is not None:
        values[~valid] = np.nan
    return values


def round_numbers(column: ColumnParts, values: Floats) -> pa.Array:
    """Round numbers as a column's are, in its type; NaN is NULL."""
    assert column.regular is not None
    valid = ~np.isnan(values)
    filled = np.where(valid, values, 0.0)
    if pa.types.is_floating(column.type):
        decimals = column.regular.decimals
        return arrow.make_array(filled if decimals is None else np.round(filled, decimals), column.type, valid)
    units = np.rint(filled * 10.0 ** arrow.scale_of(column.type))
    codes = np.clip(units, *_unit_range(column.type)).astype(np.int64) + arrow.zero_of(column.type)
    return arrow.make_array(codes, column.type, valid)


def _unit_range(type_: pa.DataType) -> tuple[float, float]:
    """Return the least and the largest number of a type, in units of its last digit, inside of what codes hold."""
    if not pa.types.is_integer(type_):
        return -(2.0**62), 2.0**62
    bounds = np.iinfo(arrow.buffer_type(type_))
    return max(float(bounds.min), -(2.0**62)), min(float(bounds.max), 2.0**62)
