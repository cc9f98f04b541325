"""Classes after a row joins them: the inner loop of the search, on whole arrays of classes and rows.

A class is a state in each `Join`, a row a value; both are tuples of arrays, and functions of the two broadcast. Numbers
keep the ends of a class. Small trees are looked up together in one table that stays in the processor's cache. Sets are
compared by short codes, up to eight columns at once: a bit a column says whether the class has the row's value. Where
rows of pools are asked for, pools are the last axis: numpy is several times quicker along a long one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from duckanon._core.common.arrays import Array, Ints
from duckanon._methods.recode.column_losses import (
    CodedColumn,
    Losses,
    NumberColumn,
    SetColumn,
    SpanColumn,
    TreeColumn,
    count_bits,
    pack_bits,
)

ClassState: TypeAlias = "tuple[Array, ...]"


class Join(ABC):
    """One column, or several that are looked up together."""

    @abstractmethod
    def values(self, rows: Array) -> ClassState:
        """Return rows as values."""

    def start(self, values: ClassState) -> ClassState:
        """Return the states of classes of one row each."""
        return values

    @abstractmethod
    def add(self, states: ClassState, values: ClassState) -> ClassState:
        """Return the states of classes after a row has joined each."""

    def score(self, states: ClassState, values: ClassState) -> Array:
        """Return what classes lose after a row has joined each."""
        return self.losses(self.add(states, values))

    @abstractmethod
    def losses(self, states: ClassState) -> Array:
        """Return what classes lose."""


class _CodesJoin(Join):
    """A join whose rows are a code each."""

    def __init__(self, codes: Array) -> None:
        self.codes = codes

    def values(self, rows: Array) -> ClassState:
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
        first_width, width = self.next_states.shape[1], other.next_states.shape[1]
        states, count = len(self.next_states), len(other.next_states)
        state, other_state = np.divmod(np.arange(states * count), count)
        value, other_value = np.divmod(np.arange(first_width * width), width)
        next_states = self.next_states[state][:, value] * count + other.next_states[other_state][:, other_value]
        single = self.single_states[value] * count + other.single_states[other_value]
        losses = self.state_losses[state] + other.state_losses[other_state]
        return TableJoin(self.codes * width + other.codes, next_states, single, losses)

    def start(self, values: ClassState) -> ClassState:
        """Return the states of classes of one row each."""
        return (self._single[values[0]],)

    def add(self, states: ClassState, values: ClassState) -> ClassState:
        """Return the states of classes after a row has joined each."""
        return (self._next.take(states[0] + values[0], mode="clip"),)  # which is quicker than to look for errors

    def score(self, states: ClassState, values: ClassState) -> Array:
        """Return what classes lose after a row has joined each."""
        return self._losses.take(states[0] + values[0], mode="clip")

    def losses(self, states: ClassState) -> Array:
        """Return what classes lose."""
        losses: Array = self.state_losses[states[0] // self._width]
        return losses


class RangeJoin(Join):
    """Numbers: a state is the smallest and the largest end."""

    def __init__(self, column: NumberColumn, codes: Array) -> None:
        self._lower = self._upper = column.lower[codes]
        if (column.lower != column.upper).any():
            self._upper = column.upper[codes]
        self._most = np.float32(column.weight) if column.has_null else None

    def values(self, rows: Array) -> ClassState:
        """Return rows as values."""
        lower = self._lower.take(rows)
        return lower, lower if self._upper is self._lower else self._upper.take(rows)

    def add(self, states: ClassState, values: ClassState) -> ClassState:
        """Return the states of classes after a row has joined each."""
        return np.minimum(states[0], values[0]), np.maximum(states[1], values[1])

    def score(self, states: ClassState, values: ClassState) -> Array:
        """Return what classes lose after a row has joined each."""
        width: Array = np.maximum(states[1], values[1])
        width -= np.minimum(states[0], values[0])
        return width if self._most is None else np.minimum(width, self._most, out=width)

    def losses(self, states: ClassState) -> Array:
        """Return what classes lose."""
        width = np.subtract(states[1], states[0])
        return width if self._most is None else np.minimum(width, self._most)


class SpanJoin(_CodesJoin):
    """A tree too large for a table: a state is the smallest and the largest code."""

    def __init__(self, column: SpanColumn, codes: Array) -> None:
        super().__init__(codes)
        self._column = column

    def start(self, values: ClassState) -> ClassState:
        """Return the states of classes of one row each."""
        return values[0], values[0]

    def add(self, states: ClassState, values: ClassState) -> ClassState:
        """Return the states of classes after a row has joined each."""
        return np.minimum(states[0], values[0]), np.maximum(states[1], values[0])

    def losses(self, states: ClassState) -> Array:
        """Return what classes lose."""
        return self._column.span_losses(states[0], states[1])


class GroupJoin(_CodesJoin):
    """Groups that no class may mix: one that does loses more than any other. The code of a row is its group."""

    FORBIDDEN = np.float32(1e3)

    def add(self, states: ClassState, values: ClassState) -> ClassState:
        """Return the states of classes after a row has joined each: -1 once it is mixed."""
        return (np.where(states[0] == values[0], states[0], -1),)

    def score(self, states: ClassState, values: ClassState) -> Array:
        """Return what classes lose after a row has joined each."""
        losses: Array = (states[0] != values[0]) * self.FORBIDDEN
        return losses

    def losses(self, states: ClassState) -> Array:
        """Return what classes lose."""
        losses: Array = (states[0] < 0) * self.FORBIDDEN
        return losses


HeldBits = NDArray[np.uint8]
"""For each row of a pool, which of its values the class has: a bit a column."""

_MOST_BITS = 8

_MOST_ENTRIES = 2**15
"""Entries of a table that still answers from the processor's cache."""

