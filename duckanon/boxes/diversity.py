"""Counting values that are far enough apart: l-diversity, counted and not assumed (`ERRATA.md`, Boxes, point 7)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from duckanon.boxes.nodes import Floats, Ints, Masks


def spread_counts(sorted_values: Floats, starts: Ints, sizes: Ints, epsilon: float, at_most: int) -> Ints:
    """Count, in every segment, the values that are pairwise at least epsilon apart.

    Parameters
    ----------
    sorted_values : array of float
        The segments one after the other, ascending within a segment.
    starts, sizes : arrays of int
        The segments; none is empty.
    epsilon : float
        The smallest distance of two values that count as different; 0 asks only that they differ.
    at_most : int
        Counting ends here.

    Returns
    -------
    int64, one a segment
        The largest number of such values, or `at_most` if there are more.

    Notes
    -----
    Taking the smallest value, then the next one that is far enough, and so on, gives the largest number.  One step of
    all segments is one bisection of all segments.
    """
    ends = starts + sizes
    counts = np.ones(len(starts), dtype=np.int64)
    current = sorted_values[starts]
    open_segments = np.arange(len(starts))
    at = starts.copy()
    for _ in range(at_most - 1):
        low, high = at[open_segments] + 1, ends[open_segments]
        value = current[open_segments]
        while (low < high).any():
            middle = np.minimum((low + high) // 2, ends[open_segments] - 1)
            probe = sorted_values[middle]
            far = (probe > value) & (probe - value >= epsilon)
            running = low < high
            high = np.where(running & far, middle, high)
            low = np.where(running & ~far, middle + 1, low)
        found = low < ends[open_segments]
        open_segments, low = open_segments[found], low[found]
        if not len(open_segments):
            break
        counts[open_segments] += 1
        at[open_segments] = low
        current[open_segments] = sorted_values[low]
    return counts


def diverse(
    values: Sequence[Floats],
    orders: Sequence[Ints],
    starts: Ints,
    sizes: Ints,
    l: int,  # noqa: E741 - the papers' name
    epsilon: Sequence[float],
) -> Masks:
    """Tell for every segment whether each column has at least l values at least its epsilon apart."""
    good = np.ones(len(starts), dtype=np.bool_)
    for column, order, distance in zip(values, orders, epsilon, strict=True):
        good &= spread_counts(column[order], starts, sizes, distance, l) >= l
    return good
