"""Random samples of a table's rows."""

from __future__ import annotations

import numpy as np

from duckanon._core.common.arrays import Ints


def sampled_rows(count: int, available: int, random: np.random.Generator) -> Ints:
    """Draw rows without replacement; return their positions in ascending order.

    Parameters
    ----------
    count
        How many rows to draw. Where the table has no more than these, all are returned and nothing is drawn.
    available
        How many rows the table has.
    random
        Draws the rows.

    Examples
    --------
    >>> sampled_rows(5, 3, np.random.default_rng(0)).tolist()
    [0, 1, 2]
    """
    if count >= available:
        return np.arange(available)
    return np.sort(random.choice(available, count, replace=False))
