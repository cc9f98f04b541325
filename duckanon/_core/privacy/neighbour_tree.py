"""Nearest neighbours in few columns, found by a tree."""

from __future__ import annotations

import numpy as np
from scipy.spatial import cKDTree

from duckanon._core.common import progress
from duckanon._core.common.arrays import Bools, Ints, Matrix
from duckanon._core.privacy.neighbours import square_distances

_QUERIES = 2048  # at a time


def find_two_nearest(queries: Matrix, points: Matrix, farthest: float) -> Ints:
    """Return the two nearest points of each query, their number in place of one that is farther than the farthest."""
    return np.asarray(cKDTree(points).query(queries, 2, distance_upper_bound=farthest)[1], np.int64)


def search_tree(queries: Matrix, points: Matrix, k: int, skipped: Ints) -> tuple[Matrix, Ints, Bools]:
    """Return the k smallest sums of squared differences of every query, and their points.

    Tell of which queries the answer is that of comparing all, and not one of several as near.
    """
    tree = cKDTree(points)
    asked = min(k + 2, len(points))  # the query itself may be one of them, and one tells whether others are as near
    best, indices = np.empty((len(queries), k)), np.empty((len(queries), k), np.int64)
    is_certain = np.empty(len(queries), np.bool_)
    for start in range(0, len(queries), _QUERIES):
        progress.check()
        part = slice(start, start + _QUERIES)
        near = np.asarray(tree.query(queries[part], asked)[1], np.int64)
        query = np.repeat(np.arange(len(near)) + start, asked)
        squares = square_distances(queries, points, query, near.reshape(-1)).reshape(near.shape)
        beyond = squares.max(axis=1) * (1 - 1e-9)  # no point that was not found is nearer
        squares[near == skipped[part, None]] = np.inf
        chosen = np.lexsort((near, squares), axis=1)[:, :k]
        best[part] = np.take_along_axis(squares, chosen, axis=1)
        indices[part] = np.take_along_axis(near, chosen, axis=1)
        is_certain[part] = (best[part, -1] < beyond) | (asked == len(points))
    return best, indices, is_certain
