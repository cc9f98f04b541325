"""How far numbers are moved where those of a few people are never released."""

from __future__ import annotations

import numpy as np

from duckanon._core.common.arrays import Ints, run_lengths, run_starts
from duckanon._methods.releasable import marginals
from duckanon._methods.releasable.grids import off_taken

_NEIGHBOURS = 0.001  # of rare places, such as those of unrounded numbers: how far they are moved need not be counted


def are_apart(rare: Ints, step: int) -> bool:
    """Tell whether hardly any two rare places are neighbours: then one moves by a step, and past no other number."""
    return bool(np.count_nonzero(rare[1:] == rare[:-1] + step) <= _NEIGHBOURS * len(rare))


def moved_share(ordered: Ints, rare: Ints, step: int) -> float:
    """Return the largest share of rows that is moved past some number, where none that is rare comes out."""
    if are_apart(rare, step):
        return 0.0
    values, rows = _counted(ordered)
    moved = off_taken(values, rare, step, int(values[0]), int(values[-1]))
    return 1.0 if moved is None else marginals.distance(values, moved, rows)


def piled(ordered: Ints, rare: Ints, step: int) -> float:
    """Return how many times as often two rows have the same number, where none that is rare comes out."""
    values, rows = _counted(ordered)
    moved = off_taken(values, rare, step, int(values[0]), int(values[-1]))
    if moved is None:
        return np.inf
    together = np.add.reduceat(rows, run_starts(moved)).astype(np.float64)
    return float((together**2).sum() / (rows.astype(np.float64) ** 2).sum())


def _counted(ordered: Ints) -> tuple[Ints, Ints]:
    starts = run_starts(ordered)
    return ordered[starts], run_lengths(starts, len(ordered))
