"""Copies in a release: rows that repeat a unique record, differ a little in all numbers, or are near to one person.

Each kind is counted and compared with what chance gives: with outsiders, other people of the same population, or with
the people of the table among each other. Close copies agree in all categories and differ a little in every number: two
people who have all categories in common mostly agree in some number too, and noise leaves none as it was. Noisy copies
are nearer to one person than to anybody else by a factor. Unique copies repeat records that nobody shares; the rarer,
the more telling, by an estimate after Good (1953) of how many an honest sample would repeat. Rows and people are drawn
where there are more than a hundred million pairs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from typing import NamedTuple

import numpy as np

from duckanon._core.common import progress
from duckanon._core.common.arrays import Bools, Floats, Ints, Matrix
from duckanon._core.common.imports import import_function
from duckanon._core.common.row_keys import number_rows
from duckanon._core.privacy.copy_rates import Rate, compare_members, compare_shares, count_codes, draw_parts
from duckanon._core.privacy.neighbours import FEW_POINTS, TREE, find_nearest
from duckanon._core.privacy.rarity import Rarity

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
        rows, release, outsiders: The matrices; None where there are no other people.
        numbers: The matrix columns of numbers; all other columns are those of categories.
        nulls: For each number the column that says where it is NULL, -1 for none.
    """

    rows: Matrix
    release: Matrix
    outsiders: Matrix | None
    numbers: Ints
    nulls: Ints


class _NumbersOfRows(NamedTuple):
    """Rows: numbers of their categories, equal for equal ones, their numbers, and which of these are known."""

    group: Ints
    numbers: Matrix
    is_known: Bools

    def of(self, rows: Ints) -> _NumbersOfRows:
        return _NumbersOfRows(self.group[rows], self.numbers[rows], self.is_known[rows])


def list_tests(amounts: Amounts) -> list[tuple[Bools, float]]:
    """Return what is tested: which numbers must differ, all or those of many values, and how far apart they may be."""
    if not len(amounts.numbers):
        return []
    is_wide = np.array([len(np.unique(column)) > _MANY_VALUES for column in amounts.rows[:, amounts.numbers].T])
    chosen = [np.ones(len(is_wide), bool)]
    if is_wide.any() and not is_wide.all():
        chosen.append(is_wide)
    return list(product(chosen, _REACHES))


def count_close_copies(amounts: Amounts, drawn: tuple[Ints, Ints, Ints], confidence: float) -> list[Rate]:
    """Count people of whom the release has a row that differs a little in every number, by test.

    With other people, as many of these are hit by chance, and as many people by each other. Without them, people hit
    each other for comparison, and so do released rows, two copies of a person left out: a release that lost the digits
    or the zeros of its numbers agrees with nobody, and with none of its own rows.

    Args:
        amounts: The tables.
        drawn: The people, the outsiders and the released rows that are looked at.
        confidence: Of each test.
    """
    tests = list_tests(amounts)
    if not tests:
        return []
    people, outsiders, queries = drawn
    tables = [amounts.rows, amounts.release, *([] if amounts.outsiders is None else [amounts.outsiders])]
    sides = _split_tables(tables, amounts)
    members, release = sides[0].of(people), sides[1].of(queries)
    if amounts.outsiders is not None:
        apart = sides[2].of(outsiders)
        both = _NumbersOfRows(*(np.concatenate(parts) for parts in zip(members, apart, strict=True)))
        hits = [_find_hits(release, both, tests), _find_hits(members, apart, tests), _find_hits(apart, members, tests)]
        sizes = len(people), len(outsiders), len(queries)
        return [
            _compare_with_others(by_release, of_outsiders, of_members, sizes, confidence)
            for by_release, of_outsiders, of_members in zip(*hits, strict=True)
        ]
    hits = [_find_hits(release, members, tests), _find_hits(members, None, tests), _find_hits(release, None, tests)]
    return [
        _compare_alone(by_release, of_members, of_release, len(people), len(queries), confidence)
        for by_release, of_members, of_release in zip(*hits, strict=True)
    ]


def _compare_with_others(
    by_release: Ints, of_others: Ints, of_members: Ints, sizes: tuple[int, int, int], confidence: float
) -> Rate:
    members, outsiders, rows = sizes
    hit = np.zeros(members + outsiders, bool)
    hit[by_release[by_release >= 0]] = True
    labelled = compare_members(hit, members, _GUARD)
    outside = int(hit[members:].sum()) + _count_hits(of_others) + _count_hits(of_members)
    trials = outsiders + 2 * outsiders * members / max(rows, 1)
    expected = compare_shares(labelled.count, members, outside, trials, confidence)
    return replace(labelled, limit=max(labelled.limit, expected.limit))


