"""Rules that hold for everybody in a table: choices that exclude each other, numbers within limits, numbers in order.

A rule is only found where chance would break it for many people, and its limits are values that at least k people stand
behind: neither a rule nor a limit is that of a single person.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from duckanon._core.common import progress
from duckanon._core.common.arrays import Bools, Floats, Ints, is_number
from duckanon._core.common.people import people_in
from duckanon._core.encoding.offsets import comparable, digits_of, people_at, rounding_error
from duckanon._core.encoding.parts import ColumnParts, doubles
from duckanon._methods.synthesize.few_valued import is_usual
from duckanon._methods.synthesize.implication_rules import AllowedPairs, AllowedRanges, Implications, Ordered, Rows
from duckanon._methods.synthesize.weighted_counts import counted, person_weights

EXPECTED = 20
"""People, at least, who would break a rule if the two columns had nothing to do with each other: by chance none of them
does once in half a billion."""
_MOST_CUTS = 200  # limits that are tried in a column
_MOST_PAIRS = 250_000  # of choices of two columns
_ORDERED = 0.01  # the share of rows that would be out of order by chance, at least
_GLANCED_AT = 2_000  # rows that show most pairs of numbers to be in no order
_ROUND = 0.04  # of the distance of the outermost limits: they are rounded to the power of ten below


def rows_of(columns: Sequence[ColumnParts], without: Collection[int] = ()) -> Rows:
    """Return the rows of a table that was split, without the numbers of some columns."""
    numbers = {
        index: np.where(column.is_regular, column.numbers(), np.nan)
        for index, column in enumerate(columns)
        if column.regular is not None and index not in without
    }
    return Rows({index: column.codes for index, column in enumerate(columns)}, numbers)


def found_implications(
    columns: Sequence[ColumnParts],
    left_out: Sequence[int],
    people: Ints | None,
    k: int,
    exceptions: int,
    given: Collection[int] = (),
    follow: Collection[int] = (),
) -> Implications:
    """Find the rules of a table.

    Nothing is learnt from rows with a number that few have among few: it counts as the next one, whose rules it breaks.

    Args:
        columns: Those of the table.
        left_out: The columns of which no rule is looked for.
        people: Whose each row is.
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
    weights = person_weights(people)
    everybody = float(len(columns[0].codes) if weights is None else weights.sum())
    expected = max(EXPECTED, 2 * k)
    chosen = [index for index, column in enumerate(columns) if column.choices > 1 and index not in left_out]
    holders = {index: people_in(rows.codes[index], people, columns[index].choices) for index in chosen}
    pairs: dict[tuple[int, int], Bools] = {}
    ranges = []
    for place, first in enumerate(chosen):
        for second in chosen[place + 1 :]:
            progress.check()
            if columns[first].choices * columns[second].choices > _MOST_PAIRS or (first in given and second in given):
                continue
            chance = np.outer(holders[first], holders[second]) / everybody
            if chance.max() < expected:
                continue
            both = rows.codes[first] * columns[second].choices + rows.codes[second]
            counts = people_in(both, people, chance.size).reshape(chance.shape)
            pairs[first, second] = (counts > exceptions) | (chance < expected)
    for number in rows.numbers:
        known = np.flatnonzero(~np.isnan(rows.numbers[number]))
        values = rows.numbers[number][known]
        whose = None if weights is None else weights[known]
        cuts = _safe_cuts(values, whose, k)
        below, above = np.searchsorted(cuts, values, "left"), np.searchsorted(cuts, values, "right")
        for column in chosen:
            progress.check()
            if column != number and len(cuts) and not (column in given and number in given):
                codes, shape = rows.codes[column][known], (len(cuts) + 1, columns[column].choices)
                low, high = (
                    _limits(
                        cuts,
                        _people_by(classes, codes, shape, None if people is None else people[known]),
                        counted(classes, codes, shape, whose),
                        (exceptions, expected),
                        from_below=classes is below,
                    )
                    for classes in (below, above)
                )
                if np.isfinite(low).any() or np.isfinite(high).any():
                    ranges.append(AllowedRanges(number, column, low, high))
    free = [index for index in chosen if index not in given]
    for first, second, allowed in _ordered_choices(columns, free, people, (exceptions, expected)):
        pair, table = ((first, second), allowed) if first < second else ((second, first), allowed.T)
        pairs[pair] = pairs.get(pair, True) & table
    compared = [
        (first, second)
        for first in rows.numbers
        for second in rows.numbers
        if first != second and not (first in given and second in given) and comparable(columns[first], columns[second])
    ]
    orders = []
    for first, second in compared:
        progress.check()
        has_offset = first not in given and second not in given
        digits = digits_of(columns[first], columns[second])
        limits = _OrderLimits(exceptions, expected, k if has_offset else 0, digits)
        order = _found_order(rows, (first, second), people, limits)
        orders += [] if order is None else [order]
    excluding = [AllowedPairs(*pair, allowed) for pair, allowed in pairs.items() if not allowed.all()]
    return Implications(excluding, ranges, orders)


