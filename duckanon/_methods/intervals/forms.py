"""Two linear forms of a record over boxes, and what the largest mean of their product is found from.

References:
    REFERENCES.md, Boxes, "Exact ranges over boxes": separable bounds.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from duckanon._core.common.arrays import Floats
from duckanon._methods.intervals.scaled import EPS, ScaledBoxes


@dataclass(frozen=True)
class Peak:
    """Moments of the table in which every record is at the best point of its box for one (u, v)."""

    value: float  # the mean of the largest products, rounded up
    exact: float  # the same as computed
    # mean_a, mean_r: the means of the forms in that table
    mean_a: float
    mean_r: float
    second: Floats | None  # 2 x 2 float64 or None: the second moments of a and r about (u, v) in that table


class Forms(ABC):
    """Two linear forms over boxes, given by their coefficients of each column, brought to means of equal reach."""

    def __init__(self, boxes: ScaledBoxes, a: Floats, r: Floats) -> None:
        a, r = np.asarray(a, dtype=np.float64), np.asarray(r, dtype=np.float64)
        used = (a != 0) | (r != 0)
        self.slack = boxes.slack + 8 * np.count_nonzero(used) * EPS
        reach_a, reach_r = float(np.abs(a) @ boxes.mean_half), float(np.abs(r) @ boxes.mean_half)
        # The product of the two stays the same.
        ratio = np.sqrt(reach_r / reach_a) if reach_a > 0 and reach_r > 0 else 1.0
        self.ratio = float(2.0 ** np.round(np.log2(ratio)))
        self.a, self.r = a * self.ratio, r / self.ratio
        self.reach_a, self.reach_r = reach_a * self.ratio, reach_r / self.ratio
        self.reach_t = float(np.abs(self.a - self.r) @ boxes.mean_half) * (1 + self.slack)
        self.center_a, self.center_r = float(self.a @ boxes.mean_middle), float(self.r @ boxes.mean_middle)
        # size_a, size_r: the means of the squares that the forms have at most
        self.size_a, self.size_r = (float(np.abs(form) @ boxes.sizes @ np.abs(form)) for form in (self.a, self.r))

    @abstractmethod
    def peak(self, u: float, v: float, moments: bool = False) -> Peak:
        """Put every record at the best point of its box for (a - u)(r - v), with second moments if asked for."""