def _compare_alone(
    by_release: Ints, of_members: Ints, of_release: Ints, members: int, rows: int, confidence: float
) -> Rate:
    pairs = np.flatnonzero(of_release >= 0)
    if len(pairs) <= _FEW_PAIRS * rows:  # of many, two often are near to the same person by chance
        pairs = pairs[(by_release[pairs] < 0) | (by_release[pairs] != by_release[of_release[pairs]])]
    count = _count_hits(by_release)
    rates = [
        compare_shares(count, members, _count_hits(of_members), members * members / max(rows, 1), confidence),
        compare_shares(count, members, _count_hits(of_release[pairs]), rows, confidence),
    ]
    return max(rates, key=lambda rate: rate.limit)


def _count_hits(hits: Ints) -> int:
    return len(np.unique(hits[hits >= 0]))


def _split_tables(tables: Sequence[Matrix], amounts: Amounts) -> list[_NumbersOfRows]:
    categories = np.setdiff1d(np.arange(amounts.rows.shape[1]), amounts.numbers)
    groups = number_rows(*(np.ascontiguousarray(table[:, categories]) for table in tables))
    sides = []
    for table, group in zip(tables, groups, strict=True):
        is_null = (table[:, amounts.nulls] > 0) & (amounts.nulls >= 0)
        sides.append(_NumbersOfRows(group, table[:, amounts.numbers], ~is_null))
    return sides


def _find_hits(
    queries: _NumbersOfRows, people: _NumbersOfRows | None, tests: Sequence[tuple[Bools, float]]
) -> list[Ints]:
    """Return, for each test, the person whom each row hits, -1 for nobody; without people, rows hit each other."""
    pool = queries if people is None else people
    points = np.column_stack([pool.group * _APART, pool.numbers])
    asked = np.column_stack([queries.group * _APART, queries.numbers])
    nearest_two = _find_two_nearest(asked, points, max(_REACHES) * pool.numbers.shape[1] ** 0.5)
    hits = np.full((len(tests), len(queries.group)), -1)
    for start in range(0, len(queries.group), _BLOCK):
        progress.check()
        rows = np.arange(start, min(start + _BLOCK, len(queries.group)))
        first, second = nearest_two[rows].T
        nearest = np.where((first == rows) & (people is None), second, first)
        near = np.where(nearest < len(points), nearest, 0)
        apart = np.abs(queries.numbers[rows] - pool.numbers[near])
        distance = np.where(nearest < len(points), apart.max(axis=1), np.inf)
        differs = (apart > 0) | ~queries.is_known[rows]
        for number, (chosen, reach) in enumerate(tests):
            is_hit = (distance <= reach) & differs[:, chosen].all(axis=1)
            is_hit &= queries.is_known[rows][:, chosen].any(axis=1)
            hits[number, rows[is_hit]] = near[is_hit]
    return list(hits)


def _find_two_nearest(queries: Matrix, points: Matrix, farthest: float) -> Ints:
    """Return the two nearest points of each query, their number in place of one that is farther than the farthest.

    Of several that are as near, but not equal, a tree chooses. Tables of few rows without such ones do not import it.
    """
    if 3 <= len(points) < FEW_POINTS:
        distances, indexes = find_nearest(queries, points, 3)
        distances *= points.shape[1] ** 0.5
        is_tied = np.diff(distances, axis=1) <= _ALIKE * distances[:, 1:]
        is_tied &= (distances[:, 1:] > 0) & (distances[:, :-1] <= farthest)
        if not is_tied.any():
            return np.where(distances[:, :2] <= farthest, indexes[:, :2], len(points))
    tree = import_function(TREE)(points)
    return np.asarray(tree.query(queries, 2, distance_upper_bound=farthest)[1], np.int64)


_FACTORS = (3.0, 8.0, 20.0)
"""How much nearer a row is to a person than to the next: of 5 % of the rows, with noise of .05 standard deviations, the
first finds most in the surveys at hand, of 1 % with .01 the last."""
_PAIRS = 10**8  # of a released row and a person that are looked at; beyond, rows and people are drawn at random


class CopyTables(NamedTuple):
    """Members, the release and other people, where there are any, as matrices with one encoding."""

    rows: Matrix
    release: Matrix
    outsiders: Matrix | None


