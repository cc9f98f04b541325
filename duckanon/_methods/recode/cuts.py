"""The best cuts of nodes: what both sides of every cut between two codes lose, for all nodes of a level at once.

Rows are sorted by node and code once for each column. Along such an order the smallest and largest codes of all
beginnings and of all ends of a node are running extremes, and the numbers of different values running sums, so that all
cuts of all nodes are priced exactly in a few passes of numpy: columns times columns passes over the rows of a level.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from duckanon._core.common.arrays import Array, Bools, Floats, Ints, find_run_starts, measure_runs
from duckanon._core.common.people import find_first_and_last, number_pairs
from duckanon._methods.recode.column_losses import CodedColumn, SetColumn, SpanColumn

HistogramTest = Callable[[Ints], Bools]
"""Tells of histograms of the sensitive value, one row a class, which classes may be released."""


class CutTable(NamedTuple):
    """Rows to be put into classes."""

    columns: Sequence[CodedColumn]
    codes: Sequence[Array]
    weights: Ints  # how many rows of the table each row stands for
    people: Ints | None = None  # None: each row is as many people as it has weight
    sensitive: Ints | None = None  # the sensitive value of each row, from 0; None where there is none

    @property
    def rows(self) -> int:
        """The number of rows."""
        return len(self.weights)


class CutRules(NamedTuple):
    """Conditions on classes."""

    k: int
    holds: HistogramTest | None = None  # what the sensitive values must be like; None: whatever they like
    balance: float = 0.0  # how much cuts into halves are preferred to those that save more loss


class CutNodes(NamedTuple):
    """The nodes of a level, each a run of the orders."""

    orders: list[Ints]  # by column: the rows, by node and by the column's code within a node
    starts: Ints  # where each node begins, and behind the last the number of rows
    first_starts: Ints  # where each would begin if no rows had been taken away: neighbours in the tree stay neighbours

    @property
    def number(self) -> int:
        """The number of nodes."""
        return len(self.starts) - 1

    @property
    def sizes(self) -> Ints:
        """The number of rows of each node."""
        return np.diff(self.starts)

    def number_places(self) -> Ints:
        """Return the node at each place of the orders."""
        return np.repeat(np.arange(self.number), self.sizes)

    def select(self, is_kept: Bools) -> CutNodes:
        """Return some of the nodes."""
        at_places = np.repeat(is_kept, self.sizes)
        ends = np.cumsum(self.sizes[is_kept])
        orders = [order[at_places] for order in self.orders]
        return CutNodes(orders, np.concatenate([[0], ends]), self.first_starts[is_kept])

    def sample(self, most: int) -> CutNodes:
        """Return the same nodes, of each at most about so many rows."""
        sizes = self.sizes
        if sizes.max(initial=0) <= most:
            return self
        rank = np.arange(self.starts[-1]) - np.repeat(self.starts[:-1], sizes)
        is_sampled = rank % np.repeat(-(-sizes // most), sizes) == 0
        has_row = np.zeros(int(self.orders[0].max()) + 1, np.bool_)
        has_row[self.orders[0][is_sampled]] = True
        ends = np.cumsum(np.add.reduceat(is_sampled, self.starts[:-1], dtype=np.int64))
        orders = [order[has_row[order]] for order in self.orders]
        return CutNodes(orders, np.concatenate([[0], ends]), self.first_starts)


class NodeCuts(NamedTuple):
    """The best cut of each node: what it saves (-1: there is none), its column and its last code on the left."""

    saved: Floats
    column: Ints
    code: Ints


def find_cuts(table: CutTable, nodes: CutNodes, rules: CutRules) -> NodeCuts:
    """Find the cut of each node that saves most, and leaves enough on both sides."""
    count, node_of_place = nodes.number, nodes.number_places()
    weights = np.add.reduceat(table.weights[nodes.orders[0]], nodes.starts[:-1]).astype(np.float64)
    losses = _compute_node_losses(table, nodes, node_of_place)
    best = NodeCuts(np.full(count, -1.0), np.full(count, -1), np.zeros(count, np.int64))
    may_be_cut: Bools = (losses > 0) & ((weights >= 2 * rules.k) | (table.people is not None))
    if not may_be_cut.any():
        return best
    cut_nodes = nodes.select(may_be_cut)
    numbers = np.flatnonzero(may_be_cut)
    search = _CutSearch(table, cut_nodes, weights[may_be_cut], losses[may_be_cut], rules)
    for index in range(len(table.columns)):
        saved, code = search.find_along(index)
        better = saved > best.saved[numbers]
        best.saved[numbers[better]] = saved[better]
        best.column[numbers[better]] = index
        best.code[numbers[better]] = code[better]
    return best


def _compute_node_losses(table: CutTable, nodes: CutNodes, node_of_place: Ints) -> Floats:
    """Return what each node loses, from the first and last code of each order, or the number of different ones."""
    losses = np.zeros(nodes.number)
    for column, codes, order in zip(table.columns, table.codes, nodes.orders, strict=True):
        if isinstance(column, SpanColumn):
            losses += column.span_losses(codes[order[nodes.starts[:-1]]], codes[order[nodes.starts[1:] - 1]])
        elif isinstance(column, SetColumn):
            in_order = codes[order]
            is_new = np.append(True, in_order[1:] != in_order[:-1])
            is_new[nodes.starts[:-1]] = True
            sums = np.bincount(node_of_place[is_new], column.counts[in_order[is_new]], nodes.number)
            losses += column.set_losses(sums)
    return losses


class _Runs(NamedTuple):
    """Runs of places with the same node and code in a column's order: a cut lies behind each."""

    starts: Ints
    node: Ints
    code: Ints
    last: Ints  # by node: its last run

    def number_places(self, rows: int) -> Array:
        """Return the run at each of so many places."""
        return np.repeat(np.arange(len(self.starts), dtype=np.int32), measure_runs(self.starts, rows))

    def since_node(self, sums: Array) -> Array:
        """Return running sums over all runs as running sums within each node."""
        before = np.concatenate([np.zeros_like(sums[:1]), sums[self.last[:-1]]])
        within: Array = sums - before[self.node]
        return within

    def totals(self, within: Array) -> Array:
        """Return the last of the running sums within each run's node."""
        totals: Array = within[self.last][self.node]
        return totals


