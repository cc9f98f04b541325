"""Densities of records, and whether nearness to a release gives members away.

How rare a record is, is estimated by a kernel density of mixed columns (Aitchison and Aitken 1976): independently in
each column, a person has the value of another person, a value near to it, or any value at all. How often each is the
case is fitted by the likelihood that people leave of each other. The cost is that of all pairs of people, at most
twelve million; larger tables use counts of near misses (`rarity`). Membership is attacked by distances to the nearest
released row: of all people, and of the most isolated.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from duckanon._core.common import progress
from duckanon._core.common.arrays import Bools, Floats, Ints, Matrix
from duckanon._core.common.imports import import_function
from duckanon._core.common.row_keys import hash_rows
from duckanon._core.privacy.audit import NORMAL_SCORES, find_isolated
from duckanon._core.privacy.copy_rates import Rate, draw_parts
from duckanon._core.privacy.neighbours import find_nearest
from duckanon._core.privacy.rarity import Rarity, measure_rarity

Singles: TypeAlias = npt.NDArray[np.float32]
PairWeights: TypeAlias = Bools | Singles

_NUMBERS = 12  # values of one matrix column from which on near ones tell something
_WINDOW = 0.1  # the share of people whose values are near
_FITTED = 200  # people whose likelihood chooses the shares
_FITTED_OTHERS = 1000  # people whose values they may have
_STEPS = 12  # of the choice, after which the likelihood grew by less than one in a thousand
_LEAST = 0.001  # of each share, so that no record is impossible
_BLOCK = 1 << 20  # pairs of people at a time
_PAIRS = 12_000_000  # pairs of people looked at
_PEOPLE = 2_000  # to look at for each record; where that is too many, densities are not estimated
_FLATTER = 0.8
"""The power of the density that the chance of an equal grows with: measured on the Adult and ACS tables, where the
density, which people leave of each other, is too small for rare records, and 0.75 to 0.85 are likeliest."""


@dataclass
class _DensityColumn:
    """The values of a column, and how likely a person has the value of another.

    Attributes:
        frequencies: Of the value of each person, among the others.
        is_shared: Whether any value is that of two people.
        ranks, first, last, mass: Of numbers: the ranks of the values, those that are near each, and the share of people
            who have these; None: no value is near.
        shares: How often a person has the very value of another, one near to it, and any.
    """

    codes: Ints
    frequencies: Floats
    is_shared: bool
    ranks: Ints | None
    first: Ints
    last: Ints
    mass: Floats
    shares: Floats

    @classmethod
    def of(cls, matrix: Matrix) -> _DensityColumn:
        rows = len(matrix)
        _, codes, counts = np.unique(hash_rows(matrix), return_inverse=True, return_counts=True)
        codes = codes.reshape(-1)
        frequencies = np.asarray((counts[codes] - 0.5) / (rows - 1 + 0.5 * len(counts)), np.float64)
        is_shared = len(counts) < rows
        if matrix.shape[1] > 1 or len(counts) <= _NUMBERS:
            shares = np.array([0.8, 0.0, 0.2])
            return cls(codes, frequencies, is_shared, None, codes[:0], codes[:0], frequencies[:0], shares)
        values, reach = matrix[:, 0] + 0.0, int(_WINDOW / 2 * rows)
        in_order = np.sort(values)
        ranks, beyond = (np.searchsorted(in_order, values, side) for side in ("left", "right"))
        first = np.searchsorted(in_order, in_order[np.maximum(0, ranks - reach)], "left")
        last = np.minimum(rows, beyond + reach) - 1
        mass = (np.searchsorted(in_order, in_order[last], "right") - first) / rows
        narrow = np.min_scalar_type(-rows)  # compared in a quarter of the time
        ranks, first, last = (numbers.astype(narrow) for numbers in (ranks, first, last))
        return cls(codes, frequencies, is_shared, ranks, first, last, mass, np.array([0.7, 0.2, 0.1]))

    def equal(self, people: Ints, donors: Ints) -> Bools | None:
        """Tell who has the value of another; None: everybody's is another one."""
        return np.asarray(self.codes[people][:, None] == self.codes[donors]) if self.is_shared else None

    def near(self, people: Ints, donors: Ints) -> Bools | None:
        """Tell who has a value near to that of another, or the same."""
        if self.ranks is None:
            return None
        ranks = self.ranks[people][:, None]
        return np.asarray((ranks >= self.first[donors]) & (ranks <= self.last[donors]))

    def odds(self) -> tuple[Floats, Floats]:
        """Return what an equal value and a near one make of the chance of any, in proportion to that."""
        exact, near, anybody = self.shares
        equal = exact / anybody / self.frequencies
        return equal, np.zeros(len(equal)) if self.ranks is None else near / anybody / self.mass

    def logarithms(
        self,
        people: Ints,
        donors: Ints,
        equal: PairWeights | None,
        near: PairWeights | None,
        odds: tuple[Floats, Floats],
    ) -> Singles | float:
        """Return the logarithm of the chance of every person's value, given another's, in proportion to that of any."""
        of_equal, of_near = odds
        as_near = np.log1p(of_near).astype(np.float32)
        if equal is None:
            return 0.0 if near is None else np.multiply(near, as_near[donors])
        more = np.log1p(of_equal + of_near).astype(np.float32) - as_near
        of_both: Singles = np.multiply(equal, more[people][:, None])
        return of_both if near is None else near * as_near[donors] + of_both


