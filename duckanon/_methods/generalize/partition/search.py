"""The search for the cheapest partition of a sorted column into buckets of at least k rows.

Let f(j) be the cost of the best partition of the first j values: f(j) = min f(i) + cost(i, j) over all i that leave k
rows between i and j (Probabilistic Anonymity, Section 4.1). Three facts make this quick without a compiler:

- A bucket that can be cut into two of k rows each need never be used (REFERENCES.md, Probabilistic Anonymity, point 5),
  so only the i from which the second cut is out of reach matter. There are at most k of them.
- Boundaries are taken in blocks of k rows. No f(j) of a block depends on another f of the same block, and all the
  buckets that end in a block hold the last value before it. So numpy prices and compares a block at once.
- All costs obey the quadrangle inequality, so the best i never moves left when j moves right. Large blocks are searched
  for every eighth boundary first, and the answers hem in those between.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Iterator

import numpy as np

from duckanon._core.common import progress
from duckanon._core.common.arrays import Array, Ints
from duckanon._methods.generalize.partition.costs import Column, Cost, Parts, neighbourhood

DENSE = 1 << 14  # blocks with at most this many pairs of ends are priced whole, larger ones by levels

# Pairs priced together when blocks are small: enough to hide numpy's cost per call, few enough for the cache.
BATCH = 1 << 16
TINY = 4  # below this many right ends per block, Python's own numbers are quicker than numpy's arrays
STRIDE = 8  # how many times finer one level of a large block is than the one before it


def best_starts(column: Column, k: int, cost: Cost) -> Ints:
    """Return where the buckets of the cheapest partition begin.

    Among equally cheap partitions the last bucket is the smallest, then the one before it, and so on.
    """
    search = _Search(column, k, cost)
    search.run()
    starts = [len(column.counts)]
    while starts[-1] > 0:
        starts.append(search.previous.item(starts[-1]))
    return np.array(starts[:0:-1], dtype=np.int64)


class _Search:
    """The state of one search: f, the best beginnings, and the blocks."""

    def __init__(self, column: Column, k: int, cost: Cost):
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
        self.widths = self.starts - self._first_partner(self._last_partner(self.starts))
        # Unreachable boundaries cost this much: adding two of them must not overflow.
        self.never = np.int64(1 << 61) if cost.exact else np.float64(np.inf)
        # The padding on the left lets every block look back by the width of the widest in its batch.
        self.pad = int(self.widths.max())
        self.f = np.full(self.pad + size + 1, self.never)
        self.f[self.pad] = 0
        self.previous = np.zeros(size + 1, dtype=np.int32 if size < 2**31 - 1 else np.int64)
        self.combine: np.ufunc = np.maximum if cost.worst else np.add
        self.rebases = not (cost.exact or cost.worst)
        self.rebase = self._rebase_flags()

    def _last_partner(self, ends: Array) -> Array:
        return np.asarray(np.searchsorted(self.column.before, self.column.before[ends] - self.k, side="right") - 1)

    def _first_partner(self, last: Array) -> Array:
        return np.asarray(np.searchsorted(self.reach, last, side="right"))

    def _rebase_flags(self) -> Array:
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
        for first, stop in self._batches(0, len(self.starts)):
            progress.check()
            left, right = int(self.widths[first:stop].max()), int(self.rows[first:stop].max())
            if left * right > DENSE:
                for index in range(first, stop):
                    self._large(index)
            elif int(self.rows[first:stop].sum()) < TINY * (stop - first):
                self._tiny(first, stop, left, right)
            else:
                self._small(first, stop, left, right)

    def _batches(self, first: int, stop: int) -> Iterator[tuple[int, int]]:
        pending = [(first, stop)]
        while pending:
            first, stop = pending.pop()
            pairs = (stop - first) * int(self.widths[first:stop].max()) * int(self.rows[first:stop].max())
            if pairs <= BATCH or stop - first == 1:
                yield first, stop
            else:
                middle = (first + stop) // 2
                pending += [(middle, stop), (first, middle)]

    def _small(self, first: int, stop: int, left: int, right: int) -> None:
        """Price all pairs of a batch of blocks, then go through its blocks in order."""
        near = neighbourhood(self.column, self.starts[first:stop], left, right)
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

    def _tiny(self, first: int, stop: int, left: int, right: int) -> None:
        """Do the same with Python's numbers, right end by right end: quicker where a block has but a few of them."""
        starts, rows = self.starts[first:stop], self.rows[first:stop]
        near = neighbourhood(self.column, starts, left, right)
        ends = np.arange(starts[0], starts[-1] + rows[-1])
        last = self._last_partner(ends)
        lengths = last - self._first_partner(last) + 1
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

    def _large(self, index: int) -> None:
        """Search one block by levels: every STRIDE^p-th right end, then those between, ever finer."""
        start, count, left = (int(part[index]) for part in (self.starts, self.rows, self.widths))
        near = neighbourhood(self.column, self.starts[index : index + 1], left, count)
        ours, theirs, common = self.cost.parts(self.column, near)
        parts = tuple(part[0] for part in ours), tuple(part[0] for part in theirs), common
        at = self.pad + start
        view = self.f[at - left : at]
        if self.rebases:
            view -= view.min()
        view = view[::-1]
        last = self._last_partner(np.arange(start, start + count))
        nearest, furthest = start - 1 - last, start - 1 - self._first_partner(last)
        chosen = np.zeros(count, dtype=np.int64)
        stride = STRIDE ** max(int(np.log(count) / np.log(STRIDE) - 0.5), 0)
        ends = np.arange(0, count, stride)
        low, high = nearest[ends], furthest[ends]
        while True:
            best, chosen[ends] = self._least(parts, view, ends, low, high)
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

    def _least(
        self, parts: tuple[Parts, Parts, Parts], view: Array, ends: Array, low: Array, high: Array
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
