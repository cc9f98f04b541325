"""Rules that hold for everybody in a table: choices that exclude each other, numbers within limits, numbers in order.

A rule is only found where chance would break it for many people, and its limits are values that at least k people stand
behind: neither a rule nor a limit is that of a single person.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from duckanon._core.common import progress
from duckanon._core.common.arrays import Bools, Floats, Ints, is_number
from duckanon._core.common.people import people_in
from duckanon._core.encoding.parts import ColumnParts
from duckanon._methods.synthesize.implication_rules import AllowedPairs, AllowedRanges, Implications, Ordered, Rows
from duckanon._methods.synthesize.sequential_trees import counted, person_weights

EXPECTED = 20
"""People, at least, who would break a rule if the two columns had nothing to do with each other: by chance none of them
does once in half a billion."""
_MOST_CUTS = 200  # limits that are tried in a column
_MOST_PAIRS = 250_000  # of choices of two columns
_ORDERED = 0.01  # the share of rows that would be out of order by chance, at least
_GLANCED_AT = 2_000  # rows that show most pairs of numbers to be in no order
_ROUND = 0.04  # of the distance of the outermost limits: they are rounded to the power of ten below


def rows_of(columns: Sequence[ColumnParts]) -> Rows:
    """Return the rows of a table that was split."""
    numbers = {
        index: np.where(column.is_regular, column.numbers(), np.nan)
        for index, column in enumerate(columns)
        if column.regular is not None
    }
    return Rows({index: column.codes for index, column in enumerate(columns)}, numbers)


def found_implications(
    columns: Sequence[ColumnParts],
    left_out: Sequence[int],
    people: Ints | None,
    k: int,
    exceptions: int,
    given: Collection[int] = (),
) -> Implications:
    """Find the rules of a table.

    Args:
        columns: Those of the table.
        left_out: The columns of which no rule is looked for.
        people: Whose each row is.
        k: The least number of people who make a choice, and who are beyond a limit.
        exceptions: The people who may break a rule. A release takes two, so that one person more or less who does never
            shows in it.
        given: Columns between which no rule is looked for.
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
            if columns[first].choices * columns[second].choices > _MOST_PAIRS or (first in given and second in given):
                continue
            chance = np.outer(holders[first], holders[second]) / everybody
            if chance.max() < expected:
                continue
            both = rows.codes[first] * columns[second].choices + rows.codes[second]
            counts = people_in(both, people, chance.size).reshape(chance.shape)
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
    eligible = [index for index in rows.numbers if index not in left_out]
    comparable = [
        (first, second)
        for first in eligible
        for second in eligible
        if first != second and not (first in given and second in given) and _comparable(columns[first], columns[second])
    ]
    return Implications(pairs, ranges, _found_orders(rows, comparable, people, exceptions, expected))


def _people_by(groups: Ints, codes: Ints, shape: tuple[int, int], people: Ints | None) -> Floats:
    """Count people by group and code."""
    return people_in(groups * shape[1] + codes, people, shape[0] * shape[1]).reshape(shape).astype(np.float64)


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


def _found_orders(
    rows: Rows, comparable: Sequence[tuple[int, int]], people: Ints | None, exceptions: int, expected: int
) -> list[Ordered]:
    """Find pairs of numbers, or of dates of one type, that are in order in all rows."""
    found = []
    for first, second in comparable:
        progress.check()
        one, other = rows.numbers[first], rows.numbers[second]
        if _people_at(one[:_GLANCED_AT] > other[:_GLANCED_AT], people) > exceptions:
            continue
        known = ~np.isnan(one) & ~np.isnan(other)
        count = int(np.count_nonzero(known))
        if not count or _people_at(one > other, people) > exceptions:
            continue
        at_most = np.searchsorted(np.sort(one[known]), other[known][:_GLANCED_AT], "right")
        everybody = _people_at(known, people)
        if (1 - at_most.mean() / count) * everybody >= max(expected, _ORDERED * everybody):
            found.append(Ordered(first, second))
    return found


def _people_at(is_here: Bools, people: Ints | None) -> int:
    """Count the people of some rows."""
    return int(np.count_nonzero(is_here)) if people is None else len(np.unique(people[np.flatnonzero(is_here)]))


def _comparable(one: ColumnParts, other: ColumnParts) -> bool:
    return one.type == other.type or (is_number(one.type) and is_number(other.type))
