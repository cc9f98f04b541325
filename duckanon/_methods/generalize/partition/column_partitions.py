"""Partitions of one column of a table, bucket by bucket: what ``anon.quantile_partition`` and its like return."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from duckanon._core.common import labels, progress
from duckanon._core.common.arrays import Floats, Ints
from duckanon._core.common.labels import MICROSECONDS_PER_DAY, Scale
from duckanon._core.common.values import exact_numbers, is_time_scale
from duckanon._methods.generalize.declared import PARTITION_ROWS
from duckanon._methods.generalize.partition.cuts import cuts
from duckanon._methods.generalize.partition.fit import (
    Partition,
    even_partition,
    optimal_partition,
    quantile_buckets,
    quantile_partition,
)

_AT_ONCE = 10_000  # cuts that are found together
NAMED_ROWS = 10  # how many rows make a value one that may be named, where the caller does not say k


def quantile(
    column: pa.Array | None, *, col: str, k: int | None, buckets: int | None, label: str, nulls: str
) -> pa.Table:
    """Report the quantile transformation of a column: by the least rows of a bucket, or by the number of buckets."""
    least, most = k or 1, buckets or 1
    values = _distinct(column, col, nulls, NAMED_ROWS if k is None else k)
    counts, rows = values.part_counts, values.rows
    if least > rows:
        raise ValueError(f"k must be at most the number of rows, {rows}; got {k}.")
    if counts is not None:
        partition = quantile_partition(counts, least) if buckets is None else quantile_buckets(counts, most)
    else:
        partition = even_partition(rows, rows // least if buckets is None else min(most, rows))
    return _report(values, partition, label)


def optimal(column: pa.Array | None, *, col: str, k: int, cost: str, label: str, nulls: str) -> pa.Table:
    """Report the partition of a column into buckets of at least k rows whose cost is the least."""
    values = _distinct(column, col, nulls, k)
    counts = np.ones(values.rows, np.int64) if values.part_counts is None else values.part_counts
    partition = optimal_partition(values.numbers[values.parts], counts, k, cost)
    if is_time_scale(values.scale):
        # Moments are microseconds here; the square of one says nothing to anybody.
        day = float(MICROSECONDS_PER_DAY)
        partition = replace(partition, costs=partition.costs / (day**2 if cost == "squares" else day))
    return _report(values, partition, label)


@dataclass(frozen=True)
class _Values:
    """The distinct values of a column."""

    numbers: Floats  # strictly increasing: the values
    counts: Ints | None  # how many rows have each; None where it is one each
    # the first value of each part. A part is one value, or several between which no number can be written: a cut there
    # would be somebody's value, so that they are one value to a partition.
    parts: Ints
    scale: Scale
    least: int  # how many rows make a value one that may be named

    @property
    def rows(self) -> int:
        """The number of rows."""
        return len(self.numbers) if self.counts is None else int(self.counts.sum())

    @property
    def part_counts(self) -> Ints | None:
        """The rows of each part; None where it is one each."""
        if self.counts is not None:
            return np.add.reduceat(self.counts, self.parts)
        is_one_each = len(self.parts) == len(self.numbers)
        return None if is_one_each else np.diff(np.append(self.parts, len(self.numbers)))

    def is_shared(self, place: int) -> bool:
        """Tell whether so many rows have a value that it may be named."""
        return self.counts is not None and int(self.counts[place]) >= self.least

    def cuts(self, places: Ints) -> list[float]:
        """Return where buckets that begin with some values are cut off from those before."""
        is_shared = np.zeros(len(places), bool) if self.counts is None else self.counts[places] >= self.least
        found: list[float] = []
        for first in range(0, len(places), _AT_ONCE):
            progress.check()
            some = slice(first, first + _AT_ONCE)
            lows, highs = self.numbers[places[some] - 1], self.numbers[places[some]]
            found += cuts(self.scale, lows, highs, is_shared[some]).tolist()
        return found


def _distinct(column: pa.Array | None, name: str, nulls: str, least: int) -> _Values:
    """Return the distinct values of a column; at least two rows make one that may be named."""
    if column is None or not len(column):
        raise ValueError("the table has no rows to look at.")
    known, valid, scale = exact_numbers(name, column)
    if not valid.all() and nulls == "error":
        raise ValueError(f"column \"{name}\" has {int((~valid).sum())} NULLs; leave them out with nulls := 'drop'.")
    if not len(known):
        raise ValueError(f'column "{name}" has no values but NULL.')
    numbers, counts = np.sort(known) + 0.0, None  # -0.0 + 0.0 is 0.0
    least = max(least, 2)
    starts = np.flatnonzero(np.append(True, numbers[1:] != numbers[:-1]))
    if len(starts) < len(numbers):
        numbers, counts = numbers[starts], np.diff(np.append(starts, len(numbers)))
    has_cut = scale.has_room(numbers[:-1], numbers[1:])
    if counts is not None:
        has_cut |= counts[1:] >= least
    return _Values(numbers, counts, np.flatnonzero(np.append(True, has_cut)), scale, least)


def _report(values: _Values, partition: Partition, label: str) -> pa.Table:
    starts = values.parts[partition.starts]
    ends = np.append(starts[1:], len(values.numbers))
    rows = ends - starts if values.counts is None else np.add.reduceat(values.counts, starts)
    places = values.cuts(starts[1:])
    written = [values.scale.text(place) for place in places]
    names = labels.of_runs(values.scale, places, written)
    if label != "interval":
        _refuse_single_people(label, rows, values.least)
        points = _means(values, starts, ends, rows) if label == "mean" else _medians(values, starts, rows)
        names = [name if math.isnan(x) else values.scale.text(x) for name, x in zip(names, points, strict=True)]
    edges = [None, *written, None]
    columns = [np.arange(1, len(starts) + 1), edges[:-1], edges[1:], rows, names, partition.costs]
    return pa.table(
        [pa.array(column, field.type) for column, field in zip(columns, PARTITION_ROWS, strict=True)],
        schema=PARTITION_ROWS,
    )


def _refuse_single_people(label: str, rows: Ints, least: int) -> None:
    """Refuse numbers as labels where too few rows have one: the mean of one person is the person's value."""
    if (smallest := int(rows.min())) < least:
        raise ValueError(
            f"label must be 'interval' where a bucket has fewer than {least} rows; "
            f"got {label!r} and a bucket of {smallest}, so give a larger k or fewer buckets."
        )


