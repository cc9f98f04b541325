"""Whether isolated people are recognised: released with them and without them, again and again."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.spatial import cKDTree

from duckanon.common.arrays import Floats, Ints


def paired_audit(
    points: Floats,
    release: Callable[[Ints, np.random.Generator], Floats],
    *,
    share: float = 0.10,
    splits: int = 5,
    seed: int | None = None,
) -> float:
    """Return how often a release of a half with an isolated person is nearer to it than one of the other half.

    Parameters
    ----------
    points
        The encoded rows of all people.
    release
        Releases the rows of a half and returns encoded rows.
    share
        Of the people, the most isolated ones.
    splits
        Into two halves, both of which are released.
    seed
        Makes it repeatable.
    """
    random = np.random.default_rng(seed)
    rows = len(points)
    isolation = cKDTree(points).query(points, 2)[0][:, 1]
    isolated = np.argsort(-isolation)[: max(20, round(share * rows))]
    distances, members = [], []
    for _ in range(splits):
        order = random.permutation(rows)
        for half in (order[: rows // 2], order[rows // 2 :]):
            is_member = np.zeros(rows, np.bool_)
            is_member[half] = True
            members.append(is_member[isolated])
            distances.append(cKDTree(release(np.sort(half), random)).query(points[isolated])[0])
    wins = []
    for person in range(len(isolated)):
        inside = np.array([one[person] for one in members])
        near = np.array([one[person] for one in distances])
        first, second = near[inside][:, None], near[~inside][None]
        wins.append((first < second).mean() + 0.5 * (first == second).mean())
    return float(np.mean(wins))