def _ordered_choices(
    columns: Sequence[ColumnParts], chosen: Sequence[int], people: Ints | None, allowed: tuple[int, int]
) -> Iterator[tuple[int, int, Bools]]:
    """Find choices between few numbers that lie within limits where another choice is made.

    Each pair of choices may be one that chance would seldom make, all numbers below a limit together are not.
    """
    weights = person_weights(people)
    for number in chosen:
        column = columns[number]
        if column.regular is not None or not is_number(column.type):
            continue
        values = doubles(pa.array(column.outcomes, column.type))
        known = np.flatnonzero(~np.isnan(values[column.codes]))
        cuts, place = np.unique(values[~np.isnan(values)], return_inverse=True)
        at = np.zeros(len(values), np.int64)
        at[~np.isnan(values)] = place
        classes = at[column.codes[known]]
        whose = None if people is None else people[known]
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
                people_here, weight_here = _people_by(here, codes, shape, whose), counted(here, codes, shape, weight)
                limit = _limits(cuts, people_here, weight_here, allowed, from_below=from_below)
                is_allowed &= values[:, None] > limit if from_below else values[:, None] < limit
            is_allowed[np.isnan(values)] = True
            yield number, other, is_allowed


def _people_by(groups: Ints, codes: Ints, shape: tuple[int, int], people: Ints | None) -> Floats:
    """Count people by group and code."""
    return people_in(groups * shape[1] + codes, people, shape[0] * shape[1]).reshape(shape).astype(np.float64)


def _safe_cuts(values: Floats, weights: Floats | None, k: int) -> Floats:
    """Return values that at least k people stand behind: those that they share, and rounded medians of neighbours.

    Medians and the unit of rounding depend on ranks: one person's fortune does not show in a limit.
    """
    if weights is None:
        distinct, counts = np.unique(values, return_counts=True)
        held = counts.astype(np.float64)
    else:
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


def _limits(cuts: Floats, people: Floats, weights: Floats, allowed: tuple[int, int], *, from_below: bool) -> Floats:
    """Return the farthest cut up to which a choice is made by nobody, for each choice; infinite where there is none.

    A row of class c from below is at most cut c, and at least cut c - 1 from above.

    Args:
        cuts: The limits that are tried.
        people, weights: How many have each choice, by class, and what they weigh.
        allowed: The people who may be beyond a limit, and the least number who would be by chance.
        from_below: Which limit is looked for.
    """
    exceptions, expected = allowed
    made, weight = (
        np.cumsum(one[:-1], axis=0) if from_below else np.cumsum(one[:0:-1], axis=0)[::-1] for one in (people, weights)
    )
    totals = weights.sum(axis=0)
    by_chance = weight.sum(axis=1, keepdims=True) * totals / max(float(totals.sum()), 1e-12)
    is_limit = (made <= exceptions) & (by_chance >= expected)
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


def _found_order(rows: Rows, pair: tuple[int, int], people: Ints | None, limits: _OrderLimits) -> Ordered | None:
    """Find by how much one number is above another in all rows: by a constant that k people have, or by anything."""
    one, other = rows.numbers[pair[0]], rows.numbers[pair[1]]
    glance = other[:_GLANCED_AT] - one[:_GLANCED_AT]
    if not limits.k and _people_at(glance < 0, people) > limits.exceptions:
        return None
    first = _least(glance, people, limits.exceptions)
    if first is not None and _by_chance(one[:_GLANCED_AT], other[:_GLANCED_AT], first) < _ORDERED / 2:
        return None  # in all rows the least difference is no larger, and chance makes no more
    apart = other - one
    known = ~np.isnan(apart)
    if not known.any():
        return None
    error = rounding_error(one, other, limits.digits)
    offset = _least_shared(apart, people, limits, error) if limits.k else 0.0
    everybody = _people_at(known, people)
    for least in (offset, 0.0):
        if least is None or _people_at(apart < least - error, people) > limits.exceptions:
            continue
        chance = _by_chance(one[known], other[known][:_GLANCED_AT], least)
        if chance * everybody >= max(limits.expected, _ORDERED * everybody):
            return Ordered(*pair, least, error if least else 0.0)
    return None


def _least_shared(apart: Floats, people: Ints | None, limits: _OrderLimits, error: float) -> float | None:
    """Return the least difference of two numbers, but for exceptions, if k people have it."""
    least = _least(apart, people, limits.exceptions)
    if least is None or _people_at(np.abs(apart - least) <= error, people) < limits.k:
        return None
    return least if error == 0.0 else round(least, -math.floor(math.log10(error)) - 1)


def _least(apart: Floats, people: Ints | None, exceptions: int) -> float | None:
    """Return the least difference but for those of so many people; None where there are no more."""
    known = np.flatnonzero(~np.isnan(apart))
    if people is not None:
        known = known[np.argsort(apart[known], kind="stable")]
        known = known[np.sort(np.unique(people[known], return_index=True)[1])]
    if len(known) <= exceptions:
        return None
    return float(np.partition(apart[known], exceptions)[exceptions])


def _by_chance(one: Floats, other: Floats, least: float) -> float:
    """Return the share of people whose other number would be less than so much above the one, by chance."""
    ordered = np.sort(one[~np.isnan(one)])
    others = other[~np.isnan(other)]
    at_most = np.searchsorted(ordered, others - least, "right")
    return float(1 - at_most.mean() / len(ordered)) if len(ordered) and len(others) else 0.0


def _people_at(is_here: Bools, people: Ints | None) -> int:
    """Count the people of some rows, the first of the table."""
    return people_at(is_here, None if people is None else people[: len(is_here)])
