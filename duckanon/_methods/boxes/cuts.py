"""Cuts of a node: where they can lie, candidates for every column, and what the boxes below would cost.

References:
    Accurate Boxes, Sections II and V; REFERENCES.md, Boxes, "Tiling space with the boxes".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from duckanon._core.common.arrays import Bools, Floats, Ints
from duckanon._core.common.people import NOBODY, SINGLE_ROW, find_cut_range
from duckanon._methods.boxes.nodes import Nodes, Points, find_middle, sum_segments

SHARES = (0.5, 0.25, 0.75, 0.125, 0.875, 1 / 16, 15 / 16, 1 / 32, 31 / 32)
"""Shares of a node's leaves that may go left.  Far from the middle, a cut takes off the tail of a skewed column."""
MORE_SHARES = (*SHARES, 1 / 64, 63 / 64, 1 / 128, 127 / 128)
_MIDDLE = 5  # the first shares, for nodes of at most _MANY leaves, where thinner tails are less than a leaf
_MANY = 51
FEW = 8
"""Leaves of a node up to which the left side has half of them, one less or one more."""
_STEPS = np.array([0, -1, 1])
TINY = 1e-300
"""Replaces 0, whose logarithm is infinite."""
_GRID = 128  # records of a large node whose sensitivities are looked at: enough for sums to within a few percent


class Candidates(NamedTuple):
    """Possible cuts of several nodes."""

    columns: Ints  # the column that each candidate cuts
    cuts: Ints  # nodes by candidates: where the right part begins in that column's order
    scores: Floats  # nodes by candidates: the estimated cost; infinite where no cut is possible


def _choose_left_leaves(leaves: Ints, shares: Sequence[float]) -> tuple[Ints, Bools]:
    """Return how many of a node's leaves may go left, and whether each number is a new choice; nodes by choices.

    Halving comes first, so that it wins among equals.
    """
    column = leaves[:, None]
    least = int(leaves.min())
    if least > FEW:
        wanted = (column * np.array(shares if least > _MANY else shares[:_MIDDLE])).astype(np.int64)
    else:
        wanted = column // 2 + _STEPS
    left = np.clip(wanted, 1, column - 1)
    return left, left == wanted


