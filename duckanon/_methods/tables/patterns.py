"""The cells to hide in a table: primary cells, the group rule, and rounds of audits and repairs.

By the group rule no relation gives away a single hidden cell or an unsafe union of them; each round hides, for every
broken relation, the cell that costs least and mends most. What the audits then find is repaired: where many cells fail,
by a further hidden neighbour of each; where few do, by the cheapest change of the table that moves the failing cell, a
flow: what it changes has to be hidden.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse
from scipy.optimize import linprog

from duckanon._core.common import progress
from duckanon._core.common.arrays import Bools, Floats, Ints, find_run_starts
from duckanon._methods.tables.cells import TableCells
from duckanon._methods.tables.hidden_cell_audits import (
    ExactAudit,
    System,
    find_narrow_cells,
    find_owner_leaks,
    run_exact_audit,
)
from duckanon._methods.tables.primary import CellRule, PrimaryCells, find_primary_cells, find_unsafe_unions
from duckanon._methods.tables.relations import Relations, find_relations, restrict_relations

OPENED = 2.0
"""The weight of a relation that a cell newly opens: it will need a second hidden cell itself. Measured: 1 to 3 hide
about as many cells on the labour force of the American Community Survey, 0 hides a tenth more."""

SHARE_A_ROUND = 0.25
"""Of the cells that a round chose, the best ones that are hidden: the others are chosen anew, knowing these."""


@dataclass(frozen=True)
class HidingCosts:
    """What hiding each cell costs, and which cells cannot be hidden since everybody knows them."""

    weight: Floats
    is_fixed: Bools


def compute_costs(cells: TableCells, is_known: Bools | None = None, *, protects_zeros: bool = False) -> HidingCosts:
    """Return the cost of hiding each cell, which grows with the logarithm of its value."""
    fixed = np.zeros(len(cells), dtype=bool) if protects_zeros else cells.is_empty.copy()
    return HidingCosts(1 + np.log1p(np.abs(cells.value)), fixed if is_known is None else fixed | is_known)


def hide_groups(cells: TableCells, relations: Relations, hidden: Bools, rule: CellRule, costs: HidingCosts) -> Bools:
    """Hide further cells until no relation is violated that has a cell left to hide."""
    hidden, is_stuck = hidden.copy(), np.zeros(relations.count, dtype=bool)
    relation, member = relations.relation, relations.cell
    while True:
        progress.check()
        count = relations.sum_per_relation(hidden[member])
        violated = ((count == 1) | find_unsafe_unions(cells, relations, hidden, rule)) & ~is_stuck
        is_candidate = violated[relation] & ~hidden[member] & ~costs.is_fixed[member]
        is_stuck |= violated & (relations.sum_per_relation(is_candidate) == 0)
        if not is_candidate.any():
            return hidden
        served = relations.sum_per_cell(violated[relation] & ~hidden[member])
        opened = relations.sum_per_cell(count[relation] == 0)
        score = costs.weight * (1 + OPENED * opened) / np.maximum(served, 1)
        hidden[_choose_cells(relations, np.flatnonzero(is_candidate), score, violated)] = True


def _choose_cells(relations: Relations, candidates: Ints, score: Floats, violated: Bools) -> Ints:
    """Return the cheapest cells of violated relations, no two for the same one."""
    relation, member = relations.relation[candidates], relations.cell[candidates]
    order = np.lexsort((member, score[member], relation))
    best = np.unique(member[order[find_run_starts(relation[order])]])
    best = best[np.lexsort((best, score[best]))]
    indptr, indices = relations.by_cell.indptr, relations.by_cell.indices
    is_served = np.zeros(relations.count, dtype=bool)
    chosen: list[int] = []
    for cell in best.tolist():
        served = indices[indptr[cell] : indptr[cell + 1]]
        served = served[violated[served]]
        if not is_served[served].any():
            chosen.append(cell)
            is_served[served] = True
    return np.array(chosen[: max(1, int(SHARE_A_ROUND * len(chosen)))])


MOST_MOVED = 1e4
"""How far another cell may move, in units of what the cell that is protected moves."""

UNSIMPLIFIED = {"presolve": False}
"""For programs whose solution changes few cells: of 33,690 columns the solver took .1 seconds, and .4 with presolve."""

MOST_MATES = 50
"""Hidden neighbours of a cell whose relations get a further hidden cell too."""


def thicken(
    relations: Relations, hidden: Bools, failing: Ints, value: Floats, need: Floats, costs: HidingCosts
) -> Bools:
    """Hide for each failing cell the cheapest further member of the relation whose hidden cells have least to give.

    A member that was hidden for another cell serves all cells of its relations that need no more than it has to give.
    """
    added, is_free = hidden.copy(), ~costs.is_fixed
    for cell in failing.tolist():
        progress.check()
        least, tightest = np.inf, np.zeros(0, dtype=np.int64)
        for relation in relations.list_relations(cell).tolist():
            members = relations.list_members(relation)
            slack = np.abs(value[members[hidden[members] & (members != cell)]]).sum()
            if slack < least and (~hidden[members] & is_free[members]).any():
                least, tightest = slack, members
        new = tightest[added[tightest] & ~hidden[tightest]]
        free = tightest[~added[tightest] & is_free[tightest]]
        if len(free) and np.abs(value[new]).sum() <= need[cell]:
            added[free[np.argmin(costs.weight[free])]] = True
    return added


def surround(relations: Relations, hidden: Bools, failing: Ints, costs: HidingCosts) -> Bools:
    """Hide for each failing cell the cheapest further member of every relation of its own and of its hidden neighbours.

    For tables that are too large for a flow, in which few cells fail.
    """
    added = hidden.copy()
    for cell in failing.tolist():
        progress.check()
        of_cell = relations.list_relations(cell)
        mates = np.concatenate([relations.list_members(relation) for relation in of_cell.tolist()])
        of_mates = [relations.list_relations(mate) for mate in mates[hidden[mates]][:MOST_MATES].tolist()]
        for relation in np.unique(np.concatenate([of_cell, *of_mates])).tolist():
            members = relations.list_members(relation)
            free = members[~hidden[members] & ~costs.is_fixed[members]]
            if len(free):
                added[free[np.argmin(costs.weight[free])]] = True
    return added


class Flow:
    """The cheapest change of a table that moves one cell: what it changes has to be hidden.

    Hidden cells and the neighbours of the cell are tried first, then their neighbours, which takes a tenth of the time
    that all cells of the table take.
    """

    def __init__(self, system: System, relations: Relations, costs: HidingCosts, hidden: Bools) -> None:
        self.system, self.relations, self.hidden = system, relations, system.pad_flags(hidden, of_others=True)
        self.is_fixed = system.pad_flags(costs.is_fixed, of_others=False)
        self.weight = np.pad(costs.weight, (0, len(system.value) - len(hidden)))
        self.by_column = system.matrix.tocsc()

    def move(self, cell: int, distance: float, unmoved: Ints | None = None) -> bool:
        """Hide what lets a cell move by a distance while some cells stay; tell whether that is possible."""
        progress.check()
        may_move = ~self.is_fixed
        if unmoved is not None:
            may_move[unmoved] = False
        near, cells = self.hidden.copy(), np.array([cell])
        for _ in range(2):  # first the neighbours of the cell, then theirs
            relations = np.unique(np.concatenate([self.relations.list_relations(mate) for mate in cells.tolist()]))
            cells = np.unique(np.concatenate([self.relations.list_members(number) for number in relations.tolist()]))
            near[cells] = True
            if self._move_within(near & may_move, cell, distance):
                return True
        return self._move_within(may_move, cell, distance)

    def _move_within(self, may_move: Bools, cell: int, distance: float) -> bool:
        """Hide what the cheapest change of cells that may move needs; tell whether there is one.

        Changes are in units of the distance; the solver rounds to a ten millionth of such a unit.
        """
        columns = np.flatnonzero(may_move)
        matrix, column = restrict_relations(self.by_column, columns), int(np.searchsorted(columns, cell))
        count, step = len(columns), float(np.sign(distance))
        down = (self.system.value[columns] - self.system.least[columns]) / abs(distance)
        ends = np.column_stack([np.zeros(2 * count), np.append(np.full(count, MOST_MOVED), down.clip(0, MOST_MOVED))])
        ends[column], ends[column + count] = max(step, 0), max(-step, 0)
        cost = np.where(self.hidden[columns], 1e-6, self.weight[columns])
        both_ways, none = sparse.hstack([matrix, -matrix], format="csc"), np.zeros(matrix.shape[0])
        solved = linprog(
            *(np.append(cost, cost), None, None, both_ways, none, ends), method="highs-ds", options=UNSIMPLIFIED
        )
        if solved.status != 0:
            return False
        self.hidden[columns[np.abs(solved.x[:count] - solved.x[count:]) > 1e-6]] = True
        return True


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
class PreviousTable:
    """The numbers of a table that was released before, by cells; NaN: hidden, or not in it."""

    value: Floats
    people: Floats


@dataclass(frozen=True)
class Pattern:
    """The cells that are hidden in a table, and what is left to find fault with."""

    withheld: Bools
    primary: Bools
    faults: Faults


def make_system(cells: TableCells, relations: Relations, *, protects_zeros: bool = False) -> System:
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
        least = _count_fewest_people(relations, ~cells.is_empty, of_parts=not cells.overlaps)
    if cells.counts_people and cells.overlaps:
        excess = matrix @ value
        rows = np.flatnonzero(np.isin(relations.dimension, relations.dimension[excess > 0]))
        entries = -np.ones(len(rows)), (rows, np.arange(len(rows)))
        matrix = sparse.hstack([matrix, sparse.csr_matrix(entries, shape=(relations.count, len(rows)))], format="csr")
        value, least = np.append(value, excess[rows]), np.append(least, np.zeros(len(rows)))
    return System(matrix, value, least)


def _count_fewest_people(relations: Relations, has_people: Bools, *, of_parts: bool) -> Floats:
    """Return how many people each cell has at least if some have one; with `of_parts`, as many as its parts."""
    fewest = has_people.astype(np.float64)
    part, group = ~relations.is_group, np.flatnonzero(relations.is_group)
    while of_parts:
        before, parts = fewest.copy(), relations.sum_per_relation(np.where(part, fewest[relations.cell], 0))
        np.maximum.at(fewest, relations.cell[group], parts[relations.relation[group]])
        if (fewest == before).all():
            break
    return fewest


@dataclass(frozen=True)
class _Task:
    """A table whose primary cells are to be protected."""

    cells: TableCells
    relations: Relations
    system: System
    primary: PrimaryCells
    rule: CellRule
    costs: HidingCosts

    def hide_groups(self, hidden: Bools) -> Bools:
        """Hide further cells by the group rule."""
        return hide_groups(self.cells, self.relations, hidden, self.rule, self.costs)


def hide_cells(
    cells: TableCells, rule: CellRule, *, protects_zeros: bool = False, before: PreviousTable | None = None
) -> Pattern:
    """Choose the cells to hide.

    A cell that shows the number it showed `before` is known, hidden or not: it protects no other cell, and the others
    are protected from those who know it.
    """
    relations, is_known = find_relations(cells), np.zeros(len(cells), dtype=bool)
    primary = find_primary_cells(cells, rule, protects_zeros=protects_zeros)
    is_unsafe = primary.cells
    if before is not None:
        is_known = np.isclose(before.value, cells.value, rtol=1e-12, atol=0)
        # cells that fewer than k people have come to or left since: the difference would show them
        change = np.abs(cells.sums.people - before.people)
        primary = primary.extend(~is_known & ~np.isnan(before.value) & ~(change >= rule.k), rule).without(is_known)
    primary = primary.keep_intervals(cells.is_shown)
    costs = compute_costs(cells, is_known, protects_zeros=protects_zeros)
    system = make_system(cells, relations, protects_zeros=protects_zeros)
    task = _Task(cells, relations, system, primary, rule, costs)
    hidden, asked = task.hide_groups(primary.cells | (~cells.is_shown & ~is_known)), primary.cells
    for round_ in range(ROUNDS):
        audit, faults = _find_faults(task, hidden, asked, seed=round_)
        if len(faults.cells) == 0:
            break
        asked = np.isin(np.arange(len(cells)), faults.narrow)  # no interval becomes narrower by what is hidden next
        hidden = task.hide_groups(_hide_more(task, hidden, audit, faults, round_))
    return Pattern(hidden | is_unsafe, primary.cells, faults)


def hide_people(cells: TableCells, hidden: Bools, rule: CellRule, before: PreviousTable | None = None) -> Bools:
    """Choose the cells whose numbers of people stay hidden beside sums: those without a sum, and more where needed.

    The people of a small cell do not follow exactly where its sum does not, but margins may leave a narrow interval.
    Every cell, where hiding more does not help.
    """
    cells, rule, relations = replace(cells, counts_people=True), CellRule(rule.k), find_relations(cells)
    primary, is_known = find_primary_cells(cells, rule), np.zeros(len(cells), dtype=bool)
    if before is not None:
        is_known, change = before.people == cells.sums.people, np.abs(cells.sums.people - before.people)
        primary = primary.extend((change > 0) & (change < rule.k), rule).without(is_known)
    primary = primary.keep_intervals(cells.is_shown)
    task = _Task(cells, relations, make_system(cells, relations), primary, rule, compute_costs(cells, is_known))
    hidden, asked = task.hide_groups((hidden | primary.cells) & ~is_known), primary.cells
    unaudited = ExactAudit(np.zeros_like(hidden), np.full(len(cells), -1))
    nothing = np.zeros(0, dtype=np.int64)
    for round_ in range(ROUNDS):
        is_few = int(asked.sum()) <= FEW_FAILING
        ends = find_narrow_cells(task.system, hidden, asked, primary.below, primary.above, one_by_one=is_few)
        faults = Faults(nothing, nothing, *ends, unions=0, interval_checked=True)
        if len(faults.cells) == 0:
            return hidden
        asked = np.isin(np.arange(len(cells)), faults.cells)
        hidden = task.hide_groups(_hide_more(task, hidden, unaudited, faults, round_))
    return np.ones(len(cells), dtype=bool)


def _find_faults(task: _Task, hidden: Bools, asked: Bools, *, seed: int) -> tuple[ExactAudit, Faults]:
    """Look for every kind of fault, and for narrow intervals among the cells that are asked for."""
    cells, primary, has_owners = task.cells, task.primary, not task.cells.counts_people
    audit = run_exact_audit(task.relations.matrix, hidden, seed, with_classes=has_owners)
    too_low = too_high = nothing = np.zeros(0, dtype=np.int64)
    is_checked = int(hidden.sum()) <= MOST_HIDDEN_FOR_INTERVALS
    if is_checked:
        too_low, too_high = find_narrow_cells(task.system, hidden, asked, primary.below, primary.above)
    unions = find_unsafe_unions(cells, task.relations, hidden & ~audit.is_derivable, task.rule)
    return audit, Faults(
        derivable=np.flatnonzero(audit.is_derivable & primary.cells),
        known_to_owners=find_owner_leaks(cells, audit, primary.cells) if has_owners else nothing,
        too_low=too_low,
        too_high=too_high,
        unions=int(unions.sum()),
        interval_checked=is_checked,
    )


def _hide_more(task: _Task, hidden: Bools, audit: ExactAudit, faults: Faults, round_: int) -> Bools:
    """Hide further cells for those that fail."""
    cells, relations, system, primary = task.cells, task.relations, task.system, task.primary
    if hidden.sum() > MOST_HIDDEN_FOR_INTERVALS:
        return surround(relations, hidden, faults.cells, task.costs)
    if len(faults.cells) > FEW_FAILING and round_ < ROUNDS_OF_NEIGHBOURS:
        thicker = thicken(relations, hidden, faults.cells, system.value, primary.above, task.costs)
        if (thicker != hidden).any():
            return thicker
    flow = Flow(system, relations, task.costs, hidden)
    owner, is_alone = cells.sums.owner, cells.sums.people == 1
    up = np.maximum(np.maximum(primary.above, 1e-3 * np.abs(system.value[: len(cells)])), 1.0)
    for cell in faults.known_to_owners.tolist():
        is_same = audit.determined_with == audit.determined_with[cell]
        is_of_another = is_alone & ((owner != owner[cell]) | (cells.sums.people[cell] > 1))  # never the cell itself
        flow.move(cell, up[cell], np.flatnonzero(is_same & is_of_another))
    for cell in np.union1d(faults.derivable, faults.too_high).tolist():
        flow.move(cell, up[cell])
    down = np.minimum(primary.below, system.value[: len(cells)] - system.least[: len(cells)])
    for cell in faults.too_low.tolist():
        flow.move(cell, -down[cell])
    return flow.hidden[: len(cells)]
