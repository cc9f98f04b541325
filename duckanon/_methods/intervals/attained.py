"""Coefficients that some table within the boxes attains: the inner end of a range.

Two tables are climbed to.  In one every record moves to the end of its box to which the derivative points; in the other
to the point of its box where the product of the residual and the coefficient's lever, both as they are now, is largest:
these may be inside an edge, and farther away than a derivative sees.  Both go on until that gains nothing.  From each
all records move at once (L-BFGS), the records of a box in two halves.  What is found is attained, but may not be the
most: each of the two has been left behind by the other by a tenth.

References:
    REFERENCES.md, Boxes, points 1 and 2: the derivatives; "Regression with several predictors".
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize

from duckanon._core.common import progress
from duckanon._core.common.arrays import Floats
from duckanon._methods.intervals.moments import DEPENDENT
from duckanon._methods.intervals.rectangles import find_best_points
from duckanon._methods.intervals.scaled import EPS, ScaledBoxes

_CLIMB = 40  # steps at most; each gains less than the one before
_GAIN = 1e-9  # share of the coefficient that a step must gain to be followed by another
_STEPS = 150  # of L-BFGS; it settles after some 20 to 120
_SETTLED = 1e-6  # share of the climb that a step of L-BFGS must gain
_FEW = 20_000  # boxes up to which another start is worth its time
_VERY_FEW = 60  # boxes up to which some more are
_MORE = 8
_ROUNDINGS = 64  # times the rounding of a sum, by which what is found is taken back


class _Fit(NamedTuple):
    """A coefficient of one table."""

    value: float  # the coefficient; NaN where the predictors are dependent
    slopes: Floats  # columns x points: its derivatives by a point's values, per share of the weight
    # lever, residual: one per column: the forms whose product at a point, less their values at the mean, is what its
    # share moves the coefficient by
    lever: Floats
    residual: Floats
    mean: Floats  # one per column: the mean of the points
    constant: float  # what the lever is at the mean
    doubt: float  # the rounding error of the value at most


class CoefficientSearch:
    """Searches tables within the boxes, the target's column first, for extreme coefficients.

    No search is begun after the deadline, by `time.monotonic`.
    """

    def __init__(self, boxes: ScaledBoxes, deadline: float) -> None:
        self._boxes = boxes
        self._deadline = deadline
        self._middle = boxes.middle
        # Scaled boxes are rounded outward: tables stay that much inside.
        self._half = np.maximum(0.5 * (boxes.hi - boxes.lo) - 4 * EPS, 0.0)
        self._zero = -np.ldexp(boxes.center[1:], -boxes.exponent[1:])  # 0 of the data, in scaled units

    def find_end(self, coefficient: int | None, sign: float) -> float:
        """Find a large coefficient of a predictor that some table has, for sign -1 a small one.

        None is the intercept, less the target's center. It is not on the other side of the midpoints' coefficient, and
        NaN where that is undefined.
        """
        start = self._fit(self._middle, self._boxes.share, coefficient)
        best = start
        climbed = [
            self._climb(start, coefficient, sign, move) for move in (self._move_by_slopes, self._move_by_products)
        ]
        for table in self._list_starts(climbed):
            if time.monotonic() >= self._deadline or not np.isfinite(best.value):
                break
            fit = self._search_smoothly(table, coefficient, sign, start.value)
            if sign * fit.value - fit.doubt > sign * best.value - best.doubt:
                best = fit
        # All coefficients between the midpoints' and one that is attained are attained too.
        return sign * max(sign * best.value - best.doubt, sign * start.value)

    def find_end_near(self, table: Floats, coefficient: int | None, sign: float) -> float:
        """Find a large coefficient like `find_end`, by a search that begins with a table, columns x boxes."""
        start = self._fit(self._middle, self._boxes.share, coefficient)
        fit = self._search_smoothly(np.hstack([table, table]), coefficient, sign, start.value)
        return sign * (sign * fit.value - fit.doubt)

    def _climb(
        self, start: _Fit, coefficient: int | None, sign: float, move: Callable[[_Fit, float], Floats]
    ) -> Floats:
        """Move every record by the last fit, until that gains nothing."""
        points, best = self._middle, start
        for _ in range(_CLIMB):
            progress.check()
            moved = move(best, sign)
            fit = self._fit(moved, self._boxes.share, coefficient)
            if not sign * (fit.value - best.value) > _GAIN * abs(best.value):
                break
            points, best = moved, fit
        return points

    def _move_by_slopes(self, fit: _Fit, sign: float) -> Floats:
        """Move every record to the end of its box to which the derivative points."""
        return np.asarray(self._middle + np.sign(sign * fit.slopes) * self._half)

    def _move_by_products(self, fit: _Fit, sign: float) -> Floats:
        """Move every record to the point of its box where lever times residual is largest."""
        at_mean = float(fit.lever @ fit.mean) - fit.constant, float(fit.residual @ fit.mean)
        points = find_best_points(self._boxes, sign * fit.lever, fit.residual, None, sign * at_mean[0], at_mean[1])
        return np.clip(points, self._middle - self._half, self._middle + self._half)

    def _list_starts(self, climbed: list[Floats]) -> list[Floats]:
        """Return the tables from which the search begins, the two halves of all boxes beside each other."""
        starts = [np.hstack([points, points]) for points in climbed]
        boxes = len(self._boxes.share)
        generator = np.random.default_rng(1)
        for i in range(_MORE if boxes <= _VERY_FEW else int(boxes <= _FEW)):
            # Where derivatives vanish both halves stay together unless they begin apart.
            apart = self._middle + (2 * generator.random(self._middle.shape) - 1) * self._half
            corner = self._middle + generator.choice([-1.0, 1.0], self._middle.shape) * self._half
            starts.append(np.hstack([climbed[i % len(climbed)] if i < len(climbed) else corner, apart]))
        return starts

    def _search_smoothly(self, table: Floats, coefficient: int | None, sign: float, start: float) -> _Fit:
        """Move all records at once towards a larger sign * coefficient; `start` is that of the midpoints."""
        boxes = self._boxes
        # A box of an odd number of records has a larger half; one of a single record has only one.
        part = (boxes.records // 2) / boxes.records
        share = np.concatenate([boxes.share * (1 - part), boxes.share * part])
        middle, half = np.hstack([self._middle] * 2), np.hstack([self._half] * 2)
        best = self._fit(table, share, coefficient)
        size = abs(best.value - start) or 1.0
        # In these units a record of a large box and one of a small box count alike: three times fewer steps.
        unit = 1 / np.sqrt(np.maximum(share, share[share > 0].min()))

        def cost(offsets: Floats) -> tuple[float, Floats]:
            nonlocal best
            progress.check()
            moved = np.clip(offsets.reshape(middle.shape) * unit, -half, half)
            fit = self._fit(middle + moved, share, coefficient)
            if not np.isfinite(fit.value):
                return np.inf, np.zeros_like(offsets)
            if sign * fit.value > sign * best.value:
                best = fit
            return -sign * fit.value / size, (-sign * fit.slopes * share * unit / size).ravel()

        bounds = np.column_stack([-(half / unit).ravel(), (half / unit).ravel()])
        minimize(
            cost,
            (np.clip(table - middle, -half, half) / unit).ravel(),
            jac=True,
            bounds=bounds,
            method="L-BFGS-B",
            options={"maxiter": _STEPS, "maxfun": 2 * _STEPS, "ftol": _SETTLED, "gtol": 0},
        )
        return best

    def _fit(self, points: Floats, share: Floats, coefficient: int | None) -> _Fit:
        """Compute a coefficient of weighted points with its derivatives."""
        mean = points @ share
        gaps = points - mean[:, None]
        covariance = (gaps * share) @ gaps.T
        deviations = np.sqrt(np.diag(covariance)[1:])
        none = np.zeros(len(points))
        undefined = _Fit(np.nan, np.zeros_like(points), none, none, mean, 0.0, 0.0)
        if not (deviations > 0).all():
            return undefined
        correlations = covariance[1:, 1:] / np.outer(deviations, deviations)
        if np.linalg.eigvalsh(correlations)[0] <= DEPENDENT:
            return undefined
        inverse = np.linalg.inv(correlations) / np.outer(deviations, deviations)
        slopes = inverse @ covariance[1:, 0]
        # The coefficient is base + wanted @ slopes.
        if coefficient is None:
            base, wanted = float(mean[0]), self._zero - mean[1:]
        else:
            base, wanted = 0.0, np.eye(len(slopes))[coefficient]
        lever = wanted @ inverse
        constant = float(coefficient is None)
        pull, rest = lever @ gaps[1:], gaps[0] - slopes @ gaps[1:]
        by_target = constant + pull
        by_predictors = np.outer(lever, rest) - np.outer(slopes, by_target)
        size = 1 + float(np.abs(slopes).sum())
        doubt = _ROUNDINGS * self._boxes.slack * size * (constant + float(np.abs(lever).sum() + np.abs(wanted).max()))
        return _Fit(
            value=float(base + wanted @ slopes),
            slopes=np.vstack([by_target, by_predictors]),
            lever=np.concatenate([[0.0], lever]),
            residual=np.concatenate([[1.0], -slopes]),
            mean=mean,
            constant=constant,
            doubt=doubt,
        )
