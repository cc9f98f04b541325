"""Partitions of one column of a table, bucket by bucket: what ``anon.quantile_partition`` and its like return.

Buckets are cut off from each other at the roundest number between two values, which is a value itself only where many
rows share it. A partition of a million rows may have 200,000 cuts, so that round numbers are searched for all pairs at
once: from the largest power of ten downwards, each pair as long as none of its multiples lies between the two.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from duckanon._core.common import labels, progress
from duckanon._core.common.arrays import Bools, Floats, Ints
from duckanon._core.common.labels import MICROSECONDS_PER_DAY, Numbers, Scale
from duckanon._core.common.values import is_time_scale, take_exact_numbers
from duckanon._methods.generalize.declared import PARTITION_ROWS
from duckanon._methods.generalize.partition.fit import (
    Partition,
    cut_evenly,
    cut_quantiles,
    find_optimal_partition,
    find_quantile_partition,
)


def find_cuts(scale: Scale, lows: Floats, highs: Floats, is_shared: Bools) -> Floats:
    """Return for each pair of neighbouring values where the upper one's part begins, as `Scale.cut` finds it."""
    if not isinstance(scale, Numbers):
        triples = zip(lows.tolist(), highs.tolist(), is_shared.tolist(), strict=True)
        return np.array([scale.cut(low, high, shared) for low, high, shared in triples], np.float64)
    steps = np.ones_like(lows) if scale.is_whole else np.nextafter(lows, np.inf) - lows
    most = np.where(is_shared, highs, np.minimum(highs - steps, np.nextafter(highs, -np.inf)))
    cuts = round_numbers(lows, most, scale.is_whole)
    if scale.is_whole:
        cuts = np.where(~is_shared & (highs - lows < 1.5 * steps), lows + steps / 2, cuts)
    return np.where(is_shared | scale.has_room(lows, highs), cuts, np.nan)


def round_numbers(lows: Floats, highs: Floats, is_whole: bool) -> Floats:
    """Return for each pair the roundest number above the first and at most the second, as `labels.Numbers.readable`.

    Examples:
        >>> round_numbers(np.array([2.3456, 20400.0, -3.5]), np.array([3.4567, 20499.0, 4.0]), False).tolist()
        [3.0, 20450.0, 0.0]
    """
    rounded = np.array(highs)
    rounded[(lows < 0) & (highs >= 0)] = 0.0
    waiting = np.flatnonzero((lows >= 0) | (highs < 0))
    first = np.frexp(np.maximum(np.abs(lows), np.abs(highs)))[1] // 3 + 1  # the power of ten that each begins with
    for exponent in range(int(first.max(initial=0)), -301, -1):
        if not len(waiting) or (is_whole and exponent < 0):
            break
        asked = waiting[exponent <= first[waiting]]
        asked = asked[_may_have_multiple(lows[asked], highs[asked], exponent)]
        if len(asked):
            numbers = _find_multiples(lows[asked], highs[asked], exponent)
            is_found = ~np.isnan(numbers)
            rounded[asked[is_found]] = numbers[is_found]
            waiting = np.setdiff1d(waiting, asked[is_found], assume_unique=True)
    return rounded


def _scale_numbers(ends: Floats, exponent: int) -> Floats:
    """Return numbers as multiples of a power of ten; those below one are divided by, as 10.0 ** -3 is inexact."""
    return ends / 10.0**exponent if exponent >= 0 else ends * 10.0**-exponent


def _may_have_multiple(lows: Floats, highs: Floats, exponent: int) -> Bools:
    """Tell quickly where a multiple of a power of ten may lie above the first number and at most at the second.

    Rounding never leads past a whole number, so that none is missed but for a first number that became a whole one.
    """
    low, high = _scale_numbers(lows, exponent), _scale_numbers(highs, exponent)
    whole = np.floor(low)
    return np.asarray((whole < np.floor(high)) | (whole == low))


def _find_multiples(lows: Floats, highs: Floats, exponent: int) -> Floats:
    """Return for each pair the best multiple of a power of ten above the first and at most the second, or NaN.

    The best ends in 5 or 0, else is even, and of several the nearest to the middle; of many the first twelve are seen.
    """
    power = 10.0 ** abs(exponent)
    scaled = [_scale_numbers(ends, exponent) for ends in (lows, highs)]
    near = (np.abs(scaled[0]) < 2**53) & (np.abs(scaled[1]) < 2**53)
    first = np.floor(np.where(near, scaled[0], 0.0))
    digits = first[:, np.newaxis] + np.arange(12)
    numbers = digits * power if exponent >= 0 else digits / power
    inside = near[:, np.newaxis] & (lows[:, np.newaxis] < numbers) & (numbers <= highs[:, np.newaxis])
    inside &= digits <= np.floor(scaled[1])[:, np.newaxis]
    rank = np.where(digits % 5 == 0, 0, np.where(digits % 2 == 0, 1, 2))
    rank[~inside] = 3
    best = rank.min(axis=1)
    apart = np.abs(digits - ((scaled[0] + scaled[1]) / 2)[:, np.newaxis])
    apart[rank != best[:, np.newaxis]] = np.inf
    chosen = numbers[np.arange(len(numbers)), apart.argmin(axis=1)]
    return np.where(best < 3, chosen, np.nan)


