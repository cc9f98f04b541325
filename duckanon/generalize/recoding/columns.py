"""The column structures of a global recoding and the moves a search can make in one column."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from duckanon.common.arrays import Floats, Ints
from duckanon.common.runs import run_starts

State: TypeAlias = tuple[int, ...] | None
"""A column's recoding while the search runs. None is the one group that also holds NULL."""

ROOT, EDIT, SMALLEST = 0, 1, 2
"""Kinds of move: to or from the group that holds NULL; one edit; merge the smallest leaves of a flat column."""


@dataclass(frozen=True)
class Ordered:
    """Numbers: any partition into contiguous runs is allowed."""

    positions: Floats


@dataclass(frozen=True)
class Tree:
    """A hierarchy: any cut is allowed. Nodes 0 to leaves - 1 are the leaves; the root's parent is -1."""

    parents: Ints


@dataclass(frozen=True)
class Flat:
    """No structure: some leaves are kept, all others are merged into one group."""

    leaves: int


@dataclass(frozen=True)
class Levels:
    """Full recodings from fine to coarse, of which one is taken; the last has one group."""

    maps: tuple[Ints, ...]
    losses: tuple[Floats, ...]


Structure: TypeAlias = Ordered | Tree | Flat | Levels


@dataclass(frozen=True)
class Column:
    """One column of the grouped table.

    Parameters
    ----------
    codes
        The leaf of each combination.
    structure
        What may be merged. It describes the leaves that are not NULL, numbered from 0.
    weight
        How much this column's loss counts.
    has_null
        Whether there is one more leaf, numbered after all others, that is NULL.
    """

    codes: Ints
    structure: Structure
    weight: float = 1.0
    has_null: bool = False


@dataclass(frozen=True)
class Moves:
    """Candidate states of one column with the whole table's loss and suppressed rows under each.

    What ``removed`` and ``added`` mean is the axis's own affair: a boundary, a node, an atom, a level.
    """

    loss: Floats
    suppressed: Floats
    kind: Ints
    removed: Ints
    added: Ints


@dataclass
class Slice:
    """The table seen from one column while all other columns keep their recoding.

    Attributes
    ----------
    other, atom, count
        Distinct pairs of a class of the other columns and an atom of this column, sorted, with their rows. Once made,
        a slice has no entries for NULL.
    price
        What suppressing one row of each class costs beyond its loss in the other columns.
    base
        The loss of all rows in the other columns.
    marginal
        The rows of each atom.
    null_part, root_part
        The cost and the suppressed rows of NULL as a group of its own, and of all values and NULL as one group.
    """

    other: Ints
    atom: Ints
    count: Ints
    price: Floats
    base: float
    k: int
    weight: float
    n_other: int
    n_atoms: int
    has_null: bool
    marginal: Ints = field(init=False)
    null_part: tuple[float, float] = field(init=False, default=(0.0, 0.0))
    root_part: tuple[float, float] = field(init=False, default=(0.0, 0.0))

    def __post_init__(self) -> None:
        if self.has_null:
            whole = np.bincount(self.other, self.count, self.n_other)
            small = np.where(whole < self.k, whole, 0)
            rows = float(whole.sum())
            self.root_part = (float(small @ self.price + self.weight * (rows - small.sum())), float(small.sum()))
            null = self.atom == self.n_atoms
            small = np.where(null & (self.count < self.k), self.count, 0)
            self.null_part = (float(small @ self.price[self.other]), float(small.sum()))
            keep = ~null
            self.other, self.atom, self.count = self.other[keep], self.atom[keep], self.count[keep]
        self.marginal = np.bincount(self.atom, self.count, self.n_atoms).astype(np.int64)

    def below_k(self, sizes: Ints | Floats, starts: Ints | None = None) -> tuple[Floats, Floats]:
        """Rows suppressed, and what that costs, for class parts of these sizes at these entries."""
        small = np.where(sizes < self.k, sizes, 0).astype(np.float64)
        return small, small * self.price[self.other if starts is None else self.other[starts]]

    def groups(self, group_of_atom: Ints, n_groups: int) -> tuple[Floats, Floats]:
        """Suppressed rows and their cost per group; the groups must be monotone in the atoms."""
        group = group_of_atom[self.atom]
        starts = run_starts(self.other * n_groups + group)
        if not len(starts):
            return np.zeros(n_groups), np.zeros(n_groups)
        small, price = self.below_k(np.add.reduceat(self.count, starts), starts)
        return weighted_count(group[starts], small, n_groups), weighted_count(group[starts], price, n_groups)

    def cost(self, loss: Floats, rows: Floats | Ints, small: Floats, price: Floats) -> Floats:
        """Return what groups cost: their loss for the rows kept, the price of the rows suppressed."""
        result: Floats = self.weight * loss * (rows - small) + price
        return result

    def prefixes(self, segment_of_atom: Ints) -> tuple[Floats, Floats, Floats, Floats]:
        """Suppressed rows and cost of the atoms up to each atom, and of those after it, within its segment."""
        segment = segment_of_atom[self.atom]
        starts = run_starts(self.other * self.n_atoms + segment)
        running = np.cumsum(self.count)
        lengths = np.diff(np.append(starts, len(self.count)))
        first = running[starts] - self.count[starts]
        up_to = running - np.repeat(first, lengths)
        total = np.repeat(np.add.reduceat(self.count, starts) if len(starts) else self.count, lengths)
        after = total - up_to
        begin = run_starts(segment_of_atom)
        size = np.diff(np.append(begin, self.n_atoms))
        results = []
        for new, old, backwards in ((up_to, up_to - self.count, False), (after + self.count, after, True)):
            for grown, before in zip(self.below_k(new), self.below_k(old), strict=True):
                change = weighted_count(self.atom, grown - before, self.n_atoms)
                total_change = np.cumsum(change)
                inside = total_change - np.repeat(total_change[begin] - change[begin], size)
                if backwards:
                    inside = np.repeat(inside[np.append(begin[1:], self.n_atoms) - 1], size) - inside
                results.append(inside)
        return results[0], results[1], results[2], results[3]


def weighted_count(groups: Ints, values: Floats | Ints, n_groups: int) -> Floats:
    """Return the sum of the values of each group (bincount, which mypy believes to return integers)."""
    return np.asarray(np.bincount(groups, values, n_groups), dtype=np.float64)
