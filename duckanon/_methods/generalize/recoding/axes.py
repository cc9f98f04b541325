"""One column as the search sees it: its structure, its states, and the moves between them.

A structure says which leaves may be merged. An axis turns it into atoms, groups of leaves that are never split while
the search runs, and a state into groups of atoms. The moves of a state are all its neighbours at once: what the whole
table would lose and suppress after each comes from a view of the table (`views`) in a few passes, without making any of
them. A state can be exported in terms of leaves, so that the axis of the next stage, with finer atoms, adopts it.
"""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from duckanon._core.common.arrays import Array, Bools, Floats, Ints, find_run_starts, measure_runs
from duckanon._methods.generalize.recoding.views import EntryView, TableView

# A column's recoding while the search runs. None is the one group that also holds NULL.
ColumnState: TypeAlias = tuple[int, ...] | None
# Kinds of move: to or from the group that holds NULL; one edit; merge the smallest leaves of a flat column.
ROOT, EDIT, SMALLEST = 0, 1, 2


@dataclass(frozen=True)
class OrderedStructure:
    """Numbers: any partition into contiguous runs is allowed."""

    positions: Floats  # the numbers, ascending
    # how runs are written, given the leaves before which one begins: the last number that the run before it says, and
    # the first that it says itself; NaN where no run may begin. None: a run says from its first to its last number.
    ends: Callable[[Ints], tuple[Floats, Floats]] | None = None
    # whether the first leaf, and whether the last, says nothing but itself where it is alone
    names_ends: tuple[bool, bool] = (False, False)


class Walk(NamedTuple):
    """The nodes of a tree in depth-first order, without those that have one child."""

    nodes: Ints  # the node of each step of the walk, as the structure numbers it; where nodes form a chain, the lowest
    parents: Ints  # the step of the node above; -1 for the root
    depths: Ints  # the number of steps above
    # first, end: which entries of ``leaves`` lie below: from first up to but without end
    first: Ints
    end: Ints
    leaves: Ints  # the leaves in the order of the walk


def walk_tree(parents: Ints) -> Walk:
    """Walk through the tree in which each node has this parent, the root -1: level by level, as there may be many."""
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
        siblings = find_run_starts(above[level])
        for below in (nodes_below, leaves_below):
            below[above[level][siblings]] += np.add.reduceat(below[level], siblings)
    step, first = np.zeros_like(parents), np.zeros_like(parents)
    depth = np.zeros_like(parents)
    for number, level in enumerate(levels[1:], start=1):
        siblings = find_run_starts(above[level])
        family = np.diff(np.append(siblings, len(level)))
        for number_of, below, itself in ((step, nodes_below, 1), (first, leaves_below, 0)):
            before = np.cumsum(below[level]) - below[level]
            number_of[level] = number_of[above[level]] + itself + before - np.repeat(before[siblings], family)
        depth[level] = number
    nodes = kept[np.argsort(step[kept])]
    return Walk(
        nodes=nodes,
        parents=np.where(above[nodes] >= 0, step[above[nodes]], -1),
        depths=depth[nodes],
        first=first[nodes],
        end=first[nodes] + leaves_below[nodes],
        leaves=nodes[children[nodes] == 0],
    )


@dataclass(frozen=True)
class TreeStructure:
    """A hierarchy: any cut is allowed. Nodes 0 to leaves - 1 are the leaves; the root's parent is -1."""

    parents: Ints  # the node above each node
    # what each node loses as a group. None: the share of the other leaves that are below it too.
    losses: Floats | None = None
    # how far up each node is, the leaves at 0, where a node may be more than one level below the node above it
    levels: Ints | None = None

    @cached_property
    def walk(self) -> Walk:
        """The nodes in depth-first order, for the axes of all stages."""
        return walk_tree(np.asarray(self.parents, dtype=np.int64))


