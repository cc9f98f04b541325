"""Exchange between neighbouring boxes: two are pooled and split anew where that makes them narrower.

A tree of cuts leaves boxes that do not reach over its cuts. Groups that microaggregation makes do, and their intervals
were up to 12 % narrower on incomes. So pairs of neighbours are pooled here and sorted by a column, or by which of the
two boxes is nearer, and split where both halves together cost least.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import numpy as np
from scipy.spatial import cKDTree

from duckanon._core.common import progress
from duckanon._core.common.arrays import Bools, Floats, Ints
from duckanon._methods.boxes.nodes import Leaves, Points

MOST = 20_000
"""Records that are exchanged at most: 20,000 of three columns take a second, as long as their tree."""


_LARGEST = 4  # boxes of more than so many times k stay as they are: equal records make them
_NEIGHBOURS = 6
_ROUNDS = 8  # the first two gain most; later ones look at what has changed, which is little
_CLOSELY = 5_000  # records of tables that are sorted by sums and differences of columns, too, for another percent
_CELLS = 400_000  # numbers that are compared at once: they stay in the cache
_LEAST = 1e-9  # the share of a pair's cost that a new split has to gain, or rounding errors would be gains for ever


class _Pools:
    """The records of pairs of boxes, a pair a line, in the order of the table, filled up with -1."""

    def __init__(self, points: Points, members: Ints, run: Ints) -> None:
        self.points, self.run = points, run
        last = np.iinfo(np.int64).max
        filled = np.sort(np.where(members < 0, last, members), axis=1)
        self.is_there = filled < last
        self.records = np.where(self.is_there, filled, 0)
        self.sizes = self.is_there.sum(axis=1)

    def best_split(self, keys: Iterator[Floats], k: int) -> tuple[Floats, Bools]:
        """Return the least cost of two boxes of at least k records, and which records are in the first of them."""
        best = np.full(len(self.records), np.inf)
        first = np.zeros(self.records.shape, np.bool_)
        for key in keys:
            order = np.argsort(np.where(self.is_there, key, np.inf), axis=1, kind="stable")
            costs = self._split_costs(order, k)
            cut = costs.argmin(axis=1)
            cost = costs[np.arange(len(costs)), cut]
            better = cost < best
            best[better] = cost[better]
            side = np.zeros((int(better.sum()), order.shape[1]), np.bool_)
            np.put_along_axis(side, order[better], np.arange(order.shape[1]) <= cut[better, np.newaxis], axis=1)
            first[better] = side
        return best, first

    def _split_costs(self, order: Ints, k: int) -> Floats:
        """Return what two boxes cost of which the first ends with each of the records in an order."""
        records = np.take_along_axis(self.records, order, axis=1)
        there = np.take_along_axis(self.is_there, order, axis=1)
        total = np.zeros((len(records), order.shape[1] - 1))
        counts = np.arange(1, order.shape[1] + 1)
        for column, weight in enumerate(self.points.weights):
            low, high = (ends[records] for ends in self.points.ends(column))
            low, high = np.where(there, low, np.inf), np.where(there, high, -np.inf)
            ahead = np.maximum.accumulate(high, axis=1) - np.minimum.accumulate(low, axis=1)
            behind = (np.maximum.accumulate(high[:, ::-1], axis=1) - np.minimum.accumulate(low[:, ::-1], axis=1))[
                :, ::-1
            ]
            if isinstance(weight, float):
                sums = weight * np.minimum(counts, self.sizes[:, np.newaxis])
            else:
                sums = np.cumsum(np.where(there, weight[records], 0.0), axis=1)
            with np.errstate(invalid="ignore"):
                total += sums[:, :-1] * ahead[:, :-1] + (sums[:, -1:] - sums[:, :-1]) * behind[:, 1:]
        is_cut = (counts[:-1] >= k) & (self.sizes[:, np.newaxis] - counts[:-1] >= k)
        is_cut &= self.run[records[:, 1:]] != self.run[records[:, :-1]]  # equal records stay together
        return np.where(is_cut, total / 2, np.inf)


def exchanged_leaves(points: Points, batches: Sequence[Leaves], k: int, strata: Ints | None) -> Leaves:
    """Return the boxes of a tree after exchange between neighbours; their cells end where their records do."""
    rows = np.concatenate([leaves.records for leaves in batches])
    sizes = np.concatenate([leaves.sizes for leaves in batches])
    group = np.empty(len(rows), np.int64)
    group[rows] = np.repeat(np.arange(len(sizes)), sizes)
    group = exchanged(points, group, k, strata)
    records, sizes = np.argsort(group, kind="stable"), np.bincount(group)
    starts = np.cumsum(sizes) - sizes
    shaping = [values.take(records) for values in points.values[: points.shaping]]
    lower, upper = (
        np.stack([end.reduceat(values, starts) for values in shaping], axis=1) for end in (np.minimum, np.maximum)
    )
    return Leaves(records, sizes, np.zeros(len(sizes), np.int64), lower, upper)


def exchanged(points: Points, group: Ints, k: int, strata: Ints | None = None) -> Ints:
    """Return boxes, by the number of each record's, that cost no more than those given, and mostly less.

    The records are sorted by value (`nodes.value_order`), equal ones are in one box, and stay so.
    """
    group = group.copy()
    count = int(group.max()) + 1
    run = _runs(points)
    scaled = np.column_stack(
        [
            _mean(weight) * (low / 2 + high / 2)
            for weight, (low, high) in zip(points.weights, _ends(points), strict=True)
        ]
    )
    of_stratum = None if strata is None else strata[_first_members(group, count)]
    changed = np.ones(count, np.bool_)
    for _ in range(_ROUNDS):
        pairs = _neighbours(scaled, group, count, k, of_stratum)
        pairs = pairs[changed[pairs].any(axis=1)]
        changed[:] = False
        for lines in _disjoint(pairs, count):
            members = _member_table(group, count, lines)
            for chosen in np.array_split(np.arange(len(lines)), max(1, members.size // _CELLS)):
                progress.check()
                pools = _Pools(points, members[chosen], run)
                before = _pair_costs(points, group, lines[chosen], members[chosen])
                cost, first = pools.best_split(_keys(pools, scaled, group, lines[chosen]), k)
                better = cost < before * (1 - _LEAST)
                for side, of_side in enumerate((first, ~first)):
                    kept = of_side[better] & pools.is_there[better]
                    group[pools.records[better][kept]] = np.repeat(lines[chosen][better, side], kept.sum(axis=1))
                changed[lines[chosen][better]] = True
        if not changed.any():
            break
    return group


def _ends(points: Points) -> list[tuple[Floats, Floats]]:
    return [points.ends(column) for column in range(points.shaping)]


def _mean(weight: Floats | float) -> float:
    return weight if isinstance(weight, float) else float(weight.mean())


def _runs(points: Points) -> Ints:
    """Return the number of the run of equal records that each belongs to."""
    differs = np.zeros(len(points.values[0]) - 1, np.bool_)
    for values in points.values:
        differs |= values[1:] != values[:-1]
    return np.concatenate([[0], np.cumsum(differs)])


def _first_members(group: Ints, count: int) -> Ints:
    first = np.zeros(count, np.int64)
    first[group[::-1]] = np.arange(len(group) - 1, -1, -1)
    return first


def _centres(scaled: Floats, group: Ints, count: int) -> Floats:
    sizes = np.bincount(group, minlength=count)
    return np.column_stack([np.bincount(group, column, minlength=count) / sizes for column in scaled.T])


def _neighbours(scaled: Floats, group: Ints, count: int, k: int, of_stratum: Ints | None) -> Ints:
    """Return pairs of boxes near each other, each once, the nearest of every box first."""
    usual = np.flatnonzero(np.bincount(group, minlength=count) <= _LARGEST * k)
    if len(usual) < 2:
        return np.zeros((0, 2), np.int64)
    centres = _centres(scaled, group, count)[usual]
    nearest = cKDTree(centres).query(centres, k=min(1 + _NEIGHBOURS, len(usual)), p=1)[1][:, 1:]
    pairs = np.stack([np.repeat(usual, nearest.shape[1]), usual[nearest].ravel()], axis=1)
    rank = np.tile(np.arange(nearest.shape[1]), len(usual))
    pairs = np.sort(pairs, axis=1)[np.argsort(rank, kind="stable")]
    _, once = np.unique(pairs[:, 0] * count + pairs[:, 1], return_index=True)
    pairs = pairs[np.sort(once)]
    if of_stratum is not None:
        pairs = pairs[of_stratum[pairs[:, 0]] == of_stratum[pairs[:, 1]]]
    return np.asarray(pairs[pairs[:, 0] != pairs[:, 1]])


def _disjoint(pairs: Ints, count: int) -> Iterator[Ints]:
    """Split pairs into lists in which no box occurs twice."""
    while len(pairs):
        place = np.arange(len(pairs))
        first = np.full(count, len(pairs))
        np.minimum.at(first, pairs.ravel(), np.repeat(place, 2))
        is_first = (first[pairs] == place[:, np.newaxis]).all(axis=1)
        yield pairs[is_first]
        pairs = pairs[~is_first]


def _member_table(group: Ints, count: int, lines: Ints) -> Ints:
    """Return the records of each pair of boxes, filled up with -1."""
    sizes = np.bincount(group, minlength=count)
    order = np.argsort(group, kind="stable")
    starts = np.cumsum(sizes) - sizes
    width = int(sizes[lines].max())
    place = np.arange(width)
    members = starts[lines][:, :, np.newaxis] + place
    is_there = place < sizes[lines][:, :, np.newaxis]
    table = np.where(is_there, order[np.minimum(members, len(order) - 1)], -1)
    return table.reshape(len(lines), -1)


def _pair_costs(points: Points, group: Ints, lines: Ints, members: Ints) -> Floats:
    """Return what the two boxes of each pair cost together."""
    width = members.shape[1] // 2
    costs = np.zeros(len(lines))
    for side in (members[:, :width], members[:, width:]):
        is_there = side >= 0
        records = np.where(is_there, side, 0)
        for weight, (low, high) in zip(points.weights, _ends(points), strict=True):
            ends = np.where(is_there, high[records], -np.inf).max(axis=1) - np.where(
                is_there, low[records], np.inf
            ).min(axis=1)
            sums = (
                weight * is_there.sum(axis=1)
                if isinstance(weight, float)
                else np.where(is_there, weight[records], 0.0).sum(axis=1)
            )
            costs += sums * ends / 2
    return costs


def _keys(pools: _Pools, scaled: Floats, group: Ints, lines: Ints) -> Iterator[Floats]:
    """Return by what the records of pools are sorted before they are split."""
    places = scaled[pools.records]
    yield from (places[:, :, column] for column in range(places.shape[2]))
    if len(scaled) <= _CLOSELY:
        for first, second in itertools.combinations(range(places.shape[2]), 2):
            yield places[:, :, first] + places[:, :, second]
            yield places[:, :, first] - places[:, :, second]
    in_first = (group[pools.records] == lines[:, :1]) & pools.is_there
    in_second = ~in_first & pools.is_there
    apart = np.zeros(places.shape[:2])
    for column in range(places.shape[2]):
        values = places[:, :, column]
        for sign, members in ((1, in_first), (-1, in_second)):
            middle = (values * members).sum(axis=1) / members.sum(axis=1)
            apart += sign * np.abs(values - middle[:, np.newaxis])
    yield apart
