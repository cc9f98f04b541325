"""Numbers in types of which a double tells all values apart: how releases of new records read a table.

FLOATs that were stored in DOUBLE (26.6 as 26.600000381469727) are read as FLOATs, whose digits are those of the
shortest text of the same FLOAT. Whole numbers and decimals from 2^53 on, counted in units of their last digit, are read
as steps from a base. Bases are round: they say nothing about the smallest value. A release is written back in the types
of the table.
"""

from __future__ import annotations

import decimal
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from duckanon._core.common.arrays import Ints, Reals
from duckanon._core.encoding.arrow import buffer_type, find_valid, read_codes, read_floats, scale_of
from duckanon._core.encoding.column_split import join_chunks
from duckanon._core.encoding.fit import MOST_DECIMALS
from duckanon._core.encoding.parts import read_doubles

_EXACT = 2**53  # whole numbers below it are doubles
_ROUND = 10**15  # a base is a multiple of so many steps
_FARTHEST = 2**63 - 1  # distances are whole numbers of 64 bits
_DIGITS = decimal.Context(prec=80)  # of computations with one decimal


@dataclass(frozen=True)
class SingleType:
    """FLOATs that were stored in DOUBLE."""

    def read(self, array: pa.Array) -> pa.Array:
        """Read values as FLOATs."""
        return array.cast(pa.float32(), safe=False)

    def write(self, array: pa.Array) -> pa.Array:
        """Write FLOATs as DOUBLE."""
        return array.cast(pa.float64())


