"""Distances of pairs of rows, computed one by one."""

from __future__ import annotations

import numpy as np

from duckanon._core.common import progress
from duckanon._core.common.arrays import Ints, Matrix

TINY = 256
"""Rows up to which all distances are computed: 50 took a millisecond and a half with bounds, and take a tenth of it."""

_REFINED = 1 << 16  # pairs of rows whose differences are held at once
_IN_ORDER = 8  # columns from which on NumPy adds up the numbers of a row in another order than one after the other
_SEVERAL = 5  # neighbours from which on sorting all is quicker than taking the nearest out, one by one


def compared(queries: Matrix, rows: Matrix, k: int, skipped: Ints) -> tuple[Matrix, Ints]:
    """Compute all distances of a few rows, which is quicker than preparing to compute few of them."""
    squares = all_squares(queries, rows)
    squares[np.flatnonzero(skipped >= 0), skipped[skipped >= 0]] = np.inf
    if k >= _SEVERAL:
        indices = np.argsort(squares, axis=1, kind="stable")[:, :k]
        return np.take_along_axis(squares, indices, axis=1), indices
    best, indices = np.empty((len(queries), k)), np.empty((len(queries), k), np.int64)
    own = np.arange(len(queries))
    for place in range(k):
        indices[:, place] = near = squares.argmin(axis=1)  # of equally near ones the first
        best[:, place] = squares[own, near]
        squares[own, near] = np.inf
    return best, indices


def all_squares(queries: Matrix, rows: Matrix) -> Matrix:
    """Return the sums of squared differences of all pairs, to the last digit as `squared_distances` computes them."""
    squares = np.empty((len(queries), len(rows)))
    if rows.shape[1] < _IN_ORDER:  # a column at a time takes half as long
        progress.check()
        for place in range(rows.shape[1]):
            difference = np.subtract.outer(queries[:, place], rows[:, place])
            np.square(difference, out=difference)
            np.add(squares, difference, out=squares) if place else np.copyto(squares, difference)
        return squares
    step = max(1, _REFINED * 32 // max(rows.size, 1))
    for start in range(0, len(queries), step):
        progress.check()
        difference = queries[start : start + step, None] - rows
        squares[start : start + step] = np.square(difference, out=difference).sum(axis=2)
    return squares


def squared_distances(queries: Matrix, points: Matrix, query: Ints, point: Ints) -> Matrix:
    """Return the sums of squared differences of pairs of a query and a point, given their places."""
    result = np.empty(len(query))
    step = max(1, _REFINED * 32 // queries.shape[1])
    for start in range(0, len(query), step):
        progress.check()
        part = slice(start, start + step)
        difference = queries[query[part]]
        difference -= points[point[part]]
        result[part] = np.square(difference, out=difference).sum(axis=1)
    return result