def count_noisy_copies(
    codings: Sequence[CopyTables], random: np.random.Generator, confidence: float, amounts: Amounts | None = None
) -> Rate:
    """Count people to whom a released row is nearer than to anybody else by a factor, but not equal.

    With other people: were the release another sample, members and others would be hit alike, so that the members
    among all who are hit are a draw without replacement, whatever the release looks like and however its rows cluster.
    Without them, the rows of the other members hit people for comparison. Equal rows are counted elsewhere. Each factor
    in each encoding of the same rows, and each test of `count_close_copies`, has its share of the false alarms; the
    one that tells most counts.
    """
    first = codings[0]
    size = max(1, int((_PAIRS / 2) ** 0.5))
    people, outsiders, queries = (
        np.sort(random.permutation(count)[:size])
        for count in (len(first.rows), 0 if first.outsiders is None else len(first.outsiders), len(first.release))
    )
    tests = len(_FACTORS) * len(codings) + (0 if amounts is None else len(list_tests(amounts)))
    alone = 1 - (1 - confidence) / tests
    rates = [] if amounts is None else count_close_copies(amounts, (people, outsiders, queries), alone)
    for coded in codings:
        pool = coded.rows[people]
        if coded.outsiders is not None:
            pool = np.concatenate([pool, coded.outsiders[outsiders]])
        distances, indexes = find_nearest(coded.release[queries], pool, 2)
        count = min(len(queries), len(pool))
        usual = find_nearest(pool[:count], pool, 2, skip_self=np.arange(count)) if coded.outsiders is None else None
        for factor in _FACTORS:
            hit = _find_near(distances, indexes, factor, len(pool))
            if usual is None:
                rates.append(compare_members(hit, len(people), alone))
            else:  # as many rows of the table hit people for comparison, or fewer where it has no more
                expected = float(_find_near(*usual, factor, len(pool)).sum())
                trials = len(pool) * count / len(queries)
                rates.append(compare_shares(float(hit.sum()), len(pool), expected, trials, alone))
    return max(rates, key=lambda rate: rate.value - rate.limit)


def _find_near(distances: Matrix, indexes: Ints, factor: float, people: int) -> Bools:
    """Tell which people a row comes nearer to than to the next person by the factor, without being equal."""
    is_near = (distances[:, 0] > 0) & (factor * distances[:, 0] < distances[:, 1])
    hit = np.zeros(people, bool)
    hit[indexes[is_near, 0]] = True
    return hit


_COPIED = 0.005  # the share of copies that the weights are best at telling from chance
_WORTH = 2.0  # repeated records that near misses may count for: they tell the number of equal ones within a half of it
_ANYWHERE = 0.2
"""Repeated records that may be anybody's, however rare their scores: 0.2 of the 12 of a thousand people of Adult
(fourteen columns) were, 0.03 of the 2 of ACS, and half as many where as many other people told how rare they are."""
_MOST_ANYWHERE = 0.1  # the share of repeated records that these may be: 0.05 let 2 % of 300 fresh people of ACS fail
_STRATA = 50
_BEYOND = 20  # draws from chance beyond the limit
_FEW = 0.2  # repeated records for each stratum, up to which drawing one by one is quicker than counts of all strata
_STEPS = 30  # after which the number that chance repeats stays the same


class _Chance(NamedTuple):
    """Number of records that chance repeats: a gamma distribution of the total, were no record repeated twice.

    Attributes:
        events: Repeated records that were seen, and what near misses count for.
        exposure: How many were to be expected of each of the total.
    """

    events: float
    exposure: float

    @property
    def mean(self) -> float:
        """Return the total that is expected."""
        return self.events / self.exposure


def count_unique_copies(
    original: Ints,
    released: Ints,
    reference: Ints | None,
    rarity: Rarity,
    random: np.random.Generator,
    confidence: float,
) -> Rate:
    """Count originals without an equal in the table that the release repeats, against what chance repeats.

    No record that is unique among n rows has an equal among the others, so leaving one out says nothing about it. Two
    equal rows do: were one of them drawn later, it would repeat a unique record, so that another n rows repeat about
    twice as many unique records as there are such pairs (Good 1953). The reference tells the same by what it repeats,
    and near misses, of which there are more, where both are few. Who of the unique records is repeated, their rarity
    tells. The limit is a quantile of Poisson counts whose mean is as uncertain as that estimate.

    Rows are given as codes. Parts of the release as large as the reference are looked at, or as the table without one.
    A unique record weighs log(1 + 0.005 / p) in the share that is repeated, p being its chance to be repeated: what a
    copy of it says for copies of one in 200 records, and against chance.
    """
    codes = count_codes(original, released, reference)
    unique = np.flatnonzero(np.bincount(original, minlength=codes) == 1)
    if not len(unique):
        return Rate(0.0, 0.0, 0.0, 0)
    size = min(len(released), len(original if reference is None else reference))
    drawn = draw_parts(len(released), size, random)
    hits = np.zeros(len(unique))
    for part in drawn:
        hits += np.bincount(released[part], minlength=codes)[unique] > 0
    repeated = None if reference is None else np.bincount(reference[:size], minlength=codes)[unique] > 0
    scores = np.zeros(codes)
    scores[original] = rarity.scores
    shares = scores[unique] / scores[unique].sum()
    chance = _estimate_chance(shares, repeated, rarity, len(original), size)
    people = len(original) + (0 if reference is None else min(len(reference), len(original)))
    anywhere = min(_MOST_ANYWHERE, _ANYWHERE * len(original) / people / chance.mean)
    shares = (1 - anywhere) * shares + anywhere / len(unique)
    return _weigh_rate(hits, len(drawn), repeated, shares, chance, random, confidence)


