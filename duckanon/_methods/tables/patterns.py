"""The cells to hide in a table: primary cells, the group rule, and rounds of audits and repairs."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse

from duckanon._core.common.arrays import Bools, Floats, Ints
from duckanon._methods.tables.cells import Cells
from duckanon._methods.tables.exact_audit import ExactAudit, exact_audit, known_to_owners
from duckanon._methods.tables.interval_audit import System, narrow_cells
from duckanon._methods.tables.primary import CellRule, Primary, primary_cells, unsafe_unions
from duckanon._methods.tables.relations import Relations, relations_of
from duckanon._methods.tables.repair import Flow, surround, thicken
from duckanon._methods.tables.suppression import Costs, cell_costs, hide_groups

FEW_FAILING = 30
"""Failing cells that are repaired by a flow each: it hides fewer cells than further neighbours do, but takes a linear
program over the hidden cells of the table, a fifth of a second for 2,500 of them."""

ROUNDS_OF_NEIGHBOURS = 4
"""Rounds in which more failing cells than that get a further hidden neighbour each."""

ROUNDS = 12
"""Rounds of audit and repair: the labour force of the American Community Survey took six at most."""

MOST_HIDDEN_FOR_INTERVALS = 6_000
"""Hidden cells up to which intervals are audited."""


@dataclass(frozen=True)
class Faults:
    """The cells that a pattern does not protect, by the kind of fault."""

    derivable: Ints
    known_to_owners: Ints
    too_low: Ints  # hidden cells that cannot be as far below their value as they need
    too_high: Ints
    unions: int  # relations whose hidden parts together break the rule
    interval_checked: bool

    @property
    def narrow(self) -> Ints:
        """Hidden cells whose value is known within a narrower interval than they need."""
        return np.union1d(self.too_low, self.too_high)

    @property
    def cells(self) -> Ints:
        """All these cells, each once."""
        return np.unique(np.concatenate([self.derivable, self.known_to_owners, self.too_low, self.too_high]))


@dataclass(frozen=True)
class Before:
    """The numbers of a table that was given away before, by cells; NaN: hidden, or not in it."""

    value: Floats
    people: Floats

    def is_known(self, cells: Cells) -> Bools:
        """Tell which cells have the number that they had."""
        return np.asarray(np.isclose(self.value, cells.value, rtol=1e-12, atol=0))

    def changed_by_few(self, cells: Cells, k: int) -> Bools:
        """Tell which cells fewer than k people have come to or left since: the difference would show them."""
        change = np.abs(cells.sums.people - self.people)
        return ~self.is_known(cells) & ~np.isnan(self.value) & ~(change >= k)

    def people_changed_by_few(self, cells: Cells, k: int) -> Bools:
        """Tell which cells have other people than before, but fewer than k more or less."""
        change = np.abs(cells.sums.people - self.people)
        return np.asarray((change > 0) & (change < k))


@dataclass(frozen=True)
class Pattern:
    """The cells that are hidden in a table, and what is left to find fault with."""

    withheld: Bools
    primary: Bools
    faults: Faults


def system_of(cells: Cells, relations: Relations, *, protects_zeros: bool = False) -> System:
    """Return the numbers that the cells show.

    Empty cells are not returned unless they are protected: everybody knows that somebody is in each hidden cell, but
    not in which cells of the table that covers linked ones.
    Where people are in several parts of a group, the group has fewer people than its parts together: by how many is one
    more number that nobody knows. Everybody knows, however, along which columns a person is in one part only.
    """
    value, matrix = cells.value, relations.matrix
    spread = 3 * cells.sums.largest.sum(axis=1)  # without a sign nobody knows an end: one that is far enough away
    least = np.zeros(len(cells)) if cells.is_nonnegative else value - spread
    if cells.counts_people and not protects_zeros and cells.is_shown.all():
        least = _fewest(relations, ~cells.is_empty, of_parts=not cells.overlaps)
    if cells.counts_people and cells.overlaps:
        excess = matrix @ value
        rows = np.flatnonzero(np.isin(relations.dimension, relations.dimension[excess > 0]))
        entries = -np.ones(len(rows)), (rows, np.arange(len(rows)))
        matrix = sparse.hstack([matrix, sparse.csr_matrix(entries, shape=(relations.count, len(rows)))], format="csr")
        value, least = np.append(value, excess[rows]), np.append(least, np.zeros(len(rows)))
    return System(matrix, value, least)


def _fewest(relations: Relations, has_people: Bools, *, of_parts: bool) -> Floats:
    """Return how many people each cell has at least if some have one; with `of_parts`, as many as its parts."""
    fewest = has_people.astype(np.float64)
    part, group = ~relations.is_group, np.flatnonzero(relations.is_group)
    while of_parts:
        before, parts = fewest.copy(), relations.per_relation(np.where(part, fewest[relations.cell], 0))
        np.maximum.at(fewest, relations.cell[group], parts[relations.relation[group]])
        if (fewest == before).all():
            break
    return fewest


def hide_cells(cells: Cells, rule: CellRule, *, protects_zeros: bool = False, before: Before | None = None) -> Pattern:
    """Choose the cells to hide.

    A cell that shows the number it showed `before` is known, hidden or not: it protects no other cell, and the others
    are protected from those who know it.
    """
    relations, known = relations_of(cells), np.zeros(len(cells), dtype=bool)
    primary = primary_cells(cells, rule, protects_zeros=protects_zeros)
    unsafe = primary.cells
    if before is not None:
        known = before.is_known(cells)
        primary = primary.extended(before.changed_by_few(cells, rule.k), rule).without(known)
    primary = primary.uncertain_where(cells.is_shown)
    costs = cell_costs(cells, known, protects_zeros=protects_zeros)
    hidden = hide_groups(cells, relations, primary.cells | (~cells.is_shown & ~known), rule, costs)
    system, asked = system_of(cells, relations, protects_zeros=protects_zeros), primary.cells
    for round_ in range(ROUNDS):
        audit, faults = audited(cells, relations, system, hidden, primary, rule, asked, seed=round_)
        if len(faults.cells) == 0:
            break
        asked = np.isin(np.arange(len(cells)), faults.narrow)  # no interval becomes narrower by what is hidden next
        hidden = _repaired(cells, relations, system, hidden, primary, costs, audit, faults, round_)
        hidden = hide_groups(cells, relations, hidden, rule, costs)
    return Pattern(hidden | unsafe, primary.cells, faults)


def hide_people(cells: Cells, hidden: Bools, rule: CellRule, before: Before | None = None) -> Bools:
    """Choose the cells whose numbers of people stay hidden beside sums: those without a sum, and more where needed.

    The people of a small cell do not follow exactly where its sum does not, but margins may leave a narrow interval.
    Every cell, where hiding more does not help.
    """
    counts, relations = replace(cells, counts_people=True), relations_of(cells)
    few, known = primary_cells(counts, CellRule(rule.k)), np.zeros(len(cells), dtype=bool)
    if before is not None:
        known = before.people == cells.sums.people
        few = few.extended(before.people_changed_by_few(cells, rule.k), rule).without(known)
    few = few.uncertain_where(cells.is_shown)
    costs, system = cell_costs(counts, known), system_of(counts, relations)
    hidden = hide_groups(counts, relations, (hidden | few.cells) & ~known, CellRule(rule.k), costs)
    asked, unaudited = few.cells, ExactAudit(np.zeros_like(hidden), np.full(len(cells), -1))
    nothing = np.zeros(0, dtype=np.int64)
    for round_ in range(ROUNDS):
        is_few = int(asked.sum()) <= FEW_FAILING
        ends = narrow_cells(system, hidden, asked, few.below, few.above, one_by_one=is_few)
        faults = Faults(nothing, nothing, *ends, unions=0, interval_checked=True)
        if len(faults.cells) == 0:
            return hidden
        asked = np.isin(np.arange(len(cells)), faults.cells)
        hidden = _repaired(counts, relations, system, hidden, few, costs, unaudited, faults, round_)
        hidden = hide_groups(counts, relations, hidden, CellRule(rule.k), costs)
    return np.ones(len(cells), dtype=bool)


def audited(
    cells: Cells,
    relations: Relations,
    system: System,
    hidden: Bools,
    primary: Primary,
    rule: CellRule,
    asked: Bools,
    *,
    seed: int,
) -> tuple[ExactAudit, Faults]:
    """Look for every kind of fault, and for narrow intervals among the cells that are asked for."""
    has_owners = not cells.counts_people
    audit = exact_audit(relations.matrix, hidden, seed, with_classes=has_owners)
    is_checked = int(hidden.sum()) <= MOST_HIDDEN_FOR_INTERVALS
    nothing = np.zeros(0, dtype=np.int64)
    ends = narrow_cells(system, hidden, asked, primary.below, primary.above) if is_checked else (nothing, nothing)
    faults = Faults(
        derivable=np.flatnonzero(audit.is_derivable & primary.cells),
        known_to_owners=known_to_owners(cells, audit, primary.cells) if has_owners else nothing,
        too_low=ends[0],
        too_high=ends[1],
        unions=int(unsafe_unions(cells, relations, hidden & ~audit.is_derivable, rule).sum()),
        interval_checked=is_checked,
    )
    return audit, faults


def _repaired(
    cells: Cells,
    relations: Relations,
    system: System,
    hidden: Bools,
    primary: Primary,
    costs: Costs,
    audit: ExactAudit,
    faults: Faults,
    round_: int,
) -> Bools:
    """Hide further cells for those that fail."""
    if hidden.sum() > MOST_HIDDEN_FOR_INTERVALS:
        return surround(relations, hidden, faults.cells, costs)
    if len(faults.cells) > FEW_FAILING and round_ < ROUNDS_OF_NEIGHBOURS:
        thicker = thicken(relations, hidden, faults.cells, system.value, primary.above, costs)
        if (thicker != hidden).any():
            return thicker
    flow = Flow(system, relations, costs, hidden)
    for cell in faults.known_to_owners.tolist():
        is_same = audit.determined_with == audit.determined_with[cell]
        is_others = (cells.sums.people == 1) & (
            (cells.sums.owner != cells.sums.owner[cell]) | (cells.sums.people[cell] > 1)
        )
        known = np.flatnonzero(is_same & is_others & (np.arange(len(cells)) != cell))
        flow.move(cell, max(primary.above[cell], 1e-3 * abs(system.value[cell]), 1.0), known)
    for cell in np.union1d(faults.derivable, faults.too_high).tolist():
        flow.move(cell, max(primary.above[cell], 1e-3 * abs(system.value[cell]), 1.0))
    down = np.minimum(primary.below, system.value[: len(cells)] - system.least[: len(cells)])
    for cell in faults.too_low.tolist():
        flow.move(cell, -down[cell])
    return flow.hidden[: len(cells)]
