"""The six statistics, how much each moves with a record, and exact ranges of mean and variance over boxes.

Each statistic is a function of the means m and the covariances S of its columns.  With f its derivative by m and F its
symmetric derivative by S, a record x with a share w of the weight moves it

    by w (f + 2 F (x - m)) dx                                      when x moves by dx, and
    by w psi(x), psi(x) = f (x - m) + (x - m) F (x - m) - tr(F S)  when its share grows by w.

So f and F say everything, and stand here once for each statistic. The range of a mean is that of the boxes' ends; those
of a variance are found by Newton steps on a piecewise linear function, a few passes over the boxes each.

References:
    Accurate Boxes, Section II; Fuzzy Boxes, Section II; REFERENCES.md, Boxes, points 1, 2 and 10, "Exact ranges over
    boxes".
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from duckanon._core.common.arguments import refuse_unless
from duckanon._core.common.arrays import Floats, Ints
from duckanon._core.common.rules import OneOf
from duckanon._methods.intervals.scaled import EPS, TINY, ScaledBoxes

_STEPS = 200  # Newton on a piecewise linear function ends after a few; bisection after about sixty
_TIE = 1e-13  # midpoints this near, in scaled units, are the same
_SUBSETS = 1 << 16  # ways to split tied records between the ends, up to which all are tried


@dataclass(frozen=True)
class Range:
    """A guaranteed range, in scaled units."""

    # lower, upper: no table within the boxes has a value outside
    lower: float
    upper: float
    # lower_looseness, upper_looseness: some table within the boxes comes this near to the end
    lower_looseness: float
    upper_looseness: float


def find_mean_range(boxes: ScaledBoxes, column: int) -> Range:
    """Find the range of a column's mean, exact up to rounding."""
    lower, upper = (_average(boxes.amount * ends[column], boxes.weight) for ends in (boxes.lo, boxes.hi))
    return Range(lower[0] - lower[1], upper[0] + upper[1], 2 * lower[1], 2 * upper[1])


def find_variance_range(boxes: ScaledBoxes, column: int) -> Range:
    """Find the range of a column's variance (population form).

    The lower end is exact up to rounding: every record moves to the point of its box that is nearest to the common
    mean.  The upper end is the minimum over mu of the mean of the squared distances to the farther end of the box; it
    is exact unless mu falls on the midpoint of boxes whose records would have to be split between both ends.  Then the
    split that balances best is subtracted where that is proven to be right, and stated as looseness where not.
    """
    lo, hi, share = boxes.lo[column], boxes.hi[column], boxes.share
    if lo.min() == hi.max():
        return Range(0.0, 0.0, 0.0, 0.0)
    lower, reached = _find_lowest(boxes, lo, hi, share)
    most, loose = _find_highest(boxes, lo, hi, share)
    rounding = boxes.slack * 4 * most + TINY
    lower = max(lower - TINY, 0.0)
    return Range(lower, most + rounding, reached * (1 + boxes.slack) - lower, loose + 2 * rounding)


def _average(products: Floats, total: float) -> tuple[float, float]:
    """Return a mean of weighted values and its rounding error: the sum is exact, what goes into it is not."""
    size = float(np.sum(np.abs(products))) / total
    return math.fsum(products) / total, 4 * EPS * size + (TINY if size > 0 else 0.0)


