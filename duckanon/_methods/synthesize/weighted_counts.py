"""Counts of rows and people by group, and by the nodes of a tree."""

from __future__ import annotations

import numpy as np

from duckanon._core.common.arrays import Floats, Ints
from duckanon._core.common.people import NOBODY


def person_weights(people: Ints | None) -> Floats | None:
    """Weigh rows such that all rows of a person weigh one together; None where every row is another person.

    The weight of some rows is then at most the number of their people.
    """
    if people is None:
        return None
    _, place, rows = np.unique(people, return_inverse=True, return_counts=True)
    return np.where(people == NOBODY, 0.0, 1.0 / rows[place])


def summed_up(of_leaves: Floats, parents: Ints) -> Floats:
    """Add what leaves have to all nodes above them; nodes come after their parents."""
    sums = of_leaves.copy()
    for node in range(len(parents) - 1, 0, -1):
        sums[parents[node]] += sums[node]
    return sums


def counted(groups: Ints, codes: Ints, shape: tuple[int, int], weights: Floats | None) -> Floats:
    """Count rows, or add up their weights, by group and code."""
    cells = np.bincount(groups * shape[1] + codes, weights, shape[0] * shape[1])
    return np.asarray(cells.reshape(shape), np.float64)
