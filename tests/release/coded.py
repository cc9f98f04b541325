"""What coarse releases may code: the values of fewer than k people beyond an end, and of fewer than k off the unit."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def check_held(values: Sequence, low: Sequence, high: Sequence, people: Sequence | None, k: int) -> None:
    """Require that intervals hold the values of their records, but for those of fewer than k people at each end."""
    values, low, high = (np.asarray(given) for given in (values, low, high))
    whose = np.arange(len(values)) if people is None else np.asarray(people)

    def fewer(rows: np.ndarray) -> bool:
        return len(set(whose[rows].tolist()) - {None, -1}) < k

    assert fewer(values < low.min())
    assert fewer(values > high.max())
    inside = (low.min() <= values) & (values <= high.max())
    assert fewer(inside & ((values < low) | (values > high)))
    assert (low[values < low.min()] == low.min()).all()
    assert (high[values > high.max()] == high.max()).all()
