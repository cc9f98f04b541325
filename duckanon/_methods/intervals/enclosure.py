"""Regression coefficients over boxes, enclosed by an interval linear system: for any number of predictors.

Let b be any coefficients and l any linear form of the predictors.  Every table's own coefficients beta satisfy

    sum_i (beta_i - b_i) cov(l, x_i) = cov(l, y - b x),

and the range of each covariance is found exactly, box by box.  With l a row of the inverse covariance matrix of the
midpoints, cov(l, x_i) is nearly 1 for i = q and nearly 0 otherwise: a preconditioned interval linear system (Krawczyk,
Gauss-Seidel).  A second round takes b at the end of the range and lets the other coefficients take the corners of
theirs, so that one table must explain all covariances at once.

References:
    A. Neumaier, "Interval Methods for Systems of Equations" (1990), Chapter 4.
"""

from __future__ import annotations

from itertools import product

import numpy as np

from duckanon._core.common import progress
from duckanon._core.common.arrays import Floats
from duckanon._methods.intervals.covariance import largest_covariance
from duckanon._methods.intervals.rectangles import forms_of
from duckanon._methods.intervals.scaled import EPS, ScaledBoxes
from duckanon._methods.intervals.systems import least_deviation, narrowed, start_bound

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

    def enclosed_slopes(self, reached: Floats) -> Floats:
        """Enclose the coefficients of all predictors, predictors x 2: infinite where nothing could be ruled out.

        Some tables have the coefficients that are reached, a small one and a large one of each predictor.
        """
        inverse = np.asarray(np.linalg.inv(self.covariance), np.float64)
        right = np.array([self._range(row, self._residual(self.estimate)) for row in inverse])
        matrix = np.array([[self._range(row, unit) for unit in np.eye(self.size + 1)[1:]] for row in inverse])
        bound = start_bound(matrix, right)
        if bound is None:
            bound = self._radius()
        if bound is None:
            return np.tile([-np.inf, np.inf], (self.size, 1))
        ends = self.estimate[:, None] + narrowed(matrix, right, bound)
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
        progress.check()
        first = np.concatenate([[0.0], row])
        low = largest_covariance(forms_of(self.boxes, first, -other), self.relative, 0.1)
        high = largest_covariance(forms_of(self.boxes, first, other), self.relative, 0.1)
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
            progress.check()
            b = np.insert(np.array(corner), q, reached)
            scale = float(np.ptp(ends[q])) * float(lead[0])
            forms = forms_of(self.boxes, first, sign * self._residual(b))
            most = max(most, largest_covariance(forms, self.relative, scale).upper)
        bound = sign * reached + most / (lead[0] if most > 0 else lead[1])
        return float(bound + 16 * EPS * (abs(bound) + abs(reached)))
