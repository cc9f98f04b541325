"""Audits of hidden cells: which follow exactly, and how far the shown cells leave the others open.

The hidden cells can change by any vector of the null space of the relations, restricted to hidden cells. A cell that is
zero in a random vector of it is zero in all, so that its value is known; two cells with the same ratio in two random
vectors are multiples of each other, so that whoever knows one knows both. Beyond that, a hidden cell needs a table that
fits all shown cells and in which its value is larger by what protects it, and one in which it is smaller. One linear
program asks for many cells at once: it maximizes the sum of the values, each counted up to what it needs, and serves
many components, which do not depend on each other. One that the solver gives up is a failure of the cells it asks for.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.optimize import linprog
from scipy.sparse import linalg

from duckanon._core.common import progress
from duckanon._core.common.arrays import Bools, Floats, Ints
from duckanon._methods.tables.cells import TableCells
from duckanon._methods.tables.relations import find_components, restrict_relations, solve_by_subtraction

PRIME = (1 << 31) - 1
"""The field of exact elimination: products of two members fit into 64 bits."""

ELIMINATED = 1_500
"""Cells of a component up to which elimination is as fast as least squares."""

ZERO = 1e-6
"""Below this a component of a projected vector is zero. In 36 random patterns the largest zero was 5e-10, the smallest
other one 9e-4."""

ALIKE = 1e-7
"""Radians within which two angles are the same: a thousand times the error of a projected vector."""


@dataclass(frozen=True)
class ExactAudit:
    """The result of an exact audit, by cells."""

    is_derivable: Bools
    determined_with: Ints  # hidden cells with the same number determine each other; -1: shown or derivable


def run_exact_audit(
    matrix: sparse.csr_matrix, hidden: Bools, seed: int = 0, *, with_classes: bool = True
) -> ExactAudit:
    """Find the hidden cells that follow from the shown ones, and classes of cells that determine each other.

    Without `with_classes` the classes of large components may join cells that do not determine each other.
    """
    random = np.random.default_rng(seed)
    remaining = solve_by_subtraction(matrix, hidden)
    is_derivable, classes, count = hidden & ~remaining, np.full(len(hidden), -1), 0
    by_column = matrix.tocsc()
    for cells in find_components(matrix, remaining):
        progress.check()
        part = restrict_relations(by_column, cells)
        if len(cells) <= ELIMINATED:
            number, is_zero = _eliminate_cells(part, random)
        else:
            number, is_zero = _project_cells(part, random, 3 if with_classes else 2)
        is_derivable[cells[is_zero]] = True
        classes[cells] = np.where(is_zero, -1, number + count)
        count += len(cells)
    return ExactAudit(is_derivable, classes)


def find_owner_leaks(cells: TableCells, audit: ExactAudit, guarded: Bools) -> Ints:
    """Return the guarded cells that one contributor of another hidden cell can compute, since that cell is theirs."""
    owner, classes = cells.sums.owner, audit.determined_with
    is_alone = (cells.sums.people == 1) & (classes >= 0)
    owners: dict[int, set[int]] = {}
    for cell in np.flatnonzero(is_alone).tolist():
        owners.setdefault(int(classes[cell]), set()).add(int(owner[cell]))
    asked = np.flatnonzero(guarded & np.isin(classes, np.array(list(owners), dtype=np.int64)) & (classes >= 0))
    leaks = []
    for cell in asked.tolist():
        if owners[int(classes[cell])] - ({int(owner[cell])} if is_alone[cell] else set()):
            leaks.append(cell)
    return np.array(leaks, dtype=np.int64)


def _project_cells(part: sparse.csr_matrix, random: np.random.Generator, count: int) -> tuple[Ints, Bools]:
    """Project random vectors onto the null space by least squares; return numbers of classes and which cells are zero.

    Cells are one class if their members of the vectors are proportional. Two vectors show that as one angle, and among
    a million cells many angles meet by chance; three vectors show two.
    """
    scale = 1 / np.sqrt(np.diff(part.indptr))
    across = (sparse.diags(scale) @ part).T.tocsr()
    vectors = random.standard_normal((part.shape[1], count))
    for vector in vectors.T:
        progress.check()
        vector -= across @ linalg.lsmr(across, vector, atol=1e-13, btol=1e-13, conlim=1e14, maxiter=20_000)[0]
    is_zero = np.asarray((np.abs(vectors) < ZERO).all(axis=1))
    number = np.zeros(len(vectors), dtype=np.int64)
    for vector in vectors.T[1:]:
        angle = np.arctan2(vectors[:, 0], vector) % np.pi
        angle[angle > np.pi - ALIKE] = 0
        order = np.lexsort((angle, number))
        is_new = (np.diff(angle[order]) > ALIKE) | (np.diff(number[order]) != 0)
        number[order] = np.append(0, np.cumsum(is_new))
    return number, is_zero


def _eliminate_cells(part: sparse.csr_matrix, random: np.random.Generator) -> tuple[Ints, Bools]:
    """Draw two vectors of the null space modulo a prime; return numbers of equal ratios and which cells are zero."""
    reduced, pivots = reduce_matrix(np.asarray(part.todense()).astype(np.int64))
    free = np.setdiff1d(np.arange(part.shape[1]), pivots)
    vectors = np.zeros((part.shape[1], 2), dtype=np.int64)
    vectors[free] = random.integers(1, PRIME, (len(free), 2))
    for vector in vectors.T:
        vector[pivots] = -(reduced[: len(pivots)][:, free] * vector[free] % PRIME).sum(axis=1) % PRIME
    is_zero = np.asarray((vectors == 0).all(axis=1))
    ratios = [first * pow(second, -1, PRIME) % PRIME if second else -1 for first, second in vectors.tolist()]
    return np.unique(np.array(ratios, dtype=np.int64), return_inverse=True)[1], is_zero


def reduce_matrix(matrix: Ints) -> tuple[Ints, list[int]]:
    """Bring a matrix into reduced echelon form modulo the prime; return it with the columns of its pivots."""
    matrix = matrix % PRIME
    pivots: list[int] = []
    for column in range(matrix.shape[1]):
        row = len(pivots)
        below = np.flatnonzero(matrix[row:, column])
        if len(below) == 0:
            continue
        matrix[[row, row + below[0]]] = matrix[[row + below[0], row]]
        matrix[row] = matrix[row] * pow(int(matrix[row, column]), -1, PRIME) % PRIME
        other = np.flatnonzero(matrix[:, column])
        other = other[other != row]
        filled = np.flatnonzero(matrix[row])
        change = matrix[other, column][:, None] * matrix[row, filled] % PRIME
        matrix[np.ix_(other, filled)] = (matrix[np.ix_(other, filled)] - change) % PRIME
        pivots.append(column)
        progress.check()
    return matrix, pivots


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

    def pad_flags(self, of_cells: Bools, *, of_others: bool) -> Bools:
        """Return flags of cells, followed by those of numbers that are no cells."""
        return np.pad(of_cells, (0, len(self.value) - len(of_cells)), constant_values=of_others)


def find_narrow_cells(
    system: System, hidden: Bools, asked: Bools, below: Floats, above: Floats, *, one_by_one: bool = True
) -> tuple[Ints, Ints]:
    """Return the hidden cells that cannot be smaller by `below`, and those that cannot be larger by `above`.

    Without `one_by_one` some cells may be among them that can: nobody asked for them alone, which takes long.
    """
    hidden, asked = system.pad_flags(hidden, of_others=True), system.pad_flags(asked, of_others=False)
    below, above = (np.pad(need, (0, len(system.value) - len(need))) for need in (below, above))
    asked &= below + above > 0
    remaining = solve_by_subtraction(system.matrix, hidden)
    is_known = asked & hidden & ~remaining
    failed = {-1: [np.flatnonzero(is_known & (below > 0))], 1: [np.flatnonzero(is_known & (above > 0))]}
    scale = max(1.0, float(np.abs(system.value[remaining]).max(initial=0)) / LARGEST_VALUE)
    by_column = system.matrix.tocsc()
    for cells, block in _join_components(find_components(system.matrix, remaining), asked):
        of_batch = restrict_relations(by_column, cells)
        value, least = system.value[cells] / scale, system.least[cells] / scale
        ends = _propagate(of_batch, value, least)
        for direction, need in ((1, above), (-1, below)):
            columns = np.flatnonzero(asked[cells])
            goal = value[columns] + direction * need[cells[columns]] / scale
            if direction < 0:
                goal = np.maximum(goal, least[columns])
            is_out = direction * (ends[direction][columns] - goal) < -BEYOND * np.maximum(1, np.abs(value[columns]))
            failed[direction].append(cells[columns[is_out]])
            columns, goal = columns[~is_out], goal[~is_out]
            program = _Program(of_batch, value, least, columns, goal, direction)
            failed[direction].append(cells[columns[program.find_unreachable(block[columns], one_by_one)]])
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
        most, fewest = sums - _sum_other_ends(row, smallest), sums - _sum_other_ends(row, largest)
        np.minimum.at(high, cell, np.where(is_part, most, -fewest))
        np.maximum.at(low, cell, np.where(is_part, fewest, -most))
        if np.array_equal(before[0], low) and np.array_equal(before[1], high):
            break
    return {-1: low, 1: high}


def _sum_other_ends(row: Ints, ends: Floats) -> Floats:
    """Add up the ends of all other entries of each entry's row, some of which are infinite."""
    is_open, count = np.isinf(ends), int(row.max(initial=-1)) + 1
    finite, infinite = np.where(is_open, 0, ends), np.where(is_open, ends, 0)
    has_open = np.bincount(row, is_open, count)[row] > is_open
    return np.where(has_open, np.bincount(row, infinite, count)[row], np.bincount(row, finite, count)[row] - finite)


