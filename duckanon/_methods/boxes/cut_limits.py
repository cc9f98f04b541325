"""Where a node can be cut: between different values, with at least k records, or k people, on both sides."""

from __future__ import annotations

import numpy as np

from duckanon._core.common.arrays import Bools, Floats, Ints
from duckanon._core.common.people import cut_range, numbered_pairs
from duckanon._methods.boxes.nodes import Nodes, Points


def node_people(points: Points, nodes: Nodes) -> Ints | None:
    """Return for every record its node and its person as one number; None where every record is another person."""
    if points.people is None:
        return None
    records = nodes.orders[0]
    pairs = np.empty(len(points.people), dtype=np.int64)
    pairs[records] = numbered_pairs(np.repeat(np.arange(len(nodes.sizes)), nodes.sizes), points.people.take(records))
    return pairs


def cut_room(nodes: Nodes, order: Ints, pairs: Ints | None, k: int, which: Ints | None = None) -> tuple[Ints, Ints]:
    """Return the first and the last place of an order at which each node's right part may begin, by the count of k."""
    starts, ends = nodes.starts, nodes.starts + nodes.sizes
    first, last = (starts + k, ends - k) if pairs is None else cut_range(pairs.take(order), starts, ends, k)
    return (first, last) if which is None else (first[which], last[which])


def feasible_cuts(
    values: Floats, order: Ints, starts: Ints, room: tuple[Ints, Ints], wanted: Ints, of_people: bool
) -> tuple[Ints, Bools]:
    """Move wanted cuts to where neighbours differ next to them and both sides hold enough.

    Args:
        values, order : float64 and int64, one per record: A column, and the records by node and by value.
        starts : int64, one per node: The nodes in that order.
        room : pair of int64, one per node: The first and the last place at which the right part may begin (`cut_room`).
        wanted : int64, nodes by choices: Where the right parts should begin.
        of_people : bool: Whether there may be less room than between the first and the last k records.

    Returns:
        The cuts, and whether they are possible; where none is, the wanted one is given back.
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
