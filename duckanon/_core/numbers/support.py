"""The unit and the outermost ends of a column, decided by at least k people; and round numbers to cut it at.

A unit and an end that one person decides would show that person's value in the labels of all others. So the unit is one
that the values of all but k - 1 people are multiples of, and an end is the k-th largest value where k people share it,
else where the largest of as many normal numbers would be expected, rounded outward. Values beyond the ends are coded as
the ends. Cuts lie at multiples of the largest power of ten, or where the longest period begins. All is one sort and a
few passes over the column.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from duckanon._core.common.arrays import Bools, Floats, Ints, is_time
from duckanon._core.common.labels import FIRST_DAY, LAST_DAY, MICROSECONDS_PER_DAY
from duckanon._core.common.people import count_people, find_first_and_last, number_pairs

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
        few = few or _are_none
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
        return np.rint(_scale_by_ten(values, self._digits))

    def values(self, whole: Floats) -> Floats:
        """Return what counts of units stand for."""
        return whole if self._digits is None else _scale_by_ten(whole, -self._digits)

    def roundest(self, low: Floats, high: Floats) -> Floats:
        """Find 0, or a multiple of the largest power of ten: one of 5, of 2, or the nearest to the middle."""
        if self.has_unit:
            high = high + 0.5  # so that `high` itself is allowed
        with np.errstate(all="ignore"):
            magnitude = np.floor(np.log10(np.maximum(abs(low), abs(high)))) + 1
        exponents = np.where(np.isfinite(magnitude), magnitude, 0).astype(np.int64)
        cuts = np.where((low < 0) & (high > 0), 0.0, np.nan)
        for _ in range(_DIGITS + 1):
            open_gaps = np.flatnonzero(np.isnan(cuts))
            if not len(open_gaps):
                break
            cuts[open_gaps] = _find_multiple_within(low[open_gaps], high[open_gaps], exponents[open_gaps])
            exponents -= 1
            if self.has_unit:
                exponents = np.maximum(exponents, 0)
        middle = low / 2 + high / 2
        middle = np.where((middle > low) & (middle < high), middle, high)
        return np.where(np.isnan(cuts), middle, cuts)

    def outward(self, least: Floats, largest: Floats, spreads: tuple[Floats, Floats]) -> tuple[Floats, Floats]:
        """Round by the coarsest of 1, 2, 5 times a power of ten."""
        low, high = least.copy(), largest.copy()
        for index, spread in enumerate(spreads):
            ends = (low, high)[index]
            wide = np.flatnonzero(spread >= 1 if self.has_unit else spread > 0)
            exponent = np.floor(np.log10(spread[wide])).astype(np.int64)
            unit = _scale_by_ten(spread[wide], -exponent)
            digit = np.where(unit >= 5, 5.0, np.where(unit >= 2, 2.0, 1.0))
            steps = np.floor(_scale_by_ten(ends[wide], -exponent) / digit) + index
            rounded = _scale_by_ten(steps * digit, exponent)
            if index == 0:
                low[wide] = np.minimum(rounded, ends[wide])
            else:
                high[wide] = np.maximum(rounded - 1 if self.has_unit else rounded, ends[wide])
        return low, high


def _are_none(rows: Ints) -> bool:
    return not len(rows)


def _scale_by_ten(values: Floats, exponent: Ints | int) -> Floats:
    """Multiply by powers of ten; by negative ones as a division, since 10.0 ** -3 is not exactly a thousandth."""
    exponents = np.clip(exponent, -300, 300)
    power = 10.0 ** abs(exponents)
    return np.asarray(np.where(exponents >= 0, values * power, values / power))


def _find_multiple_within(low: Floats, high: Floats, exponents: Ints) -> Floats:
    """Return the best multiple of 10^exponent between the ends of each gap; NaN where there is none.

    No gap holds a multiple of the next power of ten, so that its multiples differ in their last digit only.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        below, above = _scale_by_ten(low, -exponents), _scale_by_ten(high, -exponents)
    first, last = np.floor(below) + 1, np.ceil(above) - 1
    ten = np.floor(first / 10) * 10
    middle = (below + above) / 2
    five = (ten + 5 >= first) & (ten + 5 <= last)
    even = np.clip(2 * np.rint(middle / 2), 2 * np.ceil(first / 2), 2 * np.floor(last / 2))
    has_even = 2 * np.ceil(first / 2) <= 2 * np.floor(last / 2)
    best = np.where(ten == first, ten, np.where(five, ten + 5, np.where(has_even, even, first)))
    number = _scale_by_ten(best, exponents)
    return np.where((first <= last) & (low < number) & (number < high), number, np.nan)


