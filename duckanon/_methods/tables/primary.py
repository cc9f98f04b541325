"""Primary suppression: which cells show too much by themselves, and how uncertain their values have to stay.

A cell breaks a rule if fewer than k people contribute, if the second largest contributor could compute the largest one
within p percent, or if n contributors have more than a percentage of it. Parts of a shown group that are hidden are
published as a sum: that union must meet the same rules.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from duckanon._core.common.arrays import Bools, Floats, Matrix, find_run_starts
from duckanon._methods.tables.cells import TableCells, find_largest
from duckanon._methods.tables.relations import Relations

USUAL_P = 10
"""The percentage within which nobody should know a contribution, where no rule says another."""


@dataclass(frozen=True)
class CellRule:
    """The rules that the contributions to a cell have to meet, as ``anon.cell_rules`` explains them."""

    k: int
    p: float | None = None
    dominance: Sequence[float] | None = None  # n and a percentage: the n largest have no more of the total

    @property
    def largest(self) -> int:
        """How many of the largest contributions it needs."""
        return max(2, int(self.dominance[0]) if self.dominance else 0)

    def find_shortage(self, absolute: Floats, largest: Matrix) -> Floats:
        """Return by how much each total is too small for its largest contributions; above 0, a rule is broken."""
        short = np.full(len(absolute), -np.inf)
        if self.p is not None:
            short = self.p / 100 * largest[:, 0] - (absolute - largest[:, 0] - largest[:, 1])
        if self.dominance is not None:
            most = largest[:, : int(self.dominance[0])].sum(axis=1)
            short = np.maximum(short, most * 100 / self.dominance[1] - absolute)
        return np.where(short > 1e-9 * absolute, short, 0.0)


@dataclass(frozen=True)
class PrimaryCells:
    """The cells that break a rule, and the interval around its value that an attacker must not narrow down further."""

    cells: Bools
    below: Floats  # how far the interval reaches below the value
    above: Floats

    def without(self, cells: Bools) -> PrimaryCells:
        """Return the same without cells that nothing can protect any more."""
        return PrimaryCells(self.cells & ~cells, np.where(cells, 0, self.below), np.where(cells, 0, self.above))

    def keep_intervals(self, cells: Bools) -> PrimaryCells:
        """Return the same with intervals for some cells only: of the others it is enough that they do not follow."""
        return PrimaryCells(self.cells, np.where(cells, self.below, 0), np.where(cells, self.above, 0))

    def extend(self, cells: Bools, rule: CellRule) -> PrimaryCells:
        """Return the same with cells that must stay uncertain by k people, since a former number of them is known."""
        few = np.where(cells, rule.k - 1.0, 0)
        return PrimaryCells(self.cells | cells, np.maximum(self.below, few), np.maximum(self.above, few))


def find_primary_cells(cells: TableCells, rule: CellRule, *, protects_zeros: bool = False) -> PrimaryCells:
    """Find the cells that break a rule.

    The number of fewer than k people may be anything from 1 to k - 1; a sum stays uncertain by what the rule demands.
    """
    sums = cells.sums
    is_few = (sums.people < rule.k) & (protects_zeros | ~cells.is_empty)
    if cells.counts_people:
        below, above = np.maximum(sums.people - 1.0, 0), np.maximum(rule.k - 1.0 - sums.people, 0)
        return PrimaryCells(is_few, np.where(is_few, below, 0), np.where(is_few, above, 0))
    short = rule.find_shortage(sums.absolute, sums.largest)
    usual = (USUAL_P if rule.p is None else rule.p) / 100 * sums.largest[:, 0]
    is_primary = is_few | (short > 0)
    need = np.where(is_primary, np.where(short > 0, short, usual), 0)
    below = np.minimum(need, np.maximum(sums.value, 0)) if cells.is_nonnegative else need
    return PrimaryCells(is_primary, below, need)


def find_unsafe_unions(cells: TableCells, relations: Relations, hidden: Bools, rule: CellRule) -> Bools:
    """Tell which relations give away the sum of their hidden parts although that sum breaks the rule itself."""
    sums, member = cells.sums, relations.cell
    is_part, is_open = relations.find_open_parts(hidden)
    people = sums.people[member]
    together = relations.sum_per_relation(np.where(is_part, people, 0))
    if cells.overlaps:  # a person in several parts counts once: at least those of the largest part, or of no shown one
        outside = np.where(is_part, 0, np.where(relations.is_group, people, -people))
        at_least = relations.sum_per_relation(outside)
        largest = np.zeros(relations.count)
        np.maximum.at(largest, relations.relation[is_part], people[is_part])
        together = np.minimum(together, np.maximum(at_least, largest))
    unsafe = together < rule.k
    if not cells.counts_people:
        absolute = relations.sum_per_relation(np.where(is_part, sums.absolute[member], 0))
        relation = relations.relation[is_part]  # ascending
        starts = find_run_starts(relation)
        tops = np.zeros((relations.count, sums.largest.shape[1]))
        tops[relation[starts]] = find_largest(sums.largest[member[is_part]], starts)
        unsafe |= rule.find_shortage(absolute, tops) > 0
    return np.asarray(is_open & unsafe)
