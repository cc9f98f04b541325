"""How near to linearly dependent the predictors of any table within the boxes can be.

For every direction d the least standard deviation of d z over all tables is known exactly, and it changes by no more
than the sum of |change of d_i| times the largest standard deviation of z_i.  So finitely many directions bound it for
all.
"""

from __future__ import annotations

import heapq
from dataclasses import replace

import numpy as np

from duckanon.common.arrays import Floats
from duckanon.intervals.moments import Range, variance_range
from duckanon.intervals.scaled import EPS, Boxes

_DIRECTIONS = 600  # at most so many directions are looked at
_ENOUGH = 0.7  # share of the smallest value seen at which a bound is good enough


def form_variance(boxes: Boxes, form: Floats) -> Range:
    """Range of the variance of a linear form of the columns."""
    middle, reach = form @ boxes.middle, np.abs(form) @ boxes.half
    rounding = (8 + 4 * len(form)) * EPS * (np.abs(form) @ (np.abs(boxes.middle) + boxes.half))
    size = float((np.abs(middle) + reach + rounding).max()) or 1.0
    # The form is brought to scale as a column would be.
    lo, hi = (middle - reach - rounding) / size, (middle + reach + rounding) / size
    found = variance_range(replace(boxes, lo=lo[None], hi=hi[None]), 0)
    slack = 1 + 16 * EPS
    return Range(found.lower * size**2 / slack, found.upper * size**2 * slack, np.nan, np.nan)


def least_deviation(boxes: Boxes, rows: Floats) -> float:
    """Bound from below the standard deviation of d z over all tables and all unit vectors d.

    Parameters
    ----------
    boxes : Boxes
        The boxes.
    rows : float64, forms x columns
        The forms z.

    Returns
    -------
    float
        The bound; 0 where some table may have linearly dependent forms, or that could not be ruled out in time.
    """
    size = len(rows)
    largest = np.sqrt([form_variance(boxes, row).upper for row in rows])
    waiting: list[tuple[float, int, Floats, Floats]] = []
    seen, looked = np.inf, 0

    def look(center: Floats, half: Floats) -> None:
        """Bound a cell of directions on the surface of the cube."""
        nonlocal seen, looked
        looked += 1
        value = float(np.sqrt(form_variance(boxes, center @ rows).lower))
        seen = min(seen, value / float(np.linalg.norm(center)))
        bound = (value - float(half @ largest)) / float(np.linalg.norm(np.abs(center) + half))
        heapq.heappush(waiting, (bound, looked, center, half))

    for i in range(size):
        # Opposite directions have the same variance: one face of each pair will do.
        center, half = np.eye(size)[i], np.ones(size) - np.eye(size)[i]
        look(center, half)
    while waiting[0][0] < _ENOUGH * seen and looked < _DIRECTIONS and seen > 0:
        _, _, center, half = heapq.heappop(waiting)
        axis = int(np.argmax(half * largest))
        for side in (-0.5, 0.5):
            shift = np.eye(size)[axis] * half[axis]
            look(center + side * shift, half - 0.5 * shift)
    return max(waiting[0][0] * (1 - 64 * EPS), 0.0)
