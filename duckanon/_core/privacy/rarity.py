"""Rarity of records: the number of other people who have the same values, or nearly; and rare values of columns.

That a record has no equal in its table says little; how many differ from it in one column or two says more. Hashes of
columns are summed, so that leaving columns out is a subtraction, and equal sums are counted: a sort for each column and
each pair of columns. Values of single people that a release shows are counted column by column: a column may be
released whole, in any order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from duckanon._core.common import progress
from duckanon._core.common.arrays import Floats, Ints, Matrix
from duckanon._core.common.row_keys import hash_rows
from duckanon._core.privacy.copy_rates import Rate, compare_members, compare_shares, count_codes, draw_parts

_PAIRS_OF_COLUMNS = 30_000_000  # rows times pairs of columns up to which those that differ in two columns are counted
_STEEPER = 1.1
"""The power of the share of near misses that the chance of an equal grows with: measured on the Adult and ACS tables,
where 1 expects a tenth too many equals of rare records, and 1.2 too few."""
_EQUAL = 0.2
"""How much equal records count, beside 1 for those that differ in one column and 1 for two: measured on Adult, 4 to 9 %
of the records that chance repeats have an equal among the others."""
_COLUMNS = 3
"""Columns of more than two values from which on near misses say how many pairs are equal: of two, those at the same end
of a range, which many share, are near in one column and equal in both."""
_LOOKED_AT = 1000  # rows that tell how many values a column has
_FEW = 10  # near misses up to which their number says nothing about how many more differ in two columns
_MOST_PER_EQUAL = 50.0  # near misses for each equal pair, where that is so: at most 124 in surveys
_DEPENDENT = 3.0  # by how much columns that depend on each other lower what independent ones would have: 1.4 to 6
_MARGIN = 1.25  # by how much the estimate from pairs that differ in two columns may be too large: up to 1.5

Hashes = npt.NDArray[np.uint64]


@dataclass(frozen=True)
class Rarity:
    """Counts of others who are nearly equal to each record of a table.

    Attributes:
        scores: In proportion to how many of another sample are expected to be equal to each record.
        near_pairs, near_per_equal: Pairs of records that differ in one column, and how many are expected for each equal
            pair.
        twins, twin_pairs: Pairs of equal records that no third one is equal to, within the table and within the others,
            and how many pairs there are in all.
    """

    scores: Floats
    near_pairs: float
    near_per_equal: float
    twins: float = 0.0
    twin_pairs: float = 0.0


def measure_rarity(rows: Matrix, groups: Sequence[slice] | None = None, outsiders: Matrix | None = None) -> Rarity:
    """Count who is nearly equal to each record.

    That a record has no equal in its table says little: of a thousand people of the Adult table (seven columns), one in
    twenty who have none find one in another thousand, most of them where many differ in one column or two, and next to
    none where nobody does. The score adds up how many are equal, differ in one column, and in two, each as a share of
    its total, equal ones with a smaller weight: they are other people, or those of the other half of the table.

    Were the columns independent, and a share s of the pairs agreed in each, there would be sum((1 - s) / s) pairs that
    differ in one column for each that is equal. Columns depend on each other, which is seen where there are more pairs
    that differ in one column, for those that differ in two, than there would be if they did not.

    Groups are the matrix columns of each column of the table; None: each is one by itself. Others are more people of
    the same population, who tell how rare the records are, and not those of a release: what it has near a record may be
    due to the record.
    """
    parts = [slice(index, index + 1) for index in range(rows.shape[1])] if groups is None else groups
    hashes = [hash_rows(rows[:, group]) * _make_odd_factor(index) for index, group in enumerate(parts)]
    counts = _count_near(hashes)
    pairs = len(rows) * max(len(rows) - 1, 1) / 2
    agreeing = np.array([max(_count_equal(column).sum() / 2, 0.5) / pairs for column in hashes])
    odds = (1 - agreeing) / agreeing
    per_equal, near_pairs = 1.0, counts.one_off.sum() / 2
    if sum(len(np.unique(column[:_LOOKED_AT])) > 2 for column in hashes) >= _COLUMNS:
        per_equal = _estimate_near_per_equal(
            odds, near_pairs, None if counts.two_off is None else counts.two_off.sum() / 2
        )
    twins, twin_pairs = _count_twins(counts.equal), pairs
    if outsiders is not None:
        more = [hash_rows(outsiders[:, group]) * _make_odd_factor(index) for index, group in enumerate(parts)]
        counts = _count_near([np.concatenate(both) for both in zip(hashes, more, strict=True)])
        twins += _count_twins(_count_equal(np.asarray(np.sum(more, axis=0, dtype=np.uint64))))
        twin_pairs += len(outsiders) * (len(outsiders) - 1) / 2
    return Rarity(counts.scores(len(rows)) ** _STEEPER, near_pairs, per_equal, twins, twin_pairs)


class _Counts(NamedTuple):
    """Numbers of others equal to each record, one column off, and two; None where that takes too long."""

    equal: Ints
    one_off: Ints
    two_off: Ints | None

    def scores(self, rows: int) -> Floats:
        """Add up the numbers of the first rows as shares."""
        equal, one_off = self.equal[:rows], self.one_off[:rows]
        is_equal = _EQUAL * equal / max(equal.sum(), 1)
        if self.two_off is None:
            return np.asarray(is_equal + _smooth_shares(one_off))
        return np.asarray(is_equal + one_off / max(one_off.sum(), 1) + _smooth_shares(self.two_off[:rows]))


def _count_near(hashes: Sequence[Hashes]) -> _Counts:
    """Count for each record those whose columns have the same hashes, but for one column or two."""
    rows, columns = len(hashes[0]), len(hashes)
    total = np.asarray(np.sum(hashes, axis=0, dtype=np.uint64))
    equal = _count_equal(total)
    one_off = []
    for column in hashes:
        progress.check()
        one_off.append(_count_equal(total - column) - equal)
    two_off = None
    if rows * columns * (columns - 1) / 2 <= _PAIRS_OF_COLUMNS:
        two_off = np.zeros(rows, np.int64)
        for first, second in combinations(range(columns), 2):
            progress.check()
            left = _count_equal(total - hashes[first] - hashes[second])
            two_off += left - equal - one_off[first] - one_off[second]
    return _Counts(equal, np.sum(one_off, axis=0), two_off)


def _estimate_near_per_equal(odds: Floats, one_off: float, two_off: float | None) -> float:
    """Estimate how many pairs differ in one column for each that is equal, given those that differ in one, and in two.

    The odds are, for each column, how many pairs differ for each that agrees.
    """
    independent = float(odds.sum())
    if two_off is None or one_off < _FEW:
        return max(1.0, min(_MOST_PER_EQUAL, independent / _DEPENDENT))
    next_independent = (independent**2 - float(np.square(odds).sum())) / 2 / max(independent, 1e-9)
    dependence = min(1.0, two_off / one_off / max(next_independent, 1e-9))
    return max(1.0, independent * dependence / _MARGIN)


def _make_odd_factor(index: int) -> np.uint64:
    """Return a factor of the hashes of a column, so that equal values of two columns do not look alike.

    Factors have no pattern (they are splitmix64's numbers): where each was the one before and something, a change of
    one category looked like that of another.
    """
    mixed = (index + 1) * 0x9E3779B97F4A7C15 % 2**64
    mixed = (mixed ^ mixed >> 30) * 0xBF58476D1CE4E5B9 % 2**64
    mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EB % 2**64
    return np.uint64((mixed ^ mixed >> 31) | 1)


def _count_equal(hashes: Hashes) -> Ints:
    """Count the others of the same hash for each row."""
    _, inverse, counts = np.unique(hashes, return_inverse=True, return_counts=True)
    return np.asarray(counts[inverse.reshape(-1)] - 1, np.int64)


def _count_twins(equal: Ints) -> float:
    """Count the pairs of records that have each other as their only equal."""
    return float((equal == 1).sum() / 2)


def _smooth_shares(counts: Ints) -> Floats:
    """Return counts as shares of their total; half a one more for everybody, since none so far is not never."""
    return np.asarray((counts + 0.5) / (counts.sum() + 0.5 * len(counts)), np.float64)


class ColumnCodes(NamedTuple):
    """The values of a column as numbers, equal ones as the same; None where there are no other people."""

    original: Ints
    released: Ints
    outsiders: Ints | None


def count_rare_values(columns: Sequence[ColumnCodes], random: np.random.Generator, confidence: float) -> Rate:
    """Count the values that only one person has and the release shows, in the column where this tells most.

    With other people: of the values that one of all these people has, chance shows as many of members as of others, so
    that the members among those whose value is shown are a draw without replacement. Without them: of the values that
    one person of a random half of the table has, as many are shown by half of the release as by the other half of the
    table. Each column has its share of the false alarms.
    """
    alone = 1 - (1 - confidence) / max(len(columns), 1)
    rates = [
        _compare_halves(column, random, alone) if column.outsiders is None else _compare_with_others(column, alone)
        for column in columns
    ]
    return max(rates, key=lambda rate: rate.value - rate.limit, default=Rate(0.0, 0.0, 0.0, 0))


def _compare_with_others(column: ColumnCodes, confidence: float) -> Rate:
    assert column.outsiders is not None
    people = np.concatenate([column.original, column.outsiders])
    codes = count_codes(people, column.released)
    is_single = np.bincount(people, minlength=codes)[people] == 1
    is_shown = np.bincount(column.released, minlength=codes)[people] > 0
    members = int(is_single[: len(column.original)].sum())
    return compare_members(is_shown[is_single], members, confidence)


def _compare_halves(column: ColumnCodes, random: np.random.Generator, confidence: float) -> Rate:
    codes = count_codes(column.original, column.released)
    order = random.permutation(len(column.original))
    half, rest = order[: len(order) // 2], order[len(order) // 2 :]
    counts = np.bincount(column.original[half], minlength=codes)
    single = np.flatnonzero(counts == 1)
    usual = np.bincount(column.original[rest], minlength=codes)[single] > 0
    drawn = draw_parts(len(column.released), len(rest), random)
    hits = np.zeros(len(single))
    for part in drawn:
        hits += np.bincount(column.released[part], minlength=codes)[single] > 0
    return compare_shares(float(hits.sum()) / len(drawn), len(single), float(usual.sum()), len(single), confidence)
