"""Rules that hold for everybody in a table: choices that exclude each other, numbers within limits, numbers in order.

A rule is only found where chance would break it for many people, and its limits are values that at least k people stand
behind: neither a rule nor a limit is that of a single person.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from duckanon._core.common import progress
from duckanon._core.common.arrays import Bools, Floats, Ints, is_number
from duckanon._core.common.people import people_in
from duckanon._core.encoding.parts import ColumnParts
from duckanon._methods.synthesize.sequential_trees import counted, person_weights

EXPECTED = 20
"""People, at least, who would break a rule if the two columns had nothing to do with each other: by chance none of them
does once in half a billion."""
_MOST_CUTS = 200  # limits that are tried in a column
_MOST_PAIRS = 250_000  # of choices of two columns
_ORDERED = 0.01  # the share of rows that would be out of order by chance, at least
_GLANCED_AT = 2_000  # rows that show most pairs of numbers to be in no order
_ROUND = 0.04  # of the distance of the outermost limits: they are rounded to the power of ten below


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
    """Two numbers, of which the first is never above the second."""

    first: int
    second: int

    def broken(self, rows: Rows) -> Bools:
        """Tell which rows have them in another order."""
        return np.asarray(rows.numbers[self.first] > rows.numbers[self.second])


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
                high = np.fmin(high, rows.numbers[order.second][among])
                is_limited = True
            elif order.second == index and order.first in rows.numbers:
                low = np.fmax(low, rows.numbers[order.first][among])
                is_limited = True
        return (low, high) if is_limited else None


def rows_of(columns: Sequence[ColumnParts]) -> Rows:
    """Return the rows of a table that was split."""
    numbers = {
        index: np.where(column.is_regular, column.numbers(), np.nan)
        for index, column in enumerate(columns)
        if column.regular is not None
    }
    return Rows({index: column.codes for index, column in enumerate(columns)}, numbers)


def found_implications(
    columns: Sequence[ColumnParts], left_out: Sequence[int], people: Ints | None, k: int, exceptions: int
) -> Implications:
    """Find the rules of a table.

    Args:
        columns: Those of the table.
        left_out: The columns of which no rule is looked for.
        people: Whose each row is.
        k: The least number of people who make a choice, and who are beyond a limit.
        exceptions: The rows that may break a rule. A release takes two, so that one person more or less who does never
            shows in it.
    """
    rows = rows_of(columns)
    weights = person_weights(people)
    everybody = float(len(columns[0].codes) if weights is None else weights.sum())
    expected = max(EXPECTED, 2 * k)
    chosen = [index for index, column in enumerate(columns) if column.choices > 1 and index not in left_out]
    holders = {index: people_in(rows.codes[index], people, columns[index].choices) for index in chosen}
    pairs, ranges = [], []
    for place, first in enumerate(chosen):
        for second in chosen[place + 1 :]:
            progress.check()
            if columns[first].choices * columns[second].choices > _MOST_PAIRS:
                continue
            chance = np.outer(holders[first], holders[second]) / everybody
            if chance.max() < expected:
                continue
            both = rows.codes[first] * columns[second].choices + rows.codes[second]
            counts = np.bincount(both, minlength=chance.size).reshape(chance.shape)
            allowed = (counts > exceptions) | (chance < expected)
            if not allowed.all():
                pairs.append(AllowedPairs(first, second, allowed))
    for number in rows.numbers:
        if number in left_out:
            continue
        known = np.flatnonzero(~np.isnan(rows.numbers[number]))
        values = rows.numbers[number][known]
        whose = None if weights is None else weights[known]
        cuts = _safe_cuts(values, whose, k)
        below, above = np.searchsorted(cuts, values, "left"), np.searchsorted(cuts, values, "right")
        for column in chosen:
            progress.check()
            if column != number and len(cuts):
                codes, shape = rows.codes[column][known], (len(cuts) + 1, columns[column].choices)
                low, high = (
                    _limits(
                        cuts,
                        counted(classes, codes, shape, None),
                        counted(classes, codes, shape, whose),
                        (exceptions, expected),
                        from_below=classes is below,
                    )
                    for classes in (below, above)
                )
                if np.isfinite(low).any() or np.isfinite(high).any():
                    ranges.append(AllowedRanges(number, column, low, high))
    return Implications(pairs, ranges, _found_orders(columns, rows, left_out, exceptions, expected))


def _safe_cuts(values: Floats, weights: Floats | None, k: int) -> Floats:
    """Return values that at least k people stand behind: those that they share, and rounded medians of neighbours.

    Medians and the unit of rounding depend on ranks: one person's fortune does not show in a limit.
    """
    distinct, place = np.unique(values, return_inverse=True)
    held = np.bincount(place, weights, len(distinct)).astype(np.float64)
    size = max(float(k), held.sum() / _MOST_CUTS)
    is_shared = held >= size
    rest = np.flatnonzero(~is_shared)
    if not len(rest):
        return distinct
    up_to = np.cumsum(held[rest])
    block = ((up_to - held[rest]) / size).astype(np.int64)
    totals = np.bincount(block, held[rest])
    middles = np.searchsorted(up_to, np.cumsum(totals) - totals / 2)[totals >= k]
    medians = distinct[rest[middles]]
    if len(medians) > 1:
        unit = 10.0 ** np.floor(np.log10(_ROUND * (medians[-1] - medians[0])))
        medians = np.rint(medians / unit) * unit
    return np.unique(np.concatenate([distinct[is_shared], medians]))


def _limits(cuts: Floats, rows: Floats, people: Floats, allowed: tuple[int, int], *, from_below: bool) -> Floats:
    """Return the farthest cut up to which a choice is made by nobody, for each choice; infinite where there is none.

    A row of class c from below is at most cut c, and at least cut c - 1 from above.

    Args:
        cuts: The limits that are tried.
        rows, people: How many have each choice, by class.
        allowed: The rows that may be beyond a limit, and the least number of people who would be by chance.
        from_below: Which limit is looked for.
    """
    exceptions, expected = allowed
    made, weight = (
        np.cumsum(one[:-1], axis=0) if from_below else np.cumsum(one[:0:-1], axis=0)[::-1] for one in (rows, people)
    )
    totals = people.sum(axis=0)
    by_chance = weight.sum(axis=1, keepdims=True) * totals / max(float(totals.sum()), 1e-12)
    is_limit = (made <= exceptions) & (by_chance >= expected)
    if from_below:
        last = len(cuts) - 1 - is_limit[::-1].argmax(axis=0)
        return np.where(is_limit.any(axis=0), cuts[last], -np.inf)
    return np.where(is_limit.any(axis=0), cuts[is_limit.argmax(axis=0)], np.inf)


def _found_orders(
    columns: Sequence[ColumnParts], rows: Rows, left_out: Sequence[int], exceptions: int, expected: int
) -> list[Ordered]:
    """Find pairs of numbers, or of dates of one type, that are in order in all rows."""
    found = []
    eligible = [index for index in rows.numbers if index not in left_out]
    for first in eligible:
        for second in eligible:
            progress.check()
            if first == second or not _comparable(columns[first].type, columns[second].type):
                continue
            one, other = rows.numbers[first], rows.numbers[second]
            if np.count_nonzero(one[:_GLANCED_AT] > other[:_GLANCED_AT]) > exceptions:
                continue
            known = ~np.isnan(one) & ~np.isnan(other)
            count = int(np.count_nonzero(known))
            if not count or np.count_nonzero(one[known] > other[known]) > exceptions:
                continue
            at_most = np.searchsorted(np.sort(one[known]), other[known][:_GLANCED_AT], "right")
            if count - at_most.mean() >= max(expected, _ORDERED * count):
                found.append(Ordered(first, second))
    return found


def _comparable(one: pa.DataType, other: pa.DataType) -> bool:
    return one == other or (is_number(one) and is_number(other))
