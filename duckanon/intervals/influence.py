"""How much a statistic moves when one record moves, or when it is counted more.

References
----------
"Data Anonymization that Leads to the Most Accurate Estimates of Statistical Characteristics" (000), Section II;
"... Fuzzy-Motivated Approach" (001), Section II; `ERRATA.md`, "Boxes", points 1, 2 and 10.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from duckanon.common.arrays import Floats
from duckanon.intervals.scaled import checked_counts, checked_weights

#: The statistics, and how many columns each takes (None: two or more).
STATISTICS: dict[str, int | None] = {
    "mean": 1,
    "variance": 1,
    "standard_deviation": 1,
    "covariance": 2,
    "correlation": 2,
    "regression": None,
}
_SINGULAR = 1e-12  # a variance this small, relative to the values' squares, is none


@dataclass(frozen=True)
class Influence:
    """A statistic of points, with its derivatives.

    Attributes
    ----------
    estimate : float
        The statistic; NaN where it is undefined.
    slopes : float64, columns x points
        b(x): the derivative by a record's value is the record's share times b.  NaN where undefined.
    psi : float64, one per point
        The influence function: what a small extra weight of the point adds to the statistic, per weight.
    """

    estimate: float
    slopes: Floats
    psi: Floats

    def deviation(self, share: Floats) -> float:
        """Compute A = sqrt(mean(psi^2)): A / sqrt(N) is the standard error of N equally weighted records."""
        return float(np.sqrt(np.sum(share * self.psi**2)))


def influence(statistic: str, points: Floats, share: Floats) -> Influence:
    """Compute a statistic of weighted points with its derivatives.

    Parameters
    ----------
    statistic : str
        One of `STATISTICS`.  'regression' is the coefficient of the second column in the regression of the first column
        on all others.
    points : float64, columns x points
        The columns the statistic uses, in its order.
    share : float64, one per point
        Weights that sum to 1.

    Returns
    -------
    Influence
        The population form (divided by N) of variance and covariance.
    """
    mean = points @ share
    gap = points - mean[:, None]
    one = np.ones_like(gap)
    if statistic == "mean":
        return Influence(float(mean[0]), one, gap[0])
    spread = (gap * share) @ gap.T
    if statistic in ("variance", "standard_deviation"):
        variance = float(spread[0, 0])
        psi = gap[0] ** 2 - variance
        if statistic == "variance":
            return Influence(variance, 2 * gap, psi)
        deviation = float(np.sqrt(variance))
        if _none(variance, points[0], share):
            return Influence(deviation, np.full_like(gap, np.nan), np.full_like(psi, np.nan))
        return Influence(deviation, gap / deviation, psi / (2 * deviation))
    if statistic == "covariance":
        covariance = float(spread[0, 1])
        return Influence(covariance, gap[::-1], gap[0] * gap[1] - covariance)
    if statistic == "correlation":
        if _none(spread[0, 0], points[0], share) or _none(spread[1, 1], points[1], share):
            return _undefined(gap)
        both = np.sqrt(np.diag(spread))
        rho = float(np.clip(spread[0, 1] / (both[0] * both[1]), -1.0, 1.0))
        z = gap / both[:, None]
        slopes = (z[::-1] - rho * z) / both[:, None]
        return Influence(rho, slopes, z[0] * z[1] - rho * (z[0] ** 2 + z[1] ** 2) / 2)
    return _coefficient(points, gap, spread, share)


def sensitivities(
    statistic: str,
    points: ArrayLike,
    multiplicity: ArrayLike,
    halfwidths: ArrayLike,
    weights: ArrayLike | None = None,
) -> tuple[float, Floats, Floats, float]:
    """Compute what dismissal and weighting need: the estimate, d(x), psi and A.

    Parameters
    ----------
    statistic : str
        One of `STATISTICS`.
    points, halfwidths : array of float, boxes x columns
        Midpoints and half-widths of the boxes, in the columns the statistic uses, in its order.
    multiplicity : array of int
        Records per box.
    weights : array of float, optional
        Weight per record of the box.

    Returns
    -------
    estimate : float
        The statistic of the midpoints.
    d : float64, one per box
        sum |b_i| Delta_i, the box's contribution to the half-width; in the papers n c(x).
    psi : float64, one per box
        The influence function.
    A : float
        sqrt(mean(psi^2)).

    Raises
    ------
    ValueError
        If the statistic is unknown or undefined for these points, or the arrays do not fit together.
    """
    given = np.asarray(points, dtype=np.float64)
    half = np.asarray(halfwidths, dtype=np.float64)
    given, half = (m[:, None] if m.ndim == 1 else m for m in (given, half))
    check_statistic(statistic, given.shape[1])
    if given.shape != half.shape or given.ndim != 2:
        raise ValueError(f"There are {given.shape} midpoints but {half.shape} half-widths.")
    if not (np.isfinite(given).all() and np.isfinite(half).all() and (half >= 0).all()):
        raise ValueError("The midpoints must be finite, and the half-widths finite and at least 0.")
    counts = checked_counts(multiplicity, len(given)).astype(np.float64)
    amount = counts if weights is None else counts * checked_weights(weights, len(given))
    share = amount / amount.sum()
    found = influence(statistic, given.T, share)
    if not (np.isfinite(found.estimate) and np.isfinite(found.psi).all()):
        raise ValueError(f"The {statistic.replace('_', ' ')} of the midpoints is undefined: a column is constant.")
    d = np.sum(np.abs(found.slopes) * half.T, axis=0)
    return found.estimate, d, found.psi, found.deviation(share)


def check_statistic(statistic: str, columns: int) -> None:
    """Refuse an unknown statistic, or one with the wrong number of columns."""
    if statistic not in STATISTICS:
        raise ValueError(f"Unknown statistic '{statistic}': use one of {', '.join(STATISTICS)}.")
    wanted = STATISTICS[statistic]
    if (columns < 2) if wanted is None else (columns != wanted):
        raise ValueError(f"The {statistic.replace('_', ' ')} needs {wanted or 'two or more'} columns, not {columns}.")


def _none(variance: float, values: Floats, share: Floats) -> bool:
    """Whether a variance is nothing but rounding."""
    return bool(variance <= _SINGULAR * 1e-12 * float(np.sum(share * values**2)) or variance == 0)


def _undefined(gap: Floats) -> Influence:
    return Influence(np.nan, np.full_like(gap, np.nan), np.full(gap.shape[1], np.nan))


def _coefficient(points: Floats, gap: Floats, spread: Floats, share: Floats) -> Influence:
    """Coefficient of the second column, the first being the target."""
    deviation = np.sqrt(np.diag(spread)[1:])
    if any(_none(spread[i, i], points[i], share) for i in range(1, len(points))):
        return _undefined(gap)
    correlation = spread[1:, 1:] / np.outer(deviation, deviation)
    if np.linalg.eigvalsh(correlation)[0] <= _SINGULAR:
        return _undefined(gap)
    inverse = np.linalg.inv(correlation) / np.outer(deviation, deviation)
    beta = inverse @ spread[1:, 0]
    residual = gap[0] - beta @ gap[1:]
    lever = inverse[0] @ gap[1:]
    slopes = np.vstack([lever, np.outer(inverse[0], residual) - np.outer(beta, lever)])
    return Influence(float(beta[0]), slopes, lever * residual)
