"""Columns with a hierarchy as the search sees them, and the choice of the axis for a column."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from duckanon.common.arrays import Bools, Floats, Ints
from duckanon.common.runs import run_starts
from duckanon.generalize.recoding.axes import Axis, Candidates, OrderedAxis
from duckanon.generalize.recoding.columns import EDIT, Column, Flat, Ordered, Slice, Tree
from duckanon.generalize.recoding.flat import FlatAxis, LevelsAxis


class _Walk(NamedTuple):
    """The nodes of a tree in depth-first order, without those that have one child.

    Attributes
    ----------
    nodes
        The node of each step of the walk, as the structure numbers it; where nodes form a chain, the lowest.
    parents
        The step of the node above; -1 for the root.
    depths
        The number of steps above.
    first, end
        Which entries of ``leaves`` lie below: from first up to but without end.
    leaves
        The leaves in the order of the walk.
    """

    nodes: Ints
    parents: Ints
    depths: Ints
    first: Ints
    end: Ints
    leaves: Ints


def _walk(parents: Ints) -> _Walk:
    """Walk a tree; level by level, as there may be a million nodes."""
    children = np.bincount(parents[parents >= 0], minlength=len(parents))
    chain_top = np.arange(len(parents))  # of the chain of only children that each node is in
    while (is_only := (parents[chain_top] >= 0) & (children[parents[chain_top]] == 1)).any():
        chain_top = np.where(is_only, parents[chain_top], chain_top)
    kept = np.flatnonzero(children != 1)
    by_parent = kept[np.lexsort((chain_top[kept], parents[chain_top[kept]]))]
    above = parents[chain_top]
    starts = np.searchsorted(above[by_parent], np.arange(len(parents)))
    levels = [by_parent[:1]]
    while (counts := children[levels[-1]]).any():
        levels.append(
            by_parent[np.repeat(starts[levels[-1]] - np.cumsum(counts) + counts, counts) + np.arange(counts.sum())]
        )
    nodes_below, leaves_below = np.ones_like(parents), (children == 0).astype(np.int64)
    for level in reversed(levels[1:]):
        siblings = run_starts(above[level])
        for below in (nodes_below, leaves_below):
            below[above[level][siblings]] += np.add.reduceat(below[level], siblings)
    step, first = np.zeros_like(parents), np.zeros_like(parents)
    depth = np.zeros_like(parents)
    for number, level in enumerate(levels[1:], start=1):
        siblings = run_starts(above[level])
        family = np.diff(np.append(siblings, len(level)))
        for place, below, itself in ((step, nodes_below, 1), (first, leaves_below, 0)):
            before = np.cumsum(below[level]) - below[level]
            place[level] = place[above[level]] + itself + before - np.repeat(before[siblings], family)
        depth[level] = number
    nodes = kept[np.argsort(step[kept])]
    return _Walk(
        nodes=nodes,
        parents=np.where(above[nodes] >= 0, step[above[nodes]], -1),
        depths=depth[nodes],
        first=first[nodes],
        end=first[nodes] + leaves_below[nodes],
        leaves=nodes[children[nodes] == 0],
    )


def _pruned(walk: _Walk, leaf_rows: Ints, atom_rows: int) -> tuple[_Walk, Bools]:
    """Take away all nodes below atoms; return what is left, and which of it are atoms."""
    rows = np.append(0, np.cumsum(leaf_rows[walk.leaves]))
    # A node with few rows becomes an atom, unless one above it already is; the root never does.
    is_closed = (rows[walk.end] - rows[walk.first] < atom_rows) | (walk.end - walk.first == 1)
    is_closed[0] = len(is_closed) == 1
    is_left = np.ones(len(is_closed), dtype=bool)
    for step, above in enumerate(walk.parents.tolist()[1:], start=1):
        is_left[step] = is_left[above] and not is_closed[above]
    left = np.flatnonzero(is_left)
    number = np.cumsum(is_left) - 1
    pruned = walk._replace(
        nodes=walk.nodes[left],
        parents=np.where(left > 0, number[walk.parents[left]], -1),
        depths=walk.depths[left],
        first=walk.first[left],
        end=walk.end[left],
    )
    return pruned, is_closed[left]


def _only_children(parents: Ints) -> dict[int, int]:
    """Return the child of each node that has one."""
    children = np.bincount(parents[parents >= 0], minlength=len(parents))
    only = np.flatnonzero((parents >= 0) & (children[parents] == 1))
    return dict(zip(parents[only].tolist(), only.tolist(), strict=True))


class TreeAxis(Axis):
    """A hierarchy without chains, its nodes in depth-first order. A state is the nodes of a cut.

    Attributes
    ----------
    labels
        Each node as the structure numbers it.
    parent, depth, loss
        Of each node: the node above (-1 for the root), how many are above it, what it loses as a group.
    first, end
        The atoms below each node: from first up to but without end.
    node_of_atom
        The node that each atom is.
    is_inner
        Whether a node can be split: it is no atom.
    only_child
        The child of each of the structure's nodes that has one only: the two are the same group.
    at_depth
        The node of each atom, then ever further up: in each step the deepest nodes give way to their parents.
    """

    def __init__(self, structure: Tree, leaf_rows: Ints, atom_rows: int, has_null: bool) -> None:
        super().__init__(has_null)
        walk, is_atom = _pruned(_walk(np.asarray(structure.parents, dtype=np.int64)), leaf_rows, atom_rows)
        leaves = len(walk.leaves)
        self.labels: list[int] = walk.nodes.tolist()
        self.parent, self.depth = walk.parents, walk.depths
        self.only_child = _only_children(np.asarray(structure.parents, dtype=np.int64))
        self.loss = (walk.end - walk.first - 1) / max(leaves - 1, 1)
        if structure.losses is not None:
            self.loss = structure.losses[walk.nodes]
            self.rest_loss = float(structure.losses[np.asarray(structure.parents) < 0][0])
        self.n_atoms = int(is_atom.sum())
        self.node_of_atom = np.flatnonzero(is_atom)
        self.is_inner = ~is_atom
        atom_start = walk.first[is_atom]
        self.first = np.searchsorted(atom_start, walk.first)
        self.end = np.searchsorted(atom_start, walk.end)
        self.atom_of_leaf = np.empty(leaves, dtype=np.int64)
        self.atom_of_leaf[walk.leaves] = np.searchsorted(atom_start, np.arange(leaves), side="right") - 1
        if has_null:
            self.atom_of_leaf = np.append(self.atom_of_leaf, self.n_atoms)
        self.at_depth = [self.node_of_atom]
        while (deepest := self.depth[self.at_depth[-1]].max()) > 0:
            nodes = self.at_depth[-1]
            self.at_depth.append(np.where(self.depth[nodes] == deepest, self.parent[nodes], nodes))

    @property
    def coarsest(self) -> tuple[int, ...]:
        """The state with one group, NULL apart."""
        return (0,)

    def portable(self, state: tuple[int, ...]) -> tuple[int, ...]:
        """Return the state in terms of the structure's nodes."""
        return tuple(self.labels[node] for node in state)

    def adopt(self, portable: tuple[int, ...]) -> tuple[int, ...]:
        """Return the state of this axis that is the same recoding."""
        number = {label: node for node, label in enumerate(self.labels)}
        taken = []
        for label in portable:
            while label not in number:  # a node with one child is the same as that child
                label = self.only_child[label]
            taken.append(number[label])
        return tuple(sorted(taken))

    def _groups(self, state: tuple[int, ...]) -> tuple[Ints, Floats]:
        cut = np.array(state, dtype=np.int64)
        return np.repeat(np.arange(len(cut)), self.end[cut] - self.first[cut]), self.loss[cut]

    def node_costs(self, view: Slice) -> tuple[Floats, Floats]:
        """Return what each node would cost as a group, and the rows it would suppress."""
        small, price = np.zeros(len(self.labels)), np.zeros(len(self.labels))
        for nodes in self.at_depth:
            level_small, level_price = view.groups(nodes, len(self.labels))
            small[nodes], price[nodes] = level_small[nodes], level_price[nodes]
        rows = np.append(0, np.cumsum(view.marginal))
        return view.cost(self.loss, rows[self.end] - rows[self.first], small, price), small

    def _candidates(self, state: tuple[int, ...], view: Slice) -> list[Candidates]:
        cost, small = self.node_costs(view)
        cut = np.array(state, dtype=np.int64)
        nodes = np.arange(len(self.labels))
        low, high = np.searchsorted(self.first[cut], self.first), np.searchsorted(self.first[cut], self.end)
        depth_of_cut = self.depth[cut][np.minimum(low, len(cut) - 1)]
        above = (high - low > 1) | ((high - low == 1) & (depth_of_cut > self.depth))
        split = np.isin(nodes, cut) & self.is_inner
        totals = []
        for values in (cost, small):
            running = np.append(0, np.cumsum(values[cut]))
            below = np.bincount(self.parent[1:], values[1:], len(nodes)) if len(nodes) > 1 else np.zeros(1)
            merged = values - (running[high] - running[low])
            totals.append(running[-1] + np.where(above, merged, below - values)[above | split])
        return [(totals[0], totals[1], EDIT, nodes[above | split], 0)]

    def _edit(self, state: tuple[int, ...], kind: int, removed: int, added: int) -> tuple[int, ...]:
        if removed in state:
            new = set(state) - {removed} | set(np.flatnonzero(self.parent == removed).tolist())
        else:
            under = range(int(self.first[removed]), int(self.end[removed]))
            new = {node for node in state if int(self.first[node]) not in under} | {removed}
        return tuple(sorted(new))


def make_axis(column: Column, leaf_rows: Ints, atom_rows: int) -> Axis:
    """Return a column's axis; leaves with fewer rows than ``atom_rows`` are merged for good where possible."""
    structure = column.structure
    if isinstance(structure, Ordered):
        return OrderedAxis(structure, leaf_rows, atom_rows, column.has_null)
    if isinstance(structure, Tree):
        return TreeAxis(structure, leaf_rows, atom_rows, column.has_null)
    if isinstance(structure, Flat):
        return FlatAxis(structure, leaf_rows, atom_rows, column.has_null)
    return LevelsAxis(structure, leaf_rows, atom_rows, column.has_null)
