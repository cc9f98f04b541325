"""Nearest neighbours in narrow tables, by a tree."""

from __future__ import annotations

import numpy as np
from scipy.spatial import cKDTree

from duckanon._core.common import progress
from duckanon._core.common.arrays import Bools, Ints, Matrix

_QUERIES = 2048  # at a time
_REFINED = 1 << 16  # pairs of rows whose differences are held at once


def search_tree(queries: Matrix, points: Matrix, k: int, skipped: Ints) -> tuple[Matrix, Ints, Bools]:
    """Search by a tree; tell of which queries the answer is that of comparing all, and not one of several as near."""
    tree = cKDTree(points)
    asked = min(k + 2, len(points))  # the query itself may be one of them, and one tells whether others are as near
    best, indices = np.empty((len(queries), k)), np.empty((len(queries), k), np.int64)
    is_certain = np.empty(len(queries), np.bool_)
    for start in range(0, len(queries), _QUERIES):
        progress.check()
        part = slice(start, start + _QUERIES)
        near = np.asarray(tree.query(queries[part], asked)[1], np.int64)
        query = np.repeat(np.arange(len(near)) + start, asked)
        squares = squared_distances(queries, points, query, near.reshape(-1)).reshape(near.shape)
        beyond = squares.max(axis=1) * (1 - 1e-9)  # no point that was not found is nearer
        squares[near == skipped[part, None]] = np.inf
        chosen = np.lexsort((near, squares), axis=1)[:, :k]
        best[part] = np.take_along_axis(squares, chosen, axis=1)
        indices[part] = np.take_along_axis(near, chosen, axis=1)
        is_certain[part] = (best[part, -1] < beyond) | (asked == len(points))
    return best, indices, is_certain


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
