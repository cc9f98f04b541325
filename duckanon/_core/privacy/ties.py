"""All released rows that are equally near to a record: an attacker who has several has to guess among them."""

from __future__ import annotations

import numpy as np

from duckanon._core.common.arrays import Floats, Ints
from duckanon._core.privacy import neighbours

SAME = 1 + 1e-9
"""Distances that differ by no more than this factor do so by rounding."""
_PAIRS = 4_000_000  # neighbours looked at in one go


def tied_nearest(queries: Floats, points: Floats) -> tuple[Floats, Ints, Ints]:
    """Find, for every query, the smallest distance, and all pairs of a query and a point at that distance, by query.

    Where all neighbours looked at are equally near, four times as many are, until one is farther: exact, and cheap
    where ties are few. Where points are equal, all of them come back. With no columns to compare, everything is
    nearest.
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
            block = pending[start : start + max(1, _PAIRS // wanted)]
            near, indices = neighbours.nearest(queries[block], points, wanted)
            tied = near <= near[:, :1] * SAME
            is_whole = ~tied[:, -1] | (wanted == count)
            distances[block] = near[:, 0]
            pairs = np.nonzero(tied & is_whole[:, None])
            owners.append(block[pairs[0]])
            members.append(indices[pairs])
            unresolved.append(block[~is_whole])
        pending, wanted = np.concatenate(unresolved), min(4 * wanted, count)
    owner, member = np.concatenate([*owners, np.empty(0, np.int64)]), np.concatenate([*members, np.empty(0, np.int64)])
    order = np.lexsort((member, owner))
    return distances, owner[order], member[order].astype(np.int64)
