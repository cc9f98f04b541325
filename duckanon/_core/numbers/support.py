"""The unit and the outermost ends of a column, decided by at least k people; values beyond them are coded.

A unit and an end that one person decides would show that person's value in the labels of all others.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from duckanon._core.common.arrays import Bools, Floats, Ints, is_time
from duckanon._core.common.labels import FIRST_DAY, LAST_DAY, MICROSECONDS_PER_DAY
from duckanon._core.common.people import numbered_pairs, occurrences, people_in
from duckanon._core.numbers.grids import Calendar, Decimals, Grid

_MOST_ODD = 0.5
"""The share of the rows that a unit may round: one that hardly anybody has would round a small table to nothing."""
_FAR = 3  # interquartile ranges beyond the quartiles: Tukey's "far out"
_BEYOND = 0.1  # of a table of normal numbers, this many people are expected beyond an end
_STEPS = 2  # of which at least so many fit between the median and an end, that is rounded by them


@dataclass(frozen=True)
class Support:
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

    def coded(self, values: Floats) -> Floats:
        """Return values in the column's unit, and the end in place of what lies beyond."""
        return self.grid.values(self.whole(values))

    def beyond(self, values: Floats) -> tuple[Bools, Bools]:
        """Tell which values, in the column's unit, lie below and which above the ends."""
        rounded = self.grid.values(self.grid.whole(values))
        return rounded < self.low, rounded > self.high


def column_support(
    kind: pa.DataType | None,
    values: Floats,
    k: int,
    people: Ints | None = None,
    counts: Ints | None = None,
    *,
    is_exact: bool = False,
) -> Support:
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
    few = _fewer(k, people, counts)

    def odd(rows: Ints) -> bool:
        """Tell whether rows need not be multiples of the unit: in tables of fewer than 2 k people not most of them."""
        weight = len(rows) / len(values) if counts is None else counts[rows].sum() / counts.sum()
        return few(rows) and weight <= _MOST_ODD

    order = np.argsort(values, kind="stable")
    sides = _sides(values[order], *(None if given is None else given[order] for given in (people, counts)))
    total = max(sides[0].total, 1)
    supported = [side.at(k) for side in sides]
    is_shared = not few(np.flatnonzero(values == supported[0])), not few(np.flatnonzero(values == supported[1]))
    rank = min(k, -(-total // 4))
    inner, middle = [side.at(rank) for side in sides], sum(side.at(-(-total // 2)) / 2 for side in sides)
    reach = _deviations(_BEYOND / total) / _deviations(min(rank / total, 0.25))
    low = supported[0] if is_shared[0] else min(middle - (middle - inner[0]) * reach, inner[0])
    high = supported[1] if is_shared[1] else max(middle + (inner[1] - middle) * reach, inner[1])
    if inner[0] >= 0:
        low = max(low, 0.0)
    if inner[1] <= 0:
        high = min(high, 0.0)
    if kind is not None and is_time(kind):
        first, last = FIRST_DAY * MICROSECONDS_PER_DAY, LAST_DAY * MICROSECONDS_PER_DAY
        low, high = max(low, first), min(high, last)
        grid: Grid = Calendar.of(_inside(values, low, high), None if is_exact else odd)
    else:
        largest = max(abs(value) for value in supported)
        grid = Decimals.of(_inside(values, low, high), None if is_exact else odd, largest)
    quartiles = [side.at(-(-total // 4)) for side in sides]
    far = _FAR * (quartiles[1] - quartiles[0])
    is_far = not is_shared[0] and low < quartiles[0] - far, not is_shared[1] and high > quartiles[1] + far
    return Support(grid, *_rounded(grid, (low, high), inner, middle, is_shared), is_shared, is_far)


class _Side(NamedTuple):
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
            place = int(np.searchsorted(self.reached, rank))
        elif len(self.reached):
            place = int(self.reached[min(rank, len(self.reached)) - 1])
        else:
            place = 0
        return float(self.values[min(place, len(self.values) - 1)])


def _sides(column: Floats, people: Ints | None, counts: Ints | None) -> tuple[_Side, _Side]:
    """Return an ascending column from both ends."""
    if counts is not None:
        return _Side(column, np.cumsum(counts), False), _Side(column[::-1], np.cumsum(counts[::-1]), False)
    places = np.arange(len(column)), np.arange(len(column))
    if people is not None:
        firsts, lasts = occurrences(numbered_pairs(np.zeros(len(people), np.int64), people))
        places = firsts, len(column) - 1 - lasts[::-1]
    return _Side(column, places[0], True), _Side(column[::-1], places[1], True)


def _fewer(k: int, people: Ints | None, counts: Ints | None) -> Callable[[Ints], bool]:
    """Return what tells whether rows are those of fewer than k people."""

    def few(rows: Ints) -> bool:
        if counts is not None:
            return bool(counts[rows].sum() < k)
        if people is None or len(rows) < k:
            return len(rows) < k
        return bool(people_in(np.zeros(len(rows), np.int64), people[rows], 1)[0] < k)

    return few


def _inside(values: Floats, low: float, high: float) -> Floats:
    """Return values with 0, a multiple of every unit, in place of those beyond the ends: they are coded anyway."""
    return np.where((values < low) | (values > high), 0.0, values)


def _deviations(share: float) -> float:
    """Return how many standard deviations above the mean of normal numbers such a share of them begins."""
    return -NormalDist().inv_cdf(share)


def _rounded(
    grid: Grid, ends: tuple[float, float], inner: list[float], middle: float, is_shared: tuple[bool, bool]
) -> tuple[float, float]:
    """Round ends outward that are nobody's shared value, never to a unit within the values that they were set by."""
    least, median, largest = (grid.whole(np.array([number])) for number in (ends[0], middle, ends[1]))
    least = least - (grid.values(least) > inner[0])
    largest = largest + (grid.values(largest) < inner[1])
    outward = grid.outward(least, largest, ((median - least) / _STEPS, (largest - median) / _STEPS))
    rounded = [float(grid.values(end)[0]) for end in outward]
    return ends[0] if is_shared[0] else rounded[0], ends[1] if is_shared[1] else rounded[1]
