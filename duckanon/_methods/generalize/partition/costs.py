"""Costs of a bucket of a one-dimensional partition: five measures, each written as a left part plus a right part.

The search (`generalize.partition.search`) looks at buckets that all hold one common value, the pivot. A bucket
that begins at value `i` and ends before value `j` is then the rows from `i` to the pivot and the rows after it. Every
sum is taken from the pivot outwards, on distances to the pivot, so sums are added and never subtracted from each other:
nothing is lost when a column sits far from zero (microseconds since 1970) or when one value lies far from the rest.

References:
    Probabilistic Anonymity, Section 4.1; REFERENCES.md, Probabilistic Anonymity, points 5 and 6.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from duckanon._core.common.arrays import Array, Floats, Ints

Parts = tuple[Array, ...]


@dataclass(frozen=True)
class Column:
    """A sorted column: its distinct values, the rows of each, and the rows before each (one longer, it ends in n)."""

    values: Floats
    counts: Ints
    before: Ints

    @classmethod
    def of(cls, values: Floats, counts: Ints) -> Column:
        """Count the rows before each value."""
        before = np.zeros(len(counts) + 1, dtype=np.int64)
        np.cumsum(counts, out=before[1:])
        return cls(values, counts, before)

    @property
    def tied(self) -> bool:
        """Whether some value has more than one row."""
        return int(self.before[-1]) != len(self.counts)


@dataclass(frozen=True)
class Neighbourhood:
    """The values around the pivots of several blocks: `left` ones up to each pivot, `right` ones from it on."""

    # (blocks, left): distance of the pivot from its value, the pivot's own (0) first, then ever further to the left
    lefts: Array
    # (blocks, right): distance from the pivot. Entry a belongs to the bucket with a values after the pivot; entry 0 is
    # the pivot.
    rights: Array
    # left_counts, right_counts: like `lefts` and `rights`: rows of these values. The pivot counts as left.
    left_counts: Array
    right_counts: Array
    # left_rows, right_rows: like `lefts` and `rights`: rows from the pivot to there, both ends included on the left,
    # without the pivot on the right
    left_rows: Array
    right_rows: Array
    starts: Array  # (blocks,): index of the first value after each pivot


def neighbourhood(column: Column, starts: Array, left: int, right: int) -> Neighbourhood:
    """Collect the values around the pivots `starts - 1`. Beyond the ends of the column no rows are counted."""
    size = len(column.values)
    if len(starts) == 1:  # One large block: slices, padded where the column ends.
        first = int(starts[0])
        behind = slice(max(first - left, 0), first)
        ahead = slice(first - 1, min(first - 1 + right, size))
        lefts, left_counts = column.values[None, behind][:, ::-1], column.counts[None, behind][:, ::-1]
        rights, right_counts = column.values[None, ahead], column.counts[None, ahead].copy()
        if (short := left - lefts.shape[1]) > 0:
            lefts, left_counts = np.pad(lefts, ((0, 0), (0, short)), "edge"), np.pad(left_counts, ((0, 0), (0, short)))
        if (short := right - rights.shape[1]) > 0:
            rights = np.pad(rights, ((0, 0), (0, short)), "edge")
            right_counts = np.pad(right_counts, ((0, 0), (0, short)))
    else:
        back = (starts - 1)[:, None] - np.arange(left)
        fore = (starts - 1)[:, None] + np.arange(right)
        within, inside = np.maximum(back, 0), np.minimum(fore, size - 1)
        lefts, left_counts = column.values[within], column.counts[within] * (back >= 0)
        rights, right_counts = column.values[inside], column.counts[inside] * (fore < size)
    right_counts[:, 0] = 0
    pivots = lefts[:, :1]
    return Neighbourhood(
        pivots - lefts,
        rights - pivots,
        left_counts,
        right_counts,
        np.cumsum(left_counts, axis=1),
        np.cumsum(right_counts, axis=1),
        starts,
    )


@dataclass(frozen=True)
class Cost:
    """A way to price the buckets of a neighbourhood."""

    # returns what is known of the left ends, what is known of the right ends, and tables for look-ups
    parts: Callable[[Column, Neighbourhood], tuple[Parts, Parts, Parts]]
    # takes these, the ends aligned with each other, and returns one cost for each pair of ends
    price: Callable[[Parts, Parts, Parts], Array]
    # returns the cost of each bucket of a partition, given where the buckets begin
    final: Callable[[Column, Array], Array]
    exact: bool = False  # whether costs are whole numbers
    worst: bool = False  # whether a partition costs as much as its worst bucket, and not the sum of them all


def _lengths(column: Column, starts: Array) -> tuple[Array, Array, Array]:
    """Return the end of each bucket, its number of values and its number of rows."""
    ends = np.append(starts[1:], len(column.counts))
    return ends, ends - starts, column.before[ends] - column.before[starts]


def _square_parts(_: Column, near: Neighbourhood) -> tuple[Parts, Parts, Parts]:
    sides = []
    for distances, counts, rows, sign in (
        (near.lefts, near.left_counts, near.left_rows, -1.0),
        (near.rights, near.right_counts, near.right_rows, 1.0),
    ):
        weighted = distances * counts
        sides.append((rows.astype(float), sign * np.cumsum(weighted, axis=1), np.cumsum(weighted * distances, axis=1)))
    return sides[0], sides[1], ()


def _square_price(left: Parts, right: Parts, _: Parts) -> Array:
    # sum (x - mean)^2 = sum d^2 - (sum d)^2 / rows. The pivot is in the bucket, so the difference keeps its digits: the
    # bucket costs at least half its squared range, and sum d^2 is at most rows times that range squared.
    total = left[1] + right[1]
    np.square(total, out=total)
    total /= left[0] + right[0]
    return np.asarray(np.subtract(left[2] + right[2], total, out=total))


def _square_final(column: Column, starts: Array) -> Array:
    _, lengths, rows = _lengths(column, starts)
    away = column.values - np.repeat(column.values[starts], lengths)
    away -= np.repeat(np.add.reduceat(away * column.counts, starts) / rows, lengths)
    return np.asarray(np.add.reduceat(away * away * column.counts, starts))


def _median_parts(column: Column, near: Neighbourhood) -> tuple[Parts, Parts, Parts]:
    # With y = x - pivot, G(b) the sum of y from the pivot's end to boundary b and c(b) the rows from there to b (both
    # negative directions count as minus), the cost of (i, j) with median value h is
    # G(i) + G(j) - y(h) (c(i) + c(j)) - 2 (G(h) - y(h) c(h)).
    width = near.lefts.shape[1]
    left_sums = np.cumsum(near.lefts * near.left_counts, axis=1)
    right_sums = np.cumsum(near.rights * near.right_counts, axis=1)
    # Values in ascending order: the left ones turned round, then those after the pivot; boundary sums likewise.
    values = np.concatenate([-near.lefts[:, ::-1], near.rights[:, 1:]], axis=1)
    sums = np.concatenate([left_sums[:, ::-1], right_sums[:, :-1]], axis=1)
    rows = np.concatenate([-near.left_rows[:, ::-1], near.right_rows[:, :-1]], axis=1)
    rest = 2.0 * (sums - values * rows)
    offsets = np.arange(len(near.starts))[:, None] * values.shape[1] + width
    origin = np.zeros_like(offsets)
    table = borders = np.empty(0, dtype=np.int64)
    if column.tied:
        low, high = max(int(near.starts[0]) - width, 0), int(near.starts[-1]) + near.rights.shape[1]
        borders = column.before[low:high] - column.before[low]
        offsets = offsets + low - near.starts[:, None]
        origin = (column.before[near.starts] - column.before[low])[:, None]
        if borders[-1] <= 8 * near.lefts.size * min(near.rights.shape[1], 16):
            # Few rows for each pair of ends: a list of the value of each row is quicker than a binary search, which
            # takes 10 to 20 ns a pair, where an entry of the list takes 1 to 2 ns. Large blocks are priced by levels:
            # they have fewer pairs than the product of their sides, as if each left end met 16 right ones at most.
            table = np.repeat(np.arange(len(borders) - 1), np.diff(borders))
    shape = near.left_rows.shape
    left = (-near.left_rows, left_sums, np.broadcast_to(offsets, shape), np.broadcast_to(origin, shape))
    return left, (near.right_rows, right_sums), (values.ravel(), rest.ravel(), table, borders)


def _median_price(left: Parts, right: Parts, common: Parts) -> Array:
    rows, sums, offsets, origin = left
    values, rest, table, borders = common
    balance = rows + right[0]
    median = balance >> 1
    if len(borders):
        median += origin
        median = table[median] if len(table) else np.searchsorted(borders, median, side="right") - 1
    median += offsets
    costs = values[median]
    costs *= balance
    costs += rest[median]
    return np.asarray(np.subtract(sums + right[1], costs, out=costs))


def _median_final(column: Column, starts: Array) -> Array:
    ends, lengths, _ = _lengths(column, starts)
    middle = (column.before[starts] + column.before[ends]) // 2
    medians = column.values[np.searchsorted(column.before, middle, side="right") - 1]
    return np.asarray(np.add.reduceat(np.abs(column.values - np.repeat(medians, lengths)) * column.counts, starts))


def _center_final(column: Column, starts: Array) -> Array:
    ends, _, _ = _lengths(column, starts)
    return np.asarray((column.values[ends - 1] - column.values[starts]) / 2)


def _rank_price(left: Parts, right: Parts, _: Parts) -> Array:
    rows = left[0] + right[0]
    rows *= rows
    rows >>= 2
    return rows


# The costs of a bucket by name: squared distances to its mean; distances to its median; half its range times its rows;
# half its range; rank differences to its median row. `worst` ones are combined by their maximum, others by their sum.
COSTS: dict[str, Cost] = {
    "squares": Cost(_square_parts, _square_price, _square_final),
    "median": Cost(_median_parts, _median_price, _median_final),
    "radius": Cost(
        lambda _, near: ((near.lefts / 2, near.left_rows), (near.rights / 2, near.right_rows), ()),
        lambda left, right, _: (left[0] + right[0]) * (left[1] + right[1]),
        lambda column, starts: _center_final(column, starts) * _lengths(column, starts)[2],
    ),
    "center": Cost(
        lambda _, near: ((near.lefts / 2,), (near.rights / 2,), ()),
        lambda left, right, _: left[0] + right[0],
        _center_final,
        worst=True,
    ),
    "ranks": Cost(
        lambda _, near: ((near.left_rows,), (near.right_rows,), ()),
        _rank_price,
        lambda column, starts: _lengths(column, starts)[2] ** 2 // 4,
        exact=True,
    ),
}