def compute_intervals(matrix: sparse.csr_matrix, value: Floats, asked: Bools, least: float) -> tuple[Floats, Floats]:
    """Return the smallest and the largest value of the cells that are asked for; NaN in `value` marks hidden cells.

    NaN where the solver gave up. Cells of a component are asked for one after the other.
    """
    hidden = np.isnan(value)
    low, high = value.copy(), value.copy()
    scale = max(1.0, float(np.abs(value[~hidden]).max(initial=0)) / LARGEST_VALUE)
    known = matrix @ np.where(hidden, 0, value) / scale
    by_column = matrix.tocsc()
    for cells in find_components(matrix, hidden):
        part = by_column[:, cells].tocsr()
        rows = np.flatnonzero(np.diff(part.indptr))
        part, sums = part[rows], -known[rows]
        for column in np.flatnonzero(asked[cells]).tolist():
            progress.check()
            cost = np.zeros(len(cells))
            for sign, ends in ((1, low), (-1, high)):
                cost[column] = sign
                solved = linprog(cost, A_eq=part, b_eq=sums, bounds=(least, None), method="highs-ds")
                is_solved, is_unbounded = solved.status == 0, solved.status == 3
                beyond = -sign * np.inf if is_unbounded else np.nan
                ends[cells[column]] = solved.x[column] * scale if is_solved else beyond
    return low, high


