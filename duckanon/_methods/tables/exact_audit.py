"""Exact audit: which hidden cells follow from the shown ones, and which follow from each other.

The hidden cells can change by any vector of the null space of the relations, restricted to hidden cells. A cell that
is zero in a random vector of it is zero in all, so that its value is known; two cells with the same ratio in two random
vectors are multiples of each other, so that whoever knows one knows both.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.sparse import linalg

from duckanon._core.common import progress
from duckanon._core.common.arrays import Bools, Ints
from duckanon._methods.tables.cells import Cells
from duckanon._methods.tables.relations import components, not_subtractable, restricted

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


def exact_audit(matrix: sparse.csr_matrix, hidden: Bools, seed: int = 0, *, with_classes: bool = True) -> ExactAudit:
    """Find the hidden cells that follow from the shown ones, and classes of cells that determine each other.

    Without `with_classes` the classes of large components may join cells that do not determine each other.
    """
    random = np.random.default_rng(seed)
    remaining = not_subtractable(matrix, hidden)
    is_derivable, classes, count = hidden & ~remaining, np.full(len(hidden), -1), 0
    by_column = matrix.tocsc()
    for cells in components(matrix, remaining):
        progress.check()
        part = restricted(by_column, cells)
        if len(cells) <= ELIMINATED:
            number, is_zero = _by_elimination(part, random)
        else:
            number, is_zero = _by_projection(part, random, 3 if with_classes else 2)
        is_derivable[cells[is_zero]] = True
        classes[cells] = np.where(is_zero, -1, number + count)
        count += len(cells)
    return ExactAudit(is_derivable, classes)


def known_to_owners(cells: Cells, audit: ExactAudit, guarded: Bools) -> Ints:
    """Return the guarded cells that one contributor of another hidden cell can compute, since that cell is theirs."""
    owner, classes = cells.sums.owner, audit.determined_with
    is_own = (cells.sums.people == 1) & (classes >= 0)
    owners: dict[int, set[int]] = {}
    for cell in np.flatnonzero(is_own).tolist():
        owners.setdefault(int(classes[cell]), set()).add(int(owner[cell]))
    asked = np.flatnonzero(guarded & np.isin(classes, np.array(list(owners), dtype=np.int64)) & (classes >= 0))
    found = [
        cell for cell in asked.tolist() if owners[int(classes[cell])] - ({int(owner[cell])} if is_own[cell] else set())
    ]
    return np.array(found, dtype=np.int64)


def _by_projection(part: sparse.csr_matrix, random: np.random.Generator, count: int) -> tuple[Ints, Bools]:
    """Project random vectors onto the null space by least squares; return numbers of classes and which cells are zero.

    Cells are one class if their members of the vectors are proportional. Two vectors show that as one angle, and among
    a million cells many angles meet by chance; three vectors show two.
    """
    scale = 1 / np.sqrt(np.diff(part.indptr))
    across = (sparse.diags(scale) @ part).T.tocsr()
    vectors = random.standard_normal((part.shape[1], count))
    for place in range(count):
        progress.check()
        solution = linalg.lsmr(across, vectors[:, place], atol=1e-13, btol=1e-13, conlim=1e14, maxiter=20_000)[0]
        vectors[:, place] -= across @ solution
    is_zero = np.asarray((np.abs(vectors) < ZERO).all(axis=1))
    number = np.zeros(len(vectors), dtype=np.int64)
    for place in range(1, count):
        angle = np.arctan2(vectors[:, 0], vectors[:, place]) % np.pi
        angle[angle > np.pi - ALIKE] = 0
        order = np.lexsort((angle, number))
        is_new = (np.diff(angle[order]) > ALIKE) | (np.diff(number[order]) != 0)
        number[order] = np.append(0, np.cumsum(is_new))
    return number, is_zero


def _by_elimination(part: sparse.csr_matrix, random: np.random.Generator) -> tuple[Ints, Bools]:
    """Draw two vectors of the null space modulo a prime; return numbers of equal ratios and which cells are zero."""
    reduced, pivots = eliminated(np.asarray(part.todense()).astype(np.int64))
    free = np.setdiff1d(np.arange(part.shape[1]), pivots)
    vectors = np.zeros((part.shape[1], 2), dtype=np.int64)
    vectors[free] = random.integers(1, PRIME, (len(free), 2))
    for place in range(2):
        products = reduced[: len(pivots)][:, free] * vectors[free, place] % PRIME
        vectors[pivots, place] = -products.sum(axis=1) % PRIME
    is_zero = np.asarray((vectors == 0).all(axis=1))
    ratios = [first * pow(second, -1, PRIME) % PRIME if second else -1 for first, second in vectors.tolist()]
    return np.unique(np.array(ratios, dtype=np.int64), return_inverse=True)[1], is_zero


def eliminated(matrix: Ints) -> tuple[Ints, list[int]]:
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
