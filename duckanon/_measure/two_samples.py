"""Distances of two samples of one variable: Kolmogorov-Smirnov distances with their tests, total variation."""

from __future__ import annotations

import numpy as np
from scipy import stats

from duckanon._core.common.arrays import Array, Ints


def ks_distance(first: Array, second: Array) -> float:
    """Return the largest difference between the distribution functions of two sorted samples.

    F1 - F2 is largest at a value of the first sample, F2 - F1 just below one of them (or nowhere above 0).
    """
    at = np.searchsorted(second, first, side="right") / len(second)
    below = np.searchsorted(second, first, side="left") / len(second)
    steps = np.arange(len(first) + 1) / len(first)
    return float(max((steps[1:] - at).max(), (below - steps[:-1]).max(), 0.0))


def ks_test(first: Array, second: Array) -> tuple[float, float]:
    """Return the Kolmogorov-Smirnov distance of two sorted samples and its two-sided p-value.

    As `scipy.stats.ks_2samp` with ``method="asymp"``: the distribution of the one-sample distance at the effective
    number of rows.
    """
    distance = ks_distance(first, second)
    effective = len(first) * (len(second) / (len(first) + len(second)))
    return distance, float(np.clip(stats.kstwo.sf(distance, max(np.round(effective), 1.0)), 0.0, 1.0))


def total_variation(first: Ints, second: Ints, categories: int) -> float:
    """Return half the sum of the differences between the shares of the categories 0 .. categories - 1."""
    shares = [np.bincount(codes, minlength=categories) / len(codes) for codes in (first, second)]
    return float(np.abs(shares[0] - shares[1]).sum() / 2)
