"""Regression coefficients over boxes, with guaranteed ranges.

With one predictor the range of the slope is exact to the wanted accuracy (see `interval_correlation.slope_upper`).
With several, let b be any coefficients and l any linear form of the predictors.  Every table's own coefficients beta
satisfy

    sum_i (beta_i - b_i) cov(l, x_i) = cov(l, y - b x),

and the range of each covariance is found exactly, box by box.  With l a row of the inverse covariance matrix of the
midpoints, cov(l, x_i) is nearly 1 for i = q and nearly 0 otherwise: a preconditioned interval linear system (Krawczyk,
Gauss-Seidel).  A second round takes b at the end of the range and lets the other coefficients take the corners of
theirs, so that one table must explain all covariances at once.

References
----------
`ERRATA.md`, "Boxes", point 2, and "Exact ranges over boxes"; A. Neumaier, "Interval Methods for Systems of Equations"
(1990), Chapter 4.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product

import numpy as np
from numpy.typing import ArrayLike

from duckanon.common.arrays import Floats
from duckanon.intervals.correlation import slope_upper
from duckanon.intervals.covariance import largest_covariance
from duckanon.intervals.influence import influence
from duckanon.intervals.moments import mean_range, variance_range
from duckanon.intervals.regularity import least_deviation
from duckanon.intervals.scaled import EPS, Boxes, scaled_boxes
from duckanon.intervals.systems import narrowed, start_bound
from duckanon.intervals.zonotopes import Forms

_CORNERS = 5  # predictors up to which the other coefficients take all corners
_COARSE = 1e-3  # accuracy of covariances with several predictors, where the system's own width is larger
_CLIMB = 12
RELATIVE = 1e-4


@dataclass(frozen=True)
class IntervalCoefficient:
    """One regression coefficient over boxes.

    Attributes
    ----------
    predictor : int or None
        Index of the predictor's column; None is the intercept.
    estimate : float
        The coefficient of the midpoints; NaN where it is undefined.
    lower, upper : float
        The coefficient of every table within the boxes lies between.  Infinite where some table within the boxes may
        have linearly dependent predictors, so that the coefficient may be anything.
    lower_looseness, upper_looseness : float
        Some table comes this near to the end, proven; infinite where the end is.
    linear_halfwidth, standard_error, records
        As for the other statistics; NaN for the intercept.
    """

    predictor: int | None
    estimate: float
    lower: float
    upper: float
    lower_looseness: float
    upper_looseness: float
    linear_halfwidth: float
    standard_error: float
    records: int


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
    lo, hi : array of float, boxes x columns
        Ends of the distinct boxes.
    multiplicity : array of int
        Records per box.
    weights : array of float, at least 0 each, optional
        Weight of each record of the box.
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
    """
    boxes = scaled_boxes(lo, hi, multiplicity, weights)
    columns = len(boxes.lo)
    chosen = tuple(i for i in range(columns) if i != target) if predictors is None else tuple(predictors)
    if not chosen:
        raise ValueError("There must be at least one predictor.")
    if len(set(chosen)) < len(chosen) or target in chosen or not set(chosen) | {target} <= set(range(columns)):
        raise ValueError(f"Target and predictors must be different columns of 0 to {columns - 1}.")
    order = [target, *chosen]
    used = replace(
        boxes, lo=boxes.lo[order], hi=boxes.hi[order], center=boxes.center[order], exponent=boxes.exponent[order]
    )
    middle = used.middle
    facts = [
        influence("regression", np.vstack([middle[:1], np.roll(middle[1:], -q, axis=0)]), used.share)
        for q in range(len(chosen))
    ]
    if not np.isfinite([f.estimate for f in facts]).all():
        ends = np.tile([-np.inf, np.inf], (len(chosen), 1))
        reached = np.tile([np.inf, -np.inf], (len(chosen), 1))
    elif len(chosen) == 1:
        ends, reached = _slope(used, relative_accuracy)
    else:
        ends, reached = _System(used, np.array([f.estimate for f in facts]), relative_accuracy).solve()
    unit = np.ldexp(1.0, np.clip(used.exponent[0] - used.exponent[1:], -1000, 1000))
    result = []
    half = used.half
    for q, fact in enumerate(facts):
        spread = np.vstack([half[:1], np.roll(half[1:], -q, axis=0)])
        linear = float(np.sum(used.share * np.sum(np.abs(fact.slopes) * spread, axis=0)))
        error = float(np.sqrt(np.sum(used.share**2 / used.records * fact.psi**2)))
        low, high = (ends[q] * unit[q]).tolist()
        loose = np.where(np.isfinite(ends[q]), np.abs(ends[q] - reached[q]), np.inf) * unit[q] + 4 * EPS * np.abs(
            [low, high]
        )
        result.append(
            IntervalCoefficient(
                chosen[q],
                fact.estimate * float(unit[q]),
                low,
                high,
                float(loose[0]),
                float(loose[1]),
                linear * float(unit[q]),
                error * float(unit[q]),
                used.total,
            )
        )
    return [_intercept(used, result), *result]


def _slope(boxes: Boxes, relative: float) -> tuple[Floats, Floats]:
    """Find the ends of the slope with one predictor, and what is reached."""
    variance = variance_range(boxes, 1)
    top, high = slope_upper(boxes, 1, 0, variance, 1.0, relative)
    bottom, low = slope_upper(boxes, 1, 0, variance, -1.0, relative)
    return np.array([[-bottom, top]]), np.array([[-low, high]])


