"""The result of a search: how each column is recoded, and the loss."""

from __future__ import annotations

from dataclasses import dataclass

from duckanon._core.common.arrays import Bools, Floats, Ints
from duckanon._methods.generalize.recoding.axes import Axis
from duckanon._methods.generalize.recoding.column_moves import Closed, Column, Levels, State


@dataclass(frozen=True)
class ColumnRecoding:
    """The recoding of one column.

    Attributes:
        group_of_leaf: The group of each leaf, NULL included.
        losses: The loss of each group, from 0 to 1.
        rows: The rows of each group that are released.
        rest: The group of values that are called as what no other group says; -1: there is none.
        level: For levels, the level taken. Else None.
    """

    group_of_leaf: Ints
    losses: Floats
    rows: Ints
    rest: int = -1
    level: int | None = None


@dataclass(frozen=True)
class Recoding:
    """A recoding of a table.

    Attributes:
        columns: One recoding per column, in the order of the input.
        is_released: Whether the class of each combination of the input is released.
        suppressed: The number of rows in classes that are too small.
        gcp: The weighted mean loss over rows and columns; a suppressed row loses 1 in every column.
    """

    columns: tuple[ColumnRecoding, ...]
    is_released: Bools
    suppressed: int
    gcp: float


def described(axis: Axis, state: State, closed: Closed, rows: Ints, column: Column) -> ColumnRecoding:
    """Turn the groups of an axis's atoms into groups of the column's leaves.

    Args:
        axis, state: The axis and its state.
        closed, rows: The state's groups as they are released, and the released rows of each.
        column: The column that the axis was made for.
    """
    level = None
    if isinstance(column.structure, Levels):
        level = axis.coarsest[0] if state is None else state[0]
    return ColumnRecoding(closed.group[axis.atom_of_leaf], closed.losses, rows, closed.rest, level)
