"""Runs of equal values in sorted arrays."""

from __future__ import annotations

import numpy as np

from duckanon.common.arrays import Array, Ints


def run_starts(sorted_values: Array) -> Ints:
    """Return the index at which each run of equal values begins; of rows where the array has several columns."""
    if len(sorted_values) == 0:
        return np.empty(0, np.int64)
    differs = sorted_values[1:] != sorted_values[:-1]
    if differs.ndim > 1:
        differs = differs.any(axis=tuple(range(1, differs.ndim)))
    return np.flatnonzero(np.concatenate([[True], differs])).astype(np.int64)