def estimate_rarity(
    rows: Matrix, groups: Sequence[slice] | None, outsiders: Matrix | None, random: np.random.Generator
) -> Rarity:
    """Tell how rare records are as `measure_rarity` does, by densities; by near misses in tables of over 6,000 rows."""
    rarity = measure_rarity(rows, groups, outsiders)
    most = _PAIRS // len(rows)
    if most < _PEOPLE:
        return rarity
    columns = [slice(index, index + 1) for index in range(rows.shape[1])] if groups is None else groups
    logarithms = estimate_log_densities(rows, columns, outsiders, random, most)
    return replace(rarity, scores=np.exp(_FLATTER * (logarithms - logarithms.max())))


def estimate_log_densities(
    rows: Matrix, groups: Sequence[slice], outsiders: Matrix | None, random: np.random.Generator, most: int
) -> Floats:
    """Estimate the logarithm of each record's chance to be that of another person; at most so many are looked at.

    A kernel density of mixed columns (Aitchison and Aitken 1976): a person has, independently in each column, the value
    of another person who is drawn at random, or a value near to it, or any value at all. How often each is the case is
    chosen for every column by the likelihood that people leave of each other, in steps of expectation and maximisation.
    Each record is left out where its own chance is estimated; others are more people of the same population.
    """
    pool = rows if outsiders is None else np.concatenate([rows, outsiders])
    columns = [_DensityColumn.of(pool[:, group]) for group in groups]
    order = random.permutation(len(pool))
    _fit_shares(columns, order[:_FITTED], order[:_FITTED_OTHERS])
    looked_at = np.sort(order[:most])
    result = np.sum([np.log(column.shares[2] * column.frequencies[: len(rows)]) for column in columns], axis=0)
    step = max(1, _BLOCK // len(looked_at))
    for start in range(0, len(rows), step):
        progress.check()
        people = np.arange(start, min(start + step, len(rows)))
        logarithms = np.zeros((len(people), len(looked_at)), np.float32)
        for column in columns:
            equal, near = column.equal(people, looked_at), column.near(people, looked_at)
            logarithms += column.logarithms(people, looked_at, equal, near, column.odds())
        logarithms[people[:, None] == looked_at] = -np.inf
        largest = logarithms.max(axis=1)
        counted = len(looked_at) - np.isin(people, looked_at)
        total = np.exp(logarithms - largest[:, None]).sum(axis=1, dtype=np.float64)
        result[people] += largest + np.log(total / counted)
    return np.asarray(result)


def _fit_shares(columns: list[_DensityColumn], people: Ints, donors: Ints) -> None:
    """Choose the shares of every column; the people are the first of the others."""
    pairs = []  # who has the value of a donor, one near to it or the same, and one near to it
    for column in columns:
        is_equal, is_near = column.equal(people, donors), column.near(people, donors)
        is_beside = is_near if is_near is None or is_equal is None else is_near > is_equal
        # numbers, since they are multiplied again and again: NumPy else makes numbers of them each time
        pairs.append(
            [None if truths is None else truths.astype(np.float32) for truths in (is_equal, is_near, is_beside)]
        )
    diagonal = np.arange(len(people))
    for _ in range(_STEPS):
        progress.check()
        odds = [column.odds() for column in columns]
        logarithms = np.zeros((len(people), len(donors)), np.float32)
        for column, (equal, near, _), of_column in zip(columns, pairs, odds, strict=True):
            logarithms += column.logarithms(people, donors, equal, near, of_column)
        logarithms[diagonal, diagonal] = -np.inf  # nobody is their own neighbour
        weights = np.exp(logarithms - logarithms.max(axis=1)[:, None])
        weights /= weights.sum(axis=1)[:, None]
        for column, (equal, near, beside), (of_equal, of_near) in zip(columns, pairs, odds, strict=True):
            exact = close = 0.0
            if equal is not None:
                of_pairs = (weights * equal).sum(axis=1) / (1 + of_equal + of_near)[people]
                exact, close = float(of_pairs @ of_equal[people]), float(of_pairs @ of_near[people])
            if beside is not None:
                close += float((weights * beside).sum(axis=0) @ (of_near / (1 + of_near))[donors])
            counts = exact, close, len(people) - exact - close
            least = _LEAST, 0.0 if near is None else _LEAST, _LEAST
            shares = [max(count / len(people), lowest) for count, lowest in zip(counts, least, strict=True)]
            column.shares = np.array(shares) / sum(shares)


LIMIT = 0.55
"""The largest AUC of all people that passes: members and others are told apart hardly better than by a coin."""
_NEAREST = 1e-3  # a distance at which a record is found: nearer ones do not make the mean over releases smaller


def compare_membership(members: Floats, outsiders: Floats, confidence: float) -> Rate:
    """Compare how near a release comes to its members and to others, by distances or scores that grow with them."""
    noise = np.sqrt((len(members) + len(outsiders) + 1) / (12 * len(members) * len(outsiders)))
    area = measure_area(members, outsiders)
    return Rate(area, 0.5, max(LIMIT, 0.5 + NormalDist().inv_cdf(confidence) * float(noise)), len(members))


def measure_area(members: Floats, outsiders: Floats) -> float:
    """Return the AUC: how often a member has a smaller score than another person, a tie being half."""
    ordered = np.sort(outsiders)
    smaller, not_larger = (np.searchsorted(ordered, members, side).sum() for side in ("left", "right"))
    return 1 - float(smaller + not_larger) / (2 * len(members) * len(outsiders))


def score_distances(people: Matrix, releases: Sequence[Matrix]) -> Floats:
    """Return the mean, over releases, of the logarithm of the distance to the nearest row; of one, the distance."""
    if len(releases) == 1:
        return np.asarray(find_nearest(people, releases[0], 1)[0][:, 0], np.float64)
    logs = [np.log(find_nearest(people, release, 1)[0][:, 0] + _NEAREST) for release in releases]
    return np.asarray(np.mean(logs, axis=0), np.float64)


def compare_isolated_people(
    people: Matrix,
    outsiders: Matrix,
    releases: Sequence[Matrix],
    random: np.random.Generator,
    confidence: float,
    *,
    most: int | None = None,
) -> Rate:
    """Compare how near releases of the same people come to the most isolated of them and of others.

    Isolated are the 10 % of a side who are farthest from all others of that side, so that both sides are chosen alike;
    a larger side leaves smaller distances, so both have the same size. The score of a person is the logarithm of the
    distance to the nearest released row as a share of that distance: isolated people differ by orders of magnitude in
    how far they are from everything, and being a member moves each by a factor. It is asked on the standardised columns
    and on their normal scores, where a tail that reaches far does not decide alone who is isolated; the scale that
    tells more counts. Several releases are attacked by the mean of the scores, in which what is random in each of them
    averages out. At most ``most`` people of a side are looked at, drawn at random.
    """
    size = min(len(people), len(outsiders))
    pooled = np.concatenate([people, outsiders])
    scales: list[Callable[[Matrix], Matrix]] = [np.asarray, import_function(NORMAL_SCORES)(pooled)]
    rates = []
    for scale in scales:
        scaled = [scale(release) for release in releases]
        outside = _score_isolated(scale(outsiders[random.permutation(len(outsiders))[:size]]), scaled, most)
        inside = [
            _score_isolated(scale(people[part][:size]), scaled, most) for part in draw_parts(len(people), size, random)
        ]
        count = min(len(outside), *map(len, inside))
        if count:
            noise = np.sqrt((2 * count + 1) / (12 * count**2))
            area = float(np.mean([measure_area(scores, outside) for scores in inside]))
            rates.append(Rate(area, 0.5, min(1.0, 0.5 + NormalDist().inv_cdf(confidence) * float(noise)), count))
    return max(rates, key=lambda rate: rate.value - rate.limit, default=Rate(0.5, 0.5, 0.5, 0))


def _score_isolated(side: Matrix, releases: Sequence[Matrix], most: int | None) -> Floats:
    """Return the scores of the isolated people of a side, whose rows are in random order."""
    rows = np.arange(len(side))[:most]
    apart = find_nearest(side[rows], side, 1, skip_self=rows)[0][:, 0]
    isolated = find_isolated(apart)
    if not len(isolated):
        return np.zeros(0)
    ratios = [find_nearest(side[isolated], release, 1)[0][:, 0] / apart[isolated] for release in releases]
    return np.asarray(np.mean(np.log(np.array(ratios) + _NEAREST), axis=0), np.float64)
