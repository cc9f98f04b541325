"""Flat columns, columns with levels and with a hierarchy as the search sees them, and the best state of one column.

The state of a hierarchy is a cut through its tree: what every node would cost as a group is the same for all cuts, so
that all moves are differences of sums. The local search changes one border at a time. Where groups must fit tightly,
such as five hundred rows into groups of a hundred, all borders have to move at once: trees and runs of numbers are then
refitted exactly, by dynamic programming over a price for each suppressed row, while all other columns stay.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np

from duckanon._core.common import progress
from duckanon._core.common.arrays import Bools, Floats, Ints, find_run_starts
from duckanon._methods.generalize.recoding.axes import (
    EDIT,
    SMALLEST,
    Axis,
    Candidates,
    ClosedGroups,
    ColumnState,
    FlatStructure,
    LevelStructure,
    OrderedAxis,
    OrderedStructure,
    PlanColumn,
    TreeStructure,
    Walk,
)
from duckanon._methods.generalize.recoding.views import CellView, EntryView, sum_by_group, sum_up_to


class FlatAxis(Axis):
    """Leaves without structure, fewest rows first. A state is the atoms that are merged."""

    def __init__(self, structure: FlatStructure, leaf_rows: Ints, atom_rows: int, has_null: bool) -> None:
        self.leaves = structure.leaves
        self.least_of_all = max(self.leaves, 2)  # leaves from which on a merged group says nothing
        order = np.argsort(leaf_rows[: self.leaves], kind="stable")
        rare = int(np.searchsorted(leaf_rows[order], atom_rows))
        rare = rare if rare >= 2 else 0
        self.rest = rare  # leaves that the first atom holds; 0 where it is a leaf like all others
        n_atoms = self.leaves - max(rare - 1, 0)
        atom_of_leaf = np.empty(self.leaves, dtype=np.int64)
        atom_of_leaf[order] = np.maximum(np.arange(self.leaves) - max(rare - 1, 0), 0)
        super().__init__(atom_of_leaf, n_atoms, has_null)
        self.coarsest = tuple(range(n_atoms)) if self.leaves > 1 else ()
        self.size = np.ones(self.n_atoms, dtype=np.int64)  # leaves of each atom
        self.size[0] = max(rare, 1)

    def _export(self, state: tuple[int, ...]) -> tuple[int, ...]:
        """Return the merged leaves."""
        merged = np.zeros(self.n_atoms + 1, dtype=bool)
        merged[list(state)] = True
        return tuple(np.flatnonzero(merged[self.atom_of_leaf[: self.leaves]]).tolist())

    def _adopt(self, portable: tuple[int, ...]) -> tuple[int, ...]:
        """Return the state of this axis that is the same recoding, but for leaves that are merged for good."""
        atoms = np.unique(self.atom_of_leaf[list(portable)])
        return tuple(np.union1d(atoms, [0]).tolist()) if self.rest else tuple(atoms.tolist())

    def _compute_loss(self, size: Ints | int, with_null: bool = False) -> Floats:
        """Return the share of the other values, NULL among them, that a group of so many leaves holds too."""
        share = np.maximum(np.asarray(size) + with_null - 1.0, 0) / max(self.leaves + self.has_null - 1, 1)
        return np.where(np.asarray(size) >= self.least_of_all, 1.0, share)

    def _group_atoms(self, state: tuple[int, ...]) -> tuple[Ints, Floats]:
        merged = np.zeros(self.n_atoms, dtype=bool)
        merged[list(state)] = True
        group = np.cumsum(~merged) - 1 + bool(state)
        group[merged] = 0
        loss = np.zeros(int(group.max()) + 1)
        if state:
            loss[0] = self._compute_loss(int(self.size[merged].sum()))
        return group, loss

    def _find_rest(self, state: ColumnState) -> int:
        return -1 if state == () else 0

    def _close(self, state: tuple[int, ...], is_released: Bools, group: Ints, losses: Floats) -> ClosedGroups:
        """Merge leaves of which no row is released with those that are merged already: other is what is not named."""
        is_told = is_released[group].copy()
        is_told[: self.n_atoms][list(state)] = False
        if not state:  # group numbers begin with the leaves that are kept
            group, losses = group + 1, np.append(0.0, losses)
        group = np.where(is_told, group, 0)
        losses = losses.copy()
        merged = int(self.size[~is_told[: self.n_atoms]].sum())
        losses[0] = self._compute_loss(merged, with_null=not is_told[self.n_atoms :].all())
        return ClosedGroups(group, losses, 0, True)

    def _list_candidates(self, state: tuple[int, ...], view: EntryView) -> list[Candidates]:
        merged = np.zeros(self.n_atoms, dtype=bool)
        merged[list(state)] = True
        small, price = view.suppress_small(view.entry_size, view.count)
        alone_small = sum_by_group(view.atom, small, self.n_atoms)
        alone_price = sum_by_group(view.atom, price, self.n_atoms)
        candidates: list[Candidates] = []
        atoms = np.arange(self.n_atoms)
        # The j leaves with the fewest rows merged, for every j.
        whole = np.zeros((1, self.n_atoms), dtype=np.int64)
        (first_small,), (first_price,), _, _ = view.cost_prefixes(whole, whole + self.n_atoms - 1)
        size = np.cumsum(self.size)
        cost = view.cost(self._compute_loss(size), np.cumsum(view.marginal), first_small, first_price)
        cost += alone_price.sum() - np.cumsum(alone_price)
        keep = size >= 2
        new_small = first_small + alone_small.sum() - np.cumsum(alone_small)
        # One leaf "merged" is the state that keeps all leaves.
        keep[0] |= bool(state)
        candidates.append((cost[keep], new_small[keep], SMALLEST, atoms[keep], 0))
        if not state:
            return candidates
        # One atom more or less in the merged group.
        inside = merged[view.atom]
        other_rows = sum_by_group(view.other[inside], view.count[inside], view.n_other)
        other_size, change = self._count_merged_people(view, inside, other_rows)
        other_small = np.where(other_size < view.k, other_rows, 0)
        before_rows, before = other_rows[view.other], other_size[view.other]
        changed = view.suppress_small(before + change, before_rows + np.where(inside, -1, 1) * view.count)
        present = view.suppress_small(before, before_rows)
        change_small = sum_by_group(view.atom, changed[0] - present[0], self.n_atoms)
        change_price = sum_by_group(view.atom, changed[1] - present[1], self.n_atoms)
        sign_atom = np.where(merged, -1, 1)
        size = int(self.size[merged].sum()) + sign_atom * self.size
        rows = int(view.marginal[merged].sum()) + sign_atom * view.marginal
        group_small: Floats = float(other_small.sum()) + change_small
        group_price: Floats = float(other_small @ view.price) + change_price
        kept_small = float(alone_small[~merged].sum()) - sign_atom * alone_small
        kept_price = float(alone_price[~merged].sum()) - sign_atom * alone_price
        cost = view.cost(self._compute_loss(size), rows, group_small, group_price) + kept_price
        keep = self.size == 1
        candidates.append((cost[keep], (group_small + kept_small)[keep], EDIT, atoms[keep], 0))
        return candidates

    @staticmethod
    def _count_merged_people(view: EntryView, inside: Bools, rows: Floats) -> tuple[Floats, Floats]:
        """Return how many people each class of the merged atoms has, and how many more if an entry is moved in or out.

        ``inside`` says whether each entry is merged, ``rows`` how many merged rows each class of the other columns has.
        """
        sign: Floats = np.where(inside, -1.0, 1.0)
        if view.size is view.count:
            return rows, np.asarray(sign * view.count, dtype=np.float64)
        sizes = sum_by_group(view.other[inside], view.size[inside], view.n_other)
        change: Floats = np.asarray(sign * view.size, dtype=np.float64)
        if view.moving is not None:
            # A person in one merged entry of a class leaves with it; one in none of them comes in with another.
            moving, merged = view.moving, view.moving.select(inside)
            sizes = sizes + merged.count_people(view.other[inside], view.n_other)
            of_person = np.cumsum(moving.is_first(view.other)) - 1
            times = np.bincount(of_person, inside[moving.entry])[of_person]
            counts = times == np.where(inside[moving.entry], 1, 0)
            change = change + sign * np.bincount(moving.entry[counts], minlength=len(sign))
        return sizes, change

    def _edit(self, state: tuple[int, ...], kind: int, removed: int, added: int) -> tuple[int, ...]:
        merged = set(range(removed + 1)) if kind == SMALLEST else set(state) ^ {removed}
        return tuple(sorted(merged)) if len(merged) > 1 or (0 in merged and self.rest) else ()


class LevelsAxis(Axis):
    """One of several recodings of the whole column. A state is one level."""

    def __init__(self, structure: LevelStructure, leaf_rows: Ints, atom_rows: int, has_null: bool) -> None:
        maps = [np.asarray(part, dtype=np.int64) for part in structure.maps]
        self.losses = [np.asarray(part, dtype=np.float64) for part in structure.losses]
        # Groups of the first level that is coarse enough are the atoms, if all later levels are made of them.
        rows = int(leaf_rows.sum())
        coarse_enough = [level for level, loss in enumerate(self.losses) if len(loss) * atom_rows <= rows]
        self.skipped = coarse_enough[0] if coarse_enough else len(maps) - 1  # levels that are too fine for the atoms
        lowest = maps[self.skipped]
        atoms, first_leaf = np.unique(lowest, return_index=True)
        # whether each of the lowest groups lies within one group of every later level
        pairs = (np.unique(np.stack([lowest, part]), axis=1) for part in maps[self.skipped :])
        if self.skipped and all(each.shape[1] == len(atoms) for each in pairs):
            atom_of_leaf = np.searchsorted(atoms, lowest)
            self.maps = [part[first_leaf] for part in maps]
        else:
            self.skipped = 0
            atom_of_leaf = np.arange(len(lowest))
            self.maps = maps
        super().__init__(atom_of_leaf, len(self.maps[0]), has_null)
        self.coarsest = (len(self.maps) - 1,)

    def _find_level(self, state: ColumnState) -> int:
        return self.coarsest[0] if state is None else state[0]

    def _export(self, state: tuple[int, ...]) -> tuple[int, ...]:
        return state  # all axes number levels alike

    def _adopt(self, portable: tuple[int, ...]) -> tuple[int, ...]:
        return portable

    def _group_atoms(self, state: tuple[int, ...]) -> tuple[Ints, Floats]:
        return self.maps[state[0]], self.losses[state[0]]

    def _list_candidates(self, state: tuple[int, ...], view: EntryView) -> list[Candidates]:
        cost, small = np.zeros(len(self.maps)), np.zeros(len(self.maps))
        for level in range(self.skipped, len(self.maps)):
            group, loss = self.maps[level], self.losses[level]
            key, which = np.unique(view.other * len(loss) + group[view.atom], return_inverse=True)
            rows = np.bincount(which, view.count, len(key))
            sizes = rows if view.size is view.count else view.sizes(which.reshape(-1), len(key))
            kept_small = np.where(sizes < view.k, rows, 0)
            per_group = [np.bincount(key % len(loss), v, len(loss)) for v in (rows, kept_small)]
            priced = kept_small @ view.price[key // len(loss)]
            small[level] = kept_small.sum()
            cost[level] = priced + view.weight * float(loss @ (per_group[0] - per_group[1]))
        keep = (np.arange(len(self.maps)) != state[0]) & (np.arange(len(self.maps)) >= self.skipped)
        return [(cost[keep], small[keep], EDIT, np.flatnonzero(keep), 0)]

    def _edit(self, state: tuple[int, ...], kind: int, removed: int, added: int) -> tuple[int, ...]:
        return (removed,)


def _prune_walk(walk: Walk, leaf_rows: Ints, atom_rows: int) -> tuple[Walk, Bools]:
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

    def __init__(self, structure: TreeStructure, leaf_rows: Ints, atom_rows: int, has_null: bool) -> None:
        self._costs: tuple[EntryView | CellView, NodeCosts] | None = None
        self._rows: tuple[Ints, Ints] | None = None  # of the atoms, and of the nodes
        self._cut: tuple[tuple[int, ...], _Neighbours] | None = None
        walk, is_atom = _prune_walk(structure.walk, leaf_rows, atom_rows)
        leaves = len(walk.leaves)
        self.labels: list[int] = walk.nodes.tolist()  # each node as the structure numbers it
        self.parent, self.depth = walk.parents, walk.depths  # the node above (-1 for the root), and how many are above
        # The child of each of the structure's nodes that has one only: the two are the same group.
        parents = np.asarray(structure.parents, dtype=np.int64)
        children = np.bincount(parents[parents >= 0], minlength=len(parents))
        only = np.flatnonzero((parents >= 0) & (children[parents] == 1))
        self.only_child: dict[int, int] = dict(zip(parents[only].tolist(), only.tolist(), strict=True))
        self.loss = (walk.end - walk.first - 1) / max(leaves - 1, 1)
        if structure.losses is not None:
            self.loss = structure.losses[walk.nodes]
            self.rest_loss = float(structure.losses[parents < 0][0])
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

    def _export(self, state: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(self.labels[node] for node in state)

    def _adopt(self, portable: tuple[int, ...]) -> tuple[int, ...]:
        number = {label: node for node, label in enumerate(self.labels)}
        nodes = []
        for label in portable:
            while label not in number:  # a node with one child is the same as that child
                label = self.only_child[label]
            nodes.append(number[label])
        return tuple(sorted(nodes))

    def _group_atoms(self, state: tuple[int, ...]) -> tuple[Ints, Floats]:
        cut = np.array(state, dtype=np.int64)
        return np.repeat(np.arange(len(cut)), self.end[cut] - self.first[cut]), self.loss[cut]

    def node_costs(self, view: EntryView | CellView) -> NodeCosts:
        """Return what each node would cost as a group, and the rows it would suppress: the same for every state."""
        if self._costs is None or self._costs[0] is not view:
            self._costs = view, self._node_costs(view)
        return self._costs[1]

    def _node_costs(self, view: EntryView | CellView) -> NodeCosts:
        if isinstance(view, CellView):
            small, price = view.cost_spans(self.first, self.end)
        else:
            small, price = np.zeros(len(self.labels)), np.zeros(len(self.labels))
            for nodes, (level_small, level_price) in zip(
                self.at_depth, view.cost_levels(self.at_depth, len(self.labels)), strict=True
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

    def _list_candidates(self, state: tuple[int, ...], view: EntryView | CellView) -> list[Candidates]:
        each, children = self.node_costs(view)
        if self._cut is None or self._cut[0] != state:
            self._cut = state, self._find_neighbours(state)
        cut, nodes, is_above, low, high = self._cut[1]
        as_group = each.take(nodes, axis=1)
        running = np.zeros((2, len(cut) + 1))
        np.cumsum(each.take(cut, axis=1), axis=1, out=running[:, 1:])
        merged = as_group - (running.take(high, axis=1) - running.take(low, axis=1))
        changed = np.where(is_above, merged, children.take(nodes, axis=1) - as_group)
        changed += running[:, -1:]
        return [(changed[0], changed[1], EDIT, nodes, 0)]

    def _find_neighbours(self, state: tuple[int, ...]) -> _Neighbours:
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


def make_axis(column: PlanColumn, leaf_rows: Ints, atom_rows: int) -> Axis:
    """Return a column's axis; leaves with fewer rows than ``atom_rows`` are merged for good where possible."""
    structure = column.structure
    if isinstance(structure, OrderedStructure):
        return OrderedAxis(structure, leaf_rows, atom_rows, column.has_null)
    if isinstance(structure, TreeStructure):
        return TreeAxis(structure, leaf_rows, atom_rows, column.has_null)
    if isinstance(structure, FlatStructure):
        return FlatAxis(structure, leaf_rows, atom_rows, column.has_null)
    return LevelsAxis(structure, leaf_rows, atom_rows, column.has_null)


