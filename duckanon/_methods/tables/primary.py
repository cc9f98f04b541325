"""Primary suppression: which cells show too much by themselves, and how uncertain their values have to stay."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from duckanon._core.common.arrays import Bools, Floats, Matrix, run_starts
from duckanon._methods.tables.cells import Cells
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

    def shortage(self, absolute: Floats, largest: Matrix) -> Floats:
        """Return by how much each total is too small for its largest contributions; above 0, a rule is broken."""
        short = np.full(len(absolute), -np.inf)
        if self.p is not None:
            short = self.p / 100 * largest[:, 0] - (absolute - largest[:, 0] - largest[:, 1])
        if self.dominance is not None:
            most = largest[:, : int(self.dominance[0])].sum(axis=1)
            short = np.maximum(short, most * 100 / self.dominance[1] - absolute)
        return np.where(short > 1e-9 * absolute, short, 0.0)


@dataclass(frozen=True)
class Primary:
    """The cells that break a rule, and the interval around its value that an attacker must not narrow down further."""

    cells: Bools
    below: Floats  # how far the interval reaches below the value
    above: Floats

    def without(self, cells: Bools) -> Primary:
        """Return the same without cells that nothing can protect any more."""
        return Primary(self.cells & ~cells, np.where(cells, 0, self.below), np.where(cells, 0, self.above))

    def uncertain_where(self, cells: Bools) -> Primary:
        """Return the same with intervals for some cells only: of the others it is enough that they do not follow."""
        return Primary(self.cells, np.where(cells, self.below, 0), np.where(cells, self.above, 0))

    def extended(self, cells: Bools, rule: CellRule) -> Primary:
        """Return the same with cells that must stay uncertain by k people, since a former number of them is known."""
        few = np.where(cells, rule.k - 1.0, 0)
        return Primary(self.cells | cells, np.maximum(self.below, few), np.maximum(self.above, few))


def primary_cells(cells: Cells, rule: CellRule, *, protects_zeros: bool = False) -> Primary:
    """Find the cells that break a rule.

    The number of fewer than k people may be anything from 1 to k - 1; a sum stays uncertain by what the rule demands.
    """
    sums = cells.sums
    is_few = (sums.people < rule.k) & (protects_zeros | ~cells.is_empty)
    if cells.counts_people:
        below, above = np.maximum(sums.people - 1.0, 0), np.maximum(rule.k - 1.0 - sums.people, 0)
        return Primary(is_few, np.where(is_few, below, 0), np.where(is_few, above, 0))
    short = rule.shortage(sums.absolute, sums.largest)
    usual = (USUAL_P if rule.p is None else rule.p) / 100 * sums.largest[:, 0]
    found = is_few | (short > 0)
    need = np.where(found, np.where(short > 0, short, usual), 0)
    return Primary(found, np.minimum(need, np.maximum(sums.value, 0)) if cells.is_nonnegative else need, need)


def unsafe_unions(cells: Cells, relations: Relations, hidden: Bools, rule: CellRule) -> Bools:
    """Tell which relations give away the sum of their hidden parts although that sum breaks the rule itself."""
    sums, member = cells.sums, relations.cell
    is_part = hidden[member] & ~relations.is_group
    is_open = (relations.per_relation(is_part) > 0) & (relations.per_relation(hidden[member] & relations.is_group) == 0)
    people = sums.people[member]
    together = relations.per_relation(np.where(is_part, people, 0))
    if cells.overlaps:  # who is in several parts counts once: at least who is in the largest part, or in no shown one
        outside = np.where(is_part, 0, np.where(relations.is_group, people, -people))
        at_least = relations.per_relation(outside)
        largest = np.zeros(relations.count)
        np.maximum.at(largest, relations.relation[is_part], people[is_part])
        together = np.minimum(together, np.maximum(at_least, largest))
    unsafe = together < rule.k
    if not cells.counts_people:
        absolute = relations.per_relation(np.where(is_part, sums.absolute[member], 0))
        unsafe |= rule.shortage(absolute, _largest_of_parts(relations, is_part, sums.largest)) > 0
    return np.asarray(is_open & unsafe)


def _largest_of_parts(relations: Relations, is_part: Bools, largest: Matrix) -> Matrix:
    """Return the largest contributions to the hidden parts of each relation."""
    entry = np.flatnonzero(is_part)
    wanted = largest.shape[1]
    of, values = np.repeat(relations.relation[entry], wanted), largest[relations.cell[entry]].ravel()
    order = np.lexsort((-values, of))
    starts = run_starts(of[order])
    found = np.zeros((relations.count, wanted))
    for rank in range(wanted):
        found[of[order][starts], rank] = values[order][starts + rank]
    return found
