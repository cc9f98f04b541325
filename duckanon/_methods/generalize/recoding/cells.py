"""The grouped table as it is seen from a column with a hierarchy, as a matrix: where that is not much larger."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from duckanon._core.common import progress
from duckanon._core.common.arrays import Floats, Ints, run_starts
from duckanon._methods.generalize.recoding.slices import View

_FEW_CELLS = 5_000
"""Up to so many cells it costs more to look for classes that are too small as a whole than it saves."""


@dataclass
class Cells(View):
    """The table seen from one column while all other columns keep their recoding: a `slices.Slice` as a matrix.

    Nodes of a hierarchy are then differences of running sums, with few and large steps. Rows are people.

    Attributes:
        rows: The rows of each atom, NULL last where there is one, in each class of the other columns.
    """

    rows: Floats
    marginal: Ints
    price: Floats
    base: float
    k: float
    weight: float
    n_atoms: int
    has_null: bool

    def __post_init__(self) -> None:
        if self.has_null:
            null, whole = self.rows[self.n_atoms], self.rows.sum(axis=0)
            self.null_part = self._suppressed(null)[::-1]
            small, price = self._suppressed(whole)
            self.root_part = price + self.weight * (float(whole.sum()) - small), small

    def _suppressed(self, rows: Floats) -> tuple[float, float]:
        """Return the rows of one group that are suppressed, given those of each class, and what that costs."""
        small = np.where(rows < self.k, rows, 0.0)
        return float(small.sum()), float((small * self.price).sum())

    def spans(self, first: Ints, end: Ints) -> tuple[Floats, Floats]:
        """Suppressed rows and their cost of groups that hold the atoms from first up to but without end."""
        progress.check()
        rows, price = self.rows[: self.n_atoms], self.price
        if rows.size <= _FEW_CELLS:
            return _suppressed(rows, price, self.k, first, end)
        # Classes that are too small even as a whole are so in every group: what they add is a sum over atoms.
        is_large = rows.sum(axis=0) >= self.k
        is_small = (~is_large).astype(np.float64)
        small, cost = _suppressed(rows.compress(is_large, axis=1), price[is_large], self.k, first, end)
        for total, weight in ((small, is_small), (cost, is_small * price)):
            running = np.append(0, np.cumsum(np.einsum("ao,o->a", rows, weight)))
            total += running[end] - running[first]
        return small, cost

    def groups(self, group_of_atom: Ints, n_groups: int) -> tuple[Floats, Floats]:
        """Suppressed rows and their cost per group; the groups must be monotone in the atoms."""
        first = run_starts(group_of_atom)
        sums = np.zeros((2, n_groups))
        sums[:, group_of_atom[first]] = self.spans(first, np.append(first[1:], self.n_atoms))
        return sums[0], sums[1]


def _suppressed(rows: Floats, price: Floats, k: float, first: Ints, end: Ints) -> tuple[Floats, Floats]:
    """Return for groups of atoms the rows that are suppressed, and their cost, given atoms by classes."""
    running = np.zeros((len(rows) + 1, rows.shape[1]))
    np.cumsum(rows, axis=0, out=running[1:])
    grouped = running.take(end, axis=0)
    grouped -= running.take(first, axis=0)
    grouped *= grouped < k
    return grouped.sum(axis=1), np.einsum("go,o->g", grouped, price)