class _System:
    """The normal equations of all tables within the boxes at once."""

    def __init__(self, boxes: Boxes, estimate: Floats, relative: float) -> None:
        self.boxes, self.estimate, self.relative = boxes, estimate, max(relative, _COARSE)
        self.size = len(estimate)

    def solve(self) -> tuple[Floats, Floats]:
        """Find the ends of all coefficients, predictors x 2, and what is reached."""
        reached = np.array([[self._climb(q, -1.0), self._climb(q, 1.0)] for q in range(self.size)])
        middle = self.boxes.middle[1:]
        gap = middle - (middle @ self.boxes.share)[:, None]
        inverse = np.linalg.inv((gap * self.boxes.share) @ gap.T)
        right = np.array([self._range(row, self._residual(self.estimate)) for row in inverse])
        matrix = np.array([[self._range(row, unit) for unit in np.eye(self.size + 1)[1:]] for row in inverse])
        start = start_bound(matrix, right)
        if start is None:
            start = self._radius()
        if start is None:
            return np.tile([-np.inf, np.inf], (self.size, 1)), reached
        ends = self.estimate[:, None] + narrowed(matrix, right, start)
        ends += np.array([-4, 4]) * EPS * np.abs(ends).max()
        if self.size <= _CORNERS:
            for _ in range(2):
                before = ends.copy()
                for q in range(self.size):
                    ends[q, 0] = max(
                        ends[q, 0], -self._corner_bound(q, -1.0, inverse[q], matrix[q, q], ends, reached[q, 0])
                    )
                    ends[q, 1] = min(
                        ends[q, 1], self._corner_bound(q, 1.0, inverse[q], matrix[q, q], ends, reached[q, 1])
                    )
                if np.abs(ends - before).max() <= 0.02 * np.ptp(ends, axis=1).min():
                    break
        return ends, reached

    def _radius(self) -> Floats | None:
        """Bound all coefficients' distance from the estimate by the least eigenvalue of any table's covariances.

        In coordinates z in which the midpoints have the identity as covariance matrix, the length of beta - b is at
        most that of cov(z, y - b x) over the least variance of any unit direction.
        """
        middle = self.boxes.middle[1:]
        gap = middle - (middle @ self.boxes.share)[:, None]
        value, vector = np.linalg.eigh((gap * self.boxes.share) @ gap.T)
        rows = (vector / np.sqrt(value)).T
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

    def _corner_bound(self, q: int, sign: float, row: Floats, own: Floats, ends: Floats, reached: float) -> float:
        """Bound sign * beta_q, with b_q at what is reached and the others at every corner of their ranges.

        The largest cov(l, y - b x) over all tables is convex in b, so it is largest at a corner.
        """
        if own[0] <= 0 or not np.isfinite(reached):
            return np.inf
        others = [ends[i] for i in range(self.size) if i != q]
        first = np.concatenate([[0.0], row])
        most = -np.inf
        for corner in product(*others):
            b = np.insert(np.array(corner), q, reached)
            scale = float(np.ptp(ends[q])) * float(own[0])
            forms = Forms(self.boxes, first, sign * self._residual(b))
            most = max(most, largest_covariance(forms, self.relative, scale).upper)
        bound = sign * reached + most / (own[0] if most > 0 else own[1])
        return float(bound + 16 * EPS * (abs(bound) + abs(reached)))

    def _climb(self, q: int, sign: float) -> float:
        """Look for a table with a large sign * beta_q: move every record by the sign of the derivative."""
        middle, half = self.boxes.middle, self.boxes.half * (1 - 16 * EPS)
        points, best = middle, sign * np.inf * -1
        for _ in range(_CLIMB):
            rolled = np.vstack([points[:1], np.roll(points[1:], -q, axis=0)])
            found = influence("regression", rolled, self.boxes.share)
            if not np.isfinite(found.estimate) or sign * found.estimate <= sign * best:
                break
            best = found.estimate
            slopes = np.vstack([found.slopes[:1], np.roll(found.slopes[1:], q, axis=0)])
            points = middle + sign * np.sign(slopes) * half
        return float(best)


def _intercept(boxes: Boxes, found: list[IntervalCoefficient]) -> IntervalCoefficient:
    """Intercept: mean(y - b x) for the midpoints' b, less (beta - b) times the means."""
    means = [mean_range(boxes, i) for i in range(len(boxes.lo))]
    unit = np.ldexp(1.0, boxes.exponent)
    low = np.array([m.lower for m in means]) * unit + boxes.center
    high = np.array([m.upper for m in means]) * unit + boxes.center
    middle = (boxes.middle @ boxes.share) * unit + boxes.center
    b = np.array([f.estimate for f in found])
    estimate = float(middle[0] - b @ middle[1:])
    ends = np.array([low[0], high[0]])
    size = np.abs(ends).max()
    for i, f in enumerate(found, 1):
        step = np.array([-f.estimate * low[i], -f.estimate * high[i]])
        shift = np.outer([f.estimate - f.lower, f.estimate - f.upper], [low[i], high[i]])
        if not np.isfinite(shift).all():
            return IntervalCoefficient(None, estimate, -np.inf, np.inf, np.inf, np.inf, np.nan, np.nan, boxes.total)
        ends += np.array([step.min() + shift.min(), step.max() + shift.max()])
        size += np.abs(step).max() + np.abs(shift).max()
    ends += np.array([-1, 1]) * (8 + len(found)) * EPS * size
    # The width cannot be proven to be needed; what the midpoints give is reached.
    loose = np.abs(ends - estimate)
    return IntervalCoefficient(
        None, estimate, float(ends[0]), float(ends[1]), float(loose[0]), float(loose[1]), np.nan, np.nan, boxes.total
    )
