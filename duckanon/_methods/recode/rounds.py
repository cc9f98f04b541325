"""The start of a local recoding, by cuts of the table in two, and the rounds that improve its classes.

All nodes of a level are cut at once, as Mondrian cuts (LeFevre, 2006), but each where both sides together lose least
(`cuts`). A round then puts two or three neighbouring classes into a pool, dissolves them, and lets classes grow from
random rows (`growth`); a pool keeps the new classes if they lose less. Neighbours are classes that are near each other
in a random lexicographic order, and nearest within windows of it, so that a round takes time in proportion to the rows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from duckanon._core.common import progress
from duckanon._core.common.arrays import Array, Bools, Ints, find_run_starts, measure_runs
from duckanon._methods.recode.column_losses import CodedRows, Losses, NumberColumn, compute_losses
from duckanon._methods.recode.cuts import CutNodes, CutRules, CutTable, NodeCuts, find_cuts
from duckanon._methods.recode.growth import GrownClasses, Pools, group_nearest
from duckanon._methods.recode.joins import Joins, make_joins

WINDOW = 64
"""Classes among which the nearest are searched."""
_WINDOWS = 256
"""Windows that are searched at once."""
_POOL_PLACES = 40_000
"""Places of pools that are worked on at once: their arrays stay in the processor's cache."""
_WORTH_IT = 1e-5
"""Loss that a pool must save at least: less is the noise of single precision."""
_BINS = (2, 7)
"""Numbers enter the order of classes in so many bins: from, and up to but without."""
_PAIRS = 2000
"""Pairs of rows whose losses tell which columns matter."""
_CHANCE = 0.5
"""How much chance changes the order of columns: 150,000 workers lose as little after 12 rounds as after 30 with columns
in any order, and with 1 instead of 0.5 after 13."""


Regrow = Callable[[Joins, Pools, np.random.Generator], GrownClasses]
"""Builds the classes of pools anew."""


class Round(NamedTuple):
    """A round: how many classes a pool has, how many rows at most, and how classes are built."""

    classes: int
    most_rows: int
    regrow: Regrow
    only_whole: bool = False  # whether pools must have exactly so many classes


