"""Repair of what an audit found: cells that are hidden in addition, beside the failing cell or by the cheapest flow."""

from __future__ import annotations

import numpy as np
from scipy import sparse
from scipy.optimize import linprog

from duckanon._core.common import progress
from duckanon._core.common.arrays import Bools, Floats, Ints
from duckanon._methods.tables.interval_audit import System
from duckanon._methods.tables.relations import Relations, restricted
from duckanon._methods.tables.suppression import Costs

MOST_MOVED = 1e4
"""How far another cell may move, in units of what the cell that is protected moves."""

UNSIMPLIFIED = {"presolve": False}
"""For programs whose solution changes few cells: of 33,690 columns the solver took .1 seconds, and .4 with presolve."""

MOST_MATES = 50
"""Hidden neighbours of a cell whose relations get a further hidden cell too."""


def thicken(relations: Relations, hidden: Bools, failing: Ints, value: Floats, need: Floats, costs: Costs) -> Bools:
    """Hide for each failing cell the cheapest further member of the relation whose hidden cells have least to give.

    A member that was hidden for another cell serves all cells of its relations that need no more than it has to give.
    """
    added, is_free = hidden.copy(), ~costs.is_fixed
    for cell in failing.tolist():
        progress.check()
        least, tightest = np.inf, np.zeros(0, dtype=np.int64)
        for relation in relations.of_cell(cell).tolist():
            members = relations.members(relation)
            given = np.abs(value[members[hidden[members] & (members != cell)]]).sum()
            if given < least and (~hidden[members] & is_free[members]).any():
                least, tightest = given, members
        new = tightest[added[tightest] & ~hidden[tightest]]
        free = tightest[~added[tightest] & is_free[tightest]]
        if len(free) and np.abs(value[new]).sum() <= need[cell]:
            added[free[np.argmin(costs.weight[free])]] = True
    return added


def surround(relations: Relations, hidden: Bools, failing: Ints, costs: Costs) -> Bools:
    """Hide for each failing cell the cheapest further member of every relation of its own and of its hidden neighbours.

    For tables that are too large for a flow, in which few cells fail.
    """
    added = hidden.copy()
    for cell in failing.tolist():
        progress.check()
        own = relations.of_cell(cell)
        mates = np.concatenate([relations.members(one) for one in own.tolist()])
        near = [relations.of_cell(mate) for mate in mates[hidden[mates]][:MOST_MATES].tolist()]
        for relation in np.unique(np.concatenate([own, *near])).tolist():
            members = relations.members(relation)
            free = members[~hidden[members] & ~costs.is_fixed[members]]
            if len(free):
                added[free[np.argmin(costs.weight[free])]] = True
    return added


class Flow:
    """The cheapest change of a table that moves one cell: what it changes has to be hidden.

    Hidden cells and the neighbours of the cell are tried first, then their neighbours, which takes a tenth of the time
    that all cells of the table take.
    """

    def __init__(self, system: System, relations: Relations, costs: Costs, hidden: Bools) -> None:
        self.system, self.relations, self.hidden = system, relations, system.padded(hidden, of_others=True)
        self.is_fixed = system.padded(costs.is_fixed, of_others=False)
        self.weight = np.pad(costs.weight, (0, len(system.value) - len(hidden)))
        self.by_column = system.matrix.tocsc()

    def move(self, cell: int, distance: float, unmoved: Ints | None = None) -> bool:
        """Hide what lets a cell move by a distance while some cells stay; tell whether that is possible."""
        progress.check()
        may_move = ~self.is_fixed
        if unmoved is not None:
            may_move[unmoved] = False
        near, reached = self.hidden.copy(), np.array([cell])
        for _ in range(2):
            reached = self._neighbours(reached)
            near[reached] = True
            if self._move_some(near & may_move, cell, distance):
                return True
        return self._move_some(may_move, cell, distance)

    def _move_some(self, may_move: Bools, cell: int, distance: float) -> bool:
        """Hide what lets a cell move by a distance if only some cells may; tell whether that is possible."""
        places = np.flatnonzero(may_move)
        change = self._cheapest(places, int(np.searchsorted(places, cell)), distance)
        if change is None:
            return False
        self.hidden[places[np.abs(change) > 1e-6]] = True
        return True

    def _neighbours(self, cells: Ints) -> Ints:
        """Return all cells that are in a relation with one of some cells."""
        relations = np.unique(np.concatenate([self.relations.of_cell(one) for one in cells.tolist()]))
        return np.unique(np.concatenate([self.relations.members(one) for one in relations.tolist()]))

    def _cheapest(self, places: Ints, cell: int, distance: float) -> Floats | None:
        """Return the cheapest change of some cells, in units of the distance; None where there is none.

        The solver rounds to a ten millionth of such a unit.
        """
        matrix = restricted(self.by_column, places)
        count, step = len(places), float(np.sign(distance))
        down = (self.system.value[places] - self.system.least[places]) / abs(distance)
        ends = np.column_stack([np.zeros(2 * count), np.append(np.full(count, MOST_MOVED), down.clip(0, MOST_MOVED))])
        ends[cell], ends[cell + count] = max(step, 0), max(-step, 0)
        cost = np.where(self.hidden[places], 1e-6, self.weight[places])
        both_ways, none = sparse.hstack([matrix, -matrix], format="csc"), np.zeros(matrix.shape[0])
        solved = linprog(
            *(np.append(cost, cost), None, None, both_ways, none, ends), method="highs-ds", options=UNSIMPLIFIED
        )
        return solved.x[:count] - solved.x[count:] if solved.status == 0 else None
