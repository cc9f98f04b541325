"""Numbers for those who have none, so that the numbers of the others keep their relations."""

from __future__ import annotations

import numpy as np

from duckanon._core.common.arrays import Bools, Reals

_LEARNT_FROM = 20_000  # rows
_RIDGE = 1e-3  # of the rows: keeps groups of indicators, which add up to a constant, apart


def filled(matrix: Reals, column: int, is_regular: Bools, random: np.random.Generator) -> None:
    """Fill a column where it is not regular, in place: a regression's answer, and what a random donor has beyond it.

    Donors drawn at random for the whole number would weaken its relations by the share of those who have none, and the
    mean would give them a value of their own.
    """
    known, others = np.flatnonzero(is_regular), np.flatnonzero(~is_regular)
    if not len(others) or not len(known):
        return
    if len(known) > _LEARNT_FROM:
        known = random.choice(known, _LEARNT_FROM, replace=False)
    features = np.delete(matrix[known], column, axis=1).astype(np.float64)
    target = matrix[known, column].astype(np.float64)
    mean = features.mean(axis=0)
    features -= mean
    centre = float(target.mean())
    products = features.T @ features + _RIDGE * len(known) * np.eye(features.shape[1])
    factors = np.linalg.solve(products, features.T @ (target - centre))
    beyond = target - centre - features @ factors
    answers = (np.delete(matrix[others], column, axis=1) - mean) @ factors + centre
    matrix[others, column] = answers + random.choice(beyond, len(others))
