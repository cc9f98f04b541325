"""Interval audit: how far the shown cells leave the value of a hidden cell open, by linear programs.

A hidden cell needs a table that fits all shown cells and in which its value is larger by what protects it, and one in
which it is smaller. One program asks for many cells at once: it maximizes the sum of the values, each counted up to
what it needs. Components do not depend on each other, so that one program serves many of them. A program that the
solver gives up counts as a failure of the cells that it asked for.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.optimize import linprog

from duckanon._core.common import progress
from duckanon._core.common.arrays import Bools, Floats, Ints
from duckanon._methods.tables.relations import components, not_subtractable, restricted

LARGEST_VALUE = 1e4
"""Values are scaled to this: HiGHS gives up programs over amounts of money as they are."""

BEYOND = 1e-6
"""By how much an end has to be beyond what a cell needs: more than sums are rounded by, and ten times the solver's."""

PASSES = 20
"""Over the relations of a component, until no end moves."""

TOGETHER = 4_000
"""Cells of small components that share a program."""


@dataclass(frozen=True)
class System:
    """Numbers that the relations hold for: all cells, known or not, then numbers that nobody knows."""

    matrix: sparse.csr_matrix  # relations by cells
    value: Floats
    least: Floats  # what everybody knows a cell to be at least, -inf: nothing

    def padded(self, of_cells: Bools, *, of_others: bool) -> Bools:
        """Return flags of cells, followed by those of numbers that are no cells."""
        return np.pad(of_cells, (0, len(self.value) - len(of_cells)), constant_values=of_others)


def narrow_cells(
    system: System, hidden: Bools, asked: Bools, below: Floats, above: Floats, *, one_by_one: bool = True
) -> tuple[Ints, Ints]:
    """Return the hidden cells that cannot be smaller by `below`, and those that cannot be larger by `above`.

    Without `one_by_one` some cells may be among them that can: nobody asked for them alone, which takes long.
    """
    hidden, asked = system.padded(hidden, of_others=True), system.padded(asked, of_others=False)
    below, above = (np.pad(need, (0, len(system.value) - len(need))) for need in (below, above))
    asked &= below + above > 0
    remaining = not_subtractable(system.matrix, hidden)
    is_known = asked & hidden & ~remaining
    failed = {-1: [np.flatnonzero(is_known & (below > 0))], 1: [np.flatnonzero(is_known & (above > 0))]}
    scale = max(1.0, float(np.abs(system.value[remaining]).max(initial=0)) / LARGEST_VALUE)
    by_column = system.matrix.tocsc()
    for cells, block in _batches(components(system.matrix, remaining), asked):
        of_batch = restricted(by_column, cells)
        value, least = system.value[cells] / scale, system.least[cells] / scale
        ends = _propagate(of_batch, value, least)
        for direction, need in ((1, above), (-1, below)):
            places = np.flatnonzero(asked[cells])
            reached = value[places] + direction * need[cells[places]] / scale
            if direction < 0:
                reached = np.maximum(reached, least[places])
            is_out = direction * (ends[direction][places] - reached) < -BEYOND * np.maximum(1, np.abs(value[places]))
            failed[direction].append(cells[places[is_out]])
            places, reached = places[~is_out], reached[~is_out]
            program = _Program(of_batch, value, least, places, reached, direction)
            failed[direction].append(cells[places[program.unreached(block[places], one_by_one)]])
    return np.sort(np.concatenate(failed[-1])), np.sort(np.concatenate(failed[1]))


def _propagate(matrix: sparse.csr_matrix, value: Floats, least: Floats) -> dict[int, Floats]:
    """Return ends that no cell can be beyond, below (-1) and above (1): what each relation leaves for its cells.

    A program would give closer ones, but a few passes give those of all cells: where many cells fail, most fail here
    (836 of 862 small cells of 150 rows, which took 11 seconds by a program each).
    """
    row, cell, is_part = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr)), matrix.indices, matrix.data > 0
    sums = (matrix @ value)[row]
    low, high = least.copy(), np.full(len(value), np.inf)
    for _ in range(PASSES):
        before = low.copy(), high.copy()
        smallest, largest = np.where(is_part, low[cell], -high[cell]), np.where(is_part, high[cell], -low[cell])
        most, fewest = sums - _sum_of_others(row, smallest), sums - _sum_of_others(row, largest)
        np.minimum.at(high, cell, np.where(is_part, most, -fewest))
        np.maximum.at(low, cell, np.where(is_part, fewest, -most))
        if np.array_equal(before[0], low) and np.array_equal(before[1], high):
            break
    return {-1: low, 1: high}


