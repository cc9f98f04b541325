"""Rules about two columns, and the rows that break them: choices that exclude each other, limits, numbers in order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from duckanon._core.common.arrays import Bools, Floats, Ints


class Rows(NamedTuple):
    """Rows of a table or of a release, by column.

    Attributes:
        codes: The choices; -1 where it is none that the original has.
        numbers: The regular numbers, NaN where there is none.
    """

    codes: Mapping[int, Ints]
    numbers: Mapping[int, Floats]


@dataclass(frozen=True)
class AllowedPairs:
    """Choices of two columns, and which go together."""

    first: int
    second: int
    allowed: Bools

    def broken(self, rows: Rows) -> Bools:
        """Tell which rows have two choices that exclude each other."""
        one, other = rows.codes[self.first], rows.codes[self.second]
        return np.asarray((one >= 0) & (other >= 0) & ~self.allowed[one, other])


@dataclass(frozen=True)
class AllowedRanges:
    """The numbers of a column, which lie between two limits, exclusive, where a choice is made in another."""

    number: int
    column: int
    low: Floats
    high: Floats

    def broken(self, rows: Rows) -> Bools:
        """Tell which rows have a number beyond the limits of their choice."""
        codes, numbers = rows.codes[self.column], rows.numbers[self.number]
        return np.asarray((codes >= 0) & ((numbers <= self.low[codes]) | (numbers >= self.high[codes])))


@dataclass(frozen=True)
class Ordered:
    """Two numbers, of which the first plus an offset is never above the second, but for a rounding error."""

    first: int
    second: int
    offset: float = 0.0
    error: float = 0.0

    def broken(self, rows: Rows) -> Bools:
        """Tell which rows have them in another order."""
        return np.asarray(rows.numbers[self.first] + (self.offset - self.error) > rows.numbers[self.second])


@dataclass(frozen=True)
class Implications:
    """The rules of a table."""

    pairs: Sequence[AllowedPairs]
    ranges: Sequence[AllowedRanges]
    ordered: Sequence[Ordered]

    def broken(self, rows: Rows) -> Bools:
        """Tell which rows break a rule, of those whose columns are all there."""
        found = np.zeros(len(next(iter(rows.codes.values()))), np.bool_)
        for pair in self.pairs:
            if pair.first in rows.codes and pair.second in rows.codes:
                found |= pair.broken(rows)
        for limits in self.ranges:
            if limits.number in rows.numbers and limits.column in rows.codes:
                found |= limits.broken(rows)
        for order in self.ordered:
            if order.first in rows.numbers and order.second in rows.numbers:
                found |= order.broken(rows)
        return found

    def choice_limits(self, index: int, rows: Rows) -> Iterator[tuple[Ints, Bools]]:
        """Return the choices that a column may have, by what is drawn: classes of rows, and the choices of each."""
        for pair in self.pairs:
            if pair.second == index and pair.first in rows.codes:
                yield rows.codes[pair.first], pair.allowed
            elif pair.first == index and pair.second in rows.codes:
                yield rows.codes[pair.second], pair.allowed.T
        for limits in self.ranges:
            if limits.column == index and limits.number in rows.numbers:
                numbers = rows.numbers[limits.number]
                edges = np.unique(np.concatenate([limits.low, limits.high]))
                edges = edges[np.isfinite(edges)]
                points = np.sort(np.concatenate([edges, np.nextafter(edges, np.inf)]))  # from here on another class
                starts = np.concatenate([[-np.inf], points])
                allowed = (starts[:, None] > limits.low) & (starts[:, None] < limits.high)
                allowed[0] |= np.isinf(limits.low)  # which nothing is below
                allowed = np.vstack([allowed, np.ones((1, len(limits.low)), np.bool_)])
                classes = np.searchsorted(points, np.where(np.isnan(numbers), 0.0, numbers), "right")
                yield np.where(np.isnan(numbers), len(starts), classes), allowed

    def number_limits(self, index: int, rows: Rows, among: Ints) -> tuple[Floats, Floats] | None:
        """Return the lowest and the highest number that new rows may have in a column; None where no rule says."""
        low, high = np.full(len(among), -np.inf), np.full(len(among), np.inf)
        is_limited = False
        for limits in self.ranges:
            if limits.number == index and limits.column in rows.codes:
                codes = rows.codes[limits.column][among]
                low = np.maximum(low, np.nextafter(limits.low[codes], np.inf))
                high = np.minimum(high, np.nextafter(limits.high[codes], -np.inf))
                is_limited = True
        for order in self.ordered:
            if order.first == index and order.second in rows.numbers:
                high = np.fmin(high, rows.numbers[order.second][among] - (order.offset - order.error))
                is_limited = True
            elif order.second == index and order.first in rows.numbers:
                low = np.fmax(low, rows.numbers[order.first][among] + (order.offset - order.error))
                is_limited = True
        return (low, high) if is_limited else None
