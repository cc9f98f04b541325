"""Recursive splitting of records into boxes: all nodes of a level at once, by estimates or by looking ahead.

A cut is judged by what the boxes on both sides are expected to cost. `grow_boxes` takes the cut with the best estimate
in large nodes, and tries several first cuts in nodes of at most eight leaves. `Lookahead` compares all cuts of nodes of
up to 16 leaves by the widths that both sides really have in all columns, and follows the best ones several cuts deep.
Groups of microaggregation, which may overlap, were up to 14 % narrower than boxes of estimates; boxes of looking ahead
are mostly narrower than these groups, and still do not overlap. A level costs one pass over the records.

References:
    Accurate Boxes, Section V; REFERENCES.md, Boxes, "Tiling space with the boxes".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from duckanon._core.common import progress
from duckanon._core.common.arrays import Bools, Floats, Ints, accumulate_maxima
from duckanon._methods.boxes.cuts import (
    FEW,
    SHARES,
    TINY,
    Candidates,
    find_pair_cuts,
    find_room,
    move_cuts,
    number_people,
    score_cuts,
)
from duckanon._methods.boxes.nodes import Leaves, Nodes, Points, is_diverse, measure_costs, split_nodes

_LARGE = 512  # of a node with more records only a sample's sensitivities are looked at


@dataclass(frozen=True)
class BoxRules:
    """Conditions on a box, and the effort of the search."""

    k: int
    l: int = 1  # noqa: E741 - the papers' name
    epsilon: Sequence[float] = field(default_factory=tuple)
    tries: int = 4  # how many first cuts are tried on a node of three or four leaves
    wide: int = 1  # and on a node of five to eight
    uneven: float = 0.0  # by how much an uneven cut has to be better than an even one
    shares: Sequence[float] = SHARES  # of a node's leaves, which a cut may put on the left side
    noise: float = 0.0  # the spread of the random factors (their logarithms) that estimates of cuts are multiplied by
    random: np.random.Generator | None = None  # where these come from


def grow_boxes(points: Points, nodes: Nodes, rules: BoxRules, until: int = 0) -> tuple[Leaves, Floats, Nodes]:
    """Split nodes until they are boxes, or have at most `until` leaves.

    Returns the boxes, whose `roots` count these nodes; the summed cost of the boxes of each of these; and the nodes
    that were not split further, none if `until` is 0.
    """
    count = len(nodes.sizes)
    nodes = nodes._replace(roots=np.arange(count, dtype=np.int64))
    costs = np.zeros(count)
    done: list[Leaves] = []

    def finish(boxes: Nodes) -> None:
        np.add.at(costs, boxes.roots, measure_costs(points, boxes))
        done.append(boxes.leaves())

    # Large nodes first, then middling ones, the last leaves at the end: each kind in few and large batches.  So what
    # becomes of a node does not depend on the nodes it comes with.
    large = max(FEW, _LARGE // rules.k)
    last = 1 if rules.l > 1 else FEW if rules.wide > 1 else 4
    for smallest in (large, FEW, last):
        waiting: list[Nodes] = []
        while (active := nodes.sizes // rules.k > max(smallest, until)).any():
            progress.check()
            if 2 * int(nodes.sizes[active].sum()) < len(nodes.orders[0]):
                # To carry small nodes along costs less than to sort them out, until they are the larger part.
                waiting.append(nodes.keep(~active))
                nodes = nodes.keep(active)
                active = np.ones(len(nodes.sizes), dtype=np.bool_)
            which = np.flatnonzero(active)
            # The last levels have the most nodes and do not make the tree deeper.
            uneven = rules.uneven if smallest >= FEW else 0.0
            sampled = smallest == large
            options = score_cuts(points, nodes, rules.k, which, sampled=sampled, uneven=uneven, shares=rules.shares)
            column, cuts, is_cut = _choose_cuts(points, nodes, which, options, rules)
            if not is_cut.all():
                closed = which[~is_cut]
                active[closed] = False
                stays = np.ones(len(nodes.sizes), dtype=np.bool_)
                stays[closed] = False
                finish(nodes.keep(~stays))
                nodes, active = nodes.keep(stays), active[stays]
                if not len(nodes.sizes):
                    break
            all_columns, all_cuts = np.zeros(len(active), dtype=np.int64), nodes.starts + nodes.sizes
            all_columns[active] = column[is_cut]
            all_cuts[active] = nodes.starts[active] + cuts[is_cut]
            nodes = split_nodes(points, nodes, all_columns, all_cuts)
        waiting.append(nodes)
        nodes = join_nodes([kept for kept in waiting if len(kept.sizes)], nodes)
    if not until:
        _finish_leaves(points, nodes, rules, costs, done)
    return join_leaves(done, nodes), costs, nodes


def _finish_leaves(points: Points, nodes: Nodes, rules: BoxRules, costs: Floats, done: list[Leaves]) -> None:
    """Finish nodes of one to eight leaves; where there are at least two, the cheapest of several cuts is kept."""
    leaves = nodes.sizes // rules.k
    kinds = (
        (leaves == 1, _keep_whole),
        (leaves == 2, _cut_in_two),
        (np.isin(leaves, (3, 4)), _try_cuts),
        (leaves > 4, _try_cuts),
    )
    for of_kind, solve in kinds:
        if of_kind.any():
            progress.check()
            kept = nodes.keep(of_kind)
            boxes, cost = solve(points, kept, rules)
            np.add.at(costs, kept.roots, cost)
            done.append(boxes._replace(roots=kept.roots[boxes.roots]))


def _keep_whole(points: Points, nodes: Nodes, rules: BoxRules) -> tuple[Leaves, Floats]:
    """Make every node a box."""
    return nodes._replace(roots=np.arange(len(nodes.sizes))).leaves(), measure_costs(points, nodes)


def _cut_in_two(points: Points, nodes: Nodes, rules: BoxRules) -> tuple[Leaves, Floats]:
    """Cut nodes of two leaves by the best column; a node that no column can cut is a box."""
    nodes = nodes._replace(roots=np.arange(len(nodes.sizes)))
    column, cuts, cost = find_pair_cuts(points, nodes, rules.k)
    is_cut = np.isfinite(cost)
    parts: list[Nodes] = []
    if not is_cut.all():
        cost[~is_cut] = measure_costs(points, nodes.keep(~is_cut))
        parts.append(nodes.keep(~is_cut))
    if is_cut.any():
        kept = nodes.keep(is_cut)
        kept_cuts = cuts[is_cut] - nodes.starts[is_cut] + kept.starts
        parts.append(split_nodes(points, kept, column[is_cut], kept_cuts, final=True))
    return join_leaves([part.leaves() for part in parts], nodes), cost


def _try_cuts(points: Points, nodes: Nodes, rules: BoxRules) -> tuple[Leaves, Floats]:
    """Split nodes of three to eight leaves by their most promising cuts and keep the cheapest result of each."""
    options = _add_noise(score_cuts(points, nodes, rules.k), rules)
    count = len(nodes.sizes)
    order = np.argsort(options.scores, axis=1, kind="stable")
    best, which = np.full(count, np.inf), np.full(count, -1)
    tried: list[Leaves] = []
    small = int(nodes.sizes.max()) // rules.k <= 4
    for t in range(min(rules.tries if small else rules.wide, order.shape[1])):
        chosen = order[:, t]
        rows = np.arange(count)
        is_cut = np.isfinite(options.scores[rows, chosen])
        if t == 0 and not is_cut.all():
            # Nothing separates these records.
            whole = nodes.keep(~is_cut)
            best[~is_cut], which[~is_cut] = measure_costs(points, whole), len(tried)
            tried.append(whole._replace(roots=np.flatnonzero(~is_cut)).leaves())
        if not is_cut.any():
            break
        kept = nodes.keep(is_cut)._replace(roots=np.flatnonzero(is_cut))
        cuts = (options.cuts[rows, chosen] - nodes.starts)[is_cut] + kept.starts
        parts = split_nodes(points, kept, options.columns[chosen][is_cut], cuts)
        roots = parts.roots
        # Fewer cuts of the parts are tried, as their share in the gain is smaller.
        tries, wide = (rules.tries * 2 // 3, rules.wide) if small else (rules.tries, rules.wide // 2)
        boxes, cost, _ = grow_boxes(points, parts, replace(rules, tries=max(tries, 1), wide=max(wide, 1)))
        total = np.bincount(roots, weights=cost, minlength=count)
        better = is_cut & (total < best)
        best[better], which[better] = total[better], len(tried)
        tried.append(boxes._replace(roots=roots[boxes.roots]))
    return join_leaves([boxes.keep(which[boxes.roots] == t) for t, boxes in enumerate(tried)], nodes), best


def _add_noise(options: Candidates, rules: BoxRules) -> Candidates:
    """Multiply the estimates by random factors where the rules ask for noise."""
    if rules.random is None or not rules.noise:
        return options
    factors = np.exp(rules.noise * rules.random.standard_normal(options.scores.shape))
    return options._replace(scores=options.scores * factors)


def _choose_cuts(
    points: Points, nodes: Nodes, which: Ints, options: Candidates, rules: BoxRules
) -> tuple[Ints, Ints, Bools]:
    """Take the best cut of every node, or the best one after which both sides are diverse.

    Returns the column and the cut, counted from the start of its node, and whether there is one.
    """
    options = _add_noise(options, rules)
    scores, starts = options.scores, nodes.starts[which]
    rows = np.arange(len(scores))
    best = scores.argmin(axis=1)
    is_cut = np.isfinite(scores[rows, best])
    if rules.l > 1:
        scores = scores.copy()
        refused = np.flatnonzero(is_cut)
        while len(refused):
            chosen = best[refused]
            tested = np.zeros(len(nodes.sizes), dtype=np.bool_)
            tested[which[refused]] = True
            kept = nodes.keep(tested)
            cuts = options.cuts[refused, chosen] - starts[refused] + kept.starts
            parts = split_nodes(points, kept, options.columns[chosen], cuts)
            good = is_diverse(
                points.values, parts.orders[: len(points.values)], parts.starts, parts.sizes, rules.l, rules.epsilon
            )
            good = good[: len(refused)] & good[len(refused) :]
            scores[refused, chosen] = np.where(good, scores[refused, chosen], np.inf)
            refused = refused[~good]
            best[refused] = scores[refused].argmin(axis=1)
            is_cut[refused] = np.isfinite(scores[refused, best[refused]])
            refused = refused[is_cut[refused]]
    return options.columns[best], options.cuts[rows, best] - starts, is_cut


def join_leaves(parts: list[Leaves], like: Nodes) -> Leaves:
    """Join lists of boxes; `like` has the columns where there are no lists."""
    if not parts:
        none = np.zeros(0, dtype=np.int64)
        return Leaves(none, none, none, like.lower[:0], like.upper[:0])
    if len(parts) == 1:
        return parts[0]
    return Leaves(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))


def join_nodes(parts: list[Nodes], none: Nodes) -> Nodes:
    """Join lists of nodes; `none` is returned where there are no lists."""
    if len(parts) < 2:
        return parts[0] if parts else none
    orders = [np.concatenate(orders) for orders in zip(*(part.orders for part in parts), strict=True)]
    return Nodes(orders, *(np.concatenate(arrays) for arrays in zip(*(part[1:] for part in parts), strict=True)))


_ALL_CUTS = 16  # leaves of a node up to which all cuts are compared; in larger nodes those at these shares
_CUT_SHARES = np.arange(1, 128) / 128
_GRIDS = ((512, 1.0), (_ALL_CUTS, 0.75))
"""Pairs of a number of leaves and a weight, for the nodes that are larger. The weight is that of a grid whose cells are
as narrow in every column as is best; the rest is the weight of cells of the node's own shape. A weight below 1 takes
off the tails of incomes (boxes 1 to 3 % narrower). In larger nodes it would take off slices without end: boxes of
100,000 uniform numbers were 70 % wider."""
_GROUPS = 16  # of neighbouring cuts, of which the best is tried: others next to it promise the same
_CELLS = 60_000  # cuts that are compared at once: they stay in the cache
_ROOM = _CELLS // 8  # nodes with fewer records are compared together, of whatever sizes they are


_Ends = NDArray[np.float32]


class Effort(NamedTuple):
    """How many cuts are tried in nodes, and after each of them, and so on."""

    large: Sequence[int]  # in nodes of more than 16 leaves
    small: Sequence[int]


DEEP, HALF = Effort((4, 2), (6, 4, 3, 2)), Effort((), (4, 2))
FULL, MOST = Effort((3,), (6, 3, 2)), Effort((), (6, 3, 2))
"""Of as many evaluations, those that try more cuts first and fewer later left the narrowest boxes: for 3,000 incomes of
three columns and k = 5, (5, 3, 2) gave 1 % less than (3, 3, 3), (2, 3, 4) nearly 1 % more. At 100,000 records `HALF`
takes two seconds and makes boxes that are 1 to 10 % narrower than those of estimates alone, which took three. On 32,561
adults (age, weight, hours, k = 5) `HALF` lost 1 % to microaggregation, `MOST` gained half a percent."""


class _BestCuts(NamedTuple):
    """The best cuts of nodes, best first; nodes by cuts."""

    columns: Ints
    cuts: Ints  # records on the left side
    scores: Floats  # what both sides are expected to cost; infinite where there is no such cut


class Lookahead:
    """A search for boxes of at least k people.

    Cuts leave k people on both sides. What the sides will cost is estimated as if each record were another person: with
    the people of a node in place of its records boxes became no narrower.
    """

    def __init__(self, points: Points, k: int, effort: Effort) -> None:
        self.points, self.k, self.effort, self.grid = points, k, effort, 1.0
        self.is_even = all(isinstance(weight, float) for weight in points.weights)
        low = [points.ends(column)[0].min() for column in range(points.shaping)]
        span = [(points.ends(column)[1].max() - least) or 1.0 for column, least in enumerate(low)]
        above = [(points.ends(column)[1] - low[column]) / span[column] for column in range(points.shaping)]
        below = [(low[column] - points.ends(column)[0]) / span[column] for column in range(points.shaping)]
        # The upper ends and the negative lower ones: widths are sums of maxima. Seven digits suffice to compare cuts.
        self.ends = np.stack([*above, *below], axis=1).astype(np.float32)
        self.scales = np.array(
            [s * (weight if isinstance(weight, float) else 1.0) for s, weight in zip(span, points.weights, strict=True)]
        )
        self.largest = float(self.scales.max())
        # By number of records: the cost of a side, as a multiple of what one record would cost in a single box.
        sizes = np.arange((_ALL_CUTS + 1) * k + 1)
        self.factors = np.where(sizes < k, 0.0, np.maximum(sizes // k, 1) ** (-1.0 / points.shaping)) * sizes
        self.shares = np.tile(self.scales / self.largest, 2).astype(np.float32)

    def find_boxes(self, nodes: Nodes) -> tuple[Leaves, Floats]:
        """Split nodes until they are boxes; return these, whose roots count the nodes, and what those of each cost."""
        nodes = nodes._replace(roots=np.arange(len(nodes.sizes)))
        done: list[Nodes] = []
        left = nodes
        for most, self.grid in _GRIDS:
            with progress.step(0, 0):
                whole, left = self._split_down(left, most, self.effort.large)
            done += whole
        with progress.step(1 / 3, 1):
            whole, left = self._split_down(left, 1, self.effort.small)
        done = [boxes for boxes in (*done, *whole, left) if len(boxes.sizes)]
        costs = np.zeros(len(nodes.sizes))
        for boxes in done:
            np.add.at(costs, boxes.roots, measure_costs(self.points, boxes))
        return join_leaves([boxes.leaves() for boxes in done], nodes), costs

    def _split_down(self, nodes: Nodes, most: int, tries: Sequence[int]) -> tuple[list[Nodes], Nodes]:
        """Split nodes until they have at most `most` leaves; return those that cannot be split, and the small ones."""
        none, total = nodes.keep(np.zeros(len(nodes.sizes), np.bool_)), int(nodes.sizes.sum())
        whole: list[Nodes] = []
        small: list[Nodes] = []
        while len(nodes.sizes):
            progress.advance(1 - int(nodes.sizes.sum()) / total)
            is_small = nodes.sizes < (most + 1) * self.k
            small.append(nodes.keep(is_small))
            nodes = nodes.keep(~is_small)
            column, cuts, expected = self._choose_ahead(nodes, tries)
            is_cut = np.isfinite(expected)
            whole.append(nodes.keep(~is_cut))
            nodes = nodes.keep(is_cut)
            if len(nodes.sizes):
                nodes = split_nodes(self.points, nodes, column[is_cut], nodes.starts + cuts[is_cut])
        return whole, join_nodes([kept for kept in small if len(kept.sizes)], none)

    def _choose_ahead(self, nodes: Nodes, tries: Sequence[int]) -> tuple[Ints, Ints, Floats]:
        """Return the column and the index of each node's best cut, and what the boxes below it will cost."""
        best_cuts = self._find_cuts(nodes, tries[0] if tries else 1)
        if not tries:
            return best_cuts.columns[:, 0], best_cuts.cuts[:, 0], best_cuts.scores[:, 0]
        scores = best_cuts.scores.copy()
        can_try = (nodes.sizes >= 3 * self.k)[:, None] & np.isfinite(best_cuts.scores)  # of two boxes the cost is known
        for turn, is_tried in enumerate(can_try.T):
            if is_tried.any():
                scores[is_tried, turn] = self._cost_after(nodes.keep(is_tried), best_cuts, is_tried, turn, tries[1:])
        best = scores.argmin(axis=1), np.arange(len(scores))
        return best_cuts.columns[best[::-1]], best_cuts.cuts[best[::-1]], scores[best[::-1]]

    def _cost_after(
        self, nodes: Nodes, best_cuts: _BestCuts, is_tried: Bools, turn: int, tries: Sequence[int]
    ) -> Floats:
        """Return what nodes are expected to cost after one of their best cuts."""
        nodes = nodes._replace(roots=np.arange(len(nodes.sizes)))
        sides = split_nodes(
            self.points, nodes, best_cuts.columns[is_tried, turn], nodes.starts + best_cuts.cuts[is_tried, turn]
        )
        return np.asarray(np.bincount(sides.roots, self._expect_costs(sides, tries)), np.float64)

    def _expect_costs(self, nodes: Nodes, tries: Sequence[int]) -> Floats:
        """Return what nodes are expected to cost after their best cuts."""
        costs = np.full(len(nodes.sizes), np.inf)
        is_large = nodes.sizes >= 2 * self.k
        if is_large.any():
            costs[is_large] = self._choose_ahead(nodes.keep(is_large), tries)[2]
        is_box = np.isinf(costs)
        if is_box.any():
            costs[is_box] = measure_costs(self.points, nodes.keep(is_box))
        return costs

    def _find_cuts(self, nodes: Nodes, most: int) -> _BestCuts:
        """Return the best cuts of each node, judged without looking ahead."""
        count = len(nodes.sizes)
        nowhere = np.zeros((2, count, most), np.int64)
        best_cuts = _BestCuts(nowhere[0], nowhere[1], np.full((count, most), np.inf))
        rooms = self._find_rooms(nodes)
        is_large = nodes.sizes >= (_ALL_CUTS + 1) * self.k
        if is_large.any():
            cuts = self._compare_at_shares(nodes.keep(is_large), rooms[:, :, is_large], most)
            for into, best in zip(best_cuts, cuts, strict=True):
                into[is_large] = best
        small = (~is_large).nonzero()[0]
        for chosen in _batch_alike(nodes.sizes[small]):
            rows = small[chosen]
            for into, best in zip(best_cuts, self._compare_all(nodes, rows, rooms[:, :, rows], most), strict=True):
                into[rows, : best.shape[0]] = best.T
        return best_cuts

    def _find_rooms(self, nodes: Nodes) -> Ints:
        """Return how many records a cut may put on the left side at least and at most; columns by ends by nodes."""
        pairs, shaping = number_people(self.points, nodes), self.points.shaping
        if pairs is not None:
            return np.stack([find_room(nodes, order, pairs, self.k) for order in nodes.orders[:shaping]]) - nodes.starts
        rooms = np.empty((shaping, 2, len(nodes.sizes)), np.int64)  # of records it is the same in all columns
        rooms[:, 0], rooms[:, 1] = self.k, nodes.sizes - self.k
        return rooms

    def _compare_at_shares(self, nodes: Nodes, rooms: Ints, most: int) -> _BestCuts:
        """Compare cuts of large nodes at fixed shares of their leaves."""
        n, starts, sizes = self.points.shaping, nodes.starts, nodes.sizes[:, None]
        leaves = sizes // self.k
        wanted = starts[:, None] + np.clip((leaves * _CUT_SHARES).astype(np.int64), 1, leaves - 1) * self.k
        cut_sizes = np.empty((n, *wanted.shape), np.int64)
        promised = np.empty(cut_sizes.shape)
        for column in range(n):
            order, values = nodes.orders[column], self.points.ends(column)[0]
            first, last = rooms[column] + starts
            of_people = self.points.people is not None
            cuts = np.sort(move_cuts(values, order, starts, (first, last), wanted, of_people)[0], axis=1)
            bounds = np.concatenate([starts[:, None], cuts], axis=1)
            reached = np.maximum.reduceat(self.ends.take(order, axis=0), bounds.ravel(), axis=0)
            reached = reached.reshape(*bounds.shape, 2 * n)
            is_same = bounds[:, 1:] == bounds[:, :-1]
            reached[:, :-1][is_same] = -np.inf  # nobody is between two equal cuts
            left = cuts - starts[:, None]
            score = self._estimate_costs(np.maximum.accumulate(reached, axis=1)[:, :-1], left, order, bounds, False)
            score += self._estimate_costs(
                np.maximum.accumulate(reached[:, ::-1], axis=1)[:, -2::-1], sizes - left, order, bounds, True
            )
            score[is_same | (values[order[cuts]] == values[order[cuts - 1]])] = np.inf
            score[(cuts < first[:, None]) | (cuts > last[:, None])] = np.inf
            cut_sizes[column], promised[column] = left, score
        at, scores = (by_column.swapaxes(0, 1).reshape(len(starts), -1) for by_column in (cut_sizes, promised))
        best = np.argsort(scores, axis=1, kind="stable")[:, :most]
        chosen, expected = (np.take_along_axis(by_column, best, axis=1) for by_column in (at, scores))
        return _BestCuts(best // wanted.shape[1], chosen, expected / 2)

    def _estimate_costs(self, reached: _Ends, sizes: Ints, order: Ints, bounds: Ints, is_right: bool) -> Floats:
        """Estimate what the sides of cuts will cost, as `cuts.candidates` does; nodes by cuts."""
        n = self.points.shaping
        gains = (reached[..., :n] + reached[..., n:]) * self.scales
        for column, weight in enumerate(self.points.weights):
            if not isinstance(weight, float):
                sums = np.add.reduceat(weight.take(order), bounds.ravel()).reshape(bounds.shape)
                sums[:, :-1][bounds[:, 1:] == bounds[:, :-1]] = 0.0
                sums = np.cumsum(sums[:, ::-1], axis=1)[:, -2::-1] if is_right else np.cumsum(sums, axis=1)[:, :-1]
                gains[..., column] *= sums / sizes
        leaves = np.log(sizes / self.k)
        logs = -np.sort(-np.log(np.maximum(gains, TINY)), axis=-1)
        level = ((np.cumsum(logs, axis=-1) - leaves[..., None]) / np.arange(1, n + 1)).max(axis=-1)
        as_grid = np.minimum(gains, np.exp(level)[..., None]).sum(axis=-1)
        as_node = gains.sum(axis=-1) * np.exp(-leaves / n)
        costs: Floats = as_grid**self.grid * as_node ** (1 - self.grid) * sizes
        return costs

    def _compare_all(self, nodes: Nodes, chosen: Ints, rooms: Ints, most: int) -> tuple[Ints, Ints, Floats]:
        """Compare all cuts of small nodes of nearly the same size; return the best, cuts by nodes."""
        k, n, sizes = self.k, self.points.shaping, nodes.sizes[chosen]
        length = int(sizes.max())
        # Shorter nodes are filled up with their last record, which makes no side wider.
        indices = nodes.starts[chosen] + np.minimum(np.arange(length)[:, None], sizes - 1)
        left = np.arange(k, length - k + 1)[:, None]
        right = sizes - left
        factors = self.factors.take(left), self.factors.take(right, mode="clip")
        inside = slice(k - 1, length - k)
        width = len(left) if most == 1 else max(k, -(-len(left) // _GROUPS))
        groups = -(-len(left) // width)
        best = np.empty((n, groups, len(chosen)))
        at: Ints = np.empty(best.shape, np.int64)
        scores = np.full((groups * width, len(chosen)), np.inf)
        grouped = scores.reshape(groups, width, len(chosen))
        for column in range(n):
            records = nodes.orders[column].take(indices)
            low = self.points.ends(column)[0].take(records[k - 1 : length - k + 1])
            ends = self.ends.take(records, axis=0)
            score = factors[0] * self._sum_costs(records, ends, sizes, False)[inside]
            score += factors[1] * self._sum_costs(records[::-1], ends[::-1], sizes, True)[inside][::-1]
            score[(low[1:] == low[:-1]) | (left < rooms[column, 0]) | (left > rooms[column, 1])] = np.inf
            scores[: len(left)] = score
            at[column], best[column] = grouped.argmin(axis=1), grouped.min(axis=1)
        at += k + width * np.arange(groups)[:, None]
        promised, at = best.reshape(-1, len(chosen)), at.reshape(-1, len(chosen))
        order = promised.argmin(axis=0)[None] if most == 1 else promised.argsort(axis=0, kind="stable")[:most]
        flat_index = order * len(chosen) + np.arange(len(chosen))
        return order // groups, at.take(flat_index), promised.take(flat_index) / 2

    def _sum_costs(self, records: Ints, ends: _Ends, sizes: Ints, is_backward: bool) -> Floats:
        """Return what a record costs in a box of the first one, the first two, and so on; records by nodes."""
        reached = accumulate_maxima(ends)
        if self.is_even:
            sums = (reached.reshape(-1, len(self.shares)) @ self.shares).reshape(records.shape)
            return sums.astype(np.float64) * self.largest
        is_there = np.arange(len(records))[:, None] < sizes
        is_there = is_there[::-1] if is_backward else is_there
        counts = np.maximum(np.cumsum(is_there, axis=0), 1)
        total = np.zeros(records.shape)
        for column, weight in enumerate(self.points.weights):
            width = reached[:, :, column] + reached[:, :, self.points.shaping + column]
            if not isinstance(weight, float):
                width = width * np.cumsum(np.where(is_there, weight.take(records), 0.0), axis=0) / counts
            total += width * self.scales[column]
        return total


def _batch_alike(sizes: Ints) -> Iterator[Ints]:
    """Return nodes in lists of nearly the same size, as shorter ones are filled up to the longest."""
    order = sizes.argsort(kind="stable")
    ordered = sizes[order]
    before = ordered.cumsum() - ordered
    begin = 0
    while begin < len(order):
        similar = int(ordered.searchsorted(ordered[begin] * 4 // 3, side="right"))
        few = int(before.searchsorted(before[begin] + _ROOM, side="right"))
        most = begin + max(1, _CELLS // int(ordered[begin]))
        end = max(begin + 1, min(max(similar, few), most))
        yield order[begin:end]
        begin = end
