"""Numbers computed from others in a release: shared by at least k people, or by nobody."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from duckanon._core.common import progress
from duckanon._core.common.arrays import Bools, Floats, Ints
from duckanon._core.common.people import people_in
from duckanon._core.encoding.formulas import Formula
from duckanon._core.encoding.parts import ColumnParts, doubles, rounded
from duckanon._methods.releasable.grids import Grid, grid_of, off_taken
from duckanon._methods.releasable.safe_numbers import rare_places

_ROUNDS = 100
_SLIGHT = 0.005  # the share of rows moved past a number for k: half of what drawn ones have, that move freely
_MATCHING_ROUNDS = 200
_MATCHING_NEAR = 0.05  # as near, for the few rows that are exchanged to match the distribution
_MOST_BINS = 200  # in which distributions are compared
_TRIED = 50_000  # pairs of rows a round
_MATCHED = 0.003  # the share of rows past some number that is left as it is
NEAR = 0.02  # of the rows: how far away in rank the number is that takes a number's place
FAR = 0.1  # the same, where near ones were tried and rules are kept


@dataclass(frozen=True)
class Computed:
    """A column that is computed by a formula; ``rare`` are the places shared by fewer than ``least`` people."""

    formula: Formula
    column: ColumnParts
    grid: Grid
    rare: Ints
    least: int

    @classmethod
    def of(cls, formula: Formula, column: ColumnParts, people: Ints | None, k: int) -> Computed:
        """Learn which values must not be released."""
        assert column.regular is not None
        grid = grid_of(column.regular)
        return cls(formula, column, grid, *rare_places(grid, column, people, k, _SLIGHT))

    def array(self, sources: Sequence[Floats]) -> pa.Array:
        """Compute the column; a value of fewer people is moved to the nearest releasable one."""
        made = rounded(self.column, self.formula.computed(sources))
        is_rare = self.is_rare(sources)
        if not is_rare.any():
            return made
        places = self.grid.places(made)
        room = 2**40 * self.grid.step
        free = off_taken(
            places[is_rare], self.rare, self.grid.step, int(self.rare[0]) - room, int(self.rare[-1]) + room
        )
        assert free is not None  # there is room outside of the range
        places[is_rare] = free
        return self.grid.array(places, made.is_valid().to_numpy(zero_copy_only=False) if made.null_count else None)

    def numbers(self, sources: Sequence[Floats]) -> Floats:
        """Compute the column, rounded as it is."""
        return doubles(rounded(self.column, self.formula.computed(sources)))

    def is_rare(self, sources: Sequence[Floats]) -> Bools:
        """Tell in which rows the column has a value shared by fewer than k people."""
        made = rounded(self.column, self.formula.computed(sources))
        places = self.grid.places(made)
        if not len(self.rare):
            return np.zeros(len(places), np.bool_)
        index = np.minimum(np.searchsorted(self.rare, places), len(self.rare) - 1)
        is_valid = made.is_valid().to_numpy(zero_copy_only=False)
        return np.asarray((self.rare[index] == places) & is_valid)


def people_without(column: ColumnParts, people: Ints | None) -> int:
    """Count the people who have no value."""
    missing = column.array.is_null().to_numpy(zero_copy_only=False).astype(np.int64)
    return int(people_in(missing, people, 2)[1])


def exchanged(
    computed: Computed,
    sources: Sequence[Floats],
    source: int,
    movable: Bools,
    reach: float,
    random: np.random.Generator,
) -> Ints:
    """Exchange numbers of a source between rows of near ranks, until computed values are none of a few people's.

    Ranks are apart by no more than `reach`, a share of the rows. The source (an index into the sources) keeps its
    distribution, and nearly its relations. Only numbers of movable
    rows are exchanged, and not all that is rare can be avoided. Return the row whose number each row gets.
    """
    values = list(sources)
    values[source] = sources[source].copy()
    taken_from = np.arange(len(movable))
    rows = np.flatnonzero(movable)
    by_rank = rows[np.argsort(values[source][rows], kind="stable")]
    rank = np.full(len(movable), -1)
    rank[by_rank] = np.arange(len(by_rank))
    near = max(2, int(reach * len(by_rank)))
    for _ in range(_ROUNDS):
        bad = np.flatnonzero(computed.is_rare(values) & movable)
        if not len(bad) or len(by_rank) < 2:
            break
        partners = by_rank[np.clip(rank[bad] + random.integers(-near, near + 1, len(bad)), 0, len(by_rank) - 1)]
        _, first = np.unique(partners, return_index=True)
        bad, partners = bad[first], partners[first]
        apart = ~np.isin(partners, bad)
        bad, partners = bad[apart], partners[apart]
        both = np.concatenate([bad, partners])
        trial = [one[both] for one in values]
        trial[source] = values[source][np.concatenate([partners, bad])]
        still = computed.is_rare(trial)
        better = ~(still[: len(bad)] | still[len(bad) :])
        bad, partners = bad[better], partners[better]
        for array in (values[source], taken_from):
            array[bad], array[partners] = array[partners], array[bad].copy()
    return taken_from


def matched(
    computed: Computed,
    sources: Sequence[Floats],
    source: int,
    movable: Bools,
    k: int,
    wanted: Floats,
    random: np.random.Generator,
) -> Ints:
    """Exchange numbers of a source as `exchanged` does, until the column is distributed as it was.

    Each source has the distribution that it had, but what is computed from several has one by chance, as far off as
    that of as many people drawn anew. Of random pairs those are exchanged that bring the two distributions nearest to
    each other, by the sum of squares of the difference, and make nothing that is rare. Distributions are compared at
    numbers at least k rows apart; `wanted` has the column's values in the table, NaN for NULL.
    """
    taken_from = np.arange(len(movable))
    wanted = wanted[~np.isnan(wanted)]
    bins = min(_MOST_BINS, len(wanted) // k)
    rows = np.flatnonzero(movable)
    if bins < 2 or len(rows) < 4:
        return taken_from
    edges = np.unique(np.quantile(wanted, np.arange(1, bins) / bins))
    values = [one.copy() if place == source else one for place, one in enumerate(sources)]
    numbers = computed.numbers(values)
    bin_of = np.searchsorted(edges, numbers)  # NaN comes last, and never moves
    is_known = ~np.isnan(numbers)
    shares = np.bincount(np.searchsorted(edges, wanted), minlength=len(edges) + 1) / len(wanted)
    counts = np.bincount(bin_of[is_known], minlength=len(edges) + 1)
    total = max(int(counts.sum()), 1)
    by_rank = rows[np.argsort(values[source][rows], kind="stable")]
    near = max(2, int(_MATCHING_NEAR * len(by_rank)))
    for _ in range(_MATCHING_ROUNDS):
        progress.check()
        ahead = np.cumsum(counts / total - shares)[:-1]
        if np.abs(ahead).max() <= _MATCHED:
            break
        first, second = _pairs(by_rank, int(random.integers(1, near + 1)), random)
        both = np.concatenate([first, second])
        trial = [one[both] for one in values]
        trial[source] = values[source][np.concatenate([second, first])]
        before, after = bin_of[both], np.searchsorted(edges, computed.numbers(trial))
        gains = np.where(is_known[both] & ~computed.is_rare(trial), _gains(ahead, total, before, after), -np.inf)
        gain = gains[: len(first)] + gains[len(first) :]
        best = np.argsort(-gain, kind="stable")[: 1 + int(np.abs(ahead).max() * total / 2)]
        best = best[gain[best] > 0]
        moved = np.concatenate([best, best + len(first)])
        counts += np.bincount(after[moved], minlength=len(counts)) - np.bincount(before[moved], minlength=len(counts))
        bin_of[both[moved]] = after[moved]
        one, other = first[best], second[best]
        for array in (values[source], taken_from):
            array[one], array[other] = array[other], array[one].copy()
    return taken_from


def _pairs(by_rank: Ints, apart: int, random: np.random.Generator) -> tuple[Ints, Ints]:
    """Pair rows that are so many ranks apart, each row at most once."""
    start = int(random.integers(0, min(2 * apart, len(by_rank) - 1)))
    lower = np.arange(start, len(by_rank) - apart)
    lower = lower[(lower - start) // apart % 2 == 0]
    if len(lower) > _TRIED:
        lower = lower[random.choice(len(lower), _TRIED, replace=False)]
    return by_rank[lower], by_rank[lower + apart]


def _gains(ahead: Floats, rows: int, before: Ints, after: Ints) -> Floats:
    """Return by how much the squares of the differences of two distributions fall if a row goes to another bin."""
    sums = np.concatenate([[0.0], np.cumsum(ahead)])
    return np.asarray(2 * (sums[after] - sums[before]) / rows - np.abs(after - before) / rows**2)
