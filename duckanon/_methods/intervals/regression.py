"""Regression coefficients over boxes, with guaranteed ranges.

With one predictor the range of the slope is exact to the wanted accuracy (see `correlation.slope_upper`).  With two or
three, and for the intercept of up to three, a coefficient that some table attains is moved outward until its hyperplane
is excluded (`attained`, `hyperplanes`).  With more, and where that fails, an interval linear system encloses the
coefficients (`enclosure`).

References:
    REFERENCES.md, Boxes, point 2 and "Regression with several predictors".
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from duckanon._core.common import progress
from duckanon._core.common.arguments import checked
from duckanon._core.common.arrays import Floats
from duckanon._core.common.imports import imported
from duckanon._core.common.rules import Number
from duckanon._methods.intervals.correlation import slope_upper
from duckanon._methods.intervals.enclosure import NormalEquations
from duckanon._methods.intervals.equations import Equations, InterceptEquations, SlopeEquations
from duckanon._methods.intervals.hyperplanes import Hyperplanes
from duckanon._methods.intervals.influence import Influence, influence
from duckanon._methods.intervals.moments import mean_range, variance_range
from duckanon._methods.intervals.scaled import EPS, ScaledBoxes, outward, scaled_boxes
from duckanon._methods.intervals.statistics import ACCURACY, RELATIVE, Enclosed
from duckanon._methods.intervals.systems import least_share

_EXCLUDED = 3  # predictors up to which hyperplanes are excluded: cells multiply with every one
_LOSS = {2: 0.08, 3: 0.12}  # share of a half-width that may be lost with three predictors, by the free coefficients
_FINE = 0.02  # the same with one or two, where all are soon found
_DEPENDENT = 0.1  # share of a form's variance below which hyperplanes with free coefficients are hardly excluded
_LEAST = 1e-11  # a step that is worth taking, relative to the size of a coefficient


@dataclass(frozen=True, kw_only=True)
class IntervalCoefficient(Enclosed):
    """One regression coefficient over boxes.

    The range is infinite where some table within the boxes may have linearly dependent predictors, so that the
    coefficient may be anything; so is then the looseness.  The errors of the intercept are NaN.
    """

    predictor: int | None  # index of the predictor's column; None is the intercept
    # Some tables within the boxes have these coefficients, and others all between; NaN where the estimate is.
    inner_lower: float
    inner_upper: float


@checked(relative_accuracy=ACCURACY, seconds=Number(0, null=True))
def interval_regression(
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
        lo, hi, multiplicity, weights: As for `statistics.interval_statistics`.
        predictors: Columns that explain the target; all others when it is None.
        relative_accuracy: Of the slope of one predictor, and of the covariances behind the ranges of more than three.
        seconds: When to be content with the ranges that are proven by then; they are wider.

    Returns:
        The intercept first, then the predictors in their order.

    Examples:
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
    used = _in_order(boxes, [target, *chosen])
    effects = [influence("regression", used.middle, used.share, q) for q in range(len(chosen))]
    ranges = _Ranges(used, np.array([effect.estimate for effect in effects]), relative_accuracy, seconds)
    ends, inner = ranges.of_slopes()
    coefficients = [_coefficient(used, q, chosen[q], effects[q], ends[q], inner[q]) for q in range(len(chosen))]
    enclosed = _enclosed_intercept(used, coefficients)
    return [_intercept(used, enclosed, *ranges.of_intercept()), *coefficients]


def _in_order(boxes: ScaledBoxes, columns: list[int]) -> ScaledBoxes:
    """Choose columns, and sort the boxes: what a search finds from random starts is then the same for every order."""
    lo, hi, center, exponent = boxes.lo[columns], boxes.hi[columns], boxes.center[columns], boxes.exponent[columns]
    order = np.lexsort([boxes.records, boxes.amount, *hi, *lo])
    return replace(boxes, lo=lo, hi=hi, center=center, exponent=exponent).taken(order)


class _Ranges:
    """Finds the ranges of all coefficients, in scaled units: what no table leaves, and what some tables attain.

    The boxes have the target's column first. The coefficients of the midpoints are NaN where they are undefined. Every
    end has its share of the time that all may take.
    """

    def __init__(self, boxes: ScaledBoxes, estimate: Floats, relative: float, seconds: float | None) -> None:
        self._boxes, self._estimate, self._relative = boxes, estimate, relative
        self._begin, self._seconds = time.monotonic(), math.inf if seconds is None else seconds
        self._ends, self._done = 2 * (len(estimate) + 1), 0
        self._defined = bool(np.isfinite(estimate).all())
        self._least_share = least_share(boxes) if self._defined and len(estimate) <= _EXCLUDED else 0.0
        self._excludes = self._least_share > 0

    def of_slopes(self) -> tuple[Floats, Floats]:
        """Find the ranges of the predictors' coefficients, and what is attained; both are predictors x 2."""
        size = len(self._estimate)
        if not self._defined:
            return np.tile([-np.inf, np.inf], (size, 1)), np.full((size, 2), np.nan)
        if size == 1:
            return self._slope()
        inner, ends = np.empty((size, 2)), np.empty((size, 2))
        for q in range(size):
            equations = SlopeEquations(self._boxes, q) if self._excludes else None
            inner[q], ends[q] = self._range(q, equations)
        if not np.isfinite(ends).all():
            enclosed = NormalEquations(self._boxes, self._estimate, self._relative).enclosed_slopes(inner)
            ends = np.stack([np.maximum(ends[:, 0], enclosed[:, 0]), np.minimum(ends[:, 1], enclosed[:, 1])], axis=1)
        return ends, inner

    def of_intercept(self) -> tuple[Floats, Floats]:
        """Find the range of the intercept less the target's center, and what is attained."""
        if not self._defined:
            return np.array([-np.inf, np.inf]), np.full(2, np.nan)
        inner, ends = self._range(None, InterceptEquations(self._boxes) if self._excludes else None)
        return ends, inner

    def _range(self, coefficient: int | None, equations: Equations | None) -> tuple[Floats, Floats]:
        """Find what is attained of one coefficient, and its range; infinite without equations."""
        inner, ends = np.empty(2), np.array([-np.inf, np.inf])
        for side, sign in enumerate((-1.0, 1.0)):
            self._done += 1
            deadline = self._begin + self._seconds * self._done / self._ends
            attained = imported("duckanon._methods.intervals.attained:Attained")(self._boxes, deadline)
            inner[side] = attained.end(coefficient, sign)
            if equations is not None:
                climb = partial(attained.end_near, coefficient=coefficient, sign=sign)
                loss = _FINE if len(self._estimate) <= 2 else _LOSS[equations.free]
                search = Hyperplanes(equations, deadline, climb, hopeful=self._least_share >= _DEPENDENT)
                inner[side], ends[side] = search.end(float(inner[side]), sign, _LEAST * equations.size, loss)
            progress.at(self._done / self._ends)
        if not np.isfinite(ends).any():
            self._excludes = False  # it would take as long for every coefficient, and hardly succeed for one
        return inner, ends

    def _slope(self) -> tuple[Floats, Floats]:
        """Find the ends of the slope with one predictor, and what is reached."""
        variance = variance_range(self._boxes, 1)
        top, high = slope_upper(self._boxes, 1, 0, variance, 1.0, self._relative)
        bottom, low = slope_upper(self._boxes, 1, 0, variance, -1.0, self._relative)
        estimate = self._estimate[0]
        ends, inner = np.array([-bottom, top]), np.array([min(-low, estimate), max(high, estimate)])
        if self._excludes and np.abs(ends - inner).max() > 0.5 * _FINE * np.ptp(ends):
            # Few and wide boxes: the least variance and the largest covariance belong to different tables.
            attained, excluded = self._range(0, SlopeEquations(self._boxes, 0))
            inner = np.array([min(inner[0], attained[0]), max(inner[1], attained[1])])
            ends = np.array([max(ends[0], excluded[0]), min(ends[1], excluded[1])])
        self._done = 2
        return ends[None], inner[None]