def score_cuts(
    points: Points,
    nodes: Nodes,
    k: int,
    which: Ints | None = None,
    *,
    scale: float = 1.0,
    sampled: bool = False,
    uneven: float = 0.0,
    shares: Sequence[float] = SHARES,
) -> Candidates:
    """List the cuts of every node, and estimate what the boxes on both sides will cost.

    If the m leaves of a node were a grid of s_i parts in column i, the cost would be half the sum of A_i w_i / s_i with
    A_i the summed sensitivity and w_i the width. The best s_i >= 1 with product m give t (prod_T g_i / m)^(1/t) plus
    the sum of the other g_i, where g_i = A_i w_i and T are the t columns worth cutting (the same condition as in the
    l-diversity case of Accurate Boxes, Section IV). A cut changes the width and the mean sensitivity of the column that
    it cuts; those of the others are taken from the node. This look-ahead tells when to take off a tail. Cuts lie at
    multiples of k, or where neighbours differ next to them.

    Args:
        which: The nodes to look at, each of at least 2 k records; None: all.
        scale: How many records each record stands for, where they are a sample.
        sampled: Whether to look at the sensitivities of only a sample of each node's records.
        uneven: By how much a cut has to be better for every factor of 2 between its left side and half the leaves.
            Where all cuts promise the same, as in a uniform column, even trees are shallow and so quick to build.
        shares: The shares of a node's leaves that may go left.
    """
    starts, sizes = nodes.starts, nodes.sizes
    if which is not None:
        starts, sizes = starts[which], sizes[which]
    ends = starts + sizes
    left, new = _choose_left_leaves(sizes // k, shares)
    wanted = starts[:, None] + left * k
    shape = (points.shaping, *wanted.shape)
    cuts, possible = np.empty(shape, dtype=np.int64), np.empty(shape, dtype=np.bool_)
    gains, totals = np.empty((2, *shape)), np.empty(shape[:2])
    pairs = number_people(points, nodes)
    for j in range(points.shaping):
        order, (lower_ends, upper_ends) = nodes.orders[j], points.ends(j)
        low, high = lower_ends[order[starts]], upper_ends[order[ends - 1]]
        room = find_room(nodes, order, pairs, k, which)
        cuts[j], possible[j] = move_cuts(lower_ends, order, starts, room, wanted, pairs is not None)
        left_sums, total = _sum_left(points.weights[j], order, starts, sizes, cuts[j], sampled)
        left_high, right_low = upper_ends[order[cuts[j] - 1]], lower_ends[order[cuts[j]]]
        if points.tiles:
            low, high = (cell[:, j] if which is None else cell[which, j] for cell in (nodes.lower, nodes.upper))
            left_high = right_low = find_middle(left_high, right_low)
        gains[0, j] = left_sums * (left_high - low[:, None])
        gains[1, j] = (total[:, None] - left_sums) * (high[:, None] - right_low)
        totals[j] = total * (high - low)
    scores = _estimate_costs(cuts - starts[:, None], sizes, gains, totals / sizes, scale / k)
    if uneven:
        scores *= 1 + uneven * abs(np.log2(left / (sizes // k)[:, None]) + 1)
    scores = np.where(possible & new, scores, np.inf)
    columns = np.repeat(np.arange(points.shaping), wanted.shape[1])
    count = len(sizes)
    return Candidates(columns, cuts.swapaxes(0, 1).reshape(count, -1), scores.swapaxes(0, 1).reshape(count, -1))


def _sum_left(
    weight: Floats | float, order: Ints, starts: Ints, sizes: Ints, cuts: Ints, sampled: bool
) -> tuple[Floats, Floats]:
    """Sum the sensitivities left of each cut and over each node; in large nodes over a sample along the order."""
    if isinstance(weight, float):
        counts = (cuts - starts[:, None]).astype(np.float64)
        return weight * counts, weight * sizes.astype(np.float64)
    if not sampled:
        running = np.zeros(len(order) + 1)
        np.cumsum(weight.take(order), out=running[1:])
        before = running[starts]
        return np.maximum(running[cuts] - before[:, None], 0.0), running[starts + sizes] - before
    steps = (np.arange(_GRID) + 0.5) / _GRID
    sample = weight[order[starts[:, None] + (sizes[:, None] * steps).astype(np.int64)]]
    sums = np.zeros((len(starts), _GRID + 1))
    np.cumsum(sample, axis=1, out=sums[:, 1:])
    sums *= (sizes / _GRID)[:, None]
    grid_cuts = np.rint((cuts - starts[:, None]) * (_GRID / sizes)[:, None]).astype(np.int64)
    return np.take_along_axis(sums, grid_cuts, axis=1), sums[:, -1]


def _estimate_costs(left_sizes: Ints, sizes: Ints, gains: Floats, means: Floats, rate: float) -> Floats:
    """Estimate the cost of both sides of every cut; columns by nodes by choices.

    The level c that every column of the best grid is left with solves sum max(0, log g_i - log c) = log m.  It is the
    largest of (sum over T of log g_i - log m) / t over all sets T of columns, of which only the prefixes of the
    sorted gains matter; the cost is the sum of min(g_i, c).
    """
    n = len(means)
    logs = np.log(np.maximum(means, TINY))
    other_columns = [[i for i in range(n) if i != j] for j in range(n)]
    other_means = means[other_columns] if n > 1 else np.empty((1, 0, len(sizes)))
    sums = np.cumsum(-np.sort(-logs[other_columns], axis=1), axis=1) if n > 1 else other_means
    scores = np.zeros(left_sizes.shape)
    for part_sizes, gain in ((left_sizes, gains[0]), (sizes[:, None] - left_sizes, gains[1])):
        leaves = np.log(part_sizes * rate)
        mean = gain / part_sizes
        cut_level = np.log(np.maximum(mean, TINY))
        cut_level -= leaves
        level = cut_level.copy()
        for t in range(n - 1):
            total = sums[:, t, :, None]
            np.maximum(level, (total - leaves) / (t + 1), out=level)
            np.maximum(level, (total + cut_level) / (t + 2), out=level)
        np.exp(level, out=level)
        cost = np.minimum(mean, level)
        for t in range(n - 1):
            cost += np.minimum(other_means[:, t, :, None], level)
        cost *= part_sizes
        scores += cost
    return scores


def find_pair_cuts(points: Points, nodes: Nodes, k: int) -> tuple[Ints, Ints, Floats]:
    """Cut nodes of at least 2 k records into two boxes each, by the column that makes the realised cost smallest.

    Returns the column, the cut and the cost of its two boxes, which is infinite where no cut is possible.
    """
    starts, sizes = nodes.starts, nodes.sizes
    ends = starts + sizes
    n = points.shaping
    # Where every value is a part of its own, lower and upper ends are one array, sorted once.
    ends_of_columns = [points.ends(j) if points.parts is not None else (points.values[j],) for j in range(n)]
    sorted_ends = [tuple(end.take(nodes.orders[j]) for end in ends_of_columns[j]) for j in range(n)]
    best_columns, best_cuts = np.zeros(len(sizes), dtype=np.int64), starts + k
    best = np.full(len(sizes), np.inf)
    right = np.zeros(len(points.values[0]), dtype=np.bool_)
    pairs, middle = number_people(points, nodes), (starts + sizes // 2)[:, None]
    for j in range(n):
        order = nodes.orders[j]
        room = find_room(nodes, order, pairs, k)
        cuts, possible = move_cuts(points.ends(j)[0], order, starts, room, middle, pairs is not None)
        cut = cuts[:, 0]
        left_sizes = cut - starts
        parts = np.stack([starts, cut], axis=1).ravel()
        part_sizes = np.stack([left_sizes, sizes - left_sizes], axis=1).ravel()
        right[nodes.orders[j]] = np.repeat(np.arange(len(parts)) % 2 == 1, part_sizes)
        left_starts = np.cumsum(left_sizes) - left_sizes
        right_starts = starts - left_starts
        widths = np.empty((len(sizes), 2))
        cost = np.zeros(len(sizes))
        for i in range(n):
            lows, highs = sorted_ends[i][0], sorted_ends[i][-1]
            if points.tiles:
                below, above = nodes.lower[:, i], nodes.upper[:, i]
                widths[:] = (above - below)[:, None]
                if i == j:
                    cell_cut = find_middle(highs[cut - 1], lows[cut])
                    widths[:, 0], widths[:, 1] = cell_cut - below, above - cell_cut
            elif i == j:
                widths[:, 0] = highs[cut - 1] - lows[starts]
                widths[:, 1] = highs[ends - 1] - lows[cut]
            else:
                goes_right = right.take(nodes.orders[i])
                left_ends = [end.compress(~goes_right) for end in sorted_ends[i]]
                right_ends = [end.compress(goes_right) for end in sorted_ends[i]]
                widths[:, 0] = left_ends[-1][left_starts + left_sizes - 1] - left_ends[0][left_starts]
                widths[:, 1] = right_ends[-1][right_starts + sizes - left_sizes - 1] - right_ends[0][right_starts]
            sums = sum_segments(points.weights[i], nodes.orders[j], parts, part_sizes)
            cost += (sums.reshape(-1, 2) * widths).sum(axis=1) / 2
        better = possible[:, 0] & (cost < best)
        best[better], best_columns[better], best_cuts[better] = cost[better], j, cut[better]
    return best_columns, best_cuts, best


def number_people(points: Points, nodes: Nodes) -> Ints | None:
    """Number the pairs of node and person, for every record; None where every record is another person."""
    if points.people is None:
        return None
    records = nodes.orders[-1]  # by person within a node
    people = points.people.take(records)
    is_next = np.ones(len(people) + 1, dtype=np.bool_)
    np.not_equal(people[1:], people[:-1], out=is_next[1:-1])
    is_next[nodes.starts] = True
    is_only, is_nobody = is_next[1:] & is_next[:-1], people == NOBODY
    numbers = np.cumsum(is_next[:-1] & ~is_only & ~is_nobody) - 1
    numbers[is_only] = SINGLE_ROW
    numbers[is_nobody] = NOBODY
    pairs = np.empty(len(points.people), dtype=np.int64)
    pairs[records] = numbers
    return pairs


def find_room(nodes: Nodes, order: Ints, pairs: Ints | None, k: int, which: Ints | None = None) -> tuple[Ints, Ints]:
    """Return the first and the last index of an order at which each node's right part may begin, by the count of k."""
    starts, ends = nodes.starts, nodes.starts + nodes.sizes
    first, last = (starts + k, ends - k) if pairs is None else find_cut_range(pairs.take(order), starts, ends, k)
    return (first, last) if which is None else (first[which], last[which])


def move_cuts(
    values: Floats, order: Ints, starts: Ints, room: tuple[Ints, Ints], wanted: Ints, of_people: bool
) -> tuple[Ints, Bools]:
    """Move wanted cuts, nodes by choices, to where neighbours differ next to them and both sides hold enough.

    `room` is that of `find_room`; with `of_people` there may be less of it than between the first and the last k
    records. Returns the cuts, and whether they are possible; where none is, the wanted one.
    """
    possible = values[order[wanted]] != values[order[wanted - 1]]
    if possible.all() and not of_people:
        return wanted, possible
    sorted_values = values.take(order)
    differs = np.ones(len(sorted_values) + 1, dtype=np.bool_)
    np.not_equal(sorted_values[1:], sorted_values[:-1], out=differs[1:-1])
    differs[starts] = True
    steps = np.flatnonzero(differs)
    first, last = room[0][:, None], room[1][:, None]
    if of_people:
        # At steps, and nowhere else, the people on each side do not depend on how equal values are ordered.
        first = steps[np.searchsorted(steps, first)]
        last = steps[np.searchsorted(steps, last, side="right") - 1]
        wanted = np.where(first <= last, np.clip(wanted, first, np.maximum(first, last)), wanted)
        possible = (first <= last) & differs[wanted]
    after = np.searchsorted(steps, wanted)
    above, below = steps[after], steps[after - 1]
    below_fits, above_fits = (below >= first) & (below <= last), (above >= first) & (above <= last)
    take_above = above_fits & (~below_fits | (above - wanted < wanted - below))
    cuts = np.where(take_above, above, np.where(below_fits, below, wanted))
    return np.where(possible, wanted, cuts), possible | above_fits | below_fits
