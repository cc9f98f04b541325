"""Classes after a row joins them: the inner loop of the search, on whole arrays of classes and rows.

A class is a state in each `Join`, a row a value; both are tuples of arrays, and functions of the two broadcast. Where
rows of pools are asked for, pools are the last axis: numpy is several times quicker along a long one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TypeAlias

import numpy as np

from duckanon._core.common.arrays import Array, Ints
from duckanon._methods.recode.column_losses import Losses, Numbers, Ordered

State: TypeAlias = "tuple[Array, ...]"


class Join(ABC):
    """One column, or several that are looked up together."""

    @abstractmethod
    def values(self, rows: Array) -> State:
        """Return rows as values."""

    def single(self, values: State) -> State:
        """Return the states of classes of one row each."""
        return values

    @abstractmethod
    def joined(self, states: State, values: State) -> State:
        """Return the states of classes after a row has joined each."""

    def joined_losses(self, states: State, values: State) -> Array:
        """Return what classes lose after a row has joined each."""
        return self.losses(self.joined(states, values))

    @abstractmethod
    def losses(self, states: State) -> Array:
        """Return what classes lose."""


class _CodesJoin(Join):
    """A join whose rows are a code each."""

    def __init__(self, codes: Array) -> None:
        self.codes = codes

    def values(self, rows: Array) -> State:
        """Return the codes of rows."""
        return (self.codes.take(rows),)


class TableJoin(_CodesJoin):
    """States and values that are few: what they become stands in a table.

    `next_states` has the state after a value has joined a state, states by values; `single_states` that of each value
    alone.
    """

    def __init__(self, codes: Ints, next_states: Ints, single_states: Ints, state_losses: Losses) -> None:
        super().__init__(codes)
        self.next_states, self.single_states, self.state_losses = next_states, single_states, state_losses
        # a state travels as the place of its row in the flat tables
        self._width = width = next_states.shape[1]
        self._next = (next_states * width).ravel()
        self._single = single_states * width
        self._losses = state_losses[next_states].ravel()

    @property
    def entries(self) -> int:
        """The number of entries of the table."""
        return self.next_states.size

    def with_other(self, other: TableJoin) -> TableJoin:
        """Return the table of this and another one together."""
        own_width, width = self.next_states.shape[1], other.next_states.shape[1]
        states, count = len(self.next_states), len(other.next_states)
        state, other_state = np.divmod(np.arange(states * count), count)
        value, other_value = np.divmod(np.arange(own_width * width), width)
        next_states = self.next_states[state][:, value] * count + other.next_states[other_state][:, other_value]
        single = self.single_states[value] * count + other.single_states[other_value]
        losses = self.state_losses[state] + other.state_losses[other_state]
        return TableJoin(self.codes * width + other.codes, next_states, single, losses)

    def single(self, values: State) -> State:
        """Return the states of classes of one row each."""
        return (self._single[values[0]],)

    def joined(self, states: State, values: State) -> State:
        """Return the states of classes after a row has joined each."""
        return (self._next.take(states[0] + values[0], mode="clip"),)  # which is quicker than to look for errors

    def joined_losses(self, states: State, values: State) -> Array:
        """Return what classes lose after a row has joined each."""
        return self._losses.take(states[0] + values[0], mode="clip")

    def losses(self, states: State) -> Array:
        """Return what classes lose."""
        losses: Array = self.state_losses[states[0] // self._width]
        return losses


class RangeJoin(Join):
    """Numbers: a state is the smallest and the largest end."""

    def __init__(self, column: Numbers, codes: Array) -> None:
        self._lower = self._upper = column.lower[codes]
        if (column.lower != column.upper).any():
            self._upper = column.upper[codes]
        self._most = np.float32(column.weight) if column.has_null else None

    def values(self, rows: Array) -> State:
        """Return rows as values."""
        lower = self._lower.take(rows)
        return lower, lower if self._upper is self._lower else self._upper.take(rows)

    def joined(self, states: State, values: State) -> State:
        """Return the states of classes after a row has joined each."""
        return np.minimum(states[0], values[0]), np.maximum(states[1], values[1])

    def joined_losses(self, states: State, values: State) -> Array:
        """Return what classes lose after a row has joined each."""
        width: Array = np.maximum(states[1], values[1])
        width -= np.minimum(states[0], values[0])
        return width if self._most is None else np.minimum(width, self._most, out=width)

    def losses(self, states: State) -> Array:
        """Return what classes lose."""
        width = np.subtract(states[1], states[0])
        return width if self._most is None else np.minimum(width, self._most)


class SpanJoin(_CodesJoin):
    """A tree too large for a table: a state is the smallest and the largest code."""

    def __init__(self, column: Ordered, codes: Array) -> None:
        super().__init__(codes)
        self._column = column

    def single(self, values: State) -> State:
        """Return the states of classes of one row each."""
        return values[0], values[0]

    def joined(self, states: State, values: State) -> State:
        """Return the states of classes after a row has joined each."""
        return np.minimum(states[0], values[0]), np.maximum(states[1], values[0])

    def losses(self, states: State) -> Array:
        """Return what classes lose."""
        return self._column.span_losses(states[0], states[1])


class GroupJoin(_CodesJoin):
    """Groups that no class may mix: one that does loses more than any other. The code of a row is its group."""

    FORBIDDEN = np.float32(1e3)

    def joined(self, states: State, values: State) -> State:
        """Return the states of classes after a row has joined each: -1 once it is mixed."""
        return (np.where(states[0] == values[0], states[0], -1),)

    def joined_losses(self, states: State, values: State) -> Array:
        """Return what classes lose after a row has joined each."""
        losses: Array = (states[0] != values[0]) * self.FORBIDDEN
        return losses

    def losses(self, states: State) -> Array:
        """Return what classes lose."""
        losses: Array = (states[0] < 0) * self.FORBIDDEN
        return losses