class Calendar(Grid):
    """Moments in microseconds since 1970, in whole days, hours, minutes, ...; cut where long periods begin."""

    def __init__(self, unit: int) -> None:
        self._unit = unit

    @classmethod
    def of(cls, values: Floats, few: _Few | None = None) -> Calendar:
        """Find the longest unit of time that all values are multiples of, but for those of few people."""
        few = few or _are_none
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
        cuts = np.full(len(low), np.nan)
        for begin, length in _PERIODS:
            if length < self._unit or not np.isnan(cuts).any():
                break
            before, after = begin(middle, 0), begin(middle, 1)
            fits_before, fits_after = before > first, after <= last
            nearer = np.where(fits_after & (~fits_before | (after - middle < middle - before)), after, before)
            cuts = np.where(np.isnan(cuts) & (fits_before | fits_after), nearer, cuts)
        return self.whole(np.where(np.isnan(cuts), last, cuts))

    def outward(self, least: Floats, largest: Floats, spreads: tuple[Floats, Floats]) -> tuple[Floats, Floats]:
        """Round to where the longest period begins and ends."""
        low, high = least.copy(), largest.copy()
        moments = self.values(least), self.values(largest)
        done = np.zeros((2, len(low)), np.bool_)
        for begin, length in _ROUND_STEPS:
            for index, spread in enumerate(spreads):
                fits: Bools = ~done[index] & (spread * self._unit >= length) & (length >= self._unit)
                done[index] |= fits
                end = self.whole(begin(moments[index], index))
                if index == 0:
                    low = np.where(fits, end, low)
                else:
                    high = np.where(fits, end - 1, high)
        return low, high


