"""The column structures of a global recoding, the moves a search can make in one column, and the recoding it finds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple, TypeAlias

import numpy as np

from duckanon._core.common.arrays import Bools, Floats, Ints, run_starts

# A column's recoding while the search runs. None is the one group that also holds NULL.
State: TypeAlias = tuple[int, ...] | None
# Kinds of move: to or from the group that holds NULL; one edit; merge the smallest leaves of a flat column.
ROOT, EDIT, SMALLEST = 0, 1, 2


@dataclass(frozen=True)
class Ordered:
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


def walk(parents: Ints) -> Walk:
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
    return Walk(
        nodes=nodes,
        parents=np.where(above[nodes] >= 0, step[above[nodes]], -1),
        depths=depth[nodes],
        first=first[nodes],
        end=first[nodes] + leaves_below[nodes],
        leaves=nodes[children[nodes] == 0],
    )


@dataclass(frozen=True)
class Tree:
    """A hierarchy: any cut is allowed. Nodes 0 to leaves - 1 are the leaves; the root's parent is -1."""

    parents: Ints  # the node above each node
    # what each node loses as a group. None: the share of the other leaves that are below it too.
    losses: Floats | None = None
    # how far up each node is, the leaves at 0, where a node may be more than one level below the node above it
    levels: Ints | None = None

    @cached_property
    def walk(self) -> Walk:
        """The nodes in depth-first order, for the axes of all stages."""
        return walk(np.asarray(self.parents, dtype=np.int64))


@dataclass(frozen=True)
class Flat:
    """No structure: some leaves are kept, all others are merged into one group."""

    leaves: int  # how many there are


@dataclass(frozen=True)
class Levels:
    """Full recodings from fine to coarse, of which one is taken; the last has one group."""

    maps: tuple[Ints, ...]
    losses: tuple[Floats, ...]


Structure: TypeAlias = Ordered | Tree | Flat | Levels


@dataclass(frozen=True)
class Column:
    """One column of the grouped table."""

    codes: Ints  # the leaf of each combination
    structure: Structure  # what may be merged. It describes the leaves that are not NULL, numbered from 0.
    weight: float = 1.0  # how much this column's loss counts
    has_null: bool = False  # whether there is one more leaf, numbered after all others, that is NULL


@dataclass(frozen=True)
class Closed:
    """A column's groups as they are released, after those of which no row is released have merged with others."""

    group: Ints  # the group of each atom, or of each leaf; NULL last where there is one
    losses: Floats  # what each group loses. Groups that have merged with others have no atom left.
    rest: int = -1  # the group of what is told of nobody: it is called as what no other group says. -1: there is none.
    has_merged: bool = False  # whether any groups have merged


def tells_of_nobody(closed: list[Closed], groups: list[Ints], rows: list[Ints]) -> bool:
    """Tell whether a group that has a label of its own is in no released class.

    What merged may be less diverse than its parts were.
    """
    return any(
        bool(((own_rows[group] == 0) & (group != own.rest)).any())
        for own, group, own_rows in zip(closed, groups, rows, strict=True)
    )


@dataclass(frozen=True)
class Moves:
    """Candidate states of one column with the whole table's loss and suppressed rows under each.

    What ``removed`` and ``added`` mean is the axis's own affair: a boundary, a node, an atom, a level.
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


def smallest(values: Floats, n: int) -> Ints:
    """Return the indices of the n smallest values, in order; of equal values the first ones."""
    if len(values) > 4 * n:  # sorting a few of many is quicker than sorting all
        few = np.flatnonzero(values <= np.partition(values, n - 1)[n - 1])
        return few[np.argsort(values[few], kind="stable")][:n]
    return np.argsort(values, kind="stable")[:n]
