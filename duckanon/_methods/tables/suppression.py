"""Secondary suppression by the group rule: no relation gives away a single hidden cell or an unsafe union of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from duckanon._core.common import progress
from duckanon._core.common.arrays import Bools, Floats, Ints, run_starts
from duckanon._methods.tables.cells import Cells
from duckanon._methods.tables.primary import CellRule, unsafe_unions
from duckanon._methods.tables.relations import Relations

OPENED = 2.0
"""The weight of a relation that a cell newly opens: it will need a second hidden cell itself. Measured: 1 to 3 hide
about as many cells on the labour force of the American Community Survey, 0 hides a tenth more."""

SHARE_A_ROUND = 0.25
"""Of the cells that a round chose, the best ones that are hidden: the others are chosen anew, knowing these."""


@dataclass(frozen=True)
class Costs:
    """What hiding each cell costs, and which cells cannot be hidden since everybody knows them."""

    weight: Floats
    is_fixed: Bools


def cell_costs(cells: Cells, is_known: Bools | None = None, *, protects_zeros: bool = False) -> Costs:
    """Return the cost of hiding each cell, which grows with the logarithm of its value."""
    fixed = np.zeros(len(cells), dtype=bool) if protects_zeros else cells.is_empty.copy()
    return Costs(1 + np.log1p(np.abs(cells.value)), fixed if is_known is None else fixed | is_known)


def hide_groups(cells: Cells, relations: Relations, hidden: Bools, rule: CellRule, costs: Costs) -> Bools:
    """Hide further cells until no relation is violated that has a cell left to hide."""
    hidden, is_stuck = hidden.copy(), np.zeros(relations.count, dtype=bool)
    relation, member = relations.relation, relations.cell
    while True:
        progress.check()
        count = relations.per_relation(hidden[member])
        violated = ((count == 1) | unsafe_unions(cells, relations, hidden, rule)) & ~is_stuck
        is_candidate = violated[relation] & ~hidden[member] & ~costs.is_fixed[member]
        is_stuck |= violated & (relations.per_relation(is_candidate) == 0)
        if not is_candidate.any():
            return hidden
        served = relations.per_cell(violated[relation] & ~hidden[member])
        opened = relations.per_cell(count[relation] == 0)
        score = costs.weight * (1 + OPENED * opened) / np.maximum(served, 1)
        hidden[_chosen(relations, np.flatnonzero(is_candidate), score, violated)] = True


def _chosen(relations: Relations, candidates: Ints, score: Floats, violated: Bools) -> Ints:
    """Return the cheapest cells of violated relations, no two for the same one."""
    relation, member = relations.relation[candidates], relations.cell[candidates]
    order = np.lexsort((member, score[member], relation))
    best = np.unique(member[order[run_starts(relation[order])]])
    best = best[np.lexsort((best, score[best]))]
    indptr, indices = relations.by_cell.indptr, relations.by_cell.indices
    is_served = np.zeros(relations.count, dtype=bool)
    taken = []
    for cell in best.tolist():
        own = indices[indptr[cell] : indptr[cell + 1]]
        own = own[violated[own]]
        if not is_served[own].any():
            taken.append(cell)
            is_served[own] = True
    return np.array(taken[: max(1, int(SHARE_A_ROUND * len(taken)))])
