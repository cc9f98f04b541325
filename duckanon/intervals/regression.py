"""Regression coefficients over boxes, with guaranteed ranges.

With one predictor the range of the slope is exact to the wanted accuracy (see `correlation.slope_upper`).
With several, let b be any coefficients and l any linear form of the predictors.  Every table's own coefficients beta
satisfy

    sum_i (beta_i - b_i) cov(l, x_i) = cov(l, y - b x),

and the range of each covariance is found exactly, box by box.  With l a row of the inverse covariance matrix of the
midpoints, cov(l, x_i) is nearly 1 for i = q and nearly 0 otherwise: a preconditioned interval linear system (Krawczyk,
Gauss-Seidel).  A second round takes b at the end of the range and lets the other coefficients take the corners of
theirs, so that one table must explain all covariances at once.

References
----------
REFERENCES.md, Boxes, point 2 and "Exact ranges over boxes"; A. Neumaier, "Interval Methods for Systems of Equations"
(1990), Chapter 4.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product

import numpy as np
from numpy.typing import ArrayLike

from duckanon.common.arguments import checked
from duckanon.common.arrays import Floats
from duckanon.intervals.correlation import slope_upper
from duckanon.intervals.covariance import largest_covariance
from duckanon.intervals.influence import Influence, influence
from duckanon.intervals.moments import mean_range, variance_range
from duckanon.intervals.scaled import EPS, ScaledBoxes, scaled_boxes
from duckanon.intervals.statistics import ACCURACY, RELATIVE, Enclosed
from duckanon.intervals.systems import least_deviation, narrowed, start_bound
from duckanon.intervals.zonotopes import Forms

_CORNERS = 5  # predictors up to which the other coefficients take all corners
_COARSE = 1e-3  # accuracy of covariances with several predictors, where the system's own width is larger
_CLIMB = 12  # steps at most of the search for a table that reaches an end; it stops when a step gains nothing
_ROUNDS = 2  # over all ends at most: each round takes a search for every corner
_GAIN = 0.02  # share of the narrowest range that a round must gain to be followed by another


@dataclass(frozen=True, kw_only=True)
class IntervalCoefficient(Enclosed):
    """One regression coefficient over boxes.

    The range is infinite where some table within the boxes may have linearly dependent predictors, so that the
    coefficient may be anything; so is then the looseness.  The errors of the intercept are NaN.

    Attributes
    ----------
    predictor : int or None
        Index of the predictor's column; None is the intercept.
    """

    predictor: int | None


@checked(relative_accuracy=ACCURACY)
def interval_regression(
    lo: ArrayLike,
    hi: ArrayLike,
    multiplicity: ArrayLike,
    weights: ArrayLike | None = None,
    *,
    target: int = 0,
    predictors: tuple[int, ...] | None = None,
    relative_accuracy: float = RELATIVE,
) -> list[IntervalCoefficient]:
    """Regress one column on others (least squares, with an intercept), with guaranteed ranges.

    Parameters
    ----------
    lo, hi, multiplicity, weights
        As for `statistics.interval_statistics`.
    target : int
        Column that is explained.
    predictors : tuple of int, optional
        Columns that explain; all others when it is None.
    relative_accuracy : float
        Of the covariances behind the ranges.

    Returns
    -------
    list of IntervalCoefficient
        The intercept first, then the predictors in their order.

    Raises
    ------
    ValueError
        If an argument is not as described.

    Examples
    --------
    Three records of which the predictor is known, and the target to within 0.1:

    >>> slope = interval_regression([[0, 0], [2, 1], [4, 2]], [[0.1, 0], [2.1, 1], [4.1, 2]], [1, 1, 1])[1]
    >>> round(slope.lower, 3), round(slope.estimate, 3), round(slope.upper, 3)
    (1.95, 2.0, 2.05)
    """
    boxes = scaled_boxes(lo, hi, multiplicity, weights)
    columns = len(boxes.lo)
    chosen = tuple(i for i in range(columns) if i != target) if predictors is None else tuple(predictors)
    if not chosen:
        raise ValueError("predictors must name at least one column; got none.")
    if len({target, *chosen}) <= len(chosen) or not {target, *chosen} <= set(range(columns)):
        raise ValueError(
            f"target and predictors must be different columns from 0 to {columns - 1}; got {target} and {chosen}."
        )
    order = [target, *chosen]
    used = replace(
        boxes, lo=boxes.lo[order], hi=boxes.hi[order], center=boxes.center[order], exponent=boxes.exponent[order]
    )
    effects = [influence("regression", used.middle, used.share, q) for q in range(len(chosen))]
    ends, reached = _coefficient_ends(used, np.array([effect.estimate for effect in effects]), relative_accuracy)
    unit = np.ldexp(1.0, np.clip(used.exponent[0] - used.exponent[1:], -1000, 1000))
    coefficients = [
        _coefficient(used, chosen[q], effect, ends[q], reached[q], float(unit[q])) for q, effect in enumerate(effects)
    ]
    return [_intercept(used, coefficients), *coefficients]


def _coefficient_ends(boxes: ScaledBoxes, estimates: Floats, relative: float) -> tuple[Floats, Floats]:
    """Find the ends of all coefficients, and what is reached; both are predictors x 2."""
    if not np.isfinite(estimates).all():
        size = (len(estimates), 1)
        return np.tile([-np.inf, np.inf], size), np.tile([np.inf, -np.inf], size)
    if len(estimates) == 1:
        return _slope(boxes, relative)
    return _System(boxes, estimates, relative).solve()


def _coefficient(
    boxes: ScaledBoxes, predictor: int, effect: Influence, ends: Floats, reached: Floats, unit: float
) -> IntervalCoefficient:
    """Bring the ends of one coefficient back to the units of the data, with the estimate and its errors."""
    low, high = (ends * unit).tolist()
    looseness = np.where(np.isfinite(ends), np.abs(ends - reached), np.inf) * unit + 4 * EPS * np.abs([low, high])
    return IntervalCoefficient(
        predictor=predictor,
        estimate=effect.estimate * unit,
        lower=low,
        upper=high,
        lower_looseness=float(looseness[0]),
        upper_looseness=float(looseness[1]),
        linear_halfwidth=effect.linear_halfwidth(boxes.share, boxes.half) * unit,
        standard_error=effect.standard_error(boxes.share, boxes.records) * unit,
        records=boxes.total,
    )


def _slope(boxes: ScaledBoxes, relative: float) -> tuple[Floats, Floats]:
    """Find the ends of the slope with one predictor, and what is reached."""
    variance = variance_range(boxes, 1)
    top, high = slope_upper(boxes, 1, 0, variance, 1.0, relative)
    bottom, low = slope_upper(boxes, 1, 0, variance, -1.0, relative)
    return np.array([[-bottom, top]]), np.array([[-low, high]])


class _System:
    """The normal equations of all tables within the boxes at once."""

    def __init__(self, boxes: ScaledBoxes, estimate: Floats, relative: float) -> None:
        self.boxes, self.estimate, self.relative = boxes, estimate, max(relative, _COARSE)
        self.size = len(estimate)
        middle = boxes.middle[1:]
        gaps = middle - (middle @ boxes.share)[:, None]
        self.covariance = (gaps * boxes.share) @ gaps.T  # of the predictors' midpoints

    def solve(self) -> tuple[Floats, Floats]:
        """Find the ends of all coefficients, predictors x 2, and what is reached."""
        reached = np.array([[self._climb(q, -1.0), self._climb(q, 1.0)] for q in range(self.size)])
        inverse = np.asarray(np.linalg.inv(self.covariance), np.float64)
        right = np.array([self._range(row, self._residual(self.estimate)) for row in inverse])
        matrix = np.array([[self._range(row, unit) for unit in np.eye(self.size + 1)[1:]] for row in inverse])
        bound = start_bound(matrix, right)
        if bound is None:
            bound = self._radius()
        if bound is None:
            return np.tile([-np.inf, np.inf], (self.size, 1)), reached
        ends = self.estimate[:, None] + narrowed(matrix, right, bound)
        ends += np.array([-4, 4]) * EPS * np.abs(ends).max()
        if self.size <= _CORNERS:
            self._narrow_by_corners(ends, reached, inverse, matrix)
        return ends, reached

    def _narrow_by_corners(self, ends: Floats, reached: Floats, inverse: Floats, matrix: Floats) -> None:
        """Narrow the ends in place, each by what the others allow."""
        for _ in range(_ROUNDS):
            before = ends.copy()
            for q in range(self.size):
                for side, sign in enumerate((-1.0, 1.0)):
                    bound = self._corner_bound(q, sign, inverse[q], matrix[q, q], ends, reached[q, side])
                    ends[q, side] = sign * min(sign * ends[q, side], bound)
            if np.abs(ends - before).max() <= _GAIN * np.ptp(ends, axis=1).min():
                break

    def _radius(self) -> Floats | None:
        """Bound all coefficients' distance from the estimate by the least eigenvalue of any table's covariances.

        In coordinates z in which the midpoints have the identity as covariance matrix, the length of beta - b is at
        most that of cov(z, y - b x) over the least variance of any unit direction.
        """
        eigenvalues, eigenvectors = np.linalg.eigh(self.covariance)
        rows = (eigenvectors / np.sqrt(eigenvalues)).T
        least = least_deviation(self.boxes, np.column_stack([np.zeros(self.size), rows]))
        if least <= 0:
            return None
        right = np.array([self._range(row, self._residual(self.estimate)) for row in rows])
        length = float(np.linalg.norm(np.abs(right).max(axis=1))) / least**2 * (1 + 1e-12)
        return np.asarray(length * np.linalg.norm(rows, axis=0) * (1 + 1e-12))

    def _range(self, row: Floats, other: Floats) -> Floats:
        """Find the ends of the covariance of a form of the predictors and a form of all columns."""
        first = np.concatenate([[0.0], row])
        low = largest_covariance(Forms(self.boxes, first, -other), self.relative, 0.1)
        high = largest_covariance(Forms(self.boxes, first, other), self.relative, 0.1)
        return np.array([-low.upper, high.upper])

    @staticmethod
    def _residual(b: Floats) -> Floats:
        return np.concatenate([[1.0], -b])

    def _corner_bound(self, q: int, sign: float, row: Floats, lead: Floats, ends: Floats, reached: float) -> float:
        """Bound sign * beta_q, with b_q at what is reached and the others at every corner of their ranges.

        The largest cov(l, y - b x) over all tables is convex in b, so it is largest at a corner.  `row` has the
        coefficients of l, and `lead` the ends of cov(l, x_q).
        """
        if lead[0] <= 0 or not np.isfinite(reached):
            return np.inf
        others = [ends[i] for i in range(self.size) if i != q]
        first = np.concatenate([[0.0], row])
        most = -np.inf
        for corner in product(*others):
            b = np.insert(np.array(corner), q, reached)
            scale = float(np.ptp(ends[q])) * float(lead[0])
            forms = Forms(self.boxes, first, sign * self._residual(b))
            most = max(most, largest_covariance(forms, self.relative, scale).upper)
        bound = sign * reached + most / (lead[0] if most > 0 else lead[1])
        return float(bound + 16 * EPS * (abs(bound) + abs(reached)))

    def _climb(self, q: int, sign: float) -> float:
        """Look for a table with a large sign * beta_q: move every record by the sign of the derivative."""
        middle, half = self.boxes.middle, self.boxes.half * (1 - 16 * EPS)
        points, best = middle, -sign * np.inf
        for _ in range(_CLIMB):
            effect = influence("regression", points, self.boxes.share, q)
            if not np.isfinite(effect.estimate) or sign * effect.estimate <= sign * best:
                break
            best = effect.estimate
            points = middle + sign * np.sign(effect.slopes) * half
        return float(best)


def _intercept(boxes: ScaledBoxes, coefficients: list[IntervalCoefficient]) -> IntervalCoefficient:
    """Bound the intercept: mean(y - b x) for the midpoints' b, less (beta - b) times the means."""
    means = [mean_range(boxes, i) for i in range(len(boxes.lo))]
    unit = np.ldexp(1.0, boxes.exponent)
    low = np.array([mean.lower for mean in means]) * unit + boxes.center
    high = np.array([mean.upper for mean in means]) * unit + boxes.center
    middle = (boxes.middle @ boxes.share) * unit + boxes.center
    estimate = float(middle[0] - np.array([slope.estimate for slope in coefficients]) @ middle[1:])
    ends = np.array([low[0], high[0]])
    size = np.abs(ends).max()
    for i, slope in enumerate(coefficients, 1):
        step = np.array([-slope.estimate * low[i], -slope.estimate * high[i]])
        shift = np.outer([slope.estimate - slope.lower, slope.estimate - slope.upper], [low[i], high[i]])
        if not np.isfinite(shift).all():
            ends, size = np.array([-np.inf, np.inf]), 0.0
            break
        ends += np.array([step.min() + shift.min(), step.max() + shift.max()])
        size += np.abs(step).max() + np.abs(shift).max()
    ends += np.array([-1, 1]) * (8 + len(coefficients)) * EPS * size
    # The width cannot be proven to be needed; what the midpoints give is reached.
    looseness = np.where(np.isfinite(ends), np.abs(ends - estimate), np.inf).tolist()
    return IntervalCoefficient(
        predictor=None,
        estimate=estimate,
        lower=float(ends[0]),
        upper=float(ends[1]),
        lower_looseness=looseness[0],
        upper_looseness=looseness[1],
        linear_halfwidth=np.nan,
        standard_error=np.nan,
        records=boxes.total,
    )
