"""The normal equations of all tables within the boxes: bounds of their solutions, and how near to singular they come.

A table's regression coefficients solve a linear system whose entries lie within known ranges.  Where that system is
near the identity its solutions are bounded by it alone.  Else they are bounded by the least standard deviation that any
combination of the predictors has in any table: for every direction d the least standard deviation of d z over all
tables is known exactly, and it changes by no more than the sum of |change of d_i| times the largest standard deviation
of z_i, so finitely many directions bound it for all.

References:
    A. Neumaier, "Interval Methods for Systems of Equations" (1990), Chapter 4.
"""

from __future__ import annotations

import heapq
from dataclasses import replace

import numpy as np

from duckanon._core.common import progress
from duckanon._core.common.arrays import Floats
from duckanon._methods.intervals.moments import Range, variance_range
from duckanon._methods.intervals.scaled import EPS, ScaledBoxes

_SWEEPS = 50  # of Gauss-Seidel over all equations; what a sweep gains shrinks geometrically
_SETTLED = 1e-9  # relative change of the bounds at which the sweeps end
_ALIGNED = 8  # steps towards a table of dependent predictors, from each start
_DIRECTIONS = 600  # at most so many directions are looked at
_ENOUGH = 0.7  # share of the smallest value seen at which a bound is good enough


def start_bound(matrix: Floats, right: Floats) -> Floats | None:
    """Bound the absolute values of the solutions of an interval linear system near the identity.

    The ends of the matrix are equations x unknowns x 2, those of the right sides equations x 2. None where the matrix
    is too far from the identity.
    """
    size = len(right)
    distance = np.abs(matrix - np.eye(size)[:, :, None]).max(axis=2)
    if np.abs(np.linalg.eigvals(distance)).max() >= 1 - 1e-9:  # the iteration below would hardly contract
        return None
    # |delta| <= |right| + distance |delta|; any positive vector that satisfies it strictly is a bound.  So the right
    # side is made a little larger, and above 0.
    bound = np.linalg.solve(np.eye(size) - distance, np.abs(right).max(axis=1) * (1 + 1e-9) + 1e-300)
    if (bound <= 0).any() or (np.abs(right).max(axis=1) + distance @ bound > bound).any():
        return None
    return np.asarray(bound)


def narrowed(matrix: Floats, right: Floats, bound: Floats) -> Floats:
    """Narrow the solutions of an interval linear system, bounded before, equation by equation (Gauss-Seidel)."""
    size = len(right)
    delta = np.stack([-bound, bound], axis=1)
    for _ in range(_SWEEPS):
        before = delta.copy()
        for row in range(size):
            rest = right[row].copy()
            for column in range(size):
                if column != row:
                    products = np.outer(matrix[row, column], delta[column]).ravel()
                    rest += np.array([-products.max(), -products.min()])
            if matrix[row, row, 0] > 0:
                quotients = np.divide.outer(rest, matrix[row, row]).ravel()
                slack = 16 * EPS * np.abs(quotients).max()
                delta[row] = [max(delta[row, 0], quotients.min() - slack), min(delta[row, 1], quotients.max() + slack)]
        if np.abs(delta - before).max() <= _SETTLED * np.abs(delta).max():
            break
    return delta


def _form_variance(boxes: ScaledBoxes, form: Floats) -> Range:
    """Range of the variance of a linear form of the columns."""
    middle, reach = form @ boxes.middle, np.abs(form) @ boxes.half
    rounding = (8 + 4 * len(form)) * EPS * (np.abs(form) @ (np.abs(boxes.middle) + boxes.half))
    size = float((np.abs(middle) + reach + rounding).max()) or 1.0
    # The form is brought to scale as a column would be.
    lo, hi = (middle - reach - rounding) / size, (middle + reach + rounding) / size
    variance = variance_range(replace(boxes, lo=lo[None], hi=hi[None]), 0)
    slack = 1 + 16 * EPS
    return Range(variance.lower * size**2 / slack, variance.upper * size**2 * slack, np.nan, np.nan)


def least_share(boxes: ScaledBoxes) -> float:
    """Look for a table whose predictors are nearly dependent, given that those of the midpoints are not.

    In turn a form's records come together as near as their boxes let them, and the form becomes the one that has lost
    most of its variance in that table. Return the least share of its variance among midpoints that some form of the
    predictors has in some table, of those that were met; 0 where the predictors of one are dependent.
    """
    middle, half, share = boxes.middle[1:], boxes.half[1:], boxes.share
    values, vectors = np.linalg.eigh(np.cov(middle, aweights=share, bias=True).reshape(len(middle), -1))
    white = vectors / np.sqrt(np.maximum(values, 1e-300))  # forms whose midpoints have the variance 1
    least = np.inf
    for start in white.T:
        form = start
        for _ in range(_ALIGNED):
            progress.check()
            least = min(least, _form_variance(boxes, np.concatenate([[0.0], form])).lower)
            if least <= 0:
                return 0.0
            # Every record goes as near to the form's mean as its box lets it.
            at, reach = form @ middle, np.abs(form) @ half
            moved = np.clip((at @ share - at) / np.where(reach > 0, reach, 1.0), -1.0, 1.0)
            points = middle + moved * np.sign(form)[:, None] * half
            gaps = white.T @ (points - (points @ share)[:, None])
            form = white @ np.linalg.eigh((gaps * share) @ gaps.T)[1][:, 0]
    return float(least)


def least_deviation(boxes: ScaledBoxes, rows: Floats) -> float:
    """Bound from below the standard deviation of d z over all tables and all unit vectors d.

    The rows are the forms z, forms x columns. 0 where some table may have linearly dependent forms, or that could not
    be ruled out in time.
    """
    size = len(rows)
    largest = np.sqrt([_form_variance(boxes, row).upper for row in rows])
    # Cells of directions on the surface of a cube, the one with the lowest bound first; numbers decide among equals.
    cells: list[tuple[float, int, Floats, Floats]] = []
    smallest, looked = np.inf, 0

    def add_cell(center: Floats, half: Floats) -> None:
        nonlocal smallest, looked
        looked += 1
        deviation = float(np.sqrt(_form_variance(boxes, center @ rows).lower))
        smallest = min(smallest, deviation / float(np.linalg.norm(center)))
        bound = (deviation - float(half @ largest)) / float(np.linalg.norm(np.abs(center) + half))
        heapq.heappush(cells, (bound, looked, center, half))

    for axis in range(size):
        # Opposite directions have the same variance: one face of each pair will do.
        add_cell(np.eye(size)[axis], np.ones(size) - np.eye(size)[axis])
    while cells[0][0] < _ENOUGH * smallest and looked < _DIRECTIONS and smallest > 0:
        _, _, center, half = heapq.heappop(cells)
        axis = int(np.argmax(half * largest))
        for side in (-0.5, 0.5):
            shift = np.eye(size)[axis] * half[axis]
            add_cell(center + side * shift, half - 0.5 * shift)
    return max(cells[0][0] * (1 - 64 * EPS), 0.0)