def _begin_months(count: int) -> Callable[[Floats, int], Floats]:
    """Return where the period of so many months that holds each moment begins, or the next ones begin."""

    def begin(moments: Floats, later: int) -> Floats:
        days = np.floor(moments / MICROSECONDS_PER_DAY).astype(np.int64).astype("M8[D]")
        months = (days.astype("M8[M]").astype(np.int64) // count + later) * count
        starts = months.astype("M8[M]").astype("M8[D]").astype(np.int64)
        return np.asarray(starts * float(MICROSECONDS_PER_DAY), np.float64)

    return begin


def _begin_lengths(length: int) -> Callable[[Floats, int], Floats]:
    """Return the same for periods of so many microseconds."""
    return lambda moments, later: (np.floor(moments / length) + later) * length


_DAYS_OF_MONTH = 30
_LONG = tuple((_begin_months(n), n * _DAYS_OF_MONTH * MICROSECONDS_PER_DAY) for n in (120, 60, 12, 6, 3, 1))
_SHORT = {MICROSECONDS_PER_DAY: (20, 10, 5, 2, 1), _HOUR: (12, 6, 2, 1), _MINUTE: (30, 10, 5, 2, 1)}
_THOUSAND = (500, 200, 100, 50, 20, 10, 5, 2, 1)
_TINY = {_SECOND: (30, 10, 5, 2, 1), 1000: _THOUSAND, 1: _THOUSAND}
_ROUND_STEPS = (
    *_LONG,
    *((_begin_lengths(unit * n), unit * n) for unit, counts in (_SHORT | _TINY).items() for n in counts),
)
"""Periods to round by, longest first, and their lengths in microseconds."""
_PERIODS = tuple(
    period for period in _ROUND_STEPS if period[1] not in {n * MICROSECONDS_PER_DAY for n in (2, 5, 10, 20)}
)
"""Periods to cut at: so many days begin nowhere in particular."""


_MOST_ODD = 0.5
"""The share of the rows that a unit may round: one that hardly anybody has would round a small table to nothing."""
_FAR = 3  # interquartile ranges beyond the quartiles: Tukey's "far out"
_BEYOND = 0.1  # of a table of normal numbers, this many people are expected beyond an end
_SUPPORT_STEPS = 2  # of which at least so many fit between the median and an end, that is rounded by them


@dataclass(frozen=True)
class NumberSupport:
    """The unit and the ends of a column.

    Attributes:
        grid: What the values of all but at most k - 1 people are multiples of.
        low, high: The ends, beyond which fewer than k people lie.
        is_shared: Whether at least k people have the very value that the lower, the upper end is. Else it is a round
            number.
        is_far: Whether the lower, the upper end is a round number far beyond the rest of the column.
    """

    grid: Grid
    low: float
    high: float
    is_shared: tuple[bool, bool]
    is_far: tuple[bool, bool]

    def whole(self, values: Floats) -> Floats:
        """Count values in units, coded: rounded to whole ones, and none beyond the ends."""
        ends = self.grid.whole(np.array([self.low, self.high]))
        return np.clip(self.grid.whole(np.clip(values, self.low, self.high)), ends[0], ends[1])

    def round_and_clip(self, values: Floats) -> Floats:
        """Return values in the column's unit, and the end in place of what lies beyond."""
        return self.grid.values(self.whole(values))

    def beyond(self, values: Floats) -> tuple[Bools, Bools]:
        """Tell which values, in the column's unit, lie below and which above the ends."""
        rounded = self.grid.values(self.grid.whole(values))
        return rounded < self.low, rounded > self.high


def find_support(
    kind: pa.DataType | None,
    values: Floats,
    k: int,
    people: Ints | None = None,
    counts: Ints | None = None,
    *,
    is_exact: bool = False,
) -> NumberSupport:
    """Find the unit and the ends of a column, decided by k people.

    The upper end is the k-th largest value, in people, where k people share it: columns that were top-coded, and
    categories in numbers. Else it lies where the largest of as many normal numbers would be expected, given the median
    and the k-th largest value (in tables of fewer than 4 k people the upper quartile), rounded outward, and not beyond
    0 where that value is not. So nobody's value decides it alone, however far away it is, and few people are coded: of
    normal numbers mostly none, of heavy tails some.

    Args:
        counts: How many people have each value, where values are listed once.
        is_exact: Whether no value may be rounded: the unit is that of all values.
    """
    few = _make_few(k, people, counts)

    def odd(rows: Ints) -> bool:
        """Tell whether rows need not be multiples of the unit: in tables of fewer than 2 k people not most of them."""
        weight = len(rows) / len(values) if counts is None else counts[rows].sum() / counts.sum()
        return few(rows) and weight <= _MOST_ODD

    order = np.argsort(values, kind="stable")
    sides = _view_ends(values[order], *(None if column is None else column[order] for column in (people, counts)))
    total = max(sides[0].total, 1)
    supported = [side.at(k) for side in sides]
    is_shared = not few(np.flatnonzero(values == supported[0])), not few(np.flatnonzero(values == supported[1]))
    rank = min(k, -(-total // 4))
    inner, middle = [side.at(rank) for side in sides], sum(side.at(-(-total // 2)) / 2 for side in sides)
    reach = _count_deviations(_BEYOND / total) / _count_deviations(min(rank / total, 0.25))
    low = supported[0] if is_shared[0] else min(middle - (middle - inner[0]) * reach, inner[0])
    high = supported[1] if is_shared[1] else max(middle + (inner[1] - middle) * reach, inner[1])
    if inner[0] >= 0:
        low = max(low, 0.0)
    if inner[1] <= 0:
        high = min(high, 0.0)
    is_of_time = kind is not None and is_time(kind)
    if is_of_time:
        first, last = FIRST_DAY * MICROSECONDS_PER_DAY, LAST_DAY * MICROSECONDS_PER_DAY
        low, high = max(low, first), min(high, last)
    largest = max(abs(value) for value in supported)

    def find_grid(ends: tuple[float, float]) -> Grid:
        """Find the unit of the values between two ends: the others are coded anyway, and 0 is a multiple of all."""
        inside = np.where((values < ends[0]) | (values > ends[1]), 0.0, values)
        if is_of_time:
            return Calendar.of(inside, None if is_exact else odd)
        return Decimals.of(inside, None if is_exact else odd, largest)

    quartiles = [side.at(-(-total // 4)) for side in sides]
    far = _FAR * (quartiles[1] - quartiles[0])
    is_far = not is_shared[0] and low < quartiles[0] - far, not is_shared[1] and high > quartiles[1] + far
    grid = find_grid((low, high))
    ends = _round_ends(grid, (low, high), inner, middle, is_shared)
    if ((ends[0] <= values) & (values < low) | (high < values) & (values <= ends[1])).any():
        # a coarse unit rounds the ends as far as over values that it was not found for
        grid = find_grid(ends)
        ends = _round_ends(grid, (low, high), inner, middle, is_shared)
    return NumberSupport(grid, *ends, is_shared, is_far)


class _ColumnEnd(NamedTuple):
    """A column from one end on: the people up to each value or, if listed, the places where more people come up."""

    values: Floats
    reached: Ints
    is_listed: bool

    @property
    def total(self) -> int:
        """The number of people."""
        return len(self.reached) if self.is_listed else int(self.reached[-1])

    def at(self, rank: int) -> float:
        """Return the first value up to which there are so many people."""
        if not self.is_listed:
            index = int(np.searchsorted(self.reached, rank))
        elif len(self.reached):
            index = int(self.reached[min(rank, len(self.reached)) - 1])
        else:
            index = 0
        return float(self.values[min(index, len(self.values) - 1)])


def _view_ends(column: Floats, people: Ints | None, counts: Ints | None) -> tuple[_ColumnEnd, _ColumnEnd]:
    """Return an ascending column from both ends."""
    if counts is not None:
        return _ColumnEnd(column, np.cumsum(counts), False), _ColumnEnd(column[::-1], np.cumsum(counts[::-1]), False)
    indexes = np.arange(len(column)), np.arange(len(column))
    if people is not None:
        firsts, lasts = find_first_and_last(number_pairs(np.zeros(len(people), np.int64), people))
        indexes = firsts, len(column) - 1 - lasts[::-1]
    return _ColumnEnd(column, indexes[0], True), _ColumnEnd(column[::-1], indexes[1], True)


def _make_few(k: int, people: Ints | None, counts: Ints | None) -> Callable[[Ints], bool]:
    """Return what tells whether rows are those of fewer than k people."""

    def few(rows: Ints) -> bool:
        if counts is not None:
            return bool(counts[rows].sum() < k)
        if people is None or len(rows) < k:
            return len(rows) < k
        return bool(count_people(np.zeros(len(rows), np.int64), people[rows], 1)[0] < k)

    return few


def _count_deviations(share: float) -> float:
    """Return how many standard deviations above the mean of normal numbers such a share of them begins."""
    return -NormalDist().inv_cdf(share)


def _round_ends(
    grid: Grid, ends: tuple[float, float], inner: list[float], middle: float, is_shared: tuple[bool, bool]
) -> tuple[float, float]:
    """Round ends outward that are nobody's shared value, never to a unit within the values that they were set by."""
    least, median, largest = (grid.whole(np.array([number])) for number in (ends[0], middle, ends[1]))
    least = least - (grid.values(least) > inner[0])
    largest = largest + (grid.values(largest) < inner[1])
    outward = grid.outward(least, largest, ((median - least) / _SUPPORT_STEPS, (largest - median) / _SUPPORT_STEPS))
    rounded = [float(grid.values(end)[0]) for end in outward]
    return ends[0] if is_shared[0] else rounded[0], ends[1] if is_shared[1] else rounded[1]
