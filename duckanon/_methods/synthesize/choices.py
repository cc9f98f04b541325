"""Choices from scores: every row takes the choice of its largest score, after offsets that make the counts right."""

from __future__ import annotations

import numpy as np

from duckanon._core.common import progress
from duckanon._core.common.arrays import Ints, Reals

_ROUNDS = 60
_CLOSE = 5e-4  # the share of rows that are left for the last step
_LEARNT_FROM = 20_000  # rows; offsets hardly depend on more


def chosen(scores: Reals, wanted: Ints) -> Ints:
    """Choose for every row (of rows by choices), such that each choice is made as often as it is wanted.

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
