"""The best recoding of one column while all others stay: exact, by dynamic programming.

The local search changes one border at a time. Where groups must fit tightly, such as five hundred rows into groups of a
hundred, all borders have to move at once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from duckanon._core.common import progress
from duckanon._core.common.arrays import Floats, run_starts
from duckanon._methods.generalize.recoding.axes import Axis, OrderedAxis
from duckanon._methods.generalize.recoding.trees import TreeAxis
from duckanon._methods.generalize.recoding.views import Cells, Slice, sums_up_to

# Atoms times entries of a view up to which all runs of an ordered column are priced, since that takes time in
# proportion. The Adult table comes nowhere near it: its refits take about 10,000.
_MOST_WORK = 20_000_000
# Returns the state that loses least when each suppressed row costs a price.
Refit: TypeAlias = Callable[[float], tuple[int, ...]]


def refit(axis: Axis, view: Slice | Cells) -> Refit | None:
    """Return a function from a price to the best state of a column at that price.

    Only trees and ordered columns can be refitted; None for others, and where it would be too much work.
    """
    if isinstance(axis, TreeAxis):
        return _tree(axis, view)
    if isinstance(axis, OrderedAxis) and isinstance(view, Slice) and axis.n_atoms * len(view.atom) <= _MOST_WORK:
        return _ordered(axis, view)
    return None


def _tree(axis: TreeAxis, view: Slice | Cells) -> Refit:
    cost, small = axis.node_costs(view).each
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
        value = np.ascontiguousarray((cost + price * small).T)  # by the last atom, then by the first
        total = np.zeros(axis.n_atoms + 1)
        start = [0] * (axis.n_atoms + 1)
        progress.check()
        for end in range(1, axis.n_atoms + 1):
            ending_here = value[end - 1, :end]
            ending_here += total[:end]
            start[end] = first = int(ending_here.argmin())
            total[end] = ending_here[first]
        starts, end = [], axis.n_atoms
        while end:
            end = start[end]
            starts.append(end)
        return tuple(starts[::-1])

    return best


def _runs(axis: OrderedAxis, view: Slice) -> tuple[Floats, Floats]:
    """Return what every run of atoms would cost as a group, and the rows it would suppress: [first, last]."""
    atoms = axis.n_atoms
    small, price = np.zeros((atoms, atoms)), np.zeros((atoms, atoms))
    before = None if view.moving is None else view.moving.entries_before(view.other)
    for first in range(atoms):
        progress.check()
        is_inside = view.atom >= first
        inside = np.flatnonzero(is_inside)
        starts = run_starts(view.other[inside])
        count, size = view.count[inside], view.size[inside]
        if view.moving is not None and before is not None:
            # a person counts at the first atom of the run that holds him
            is_first = is_inside[view.moving.entry] & ((before < 0) | ~is_inside[before])
            size = size + np.bincount(view.moving.entry[is_first], minlength=len(is_inside))[inside]
        grown_rows = sums_up_to(count, starts)
        grown = grown_rows if view.size is view.count else sums_up_to(size, starts)
        change = np.where(grown < view.k, grown_rows, 0) - np.where(grown - size < view.k, grown_rows - count, 0)
        atom = view.atom[inside]
        small[first] = np.cumsum(np.bincount(atom, change, atoms))
        price[first] = np.cumsum(np.bincount(atom, change * view.entry_price[inside], atoms))
    rows = np.append(0, np.cumsum(view.marginal))
    run_rows = rows[None, 1:] - rows[:-1, None]
    cost = view.cost(axis.high[None, :] - axis.low[:, None], run_rows, small, price)
    sizes = np.append(0, np.cumsum(view.marginal_size))
    if sizes[-1] >= view.k:  # a run with too few people would be suppressed as a whole, and told of nobody
        cost[sizes[None, 1:] - sizes[:-1, None] < view.k] = np.inf
    return cost, small
