"""The column structures of a global recoding, the moves a search can make in one column, and the recoding it finds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np

from duckanon._core.common.arrays import Bools, Floats, Ints
from duckanon._methods.generalize.recoding.walks import Walk, walk

State: TypeAlias = tuple[int, ...] | None
"""A column's recoding while the search runs. None is the one group that also holds NULL."""

ROOT, EDIT, SMALLEST = 0, 1, 2
"""Kinds of move: to or from the group that holds NULL; one edit; merge the smallest leaves of a flat column."""


@dataclass(frozen=True)
class Ordered:
    """Numbers: any partition into contiguous runs is allowed."""

    positions: Floats  # the numbers, ascending
    # how runs are written, given the leaves before which one begins: the last number that the run before it says, and
    # the first that it says itself; NaN where no run may begin. None: a run says from its first to its last number.
    ends: Callable[[Ints], tuple[Floats, Floats]] | None = None
    # whether the first leaf, and whether the last, says nothing but itself where it is alone
    names_ends: tuple[bool, bool] = (False, False)


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
    # whether the merged group says that a value is none of those that are kept; else it says nothing
    says_others: bool = True


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
