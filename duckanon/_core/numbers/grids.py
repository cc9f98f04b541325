"""The unit of a column, and the round numbers and moments to cut it at."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

import numpy as np

from duckanon._core.common.arrays import Bools, Floats, Ints
from duckanon._core.common.labels import MICROSECONDS_PER_DAY

_EXACT = 2.0**50  # whole numbers up to here survive a division and a multiplication by a power of ten
_DIGITS = 17  # that tell two doubles apart
_SAMPLE = 1000  # values that show of most columns that a unit does not fit
_Few = Callable[[Ints], bool]  # tells whether rows are those of fewer than k people

_HOUR, _MINUTE, _SECOND = 3_600_000_000, 60_000_000, 1_000_000


class Grid(ABC):
    """The units of a column: `whole` counts in them, `values` is the way back.

    Where there is no unit, `has_unit` is false, and both leave the values as they are.
    """

    has_unit = True

    @abstractmethod
    def whole(self, values: Floats) -> Floats:
        """Count values in units."""

    @abstractmethod
    def values(self, whole: Floats) -> Floats:
        """Return what counts of units stand for."""

    @abstractmethod
    def roundest(self, low: Floats, high: Floats) -> Floats:
        """Find the roundest number above each `low` and at most `high`; below it, where there is no unit."""

    @abstractmethod
    def outward(self, least: Floats, largest: Floats, spreads: tuple[Floats, Floats]) -> tuple[Floats, Floats]:
        """Round the smallest values down, the largest up, by a step that is not above their part's spread."""


class Decimals(Grid):
    """Multiples of a power of ten, or numbers without a unit.

    Examples:
        >>> grid = Decimals.of(np.array([36.6, 37.25, 40.0]))
        >>> grid.whole(np.array([36.6])).tolist(), grid.roundest(np.array([3660.0]), np.array([3725.0])).tolist()
        ([3660.0], [3700.0])
    """

    def __init__(self, digits: int | None) -> None:
        self._digits, self.has_unit = digits, digits is not None

    @classmethod
    def of(cls, values: Floats, few: _Few | None = None, largest: float | None = None) -> Decimals:
        """Find the largest power of ten, up to `largest`, that all values but few people's are multiples of."""
        few = few or _nobody
        most = float(np.abs(values).max(initial=0.0))
        largest = most if largest is None else largest
        if most > _EXACT:
            return cls(None)
        if cls(0)._fits(values, few):
            digits = 0
            while 10.0 ** (1 - digits) <= largest and cls(digits - 1)._fits(values, few):
                digits -= 1
            return cls(digits)
        for digits in range(1, _DIGITS):
            if most * 10.0**digits > _EXACT:
                break
            if cls(digits)._fits(values[:_SAMPLE], few) and cls(digits)._fits(values, few):
                return cls(digits)
        return cls(None)

    def _fits(self, values: Floats, few: _Few) -> bool:
        return few(np.flatnonzero(self.values(self.whole(values)) != values))

    def whole(self, values: Floats) -> Floats:
        """Count values in units."""
        if self._digits is None:
            return values
        return np.rint(_scaled(values, self._digits))

    def values(self, whole: Floats) -> Floats:
        """Return what counts of units stand for."""
        return whole if self._digits is None else _scaled(whole, -self._digits)

    def roundest(self, low: Floats, high: Floats) -> Floats:
        """Find 0, or a multiple of the largest power of ten: one of 5, of 2, or the nearest to the middle."""
        if self.has_unit:
            high = high + 0.5  # so that `high` itself is allowed
        with np.errstate(all="ignore"):
            magnitude = np.floor(np.log10(np.maximum(abs(low), abs(high)))) + 1
        exponents = np.where(np.isfinite(magnitude), magnitude, 0).astype(np.int64)
        found = np.where((low < 0) & (high > 0), 0.0, np.nan)
        for _ in range(_DIGITS + 1):
            open_gaps = np.flatnonzero(np.isnan(found))
            if not len(open_gaps):
                break
            found[open_gaps] = _multiple_within(low[open_gaps], high[open_gaps], exponents[open_gaps])
            exponents -= 1
            if self.has_unit:
                exponents = np.maximum(exponents, 0)
        middle = low / 2 + high / 2
        middle = np.where((middle > low) & (middle < high), middle, high)
        return np.where(np.isnan(found), middle, found)

    def outward(self, least: Floats, largest: Floats, spreads: tuple[Floats, Floats]) -> tuple[Floats, Floats]:
        """Round by the coarsest of 1, 2, 5 times a power of ten."""
        low, high = least.copy(), largest.copy()
        for place, spread in enumerate(spreads):
            ends = (low, high)[place]
            wide = np.flatnonzero(spread >= 1 if self.has_unit else spread > 0)
            exponent = np.floor(np.log10(spread[wide])).astype(np.int64)
            unit = _scaled(spread[wide], -exponent)
            digit = np.where(unit >= 5, 5.0, np.where(unit >= 2, 2.0, 1.0))
            steps = np.floor(_scaled(ends[wide], -exponent) / digit) + place
            rounded = _scaled(steps * digit, exponent)
            if place == 0:
                low[wide] = np.minimum(rounded, ends[wide])
            else:
                high[wide] = np.maximum(rounded - 1 if self.has_unit else rounded, ends[wide])
        return low, high


def _nobody(rows: Ints) -> bool:
    return not len(rows)


