"""Counting values that are far enough apart: l-diversity, counted and not assumed (REFERENCES.md, Boxes, point 7)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from duckanon._core.common.arrays import Bools, Floats, Ints


def spread_counts(sorted_values: Floats, starts: Ints, sizes: Ints, epsilon: float, at_most: int) -> Ints:
    """Count in every segment the values that are pairwise at least epsilon apart, up to `at_most`.

    Taking the smallest value, then the next one that is far enough, and so on, gives the largest number. One step of
    all segments is one bisection of all segments. The segments follow each other, ascending within a segment, and none
    is empty; an epsilon of 0 asks only that values differ.

    Examples:
        >>> spread_counts(np.array([1.0, 2.0, 4.0, 7.0]), np.array([0]), np.array([4]), epsilon=2, at_most=9).tolist()
        [3]
    """
    ends = starts + sizes
    counts = np.ones(len(starts), dtype=np.int64)
    current = sorted_values[starts]
    open_segments = np.arange(len(starts))
    position = starts.copy()  # of the value taken last
    for _ in range(at_most - 1):
        low, high = position[open_segments] + 1, ends[open_segments]
        value = current[open_segments]
        while (low < high).any():
            middle = np.minimum((low + high) // 2, ends[open_segments] - 1)
            probe = sorted_values[middle]
            far = (probe > value) & (probe - value >= epsilon)
            running = low < high
            high = np.where(running & far, middle, high)
            low = np.where(running & ~far, middle + 1, low)
        has_next = low < ends[open_segments]
        open_segments, low = open_segments[has_next], low[has_next]
        if not len(open_segments):
            break
        counts[open_segments] += 1
        position[open_segments] = low
        current[open_segments] = sorted_values[low]
    return counts


def diverse(
    values: Sequence[Floats],
    orders: Sequence[Ints],
    starts: Ints,
    sizes: Ints,
    l: int,  # noqa: E741 - the papers' name
    epsilon: Sequence[float],
) -> Bools:
    """Tell for every segment whether each column has at least l values at least its epsilon apart.

    `orders` has for each column the records by segment, and by the column's value within a segment; none is empty.
    """
    good = np.ones(len(starts), dtype=np.bool_)
    for column, order, distance in zip(values, orders, epsilon, strict=True):
        good &= spread_counts(column[order], starts, sizes, distance, l) >= l
    return good