def _join_components(components: list[Ints], asked: Bools) -> list[tuple[Ints, Ints]]:
    """Put components with cells that are asked for together; return cells and the number of each cell's component."""
    components = [cells for cells in components if asked[cells].any()]
    sizes = np.array([len(cells) for cells in components], dtype=np.int64)
    batch = np.cumsum(sizes) // TOGETHER
    batches = [np.flatnonzero(batch == number) for number in np.unique(batch)]
    return [(np.concatenate([components[i] for i in parts]), np.repeat(parts, sizes[parts])) for parts in batches]


class _Program:
    """Asks how far cells can be moved in one direction, up to the value that each needs.

    The value of a cell that is asked for is the sum of two variables, one up to the needed value and one beyond it.
    """

    def __init__(
        self, matrix: sparse.csr_matrix, value: Floats, least: Floats, columns: Ints, goal: Floats, direction: int
    ) -> None:
        self.direction, self.columns, self.goal, self.best = direction, columns, goal, value[columns].copy()
        self.matrix = sparse.hstack([matrix, matrix[:, columns]], format="csc")
        self.sums, self.count = matrix @ value, matrix.shape[1]
        upper = np.full(self.count, np.inf)
        upper[columns] = np.maximum(goal, least[columns])
        beyond = np.zeros(len(columns)), np.full(len(columns), np.inf)
        self.bounds = np.column_stack([np.append(least, beyond[0]), np.append(upper, beyond[1])])
        self.tolerance = 1e-7 * np.maximum(1, np.abs(value[columns]))

    def find_unreachable(self, block: Ints, one_by_one: bool) -> Bools:
        """Tell which cells cannot reach what they need; cells of different blocks do not depend on each other.

        As long as a block makes progress all its open cells are asked for at once, then one after the other.
        """
        is_single, was_asked = np.zeros(int(block.max(initial=0)) + 1, dtype=bool), np.zeros(len(block), dtype=bool)
        while True:
            is_open = ~self._is_within_reach() & ~((was_asked | (not one_by_one)) & is_single[block])
            if not is_open.any():
                return ~self._is_within_reach()
            asked = is_open & ~is_single[block]
            single = np.flatnonzero(is_open & is_single[block])
            asked[single[np.unique(block[single], return_index=True)[1]]] = True
            was_asked[asked & is_single[block]] = True
            self._solve(asked)
            has_progress = np.zeros(len(is_single), dtype=bool)
            has_progress[block[is_open & self._is_within_reach()]] = True
            is_single[block[asked]] |= ~has_progress[block[asked]]

    def _is_within_reach(self) -> Bools:
        return np.asarray(self.direction * (self.best - self.goal) >= -self.tolerance)

    def _solve(self, asked: Bools) -> None:
        progress.check()
        cost = np.zeros(self.matrix.shape[1])
        if self.direction > 0:
            cost[self.columns[asked]] = -1
        else:
            cost[self.count + np.flatnonzero(asked)] = 1
        solved = linprog(cost, A_eq=self.matrix, b_eq=self.sums, bounds=self.bounds, method="highs-ds")
        if solved.status != 0:
            return
        value = solved.x[self.columns] + solved.x[self.count :]
        self.best = np.where(self.direction * (value - self.best) > 0, value, self.best)
