"""Noise by cell keys: the same people get the same noise in every table, whatever the cell is called.

Each person has a secret number, the key of a cell is the sum of the numbers of its people, and looks up the noise in a
table of perturbations, of maximum entropy among those without bias, with a given variance and without small counts. The
noise hides a table once: whoever may ask for many splits of the same people averages it away, as a test shows.
"""

from __future__ import annotations

import functools

import numpy as np
from scipy.optimize import minimize

from duckanon._core.common.arrays import Floats, Ints
from duckanon._methods.tables.source import KEY_BITS

VARIANCE = 3.0
"""Of the noise of large counts; that of small ones is what the missing counts demand, or more."""


def perturb_counts(people: Ints, keys: Ints, k: int) -> Ints:
    """Return counts with noise, none of them from 1 to k - 1; `keys` are the sums of the numbers of their people."""
    position = (keys % (1 << KEY_BITS)) / float(1 << KEY_BITS)
    table = tabulate_noise(k)
    counts = people.copy()
    for count, (noise, probability) in enumerate(table, 1):
        of_count = people == count if count < len(table) else people >= count
        counts[of_count] += noise[np.searchsorted(np.cumsum(probability)[:-1], position[of_count], side="right")]
    return counts


def find_widest_noise(k: int) -> int:
    """Return the largest noise: small counts have to become 0 or k, and others may move as far."""
    return k + 2


@functools.cache
def tabulate_noise(k: int) -> list[tuple[Ints, Floats]]:
    """Return the noise of counts from 1 on, with its probabilities; the last one is that of all larger counts."""
    widest = find_widest_noise(k)
    return [_shape_noise(count, k, widest) for count in range(1, widest + k + 1)]


def _shape_noise(count: int, k: int, widest: int) -> tuple[Ints, Floats]:
    """Return the noise of one count: probabilities are exponential in a quadratic polynomial of it."""
    noise = np.arange(-min(widest, count), widest + 1)
    noise = noise[(count + noise == 0) | (count + noise >= k)].astype(np.float64)
    below, above = -noise[noise <= 0].max(), noise[noise >= 0].min()
    variance = min(max(VARIANCE, 1.05 * below * above), 0.95 * -noise.min() * noise.max())

    def dual(multipliers: Floats) -> tuple[float, Floats]:
        exponent = multipliers[0] * noise + multipliers[1] * noise**2
        largest = exponent.max()
        weight = np.exp(exponent - largest)
        share = weight / weight.sum()
        gap = np.array([share @ noise, share @ noise**2 - variance])
        return float(largest + np.log(weight.sum()) - multipliers[1] * variance), gap

    start, limits = [0.0, -0.5 / variance], {"gtol": 1e-10, "maxiter": 1000}
    multipliers = minimize(dual, start, jac=True, method="BFGS", options=limits).x
    exponent = multipliers[0] * noise + multipliers[1] * noise**2
    weight = np.exp(exponent - exponent.max())
    return noise.astype(np.int64), weight / weight.sum()
