"""Choices exchanged between new rows until no pair of them is much more or less frequent than it was.

Scores keep correlations of choices, not what excludes each other: of two choices that nobody makes together, both may
have large scores in a row. Exchanges keep how often each choice is made.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from duckanon.common import progress
from duckanon.common.arrays import Bools, Floats, Ints, Reals
from duckanon.common.people import people_in

BINS = 8
"""Intervals of equally many rows, in which numbers are compared with choices."""
_BATCHES = 20
_TRIED = 100_000  # rows that are looked at for each column, in each batch
_MOST_PARTNERS = 8  # that are tried for a row
_ALLOWED = 1.0  # deviations: nearer counts, with 0.7, told more about who takes part
_MOST_CELLS = 4  # pairs of choices a row that are counted in a table


@dataclass(frozen=True)
class Choices:
    """A column of the table and of new rows.

    Attributes
    ----------
    original, released
        The choice of each row; that of new rows is changed by `exchange`.
    count
        How many choices there are.
    is_fixed
        Whether new rows keep theirs, as they do intervals of numbers.
    """

    original: Ints
    released: Ints
    count: int
    is_fixed: bool = False


@dataclass(frozen=True)
class _Pairs:
    """How often pairs of choices are wanted among new rows, what a difference costs, and how often they are there."""

    first: int
    second: int
    width: int
    wanted: Floats
    weight: Floats
    allowed: Floats
    counts: Floats

    def cells(self, column: int, own: Ints, other: Ints) -> Ints:
        return own * self.width + other if column == self.first else other * self.width + own

    def gains(self) -> tuple[Floats, Floats]:
        """Return by how much the loss falls if a row leaves a cell, and if one comes to it."""
        apart = self.counts - self.wanted
        leaving, coming = (self._loss(apart) - self._loss(apart + step) for step in (-1, 1))
        return leaving, coming

    def _loss(self, apart: Floats) -> Floats:
        return np.asarray(self.weight * np.maximum(np.abs(apart) - self.allowed, 0) ** 2)


def binned(scores: Reals, random: np.random.Generator) -> Ints:
    """Put numbers into intervals of equally many rows; equal ones are ordered at random.

    Examples
    --------
    >>> sorted(binned(np.arange(16.0)[::-1], np.random.default_rng(1)).tolist()) == sorted([*range(8)] * 2)
    True
    """
    order = np.lexsort((random.random(len(scores)), scores))
    bins = np.empty(len(scores), np.int64)
    bins[order] = np.arange(len(scores)) * BINS // max(len(scores), 1)
    return bins


def wanted_counts(counts: Floats, is_rare: Bools, k: int) -> Floats:
    """Return how often pairs of choices are wanted, so that those of fewer than k people tell nothing about these.

    Parameters
    ----------
    counts
        How often choices (rows) are made together with others (columns).
    is_rare
        The pairs that fewer than k people have.
    k
        The number of people.

    Notes
    -----
    Rare pairs share their total in proportion to what chance would give them, at most k: those that chance would make
    frequent, and hence something avoids, by themselves, and those that it would not.

    Examples
    --------
    >>> counts = np.array([[400.0, 1], [0, 99]])
    >>> wanted_counts(counts, counts < 10, 10).tolist()
    [[400.0, 0.5], [0.5, 99.0]]
    """
    expected = _expected(counts)
    wanted = counts.astype(np.float64)
    for rare in (is_rare & (expected >= k), is_rare & (expected < k)):
        shares = np.minimum(expected[rare], k)
        if shares.sum() > 0:
            wanted[rare] = shares * (counts[rare].sum() / shares.sum())
    return wanted


def _expected(counts: Floats) -> Floats:
    return np.outer(counts.sum(axis=1), counts.sum(axis=0)) / max(float(counts.sum()), 1.0)


def exchange(columns: Sequence[Choices], people: Ints | None, k: int, random: np.random.Generator) -> None:
    """Exchange choices between new rows, in place.

    Parameters
    ----------
    columns
        What is compared.
    people
        Whose each row of the table is; None where every row is another person.
    k
        The least number of people whose pair of choices is wanted as often as it was (`wanted_counts`).
    random
        Draws rows to exchange with.

    Notes
    -----
    Rows whose pairs are too many try others, drawn at random, and exchange a choice where that brings counts of pairs
    nearer to the wanted ones. A count may differ by as much as chance makes it differ, sqrt(count + k), at no cost:
    nearer counts would tell who is part of the table. Only pairs that are avoided, rare ones that chance would make k
    times, come as seldom as they are wanted, which is no pair's own count. In large tables some rows are never tried.
    """
    free = [index for index, column in enumerate(columns) if not column.is_fixed]
    pairs = _pairs(columns, people, k)
    for batch in range(_BATCHES if pairs else 0):
        for index in random.permutation(free).tolist():
            progress.check()
            # Fewer each time, for gains are those of one exchange alone.
            _exchange(
                columns, [pair for pair in pairs if index in (pair.first, pair.second)], index, 2 + batch / 2, random
            )


def _pairs(columns: Sequence[Choices], people: Ints | None, k: int) -> list[_Pairs]:
    found = []
    for (first, one), (second, other) in combinations(enumerate(columns), 2):
        size = one.count * other.count
        if (one.is_fixed and other.is_fixed) or size > _MOST_CELLS * len(one.original):
            continue
        cells = one.original * other.count + other.original
        counts = np.bincount(cells, minlength=size).reshape(one.count, -1).astype(np.float64)
        is_rare = people_in(cells, people, size).reshape(one.count, -1) < k
        scale = len(one.released) / len(one.original)
        wanted = wanted_counts(counts, is_rare, k).ravel() * scale
        noise = wanted + k * scale
        allowed = np.where((is_rare & (_expected(counts) >= k)).ravel(), 0.0, _ALLOWED * np.sqrt(noise))
        made = np.bincount(one.released * other.count + other.released, minlength=size).astype(np.float64)
        found.append(_Pairs(first, second, other.count, wanted, 1 / noise, allowed, made))
    return found


def _exchange(
    columns: Sequence[Choices], pairs: Sequence[_Pairs], index: int, part: float, random: np.random.Generator
) -> None:
    """Exchange the choices of a column between rows that gain by it, the best ones first, one in `part` at most."""
    released = columns[index].released
    beside = [columns[pair.second if index == pair.first else pair.first].released for pair in pairs]
    gains = [pair.gains() for pair in pairs]
    rows = len(released)
    looked_at = np.arange(rows) if rows <= _TRIED else random.choice(rows, _TRIED, replace=False)
    cost = np.zeros(len(looked_at))
    for pair, other, (leaving, _) in zip(pairs, beside, gains, strict=True):
        cost += leaving[pair.cells(index, released[looked_at], other[looked_at])]
    wrong = looked_at[cost > 0]
    if not len(wrong):
        return
    partners = int(np.clip(len(looked_at) // len(wrong), 1, _MOST_PARTNERS))
    one, other = np.repeat(wrong, partners), random.integers(0, rows, len(wrong) * partners)
    left, right = released[one], released[other]
    gain = np.zeros(len(one))
    for pair, values, (leaving, coming) in zip(pairs, beside, gains, strict=True):
        here, there = values[one], values[other]
        gained = leaving[pair.cells(index, left, here)] + leaving[pair.cells(index, right, there)]
        gained += coming[pair.cells(index, right, here)] + coming[pair.cells(index, left, there)]
        gain += np.where(here != there, gained, 0.0)
    gain[left == right] = 0.0
    best = np.arange(len(wrong)) * partners + gain.reshape(-1, partners).argmax(axis=1)
    best = best[gain[best] > 0]
    best = best[np.argsort(-gain[best], kind="stable")[: 1 + int(rows / 2 / part)]]
    best = best[np.sort(np.unique(other[best], return_index=True)[1])]  # each row takes part once
    best = best[~np.isin(other[best], one[best])]
    one, other, left, right = one[best], other[best], left[best], right[best]
    for pair, values in zip(pairs, beside, strict=True):
        before = pair.cells(index, np.concatenate([left, right]), values[np.concatenate([one, other])])
        after = pair.cells(index, np.concatenate([right, left]), values[np.concatenate([one, other])])
        pair.counts[:] += np.bincount(after, minlength=len(pair.counts))
        pair.counts[:] -= np.bincount(before, minlength=len(pair.counts))
    released[one], released[other] = right, left