def _means(values: _Values, starts: Ints, ends: Ints, rows: Ints) -> Floats:
    weighted = values.numbers if values.counts is None else values.numbers * values.counts
    means = np.add.reduceat(weighted, starts) / rows
    return np.clip(means, values.numbers[starts], values.numbers[ends - 1])  # rounding may carry them out


def _medians(values: _Values, starts: Ints, rows: Ints) -> list[float]:
    """Return the median of each bucket where it may be named, else the roundest number near it.

    Near are the numbers between the values of the `least` rows in the middle of the bucket: as many people have them as
    make a value one that may be named. NaN where no number lies between these.
    """
    before = np.arange(len(values.numbers)) if values.counts is None else np.cumsum(values.counts) - values.counts
    first_row = before[starts]
    middle = first_row + (rows - 1) // 2
    low_row = np.clip(middle - values.least // 2, first_row, first_row + rows - values.least)
    median, low, high = (
        (np.searchsorted(before, row, side="right") - 1).tolist()
        for row in (middle, low_row, low_row + values.least - 1)
    )
    return [
        float(values.numbers[at])
        if values.is_shared(at)
        else values.scale.cut(float(values.numbers[start]), float(values.numbers[stop]), False)
        for at, start, stop in zip(median, low, high, strict=True)
    ]
