"""Choices between many values, such as 900 districts: a few coordinates of each in place of an indicator each."""

from __future__ import annotations

import numpy as np

from duckanon.common import progress
from duckanon.common.arrays import Floats, Ints, Reals

WIDE = 40
"""Choices of more values are given coordinates: indicators cost the square of their number."""
_COORDINATES = 8
_LEARNT_FROM = 10_000  # rows from which offsets are learnt
_ROUNDS = 80
_FIRST_STEP, _LONGER, _SHORTER = 0.05, 1.3, 0.5  # steps grow while they go one way, and shrink where they turn
_BLOCK = 2**24  # scores that are held at a time


def coordinates(codes: Ints, choices: int, others: Reals) -> Reals:
    """Return coordinates of choices by which they differ most in the other features.

    Parameters
    ----------
    codes
        The choice of every row.
    choices
        How many there are.
    others
        The other features of every row.

    Returns
    -------
    numpy.ndarray
        Choices by coordinates, each of mean 0 and variance 1 over the rows.

    Notes
    -----
    All that is linear between a choice and the other features are the means of these for each value, of which the
    principal directions are taken.
    """
    counts = np.bincount(codes, minlength=choices).astype(np.float64)
    sums = np.stack([np.bincount(codes, column, choices) for column in others.T.astype(np.float64)], axis=1)
    means = sums / np.maximum(counts, 1)[:, None] - others.mean(axis=0, dtype=np.float64)
    weights = np.sqrt(counts / counts.sum())[:, None]
    _, spread, directions = np.linalg.svd(weights * means, full_matrices=False)
    kept = min(_COORDINATES, int((spread > 1e-9 * max(spread[0], 1e-300)).sum()))
    made: Reals = (means @ directions[:kept].T / spread[:kept]).astype(np.float32)
    return made


def nearest(scores: Reals, places: Reals, wanted: Ints) -> Ints:
    """Choose for every row the value whose coordinates are nearest, after offsets that make the counts nearly right.

    Parameters
    ----------
    scores
        The coordinates of every row.
    places
        Those of the choices.
    wanted
        How often each choice is to be made.
    """
    offsets = _offsets(scores[:_LEARNT_FROM] @ places.T, -(places**2).sum(axis=1) / 2, wanted / max(wanted.sum(), 1))
    codes = np.empty(len(scores), np.int64)
    rows = max(1, _BLOCK // len(places))
    for start in range(0, len(scores), rows):
        progress.check()
        codes[start : start + rows] = (scores[start : start + rows] @ places.T + offsets).argmax(axis=1)
    return codes


def _offsets(scores: Reals, start: Reals, shares: Floats) -> Reals:
    """Find what to add to scores so that each choice is the largest in about its share of the rows."""
    offsets = np.where(shares > 0, start, -np.inf).astype(scores.dtype)
    best, best_error = offsets, np.inf
    steps, before = np.full(len(shares), _FIRST_STEP), np.zeros(len(shares))
    for _ in range(_ROUNDS):
        progress.check()
        errors = np.bincount((scores + offsets).argmax(axis=1), minlength=len(shares)) - shares * len(scores)
        total = float(np.abs(errors).sum())
        if total < best_error:
            best, best_error = offsets, total
        signs = np.where(np.abs(errors) < 1, 0, np.sign(errors))
        steps = np.where(signs == before, steps * _LONGER, steps * _SHORTER)
        offsets = (offsets - steps * signs).astype(scores.dtype)
        before = signs
    return best