@dataclass(frozen=True)
class FlatStructure:
    """No structure: some leaves are kept, all others are merged into one group."""

    leaves: int  # how many there are


@dataclass(frozen=True)
class LevelStructure:
    """Full recodings from fine to coarse, of which one is taken; the last has one group."""

    maps: tuple[Ints, ...]
    losses: tuple[Floats, ...]


Structure: TypeAlias = OrderedStructure | TreeStructure | FlatStructure | LevelStructure


@dataclass(frozen=True)
class PlanColumn:
    """One column of the grouped table."""

    codes: Ints  # the leaf of each combination
    structure: Structure  # what may be merged. It describes the leaves that are not NULL, numbered from 0.
    weight: float = 1.0  # how much this column's loss counts
    has_null: bool = False  # whether there is one more leaf, numbered after all others, that is NULL


@dataclass(frozen=True)
class ClosedGroups:
    """A column's groups as they are released, after those of which no row is released have merged with others."""

    group: Ints  # the group of each atom, or of each leaf; NULL last where there is one
    losses: Floats  # what each group loses. Groups that have merged with others have no atom left.
    rest: int = -1  # the group of values that no row has as label: it is called as what no other says. -1: none
    has_merged: bool = False  # whether any groups have merged


def tells_of_nobody(closed: list[ClosedGroups], groups: list[Ints], rows: list[Ints]) -> bool:
    """Tell whether a group with its own label is in no released class.

    What merged may be less diverse than its parts were.
    """
    return any(
        bool(((group_rows[group] == 0) & (group != column.rest)).any())
        for column, group, group_rows in zip(closed, groups, rows, strict=True)
    )


@dataclass(frozen=True)
class Moves:
    """Candidate states of one column with the whole table's loss and suppressed rows under each.

    What ``removed`` and ``added`` mean is known to the axis only: a boundary, a node, an atom, a level.
    """

    loss: Floats
    suppressed: Floats
    kind: Ints
    removed: Ints
    added: Ints
    _best: dict[int, int] = field(default_factory=dict)

    def best_within(self, limit: int) -> int:
        """Return the move that loses least of those that suppress at most so many rows; -1 where there is none."""
        if limit not in self._best:  # a search asks again for moves that it has kept
            within = (self.suppressed <= limit).nonzero()[0]
            self._best[limit] = int(within[self.loss[within].argmin()]) if len(within) else -1
        return self._best[limit]


@dataclass(frozen=True)
class ColumnRecoding:
    """The recoding of one column."""

    group_of_leaf: Ints  # the group of each leaf, NULL included
    losses: Floats  # the loss of each group, from 0 to 1
    rows: Ints  # the rows of each group that are released
    rest: int = -1  # the group of values that are called as what no other group says; -1: there is none
    level: int | None = None  # for levels, the level taken. Else None.


@dataclass(frozen=True)
class Recoding:
    """A recoding of a table."""

    columns: tuple[ColumnRecoding, ...]  # one recoding per column, in the order of the input
    is_released: Bools  # whether the class of each combination of the input is released
    suppressed: int  # the number of rows in classes that are too small
    gcp: float  # the weighted mean loss over rows and columns; a suppressed row loses 1 in every column


def find_smallest(values: Floats, n: int) -> Ints:
    """Return the indices of the n smallest values, in order; of equal values the first ones."""
    if len(values) > 4 * n:  # sorting a few of many is quicker than sorting all
        few = np.flatnonzero(values <= np.partition(values, n - 1)[n - 1])
        return few[np.argsort(values[few], kind="stable")][:n]
    return np.argsort(values, kind="stable")[:n]


# Loss, suppressed rows, kind, removed and added of moves: the fields of `Moves`, of which some may be one number.
Candidates: TypeAlias = tuple[Floats, Floats, int | Ints, int | Ints, int | Ints]