_LARGEST_TABLE = 2**18
"""Entries of a table that is better than computing: beyond that, values are compared."""


class SetsJoin(Join):
    """Up to eight columns of sets: a state is what the sets lose, and bits that tell which values they have.

    A row adds what its values count, but for those that the class has. A class that grows by one row a step needs to
    know only which values are equal to the new row's (`holding`): comparing short codes is much less work than looking
    up what each row would make of the class's sets, and what the columns save together is looked up once.
    """

    def __init__(self, columns: Sequence[SetColumn], codes: Sequence[Array]) -> None:
        most = max(column.size for column in columns)
        short = np.uint8 if most <= 2**8 else np.uint16 if most <= 2**16 else np.uint32
        self._codes = np.stack([of_rows.astype(short) for of_rows in codes])
        self._columns = columns
        self._pooled = [index for index, column in enumerate(columns) if _has_pool(column)]
        # pooled values count more than others: what equals them has a bit of its own
        weights = np.array([column.share for column in columns] + [columns[c].counts[-1] for c in self._pooled])
        is_set = (np.arange(2 ** len(weights))[:, None] >> np.arange(len(weights))) & 1
        self._saved: Losses = (-(is_set @ weights)).astype(np.float32)
        self._share = np.float32(sum(float(column.share) for column in columns))
        self._bits = (1 << np.arange(len(columns))).astype(np.uint8)[:, None]
        self._tables: list[list[tuple[int, Array]]] = []  # by column: words of the state, and each code's bits in them
        begin = 0
        for column in columns:
            places = np.arange(column.size) + begin
            words = range(begin // 64, (begin + column.size - 1) // 64 + 1)
            self._tables.append([(word, pack_bits(places, 64 * word)) for word in words])
            begin += column.size
        self._masks = [[np.bitwise_or.reduce(bits) for _, bits in tables] for tables in self._tables]
        self._words = -(-begin // 64)

    def codes(self, rows: Array) -> Array:
        """Return the codes of rows, columns first."""
        return self._codes.take(rows, axis=1)

    def counts(self, codes: Array) -> Losses:
        """Return what the values of rows count, given their codes."""
        counts = np.full(codes.shape[1:], self._share)
        for index in self._pooled:
            column = self._columns[index]
            counts += (codes[index] == column.size - 1) * (column.counts[-1] - column.share)
        return counts

    def hold_values(self, held: HeldBits | None, codes: Array, taken: Array) -> HeldBits:
        """Return what classes hold once a row has joined each; `held`, what they held before, is changed.

        Places by pools, of `codes` columns by places by pools; None: the classes were empty. `taken` says where the row
        that joins is, one a pool, in the flat array of places by pools.
        """
        new = codes.reshape(len(codes), -1).take(taken, axis=1)
        equal = (codes == new[:, None]).view(np.uint8)
        equal *= self._find_bits(new)[:, None]
        together: HeldBits = np.bitwise_or.reduce(equal, axis=0)
        if held is not None:
            together |= held
        return together

    def _find_bits(self, codes: Array) -> HeldBits:
        """Return the bit that stands for being equal to each code."""
        bits = np.broadcast_to(self._bits, codes.shape)
        if self._pooled:
            bits = bits.copy()
            for number, index in enumerate(self._pooled, len(self._codes)):
                bits[index, codes[index] == self._columns[index].size - 1] = 1 << number
        return bits

    def sum_savings(self, held: HeldBits) -> Losses:
        """Return what rows add less than their counts, as a number below 0."""
        return self._saved.take(held, mode="clip")

    def values(self, rows: Array) -> ClassState:
        """Return rows as values: what they count in columns with pooled values, and the bits of their values."""
        codes = self.codes(rows)
        words: list[Array] = [np.zeros((), np.uint64)] * self._words
        for of_rows, tables in zip(codes, self._tables, strict=True):
            for word, bits in tables:
                words[word] = words[word] | bits.take(of_rows)
        return *(self._columns[index].counts.take(codes[index]) for index in self._pooled), *words

    def start(self, values: ClassState) -> ClassState:
        """Return the states of classes of one row each."""
        return self.fold(tuple(part[None] for part in values))

    def fold(self, values: ClassState) -> ClassState:
        """Return the states of classes, given the values of their rows: rows first."""
        words = [np.bitwise_or.reduce(of_rows, axis=0) for of_rows in values[len(self._pooled) :]]
        losses = np.zeros(words[0].shape, np.float32)
        for column, tables, masks in zip(self._columns, self._tables, self._masks, strict=True):
            for (word, bits), mask in zip(tables, masks, strict=True):
                held = words[word] & mask
                losses += count_bits(held).reshape(held.shape) * column.share
                if _has_pool(column) and bits[-1]:
                    losses += ((held & bits[-1]) != 0) * (column.counts[-1] - column.share)
        return losses - self._share, *words

    def add(self, states: ClassState, values: ClassState) -> ClassState:
        """Return the states of classes after a row has joined each."""
        words = (word | bits for word, bits in zip(states[1:], values[len(self._pooled) :], strict=True))
        return self.score(states, values), *words

    def score(self, states: ClassState, values: ClassState) -> Array:
        """Return what classes lose after a row has joined each."""
        losses: Array = states[0]
        both = [word & bits for word, bits in zip(states[1:], values[len(self._pooled) :], strict=True)]
        for index, (column, tables, masks) in enumerate(zip(self._columns, self._tables, self._masks, strict=True)):
            is_new = (both[tables[0][0]] & masks[0]) == 0
            for (word, _), mask in zip(tables[1:], masks[1:], strict=True):
                is_new &= (both[word] & mask) == 0
            weight = values[self._pooled.index(index)] if index in self._pooled else column.share
            losses = losses + is_new * weight
        return losses

    def losses(self, states: ClassState) -> Array:
        """Return what classes lose."""
        return states[0]


def make_sets_joins(columns: Sequence[SetColumn], codes: Sequence[Array]) -> list[SetsJoin]:
    """Put columns together, such that eight bits are enough for each."""
    parts: list[list[int]] = []
    used = _MOST_BITS
    for index, column in enumerate(columns):
        bits = 1 + _has_pool(column)
        if used + bits > _MOST_BITS:
            parts.append([])
            used = 0
        parts[-1].append(index)
        used += bits
    return [SetsJoin([columns[index] for index in part], [codes[index] for index in part]) for part in parts]


def _has_pool(column: SetColumn) -> bool:
    return bool(column.counts[-1] > column.share)


class Joins(NamedTuple):
    """The joins of all columns."""

    ordered: list[Join]  # of numbers and trees, and of groups
    sets: list[SetsJoin]  # of columns of which classes publish sets

    @property
    def every(self) -> list[Join]:
        """All joins: together they make the state of a class."""
        return [*self.ordered, *self.sets]


def make_joins(columns: Sequence[CodedColumn], codes: Sequence[Array], groups: Array | None) -> Joins:
    """Return the joins of all columns, small ones together."""
    tables: list[TableJoin] = []
    ordered: list[Join] = [] if groups is None else [GroupJoin(groups)]
    of_sets: list[tuple[SetColumn, Array]] = []
    for column, of_rows in zip(columns, codes, strict=True):
        if isinstance(column, NumberColumn):
            ordered.append(RangeJoin(column, of_rows))
        elif isinstance(column, TreeColumn):
            nodes = column.nodes()
            if len(nodes) * column.size <= _LARGEST_TABLE:
                tables.append(_make_tree_table(column, nodes, of_rows))
            else:
                ordered.append(SpanJoin(column, of_rows))
        elif isinstance(column, SetColumn):
            of_sets.append((column, of_rows))
    sets = make_sets_joins([column for column, _ in of_sets], [of_rows for _, of_rows in of_sets])
    # small tables are put together, the smallest first, as long as the common one is small
    packed: list[TableJoin] = []
    for table in sorted(tables, key=lambda join: join.entries):
        if packed and packed[-1].entries * table.entries <= _MOST_ENTRIES:
            packed[-1] = packed[-1].with_other(table)
        else:
            packed.append(table)
    return Joins([*ordered, *packed], sets)


def _make_tree_table(column: TreeColumn, nodes: Ints, codes: Array) -> TableJoin:
    """Make the table of a tree: its states are the nodes, of which the leaves come first."""
    first, last = nodes.T
    values = np.arange(column.size)
    low, high = np.minimum(first[:, None], values), np.maximum(last[:, None], values)
    # a node is known by the values below it
    keys = first * column.size + last
    order = np.argsort(keys)
    ancestors = column.ancestors(low.ravel(), high.ravel())
    places = np.searchsorted(keys[order], ancestors[0] * column.size + ancestors[1])
    next_states = order[places].reshape(low.shape)
    return TableJoin(codes.astype(np.int64), next_states, values, column.span_losses(first, last))
