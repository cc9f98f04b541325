"""Runs of equal values in sorted arrays."""

from __future__ import annotations

import numpy as np

from duckanon._core.common.arrays import Array, Ints


def run_starts(sorted_values: Array) -> Ints:
    """Return the index at which each run of equal values begins; of rows where the array has several columns."""
    if len(sorted_values) == 0:
        return np.empty(0, np.int64)
    differs = sorted_values[1:] != sorted_values[:-1]
    if differs.ndim > 1:
        differs = differs.any(axis=tuple(range(1, differs.ndim)))
    is_start = np.empty(len(sorted_values), dtype=bool)  # filled in place: searches ask thousands of times a second
    is_start[0] = True
    is_start[1:] = differs
    return is_start.nonzero()[0].astype(np.int64, copy=False)


def run_lengths(starts: Ints, entries: int) -> Ints:
    """Return the length of each run, given where the runs begin and how many entries there are in all."""
    lengths = np.empty_like(starts)
    if len(starts):
        np.subtract(starts[1:], starts[:-1], out=lengths[:-1])
        lengths[-1] = entries - starts[-1]
    return lengths


def distinct(values: Ints) -> Ints:
    """Return the different values, ascending.

    By sorting: `numpy.unique` of version 2.4 puts them into a hash table first, which takes five times as long.
    """
    ordered = np.sort(values)
    return ordered[run_starts(ordered)]
