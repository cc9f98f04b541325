"""Optimal k-anonymous partitions of one column, and its quantiles.

Buckets are contiguous, equal values stay together, and every bucket holds at least k rows.

References:
    Probabilistic Anonymity, Section 4.1, Definitions 6 to 9 and Theorem 5; REFERENCES.md, points 5 and 6 on that paper.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from duckanon._core.common.arguments import checked
from duckanon._core.common.arrays import Floats, Ints
from duckanon._core.common.rules import OneOf, Whole
from duckanon._methods.generalize.partition.costs import COSTS, Column
from duckanon._methods.generalize.partition.search import best_starts


@dataclass(frozen=True)
class Partition:
    """A partition of a sorted column."""

    starts: Ints  # one per bucket: index of the first distinct value of each bucket; the first one is 0
    costs: Floats | Ints  # float64 (int64 for ranks), one per bucket: what each bucket costs


@checked(k=Whole(1), cost=OneOf(*COSTS))
def optimal_partition(values: ArrayLike, counts: ArrayLike, k: int, cost: str = "squares") -> Partition:
    """Find the cheapest partition of a column into buckets of at least k rows (Probabilistic Anonymity, Section 4.1).

    The column is its distinct values, strictly increasing, and the rows of each. The costs are those of `COSTS`; the
    total is their sum, for 'center' their maximum. Of several cheapest partitions the one with the smallest last bucket
    is taken, then the smallest one before it, and so on. For 'center' this makes every bucket as small as the largest
    range allows, and what lies left of any bucket is itself an optimal partition.

    Examples:
        >>> optimal_partition([20, 21, 50, 52, 53], [1, 1, 1, 1, 1], k=2).starts.tolist()
        [0, 2]
    """
    column = Column.of(np.ascontiguousarray(values, dtype=np.float64), _positive(counts, k))
    if column.values.shape != column.counts.shape:
        raise ValueError(f"values must be as many as counts, {column.counts.size}; got {column.values.size}.")
    if not (np.isfinite(column.values).all() and (column.values[1:] > column.values[:-1]).all()):
        raise ValueError("values must be finite and strictly increasing.")
    starts = _starts(_scaled(column), k, cost)
    return Partition(starts, COSTS[cost].final(column, starts))


@checked(k=Whole(1))
def quantile_partition(counts: ArrayLike, k: int) -> Partition:
    """Find the quantile transformation: the least rank difference with at least k rows in a bucket.

    Without ties the n rows are cut into n // k buckets whose sizes differ by at most one, larger and smaller ones
    evenly mixed (Probabilistic Anonymity, Definition 9). With ties equal values stay together, and the rank difference
    is the smallest that any such partition has (REFERENCES.md, Probabilistic Anonymity, point 6): floor(m^2 / 4) for a
    bucket of m rows. The counts are the rows of each distinct value, in ascending order of the values.
    """
    rows_of_value = _positive(counts, k)
    column = Column.of(np.zeros(len(rows_of_value)), rows_of_value)
    if column.tied:
        starts = _starts(column, k, "ranks")
        return Partition(starts, COSTS["ranks"].final(column, starts))
    return even_partition(len(rows_of_value), len(rows_of_value) // k)


def even_partition(rows: int, buckets: int) -> Partition:
    """Cut rows without ties into buckets whose sizes differ by at most one: the quantile transformation without ties.

    Examples:
        >>> even_partition(7, 3).starts.tolist()
        [0, 2, 4]
    """
    starts = np.arange(buckets, dtype=np.int64) * rows // buckets
    sizes = np.diff(np.append(starts, rows))
    return Partition(starts, sizes * sizes // 4)


@checked(buckets=Whole(1))
def quantile_buckets(counts: ArrayLike, buckets: int) -> Partition:
    """Cut a column into at most a given number of buckets of about equal size, equal values together.

    The j-th cut of b is put at the border between two values that is nearest to row j n / b (the left one of two
    equally near). Cuts that fall together are made once. Without ties the sizes differ by at most one; no bucket is
    empty.
    """
    rows_of_value = _positive(counts, 1)
    column = Column.of(np.zeros(len(rows_of_value)), rows_of_value)
    rows = int(column.before[-1])
    cuts = min(int(buckets), rows)
    # All positions are multiplied by the number of buckets, so that every comparison is one of integers.
    wanted = np.arange(1, cuts, dtype=np.int64) * rows
    borders = column.before * cuts
    above = np.searchsorted(borders, wanted)
    nearest = np.where(borders[above] - wanted < wanted - borders[above - 1], above, above - 1)
    starts = np.unique(np.concatenate([[0], nearest[nearest < len(rows_of_value)]])).astype(np.int64)
    return Partition(starts, COSTS["ranks"].final(column, starts))


def _positive(counts: ArrayLike, k: int) -> Ints:
    """Return the counts as an array, or say what is wrong with them."""
    rows_of_value = np.ascontiguousarray(counts, dtype=np.int64)
    if rows_of_value.ndim != 1 or not (rows_of_value >= 1).all():
        raise ValueError("counts must be a list of whole numbers of at least 1.")
    if (rows := int(rows_of_value.sum())) < k:
        raise ValueError(f"k must be at most the number of rows, {rows}; got {k}.")
    return rows_of_value


def _scaled(column: Column) -> Column:
    """Return the column times a power of two if squares of its distances would overflow or vanish."""
    half_range = float(column.values[-1] / 2 - column.values[0] / 2)
    # Squares of such distances, times any number of rows, stay well inside 1e-308 to 1e308.
    if half_range == 0 or 1e-100 < half_range < 1e100:
        return column
    return Column(np.ldexp(column.values, -int(np.frexp(half_range)[1])), column.counts, column.before)


def _starts(column: Column, k: int, cost: str) -> Ints:
    if int(column.counts.min()) >= k:
        return np.arange(len(column.counts), dtype=np.int64)  # no cost gains by putting two values together
    return best_starts(column, k, COSTS[cost])
