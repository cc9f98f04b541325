"""Optimal k-anonymous partitions of one sorted column, and its quantiles.

Buckets are contiguous, equal values stay together, and every bucket holds at least k rows (Probabilistic Anonymity,
Section 4.1, Definitions 6 to 9 and Theorem 5; REFERENCES.md, points 5 and 6 on that paper). With f(j) the cost of the
best partition of the first j values, f(j) = min f(i) + cost(i, j) over all i that leave k rows between i and j. Three
facts make this quick without a compiler:

- A bucket that can be cut into two of k rows each need never be used (point 5), so only the i from which the second cut
  is out of reach matter. There are at most k of them.
- Boundaries are taken in blocks of k rows. No f(j) of a block depends on another f of the same block, and all buckets
  that end in a block hold the last value before it, the pivot. So numpy prices and compares a block at once.
- All costs obey the quadrangle inequality, so the best i never moves left when j moves right. Large blocks are searched
  for every eighth boundary first, and the answers hem in those between.

A cost is a left part, from the pivot down to where a bucket begins, plus a right part, from the pivot up to where it
ends. Every sum is taken from the pivot outwards, on distances to it, so that sums are added and never subtracted from
each other: nothing is lost when a column sits far from zero (microseconds since 1970) or one value far from the rest.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from duckanon._core.common import progress
from duckanon._core.common.arguments import check_arguments
from duckanon._core.common.arrays import Array, Floats, Ints
from duckanon._core.common.rules import OneOf, Whole

CostParts = tuple[Array, ...]


@dataclass(frozen=True)
class SortedColumn:
    """A sorted column: its distinct values, the rows of each, and the rows before each (one longer, it ends in n)."""

    values: Floats
    counts: Ints
    before: Ints

    @classmethod
    def of(cls, values: Floats, counts: Ints) -> SortedColumn:
        """Count the rows before each value."""
        before = np.zeros(len(counts) + 1, dtype=np.int64)
        np.cumsum(counts, out=before[1:])
        return cls(values, counts, before)

    @property
    def has_ties(self) -> bool:
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


def collect_neighbours(column: SortedColumn, starts: Array, left: int, right: int) -> Neighbourhood:
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
class BucketCost:
    """A way to price the buckets of a neighbourhood."""

    # returns what is known of the left ends, what is known of the right ends, and tables for look-ups
    parts: Callable[[SortedColumn, Neighbourhood], tuple[CostParts, CostParts, CostParts]]
    # takes these, the ends aligned with each other, and returns one cost for each pair of ends
    price: Callable[[CostParts, CostParts, CostParts], Array]
    # returns the cost of each bucket of a partition, given where the buckets begin
    final: Callable[[SortedColumn, Array], Array]
    exact: bool = False  # whether costs are whole numbers
    worst: bool = False  # whether a partition costs as much as its worst bucket, and not the sum of them all


def _measure_buckets(column: SortedColumn, starts: Array) -> tuple[Array, Array, Array]:
    """Return the end of each bucket, its number of values and its number of rows."""
    ends = np.append(starts[1:], len(column.counts))
    return ends, ends - starts, column.before[ends] - column.before[starts]


def _prepare_squares(_: SortedColumn, near: Neighbourhood) -> tuple[CostParts, CostParts, CostParts]:
    sides = []
    for distances, counts, rows, sign in (
        (near.lefts, near.left_counts, near.left_rows, -1.0),
        (near.rights, near.right_counts, near.right_rows, 1.0),
    ):
        weighted = distances * counts
        sides.append((rows.astype(float), sign * np.cumsum(weighted, axis=1), np.cumsum(weighted * distances, axis=1)))
    return sides[0], sides[1], ()


def _price_squares(left: CostParts, right: CostParts, _: CostParts) -> Array:
    # sum (x - mean)^2 = sum d^2 - (sum d)^2 / rows. The pivot is in the bucket, so the difference keeps its digits: the
    # bucket costs at least half its squared range, and sum d^2 is at most rows times that range squared.
    total = left[1] + right[1]
    np.square(total, out=total)
    total /= left[0] + right[0]
    return np.asarray(np.subtract(left[2] + right[2], total, out=total))


def _cost_squares(column: SortedColumn, starts: Array) -> Array:
    _, lengths, rows = _measure_buckets(column, starts)
    away = column.values - np.repeat(column.values[starts], lengths)
    away -= np.repeat(np.add.reduceat(away * column.counts, starts) / rows, lengths)
    return np.asarray(np.add.reduceat(away * away * column.counts, starts))


def _prepare_medians(column: SortedColumn, near: Neighbourhood) -> tuple[CostParts, CostParts, CostParts]:
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
    if column.has_ties:
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


def _price_medians(left: CostParts, right: CostParts, common: CostParts) -> Array:
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


def _cost_medians(column: SortedColumn, starts: Array) -> Array:
    ends, lengths, _ = _measure_buckets(column, starts)
    middle = (column.before[starts] + column.before[ends]) // 2
    medians = column.values[np.searchsorted(column.before, middle, side="right") - 1]
    return np.asarray(np.add.reduceat(np.abs(column.values - np.repeat(medians, lengths)) * column.counts, starts))


def _cost_ranges(column: SortedColumn, starts: Array) -> Array:
    ends, _, _ = _measure_buckets(column, starts)
    return np.asarray((column.values[ends - 1] - column.values[starts]) / 2)


def _price_ranks(left: CostParts, right: CostParts, _: CostParts) -> Array:
    rows = left[0] + right[0]
    rows *= rows
    rows >>= 2
    return rows


# The costs of a bucket by name: squared distances to its mean; distances to its median; half its range times its rows;
# half its range; rank differences to its median row. `worst` ones are combined by their maximum, others by their sum.
COSTS: dict[str, BucketCost] = {
    "squares": BucketCost(_prepare_squares, _price_squares, _cost_squares),
    "median": BucketCost(_prepare_medians, _price_medians, _cost_medians),
    "radius": BucketCost(
        lambda _, near: ((near.lefts / 2, near.left_rows), (near.rights / 2, near.right_rows), ()),
        lambda left, right, _: (left[0] + right[0]) * (left[1] + right[1]),
        lambda column, starts: _cost_ranges(column, starts) * _measure_buckets(column, starts)[2],
    ),
    "center": BucketCost(
        lambda _, near: ((near.lefts / 2,), (near.rights / 2,), ()),
        lambda left, right, _: left[0] + right[0],
        _cost_ranges,
        worst=True,
    ),
    "ranks": BucketCost(
        lambda _, near: ((near.left_rows,), (near.right_rows,), ()),
        _price_ranks,
        lambda column, starts: _measure_buckets(column, starts)[2] ** 2 // 4,
        exact=True,
    ),
}


DENSE = 1 << 14  # blocks with at most this many pairs of ends are priced whole, larger ones by levels

# Pairs priced together when blocks are small: enough to hide numpy's cost per call, few enough for the cache.
BATCH = 1 << 16
TINY = 4  # below this many right ends per block, Python's own numbers are quicker than numpy's arrays
STRIDE = 8  # how many times finer one level of a large block is than the one before it


def search_starts(column: SortedColumn, k: int, cost: BucketCost) -> Ints:
    """Return where the buckets of the cheapest partition begin.

    Among equally cheap partitions the last bucket is the smallest, then the one before it, and so on.
    """
    search = _PartitionSearch(column, k, cost)
    search.run()
    starts = [len(column.counts)]
    while starts[-1] > 0:
        starts.append(search.previous.item(starts[-1]))
    return np.array(starts[:0:-1], dtype=np.int64)


class _PartitionSearch:
    """The state of one search: f, the best beginnings, and the blocks."""

    def __init__(self, column: SortedColumn, k: int, cost: BucketCost):
        self.column, self.k, self.cost = column, k, cost
        size = len(column.counts)
        before = column.before
        # reach[i]: the first boundary that leaves k rows after i; size + 1 where there is none.
        self.reach = np.searchsorted(before, before + k)
        blocks = [self.reach.item(0)]
        while blocks[-1] <= size:
            blocks.append(self.reach.item(blocks[-1]))
        self.starts = np.array(blocks[:-1], dtype=np.int64)
        self.rows = np.diff(np.append(self.starts, size + 1))
        self.widths = self.starts - self._find_first_partner(self._find_last_partner(self.starts))
        # Unreachable boundaries cost this much: adding two of them must not overflow.
        self.never = np.int64(1 << 61) if cost.exact else np.float64(np.inf)
        # The padding on the left lets every block look back by the width of the widest in its batch.
        self.pad = int(self.widths.max())
        self.f = np.full(self.pad + size + 1, self.never)
        self.f[self.pad] = 0
        self.previous = np.zeros(size + 1, dtype=np.int32 if size < 2**31 - 1 else np.int64)
        self.combine: np.ufunc = np.maximum if cost.worst else np.add
        self.rebases = not (cost.exact or cost.worst)
        self.rebase = self._flag_rebases()

    def _find_last_partner(self, ends: Array) -> Array:
        return np.asarray(np.searchsorted(self.column.before, self.column.before[ends] - self.k, side="right") - 1)

    def _find_first_partner(self, last: Array) -> Array:
        return np.asarray(np.searchsorted(self.reach, last, side="right"))

    def _flag_rebases(self) -> Array:
        """Say before which blocks f is to be counted anew from the cheapest boundary in view.

        Only differences of f matter. Without this, one far value at the left end would fill all digits of f, and the
        choices after it would drown in rounding.
        """
        if not self.rebases:
            return np.zeros(len(self.starts), dtype=bool)
        last = np.minimum(self.starts + self.rows, len(self.column.values)) - 1
        values = self.column.values
        spans, fresh = values[last] - values[self.starts - self.widths], values[last] - values[self.starts - 1]
        # Every 16th block anyway, so that f does not grow with the column; and wherever one of the last four blocks saw
        # 64 times the width that is new: of squared distances, 12 of the 53 bits would be lost.
        flags = np.arange(len(spans)) % 16 == 0
        for lag in range(1, 5):
            flags[lag:] |= spans[:-lag] > 64 * fresh[lag:]
        return np.asarray(flags)

    def run(self) -> None:
        """Fill in f and the best beginnings, batch by batch."""
        for first, stop in self._split_batches(0, len(self.starts)):
            progress.check()
            left, right = int(self.widths[first:stop].max()), int(self.rows[first:stop].max())
            if left * right > DENSE:
                for index in range(first, stop):
                    self._search_large(index)
            elif int(self.rows[first:stop].sum()) < TINY * (stop - first):
                self._search_tiny(first, stop, left, right)
            else:
                self._search_small(first, stop, left, right)

    def _split_batches(self, first: int, stop: int) -> Iterator[tuple[int, int]]:
        pending = [(first, stop)]
        while pending:
            first, stop = pending.pop()
            pairs = (stop - first) * int(self.widths[first:stop].max()) * int(self.rows[first:stop].max())
            if pairs <= BATCH or stop - first == 1:
                yield first, stop
            else:
                middle = (first + stop) // 2
                pending += [(middle, stop), (first, middle)]

    def _search_small(self, first: int, stop: int, left: int, right: int) -> None:
        """Price all pairs of a batch of blocks, then go through its blocks in order."""
        near = collect_neighbours(self.column, self.starts[first:stop], left, right)
        ours, theirs, common = self.cost.parts(self.column, near)
        # Axes: block, left end (nearest first), right end.
        prices = self.cost.price(
            tuple(part[:, :, None] for part in ours), tuple(part[:, None, :] for part in theirs), common
        )
        np.copyto(prices, self.never, where=near.left_rows[:, :, None] < (self.k - near.right_rows)[:, None, :])
        starts, rows = self.starts[first:stop], self.rows[first:stop]
        f, pad, combine, least = self.f, self.pad, self.combine, np.minimum.reduce
        renew = np.where(self.rebase[first:stop], self.widths[first:stop], 0)
        for start, count, width, block in zip(starts.tolist(), rows.tolist(), renew.tolist(), prices, strict=True):
            at = pad + start
            if width:
                f[at - width : at] -= least(f[at - width : at])
            view = f[at - left : at]
            combine(block, view[::-1, None], out=block)
            f[at : at + count] = least(block, axis=0)[:count]
        chosen = (starts - 1)[:, None] - prices.argmin(axis=1)
        self.previous[starts[0] : starts[-1] + rows[-1]] = chosen[np.arange(right) < rows[:, None]]

    def _search_tiny(self, first: int, stop: int, left: int, right: int) -> None:
        """Do the same with Python's numbers, right end by right end: quicker where a block has but a few of them."""
        starts, rows = self.starts[first:stop], self.rows[first:stop]
        near = collect_neighbours(self.column, starts, left, right)
        ends = np.arange(starts[0], starts[-1] + rows[-1])
        last = self._find_last_partner(ends)
        lengths = last - self._find_first_partner(last) + 1
        pairs = np.repeat(np.arange(len(ends)), lengths)
        back = np.arange(len(pairs)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        block = np.repeat(np.arange(len(starts)), rows)
        lefts = (block * left + starts[block] - 1 - last)[pairs] + back
        rights = (block * right + ends - starts[block])[pairs]
        ours, theirs, common = self.cost.parts(self.column, near)
        prices = self.cost.price(
            tuple(part.ravel()[lefts] for part in ours), tuple(part.ravel()[rights] for part in theirs), common
        )
        price = iter(prices.tolist())
        # Entry 0 of `known` is never used: a slice that runs down to the beginning would need an end of -1.
        shift = left + 1 - int(starts[0])
        known: list[float] = [0, *self.f[self.pad + starts[0] - left : self.pad + starts[0]].tolist()]
        tops, bottoms = (last + shift).tolist(), (last + shift - lengths).tolist()
        anew = np.flatnonzero(self.rebase[first:stop])
        cuts = [0, *(starts[anew] - starts[0]).tolist(), len(ends)]
        widths = [0, *self.widths[first:stop][anew].tolist()]
        combine: Callable[[float, float], float] = max if self.cost.worst else operator.add
        picks: list[int] = []
        for width, (cut, following) in zip(widths, itertools.pairwise(cuts), strict=True):
            if width:
                base = min(known[-width:])
                known[-width:] = [value - base for value in known[-width:]]
            for top, bottom in zip(tops[cut:following], bottoms[cut:following], strict=True):
                if top - bottom == 1:
                    known.append(combine(known[top], next(price)))
                    picks.append(0)
                else:
                    sums = list(map(combine, known[top:bottom:-1], price))
                    best = min(sums)
                    known.append(best)
                    picks.append(sums.index(best))
        self.f[self.pad + ends] = known[left + 1 :]
        self.previous[ends] = last - picks

    def _search_large(self, index: int) -> None:
        """Search one block by levels: every STRIDE^p-th right end, then those between, ever finer."""
        start, count, left = (int(part[index]) for part in (self.starts, self.rows, self.widths))
        near = collect_neighbours(self.column, self.starts[index : index + 1], left, count)
        ours, theirs, common = self.cost.parts(self.column, near)
        parts = tuple(part[0] for part in ours), tuple(part[0] for part in theirs), common
        at = self.pad + start
        view = self.f[at - left : at]
        if self.rebases:
            view -= view.min()
        view = view[::-1]
        last = self._find_last_partner(np.arange(start, start + count))
        nearest, furthest = start - 1 - last, start - 1 - self._find_first_partner(last)
        chosen = np.zeros(count, dtype=np.int64)
        stride = STRIDE ** max(int(np.log(count) / np.log(STRIDE) - 0.5), 0)
        ends = np.arange(0, count, stride)
        low, high = nearest[ends], furthest[ends]
        while True:
            best, chosen[ends] = self._find_least(parts, view, ends, low, high)
            self.f[at + ends] = best
            if stride == 1:
                break
            coarse, stride = stride, stride // STRIDE
            ends = np.arange(0, count, stride)
            ends = ends[ends % coarse != 0]
            above = ends - ends % coarse
            below = above + coarse
            high = chosen[above]
            low = np.where(below < count, chosen[np.minimum(below, count - 1)], 0)
            # Rounding may turn two equal neighbours round: keep the range in order and inside what is allowed.
            low, high = np.minimum(low, high), np.maximum(low, high)
            low, high = np.clip(low, nearest[ends], furthest[ends]), np.clip(high, nearest[ends], furthest[ends])
        self.previous[start : start + count] = start - 1 - chosen

    def _find_least(
        self, parts: tuple[CostParts, CostParts, CostParts], view: Array, ends: Array, low: Array, high: Array
    ) -> tuple[Array, Array]:
        """Return the least cost and its left end for each right end, over left ends `low` to `high`."""
        lengths = high - low + 1
        stops = np.cumsum(lengths)
        begins = stops - lengths
        lefts = np.arange(stops[-1]) + np.repeat(low - begins, lengths)
        ours, theirs, common = parts
        costs = self.cost.price(
            tuple(part[lefts] for part in ours), tuple(np.repeat(part[ends], lengths) for part in theirs), common
        )
        costs = self.combine(costs, view[lefts], out=costs)
        best = np.minimum.reduceat(costs, begins)
        hits = np.flatnonzero(costs == np.repeat(best, lengths))
        return best, lefts[hits[np.searchsorted(hits, begins)]]


@dataclass(frozen=True)
class Partition:
    """A partition of a sorted column."""

    starts: Ints  # one per bucket: index of the first distinct value of each bucket; the first one is 0
    costs: Floats | Ints  # float64 (int64 for ranks), one per bucket: what each bucket costs


@check_arguments(k=Whole(1), cost=OneOf(*COSTS))
def find_optimal_partition(values: ArrayLike, counts: ArrayLike, k: int, cost: str = "squares") -> Partition:
    """Find the cheapest partition of a column into buckets of at least k rows (Probabilistic Anonymity, Section 4.1).

    The column is its distinct values, strictly increasing, and the rows of each. The costs are those of `COSTS`; the
    total is their sum, for 'center' their maximum. Of several cheapest partitions the one with the smallest last bucket
    is taken, then the smallest one before it, and so on. For 'center' this makes every bucket as small as the largest
    range allows, and what lies left of any bucket is itself an optimal partition.

    Examples:
        >>> find_optimal_partition([20, 21, 50, 52, 53], [1, 1, 1, 1, 1], k=2).starts.tolist()
        [0, 2]
    """
    column = SortedColumn.of(np.ascontiguousarray(values, dtype=np.float64), _check_counts(counts, k))
    if column.values.shape != column.counts.shape:
        raise ValueError(f"values must be as many as counts, {column.counts.size}; got {column.values.size}.")
    if not (np.isfinite(column.values).all() and (column.values[1:] > column.values[:-1]).all()):
        raise ValueError("values must be finite and strictly increasing.")
    starts = _find_starts(_scale_column(column), k, cost)
    return Partition(starts, COSTS[cost].final(column, starts))


@check_arguments(k=Whole(1))
def find_quantile_partition(counts: ArrayLike, k: int) -> Partition:
    """Find the quantile transformation: the least rank difference with at least k rows in a bucket.

    Without ties the n rows are cut into n // k buckets whose sizes differ by at most one, larger and smaller ones
    evenly mixed (Probabilistic Anonymity, Definition 9). With ties equal values stay together, and the rank difference
    is the smallest that any such partition has (REFERENCES.md, Probabilistic Anonymity, point 6): floor(m^2 / 4) for a
    bucket of m rows. The counts are the rows of each distinct value, in ascending order of the values.
    """
    rows_of_value = _check_counts(counts, k)
    column = SortedColumn.of(np.zeros(len(rows_of_value)), rows_of_value)
    if column.has_ties:
        starts = _find_starts(column, k, "ranks")
        return Partition(starts, COSTS["ranks"].final(column, starts))
    return cut_evenly(len(rows_of_value), len(rows_of_value) // k)


def cut_evenly(rows: int, buckets: int) -> Partition:
    """Cut rows without ties into buckets whose sizes differ by at most one: the quantile transformation without ties.

    Examples:
        >>> cut_evenly(7, 3).starts.tolist()
        [0, 2, 4]
    """
    starts = np.arange(buckets, dtype=np.int64) * rows // buckets
    sizes = np.diff(np.append(starts, rows))
    return Partition(starts, sizes * sizes // 4)


@check_arguments(buckets=Whole(1))
def cut_quantiles(counts: ArrayLike, buckets: int) -> Partition:
    """Cut a column into at most a given number of buckets of about equal size, equal values together.

    The j-th cut of b is put at the border between two values that is nearest to row j n / b (the left one of two
    equally near). Cuts that fall together are made once. Without ties the sizes differ by at most one; no bucket is
    empty.
    """
    rows_of_value = _check_counts(counts, 1)
    column = SortedColumn.of(np.zeros(len(rows_of_value)), rows_of_value)
    rows = int(column.before[-1])
    cuts = min(int(buckets), rows)
    # All positions are multiplied by the number of buckets, so that every comparison is one of integers.
    wanted = np.arange(1, cuts, dtype=np.int64) * rows
    borders = column.before * cuts
    above = np.searchsorted(borders, wanted)
    nearest = np.where(borders[above] - wanted < wanted - borders[above - 1], above, above - 1)
    starts = np.unique(np.concatenate([[0], nearest[nearest < len(rows_of_value)]])).astype(np.int64)
    return Partition(starts, COSTS["ranks"].final(column, starts))


def _check_counts(counts: ArrayLike, k: int) -> Ints:
    """Return the counts as an array, or say what is wrong with them."""
    rows_of_value = np.ascontiguousarray(counts, dtype=np.int64)
    if rows_of_value.ndim != 1 or not (rows_of_value >= 1).all():
        raise ValueError("counts must be a list of whole numbers of at least 1.")
    if (rows := int(rows_of_value.sum())) < k:
        raise ValueError(f"k must be at most the number of rows, {rows}; got {k}.")
    return rows_of_value


def _scale_column(column: SortedColumn) -> SortedColumn:
    """Return the column times a power of two if squares of its distances would overflow or vanish."""
    half_range = float(column.values[-1] / 2 - column.values[0] / 2)
    # Squares of such distances, times any number of rows, stay well inside 1e-308 to 1e308.
    if half_range == 0 or 1e-100 < half_range < 1e100:
        return column
    return SortedColumn(np.ldexp(column.values, -int(np.frexp(half_range)[1])), column.counts, column.before)


def _find_starts(column: SortedColumn, k: int, cost: str) -> Ints:
    if int(column.counts.min()) >= k:
        return np.arange(len(column.counts), dtype=np.int64)  # no cost gains by putting two values together
    return search_starts(column, k, COSTS[cost])