def _coefficient(
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
        **_inner(inner[0] * unit, inner[1] * unit, low, high),
    )


def _inner(inner_low: float, inner_high: float, low: float, high: float) -> dict[str, float]:
    """Return what is attained, where rounding has put the ends of a point past each other or past the range."""
    least, most = sorted((float(inner_low), float(inner_high)))
    return {"inner_lower": min(max(least, low), high), "inner_upper": min(max(most, low), high)}


def _enclosed_intercept(boxes: ScaledBoxes, coefficients: list[IntervalCoefficient]) -> tuple[float, Floats]:
    """Return the midpoints' intercept and bounds: mean(y - b x) for their b, less (beta - b) times the means."""
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
    return estimate, ends


def _intercept(boxes: ScaledBoxes, enclosed: tuple[float, Floats], ends: Floats, inner: Floats) -> IntervalCoefficient:
    """Bring the ends of the intercept back to the units of the data, or take those of the coefficients' ranges."""
    exponent, center = int(boxes.exponent[0]), float(boxes.center[0])
    estimate, bounds = enclosed
    low, high = (outward(float(end), exponent, bool(up), center) for up, end in enumerate(ends))
    low, high = max(low, float(bounds[0])), min(high, float(bounds[1]))
    inner_low, inner_high = (outward(float(end), exponent, not up, center) for up, end in enumerate(inner))
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
        **_inner(inner_low, inner_high, low, high),
    )
