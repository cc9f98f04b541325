"""Aggregate tables for tests, and an attacker who knows nothing of the code: ranks of matrices, a program per cell."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from scipy.optimize import linprog

from duckanon._methods.tables.cells import (
    NOBODY,
    CellSums,
    LabelTree,
    TableCells,
    compute_strides,
    make_cells,
    make_dimension,
)
from duckanon._methods.tables.relations import find_relations


def count_table(
    counts: dict[tuple[str, ...], float],
    names: Sequence[str],
    trees: dict[str, list[LabelTree]] | None = None,
    *,
    with_empty: bool = False,
) -> TableCells:
    """Make a table of counts from its inner cells."""
    labels = [sorted({cell[place] for cell in counts}) for place in range(len(names))]
    dimensions = [
        make_dimension(name, values, (trees or {}).get(name, [])) for name, values in zip(names, labels, strict=True)
    ]
    codes = np.array([[labels[place].index(label) for place, label in enumerate(cell)] for cell in counts])
    people = np.array(list(counts.values()), dtype=np.int64)
    zero = np.zeros(len(people))
    owner = np.where(people > 0, np.arange(len(people)), NOBODY)
    inner = CellSums(codes @ compute_strides(dimensions), people, people, zero, zero, np.zeros((len(people), 2)), owner)
    return make_cells(dimensions, inner, None, counts_people=True, with_empty=with_empty)


def names_of(cells: TableCells, places: np.ndarray) -> list[tuple[str | None, ...]]:
    """Return the labels of some cells."""
    return [
        tuple(item.labels[code] for item, code in zip(cells.dimensions, cells.coordinates[place], strict=True))
        for place in np.arange(len(cells))[places]
    ]


def flags(cells: TableCells, names: set[tuple[str, ...]]) -> np.ndarray:
    """Mark cells by their labels."""
    return np.array([name in names for name in names_of(cells, np.arange(len(cells)))])


def derivable_by_rank(matrix: np.ndarray, hidden: np.ndarray) -> np.ndarray:
    """Tell which hidden cells follow from the others: their unit vectors are sums of relations."""
    part = matrix[:, hidden]
    rank = np.linalg.matrix_rank(part)
    units = np.eye(part.shape[1])
    result = np.zeros(len(hidden), dtype=bool)
    result[hidden] = [np.linalg.matrix_rank(np.vstack([part, unit])) == rank for unit in units]
    return result


def interval_by_program(
    matrix: np.ndarray, value: np.ndarray, hidden: np.ndarray, cell: int, least: float = 0
) -> tuple[float, float]:
    """Return the smallest and the largest value of a hidden cell, by a linear program each.

    Everybody knows that no hidden cell is below `least`.
    """
    part, place = matrix[:, hidden], int(np.flatnonzero(np.flatnonzero(hidden) == cell)[0])
    ends = []
    for sign in (1, -1):
        cost = np.zeros(part.shape[1])
        cost[place] = sign
        solved = linprog(cost, A_eq=part, b_eq=part @ value[hidden], bounds=(least, None))
        assert solved.status in (0, 3)
        ends.append(sign * solved.fun if solved.status == 0 else np.inf)
    return ends[0], ends[1]


def relation_matrix(cells: TableCells) -> np.ndarray:
    """Return the relations of a table as a plain matrix."""
    return np.asarray(find_relations(cells).matrix.todense())


def derivable_by_fractions(matrix: np.ndarray, hidden: np.ndarray) -> np.ndarray:
    """Tell which hidden cells follow from the others, by elimination without rounding.

    In reduced echelon form a cell follows if its row has no other entry.
    """
    rows = [[Fraction(int(entry)) for entry in row] for row in matrix[:, hidden]]
    pivots: list[int] = []
    for column in range(int(hidden.sum())):
        result = next((place for place in range(len(pivots), len(rows)) if rows[place][column]), None)
        if result is None:
            continue
        own = len(pivots)
        rows[own], rows[result] = rows[result], rows[own]
        rows[own] = [entry / rows[own][column] for entry in rows[own]]
        for place, row in enumerate(rows):
            if place != own and row[column]:
                rows[place] = [entry - row[column] * pivot for entry, pivot in zip(row, rows[own], strict=True)]
        pivots.append(column)
    follows = np.zeros(int(hidden.sum()), dtype=bool)
    for row, column in zip(rows, pivots, strict=False):
        follows[column] = sum(map(bool, row)) == 1
    of_cells = np.zeros(len(hidden), dtype=bool)
    of_cells[hidden] = follows
    return of_cells