_AT_ONCE = 10_000  # cuts that are found together
NAMED_ROWS = 10  # how many rows make a value one that may be named, where the caller does not say k


def report_quantiles(
    column: pa.Array | None, *, col: str, k: int | None, buckets: int | None, label: str, nulls: str
) -> pa.Table:
    """Report the quantile transformation of a column: by the least rows of a bucket, or by the number of buckets."""
    least, most = k or 1, buckets or 1
    values = _read_values(column, col, nulls, NAMED_ROWS if k is None else k)
    counts, rows = values.part_counts, values.rows
    if least > rows:
        raise ValueError(f"k must be at most the number of rows, {rows}; got {k}.")
    if counts is not None:
        partition = find_quantile_partition(counts, least) if buckets is None else cut_quantiles(counts, most)
    else:
        partition = cut_evenly(rows, rows // least if buckets is None else min(most, rows))
    return _report_buckets(values, partition, label)


def report_optimum(column: pa.Array | None, *, col: str, k: int, cost: str, label: str, nulls: str) -> pa.Table:
    """Report the partition of a column into buckets of at least k rows whose cost is the least."""
    values = _read_values(column, col, nulls, k)
    counts = np.ones(values.rows, np.int64) if values.part_counts is None else values.part_counts
    partition = find_optimal_partition(values.numbers[values.parts], counts, k, cost)
    if is_time_scale(values.scale):
        # Moments are microseconds here; the square of one says nothing to anybody.
        day = float(MICROSECONDS_PER_DAY)
        partition = replace(partition, costs=partition.costs / (day**2 if cost == "squares" else day))
    return _report_buckets(values, partition, label)


@dataclass(frozen=True)
class _SortedValues:
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

    def are_shared(self, values: Ints) -> Bools:
        """Tell which values so many rows have that they may be named."""
        return np.zeros(len(values), bool) if self.counts is None else self.counts[values] >= self.least

    def find_cuts(self, values: Ints) -> list[float]:
        """Return where buckets that begin with some values are cut off from those before."""
        is_shared = self.are_shared(values)
        cuts: list[float] = []
        for first in range(0, len(values), _AT_ONCE):
            progress.check()
            batch = values[first : first + _AT_ONCE]
            is_batch_shared = is_shared[first : first + _AT_ONCE]
            cuts += find_cuts(self.scale, self.numbers[batch - 1], self.numbers[batch], is_batch_shared).tolist()
        return cuts


def _read_values(column: pa.Array | None, name: str, nulls: str, least: int) -> _SortedValues:
    """Return the distinct values of a column; at least two rows make one that may be named."""
    if column is None or not len(column):
        raise ValueError("the table has no rows to look at.")
    known, valid, scale = take_exact_numbers(name, column)
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
    return _SortedValues(numbers, counts, np.flatnonzero(np.append(True, has_cut)), scale, least)


def _report_buckets(values: _SortedValues, partition: Partition, label: str) -> pa.Table:
    starts = values.parts[partition.starts]
    ends = np.append(starts[1:], len(values.numbers))
    rows = ends - starts if values.counts is None else np.add.reduceat(values.counts, starts)
    cuts = values.find_cuts(starts[1:])
    written = [values.scale.text(cut) for cut in cuts]
    names = labels.label_runs(values.scale, cuts, written)
    if label != "interval":
        # the mean of one person is the person's value
        if (smallest := int(rows.min())) < values.least:
            raise ValueError(
                f"label must be 'interval' where a bucket has fewer than {values.least} rows; "
                f"got {label!r} and a bucket of {smallest}, so give a larger k or fewer buckets."
            )
        if label == "mean":
            sums = values.numbers if values.counts is None else values.numbers * values.counts
            means = np.add.reduceat(sums, starts) / rows
            # rounding may carry them out
            points = np.clip(means, values.numbers[starts], values.numbers[ends - 1]).tolist()
        else:
            points = _find_medians(values, starts, rows)
        names = [name if math.isnan(x) else values.scale.text(x) for name, x in zip(names, points, strict=True)]
    edges = [None, *written, None]
    columns = [np.arange(1, len(starts) + 1), edges[:-1], edges[1:], rows, names, partition.costs]
    return pa.table(
        [pa.array(column, field.type) for column, field in zip(columns, PARTITION_ROWS, strict=True)],
        schema=PARTITION_ROWS,
    )


def _find_medians(values: _SortedValues, starts: Ints, rows: Ints) -> list[float]:
    """Return the median of each bucket where it may be named, else the roundest number near it.

    Near are the numbers between the values of the `least` rows in the middle of the bucket: as many people have them as
    make a value one that may be named. NaN where no number lies between these.
    """
    before = np.arange(len(values.numbers)) if values.counts is None else np.cumsum(values.counts) - values.counts
    first_row = before[starts]
    middle = first_row + (rows - 1) // 2
    low_row = np.clip(middle - values.least // 2, first_row, first_row + rows - values.least)
    median, low, high = (
        np.searchsorted(before, row, side="right") - 1 for row in (middle, low_row, low_row + values.least - 1)
    )
    numbers = (values.numbers[value].tolist() for value in (median, low, high))
    return [
        at if is_shared else values.scale.cut(start, stop, False)
        for is_shared, at, start, stop in zip(values.are_shared(median).tolist(), *numbers, strict=True)
    ]