def _find_lowest(boxes: ScaledBoxes, lo: Floats, hi: Floats, share: Floats) -> tuple[float, float]:
    """Bound the least variance; return the bound, and the variance that some table reaches.

    Semi-smooth Newton on the increasing, piecewise linear function sum share (mu - clip(mu, lo, hi)).
    """
    least, most = low, high = float(lo.min()), float(hi.max())
    mu = 0.5 * float(np.sum(share * (lo + hi)))
    best = 0.0
    for _ in range(_STEPS):
        gap = mu - np.clip(mu, lo, hi)
        slope, value = float(np.sum(share * gap)), float(np.sum(share * gap * gap))
        if value == 0:
            return 0.0, 0.0
        # The function is convex: the tangent at any mu bounds it, and at the last mu the tangent is flat.
        tilt = 2 * (abs(slope) + boxes.slack * float(np.sum(share * np.abs(gap))))
        best = max(best, value * (1 - boxes.slack) - tilt * max(most - mu, mu - least))
        low, high = (low, min(high, mu)) if slope > 0 else (max(low, mu), high)
        step = mu - slope / float(np.sum(share[gap != 0]))
        following = step if low < step < high else 0.5 * (low + high)
        if following == mu or high - low <= 2 * EPS or slope == 0 or abs(step - mu) <= EPS:
            break
        mu = following
    return best, value


def _find_highest(boxes: ScaledBoxes, lo: Floats, hi: Floats, share: Floats) -> tuple[float, float]:
    """Bound the largest variance; return the bound, and how much it may be too large."""
    middle = 0.5 * (lo + hi)
    low, high = float(middle.min()), float(middle.max())
    mu = float(np.sum(share * middle))
    upper, width = float(np.sum(share * hi)), share * (hi - lo)
    for _ in range(_STEPS):
        # Records whose midpoint is below mu are best at their lower end, the others at their upper end.
        slope = mu - upper + float(np.sum(width * (middle < mu).astype(np.float64)))
        low, high = (low, min(high, mu)) if slope > 0 else (max(low, mu), high)
        following = mu - slope
        if not low < following < high:
            following = 0.5 * (low + high)
        if following == mu or high - low <= 2 * EPS:
            break
        mu = following
    # The minimum is where the slope changes its sign: inside a linear piece, or at a midpoint.
    near = middle[np.abs(middle - mu) <= _TIE]
    candidates = [mu, *np.unique(near)[:4].tolist()]
    values = [float(np.sum(share * np.maximum(hi - m, m - lo) ** 2)) for m in candidates]
    best = int(np.argmin(values))
    return _settle_ties(boxes, lo, hi, middle, candidates[best], values[best])


def _settle_ties(
    boxes: ScaledBoxes, lo: Floats, hi: Floats, middle: Floats, mu: float, bound: float
) -> tuple[float, float]:
    """Split tied records between the ends as evenly as can be: the bound falls by the square of what is left."""
    share = boxes.share
    tied = (np.abs(middle - mu) <= _TIE) & (hi > lo) & (share > 0)
    fixed = float(np.sum((share * (np.where(middle < mu, lo, hi) - mu))[~tied]))
    reach = (share * 0.5 * (hi - lo))[tied]
    counts = boxes.records[tied]
    rest, exact = _balance(fixed, reach, counts)
    removed = rest * rest
    # Moving another record to its other end costs 4 |mid - mu| D of its share; where that exceeds what it could gain,
    # no other arrangement is better.
    is_other = ~tied & (hi > lo) & (share > 0)
    cost = (2 * np.abs(middle - mu) * (hi - lo) * share / boxes.records)[is_other]
    if exact and (cost.size == 0 or float(cost.min()) > 2 * removed):
        return bound - removed, 8 * _TIE * float(reach.sum())
    return bound, removed + 8 * _TIE * float(reach.sum())


def _balance(fixed: float, reach: Floats, counts: Ints) -> tuple[float, bool]:
    """Find the smallest absolute value of `fixed` plus signed steps, and whether it is known to be the smallest."""
    if reach.size == 0:
        return fixed, True
    step = 2 * reach / counts  # one record going from its lower to its upper end
    start = fixed - float(reach.sum())
    if float(np.log1p(counts).sum()) <= math.log(_SUBSETS) + 1e-9:  # their product may overflow
        sums = np.array([start])
        for record_step, count in zip(step, counts, strict=True):
            sums = np.add.outer(sums, record_step * np.arange(count + 1)).ravel()
        return float(np.abs(sums).min()), True
    rest = start
    for i in np.argsort(-step):
        rest += step[i] * min(max(np.floor(-rest / step[i]), 0), counts[i])
    over = step[np.abs(rest + step) < abs(rest)]
    if over.size:
        rest = float((rest + over)[np.argmin(np.abs(rest + over))])
    return abs(rest), len(counts) == 1


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


