"""Numbers as normal quantiles of their ranks."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtri

from duckanon._core.common.arrays import Floats, Matrix


class NormalScores:
    """Numbers as normal quantiles of their ranks, so that no far tail hides who is isolated in the middle.

    Ranks are those among the people that it was fitted to. A column of at most two values, such as the indicator of a
    category, stays as it is.
    """

    def __init__(self, people: Matrix) -> None:
        self._sorted: list[Floats | None] = []
        for column in people.T:
            ordered = np.sort(column)
            has_few = np.count_nonzero(ordered[1:] > ordered[:-1]) < 2
            self._sorted.append(None if has_few else ordered)

    def __call__(self, rows: Matrix) -> Matrix:
        """Return the scores of rows; what lies beyond all people scores as their farthest."""
        result = np.array(rows, np.float64)
        for index, ordered in enumerate(self._sorted):
            if ordered is not None:
                values = rows[:, index]
                middle = np.searchsorted(ordered, values, "left") + np.searchsorted(ordered, values, "right")
                result[:, index] = ndtri(np.clip(middle / 2, 0.5, len(ordered) - 0.5) / len(ordered))
        return result
