"""Regression coefficients over boxes, with guaranteed ranges.

With one predictor the range of the slope is exact to the wanted accuracy (`correlation.maximize_slope`).  With two or
three, and for the intercept of up to three, a coefficient that some table attains is moved outward until its hyperplane
is excluded (`attained`, `hyperplanes`).  With more, and where that fails, an interval linear system encloses the
coefficients (`NormalEquations`): let b be any coefficients and l any linear form of the predictors.  Every table's own
coefficients beta satisfy

    sum_i (beta_i - b_i) cov(l, x_i) = cov(l, y - b x),

and the range of each covariance is found exactly, box by box.  With l a row of the inverse covariance matrix of the
midpoints, cov(l, x_i) is nearly 1 for i = q and nearly 0 otherwise: a preconditioned interval linear system (Krawczyk,
Gauss-Seidel).  A second round takes b at the end of the range and lets the other coefficients take the corners of
theirs, so that one table must explain all covariances at once.

References:
    REFERENCES.md, Boxes, point 2 and "Regression with several predictors".
    A. Neumaier, "Interval Methods for Systems of Equations" (1990), Chapter 4.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from functools import partial
from itertools import product

import numpy as np
from numpy.typing import ArrayLike

from duckanon._core.common import progress
from duckanon._core.common.arguments import check_arguments
from duckanon._core.common.arrays import Floats
from duckanon._core.common.imports import import_function
from duckanon._core.common.rules import Number
from duckanon._methods.intervals.correlation import maximize_covariance, maximize_slope
from duckanon._methods.intervals.equations import (
    Equations,
    InterceptEquations,
    SlopeEquations,
    enclose_start,
    find_least_deviation,
    find_least_share,
    narrow_solutions,
)
from duckanon._methods.intervals.hyperplanes import Hyperplanes
from duckanon._methods.intervals.moments import Influence, compute_influence, find_mean_range, find_variance_range
from duckanon._methods.intervals.rectangles import make_forms
from duckanon._methods.intervals.scaled import EPS, ScaledBoxes, scale_boxes, unscale_outward
from duckanon._methods.intervals.statistics import ACCURACY, RELATIVE, Enclosure

_CORNERS = 5  # predictors up to which the other coefficients take all corners
_COARSE = 1e-3  # accuracy of covariances with several predictors, where the system's own width is larger
_ROUNDS = 2  # over all ends at most: each round takes a search for every corner
_GAIN = 0.02  # share of the narrowest range that a round must gain to be followed by another


class NormalEquations:
    """The normal equations of all tables within the boxes at once, which have the target's column first.

    The accuracy is that of the covariances, where the system itself does not lose more.
    """

    def __init__(self, boxes: ScaledBoxes, estimate: Floats, relative: float) -> None:
        self.boxes, self.estimate, self.relative = boxes, estimate, max(relative, _COARSE)
        self.size = len(estimate)
        middle = boxes.middle[1:]
        gaps = middle - (middle @ boxes.share)[:, None]
        self.covariance = (gaps * boxes.share) @ gaps.T  # of the predictors' midpoints

    def enclose_slopes(self, reached: Floats) -> Floats:
        """Enclose the coefficients of all predictors, predictors x 2: infinite where nothing could be ruled out.

        Some tables have the coefficients that are reached, a small one and a large one of each predictor.
        """
        inverse = np.asarray(np.linalg.inv(self.covariance), np.float64)
        right = np.array([self._find_range(row, self._residual(self.estimate)) for row in inverse])
        matrix = np.array([[self._find_range(row, unit) for unit in np.eye(self.size + 1)[1:]] for row in inverse])
        bound = enclose_start(matrix, right)
        if bound is None:
            bound = self._limit_radius()
        if bound is None:
            return np.tile([-np.inf, np.inf], (self.size, 1))
        ends = self.estimate[:, None] + narrow_solutions(matrix, right, bound)
        ends += np.array([-4, 4]) * EPS * np.abs(ends).max()
        if self.size <= _CORNERS:
            self._narrow_by_corners(ends, reached, inverse, matrix)
        return ends

    def _narrow_by_corners(self, ends: Floats, reached: Floats, inverse: Floats, matrix: Floats) -> None:
        """Narrow the ends in place, each by what the others allow."""
        for _ in range(_ROUNDS):
            before = ends.copy()
            for q in range(self.size):
                for side, sign in enumerate((-1.0, 1.0)):
                    bound = self._enclose_at_corners(q, sign, inverse[q], matrix[q, q], ends, reached[q, side])
                    ends[q, side] = sign * min(sign * ends[q, side], bound)
            if np.abs(ends - before).max() <= _GAIN * np.ptp(ends, axis=1).min():
                break

    def _limit_radius(self) -> Floats | None:
        """Bound all coefficients' distance from the estimate by the least eigenvalue of any table's covariances.

        In coordinates z in which the midpoints have the identity as covariance matrix, the length of beta - b is at
        most that of cov(z, y - b x) over the least variance of any unit direction.
        """
        eigenvalues, eigenvectors = np.linalg.eigh(self.covariance)
        rows = (eigenvectors / np.sqrt(eigenvalues)).T
        least = find_least_deviation(self.boxes, np.column_stack([np.zeros(self.size), rows]))
        if least <= 0:
            return None
        right = np.array([self._find_range(row, self._residual(self.estimate)) for row in rows])
        length = float(np.linalg.norm(np.abs(right).max(axis=1))) / least**2 * (1 + 1e-12)
        return np.asarray(length * np.linalg.norm(rows, axis=0) * (1 + 1e-12))

    def _find_range(self, row: Floats, other: Floats) -> Floats:
        """Find the ends of the covariance of a form of the predictors and a form of all columns."""
        progress.check()
        first = np.concatenate([[0.0], row])
        low = maximize_covariance(make_forms(self.boxes, first, -other), self.relative, 0.1)
        high = maximize_covariance(make_forms(self.boxes, first, other), self.relative, 0.1)
        return np.array([-low.upper, high.upper])

    @staticmethod
    def _residual(b: Floats) -> Floats:
        return np.concatenate([[1.0], -b])

    def _enclose_at_corners(
        self, q: int, sign: float, row: Floats, lead: Floats, ends: Floats, reached: float
    ) -> float:
        """Bound sign * beta_q, with b_q at what is reached and the others at every corner of their ranges.

        The largest cov(l, y - b x) over all tables is convex in b, so it is largest at a corner.  `row` has the
        coefficients of l, and `lead` the ends of cov(l, x_q).
        """
        if lead[0] <= 0 or not np.isfinite(reached):
            return np.inf
        other_ends = [ends[i] for i in range(self.size) if i != q]
        first = np.concatenate([[0.0], row])
        most = -np.inf
        for corner in product(*other_ends):
            progress.check()
            b = np.insert(np.array(corner), q, reached)
            scale = float(np.ptp(ends[q])) * float(lead[0])
            forms = make_forms(self.boxes, first, sign * self._residual(b))
            most = max(most, maximize_covariance(forms, self.relative, scale).upper)
        bound = sign * reached + most / (lead[0] if most > 0 else lead[1])
        return float(bound + 16 * EPS * (abs(bound) + abs(reached)))


_EXCLUDED = 3  # predictors up to which hyperplanes are excluded: cells multiply with every one
_LOSS = {2: 0.08, 3: 0.12}  # share of a half-width that may be lost with three predictors, by the free coefficients
_FINE = 0.02  # the same with one or two, where all are soon found
_DEPENDENT = 0.1  # share of a form's variance below which hyperplanes with free coefficients are hardly excluded
_LEAST = 1e-11  # a step that is worth taking, relative to the size of a coefficient


@dataclass(frozen=True, kw_only=True)
class IntervalCoefficient(Enclosure):
    """One regression coefficient over boxes.

    The range is infinite where some table within the boxes may have linearly dependent predictors, so that the
    coefficient may be anything; so is then the looseness.  The errors of the intercept are NaN.
    """

    predictor: int | None  # index of the predictor's column; None is the intercept
    # Some tables within the boxes have these coefficients, and others all between; NaN where the estimate is.
    inner_lower: float
    inner_upper: float


@check_arguments(relative_accuracy=ACCURACY, seconds=Number(0, null=True))
def regress_boxes(
    lo: ArrayLike,
    hi: ArrayLike,
    multiplicity: ArrayLike,
    weights: ArrayLike | None = None,
    *,
    target: int = 0,
    predictors: tuple[int, ...] | None = None,
    relative_accuracy: float = RELATIVE,
    seconds: float | None = None,
) -> list[IntervalCoefficient]:
    """Regress one column on others (least squares, with an intercept), with guaranteed ranges.

    Args:
        lo, hi, multiplicity, weights: As for `statistics.enclose_statistics`.
        predictors: Columns that explain the target; all others when it is None.
        relative_accuracy: Of the slope of one predictor, and of the covariances behind the ranges of more than three.
        seconds: When to be content with the ranges that are proven by then; they are wider.

    Returns:
        The intercept first, then the predictors in their order.

    Examples:
        Three records of which the predictor is known, and the target to within 0.1:

        >>> slope = regress_boxes([[0, 0], [2, 1], [4, 2]], [[0.1, 0], [2.1, 1], [4.1, 2]], [1, 1, 1])[1]
        >>> round(slope.lower, 3), round(slope.estimate, 3), round(slope.upper, 3)
        (1.95, 2.0, 2.05)
    """
    boxes = scale_boxes(lo, hi, multiplicity, weights)
    columns = len(boxes.lo)
    chosen = tuple(i for i in range(columns) if i != target) if predictors is None else tuple(predictors)
    if not chosen:
        raise ValueError("predictors must name at least one column; got none.")
    if len({target, *chosen}) <= len(chosen) or not {target, *chosen} <= set(range(columns)):
        raise ValueError(
            f"target and predictors must be different columns from 0 to {columns - 1}; got {target} and {chosen}."
        )
    # The boxes are sorted, so that a search finds the same from its random starts for every order of them.
    used = [target, *chosen]
    low, high, center, exponent = boxes.lo[used], boxes.hi[used], boxes.center[used], boxes.exponent[used]
    order = np.lexsort([boxes.records, boxes.amount, *high, *low])
    boxes = replace(boxes, lo=low, hi=high, center=center, exponent=exponent).take(order)
    effects = [compute_influence("regression", boxes.middle, boxes.share, q) for q in range(len(chosen))]
    ranges = _CoefficientRanges(boxes, np.array([effect.estimate for effect in effects]), relative_accuracy, seconds)
    ends, inner = ranges.find_slopes()
    coefficients = [_scale_coefficient(boxes, q, chosen[q], effects[q], ends[q], inner[q]) for q in range(len(chosen))]
    enclosed = _enclose_intercept(boxes, coefficients)
    return [_scale_intercept(boxes, enclosed, *ranges.find_intercept()), *coefficients]


class _CoefficientRanges:
    """Finds the ranges of all coefficients, in scaled units: what no table leaves, and what some tables attain.

    The boxes have the target's column first. The coefficients of the midpoints are NaN where they are undefined. Every
    end has its share of the time that all may take.
    """

    def __init__(self, boxes: ScaledBoxes, estimate: Floats, relative: float, seconds: float | None) -> None:
        self._boxes, self._estimate, self._relative = boxes, estimate, relative
        self._begin, self._seconds = time.monotonic(), math.inf if seconds is None else seconds
        self._ends, self._done = 2 * (len(estimate) + 1), 0
        self._defined = bool(np.isfinite(estimate).all())
        self._least_share = find_least_share(boxes) if self._defined and len(estimate) <= _EXCLUDED else 0.0
        self._excludes = self._least_share > 0

    def find_slopes(self) -> tuple[Floats, Floats]:
        """Find the ranges of the predictors' coefficients, and what is attained; both are predictors x 2."""
        size = len(self._estimate)
        if not self._defined:
            return np.tile([-np.inf, np.inf], (size, 1)), np.full((size, 2), np.nan)
        if size == 1:
            return self._find_slope()
        inner, ends = np.empty((size, 2)), np.empty((size, 2))
        for q in range(size):
            equations = SlopeEquations(self._boxes, q) if self._excludes else None
            inner[q], ends[q] = self._find_range(q, equations)
        if not np.isfinite(ends).all():
            enclosed = NormalEquations(self._boxes, self._estimate, self._relative).enclose_slopes(inner)
            ends = np.stack([np.maximum(ends[:, 0], enclosed[:, 0]), np.minimum(ends[:, 1], enclosed[:, 1])], axis=1)
        return ends, inner

    def find_intercept(self) -> tuple[Floats, Floats]:
        """Find the range of the intercept less the target's center, and what is attained."""
        if not self._defined:
            return np.array([-np.inf, np.inf]), np.full(2, np.nan)
        inner, ends = self._find_range(None, InterceptEquations(self._boxes) if self._excludes else None)
        return ends, inner

    def _find_range(self, coefficient: int | None, equations: Equations | None) -> tuple[Floats, Floats]:
        """Find what is attained of one coefficient, and its range; infinite without equations."""
        inner, ends = np.empty(2), np.array([-np.inf, np.inf])
        for side, sign in enumerate((-1.0, 1.0)):
            self._done += 1
            deadline = self._begin + self._seconds * self._done / self._ends
            attained = import_function("duckanon._methods.intervals.attained:CoefficientSearch")(self._boxes, deadline)
            inner[side] = attained.find_end(coefficient, sign)
            if equations is not None:
                climb = partial(attained.find_end_near, coefficient=coefficient, sign=sign)
                loss = _FINE if len(self._estimate) <= 2 else _LOSS[equations.free]
                search = Hyperplanes(equations, deadline, climb, hopeful=self._least_share >= _DEPENDENT)
                inner[side], ends[side] = search.find_end(float(inner[side]), sign, _LEAST * equations.size, loss)
            progress.advance(self._done / self._ends)
        if not np.isfinite(ends).any():
            self._excludes = False  # it would take as long for every coefficient, and hardly succeed for one
        return inner, ends

    def _find_slope(self) -> tuple[Floats, Floats]:
        """Find the ends of the slope with one predictor, and what is reached."""
        variance = find_variance_range(self._boxes, 1)
        top, high = maximize_slope(self._boxes, 1, 0, variance, 1.0, self._relative)
        bottom, low = maximize_slope(self._boxes, 1, 0, variance, -1.0, self._relative)
        estimate = self._estimate[0]
        ends, inner = np.array([-bottom, top]), np.array([min(-low, estimate), max(high, estimate)])
        if self._excludes and np.abs(ends - inner).max() > 0.5 * _FINE * np.ptp(ends):
            # Few and wide boxes: the least variance and the largest covariance belong to different tables.
            attained, excluded = self._find_range(0, SlopeEquations(self._boxes, 0))
            inner = np.array([min(inner[0], attained[0]), max(inner[1], attained[1])])
            ends = np.array([max(ends[0], excluded[0]), min(ends[1], excluded[1])])
        self._done = 2
        return ends[None], inner[None]


