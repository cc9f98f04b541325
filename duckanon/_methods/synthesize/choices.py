"""Choices from scores, one column after the other, and the relations between columns that they hand on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np

from duckanon._core.common import progress
from duckanon._core.common.arrays import Floats, Ints, Ints32, Reals

_ROUNDS = 60
_CLOSE = 5e-4  # the share of rows that are left for the last step
_LEARNT_FROM = 20_000  # rows; offsets hardly depend on more
_RIDGE = 0.01  # of each variance: what others leave of a feature may be next to nothing
_TO_NUMBERS = 0.3  # of what is handed on: with more, isolated people are recognised more often
_SETTLED = 65_536  # rows whose scores move at a time
_BEYOND = 2.326  # standard deviations above what is expected by chance: about 1 % of unrelated columns are beyond
_NULL = 1e-6  # of the largest variance of a column's features: a component that is none
_SUMMED = 16_384  # rows whose products are summed at a time


def chosen(scores: Reals, wanted: Ints) -> Ints:
    """Choose by the largest score of every row, with offsets such that each choice is made as often as it is wanted.

    Without offsets, the largest score makes rare choices rarer. Offsets are found by steps against the errors of the
    counts; the few rows that are still too many go where they lose least.

    Examples:
        >>> chosen(np.array([[3.0, 0, 0], [2, 1, 0], [1, 0, 0], [1, 0, 0.5]]), np.array([1, 2, 1])).tolist()
        [0, 1, 1, 2]
    """
    if scores.shape[1] == 2:
        codes: Ints = np.ones(len(scores), np.int64)
        codes[np.argsort(scores[:, 1] - scores[:, 0], kind="stable")[: wanted[0]]] = 0
        return codes
    offsets = _offsets(np.ascontiguousarray(scores[:_LEARNT_FROM]), wanted / max(int(wanted.sum()), 1))
    moved = scores + offsets
    codes = np.asarray(moved.argmax(axis=1), np.int64)
    _move(moved, codes, wanted)
    return codes


def _offsets(scores: Reals, shares: Reals) -> Reals:
    offsets = np.zeros(len(shares), scores.dtype)
    offsets[shares == 0] = -np.inf
    best, best_error, rate = offsets, np.inf, 2.0
    for _ in range(_ROUNDS):
        progress.check()
        errors = np.bincount((scores + offsets).argmax(axis=1), minlength=len(shares)) / len(scores) - shares
        total = float(np.abs(errors).sum())
        if total < best_error:
            best, best_error = offsets, total
        if total < _CLOSE:
            break
        offsets = (offsets - rate * errors).astype(scores.dtype)
        rate *= 0.97
    return best


def _move(scores: Reals, codes: Ints, wanted: Ints) -> None:
    """Move rows from choices that are made too often to those that are made too seldom, at the least loss."""
    room = wanted - np.bincount(codes, minlength=len(wanted))
    for choice in np.flatnonzero(room < 0).tolist():
        rows = np.flatnonzero(codes == choice)
        while room[choice] < 0:
            free = np.flatnonzero(room > 0)
            losses = scores[np.ix_(rows, free)] - scores[rows, choice][:, None]
            best = losses.argmax(axis=1)
            order = np.argsort(-losses[np.arange(len(rows)), best], kind="stable")[: -room[choice]]
            taken = []
            for index in order.tolist():
                target = int(free[best[index]])
                if room[target] > 0:
                    codes[rows[index]] = target
                    room[target] -= 1
                    room[choice] += 1
                    taken.append(index)
            rows = np.delete(rows, taken)


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
        for first in range(0, len(self.scores), _SETTLED):
            progress.check()
            block = self.scores[first : first + _SETTLED]
            block[:, end:] += (features(first, first + len(block)) - block[:, start:end]) @ weights


def covariance_within(matrix: Reals, labels: Ints32) -> Floats:
    """Return the covariance of rows less the means of their clusters.

    Examples:
        >>> covariance_within(np.array([[0.0, 1], [2, 3], [7, 9], [5, 5]]), np.array([0, 0, 1, 1], np.int32)).tolist()
        [[1.0, 1.5], [1.5, 2.5]]
    """
    counts = np.bincount(labels)
    sums = np.zeros((len(counts), matrix.shape[1]))
    products = np.zeros((matrix.shape[1], matrix.shape[1]))
    for start in range(0, len(matrix), _SUMMED):
        progress.check()
        block = matrix[start : start + _SUMMED]
        products += block.T @ block
        here = labels[start : start + _SUMMED]
        sums += np.stack([np.bincount(here, feature, len(counts)) for feature in block.T], axis=1)
    return np.asarray((products - (sums / counts[:, None]).T @ sums) / len(matrix))


def beyond_chance(covariance: Floats, widths: Sequence[int], people: int) -> Floats:
    """Shrink the covariances between columns, each of so many features, by what chance explains of them.

    The squared canonical correlations of two columns that have nothing to do with each other, times the people, add up
    to a chi-squared variable, with as many degrees of freedom as pairs of components. Shrinking by one minus what
    chance gives over what there is, is what James and Stein do. Between two columns nothing is left if there is no more
    than chance gives. What is shrunk may be no covariance any more: its negative components are left out.
    """
    starts = np.cumsum([0, *widths])
    scales, ranks = np.zeros_like(covariance), []
    for start, end in pairwise(starts.tolist()):
        values, vectors = np.linalg.eigh(covariance[start:end, start:end])
        is_kept = values > max(_NULL * float(values[-1]), 1e-12)
        scales[start:end, start:end] = np.where(is_kept, vectors / np.sqrt(np.where(is_kept, values, 1.0)), 0.0)
        ranks.append(np.count_nonzero(is_kept))
    squares = (scales.T @ covariance @ scales) ** 2
    found = people * np.add.reduceat(np.add.reduceat(squares, starts[:-1], axis=0), starts[:-1], axis=1)
    degrees = np.outer(ranks, ranks)
    chance = degrees + _BEYOND * np.sqrt(2 * degrees)
    shares = np.where(found > chance, 1 - chance / np.maximum(found, 1e-300), 0.0)
    np.fill_diagonal(shares, 1.0)
    values, vectors = np.linalg.eigh(covariance * np.repeat(np.repeat(shares, widths, axis=0), widths, axis=1))
    return np.asarray((vectors * np.maximum(values, 0.0)) @ vectors.T)
