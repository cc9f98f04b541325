"""Choices made one after the other: what a choice differs from its scores by is handed on to the scores of the rest."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from duckanon._core.common import progress
from duckanon._core.common.arrays import Floats, Reals

_RIDGE = 0.01  # of each variance: what others leave of a feature may be next to nothing
_TO_NUMBERS = 0.3  # of what is handed on: with more, isolated people are recognised more often
_BLOCK = 65_536  # rows at a time


class Residuals:
    """Scores of new rows, the first of which become choices.

    A choice of the largest score is not the score, and taking the one for the other weakens what choices have to do
    with each other and with numbers. Once it is made, all later scores move by their regression on it: by as much as
    they would have been different had the scores been those of the choice. Each regression is that of what earlier
    choices leave.
    """

    def __init__(self, scores: Reals, covariance: Floats, numbers: int) -> None:
        """Take scores, the last so many of which are those of numbers, and their covariance."""
        self.scores = scores
        self._numbers = numbers
        self._left = covariance + np.diag(_RIDGE * np.diag(covariance) + 1e-12)

    def settle(self, start: int, end: int, features: Callable[[int, int], Reals]) -> None:
        """Move the scores that follow, now that the scores from `start` to `end` have become choices.

        ``features`` returns those of the choices that were made, from one row to another.
        """
        weights = np.linalg.solve(self._left[start:end, start:end], self._left[start:end, end:])
        self._left[end:, end:] -= self._left[end:, start:end] @ weights
        weights[:, weights.shape[1] - self._numbers :] *= _TO_NUMBERS
        weights = weights.astype(self.scores.dtype)
        if not weights.any():
            return
        for first in range(0, len(self.scores), _BLOCK):
            progress.check()
            block = self.scores[first : first + _BLOCK]
            block[:, end:] += (features(first, first + len(block)) - block[:, start:end]) @ weights
