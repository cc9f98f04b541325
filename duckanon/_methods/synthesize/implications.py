"""Rules that hold for everybody in a table, and the rows that break them.

Three kinds are looked for: choices of two columns that exclude each other, limits of a number where a choice is made,
and two numbers that are always in order, perhaps with a constant between them. A rule is kept only if chance would
break it for at least 20 people, and its limits are values that at least k people stand behind, so that neither a rule
nor a limit is that of a single person; two people may break it, so that one more or less never shows. The cost is a
count for each pair of columns, and one for each of 200 cuts of a number.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from duckanon._core.common import progress
from duckanon._core.common.arrays import Bools, Floats, Ints, is_number
from duckanon._core.common.people import count_people
from duckanon._core.encoding.formulas import are_comparable, count_exact_digits, count_people_at, limit_rounding_error
from duckanon._core.encoding.parts import ColumnParts, read_doubles
from duckanon._methods.synthesize.coded_table import count_cells, is_usual, weigh_rows


class RuleRows(NamedTuple):
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

    def is_broken(self, rows: RuleRows) -> Bools:
        """Tell which rows have two choices that exclude each other."""
        first_codes, second_codes = rows.codes[self.first], rows.codes[self.second]
        return np.asarray((first_codes >= 0) & (second_codes >= 0) & ~self.allowed[first_codes, second_codes])


@dataclass(frozen=True)
class AllowedRanges:
    """The numbers of a column, which lie between two limits, exclusive, where a choice is made in another."""

    number: int
    column: int
    low: Floats
    high: Floats

    def is_broken(self, rows: RuleRows) -> Bools:
        """Tell which rows have a number beyond the limits of their choice."""
        codes, numbers = rows.codes[self.column], rows.numbers[self.number]
        return np.asarray((codes >= 0) & ((numbers <= self.low[codes]) | (numbers >= self.high[codes])))


@dataclass(frozen=True)
class OrderRule:
    """Two numbers, of which the first plus an offset is never above the second, but for a rounding error."""

    first: int
    second: int
    offset: float = 0.0
    error: float = 0.0

    def is_broken(self, rows: RuleRows) -> Bools:
        """Tell which rows have them in another order."""
        return np.asarray(rows.numbers[self.first] + (self.offset - self.error) > rows.numbers[self.second])


@dataclass(frozen=True)
class Implications:
    """The rules of a table."""

    pairs: Sequence[AllowedPairs]
    ranges: Sequence[AllowedRanges]
    ordered: Sequence[OrderRule]

    def is_broken(self, rows: RuleRows) -> Bools:
        """Tell which rows break a rule, of those whose columns are all there."""
        is_broken = np.zeros(len(next(iter(rows.codes.values()))), np.bool_)
        for pair in self.pairs:
            if pair.first in rows.codes and pair.second in rows.codes:
                is_broken |= pair.is_broken(rows)
        for limits in self.ranges:
            if limits.number in rows.numbers and limits.column in rows.codes:
                is_broken |= limits.is_broken(rows)
        for order in self.ordered:
            if order.first in rows.numbers and order.second in rows.numbers:
                is_broken |= order.is_broken(rows)
        return is_broken

    def choice_limits(self, index: int, rows: RuleRows) -> Iterator[tuple[Ints, Bools]]:
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

    def number_limits(self, index: int, rows: RuleRows, among: Ints) -> tuple[Floats, Floats] | None:
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


EXPECTED = 20
"""People, at least, who would break a rule if the two columns had nothing to do with each other: by chance none of them
does once in half a billion."""
_MOST_CUTS = 200  # limits that are tried in a column
_MOST_PAIRS = 250_000  # of choices of two columns
_ORDERED = 0.01  # the share of rows that would be out of order by chance, at least
_GLANCED_AT = 2_000  # rows that show most pairs of numbers to be in no order
_ROUND = 0.04  # of the distance of the outermost limits: they are rounded to the power of ten below


def rows_of(columns: Sequence[ColumnParts], without: Collection[int] = ()) -> RuleRows:
    """Return the rows of a table that was split, without the numbers of some columns."""
    numbers = {
        index: np.where(column.is_regular, column.numbers(), np.nan)
        for index, column in enumerate(columns)
        if column.regular is not None and index not in without
    }
    return RuleRows({index: column.codes for index, column in enumerate(columns)}, numbers)


def find_implications(
    columns: Sequence[ColumnParts],
    left_out: Sequence[int],
    people: Ints | None,
    k: int,
    exceptions: int,
    context: Collection[int] = (),
    follow: Collection[int] = (),
) -> Implications:
    """Find the rules of a table.

    Nothing is learnt from rows with a number that few have among few: it counts as the next one, whose rules it breaks.

    Args:
        columns: Those of the table.
        left_out: The columns of which no rule is looked for.
        people: The person of each row.
        k: The least number of people who make a choice, and who are beyond a limit.
        exceptions: The people who may break a rule. A release takes two, so that one person more or less who does never
            shows in it.
        given: Columns between which no rule is looked for.
        follow: Columns whose numbers follow from others: no rule about these is looked for.
    """
    usual = is_usual(columns)
    if not usual.all():
        columns = [replace(one, codes=one.codes[usual], array=one.array.filter(pa.array(usual))) for one in columns]
        people = None if people is None else people[usual]
    rows = rows_of(columns, {*left_out, *follow})
    weights = weigh_rows(people)
    everybody = float(len(columns[0].codes) if weights is None else weights.sum())
    expected = max(EXPECTED, 2 * k)
    chosen = [index for index, column in enumerate(columns) if column.choices > 1 and index not in left_out]
    holders = {index: count_people(rows.codes[index], people, columns[index].choices) for index in chosen}
    pairs: dict[tuple[int, int], Bools] = {}
    ranges = []
    for position, first in enumerate(chosen):
        for second in chosen[position + 1 :]:
            progress.check()
            if columns[first].choices * columns[second].choices > _MOST_PAIRS or (
                first in context and second in context
            ):
                continue
            chance = np.outer(holders[first], holders[second]) / everybody
            if chance.max() < expected:
                continue
            both = rows.codes[first] * columns[second].choices + rows.codes[second]
            counts = count_people(both, people, chance.size).reshape(chance.shape)
            pairs[first, second] = (counts > exceptions) | (chance < expected)
    for number in rows.numbers:
        known = np.flatnonzero(~np.isnan(rows.numbers[number]))
        values = rows.numbers[number][known]
        weight = None if weights is None else weights[known]
        cuts = _choose_cuts(values, weight, k)
        below, above = np.searchsorted(cuts, values, "left"), np.searchsorted(cuts, values, "right")
        for column in chosen:
            progress.check()
            if column != number and len(cuts) and not (column in context and number in context):
                codes, shape = rows.codes[column][known], (len(cuts) + 1, columns[column].choices)
                low, high = (
                    _find_limits(
                        cuts,
                        _count_people(classes, codes, shape, None if people is None else people[known]),
                        count_cells(classes, codes, shape, weight),
                        (exceptions, expected),
                        from_below=classes is below,
                    )
                    for classes in (below, above)
                )
                if np.isfinite(low).any() or np.isfinite(high).any():
                    ranges.append(AllowedRanges(number, column, low, high))
    free = [index for index in chosen if index not in context]
    for first, second, allowed in _find_choice_limits(columns, free, people, (exceptions, expected)):
        pair, table = ((first, second), allowed) if first < second else ((second, first), allowed.T)
        pairs[pair] = pairs.get(pair, True) & table
    compared = [
        (first, second)
        for first in rows.numbers
        for second in rows.numbers
        if first != second
        and not (first in context and second in context)
        and are_comparable(columns[first], columns[second])
    ]
    orders = []
    for first, second in compared:
        progress.check()
        has_offset = first not in context and second not in context
        digits = count_exact_digits(columns[first], columns[second])
        limits = _OrderLimits(exceptions, expected, k if has_offset else 0, digits)
        order = _find_order(rows, (first, second), people, limits)
        orders += [] if order is None else [order]
    excluding = [AllowedPairs(*pair, allowed) for pair, allowed in pairs.items() if not allowed.all()]
    return Implications(excluding, ranges, orders)


def _find_choice_limits(
    columns: Sequence[ColumnParts], chosen: Sequence[int], people: Ints | None, allowed: tuple[int, int]
) -> Iterator[tuple[int, int, Bools]]:
    """Find choices between few numbers that lie within limits where another choice is made.

    Each pair of choices may be one that chance would seldom make, all numbers below a limit together are not.
    """
    weights = weigh_rows(people)
    for number in chosen:
        column = columns[number]
        if column.regular is not None or not is_number(column.type):
            continue
        values = read_doubles(pa.array(column.outcomes, column.type))
        known = np.flatnonzero(~np.isnan(values[column.codes]))
        cuts, index = np.unique(values[~np.isnan(values)], return_inverse=True)
        class_of_choice = np.zeros(len(values), np.int64)
        class_of_choice[~np.isnan(values)] = index
        classes = class_of_choice[column.codes[known]]
        person_of_row = None if people is None else people[known]
        weight = None if weights is None else weights[known]
        for other in chosen:
            progress.check()
            if other == number:
                continue
            codes, choices = columns[other].codes[known], columns[other].choices
            is_allowed = np.ones((len(values), choices), np.bool_)
            for from_below in (True, False):
                shape = (len(cuts) + 1, choices)
                here = classes if from_below else classes + 1
                people_here, weight_here = (
                    _count_people(here, codes, shape, person_of_row),
                    count_cells(here, codes, shape, weight),
                )
                limit = _find_limits(cuts, people_here, weight_here, allowed, from_below=from_below)
                is_allowed &= values[:, None] > limit if from_below else values[:, None] < limit
            is_allowed[np.isnan(values)] = True
            yield number, other, is_allowed


def _count_people(groups: Ints, codes: Ints, shape: tuple[int, int], people: Ints | None) -> Floats:
    """Count people by group and code."""
    return count_people(groups * shape[1] + codes, people, shape[0] * shape[1]).reshape(shape).astype(np.float64)


def _choose_cuts(values: Floats, weights: Floats | None, k: int) -> Floats:
    """Return values that at least k people stand behind: those that they share, and rounded medians of neighbours.

    Medians and the unit of rounding depend on ranks: one person's fortune does not show in a limit.
    """
    if weights is None:
        distinct, counts = np.unique(values, return_counts=True)
        weight_of_value = counts.astype(np.float64)
    else:
        distinct, index = np.unique(values, return_inverse=True)
        weight_of_value = np.bincount(index, weights, len(distinct)).astype(np.float64)
    size = max(float(k), weight_of_value.sum() / _MOST_CUTS)
    is_shared = weight_of_value >= size
    rest = np.flatnonzero(~is_shared)
    if not len(rest):
        return distinct
    up_to = np.cumsum(weight_of_value[rest])
    block = ((up_to - weight_of_value[rest]) / size).astype(np.int64)
    totals = np.bincount(block, weight_of_value[rest])
    middles = np.searchsorted(up_to, np.cumsum(totals) - totals / 2)[totals >= k]
    medians = distinct[rest[middles]]
    if len(medians) > 1:
        unit = 10.0 ** np.floor(np.log10(_ROUND * (medians[-1] - medians[0])))
        medians = np.rint(medians / unit) * unit
    return np.unique(np.concatenate([distinct[is_shared], medians]))


def _find_limits(
    cuts: Floats, people: Floats, weights: Floats, allowed: tuple[int, int], *, from_below: bool
) -> Floats:
    """Return the farthest cut up to which a choice is made by nobody, for each choice; infinite where there is none.

    A row of class c from below is at most cut c, and at least cut c - 1 from above.

    Args:
        cuts: The limits that are tried.
        people, weights: How many have each choice, by class, and what they weigh.
        allowed: The people who may be beyond a limit, and the least number who would be by chance.
        from_below: Which limit is looked for.
    """
    exceptions, expected = allowed
    people_beyond, weight_beyond = (
        np.cumsum(counts[:-1], axis=0) if from_below else np.cumsum(counts[:0:-1], axis=0)[::-1]
        for counts in (people, weights)
    )
    totals = weights.sum(axis=0)
    by_chance = weight_beyond.sum(axis=1, keepdims=True) * totals / max(float(totals.sum()), 1e-12)
    is_limit = (people_beyond <= exceptions) & (by_chance >= expected)
    if from_below:
        last = len(cuts) - 1 - is_limit[::-1].argmax(axis=0)
        return np.where(is_limit.any(axis=0), cuts[last], -np.inf)
    return np.where(is_limit.any(axis=0), cuts[is_limit.argmax(axis=0)], np.inf)


class _OrderLimits(NamedTuple):
    """When two numbers are in order: people who may break it, who would by chance, and who are k at an offset."""

    exceptions: int
    expected: int
    k: int
    digits: int


def _find_order(rows: RuleRows, pair: tuple[int, int], people: Ints | None, limits: _OrderLimits) -> OrderRule | None:
    """Find by how much one number is above another in all rows: by a constant that k people have, or by anything."""
    lower, upper = rows.numbers[pair[0]], rows.numbers[pair[1]]
    glance = upper[:_GLANCED_AT] - lower[:_GLANCED_AT]
    if not limits.k and _count_people_at(glance < 0, people) > limits.exceptions:
        return None
    first = _find_least(glance, people, limits.exceptions)
    if first is not None and _expect_by_chance(lower[:_GLANCED_AT], upper[:_GLANCED_AT], first) < _ORDERED / 2:
        return None  # in all rows the least difference is no larger, and chance makes no more
    apart = upper - lower
    known = ~np.isnan(apart)
    if not known.any():
        return None
    error = limit_rounding_error(lower, upper, limits.digits)
    offset = _find_shared_offset(apart, people, limits, error) if limits.k else 0.0
    everybody = _count_people_at(known, people)
    for least in (offset, 0.0):
        if least is None or _count_people_at(apart < least - error, people) > limits.exceptions:
            continue
        chance = _expect_by_chance(lower[known], upper[known][:_GLANCED_AT], least)
        if chance * everybody >= max(limits.expected, _ORDERED * everybody):
            return OrderRule(*pair, least, error if least else 0.0)
    return None


def _find_shared_offset(apart: Floats, people: Ints | None, limits: _OrderLimits, error: float) -> float | None:
    """Return the least difference of two numbers, but for exceptions, if k people have it."""
    least = _find_least(apart, people, limits.exceptions)
    if least is None or _count_people_at(np.abs(apart - least) <= error, people) < limits.k:
        return None
    return least if error == 0.0 else round(least, -math.floor(math.log10(error)) - 1)


def _find_least(apart: Floats, people: Ints | None, exceptions: int) -> float | None:
    """Return the least difference but for those of so many people; None where there are no more."""
    known = np.flatnonzero(~np.isnan(apart))
    if people is not None:
        known = known[np.argsort(apart[known], kind="stable")]
        known = known[np.sort(np.unique(people[known], return_index=True)[1])]
    if len(known) <= exceptions:
        return None
    return float(np.partition(apart[known], exceptions)[exceptions])


def _expect_by_chance(lower: Floats, upper: Floats, least: float) -> float:
    """Return the share of people whose other number would be less than so much above the one, by chance."""
    ordered = np.sort(lower[~np.isnan(lower)])
    known = upper[~np.isnan(upper)]
    at_most = np.searchsorted(ordered, known - least, "right")
    return float(1 - at_most.mean() / len(ordered)) if len(ordered) and len(known) else 0.0


def _count_people_at(is_here: Bools, people: Ints | None) -> int:
    """Count the people of some rows, the first of the table."""
    return count_people_at(is_here, None if people is None else people[: len(is_here)])
