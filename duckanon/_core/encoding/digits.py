"""The digits that numbers are written with: those that all have but for a computation's rounding, and those of most."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa

from duckanon._core.common.arrays import Ints, Reals, is_number, run_starts
from duckanon._core.encoding.arrow import array_of, codes_of, floats_of, storage_of, valid_of, zero_of
from duckanon._core.encoding.column_codecs import NumberColumn
from duckanon._core.encoding.column_fit import FEWEST_DECIMALS, MOST_DECIMALS

USUAL = 0.95
"""The share of the rows that have no more digits than a release has."""
_FLOATS_OFF = 2  # neighbouring floats by which a rounded number may be off after a computation such as a mean of two
_SPARE_BITS = 7  # of a float, below the last decimal: with fewer, unrounded numbers would be as near by chance
_MOST_TELLING = 16  # decimals that are tried to tell unrounded numbers apart
_TOLD_APART = 0.99  # of the different numbers
_SAMPLE = 1024  # rows looked at first: most columns of many digits turn out there to have them


def cleaned(array: pa.Array) -> pa.Array:
    """Round floats to the decimals that all of them have up to a computation's rounding, 26.500000000000004 to 26.5.

    Values that differ by such rounding alone are one value where people are counted, and so are 0.0 and -0.0. All else
    stays as it is.

    Examples:
        >>> cleaned(pa.array([26.500000000000004, 26.5, 31.25])).to_pylist()
        [26.5, 26.5, 31.25]
    """
    if not pa.types.is_floating(array.type):
        return array
    floats = floats_of(array)
    if (np.signbit(floats) & (floats == 0)).any():
        array = array_of(floats + floats.dtype.type(0), array.type, valid_of(array))
    floats = floats_of(array.drop_null() if array.null_count else array)
    if not len(floats) or not np.isfinite(floats).all():
        return array
    largest = float(np.abs(floats).max())
    bits = np.finfo(storage_of(array.type)).nmant - _SPARE_BITS
    for decimals in range(FEWEST_DECIMALS, MOST_DECIMALS + 1):
        if largest * 10.0**decimals > 2.0**bits:
            return array
        if all(_nearly_rounded(part, decimals) for part in (floats[:_SAMPLE], floats)):
            rounded = _round(floats, decimals)
            if (rounded == floats).all():
                return array
            valid = valid_of(array)
            if valid is None:
                return array_of(rounded, array.type, None)
            whole = np.zeros(len(valid))
            whole[valid] = rounded
            return array_of(whole, array.type, valid)
    return array


def with_usual_digits(column: NumberColumn, array: pa.Array) -> NumberColumn:
    """Give a fitted column, without NULLs, the digits of most of its values: 98 of 100 weights have one decimal."""
    if not is_number(column.type):
        return column
    if isinstance(column.low, int):
        return _with_usual_steps(column, codes_of(column.name, array))
    floats = floats_of(array)
    most = MOST_DECIMALS + 1 if column.decimals is None else column.decimals
    for decimals in range(FEWEST_DECIMALS, most):
        if np.count_nonzero(_round(floats, decimals) == floats) >= USUAL * len(floats):
            return replace(column, decimals=decimals)
    return column


def with_telling_digits(column: NumberColumn, array: pa.Array) -> NumberColumn:
    """Give a column of unrounded numbers the decimals that tell its values apart: others only say how it was computed.

    Two numbers that differ in their last bits alone would be counted as two values, of one person each.
    """
    if not pa.types.is_floating(column.type) or column.decimals is not None:
        return column
    floats = floats_of(array)
    ordered = np.sort(floats[~np.isnan(floats)])
    values = ordered[run_starts(ordered)]
    for decimals in range(FEWEST_DECIMALS, _MOST_TELLING):
        if len(run_starts(_round(values, decimals))) >= _TOLD_APART * len(values):
            return replace(column, decimals=decimals)
    return column


def _with_usual_steps(column: NumberColumn, numbers: Ints) -> NumberColumn:
    """Give whole numbers and decimals the largest steps of ten, hundred ... that most have, and their range."""
    low, high, step = int(column.low), int(column.high), 1
    if zero_of(column.type) or high - low >= 2**62:  # codes that do not count from 0, and sums that would not fit
        return column
    while 20 * step <= high - low and np.count_nonzero(numbers % (10 * step) == 0) >= USUAL * len(numbers):
        step *= 10
    if step <= column.step:
        return column
    return replace(column, low=-(-low // step) * step, high=high // step * step, step=step)


def _nearly_rounded(floats: Reals, decimals: int) -> bool:
    return bool((np.abs(_round(floats, decimals) - floats) <= _FLOATS_OFF * np.spacing(np.abs(floats))).all())


def _round(floats: Reals, decimals: int) -> Reals:
    return np.round(floats.astype(np.float64, copy=False), decimals).astype(floats.dtype, copy=False)
