"""Ends of boxes: grown outward to readable numbers, and written in the types of their columns.

The step is the coarsest of 1, 2, 5 times a power of ten that is at most a tenth of the box's width, so that rounding
adds at most a fifth to it. All ends of a column are rounded at once.
"""

from __future__ import annotations

import decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from duckanon._core.common.arrays import Floats
from duckanon._core.common.labels import MICROSECONDS_PER_DAY

HIGH_PREFIX = "_duckanon_hi "
"""The prefix of names of columns of upper ends, on their way to SQL."""

_ROUNDED = 2.0**50  # decimals of more units may be one unit off after the way to a double and back

Ends = tuple[pa.Array, pa.Array]


def round_outward(lower: Floats, upper: Floats) -> tuple[Floats, Floats]:
    """Grow intervals to multiples of 1, 2 or 5 times a power of ten.

    The step is the coarsest of 1, 2, 5 times a power of ten that is at most a tenth of the interval's width, so that
    rounding adds at most a fifth to it and no end has more digits than that needs. The step of an interval without
    width is that of a tenth of its value's magnitude. Where a double cannot carry the step the end stays as it is.

    Examples:
        >>> low, high = round_outward(np.array([1234.5]), np.array([6789.1]))
        >>> low.tolist(), high.tolist()
        ([1000.0], [7000.0])
    """
    low, high = np.asarray(lower, dtype=np.float64), np.asarray(upper, dtype=np.float64)
    width = high / 10 - low / 10
    width = np.where(width > 0, width, np.maximum(abs(low), abs(high)) / 10)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        power = np.floor(np.log10(np.where(width > 0, width, 1.0)))
        unit = width / 10.0**power
        digit = np.where(unit >= 5, 5.0, np.where(unit >= 2, 2.0, 1.0))
        # Multiples of 0.05 are found as (n * 5) / 100: a division by a power of ten is rounded once, so prints short.
        down, up = _find_multiple(low, digit, power, np.floor), _find_multiple(high, digit, power, np.ceil)
    return np.where(np.isfinite(down) & (down <= low), down, low), np.where(np.isfinite(up) & (up >= high), up, high)


def _find_multiple(values: Floats, digit: Floats, power: Floats, towards: np.ufunc) -> Floats:
    """Return the multiple of digit * 10^power below or above each value."""
    tens = 10.0 ** abs(power)
    coarse = power >= 0
    steps = towards(np.where(coarse, values / (digit * tens), values * tens / digit)) * digit
    result = np.where(coarse, steps * tens, steps / tens)
    # The division may have been rounded to a whole number on the wrong side of the value.
    wrong, further = (result > values, -digit) if towards is np.floor else (result < values, digit)
    return np.asarray(np.where(wrong, np.where(coarse, (steps + further) * tens, (steps + further) / tens), result))


def cast_ends(kind: pa.DataType, lower: Floats, upper: Floats, has_unit: bool = False) -> Ends:
    """Write ends in a column's own type.

    A cell ends midway between values. Where a type has only whole numbers, days or so many decimals, no other value
    lies between that and the next value inside: ends are rounded inward, and lose nothing. Ends of parts are whole
    already.
    """
    unit = unit_of(kind)
    if pa.types.is_floating(kind):
        return pa.array(lower).cast(kind, safe=False), pa.array(upper).cast(kind, safe=False)
    if has_unit and pa.types.is_decimal(kind):
        low, high = np.rint(lower * 10.0**kind.scale), np.rint(upper * 10.0**kind.scale)
        if max(abs(low).max(), abs(high).max()) > _ROUNDED:
            low, high = low - 1, high + 1
    else:
        low, high = np.ceil(lower / unit - 1e-6), np.floor(upper / unit + 1e-6)
    if is_day(kind):
        return tuple(pa.array(end.astype(np.int32)).cast(pa.date32()) for end in (low, high))
    if pa.types.is_timestamp(kind):
        return _cast_moments(kind, low * unit, high * unit)
    if pa.types.is_decimal(kind):
        most = float(10.0**kind.precision - 1)
        whole = (np.clip(end, -most, most).astype(np.int64).tolist() for end in (low, high))
        return tuple(pa.array([decimal.Decimal(n).scaleb(-kind.scale) for n in end], kind) for end in whole)
    dtype = np.dtype(f"{'u' if pa.types.is_unsigned_integer(kind) else ''}int{kind.bit_width}")
    bounds = np.iinfo(dtype)
    return tuple(pa.array(np.clip(end, bounds.min, bounds.max).astype(dtype)) for end in (low, high))


def _cast_moments(kind: pa.DataType, low: Floats, high: Floats) -> Ends:
    """Write microseconds as timestamps. Nanoseconds were cut off the values, so that upper ends hold all of them."""
    lower, upper = (pa.array(end.astype(np.int64)).cast(pa.timestamp("us", kind.tz)).cast(kind) for end in (low, high))
    if kind.unit == "ns":
        upper = pc.add(upper.cast(pa.int64()), 999).cast(kind)
    return lower, upper


def is_day(kind: pa.DataType) -> bool:
    """Tell whether a type holds days."""
    return bool(pa.types.is_date(kind))


def unit_of(kind: pa.DataType) -> float:
    """Return the least distance of two values of a type, in the numbers that are computed with."""
    if is_day(kind):
        return MICROSECONDS_PER_DAY
    if pa.types.is_timestamp(kind):
        return {"s": 1e6, "ms": 1e3}.get(kind.unit, 1.0)
    if pa.types.is_decimal(kind):
        return float(10.0**-kind.scale)
    return 1.0