def _scale_coefficient(
    boxes: ScaledBoxes, q: int, predictor: int, effect: Influence, ends: Floats, inner: Floats
) -> IntervalCoefficient:
    """Bring the ends of one coefficient back to the units of the data, with the estimate and its errors."""
    unit = float(np.ldexp(1.0, int(np.clip(boxes.exponent[0] - boxes.exponent[1 + q], -1000, 1000))))
    low, high = (ends * unit).tolist()
    looseness = np.where(np.isfinite(ends), np.abs(ends - inner), np.inf) * unit + 4 * EPS * np.abs([low, high])
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
        **_order_inner(inner[0] * unit, inner[1] * unit, low, high),
    )


def _order_inner(inner_low: float, inner_high: float, low: float, high: float) -> dict[str, float]:
    """Return what is attained, where rounding has put the ends of a point past each other or past the range."""
    least, most = sorted((float(inner_low), float(inner_high)))
    return {"inner_lower": min(max(least, low), high), "inner_upper": min(max(most, low), high)}


def _enclose_intercept(boxes: ScaledBoxes, coefficients: list[IntervalCoefficient]) -> tuple[float, Floats]:
    """Return the midpoints' intercept and bounds: mean(y - b x) for their b, less (beta - b) times the means."""
    means = [find_mean_range(boxes, i) for i in range(len(boxes.lo))]
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
    return estimate, ends


def _scale_intercept(
    boxes: ScaledBoxes, enclosed: tuple[float, Floats], ends: Floats, inner: Floats
) -> IntervalCoefficient:
    """Bring the ends of the intercept back to the units of the data, or take those of the coefficients' ranges."""
    exponent, center = int(boxes.exponent[0]), float(boxes.center[0])
    estimate, bounds = enclosed
    low, high = (unscale_outward(float(end), exponent, bool(up), center) for up, end in enumerate(ends))
    low, high = max(low, float(bounds[0])), min(high, float(bounds[1]))
    inner_low, inner_high = (unscale_outward(float(end), exponent, not up, center) for up, end in enumerate(inner))
    rounding = 4 * EPS * max(abs(low), abs(high))
    return IntervalCoefficient(
        predictor=None,
        estimate=estimate,
        lower=low,
        upper=high,
        lower_looseness=max(inner_low - low, 0.0) + rounding if np.isfinite(low) else np.inf,
        upper_looseness=max(high - inner_high, 0.0) + rounding if np.isfinite(high) else np.inf,
        linear_halfwidth=np.nan,
        standard_error=np.nan,
        records=boxes.total,
        **_order_inner(inner_low, inner_high, low, high),
    )