# Atoms times entries of a view up to which all runs of an ordered column are priced, since that takes time in
# proportion. The Adult table comes nowhere near it: its refits take about 10,000.
_MOST_WORK = 20_000_000
# Returns the state that loses least when each suppressed row costs a price.
Refit: TypeAlias = Callable[[float], tuple[int, ...]]


def make_refit(axis: Axis, view: EntryView | CellView) -> Refit | None:
    """Return a function from a price to the best state of a column at that price.

    Only trees and ordered columns can be refitted; None for others, and where it would be too much work.
    """
    if isinstance(axis, TreeAxis):
        return _refit_tree(axis, view)
    if isinstance(axis, OrderedAxis) and isinstance(view, EntryView) and axis.n_atoms * len(view.atom) <= _MOST_WORK:
        return _refit_runs(axis, view)
    return None


def _refit_tree(axis: TreeAxis, view: EntryView | CellView) -> Refit:
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
        cut, covered = [], 0
        for node in range(len(as_group)):
            if is_cut[node] and axis.first[node] >= covered:
                cut.append(node)
                covered = int(axis.end[node])
        return tuple(cut)

    return best


def _refit_runs(axis: OrderedAxis, view: EntryView) -> Refit:
    cost, small = _price_runs(axis, view)

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


def _price_runs(axis: OrderedAxis, view: EntryView) -> tuple[Floats, Floats]:
    """Return what every run of atoms would cost as a group, and the rows it would suppress: [first, last]."""
    atoms = axis.n_atoms
    small, price = np.zeros((atoms, atoms)), np.zeros((atoms, atoms))
    before = None if view.moving is None else view.moving.find_entries_before(view.other)
    for first in range(atoms):
        progress.check()
        is_inside = view.atom >= first
        inside = np.flatnonzero(is_inside)
        starts = find_run_starts(view.other[inside])
        count, size = view.count[inside], view.size[inside]
        if view.moving is not None and before is not None:
            # a person counts at the first atom of the run that holds him
            is_first = is_inside[view.moving.entry] & ((before < 0) | ~is_inside[before])
            size = size + np.bincount(view.moving.entry[is_first], minlength=len(is_inside))[inside]
        grown_rows = sum_up_to(count, starts)
        grown = grown_rows if view.size is view.count else sum_up_to(size, starts)
        change = np.where(grown < view.k, grown_rows, 0) - np.where(grown - size < view.k, grown_rows - count, 0)
        atom = view.atom[inside]
        small[first] = np.cumsum(np.bincount(atom, change, atoms))
        price[first] = np.cumsum(np.bincount(atom, change * view.entry_price[inside], atoms))
    rows = np.append(0, np.cumsum(view.marginal))
    run_rows = rows[None, 1:] - rows[:-1, None]
    cost = view.cost(axis.high[None, :] - axis.low[:, None], run_rows, small, price)
    sizes = np.append(0, np.cumsum(view.marginal_size))
    if sizes[-1] >= view.k:  # a run with too few people would be suppressed as a whole, and have no label
        cost[sizes[None, 1:] - sizes[:-1, None] < view.k] = np.inf
    return cost, small