def compute_statistic(
    statistic: str, mean: Floats, covariance: Floats, *, coefficient: int = 0, dependent: float = DEPENDENT
) -> Floats:
    """Compute a statistic from means and covariances, whose leading axes are kept; NaN where it is undefined.

    Variance and covariance are in the population form (divided by N); a variance of 0 means that the column is
    constant. Of a regression it is the given predictor's coefficient, from 0; predictors are called dependent below the
    given eigenvalue of their correlations.

    Examples:
        >>> compute_statistic("correlation", np.array([0.0, 5.0]), np.array([[4.0, 3.0], [3.0, 9.0]])).item()
        0.5
    """
    if statistic == "mean":
        return mean[..., 0]
    if statistic == "covariance":
        return covariance[..., 0, 1]
    if statistic == "regression":
        return _solve_normal_equations(covariance, dependent)[1][..., coefficient]
    variances = np.maximum(np.einsum("...ii->...i", covariance), 0.0)
    if statistic == "variance":
        return np.asarray(variances[..., 0])
    deviations = np.sqrt(variances)
    if statistic == "standard_deviation":
        return np.asarray(deviations[..., 0])
    product = deviations[..., 0] * deviations[..., 1]
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(product > 0, np.clip(covariance[..., 0, 1] / product, -1.0, 1.0), np.nan)


def differentiate(statistic: str, mean: Floats, covariance: Floats, coefficient: int = 0) -> Gradient:
    """Compute a statistic from means and covariances like `compute_statistic`, with its derivatives by them.

    Examples:
        >>> differentiate("standard_deviation", np.array([7.0]), np.array([[4.0]])).slopes
        array([[0.5]])
    """
    constant, slopes = np.zeros(len(mean)), np.zeros_like(covariance)
    if statistic == "regression":
        inverse, beta = _solve_normal_equations(covariance, DEPENDENT)
        lever = inverse[coefficient]
        slopes[0, 1:] = slopes[1:, 0] = lever
        slopes[1:, 1:] = -np.outer(lever, beta) - np.outer(beta, lever)
        slopes[0, 0] *= lever[0]  # NaN where the others are
        return Gradient(float(beta[coefficient]), constant, slopes)
    value = float(compute_statistic(statistic, mean, covariance))
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


def compute_influence(statistic: str, points: Floats, share: Floats, coefficient: int = 0) -> Influence:
    """Compute a statistic of points (columns x points) with weights that sum to 1, and how much each point moves it.

    Examples:
        >>> compute_influence("variance", np.array([[1.0, 3.0]]), np.array([0.5, 0.5])).slopes
        array([[-2.,  2.]])
    """
    mean = points @ share
    gaps = points - mean[:, None]
    covariance = (gaps * share) @ gaps.T
    variances = np.diag(covariance)
    np.fill_diagonal(covariance, np.where(variances <= _CONSTANT * (variances + mean**2), 0.0, variances))
    derivatives = differentiate(statistic, mean, covariance, coefficient)
    slopes = np.empty_like(gaps)
    for column in range(len(gaps)):
        slopes[column] = derivatives.by_value(column, gaps.__getitem__)
    doubled = np.sum(gaps * (slopes + derivatives.constant[:, None]), axis=0)
    return Influence(derivatives.value, slopes, 0.5 * (doubled - np.sum(derivatives.slopes * covariance)))


def _solve_normal_equations(covariance: Floats, dependent: float) -> tuple[Floats, Floats]:
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
