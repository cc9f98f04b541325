"""The best recoding of one column while all others stay: exact, by dynamic programming.

The local search changes one border at a time. Where groups must fit tightly, such as five hundred rows into groups of a
hundred, all borders have to move at once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from duckanon.common.arrays import Floats
from duckanon.common.runs import run_starts
from duckanon.generalize.recoding.axes import Axis, OrderedAxis
from duckanon.generalize.recoding.columns import Slice
from duckanon.generalize.recoding.trees import TreeAxis

_MOST_WORK = 20_000_000
"""Atoms times entries of a view up to which all runs of an ordered column are priced, since that takes time in
proportion. The Adult table comes nowhere near it: its refits take about 10,000."""

Refit: TypeAlias = Callable[[float], tuple[int, ...]]
"""Returns the state that loses least when each suppressed row costs a price."""


def refit(axis: Axis, view: Slice) -> Refit | None:
    """Return a function from a price to the best state of a column at that price.

    Parameters
    ----------
    axis
        The column: only trees and ordered columns can be refitted.
    view
        The table as seen from the column.

    Returns
    -------
    callable or None
        None for other columns, and where it would be too much work.
    """
    if isinstance(axis, TreeAxis):
        return _tree(axis, view)
    if isinstance(axis, OrderedAxis) and axis.n_atoms * len(view.atom) <= _MOST_WORK:
        return _ordered(axis, view)
    return None


def _tree(axis: TreeAxis, view: Slice) -> Refit:
    cost, small = axis.node_costs(view)
    parents = axis.parent.tolist()

    def best(price: float) -> tuple[int, ...]:
        as_group = (cost + price * small).tolist()
        below = [0.0] * len(as_group)
        is_inner = axis.is_inner.tolist()
        is_cut = [True] * len(as_group)
        for node in range(len(as_group) - 1, -1, -1):  # children come after their parents
            is_cut[node] = not is_inner[node] or as_group[node] <= below[node]
            if parents[node] >= 0:
                below[parents[node]] += as_group[node] if is_cut[node] else below[node]
        taken, covered = [], 0
        for node in range(len(as_group)):
            if is_cut[node] and axis.first[node] >= covered:
                taken.append(node)
                covered = int(axis.end[node])
        return tuple(taken)

    return best


def _ordered(axis: OrderedAxis, view: Slice) -> Refit:
    cost, small = _runs(axis, view)

    def best(price: float) -> tuple[int, ...]:
        value = cost + price * small
        total = np.zeros(axis.n_atoms + 1)
        start = np.zeros(axis.n_atoms + 1, np.int64)
        for end in range(1, axis.n_atoms + 1):
            ending_here = total[:end] + value[:end, end - 1]
            start[end] = np.argmin(ending_here)
            total[end] = ending_here[start[end]]
        starts, end = [], axis.n_atoms
        while end:
            end = int(start[end])
            starts.append(end)
        return tuple(starts[::-1])

    return best


def _runs(axis: OrderedAxis, view: Slice) -> tuple[Floats, Floats]:
    """Return what every run of atoms would cost as a group, and the rows it would suppress: [first, last]."""
    atoms = axis.n_atoms
    small, price = np.zeros((atoms, atoms)), np.zeros((atoms, atoms))
    running = np.cumsum(view.count)
    entry_price = view.price[view.other]
    for first in range(atoms):
        inside = np.flatnonzero(view.atom >= first)
        other = view.other[inside]
        new = run_starts(other)
        before = running[inside[new]] - view.count[inside[new]]
        grown = running[inside] - np.repeat(before, np.diff(np.append(new, len(inside))))
        shrunk = grown - view.count[inside]
        change = np.where(grown < view.k, grown, 0) - np.where(shrunk < view.k, shrunk, 0)
        atom = view.atom[inside]
        small[first] = np.cumsum(np.bincount(atom, change, atoms))
        price[first] = np.cumsum(np.bincount(atom, change * entry_price[inside], atoms))
    rows = np.append(0, np.cumsum(view.marginal))
    run_rows = rows[None, 1:] - rows[:-1, None]
    return view.cost(axis.high[None, :] - axis.low[:, None], run_rows, small, price), small
