"""Distances of pairs of rows, computed one by one."""

from __future__ import annotations

import numpy as np

from duckanon._core.common import progress
from duckanon._core.common.arrays import Ints, Matrix

TINY = 256
"""Rows up to which all distances are computed: 50 took a millisecond and a half with bounds, and take a tenth of it."""

_REFINED = 1 << 16  # pairs of rows whose differences are held at once


def compared(queries: Matrix, rows: Matrix, k: int, skipped: Ints) -> tuple[Matrix, Ints]:
    """Compute all distances of a few rows, which is quicker than preparing to compute few of them."""
    squares = np.empty((len(queries), len(rows)))
    step = max(1, _REFINED * 32 // max(rows.size, 1))
    for start in range(0, len(queries), step):
        progress.check()
        difference = queries[start : start + step, None] - rows
        squares[start : start + step] = np.square(difference, out=difference).sum(axis=2)
    squares[np.flatnonzero(skipped >= 0), skipped[skipped >= 0]] = np.inf
    indices = np.argsort(squares, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(squares, indices, axis=1), indices


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
