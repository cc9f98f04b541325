"""The start: classes found by cutting the table in two again and again, all nodes of a level at once."""

from __future__ import annotations

import numpy as np

from duckanon._core.common import progress
from duckanon._core.common.arrays import Bools, Ints, run_starts
from duckanon._methods.recode.cuts import Cuts, Nodes, Rules, Table, best_cuts

_SAMPLED_ROWS = 2048
"""A node of more rows is cut where a sample of so many says: which of many good cuts is taken hardly matters there."""

_MOVED_AFTER = 16
"""When there are so many times more nodes, rows are moved node by node: they are in the cache when they are read."""


def start_classes(table: Table, groups: Ints, rules: Rules) -> Ints:
    """Put rows into classes by cutting groups in two, as long as both sides keep the rules.

    Of all cuts of a node between two codes of a column, the one that saves most is taken: the losses of both sides are
    exact, since the smallest and largest codes, and the numbers of different values, of all beginnings and all ends of
    a sorted run are running extremes and sums. Each group keeps the rules itself. Classes that were parted last have
    neighbouring numbers.
    """
    is_one = not groups.any()  # short codes are then sorted by counting them
    orders = [np.argsort(codes, kind="stable") if is_one else np.lexsort((codes, groups)) for codes in table.codes]
    starts = np.append(run_starts(groups[orders[0]]), table.rows)
    nodes, place_of_row = Nodes(orders, starts, starts[:-1]), np.empty(table.rows, np.int64)
    rows, moved_at = np.arange(table.rows), nodes.number
    while nodes.number:
        progress.check()
        if nodes.number >= _MOVED_AFTER * moved_at:
            moved_at = nodes.number
            rows = rows[nodes.orders[0]]
            table, nodes = _moved(table, nodes)
        cuts = _good_cuts(table, nodes, rules)
        is_cut = cuts.saved >= 0
        done = ~is_cut
        of_done = rows[nodes.orders[0][np.repeat(done, nodes.sizes)]]
        place_of_row[of_done] = np.repeat(nodes.places[done], nodes.sizes[done])
        nodes = nodes.kept(is_cut)
        cuts = Cuts(cuts.saved[is_cut], cuts.column[is_cut], cuts.code[is_cut])
        if nodes.number:
            nodes = _halved(nodes, _right_rows(table, nodes, cuts))
    is_class = np.zeros(len(place_of_row), np.bool_)
    is_class[place_of_row] = True
    classes: Ints = (np.cumsum(is_class) - 1)[place_of_row]
    return classes


def _moved(table: Table, nodes: Nodes) -> tuple[Table, Nodes]:
    """Return the rows of the nodes node by node, and the nodes with the new numbers of their rows."""
    rows = nodes.orders[0]
    numbers = np.empty(table.rows, np.int64)
    numbers[rows] = np.arange(len(rows))
    moved = Table(
        table.columns,
        [codes[rows] for codes in table.codes],
        table.weights[rows],
        None if table.people is None else table.people[rows],
        None if table.sensitive is None else table.sensitive[rows],
    )
    return moved, nodes._replace(orders=[numbers[order] for order in nodes.orders])


def _right_rows(table: Table, nodes: Nodes, cuts: Cuts) -> Bools:
    """Tell which rows lie right of their node's cut."""
    is_right = np.zeros(table.rows, np.bool_)
    node_of_place = nodes.of_places()
    for index, codes in enumerate(table.codes):
        inside = np.flatnonzero((cuts.column == index)[node_of_place])
        rows = nodes.orders[index][inside]
        is_right[rows] = codes[rows] > cuts.code[node_of_place[inside]]
    return is_right


def _halved(nodes: Nodes, is_right: Bools) -> Nodes:
    """Part each node in two; within the halves rows keep their order."""
    orders, starts = [], nodes.starts
    for order in nodes.orders:
        right = is_right[order]
        rights_before = np.concatenate([[0], np.cumsum(right)])
        rights = np.diff(rights_before[starts])
        begins_right = starts[1:] - rights
        own = rights_before[:-1] - np.repeat(rights_before[starts[:-1]], nodes.sizes)  # rights before it in its node
        places = np.where(right, np.repeat(begins_right, nodes.sizes) + own, np.arange(len(order)) - own)
        parted = np.empty_like(order)
        parted[places] = order
        orders.append(parted)
    both = np.stack([starts[:-1], begins_right], axis=1).ravel()
    places = np.stack([nodes.places, nodes.places + (begins_right - starts[:-1])], axis=1).ravel()
    return Nodes(orders, np.append(both, starts[-1]), places)


def _good_cuts(table: Table, nodes: Nodes, rules: Rules) -> Cuts:
    """Return the best cuts of small nodes, and of large ones the best for a sample, or where it finds none, for all."""
    if rules.holds is not None:
        return best_cuts(table, nodes, rules)
    most = max(_SAMPLED_ROWS, 8 * rules.k)
    cuts = best_cuts(table, nodes.sampled(most), rules)
    missed = (cuts.saved < 0) & (nodes.sizes > most)
    if missed.any():
        exact = best_cuts(table, nodes.kept(missed), rules)
        for found, of_node in zip(cuts, exact, strict=True):
            found[missed] = of_node
    return cuts
