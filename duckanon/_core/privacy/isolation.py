"""The most isolated people of a table: who they are, and on which scales they are looked for."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtri

from duckanon._core.common.arrays import Bools, Floats, Ints, Matrix
from duckanon._core.privacy.neighbours import nearest

SHARE = 0.10
"""The share of the people who are called isolated: the farthest from everybody else."""
FEWEST = 20
"""Isolated people at least, where a table has as many who have no equal."""


class NormalScores:
    """Numbers as normal quantiles of their ranks, so that no far tail hides who is isolated in the middle.

    Ranks are those among the people that it was fitted to. A column of at most two values, such as the indicator of a
    category, stays as it is.
    """

    def __init__(self, people: Matrix) -> None:
        self._sorted: list[Floats | None] = []
        for column in people.T:
            ordered = np.sort(column)
            has_few = np.count_nonzero(ordered[1:] > ordered[:-1]) < 2
            self._sorted.append(None if has_few else ordered)

    def __call__(self, rows: Matrix) -> Matrix:
        """Return the scores of rows; what lies beyond all people scores as their farthest."""
        result = np.array(rows, np.float64)
        for place, ordered in enumerate(self._sorted):
            if ordered is not None:
                values = rows[:, place]
                middle = np.searchsorted(ordered, values, "left") + np.searchsorted(ordered, values, "right")
                result[:, place] = ndtri(np.clip(middle / 2, 0.5, len(ordered) - 0.5) / len(ordered))
        return result


def isolated_places(distances: Floats, share: float = SHARE) -> Ints:
    """Return the places of the most isolated people by their distances from everybody else, the farthest first.

    Nobody who has an equal is isolated: a distance of 0 is not among them.
    """
    count = min(max(FEWEST, round(share * len(distances))), len(distances))
    farthest = np.argsort(-distances, kind="stable")[:count]
    return np.asarray(farthest[distances[farthest] > 0], np.int64)


def distances_apart(people: Matrix) -> Floats:
    """Return how far everybody is from the nearest of the others."""
    return np.asarray(nearest(people, people, 1, skip_self=True)[0][:, 0], np.float64)


def win_rates(distances: Matrix, is_member: Bools) -> Floats:
    """Return how often releases with a person come nearer to that person than releases without, a tie being half.

    Given are, for every release and person, the distance of the nearest row, and whether the person is a member.
    """
    wins, pairs = np.zeros(distances.shape[1]), np.zeros(distances.shape[1])
    for with_person, member in zip(distances, is_member, strict=True):
        is_pair = member & ~is_member
        wins += (is_pair * ((with_person < distances) + 0.5 * (with_person == distances))).sum(axis=0)
        pairs += is_pair.sum(axis=0)
    return np.asarray(wins / pairs, np.float64)