def _scaled(values: Floats, exponent: Ints | int) -> Floats:
    """Multiply by powers of ten; by negative ones as a division, since 10.0 ** -3 is not exactly a thousandth."""
    exponents = np.clip(exponent, -300, 300)
    power = 10.0 ** abs(exponents)
    return np.asarray(np.where(exponents >= 0, values * power, values / power))


def _multiple_within(low: Floats, high: Floats, exponents: Ints) -> Floats:
    """Return the best multiple of 10^exponent between the ends of each gap; NaN where there is none.

    No gap holds a multiple of the next power of ten, so that its multiples differ in their last digit only.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        below, above = _scaled(low, -exponents), _scaled(high, -exponents)
    first, last = np.floor(below) + 1, np.ceil(above) - 1
    ten = np.floor(first / 10) * 10
    middle = (below + above) / 2
    five = (ten + 5 >= first) & (ten + 5 <= last)
    even = np.clip(2 * np.rint(middle / 2), 2 * np.ceil(first / 2), 2 * np.floor(last / 2))
    has_even = 2 * np.ceil(first / 2) <= 2 * np.floor(last / 2)
    best = np.where(ten == first, ten, np.where(five, ten + 5, np.where(has_even, even, first)))
    number = _scaled(best, exponents)
    return np.where((first <= last) & (low < number) & (number < high), number, np.nan)


class Calendar(Grid):
    """Moments in microseconds since 1970, in whole days, hours, minutes, ...; cut where long periods begin."""

    def __init__(self, unit: int) -> None:
        self._unit = unit

    @classmethod
    def of(cls, values: Floats, few: _Few | None = None) -> Calendar:
        """Find the longest unit of time that all values are multiples of, but for those of few people."""
        few = few or _nobody
        units = (MICROSECONDS_PER_DAY, _HOUR, _MINUTE, _SECOND, 1000, 1)
        return cls(next(unit for unit in units if unit == 1 or few(np.flatnonzero(np.fmod(values, unit)))))

    def whole(self, values: Floats) -> Floats:
        """Count values in units."""
        return np.floor(values / self._unit)

    def values(self, whole: Floats) -> Floats:
        """Return what counts of units stand for."""
        return whole * self._unit

    def roundest(self, low: Floats, high: Floats) -> Floats:
        """Find the beginning of a decade, ..., a day, an hour, ...; of several the nearest to the middle."""
        first, last = self.values(low), self.values(high)
        middle = np.floor(low / 2 + high / 2) * self._unit
        found = np.full(len(low), np.nan)
        for begin, length in _PERIODS:
            if length < self._unit or not np.isnan(found).any():
                break
            before, after = begin(middle, 0), begin(middle, 1)
            fits_before, fits_after = before > first, after <= last
            nearer = np.where(fits_after & (~fits_before | (after - middle < middle - before)), after, before)
            found = np.where(np.isnan(found) & (fits_before | fits_after), nearer, found)
        return self.whole(np.where(np.isnan(found), last, found))

    def outward(self, least: Floats, largest: Floats, spreads: tuple[Floats, Floats]) -> tuple[Floats, Floats]:
        """Round to where the longest period begins and ends."""
        low, high = least.copy(), largest.copy()
        moments = self.values(least), self.values(largest)
        done = np.zeros((2, len(low)), np.bool_)
        for begin, length in _STEPS:
            for place, spread in enumerate(spreads):
                fits: Bools = ~done[place] & (spread * self._unit >= length) & (length >= self._unit)
                done[place] |= fits
                end = self.whole(begin(moments[place], place))
                if place == 0:
                    low = np.where(fits, end, low)
                else:
                    high = np.where(fits, end - 1, high)
        return low, high


def _months(count: int) -> Callable[[Floats, int], Floats]:
    """Return where the period of so many months that holds each moment begins, or the next ones begin."""

    def begin(moments: Floats, later: int) -> Floats:
        days = np.floor(moments / MICROSECONDS_PER_DAY).astype(np.int64).astype("M8[D]")
        months = (days.astype("M8[M]").astype(np.int64) // count + later) * count
        starts = months.astype("M8[M]").astype("M8[D]").astype(np.int64)
        return np.asarray(starts * float(MICROSECONDS_PER_DAY), np.float64)

    return begin


def _lengths(length: int) -> Callable[[Floats, int], Floats]:
    """Return the same for periods of so many microseconds."""
    return lambda moments, later: (np.floor(moments / length) + later) * length


_DAYS_OF_MONTH = 30
_LONG = tuple((_months(n), n * _DAYS_OF_MONTH * MICROSECONDS_PER_DAY) for n in (120, 60, 12, 6, 3, 1))
_SHORT = {MICROSECONDS_PER_DAY: (20, 10, 5, 2, 1), _HOUR: (12, 6, 2, 1), _MINUTE: (30, 10, 5, 2, 1)}
_THOUSAND = (500, 200, 100, 50, 20, 10, 5, 2, 1)
_TINY = {_SECOND: (30, 10, 5, 2, 1), 1000: _THOUSAND, 1: _THOUSAND}
_STEPS = (*_LONG, *((_lengths(unit * n), unit * n) for unit, counts in (_SHORT | _TINY).items() for n in counts))
"""Periods to round by, longest first, and their lengths in microseconds."""
_PERIODS = tuple(period for period in _STEPS if period[1] not in {n * MICROSECONDS_PER_DAY for n in (2, 5, 10, 20)})
"""Periods to cut at: so many days begin nowhere in particular."""
