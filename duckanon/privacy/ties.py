"""All released rows that are equally near to a record: an attacker who has several has to guess among them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from duckanon.common.arrays import Floats, Ints
from duckanon.privacy import neighbours

SAME = 1 + 1e-9
"""Distances that differ by no more than this factor do so by rounding."""

_PAIRS = 4_000_000  # neighbours looked at in one go


def distinct_rows(matrix: Floats) -> tuple[Ints, Ints, Ints]:
    """Find the different rows of a matrix.

    Returns
    -------
    places
        Where each different row stands first.
    codes
        For every row, which of the different ones it is.
    counts
        How often each occurs.

    Notes
    -----
    Rows are hashed as bytes, which takes time linear in their number; sorting them would not.
    """
    rows, width = matrix.shape
    if width == 0:
        return np.zeros(1, np.int64), np.zeros(rows, np.int64), np.array([rows], np.int64)
    solid = np.ascontiguousarray(matrix + 0.0, np.float64)  # adding 0 makes -0 and 0 the same bytes
    kind = pa.binary(8 * width)
    texts = pa.Array.from_buffers(kind, rows, [None, pa.py_buffer(solid)])
    codes = texts.dictionary_encode().indices.to_numpy().astype(np.int64)
    counts = np.bincount(codes).astype(np.int64)
    places = np.empty(len(counts), np.int64)
    places[codes[::-1]] = np.arange(rows - 1, -1, -1)  # the first of equal rows is written last
    return places, codes, counts


def tied_nearest(queries: Floats, points: Floats) -> tuple[Floats, Ints, Ints]:
    """Find, for every query, all points at the smallest distance.

    Parameters
    ----------
    queries, points
        Matrices of the same width; the points are all different, or as many as are equal come back.

    Returns
    -------
    distances
        One per query.
    owners, members
        Pairs of a query and a point that is nearest to it, by query.

    Notes
    -----
    Where all neighbours looked at are equally near, four times as many are, until one is farther: exact, and cheap
    where ties are few. With no columns to compare, everything is nearest.
    """
    count = len(points)
    if queries.shape[1] == 0:
        every = np.repeat(np.arange(len(queries)), count), np.tile(np.arange(count), len(queries))
        return np.zeros(len(queries)), *every
    distances = np.empty(len(queries))
    owners, members = [], []
    pending, wanted = np.arange(len(queries)), min(2, count)
    while len(pending):
        unresolved = []
        for start in range(0, len(pending), max(1, _PAIRS // wanted)):
            some = pending[start : start + max(1, _PAIRS // wanted)]
            found, places = neighbours.nearest(queries[some], points, wanted)
            tied = found <= found[:, :1] * SAME
            whole = ~tied[:, -1] | (wanted == count)
            distances[some] = found[:, 0]
            where = np.nonzero(tied & whole[:, None])
            owners.append(some[where[0]])
            members.append(places[where])
            unresolved.append(some[~whole])
        pending, wanted = np.concatenate(unresolved), min(4 * wanted, count)
    owner, member = np.concatenate([*owners, np.empty(0, np.int64)]), np.concatenate([*members, np.empty(0, np.int64)])
    order = np.lexsort((member, owner))
    return distances, owner[order], member[order].astype(np.int64)
