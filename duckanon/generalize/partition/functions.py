"""Partitions of one column of a table, bucket by bucket: what ``anon.quantile_partition`` and its like return."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from duckanon.common import values as column_values
from duckanon.common.arguments import OneOf, Whole, checked, refuse_unless
from duckanon.common.labels import Scale
from duckanon.generalize.declared import PARTITION
from duckanon.generalize.partition.fit import (
    Partition,
    even_partition,
    optimal_partition,
    quantile_buckets,
    quantile_partition,
)


@checked(k=Whole(1, null=True), buckets=Whole(1, null=True))
def quantile(column: pa.Array | None, *, name: str, k: int | None, buckets: int | None, nulls: str) -> pa.Table:
    """Report the quantile transformation of a column: by the least rows of a bucket, or by the number of buckets."""
    if (k is None) == (buckets is None):
        raise ValueError("give one of k, the least rows of a bucket, and buckets, their number.")
    least, most = k or 1, buckets or 1
    values, counts, scale = _distinct(column, name, nulls)
    if counts is not None:
        partition = quantile_partition(counts, least) if buckets is None else quantile_buckets(counts, most)
    elif least > len(values):
        raise ValueError(f"k must be at most the number of rows, {len(values)}; got {k}.")
    else:
        partition = even_partition(len(values), len(values) // least if buckets is None else min(most, len(values)))
    return _report(values, counts, scale, partition)


@checked(k=Whole(1))
def optimal(column: pa.Array | None, *, name: str, k: int, cost: str, nulls: str) -> pa.Table:
    """Report the partition of a column into buckets of at least k rows whose cost is the least."""
    values, counts, scale = _distinct(column, name, nulls)
    all_counts = np.ones(len(values), np.int64) if counts is None else counts
    return _report(values, counts, scale, optimal_partition(values, all_counts, k, cost))


def _distinct(
    column: pa.Array | None, name: str, nulls: str
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64] | None, Scale]:
    """Return the distinct values of a column, ascending, and how many rows have each: None where it is one each."""
    refuse_unless(OneOf("error", "drop"), "nulls", nulls)
    if column is None or not len(column):
        raise ValueError("the table has no rows to look at.")
    numbers, valid, scale = column_values.numbers(name, column)
    if not valid.all() and nulls == "error":
        raise ValueError(f"column \"{name}\" has {int((~valid).sum())} NULLs; leave them out with nulls := 'drop'.")
    if not len(numbers):
        raise ValueError(f'column "{name}" has no values but NULL.')
    values = np.sort(numbers)
    is_new = values[1:] != values[:-1]
    if is_new.all():
        return values, None, scale
    starts = np.flatnonzero(np.concatenate([[True], is_new]))
    return values[starts], np.diff(np.append(starts, len(values))), scale


def _report(
    values: npt.NDArray[np.float64], counts: npt.NDArray[np.int64] | None, scale: Scale, partition: Partition
) -> pa.Table:
    starts = partition.starts
    ends = np.append(starts[1:], len(values))
    if counts is None:
        rows = ends - starts
        median = values[starts + (rows - 1) // 2]
        sums = np.add.reduceat(values, starts)
    else:
        rows = np.add.reduceat(counts, starts)
        below = np.cumsum(counts)
        median = values[np.searchsorted(below, below[starts] - counts[starts] + (rows + 1) // 2)]
        sums = np.add.reduceat(values * counts, starts)
    means = np.clip(sums / rows, values[starts], values[ends - 1])  # rounding may carry them out
    edges = [values[0], *(scale.readable(values[at - 1], values[at]) for at in starts[1:]), values[-1]]
    texts = [[scale.text(x) for x in numbers] for numbers in (edges[:-1], edges[1:], median, means)]
    columns = [np.arange(1, len(starts) + 1), *texts[:2], rows, *texts[2:], partition.costs]
    return pa.table(
        [pa.array(column, field.type) for column, field in zip(columns, PARTITION, strict=True)], schema=PARTITION
    )