class ClassSearch:
    """Classes of `rows` that get better round by round.

    `home` is the class that a row may always go back to, -1 where it has none: the first `homes` of all classes.
    """

    def __init__(self, rows: CodedRows, home: Ints, classes: Ints, homes: int, k: int) -> None:
        self._rows, self._home, self.classes, self._homes, self._k = rows, home, classes, homes, k
        self._generator = np.random.default_rng(0)  # the same table always gets the same classes
        self._joins = make_joins(rows.columns, rows.codes, rows.group_of_row)
        count = len(classes)
        single = compute_losses(rows.columns, rows.codes, np.arange(count)) if count else np.zeros(0, np.float32)
        self._home_losses = single if homes and single.any() else None  # parts of numbers lose something alone
        columns = list(zip(rows.columns, rows.codes, strict=True))
        # the share of the rows up to each code
        self._shares = [np.cumsum(np.bincount(codes, minlength=c.size)) / max(count, 1) for c, codes in columns]
        # by column, what two rows lose in one class on average
        pairs = self._generator.integers(0, max(count, 1), 2 * _PAIRS if count else 0)
        losses = [compute_losses([c], [codes[pairs]], np.arange(0, len(pairs), 2)) for c, codes in columns]
        self._distances = np.array([loss.mean() if len(loss) else 0.0 for loss in losses], np.float64)

    def improve(self, rounds: int, make: Callable[[np.random.Generator, int], Round]) -> None:
        """Go through so many rounds, each of which is made when it begins."""
        if not len(self.classes):
            return
        for number in range(rounds):
            progress.advance(number / rounds)
            self._improve_once(make(self._generator, number))
            is_used = np.zeros(int(self.classes.max()) + 1, np.bool_)
            is_used[self.classes] = True
            is_used[: self._homes] = True  # homes keep their numbers
            self.classes = (np.cumsum(is_used) - 1)[self.classes]

    def _improve_once(self, turn: Round) -> None:
        """Put classes into pools, build the pools anew, and keep what loses less."""
        by_class, starts, sizes = _group_numbers(self.classes)
        representatives = by_class[starts + (self._generator.random(len(starts)) * sizes).astype(np.int64)]
        pool_of_class = self._form_pools(representatives, turn)
        class_order, firsts, counts = _group_numbers(pool_of_class)
        sizes = sizes[class_order]
        ends = np.concatenate([[0], np.cumsum(sizes)])
        rows = by_class[np.repeat(starts[class_order] - ends[:-1], sizes) + np.arange(ends[-1])]
        losses = compute_losses(self._rows.columns, [codes[rows] for codes in self._rows.codes], ends[:-1])
        pool_starts = ends[firsts]
        pool_sizes = measure_runs(pool_starts, len(rows))
        before = np.add.reduceat(sizes * losses, firsts)
        chosen = (pool_sizes >= self._k) & (pool_sizes <= turn.most_rows) & (before > 1e-6)
        if turn.only_whole:
            chosen &= counts == turn.classes
        self._rebuild(turn, rows, pool_starts, pool_sizes, before, sizes[firsts], np.flatnonzero(chosen))

    def _form_pools(self, representatives: Ints, turn: Round) -> Ints:
        """Put classes into pools with their nearest, each given by one of its rows."""
        order = self._order_neighbours(representatives)
        count = len(order)
        windows = -(-count // WINDOW)
        padded = np.append(order, np.full(windows * WINDOW - count, order[-1])).reshape(windows, WINDOW)
        is_class = (np.arange(windows * WINDOW) < count).reshape(windows, WINDOW)
        pool_of_class = np.empty(count, np.int64)
        for begin in range(0, windows, _WINDOWS):
            classes, is_real = padded[begin : begin + _WINDOWS], is_class[begin : begin + _WINDOWS]
            rows, is_row = np.ascontiguousarray(representatives[classes].T), np.ascontiguousarray(is_real.T)
            labels = group_nearest(self._joins, rows, is_row, turn.classes, self._generator).T
            window = np.arange(begin, begin + len(classes))[:, None]
            pools = window * (WINDOW + 1) + np.where(labels < 0, WINDOW, labels)
            pool_of_class[classes[is_real]] = pools[is_real]
        return pool_of_class

    def _order_neighbours(self, rows: Ints) -> Ints:
        """Return rows in a lexicographic order; numbers count in a few random bins.

        Columns come in a random order, likely first those in which rows lose most if they differ: classes that agree
        there gain more by exchanging rows than classes that agree in a column whose sets may as well grow.
        """
        keys: list[Array] = []
        fine: list[Array] = []
        for column, codes, shares in zip(self._rows.columns, self._rows.codes, self._shares, strict=True):
            row_codes = codes[rows]
            if isinstance(column, NumberColumn):
                fine.append(row_codes)
                bins = np.floor(shares * self._generator.integers(*_BINS) + self._generator.random())
                keys.append(bins.astype(np.int32)[row_codes])
            else:
                keys.append(row_codes)
        chance = _CHANCE * self._generator.gumbel(size=len(keys))
        keys = [keys[index] for index in np.argsort(np.log(self._distances + 1e-9) + chance)]  # the last counts first
        if self._rows.group_of_row is not None:
            keys.append(self._rows.group_of_row[rows])
        return np.lexsort([*fine, *keys])

    def _rebuild(
        self, turn: Round, rows: Ints, starts: Ints, sizes: Ints, before: Losses, first_sizes: Ints, chosen: Ints
    ) -> None:
        """Build the chosen pools anew, those of about the same size at once, and keep what loses less."""
        people, sensitive = self._rows.person_of_row, self._rows.sensitive
        chosen = chosen[np.argsort(sizes[chosen], kind="stable")]
        next_class = int(self.classes.max()) + 1
        for batch in _split_pools(chosen, sizes):
            progress.check()
            width = int(sizes[batch].max())
            places = np.arange(width)[:, None]
            is_row: Bools = places < sizes[batch]
            row = rows[np.where(is_row, starts[batch] + places, starts[batch])]  # places by pools
            pools = Pools(
                row,
                is_row,
                (self._home[row] >= 0) & is_row if self._homes else None,
                None if self._home_losses is None else self._home_losses[row],
                None if people is None else people[row],
                None if sensitive is None else sensitive[row],
                first_sizes[batch],
            )
            grown = turn.regrow(self._joins, pools, self._generator)
            better = np.flatnonzero(grown.losses < before[batch] - _WORTH_IT)
            row, is_row, labels = row[:, better], is_row[:, better], grown.labels[:, better]
            numbers = next_class + np.arange(len(better)) * width + labels
            self.classes[row[is_row]] = np.where(labels < 0, self._home[row], numbers)[is_row]
            next_class += len(better) * width


def _group_numbers(numbers: Ints) -> tuple[Ints, Ints, Ints]:
    """Return the places of numbers in their order, and where each run of equal ones begins, and how long it is.

    Numbers from 0 on are sorted by their low and then by their high 16 bits, which numpy does by counting: a tenth of
    the time of comparing them.
    """
    counts = np.bincount(numbers)  # which could not be held for numbers of more than 32 bits
    order = np.argsort(numbers.astype(np.uint16), kind="stable")
    if len(counts) > 2**16:
        order = order[np.argsort((numbers >> 16).astype(np.uint16)[order], kind="stable")]
    starts = np.cumsum(counts) - counts
    return order, starts[counts > 0], counts[counts > 0]


def _split_pools(pools: Ints, sizes: Ints) -> list[Ints]:
    """Split pools, sorted by their sizes, into batches of limited size that are padded little."""
    if not len(pools):
        return []
    padded = np.cumsum(sizes[pools])
    parts = max(1, int(padded[-1]) // _POOL_PLACES, min(2, len(pools) // 200))
    cuts = np.searchsorted(padded, padded[-1] * np.arange(1, parts) / parts)
    return [batch for batch in np.split(pools, cuts) if len(batch)]


_SAMPLED_ROWS = 2048
"""A node of more rows is cut where a sample of so many says: which of many good cuts is taken hardly matters there."""

_MOVED_AFTER = 16
"""When there are so many times more nodes, rows are moved node by node: they are in the cache when they are read."""


def start_classes(table: CutTable, groups: Ints, rules: CutRules) -> Ints:
    """Put rows into classes by cutting groups in two, as long as both sides keep the rules.

    Of all cuts of a node between two codes of a column, the one that saves most is taken: the losses of both sides are
    exact, since the smallest and largest codes, and the numbers of different values, of all beginnings and all ends of
    a sorted run are running extremes and sums. Each group keeps the rules itself. Classes that were split last have
    neighbouring numbers.
    """
    is_one = not groups.any()  # short codes are then sorted by counting them
    orders = [np.argsort(codes, kind="stable") if is_one else np.lexsort((codes, groups)) for codes in table.codes]
    starts = np.append(find_run_starts(groups[orders[0]]), table.rows)
    nodes, start_of_row = CutNodes(orders, starts, starts[:-1]), np.empty(table.rows, np.int64)
    rows, moved_at = np.arange(table.rows), nodes.number
    while nodes.number:
        progress.check()
        if nodes.number >= _MOVED_AFTER * moved_at:
            moved_at = nodes.number
            rows = rows[nodes.orders[0]]
            table, nodes = _reorder_rows(table, nodes)
        cuts = _find_good_cuts(table, nodes, rules)
        is_cut = cuts.saved >= 0
        class_rows = rows[nodes.orders[0][np.repeat(~is_cut, nodes.sizes)]]
        start_of_row[class_rows] = np.repeat(nodes.first_starts[~is_cut], nodes.sizes[~is_cut])
        nodes = nodes.select(is_cut)
        if nodes.number:
            nodes = _halve_nodes(table, nodes, cuts.column[is_cut], cuts.code[is_cut])
    is_class = np.zeros(len(start_of_row), np.bool_)
    is_class[start_of_row] = True
    classes: Ints = (np.cumsum(is_class) - 1)[start_of_row]
    return classes


def _reorder_rows(table: CutTable, nodes: CutNodes) -> tuple[CutTable, CutNodes]:
    """Return the rows of the nodes node by node, and the nodes with the new numbers of their rows."""
    rows = nodes.orders[0]
    numbers = np.empty(table.rows, np.int64)
    numbers[rows] = np.arange(len(rows))
    reordered = CutTable(
        table.columns,
        [codes[rows] for codes in table.codes],
        table.weights[rows],
        None if table.people is None else table.people[rows],
        None if table.sensitive is None else table.sensitive[rows],
    )
    return reordered, nodes._replace(orders=[numbers[order] for order in nodes.orders])


def _halve_nodes(table: CutTable, nodes: CutNodes, column: Ints, code: Ints) -> CutNodes:
    """Split each node behind a code of a column; within the halves rows keep their order."""
    is_right_row = np.zeros(table.rows, np.bool_)
    node_of_place = nodes.number_places()
    for index, codes in enumerate(table.codes):
        inside = np.flatnonzero((column == index)[node_of_place])
        rows = nodes.orders[index][inside]
        is_right_row[rows] = codes[rows] > code[node_of_place[inside]]
    orders, starts = [], nodes.starts
    for order in nodes.orders:
        is_right = is_right_row[order]
        rights = np.concatenate([[0], np.cumsum(is_right)])
        right_starts = starts[1:] - np.diff(rights[starts])
        rights_before = rights[:-1] - np.repeat(rights[starts[:-1]], nodes.sizes)  # in the row's node
        at_right = np.repeat(right_starts, nodes.sizes) + rights_before
        halves = np.empty_like(order)
        halves[np.where(is_right, at_right, np.arange(len(order)) - rights_before)] = order
        orders.append(halves)
    both = np.stack([starts[:-1], right_starts], axis=1).ravel()
    firsts = np.stack([nodes.first_starts, nodes.first_starts + (right_starts - starts[:-1])], axis=1).ravel()
    return CutNodes(orders, np.append(both, starts[-1]), firsts)


def _find_good_cuts(table: CutTable, nodes: CutNodes, rules: CutRules) -> NodeCuts:
    """Return the best cuts of small nodes, and of large ones the best for a sample, or where it finds none, for all."""
    if rules.holds is not None:
        return find_cuts(table, nodes, rules)
    most = max(_SAMPLED_ROWS, 8 * rules.k)
    cuts = find_cuts(table, nodes.sample(most), rules)
    missed = (cuts.saved < 0) & (nodes.sizes > most)
    if missed.any():
        exact = find_cuts(table, nodes.select(missed), rules)
        for values, exact_values in zip(cuts, exact, strict=True):
            values[missed] = exact_values
    return cuts