def _estimate_chance(shares: Floats, repeated: Bools | None, rarity: Rarity, people: int, size: int) -> _Chance:
    """Estimate how many unique records another sample, of ``size`` people, repeats."""
    worth = min(rarity.near_pairs + 0.5, _WORTH)
    equal_pairs = (rarity.near_pairs + 0.5) / rarity.near_per_equal  # expected by chance
    events = rarity.twins + worth
    exposure = rarity.twin_pairs / (people * size) + worth * max(people - 1, 1) / (2 * equal_pairs * size)
    if repeated is None:
        return _Chance(events, exposure)
    events += float(repeated.sum())
    chance = _Chance(events, exposure + 1)
    for _ in range(_STEPS):  # a record that is expected twice is still repeated once
        once = float(-np.expm1(-chance.mean * shares).sum()) / chance.mean
        chance = _Chance(events, exposure + once)
    return chance


def _weigh_rate(
    hits: Floats,
    trials: int,
    repeated: Bools | None,
    shares: Floats,
    chance: _Chance,
    random: np.random.Generator,
    confidence: float,
) -> Rate:
    """Compare the weighted share of the records found, in so many trials each, with that which chance repeats."""
    order = np.argsort(shares, kind="stable")
    count = min(_STRATA, len(shares))
    least, larger = divmod(len(shares), count)
    people = np.repeat([least + 1, least], [larger, count - larger])
    pieces = np.split(shares[order], [larger * (least + 1)])
    means = [part.reshape(-1, size).mean(axis=1) for part, size in zip(pieces, (least + 1, least), strict=True)]
    per_person = np.concatenate(means)
    weights = np.log1p(_COPIED / -np.expm1(-chance.mean * per_person))
    weight = np.empty(len(shares))
    weight[order] = np.repeat(weights, people)
    totals = random.gamma(chance.events, 1 / chance.exposure, int(np.ceil(_BEYOND / (1 - confidence))))
    by_chance = _draw_weighted_counts(totals, trials, people, per_person, weights, random)
    total = float(weight.sum())
    expected = weight @ -np.expm1(-chance.mean * shares) if repeated is None else weight @ repeated
    return Rate(
        float(weight @ hits) / total / trials,
        float(expected) / total,
        min(1.0, float(np.quantile(by_chance, confidence)) / total / trials),
        round(hits.sum()),
    )


def _draw_weighted_counts(
    totals: Floats, trials: int, people: Ints, per_person: Floats, weights: Floats, random: np.random.Generator
) -> Floats:
    """Draw the weighted number of records that chance repeats in so many trials, once for each total.

    The number of each stratum is a Poisson count. Where nearly all of these are 0, repeats are drawn one by one
    instead: a Poisson number of them, each in a random stratum. Some are dropped, since a record that is repeated
    several times counts once. The distribution is the same.
    """
    edges = np.cumsum(people * per_person)
    if float(totals.mean()) * trials * edges[-1] > _FEW * len(people):
        rates = -np.expm1(-totals[:, None] * per_person) * people
        return np.asarray(random.poisson(rates * trials) @ weights)
    draws = np.repeat(np.arange(len(totals)), random.poisson(totals * (trials * edges[-1])))
    strata = np.searchsorted(edges, random.random(len(draws)) * edges[-1], side="right")
    repeats = totals[draws] * per_person[strata]
    is_first = random.random(len(draws)) * repeats < -np.expm1(-repeats)
    return np.asarray(np.bincount(draws, is_first * weights[strata], minlength=len(totals)), np.float64)
