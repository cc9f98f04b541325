"""A statistic of every beginning of a list of points, by running sums."""

from __future__ import annotations

import numpy as np

from duckanon.common.arrays import Floats


def prefix_statistics(statistic: str, points: Floats, counts: Floats) -> Floats:
    """Compute a statistic of the first 1, 2, ... points.

    Parameters
    ----------
    statistic : str
        One of `sensitivities.STATISTICS`.
    points : float64, columns x points
        The columns of the statistic, in its order.
    counts : float64, one per point
        How often each point counts.

    Returns
    -------
    float64, one per point
        NaN where the statistic is undefined.
    """
    gap = points - (points @ counts / counts.sum())[:, None]  # about the common mean, so that little cancels
    size = np.cumsum(counts)
    mean = np.cumsum(counts * gap, axis=1) / size

    def spread(i: int, j: int) -> Floats:
        return np.asarray(np.cumsum(counts * gap[i] * gap[j]) / size - mean[i] * mean[j])

    if statistic == "mean":
        return np.asarray(mean[0] + points[0] @ counts / counts.sum())
    with np.errstate(divide="ignore", invalid="ignore"):
        if statistic in ("variance", "standard_deviation"):
            variance = np.maximum(spread(0, 0), 0.0)
            return variance if statistic == "variance" else np.sqrt(variance)
        if statistic == "covariance":
            return spread(0, 1)
        if statistic == "correlation":
            return np.asarray(spread(0, 1) / np.sqrt(spread(0, 0) * spread(1, 1)))
        return _prefix_coefficient(np.stack([[spread(i, j) for j in range(len(gap))] for i in range(len(gap))]))


def _prefix_coefficient(spread: Floats) -> Floats:
    """First coefficient of every prefix, from the moments of every prefix."""
    matrix, target = np.moveaxis(spread[1:, 1:], 2, 0), spread[1:, 0].T
    result = np.full(len(matrix), np.nan)
    scale = np.sqrt(np.maximum(np.einsum("pii->pi", matrix), 0.0))
    fine = (scale > 1e-9 * scale[-1]).all(axis=1)
    correlation = matrix[fine] / (scale[fine][:, :, None] * scale[fine][:, None, :])
    regular = np.linalg.eigvalsh(correlation)[:, 0] > 1e-9
    chosen = np.flatnonzero(fine)[regular]
    solved = np.linalg.solve(matrix[chosen], target[chosen][:, :, None])
    result[chosen] = solved[:, 0, 0]
    return result
