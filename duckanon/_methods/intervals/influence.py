"""The six statistics: their values, and how much each moves when a record moves or is counted more.

Each is a function of the means m and the covariances S of its columns.  With f its derivative by m and F its symmetric
derivative by S, a record x with a share w of the weight moves it

    by w (f + 2 F (x - m)) dx                                      when x moves by dx, and
    by w psi(x), psi(x) = f (x - m) + (x - m) F (x - m) - tr(F S)  when its share grows by w.

So f and F say everything, and stand here once for each statistic.

References:
    Accurate Boxes, Section II; Fuzzy Boxes, Section II; REFERENCES.md, Boxes, points 1, 2 and 10.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from duckanon._core.common.arguments import refuse_unless
from duckanon._core.common.arrays import Floats, Ints
from duckanon._core.common.rules import OneOf

# The number of columns that each statistic takes; None: two or more, the target first.
STATISTICS: dict[str, int | None] = {
    "mean": 1,
    "variance": 1,
    "standard_deviation": 1,
    "covariance": 2,
    "correlation": 2,
    "regression": None,
}
DEPENDENT = 1e-12  # eigenvalue of the predictors' correlations up to which they are dependent: four digits are left
_CONSTANT = 1e-24  # a variance this small, relative to the mean square, is the rounding of a column that is constant


class Gradient(NamedTuple):
    """The value of a statistic, with its derivatives by means and covariances."""

    value: float  # the statistic; NaN where it is undefined
    constant: Floats  # one per column: the derivative by the means, f
    # columns x columns: twice the derivative by the covariances, 2 F; NaN where it is undefined or has no derivative
    slopes: Floats

    def by_value(self, column: int, gap: Callable[[int], Floats]) -> Floats | float:
        """Return the derivative by the value that records have in one column, per share of the weight.

        `gap` returns how far the records are from the mean of a column; it is asked only where that matters. A single
        number where it is the same for all records.
        """
        derivative: Floats | float = float(self.constant[column])
        for other, slope in enumerate(self.slopes[column]):
            if slope != 0:
                derivative = derivative + slope * gap(other)
        return derivative


class Influence(NamedTuple):
    """A statistic of points, with its derivatives."""

    estimate: float  # the statistic; NaN where it is undefined
    # columns x points: b(x): the derivative by a record's value is the record's share times b.  NaN where undefined.
    slopes: Floats
    # one per point: the influence function: what a small extra weight of the point adds to the statistic, per weight
    psi: Floats

    def linear_halfwidth(self, share: Floats, half: Floats) -> float:
        """Return by how much the statistic can move, to first order, when every point moves within its half-widths."""
        return float(np.sum(share * np.sum(np.abs(self.slopes) * half, axis=0)))

    def standard_error(self, share: Floats, records: Ints) -> float:
        """Return sqrt(sum w^2 psi^2) over the records, of which each point stands for several that share its weight."""
        return float(np.sqrt(np.sum(share**2 / records * self.psi**2)))


def check_statistic(statistic: str, columns: int) -> None:
    """Refuse an unknown statistic, or one with the wrong number of columns."""
    refuse_unless(OneOf(*STATISTICS), "statistic", statistic)
    wanted = STATISTICS[statistic]
    if (columns < 2) if wanted is None else (columns != wanted):
        count = "at least 2 columns" if wanted is None else f"{wanted} column{'s' * (wanted > 1)}"
        raise ValueError(f"a {statistic.replace('_', ' ')} must have {count}; got {columns}.")


def statistic_value(
    statistic: str, mean: Floats, covariance: Floats, *, coefficient: int = 0, dependent: float = DEPENDENT
) -> Floats:
    """Compute a statistic from means and covariances, whose leading axes are kept; NaN where it is undefined.

    Variance and covariance are in the population form (divided by N); a variance of 0 means that the column is
    constant. Of a regression it is the given predictor's coefficient, from 0; predictors are called dependent below the
    given eigenvalue of their correlations.

    Examples:
        >>> statistic_value("correlation", np.array([0.0, 5.0]), np.array([[4.0, 3.0], [3.0, 9.0]])).item()
        0.5
    """
    if statistic == "mean":
        return mean[..., 0]
    if statistic == "covariance":
        return covariance[..., 0, 1]
    if statistic == "regression":
        return _normal_equations(covariance, dependent)[1][..., coefficient]
    variances = np.maximum(np.einsum("...ii->...i", covariance), 0.0)
    if statistic == "variance":
        return np.asarray(variances[..., 0])
    deviations = np.sqrt(variances)
    if statistic == "standard_deviation":
        return np.asarray(deviations[..., 0])
    product = deviations[..., 0] * deviations[..., 1]
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(product > 0, np.clip(covariance[..., 0, 1] / product, -1.0, 1.0), np.nan)


def gradient(statistic: str, mean: Floats, covariance: Floats, coefficient: int = 0) -> Gradient:
    """Compute a statistic from means and covariances like `statistic_value`, with its derivatives by them.

    Examples:
        >>> gradient("standard_deviation", np.array([7.0]), np.array([[4.0]])).slopes
        array([[0.5]])
    """
    constant, slopes = np.zeros(len(mean)), np.zeros_like(covariance)
    if statistic == "regression":
        inverse, beta = _normal_equations(covariance, DEPENDENT)
        lever = inverse[coefficient]
        slopes[0, 1:] = slopes[1:, 0] = lever
        slopes[1:, 1:] = -np.outer(lever, beta) - np.outer(beta, lever)
        slopes[0, 0] *= lever[0]  # NaN where the others are
        return Gradient(float(beta[coefficient]), constant, slopes)
    value = float(statistic_value(statistic, mean, covariance))
    if statistic == "mean":
        constant[0] = 1.0
    elif statistic == "variance":
        slopes[0, 0] = 2.0
    elif statistic == "standard_deviation":
        slopes[0, 0] = 1 / value if value else np.nan
    elif statistic == "covariance":
        slopes[0, 1] = slopes[1, 0] = 1.0
    elif np.isnan(value):
        slopes[:] = np.nan
    else:
        variances = np.diag(covariance)
        product = float(np.prod(np.sqrt(variances)))
        slopes[0, 1] = slopes[1, 0] = 1.0 / product
        np.fill_diagonal(slopes, -covariance[0, 1] / variances / product)
    return Gradient(value, constant, slopes)


def influence(statistic: str, points: Floats, share: Floats, coefficient: int = 0) -> Influence:
    """Compute a statistic of points (columns x points) with weights that sum to 1, and how much each point moves it.

    Examples:
        >>> influence("variance", np.array([[1.0, 3.0]]), np.array([0.5, 0.5])).slopes
        array([[-2.,  2.]])
    """
    mean = points @ share
    gaps = points - mean[:, None]
    covariance = (gaps * share) @ gaps.T
    variances = np.diag(covariance)
    np.fill_diagonal(covariance, np.where(variances <= _CONSTANT * (variances + mean**2), 0.0, variances))
    derivatives = gradient(statistic, mean, covariance, coefficient)
    slopes = np.empty_like(gaps)
    for column in range(len(gaps)):
        slopes[column] = derivatives.by_value(column, gaps.__getitem__)
    doubled = np.sum(gaps * (slopes + derivatives.constant[:, None]), axis=0)
    return Influence(derivatives.value, slopes, 0.5 * (doubled - np.sum(derivatives.slopes * covariance)))


def _normal_equations(covariance: Floats, dependent: float) -> tuple[Floats, Floats]:
    """Return the inverse of the predictors' covariances and the coefficients; NaN where predictors are dependent.

    Whether they are is seen from their correlations, which have no units.
    """
    deviations = np.sqrt(np.maximum(np.einsum("...ii->...i", covariance)[..., 1:], 0.0))
    products = deviations[..., :, None] * deviations[..., None, :]
    regular = np.asarray((products > 0).all(axis=(-1, -2)))
    correlations = covariance[..., 1:, 1:][regular] / products[regular]
    independent = np.linalg.eigvalsh(correlations)[:, 0] > dependent
    regular[regular] = independent
    inverse = np.full(products.shape, np.nan)
    inverse[regular] = np.linalg.inv(correlations[independent]) / products[regular]
    return inverse, np.matmul(inverse, covariance[..., 1:, :1])[..., 0]
