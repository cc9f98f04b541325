"""The likelihood of the values of each record together, by all the people who share some of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from duckanon._core.common import progress
from duckanon._core.common.arrays import Bools, Floats, Ints, Matrix
from duckanon._core.privacy.equal_rows import row_hashes
from duckanon._core.privacy.rarity import Rarity, rarity_of

Singles: TypeAlias = npt.NDArray[np.float32]
Pairs: TypeAlias = Bools | Singles

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
class _Column:
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
    def of(cls, matrix: Matrix) -> _Column:
        rows = len(matrix)
        _, codes, counts = np.unique(row_hashes(matrix), return_inverse=True, return_counts=True)
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
        ranks, first, last = (one.astype(narrow) for one in (ranks, first, last))
        return cls(codes, frequencies, is_shared, ranks, first, last, mass, np.array([0.7, 0.2, 0.1]))

    def equal(self, people: Ints, others: Ints) -> Bools | None:
        """Tell who has the value of another; None: everybody's is another one."""
        return np.asarray(self.codes[people][:, None] == self.codes[others]) if self.is_shared else None

    def near(self, people: Ints, others: Ints) -> Bools | None:
        """Tell who has a value near to that of another, or the same."""
        if self.ranks is None:
            return None
        ranks = self.ranks[people][:, None]
        return np.asarray((ranks >= self.first[others]) & (ranks <= self.last[others]))

    def odds(self) -> tuple[Floats, Floats]:
        """Return what an equal value and a near one make of the chance of any, in proportion to that."""
        exact, near, anybody = self.shares
        equal = exact / anybody / self.frequencies
        return equal, np.zeros(len(equal)) if self.ranks is None else near / anybody / self.mass

    def logarithms(
        self, people: Ints, others: Ints, equal: Pairs | None, near: Pairs | None, odds: tuple[Floats, Floats]
    ) -> Singles | float:
        """Return the logarithm of the chance of every person's value, given another's, in proportion to that of any."""
        of_equal, of_near = odds
        as_near = np.log1p(of_near).astype(np.float32)
        if equal is None:
            return 0.0 if near is None else np.multiply(near, as_near[others])
        more = np.log1p(of_equal + of_near).astype(np.float32) - as_near
        of_both: Singles = np.multiply(equal, more[people][:, None])
        return of_both if near is None else near * as_near[others] + of_both


def rarity_by_density(
    rows: Matrix, groups: Sequence[slice] | None, others: Matrix | None, random: np.random.Generator
) -> Rarity:
    """Tell how rare records are as `rarity_of` does, by densities; by near misses in tables of over 6,000 rows."""
    rarity = rarity_of(rows, groups, others)
    most = _PAIRS // len(rows)
    if most < _PEOPLE:
        return rarity
    columns = [slice(place, place + 1) for place in range(rows.shape[1])] if groups is None else groups
    logarithms = log_densities(rows, columns, others, random, most)
    return replace(rarity, scores=np.exp(_FLATTER * (logarithms - logarithms.max())))


def log_densities(
    rows: Matrix, groups: Sequence[slice], others: Matrix | None, random: np.random.Generator, most: int
) -> Floats:
    """Estimate the logarithm of each record's chance to be that of another person; at most so many are looked at.

    A kernel density of mixed columns (Aitchison and Aitken 1976): a person has, independently in each column, the value
    of another person who is drawn at random, or a value near to it, or any value at all. How often each is the case is
    chosen for every column by the likelihood that people leave of each other, in steps of expectation and maximisation.
    Each record is left out where its own chance is estimated; others are more people of the same population.
    """
    pool = rows if others is None else np.concatenate([rows, others])
    columns = [_Column.of(pool[:, group]) for group in groups]
    order = random.permutation(len(pool))
    _fit(columns, order[:_FITTED], order[:_FITTED_OTHERS])
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


def _fit(columns: list[_Column], people: Ints, others: Ints) -> None:
    """Choose the shares of every column; the people are the first of the others."""
    pairs = [_pairs_of(column, people, others) for column in columns]
    own = np.arange(len(people))
    for _ in range(_STEPS):
        progress.check()
        odds = [column.odds() for column in columns]
        logarithms = np.zeros((len(people), len(others)), np.float32)
        for column, (equal, near, _), of_column in zip(columns, pairs, odds, strict=True):
            logarithms += column.logarithms(people, others, equal, near, of_column)
        logarithms[own, own] = -np.inf
        weights = np.exp(logarithms - logarithms.max(axis=1)[:, None])
        weights /= weights.sum(axis=1)[:, None]
        for column, (equal, near, beside), (of_equal, of_near) in zip(columns, pairs, odds, strict=True):
            exact = close = 0.0
            if equal is not None:
                of_pairs = (weights * equal).sum(axis=1) / (1 + of_equal + of_near)[people]
                exact, close = float(of_pairs @ of_equal[people]), float(of_pairs @ of_near[people])
            if beside is not None:
                close += float((weights * beside).sum(axis=0) @ (of_near / (1 + of_near))[others])
            counts = exact, close, len(people) - exact - close
            least = _LEAST, 0.0 if near is None else _LEAST, _LEAST
            shares = [max(count / len(people), lowest) for count, lowest in zip(counts, least, strict=True)]
            column.shares = np.array(shares) / sum(shares)


def _pairs_of(column: _Column, people: Ints, others: Ints) -> tuple[Singles | None, Singles | None, Singles | None]:
    """Tell who has the value of another, one near to it or the same, and one near to it, in the type of the weights."""
    equal, near = column.equal(people, others), column.near(people, others)
    beside = near if near is None or equal is None else near > equal
    return _singles(equal), _singles(near), _singles(beside)


def _singles(pairs: Bools | None) -> Singles | None:
    """Take what is multiplied again and again as numbers, which NumPy else makes of it each time."""
    return None if pairs is None else pairs.astype(np.float32)
