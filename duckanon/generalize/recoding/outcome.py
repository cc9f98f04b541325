"""What a search returns: how each column is recoded, and what that loses."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from duckanon.common.arrays import Floats, Ints
from duckanon.generalize.recoding.axes import Axis
from duckanon.generalize.recoding.columns import Closed, Column, Levels, State
from duckanon.generalize.recoding.trees import TreeAxis


@dataclass(frozen=True)
class ColumnRecoding:
    """The recoding of one column.

    Attributes
    ----------
    group_of_leaf
        The group of each leaf, NULL included.
    losses
        The loss of each group, from 0 to 1.
    rows
        The rows of each group that are released.
    rest
        The group of values that are called as what no other group says; -1: there is none.
    nodes
        For a tree, the node of each group; -1 for NULL and the rest. Else None.
    level
        For levels, the level taken. Else None.
    """

    group_of_leaf: Ints
    losses: Floats
    rows: Ints
    rest: int = -1
    nodes: Ints | None = None
    level: int | None = None


@dataclass(frozen=True)
class Recoding:
    """A recoding of a table.

    Attributes
    ----------
    columns
        One recoding per column, in the order of the input.
    suppressed
        The number of rows in classes that are too small.
    gcp
        The weighted mean loss over rows and columns; a suppressed row loses 1 in every column.
    """

    columns: tuple[ColumnRecoding, ...]
    suppressed: int
    gcp: float


def described(axis: Axis, state: State, closed: Closed, rows: Ints, column: Column) -> ColumnRecoding:
    """Turn the groups of an axis's atoms into groups of the column's leaves.

    Parameters
    ----------
    axis, state
        The axis and its state.
    closed, rows
        The state's groups as they are released, and the released rows of each.
    column
        The column that the axis was made for.
    """
    nodes, level = None, None
    if isinstance(axis, TreeAxis):
        labels = axis.portable(axis.coarsest if state is None else state)
        nodes = np.full(len(closed.losses), -1, dtype=np.int64)
        nodes[: len(labels)] = labels
    if isinstance(column.structure, Levels):
        level = axis.coarsest[0] if state is None else state[0]
    return ColumnRecoding(closed.group[axis.atom_of_leaf], closed.losses, rows, closed.rest, nodes, level)
