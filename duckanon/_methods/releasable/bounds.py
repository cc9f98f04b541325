"""The ends of the numbers that a column may be released with, behind each of which stand k people."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from duckanon._core.common.arrays import Floats, Ints
from duckanon._core.common.people import NOBODY
from duckanon._core.encoding.parts import ColumnParts
from duckanon._methods.releasable.grids import Grid, grid_of, places_of


class Bounds(NamedTuple):
    """The numbers that a column may be released with: those between two places that k people stand behind."""

    grid: Grid
    lowest: int
    highest: int

    @classmethod
    def of(cls, column: ColumnParts, rows: int, k: int) -> Bounds:
        """Learn them from the first rows of a column, the table's: others are only compared with them."""
        assert column.regular is not None
        grid = grid_of(column.regular)
        own = places_of(grid, column.array.slice(0, rows))[column.is_regular[:rows]]
        values, counts = np.unique(own, return_counts=True)
        return cls(grid, *released_range(grid, own, None, k, values[counts >= k]))

    def array(self, column: ColumnParts, rows: int, random: np.random.Generator) -> pa.Array:
        """Return the regular numbers of a column, none of them out of bounds.

        The first `rows` are the table's: where a row has no regular number, one among these is drawn.
        """
        places = places_of(self.grid, column.array).copy()  # they may be the column's own memory
        own = places[:rows][column.is_regular[:rows]]
        others = np.flatnonzero(~column.is_regular)
        places[others] = random.choice(own, len(others)) if len(own) else self.lowest
        return self.grid.array(np.clip(places, self.lowest, self.highest), None)


def released_range(grid: Grid, places: Ints, whose: Ints | None, k: int, held: Ints) -> tuple[int, int]:
    """Return the ends of the numbers that may be released; they never cut off places shared by k people."""
    if whose is None:
        ordered, owners = np.sort(places), None
    else:
        order = np.argsort(places, kind="stable")
        ordered, owners = places[order], whose[order]
    numbers = grid.numbers(ordered)
    low = _end(numbers, owners, k, grid.origin)
    high = _end(numbers[::-1], None if owners is None else owners[::-1], k, grid.origin)
    ends = np.clip(grid.nearest(np.array([low, high])), ordered[0], ordered[-1])
    return int(min([ends[0], *held[:1]])), int(max([ends[1], *held[-1:]]))


def _end(outermost_first: Floats, owners: Ints | None, k: int, origin: float) -> float:
    """Return the median of the k outermost numbers, one of each person, rounded towards the k-th.

    It depends on ranks: one person's fortune moves it by a rank, whatever it is. A mean of k numbers would give the
    outermost away to those who know the others. Numbers are counted from an origin that is one person's.
    """
    numbers = outermost_first
    if owners is not None:
        firsts = np.sort(np.unique(owners, return_index=True)[1])
        firsts = firsts[owners[firsts] != NOBODY]
        numbers = numbers[firsts] if len(firsts) else numbers
    numbers = numbers[:k]
    end, inwards = float(np.median(numbers)), float(numbers[-1])
    if end == inwards:
        return end
    most = abs(inwards - end) / 5  # about one person is moved more: five are in between
    unit = 10.0 ** math.floor(math.log10(most))
    unit *= 5 if 5 * unit <= most else 2 if 2 * unit <= most else 1
    rounded = math.ceil if inwards > end else math.floor
    return rounded((end + origin) / unit) * unit - origin
