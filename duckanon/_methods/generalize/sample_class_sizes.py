"""How many people of a sample must share a class, so that few in the population are improbable."""

from __future__ import annotations

import numpy as np
from scipy.special import betainc


def sample_class_size(k: int, share: float, population: float, people: int) -> int:
    """Return how many people of a sample a class must have, as ``anon.sample_class_size`` does.

    A member of a class with fewer than k people in the population has at most k - 2 others beside them, each of whom is
    in the sample with the same probability, whatever the classes are. ``share`` is the probability with which the class
    of such a member may be so large in the sample.

    Examples:
        >>> [sample_class_size(10, beta, 1e6, 100_000) for beta in (0.1, 0.01, 0.001)]
        [4, 5, 6]
    """
    if population < people:
        raise ValueError(f"population must be at least the people of the table, {people}; got {population:g}.")
    if share == 0:  # nobody may be in so small a class
        return k
    least = np.arange(1, k - 1)
    tails = np.append(betainc(least, k - 1 - least, people / population), 0.0)  # P[X >= f - 1] for f = 2, ..., k
    return 2 + int(np.argmax(tails <= share * (1 + 1e-12)))
