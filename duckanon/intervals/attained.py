"""Coefficients that some table within the boxes attains: the inner end of a range.

Every record first moves to the end of its box to which the derivative points, again and again until that gains nothing;
then all move at once (L-BFGS), the records of a box in two halves.  What is found is attained, but may not be the most.

References
----------
REFERENCES.md, Boxes, points 1 and 2: the derivatives; "Regression with several predictors".
"""

from __future__ import annotations

import time
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize

from duckanon.common import progress
from duckanon.common.arrays import Floats
from duckanon.intervals.influence import DEPENDENT
from duckanon.intervals.scaled import EPS, ScaledBoxes

_CLIMB = 40  # steps at most; each gains less than the one before
_STEPS = 40  # of L-BFGS
_FEW = 600  # boxes up to which a second start is worth its time
_VERY_FEW = 60  # boxes up to which some more are
_MORE = 4
_ROUNDINGS = 64  # times the rounding of a sum, by which what is found is taken back


class _Fit(NamedTuple):
    """A coefficient of one table.

    Attributes
    ----------
    value : float
        The coefficient; NaN where the predictors are dependent.
    slopes : float64, columns x points
        Its derivatives by a point's values, per share of the weight.
    doubt : float
        The rounding error of the value at most.
    """

    value: float
    slopes: Floats
    doubt: float


class Attained:
    """Searches tables within the boxes for extreme coefficients.

    Parameters
    ----------
    boxes : ScaledBoxes
        The target's column first, then the predictors.
    deadline : float
        The time, by `time.monotonic`, from which on no search is begun.
    """

    def __init__(self, boxes: ScaledBoxes, deadline: float) -> None:
        self._boxes = boxes
        self._deadline = deadline
        self._middle = boxes.middle
        # Scaled boxes are rounded outward: tables stay that much inside.
        self._half = np.maximum(0.5 * (boxes.hi - boxes.lo) - 4 * EPS, 0.0)
        self._zero = -np.ldexp(boxes.center[1:], -boxes.exponent[1:])  # 0 of the data, in scaled units

    def end(self, coefficient: int | None, sign: float) -> float:
        """Find a large coefficient that some table has, for sign -1 a small one.

        Parameters
        ----------
        coefficient : int or None
            Which predictor's; None is the intercept, less the target's center.
        sign : float
            1 or -1.

        Returns
        -------
        float
            Not on the other side of the midpoints' coefficient, and NaN where that is undefined.
        """
        share = self._boxes.share
        start = self._fit(self._middle, share, coefficient)
        points, best, fit = self._middle, start, start
        for _ in range(_CLIMB):
            progress.check()
            moved = self._middle + np.sign(sign * fit.slopes) * self._half
            fit = self._fit(moved, share, coefficient)
            if not sign * fit.value > sign * best.value + 1e-12 * abs(best.value):
                break
            points, best = moved, fit
        for first, second in self._starts(points):
            if time.monotonic() >= self._deadline or not np.isfinite(best.value):
                break
            found = self._smooth(np.hstack([first, second]), coefficient, sign)
            if sign * found.value - found.doubt > sign * best.value - best.doubt:
                best = found
        # All coefficients between the midpoints' and one that is attained are attained too.
        return sign * max(sign * best.value - best.doubt, sign * start.value)

    def _starts(self, points: Floats) -> list[tuple[Floats, Floats]]:
        """Return the tables from which the search begins: the two halves of all boxes."""
        starts = [(points, points)]
        boxes = points.shape[1]
        generator = np.random.default_rng(1)
        for _ in range(_MORE if boxes <= _VERY_FEW else int(boxes <= _FEW)):
            # Where derivatives vanish both halves stay together unless they begin apart.
            apart = generator.random(points.shape)
            starts.append((points, self._middle + (2 * apart - 1) * self._half))
        return starts

    def _smooth(self, table: Floats, coefficient: int | None, sign: float) -> _Fit:
        """Move all records at once towards a larger sign * coefficient."""
        boxes = self._boxes
        # A box of an odd number of records has a larger half; one of a single record has only one.
        part = (boxes.records // 2) / boxes.records
        share = np.concatenate([boxes.share * (1 - part), boxes.share * part])
        middle, half = np.hstack([self._middle] * 2), np.hstack([self._half] * 2)
        best = self._fit(table, share, coefficient)

        def cost(offsets: Floats) -> tuple[float, Floats]:
            nonlocal best
            progress.check()
            fit = self._fit(middle + offsets.reshape(middle.shape), share, coefficient)
            if not np.isfinite(fit.value):
                return np.inf, np.zeros_like(offsets)
            if sign * fit.value > sign * best.value:
                best = fit
            return -sign * fit.value, (-sign * fit.slopes * share).ravel()

        bounds = np.column_stack([-half.ravel(), half.ravel()])
        minimize(
            cost,
            np.clip(table - middle, -half, half).ravel(),
            jac=True,
            bounds=bounds,
            method="L-BFGS-B",
            options={"maxiter": _STEPS, "maxfun": 2 * _STEPS},
        )
        return best

    def _fit(self, points: Floats, share: Floats, coefficient: int | None) -> _Fit:
        """Compute a coefficient of weighted points with its derivatives."""
        mean = points @ share
        gaps = points - mean[:, None]
        covariance = (gaps * share) @ gaps.T
        deviations = np.sqrt(np.diag(covariance)[1:])
        undefined = _Fit(np.nan, np.zeros_like(points), 0.0)
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
        return _Fit(float(base + wanted @ slopes), np.vstack([by_target, by_predictors]), doubt)
