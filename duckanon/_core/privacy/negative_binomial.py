"""The negative binomial distribution of rare successes."""

from __future__ import annotations

from scipy.special import betainc


def find_quantile(confidence: float, successes: float, chance: float) -> int:
    """Return the quantile of the number of failures: `scipy.stats.nbinom.ppf` in a seventh of its time."""
    below, most = -1, 1
    while betainc(successes, most + 1, chance) < confidence:
        below, most = most, 2 * most
    while most - below > 1:
        middle = (below + most) // 2
        if betainc(successes, middle + 1, chance) < confidence:
            below = middle
        else:
            most = middle
    return most
