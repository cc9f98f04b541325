"""Columns with a hierarchy as the search sees them, and the choice of the axis for a column."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from duckanon._core.common.arrays import Bools, Floats, Ints
from duckanon._methods.generalize.recoding.axes import Axis, Candidates, OrderedAxis
from duckanon._methods.generalize.recoding.column_moves import EDIT, Column, Flat, Ordered, Tree, Walk
from duckanon._methods.generalize.recoding.flat import FlatAxis, LevelsAxis
from duckanon._methods.generalize.recoding.views import Cells, Slice


def _pruned(walk: Walk, leaf_rows: Ints, atom_rows: int) -> tuple[Walk, Bools]:
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


class NodeCosts(NamedTuple):
    """The costs of nodes as groups, and below them the rows they suppress; the same summed over each one's children."""

    each: Floats
    children: Floats


class _Neighbours(NamedTuple):
    """The nodes of a cut, and the nodes whose moves lead away from it."""

    cut: Ints  # the nodes of the cut
    # nodes, is_above: nodes that are split, or that lie above nodes of the cut, which they would take the place of
    nodes: Ints
    is_above: Bools
    # low, high: which nodes of the cut they would: from low up to but without high
    low: Ints
    high: Ints


class TreeAxis(Axis):
    """A hierarchy without chains, its nodes in depth-first order. A state is the nodes of a cut."""

    coarsest = (0,)
    has_nodes = True

    def __init__(self, structure: Tree, leaf_rows: Ints, atom_rows: int, has_null: bool) -> None:
        self._costs: tuple[Slice | Cells, NodeCosts] | None = None
        self._rows: tuple[Ints, Ints] | None = None  # of the atoms, and of the nodes
        self._cut: tuple[tuple[int, ...], _Neighbours] | None = None
        walk, is_atom = _pruned(structure.walk, leaf_rows, atom_rows)
        leaves = len(walk.leaves)
        self.labels: list[int] = walk.nodes.tolist()  # each node as the structure numbers it
        self.parent, self.depth = walk.parents, walk.depths  # the node above (-1 for the root), and how many are above
        # The child of each of the structure's nodes that has one only: the two are the same group.
        self.only_child = _only_children(np.asarray(structure.parents, dtype=np.int64))
        self.loss = (walk.end - walk.first - 1) / max(leaves - 1, 1)
        if structure.losses is not None:
            self.loss = structure.losses[walk.nodes]
            self.rest_loss = float(structure.losses[np.asarray(structure.parents) < 0][0])
        self.node_of_atom = np.flatnonzero(is_atom)
        self.is_inner = ~is_atom  # nodes that can be split
        atom_start = walk.first[is_atom]
        # The atoms below each node: from first up to but without end.
        self.first = np.searchsorted(atom_start, walk.first)
        self.end = np.searchsorted(atom_start, walk.end)
        atom_of_leaf = np.empty(leaves, dtype=np.int64)
        atom_of_leaf[walk.leaves] = np.searchsorted(atom_start, np.arange(leaves), side="right") - 1
        super().__init__(atom_of_leaf, int(is_atom.sum()), has_null)
        # The node of each atom, then ever further up: in each step the deepest nodes give way to their parents.
        self.at_depth = [self.node_of_atom]
        while (deepest := self.depth[self.at_depth[-1]].max()) > 0:
            nodes = self.at_depth[-1]
            self.at_depth.append(np.where(self.depth[nodes] == deepest, self.parent[nodes], nodes))

    def _portable(self, state: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(self.labels[node] for node in state)

    def _adopt(self, portable: tuple[int, ...]) -> tuple[int, ...]:
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

    def node_costs(self, view: Slice | Cells) -> NodeCosts:
        """Return what each node would cost as a group, and the rows it would suppress: the same for every state."""
        if self._costs is None or self._costs[0] is not view:
            self._costs = view, self._node_costs(view)
        return self._costs[1]

    def _node_costs(self, view: Slice | Cells) -> NodeCosts:
        if isinstance(view, Cells):
            small, price = view.spans(self.first, self.end)
        else:
            small, price = np.zeros(len(self.labels)), np.zeros(len(self.labels))
            for nodes, (level_small, level_price) in zip(
                self.at_depth, view.nested_groups(self.at_depth, len(self.labels)), strict=True
            ):
                small[nodes], price[nodes] = level_small[nodes], level_price[nodes]
        if self._rows is None or self._rows[0] is not view.marginal:
            rows = np.append(0, np.cumsum(view.marginal))
            self._rows = view.marginal, rows[self.end] - rows[self.first]
        each, children = np.empty((2, len(self.labels))), np.empty((2, len(self.labels)))
        each[0], each[1] = view.cost(self.loss, self._rows[1], small, price), small
        for total, values in zip(children, each, strict=True):
            total[:] = np.bincount(self.parent[1:], values[1:], len(self.labels))
        return NodeCosts(each, children)

    def _candidates(self, state: tuple[int, ...], view: Slice | Cells) -> list[Candidates]:
        each, children = self.node_costs(view)
        if self._cut is None or self._cut[0] != state:
            self._cut = state, self._neighbours(state)
        cut, nodes, is_above, low, high = self._cut[1]
        own = each.take(nodes, axis=1)
        running = np.zeros((2, len(cut) + 1))
        np.cumsum(each.take(cut, axis=1), axis=1, out=running[:, 1:])
        merged = own - (running.take(high, axis=1) - running.take(low, axis=1))
        changed = np.where(is_above, merged, children.take(nodes, axis=1) - own)
        changed += running[:, -1:]
        return [(changed[0], changed[1], EDIT, nodes, 0)]

    def _neighbours(self, state: tuple[int, ...]) -> _Neighbours:
        """Return the nodes that a move from a state merges, or splits."""
        cut = np.array(state, dtype=np.int64)
        low, high = np.searchsorted(self.first[cut], self.first), np.searchsorted(self.first[cut], self.end)
        depth_of_cut = self.depth[cut][np.minimum(low, len(cut) - 1)]
        is_above = (high - low > 1) | ((high - low == 1) & (depth_of_cut > self.depth))
        is_split = np.zeros(len(self.labels), bool)
        is_split[cut] = self.is_inner[cut]
        nodes = np.flatnonzero(is_above | is_split)
        return _Neighbours(cut, nodes, is_above[nodes], low[nodes], high[nodes])

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