class Axis(ABC):
    """Base of all kinds of columns."""

    coarsest: tuple[int, ...]  # the state with one group, NULL apart
    rest_loss = 1.0  # of the group of all values that no released row has
    has_nodes = False  # whether all that it asks of a view is what nodes of a hierarchy would cost

    def __init__(self, atom_of_leaf: Ints, n_atoms: int, has_null: bool) -> None:
        self.n_atoms, self.has_null = n_atoms, has_null
        # NULL is the atom after all others, which n_atoms does not count.
        self.atom_of_leaf = np.append(atom_of_leaf, n_atoms) if has_null else atom_of_leaf

    @abstractmethod
    def _group_atoms(self, state: tuple[int, ...]) -> tuple[Ints, Floats]:
        """Return the group of each atom that is not NULL and the loss of each group."""

    @abstractmethod
    def _list_candidates(self, state: tuple[int, ...], view: Any) -> list[Candidates]:
        """Return loss, suppressed rows, kind, removed and added of moves, in this column only."""

    @abstractmethod
    def _edit(self, state: tuple[int, ...], kind: int, removed: int, added: int) -> tuple[int, ...]:
        """Return the state after a move."""

    @abstractmethod
    def _export(self, state: tuple[int, ...]) -> tuple[int, ...]:
        """Return the state in terms of leaves, nodes or levels."""

    @abstractmethod
    def _adopt(self, portable: tuple[int, ...]) -> tuple[int, ...]:
        """Return the state of this axis that is the same recoding."""

    def export(self, state: ColumnState) -> ColumnState:
        """Return the state in terms of leaves, nodes or levels, which an axis with other atoms can adopt."""
        return None if state is None else self._export(state)

    def adopt(self, portable: ColumnState) -> ColumnState:
        """Return the state of this axis that is the same recoding, which may be that of one group of everything."""
        return self.top if portable is None else self._adopt(portable)

    @property
    def leaf_of_atom(self) -> Ints:
        """The last leaf of each atom, NULL included."""
        leaf = np.empty(self.n_atoms + self.has_null, dtype=np.int64)
        leaf[self.atom_of_leaf] = np.arange(len(self.atom_of_leaf))
        return leaf

    @property
    def top(self) -> ColumnState:
        """The one group that holds everything."""
        return None if self.has_null else self.coarsest

    def groups(self, state: ColumnState) -> tuple[Ints, Floats]:
        """Return the group of each atom and the loss of each group."""
        if state is None:
            return np.zeros(self.n_atoms + 1, dtype=np.int64), np.ones(1)
        group, loss = self._group_atoms(state)
        if self.has_null:
            group, loss = np.append(group, len(loss)), np.append(loss, 0.0)
        return group, loss

    def close(self, state: ColumnState, group: Ints, losses: Floats, is_released: Bools) -> ClosedGroups:
        """Return the groups of a state as they are released: groups of which no row is merge with others."""
        if state is None or is_released.all():
            return ClosedGroups(group, losses, self._find_rest(state))
        return self._close(state, is_released, group, losses)

    def recoding(self, state: ColumnState, closed: ClosedGroups, rows: Ints) -> ColumnRecoding:
        """Turn the groups of atoms, as they are released, with their released rows, into groups of leaves."""
        return ColumnRecoding(
            closed.group[self.atom_of_leaf], closed.losses, rows, closed.rest, self._find_level(state)
        )

    def _find_level(self, state: ColumnState) -> int | None:
        """Return the level that a state takes, where there are levels."""
        return None

    def _find_rest(self, state: ColumnState) -> int:
        """Return the group that is called as what no other group says, while all groups are released."""
        return -1

    def _close(self, state: tuple[int, ...], is_released: Bools, group: Ints, losses: Floats) -> ClosedGroups:
        """Put all groups of which no row is released into one that says nothing."""
        rest = len(losses)
        return ClosedGroups(np.where(is_released[group], group, rest), np.append(losses, self.rest_loss), rest, True)

    def list_moves(self, state: ColumnState, view: TableView) -> Moves:
        """Return the neighbours of a state, each with its loss and suppressed rows in the whole table."""
        if state is None:
            group, loss = self._group_atoms(self.coarsest)
            small, price = view.groups(group, len(loss))
            cost = view.cost(loss, view.marginal.sum(keepdims=True), small, price)
            candidates: list[Candidates] = [(cost + view.null_part[0], small + view.null_part[1], ROOT, 0, 0)]
        else:
            candidates = [
                (cost + view.null_part[0], small + view.null_part[1], kind, removed, added)
                for cost, small, kind, removed, added in self._list_candidates(state, view)
            ]
            if self.has_null:
                candidates.append((np.array([view.root_part[0]]), np.array([view.root_part[1]]), ROOT, 0, 0))
        if not candidates:
            none = np.empty(0, dtype=np.int64)
            return Moves(np.empty(0), np.empty(0), none, none, none)

        def join_field(field: int) -> Array:
            pairs = ((part[field], len(part[0])) for part in candidates)
            parts = [np.full(moves, value) if isinstance(value, int) else value for value, moves in pairs]
            return parts[0] if len(parts) == 1 else np.concatenate(parts)  # without a copy where there is one

        loss, suppressed, kind, removed, added = map(join_field, range(5))
        return Moves(loss + view.base, suppressed, kind, removed, added)

    def apply(self, state: ColumnState, kind: int, removed: int, added: int) -> ColumnState:
        """Return the state after a move."""
        if kind == ROOT:
            return self.coarsest if state is None else None
        if state is None:
            raise ValueError("kind must be ROOT to leave the group that holds NULL.")
        return self._edit(state, kind, removed, added)