def _sum_of_others(row: Ints, ends: Floats) -> Floats:
    """Add up the ends of all other entries of each entry's row, some of which are infinite."""
    is_open, count = np.isinf(ends), int(row.max(initial=-1)) + 1
    finite, infinite = np.where(is_open, 0, ends), np.where(is_open, ends, 0)
    has_open = np.bincount(row, is_open, count)[row] > is_open
    return np.where(has_open, np.bincount(row, infinite, count)[row], np.bincount(row, finite, count)[row] - finite)


def intervals(matrix: sparse.csr_matrix, value: Floats, asked: Bools, least: float) -> tuple[Floats, Floats]:
    """Return the smallest and the largest value of the cells that are asked for; NaN in `value` marks hidden cells.

    NaN where the solver gave up. Cells of a component are asked for one after the other.
    """
    hidden = np.isnan(value)
    low, high = value.copy(), value.copy()
    scale = max(1.0, float(np.abs(value[~hidden]).max(initial=0)) / LARGEST_VALUE)
    known = matrix @ np.where(hidden, 0, value) / scale
    by_column = matrix.tocsc()
    for cells in components(matrix, hidden):
        part = by_column[:, cells].tocsr()
        rows = np.flatnonzero(np.diff(part.indptr))
        part, sums = part[rows], -known[rows]
        for place in np.flatnonzero(asked[cells]).tolist():
            progress.check()
            cell = int(cells[place])
            cost = np.zeros(len(cells))
            for sign, ends in ((1, low), (-1, high)):
                cost[place] = sign
                solved = linprog(cost, A_eq=part, b_eq=sums, bounds=(least, None), method="highs-ds")
                ends[cell] = {0: solved.x[place] * scale if solved.status == 0 else 0.0, 3: -sign * np.inf}.get(
                    solved.status, np.nan
                )
    return low, high


def _batches(found: list[Ints], asked: Bools) -> list[tuple[Ints, Ints]]:
    """Put components with cells that are asked for together; return cells and the number of each cell's component."""
    found = [cells for cells in found if asked[cells].any()]
    sizes = np.array([len(cells) for cells in found], dtype=np.int64)
    batch = np.cumsum(sizes) // TOGETHER
    return [
        (
            np.concatenate([found[place] for place in np.flatnonzero(batch == number)]),
            np.repeat(np.flatnonzero(batch == number), sizes[batch == number]),
        )
        for number in np.unique(batch)
    ]


class _Program:
    """Asks how far cells can be moved in one direction, up to the value that each needs.

    The value of a cell that is asked for is the sum of two variables, one up to the needed value and one beyond it.
    """

    def __init__(
        self, matrix: sparse.csr_matrix, value: Floats, least: Floats, places: Ints, reached: Floats, direction: int
    ) -> None:
        self.direction, self.places, self.reached, self.best = direction, places, reached, value[places].copy()
        self.matrix = sparse.hstack([matrix, matrix[:, places]], format="csc")
        self.sums, self.count = matrix @ value, matrix.shape[1]
        upper = np.full(self.count, np.inf)
        upper[places] = np.maximum(reached, least[places])
        beyond = np.zeros(len(places)), np.full(len(places), np.inf)
        self.bounds = np.column_stack([np.append(least, beyond[0]), np.append(upper, beyond[1])])
        self.tolerance = 1e-7 * np.maximum(1, np.abs(value[places]))

    def unreached(self, block: Ints, one_by_one: bool) -> Bools:
        """Tell which cells cannot reach what they need; cells of different blocks do not depend on each other.

        As long as a block makes progress all its open cells are asked for at once, then one after the other.
        """
        is_single, was_asked = np.zeros(int(block.max(initial=0)) + 1, dtype=bool), np.zeros(len(block), dtype=bool)
        while True:
            is_open = ~self._is_reached() & ~((was_asked | (not one_by_one)) & is_single[block])
            if not is_open.any():
                return ~self._is_reached()
            asked = is_open & ~is_single[block]
            single = np.flatnonzero(is_open & is_single[block])
            asked[single[np.unique(block[single], return_index=True)[1]]] = True
            was_asked[asked & is_single[block]] = True
            self._solve(asked)
            has_progress = np.zeros(len(is_single), dtype=bool)
            has_progress[block[is_open & self._is_reached()]] = True
            is_single[block[asked]] |= ~has_progress[block[asked]]

    def _is_reached(self) -> Bools:
        return np.asarray(self.direction * (self.best - self.reached) >= -self.tolerance)

    def _solve(self, asked: Bools) -> None:
        progress.check()
        cost = np.zeros(self.matrix.shape[1])
        if self.direction > 0:
            cost[self.places[asked]] = -1
        else:
            cost[self.count + np.flatnonzero(asked)] = 1
        solved = linprog(cost, A_eq=self.matrix, b_eq=self.sums, bounds=self.bounds, method="highs-ds")
        if solved.status != 0:
            return
        value = solved.x[self.places] + solved.x[self.count :]
        self.best = np.where(self.direction * (value - self.best) > 0, value, self.best)
