"""Released rows that differ from a person in every number, each time a little, and in nothing else: copies with noise.

Two people who have all categories in common mostly agree in some number too, in an age or an income of zero. Noise
leaves none as it was.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from typing import NamedTuple

import numpy as np

from duckanon._core.common import progress
from duckanon._core.common.arrays import Bools, Ints, Matrix
from duckanon._core.common.imports import imported
from duckanon._core.privacy.copy_rates import Rate, labelled_rate, rate
from duckanon._core.privacy.equal_rows import row_codes
from duckanon._core.privacy.neighbours import FEW, nearest

_REACHES = (0.03, 0.15)  # standard deviations: three times those of noise of .01 and of .05
_MANY_VALUES = 100  # of numbers which noise changes even where it is rounded to the digits of the column
_APART = 100.0  # between rows that differ in a category
_GUARD = 0.9875
"""Confidence that members are hit more often than others: a release that is no sample of the population, and tells
nothing about anybody, may be nearer to all people than these are to each other."""
_FEW_PAIRS = 0.1  # of the released rows are near to another one, at most, where two copies of a person are left out
_ALIKE = 1e-9  # relative difference of distances that rounding may explain
_BLOCK = 4_096  # rows that are looked for at a time


class Amounts(NamedTuple):
    """Members, the release and other people as matrices with all numbers as amounts in standard deviations.

    Attributes:
        rows, release, others: The matrices; None where there are no others.
        numbers: The matrix columns of numbers; the others are those of categories.
        nulls: For each number the column that says where it is NULL, -1 for none.
    """

    rows: Matrix
    release: Matrix
    others: Matrix | None
    numbers: Ints
    nulls: Ints


class _Side(NamedTuple):
    """Rows: numbers of their categories, equal for equal ones, their numbers, and which of these are known."""

    group: Ints
    numbers: Matrix
    is_known: Bools

    def of(self, rows: Ints) -> _Side:
        return _Side(self.group[rows], self.numbers[rows], self.is_known[rows])


def tests_of(amounts: Amounts) -> list[tuple[Bools, float]]:
    """Return what is tested: which numbers must differ, all or those of many values, and how far apart they may be."""
    if not len(amounts.numbers):
        return []
    is_wide = np.array([len(np.unique(column)) > _MANY_VALUES for column in amounts.rows[:, amounts.numbers].T])
    chosen = [np.ones(len(is_wide), bool)]
    if is_wide.any() and not is_wide.all():
        chosen.append(is_wide)
    return list(product(chosen, _REACHES))


def close_copies(amounts: Amounts, drawn: tuple[Ints, Ints, Ints], confidence: float) -> list[Rate]:
    """Count people of whom the release has a row that differs a little in every number, by test.

    With other people, as many of these are hit by chance, and as many people by each other. Without them, people hit
    each other for comparison, and so do released rows, two copies of a person left out: a release that lost the digits
    or the zeros of its numbers agrees with nobody, and with none of its own rows.

    Args:
        amounts: The tables.
        drawn: The people, the others and the released rows that are looked at.
        confidence: Of each test.
    """
    tests = tests_of(amounts)
    if not tests:
        return []
    people, others, queries = drawn
    tables = [amounts.rows, amounts.release, *([] if amounts.others is None else [amounts.others])]
    sides = _sides(tables, amounts)
    members, release = sides[0].of(people), sides[1].of(queries)
    if amounts.others is not None:
        apart = sides[2].of(others)
        both = _Side(*(np.concatenate(parts) for parts in zip(members, apart, strict=True)))
        found = [_hits(release, both, tests), _hits(members, apart, tests), _hits(apart, members, tests)]
        sizes = len(people), len(others), len(queries)
        return [_with_others(one, two, three, sizes, confidence) for one, two, three in zip(*found, strict=True)]
    found = [_hits(release, members, tests), _hits(members, None, tests), _hits(release, None, tests)]
    return [
        _alone(one, two, three, len(people), len(queries), confidence) for one, two, three in zip(*found, strict=True)
    ]


def _with_others(
    by_release: Ints, of_others: Ints, of_members: Ints, sizes: tuple[int, int, int], confidence: float
) -> Rate:
    members, others, rows = sizes
    hit = np.zeros(members + others, bool)
    hit[by_release[by_release >= 0]] = True
    labelled = labelled_rate(hit, members, _GUARD)
    outside = int(hit[members:].sum()) + _people(of_others) + _people(of_members)
    trials = others + 2 * others * members / max(rows, 1)
    expected = rate(labelled.count, members, outside, trials, confidence)
    return replace(labelled, limit=max(labelled.limit, expected.limit))


def _alone(by_release: Ints, of_members: Ints, of_release: Ints, members: int, rows: int, confidence: float) -> Rate:
    pairs = np.flatnonzero(of_release >= 0)
    if len(pairs) <= _FEW_PAIRS * rows:  # of many, two often are near to the same person by chance
        pairs = pairs[(by_release[pairs] < 0) | (by_release[pairs] != by_release[of_release[pairs]])]
    count = _people(by_release)
    found = [
        rate(count, members, _people(of_members), members * members / max(rows, 1), confidence),
        rate(count, members, _people(of_release[pairs]), rows, confidence),
    ]
    return max(found, key=lambda one: one.limit)


def _people(hits: Ints) -> int:
    return len(np.unique(hits[hits >= 0]))


def _sides(tables: Sequence[Matrix], amounts: Amounts) -> list[_Side]:
    categories = np.setdiff1d(np.arange(amounts.rows.shape[1]), amounts.numbers)
    groups = row_codes(*(np.ascontiguousarray(table[:, categories]) for table in tables))
    sides = []
    for table, group in zip(tables, groups, strict=True):
        is_null = (table[:, amounts.nulls] > 0) & (amounts.nulls >= 0)
        sides.append(_Side(group, table[:, amounts.numbers], ~is_null))
    return sides


def _hits(queries: _Side, people: _Side | None, tests: Sequence[tuple[Bools, float]]) -> list[Ints]:
    """Return, for each test, the person whom each row hits, -1 for nobody; without people, rows hit each other."""
    pool = queries if people is None else people
    points = np.column_stack([pool.group * _APART, pool.numbers])
    asked = np.column_stack([queries.group * _APART, queries.numbers])
    nearest_two = _two_nearest(asked, points, max(_REACHES) * pool.numbers.shape[1] ** 0.5)
    found = np.full((len(tests), len(queries.group)), -1)
    for start in range(0, len(queries.group), _BLOCK):
        progress.check()
        rows = np.arange(start, min(start + _BLOCK, len(queries.group)))
        places = nearest_two[rows]
        place = np.where((places[:, 0] == rows) & (people is None), places[:, 1], places[:, 0])
        near = np.where(place < len(points), place, 0)
        apart = np.abs(queries.numbers[rows] - pool.numbers[near])
        distance = np.where(place < len(points), apart.max(axis=1), np.inf)
        differs = (apart > 0) | ~queries.is_known[rows]
        for number, (chosen, reach) in enumerate(tests):
            is_hit = (distance <= reach) & differs[:, chosen].all(axis=1)
            is_hit &= queries.is_known[rows][:, chosen].any(axis=1)
            found[number, rows[is_hit]] = near[is_hit]
    return list(found)


def _two_nearest(queries: Matrix, points: Matrix, farthest: float) -> Ints:
    """Return the two nearest points of each query, their number in place of one that is farther than the farthest.

    Of several that are as near, but not equal, a tree chooses. Tables of few rows without such ones do not import it.
    """
    if 3 <= len(points) < FEW:
        distances, places = nearest(queries, points, 3)
        distances *= points.shape[1] ** 0.5
        is_tied = np.diff(distances, axis=1) <= _ALIKE * distances[:, 1:]
        is_tied &= (distances[:, 1:] > 0) & (distances[:, :-1] <= farthest)
        if not is_tied.any():
            return np.where(distances[:, :2] <= farthest, places[:, :2], len(points))
    found: Ints = imported("duckanon._core.privacy.neighbour_tree:two_nearest")(queries, points, farthest)
    return found