@dataclass(frozen=True)
class StepType:
    """Numbers from 2^53 on. They are whole steps away from `low`, one of them, which is read as `at_low`.

    Numbers and steps are counted in units of the last digit that a decimal has.
    """

    type: pa.DataType
    low: int
    step: int
    at_low: int

    def read(self, array: pa.Array) -> pa.Array:
        """Read numbers as steps from the base."""
        steps = _subtract_low(array, self.low) // self.step + self.at_low
        valid = find_valid(array)
        return pa.array(steps, pa.int64(), mask=None if valid is None else ~valid)

    def write(self, array: pa.Array) -> pa.Array:
        """Write steps as numbers; what the type does not hold becomes its smallest or largest number."""
        farthest = [max(-_FARTHEST, min(end - self.low, _FARTHEST)) for end in _range(self.type)]
        nearest, last = -(-farthest[0] // self.step), farthest[1] // self.step
        away = np.clip(read_codes("", array) - self.at_low, nearest, last) * self.step
        low = np.uint64(self.low % 2**64)
        units = away.view(np.uint64) + low  # wraps around, and the carry goes into the upper word
        valid = find_valid(array)
        bits = None if valid is None else pa.array(valid).buffers()[1]
        if not pa.types.is_decimal(self.type):
            return pa.Array.from_buffers(self.type, len(array), [bits, pa.py_buffer(units)])
        upper = (away >> 63) + (self.low >> 64) + (units < low)
        words = np.stack([units.view(np.int64), upper], axis=1)
        full = pa.decimal128(38, self.type.scale)
        return pa.Array.from_buffers(full, len(array), [bits, pa.py_buffer(words)]).cast(self.type)


NumberType: TypeAlias = SingleType | StepType


@dataclass(frozen=True)
class NumberTypes:
    """How the numbers of a table are read, by column; columns that are not named are read as they are."""

    types: Mapping[str, NumberType]

    @classmethod
    def of(cls, table: pa.Table, is_exact: bool = True) -> NumberTypes:
        """Learn it from a table; refuse a column whose numbers a double does not tell apart, where they must be."""
        types = {
            name: find_number_type(name, join_chunks(column), is_exact)
            for name, column in zip(table.column_names, table.columns, strict=True)
        }
        return cls({name: kind for name, kind in types.items() if kind is not None})

    def read(self, table: pa.Table) -> pa.Table:
        """Read a table."""
        for name in self.types:
            index = table.schema.get_field_index(name)
            table = table.set_column(index, name, self.read_column(name, join_chunks(table.column(index))))
        return table

    def write(self, table: pa.Table) -> pa.Table:
        """Write a release of a table that was read."""
        for name in self.types:
            index = table.schema.get_field_index(name)
            table = table.set_column(index, name, self.write_column(name, join_chunks(table.column(index))))
        return table

    def read_column(self, name: str, array: pa.Array) -> pa.Array:
        """Read a column of the table."""
        return self.types[name].read(array) if name in self.types else array

    def write_column(self, name: str, array: pa.Array) -> pa.Array:
        """Write a column of a release."""
        return self.types[name].write(array) if name in self.types else array


def find_number_type(name: str, array: pa.Array, is_exact: bool = True) -> NumberType | None:
    """Return how the numbers of a column are read; None where they are read as they are."""
    known = array.drop_null()
    if not len(known):
        return None
    if pa.types.is_float64(array.type):
        return SingleType() if _are_singles(read_floats(known)) else None
    if pa.types.is_int64(array.type) or pa.types.is_uint64(array.type) or pa.types.is_decimal128(array.type):
        return _find_step_type(name, known, is_exact)
    return None


def _are_singles(values: Reals) -> bool:
    """Tell whether all doubles are FLOATs, and some have more digits than a number that was rounded."""
    with np.errstate(over="ignore", invalid="ignore"):
        are_singles = bool((values.astype(np.float32) == values).all())
        return are_singles and not (np.round(values, MOST_DECIMALS) == values).all()


def _find_step_type(name: str, known: pa.Array, is_exact: bool) -> StepType | None:
    """Return the steps of numbers from 2^53 on; refuse those that neither steps nor doubles tell apart."""
    ends, digits = pc.min_max(known).as_py().values(), scale_of(known.type)
    low, high = (int(end.scaleb(digits, _DIGITS)) if isinstance(end, decimal.Decimal) else end for end in ends)
    if max(-low, high) < _EXACT:
        return None
    if high - low <= _FARTHEST:
        step = 1 if high - low < _EXACT - _ROUND else int(np.gcd.reduce(_subtract_low(known, low)))
        at_low = low // step % _ROUND
        if at_low + (high - low) // step < _EXACT:
            return StepType(known.type, low, step, at_low)
    if not is_exact or len(np.unique(read_doubles(known))) == len(known.unique()):
        return None
    raise ValueError(
        f'column "{name}" holds whole numbers from 2^53 on, or decimals of as many digits, which are too far apart for '
        "a double to tell them from each other; divide it, cast it to DOUBLE, or leave it out of cols."
    )


def _range(kind: pa.DataType) -> tuple[int, int]:
    """Return the smallest and the largest number of a type, in units of its last digit."""
    if pa.types.is_decimal(kind):
        return 1 - 10**kind.precision, 10**kind.precision - 1
    ends = np.iinfo(buffer_type(kind))
    return int(ends.min), int(ends.max)


def _subtract_low(array: pa.Array, low: int) -> Ints:
    """Subtract a number from numbers, in units of their last digit; farther than 64 bits tell is as far as they do."""
    upper, lower = _split_words(array)
    low_word = np.uint64(low % 2**64)
    away = (lower - low_word).view(np.int64)  # wraps around, and the borrow comes from the upper word
    rest = upper - (low >> 64) - (lower < low_word)
    return np.where(rest == away >> 63, away, np.where(rest < 0, -_FARTHEST, _FARTHEST))


def _split_words(array: pa.Array) -> tuple[Ints, NDArray[np.uint64]]:
    """Return the upper and the lower 64 bits of whole numbers and decimals."""
    if pa.types.is_decimal(array.type):
        words = np.frombuffer(array.buffers()[1], np.int64, 2 * len(array), 16 * array.offset).reshape(-1, 2)
        return words[:, 1], words[:, 0].copy().view(np.uint64)
    values = np.frombuffer(array.buffers()[1], buffer_type(array.type), len(array), 8 * array.offset)
    return (values >> 63 if values.dtype == np.int64 else np.zeros(len(values), np.int64)), values.view(np.uint64)
