"""The test of Kolmogorov and Smirnov."""

from __future__ import annotations

import numpy as np
from scipy import stats

from duckanon._core.common.arrays import Array
from duckanon._measure.utility.statistics import ks_distance


def ks_test(first: Array, second: Array) -> tuple[float, float]:
    """Return the Kolmogorov-Smirnov distance of two sorted samples and its two-sided p-value.

    As `scipy.stats.ks_2samp` with ``method="asymp"``: the distribution of the one-sample distance at the effective
    number of rows.
    """
    distance = ks_distance(first, second)
    effective = len(first) * (len(second) / (len(first) + len(second)))
    return distance, float(np.clip(stats.kstwo.sf(distance, max(np.round(effective), 1.0)), 0.0, 1.0))