class OrderedAxis(Axis):
    """Runs of sorted numbers. A state is the first atom of each run."""

    coarsest = (0,)

    def __init__(self, structure: OrderedStructure, leaf_rows: Ints, atom_rows: int, has_null: bool) -> None:
        positions = np.asarray(structure.positions, dtype=np.float64)
        leaves = len(positions)
        before = np.cumsum(leaf_rows[:leaves]) - leaf_rows[:leaves]
        first_leaf = find_run_starts(before // max(atom_rows, 1))
        if structure.ends is None:
            highs, lows = positions[first_leaf[1:] - 1], positions[first_leaf[1:]]
        else:
            highs, lows = structure.ends(first_leaf[1:])
        is_possible = ~np.isnan(lows)
        self.first_leaf = first_leaf[np.append(True, is_possible)]
        n_atoms = len(self.first_leaf)
        ends = np.append(self.first_leaf[1:], leaves)
        super().__init__(np.repeat(np.arange(n_atoms), ends - self.first_leaf), n_atoms, has_null)
        low, high = np.append(positions[0], lows[is_possible]), np.append(highs[is_possible], positions[-1])
        names_first, names_last = structure.names_ends
        if names_first and self.n_atoms > 1 and ends[0] == 1:
            high[0] = low[0]
        if names_last and self.n_atoms > 1 and ends[-1] - self.first_leaf[-1] == 1:
            low[-1] = high[-1]
        span = positions[-1] - positions[0]
        self.low, self.high = (np.clip((end - positions[0]) / (span if span > 0 else 1.0), 0, 1) for end in (low, high))

    def _export(self, state: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(self.first_leaf[list(state)].tolist())

    def _adopt(self, portable: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(np.unique(self.atom_of_leaf[list(portable)]).tolist())

    def _group_atoms(self, state: tuple[int, ...]) -> tuple[Ints, Floats]:
        starts = np.array(state, dtype=np.int64)
        lengths = measure_runs(starts, self.n_atoms)
        return np.arange(len(starts)).repeat(lengths), self.high[starts + lengths - 1] - self.low[starts]

    def _close(self, state: tuple[int, ...], is_released: Bools, group: Ints, losses: Floats) -> ClosedGroups:
        """Let runs of which no row is released join a neighbour, so that no end tells where they were."""
        starts = np.array(state, dtype=np.int64)
        released = np.flatnonzero(is_released[: len(starts)])
        if not len(released):
            starts = starts[:1]
        else:
            # Between two runs that are released, the boundary that widens its run least stays.
            firsts = [0]
            for left, right in itertools.pairwise(released.tolist()):
                at = starts[left + 1 : right + 1]
                widened = (self.high[at - 1] - self.high[at[0] - 1]) + (self.low[at[-1]] - self.low[at])
                firsts.append(int(at[np.argmin(widened)]))
            starts = np.array(firsts, dtype=np.int64)
        runs, widths = self._group_atoms(tuple(starts.tolist()))
        if not self.has_null:
            return ClosedGroups(runs, widths, has_merged=True)
        is_null_told = bool(is_released[-1])
        return ClosedGroups(
            np.append(runs, len(widths)),
            np.append(widths, 0.0 if is_null_told else 1.0),
            -1 if is_null_told else len(widths),
            True,
        )

    def _list_candidates(self, state: tuple[int, ...], view: EntryView) -> list[Candidates]:
        starts = np.array(state, dtype=np.int64)
        run, loss = self._group_atoms(state)
        run_small, run_price = view.groups(run, len(starts))
        run_cost = view.cost(loss, np.bincount(run, view.marginal, len(starts)), run_small, run_price)
        # Splits look at single runs; merges and moved boundaries at pairs, first 0-1, 2-3, ... then 1-2, 3-4, ...
        cuts = min(len(starts), 3)
        is_begin = np.zeros((cuts, self.n_atoms), bool)
        is_begin[:, 0] = is_begin[0, starts] = is_begin[1:2, starts[::2]] = is_begin[2:, starts[1::2]] = True
        begin = is_begin.ravel().nonzero()[0]
        size = measure_runs(begin, is_begin.size)
        begin %= self.n_atoms
        first = begin.repeat(size).reshape(is_begin.shape)
        last = (begin + size - 1).repeat(size).reshape(is_begin.shape)
        left_small, left_price, right_small, right_price = view.cost_prefixes(first, last)
        rows, sizes, atoms = view.marginal.cumsum(), view.marginal_size.cumsum(), np.arange(self.n_atoms)
        following = np.minimum(atoms + 1, last)
        rows_before, size_before = rows - view.marginal, sizes - view.marginal_size
        cost = view.cost(self.high - self.low[first], rows - rows_before[first], left_small, left_price)
        cost += view.cost(self.high[last] - self.low[following], rows[last] - rows, right_small, right_price)
        run_last, of_runs = run[last], np.array([run_cost, run_small])
        is_pair = starts[run_last] > first
        of_segment = of_runs.take(run[first], axis=1) + np.where(is_pair, of_runs.take(run_last, axis=1), 0.0)
        others_cost, others_small = of_runs.sum(axis=1)[:, None, None] - of_segment
        # The boundary inside the pair: the start of the run that ends it, if the pair has two runs.
        removed = np.where(is_pair, starts[run_last], -1)
        is_inside = atoms < last
        added = np.where(is_inside, atoms + 1, -1)
        keep = is_pair & (atoms + 1 != removed)
        keep[0] = is_inside[0]
        # A run with too few people would be suppressed as a whole, and have no label.
        keep &= ~is_inside | ((sizes - size_before[first] >= view.k) & (sizes[last] - sizes >= view.k))
        small = left_small + right_small
        return [((others_cost + cost)[keep], (others_small + small)[keep], EDIT, removed[keep], added[keep])]

    def _edit(self, state: tuple[int, ...], kind: int, removed: int, added: int) -> tuple[int, ...]:
        starts = set(state) - {removed}
        return tuple(sorted(starts | {added} if added >= 0 else starts))