class _CutSearch:
    """The losses of both sides of all cuts of all nodes of a level."""

    def __init__(self, table: CutTable, nodes: CutNodes, weights: Floats, losses: Floats, rules: CutRules) -> None:
        self._table, self._nodes, self._rules = table, nodes, rules
        self._weights, self._losses = weights, losses
        self._node_of_place = nodes.number_places()
        self._runs = [self._find_runs(index) for index in range(len(table.columns))]

    def _find_runs(self, index: int) -> _Runs:
        in_order = self._table.codes[index][self._nodes.orders[index]]
        is_new = np.append(True, in_order[1:] != in_order[:-1])
        is_new[self._nodes.starts[:-1]] = True
        starts = np.flatnonzero(is_new)
        node = self._node_of_place[starts]
        last = np.append(find_run_starts(node)[1:], len(starts)) - 1
        return _Runs(starts, node, in_order[starts].astype(np.int64), last)

    def find_along(self, index: int) -> tuple[Floats, Ints]:
        """Return what the best cut of each node along a column saves, -1 where there is none, and its code."""
        runs, order = self._runs[index], self._nodes.orders[index]
        left = runs.since_node(np.cumsum(np.add.reduceat(self._table.weights[order], runs.starts)).astype(np.float64))
        right = runs.totals(left) - left
        allowed = self._find_valid(runs, order, left, right)
        most, code = np.full(self._nodes.number, -1.0), np.zeros(self._nodes.number, np.int64)
        if not allowed.any():
            return most, code
        run_of_row = np.empty(self._table.rows, np.int32)
        run_of_row[order] = runs.number_places(len(order))
        cuts = np.flatnonzero(allowed)
        left_loss, right_loss = np.zeros(len(cuts)), np.zeros(len(cuts))
        for other, column in enumerate(self._table.columns):
            if isinstance(column, SpanColumn):
                sides = self._compute_span_sides(column, runs, order, other, cuts, is_own=other == index)
            else:
                assert isinstance(column, SetColumn)
                sides = self._compute_set_sides(column, runs, run_of_row, other, cuts)
            left_loss += sides[0]
            right_loss += sides[1]
        node, left, right = runs.node[cuts], left[cuts], right[cuts]
        weight = self._weights[node]
        saved = np.maximum(weight * self._losses[node] - left * left_loss - right * right_loss, 0.0)
        if self._rules.balance:
            saved *= (4 * left * right / weight**2) ** self._rules.balance
        saved += 1e-7 * np.minimum(left, right)
        np.maximum.at(most, node, saved)
        best = np.flatnonzero(saved == most[node])[::-1]
        code[node[best]] = runs.code[cuts[best]]
        return most, code

    def _find_valid(self, runs: _Runs, order: Ints, left: Floats, right: Floats) -> Bools:
        """Tell which cuts leave enough on both sides."""
        people_left, people_right = (left, right) if self._table.people is None else self._count_people(runs, order)
        allowed: Bools = (people_left >= self._rules.k) & (people_right >= self._rules.k)
        if self._rules.holds is not None and allowed.any():
            assert self._table.sensitive is not None
            kinds = int(self._table.sensitive.max()) + 1
            keys = runs.number_places(len(order)).astype(np.int64) * kinds + self._table.sensitive[order]
            counts = np.bincount(keys, self._table.weights[order], len(runs.starts) * kinds)
            before = runs.since_node(np.cumsum(counts.reshape(-1, kinds), axis=0))
            after = runs.totals(before) - before
            allowed[allowed] = self._rules.holds(before[allowed]) & self._rules.holds(after[allowed])
        return allowed

    def _count_people(self, runs: _Runs, order: Ints) -> tuple[Ints, Ints]:
        """Count the different people left and right of each cut."""
        people = self._table.people
        assert people is not None
        pairs = number_pairs(self._node_of_place, people[order])
        firsts, lasts = find_first_and_last(pairs)
        ends = np.append(runs.starts[1:], len(order))
        seen, gone = np.searchsorted(firsts, ends), np.searchsorted(lasts, ends)
        before = runs.since_node(seen)
        return before, runs.totals(before) - runs.since_node(gone)

    def _compute_span_sides(
        self, column: SpanColumn, runs: _Runs, order: Ints, other: int, cuts: Ints, *, is_own: bool
    ) -> tuple[Array, Array]:
        """Return the losses of both sides in a column of which classes publish the smallest and the largest code."""
        least = most = runs.code
        if not is_own:
            in_order = self._table.codes[other][order]
            least = np.minimum.reduceat(in_order, runs.starts).astype(np.int64)
            most = np.maximum.reduceat(in_order, runs.starts).astype(np.int64)
        # runs of a node lie above, or below, those of the nodes before: running extremes begin anew with each
        apart = runs.node * column.size
        left_most = np.maximum.accumulate(most + apart)[cuts] - apart[cuts]
        left_least = np.minimum.accumulate(least - apart)[cuts] + apart[cuts]
        right_most = np.maximum.accumulate((most - apart)[::-1])[::-1][cuts + 1] + apart[cuts]
        right_least = np.minimum.accumulate((least + apart)[::-1])[::-1][cuts + 1] - apart[cuts]
        return column.span_losses(left_least, left_most), column.span_losses(right_least, right_most)

    def _compute_set_sides(
        self, column: SetColumn, runs: _Runs, run_of_row: Array, other: int, cuts: Ints
    ) -> tuple[Array, Array]:
        """Return the losses of both sides in a column of which classes publish the values."""
        value_runs = self._runs[other]
        run_in_order = run_of_row[self._nodes.orders[other]]
        counts = column.counts[value_runs.code]
        sums = []
        for extreme in (np.minimum, np.maximum):  # a value begins in the first run that has it, and ends in the last
            run = extreme.reduceat(run_in_order, value_runs.starts)
            sums.append(runs.since_node(np.cumsum(np.bincount(run, counts, len(runs.starts)))))
        begun, ended = sums
        return column.set_losses(begun[cuts]), column.set_losses((runs.totals(begun) - ended)[cuts])
