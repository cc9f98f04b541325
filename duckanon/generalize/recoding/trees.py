"""Columns with a hierarchy as the search sees them, and the choice of the axis for a column."""

from __future__ import annotations

import numpy as np

from duckanon.common.arrays import Floats, Ints
from duckanon.generalize.recoding.axes import Axis, Candidates, OrderedAxis
from duckanon.generalize.recoding.columns import EDIT, Column, Flat, Ordered, Slice, Tree
from duckanon.generalize.recoding.flat import FlatAxis, LevelsAxis


class TreeAxis(Axis):
    """A hierarchy without unary chains, its nodes in depth-first order. A state is the nodes of a cut."""

    def __init__(self, structure: Tree, leaf_rows: Ints, atom_rows: int, has_null: bool) -> None:
        super().__init__(has_null)
        parents = np.asarray(structure.parents, dtype=np.int64)
        children: list[list[int]] = [[] for _ in parents]
        for node, parent in enumerate(parents.tolist()):
            if parent >= 0:
                children[parent].append(node)
        leaves = sum(not below for below in children)
        self.labels: list[int] = []
        parent_of: list[int] = []
        depth: list[int] = []
        leaf_first: list[int] = []
        order: list[int] = []
        ends: list[int] = []
        # Walk down from the root; a negative entry closes a node, when all leaves below it are known.
        stack: list[tuple[int, int]] = [(int(np.flatnonzero(parents < 0)[0]), -1)]
        while stack:
            node, above = stack.pop()
            if node < 0:
                ends[above] = len(order)
                continue
            while len(children[node]) == 1:
                node = children[node][0]
            here = len(self.labels)
            self.labels.append(node)
            parent_of.append(above)
            depth.append(depth[above] + 1 if above >= 0 else 0)
            leaf_first.append(len(order))
            ends.append(0)
            stack.append((-1, here))
            if children[node]:
                stack.extend((child, here) for child in reversed(children[node]))
            else:
                order.append(node)
        first, end = np.array(leaf_first), np.array(ends)
        rows = np.append(0, np.cumsum(leaf_rows[np.array(order)]))
        above_rows = rows[end] - rows[first]
        parent_array = np.array(parent_of)
        # A node with few rows becomes an atom, unless one above it already is; the root never does.
        closed = (above_rows < atom_rows) | (end - first == 1)
        closed[0] = len(closed) == 1
        open_above = np.ones(len(closed), dtype=bool)
        for node in range(1, len(closed)):
            open_above[node] = open_above[parent_of[node]] and not closed[parent_of[node]]
        kept = np.flatnonzero(open_above)
        number = np.cumsum(open_above) - 1
        self.labels = [self.labels[node] for node in kept]
        self.parent = np.where(kept > 0, number[parent_array[kept]], -1)
        self.depth = np.array(depth)[kept]
        self.loss = (end - first - 1)[kept] / max(leaves - 1, 1)
        is_atom = closed[kept]
        self.n_atoms = int(is_atom.sum())
        atom_start = first[kept][is_atom]
        self.first = np.searchsorted(atom_start, first[kept])
        self.end = np.searchsorted(atom_start, end[kept])
        self.atom_of_leaf = np.empty(leaves, dtype=np.int64)
        self.atom_of_leaf[np.array(order)] = np.searchsorted(atom_start, np.arange(leaves), side="right") - 1
        if has_null:
            self.atom_of_leaf = np.append(self.atom_of_leaf, self.n_atoms)
        self.node_of_atom = np.flatnonzero(is_atom)
        self.is_inner = ~is_atom
        self.at_depth = [self.node_of_atom]
        while (deep := self.depth[self.at_depth[-1]].max()) > 0:
            here_nodes = self.at_depth[-1]
            self.at_depth.append(np.where(self.depth[here_nodes] == deep, self.parent[here_nodes], here_nodes))

    @property
    def coarsest(self) -> tuple[int, ...]:
        """The state with one group, NULL apart."""
        return (0,)

    @property
    def finest(self) -> tuple[int, ...]:
        """The state in which every atom is a group of its own."""
        return tuple(self.node_of_atom.tolist())

    def portable(self, state: tuple[int, ...]) -> tuple[int, ...]:
        """Return the state in terms of leaves, nodes or levels."""
        return tuple(self.labels[node] for node in state)

    def adopt(self, portable: tuple[int, ...]) -> tuple[int, ...]:
        """Return the state of this axis that is the same recoding."""
        number = {label: node for node, label in enumerate(self.labels)}
        return tuple(sorted(number[label] for label in portable))

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
        found = []
        for values in (cost, small):
            running = np.append(0, np.cumsum(values[cut]))
            below = np.bincount(self.parent[1:], values[1:], len(nodes)) if len(nodes) > 1 else np.zeros(1)
            merged = values - (running[high] - running[low])
            found.append(running[-1] + np.where(above, merged, below - values)[above | split])
        return [(found[0], found[1], EDIT, nodes[above | split], 0)]

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
