"""Numbers computed from others in a release, none of which fewer than k people hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from duckanon.common.arrays import Bools, Floats, Ints
from duckanon.matrix.formulas import Formula
from duckanon.matrix.parts import ColumnParts, rounded
from duckanon.release.grids import Grid, grid_of, off_taken
from duckanon.release.safe_numbers import rare_places

_ROUNDS = 100
_NEAR = 0.02  # of the rows: how far away in rank the number is that takes a number's place


@dataclass(frozen=True)
class Computed:
    """A column that is computed.

    Attributes
    ----------
    formula
        How.
    column
        The table's.
    grid, rare
        The places of its values, and those that fewer than `least` people hold.
    least
        The number of people: see `SafeNumbers`.
    """

    formula: Formula
    column: ColumnParts
    grid: Grid
    rare: Ints
    least: int

    @classmethod
    def of(cls, formula: Formula, column: ColumnParts, people: Ints | None, k: int) -> Computed:
        """Learn which values must not come out."""
        assert column.regular is not None
        grid = grid_of(column.regular)
        return cls(formula, column, grid, *rare_places(grid, column, people, k))

    def array(self, sources: Sequence[Floats]) -> pa.Array:
        """Compute the column; a value that fewer people hold is moved to the nearest that may come out.

        Raises
        ------
        ValueError
            Where none may.
        """
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

    def is_rare(self, sources: Sequence[Floats]) -> Bools:
        """Tell in which rows the column has a value that fewer than k people hold."""
        made = rounded(self.column, self.formula.computed(sources))
        places = self.grid.places(made)
        if not len(self.rare):
            return np.zeros(len(places), np.bool_)
        index = np.minimum(np.searchsorted(self.rare, places), len(self.rare) - 1)
        is_valid = made.is_valid().to_numpy(zero_copy_only=False)
        return np.asarray((self.rare[index] == places) & is_valid)


def exchanged(
    computed: Computed, sources: Sequence[Floats], source: int, movable: Bools, random: np.random.Generator
) -> Ints:
    """Exchange numbers of a source between rows of near ranks, until computed values are none of a few people's.

    Parameters
    ----------
    computed
        The column.
    sources
        The numbers of all its sources.
    source
        The index of the one whose numbers are exchanged: the column keeps its distribution, and nearly its relations.
    movable
        The rows whose number may be exchanged.
    random
        Where chance comes from.

    Returns
    -------
    numpy.ndarray
        The row whose number each row gets. Not all that is rare can be avoided.
    """
    values = list(sources)
    values[source] = sources[source].copy()
    taken_from = np.arange(len(movable))
    rows = np.flatnonzero(movable)
    by_rank = rows[np.argsort(values[source][rows], kind="stable")]
    rank = np.full(len(movable), -1)
    rank[by_rank] = np.arange(len(by_rank))
    near = max(2, int(_NEAR * len(by_rank)))
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
