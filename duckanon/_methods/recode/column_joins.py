"""The joins of a table's columns: sets of values by a comparison of short numbers, small columns looked up together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from duckanon._core.common.arrays import Array, Ints
from duckanon._methods.recode.column_losses import Column, Losses, Numbers, Tree, Values, bit_counts, value_bits
from duckanon._methods.recode.joins import GroupJoin, Join, RangeJoin, SpanJoin, State, TableJoin

Held = NDArray[np.uint8]
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

    def __init__(self, columns: Sequence[Values], codes: Sequence[Array]) -> None:
        most = max(column.size for column in columns)
        short = np.uint8 if most <= 2**8 else np.uint16 if most <= 2**16 else np.uint32
        self._codes = np.stack([of_rows.astype(short) for of_rows in codes])
        self._columns = columns
        self._pooled = [place for place, column in enumerate(columns) if _has_pooled(column)]
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
            self._tables.append([(word, value_bits(places, 64 * word)) for word in words])
            begin += column.size
        self._masks = [[np.bitwise_or.reduce(bits) for _, bits in tables] for tables in self._tables]
        self._words = -(-begin // 64)

    def codes(self, rows: Array) -> Array:
        """Return the codes of rows, columns first."""
        return self._codes.take(rows, axis=1)

    def counts(self, codes: Array) -> Losses:
        """Return what the values of rows count, given their codes."""
        counts = np.full(codes.shape[1:], self._share)
        for place in self._pooled:
            column = self._columns[place]
            counts += (codes[place] == column.size - 1) * (column.counts[-1] - column.share)
        return counts

    def holding(self, held: Held | None, codes: Array, taken: Array) -> Held:
        """Return what classes hold once a row has joined each; `held`, what they held before, is changed.

        Places by pools, of `codes` columns by places by pools; None: the classes were empty. `taken` says where the row
        that joins is, one a pool, in the flat array of places by pools.
        """
        new = codes.reshape(len(codes), -1).take(taken, axis=1)
        equal = (codes == new[:, None]).view(np.uint8)
        equal *= self._bits_of(new)[:, None]
        together: Held = np.bitwise_or.reduce(equal, axis=0)
        if held is not None:
            together |= held
        return together

    def _bits_of(self, codes: Array) -> Held:
        """Return the bit that stands for being equal to each code."""
        bits = np.broadcast_to(self._bits, codes.shape)
        if self._pooled:
            bits = bits.copy()
            for number, place in enumerate(self._pooled, len(self._codes)):
                bits[place, codes[place] == self._columns[place].size - 1] = 1 << number
        return bits

    def saved(self, held: Held) -> Losses:
        """Return what rows add less than their counts, as a number below 0."""
        return self._saved.take(held, mode="clip")

    def values(self, rows: Array) -> State:
        """Return rows as values: what they count in columns with pooled values, and the bits of their values."""
        codes = self.codes(rows)
        words: list[Array] = [np.zeros((), np.uint64)] * self._words
        for of_rows, tables in zip(codes, self._tables, strict=True):
            for word, bits in tables:
                words[word] = words[word] | bits.take(of_rows)
        return *(self._columns[place].counts.take(codes[place]) for place in self._pooled), *words

    def single(self, values: State) -> State:
        """Return the states of classes of one row each."""
        return self.folded(tuple(part[None] for part in values))

    def folded(self, values: State) -> State:
        """Return the states of classes, given the values of their rows: rows first."""
        words = [np.bitwise_or.reduce(of_rows, axis=0) for of_rows in values[len(self._pooled) :]]
        losses = np.zeros(words[0].shape, np.float32)
        for column, tables, masks in zip(self._columns, self._tables, self._masks, strict=True):
            for (word, bits), mask in zip(tables, masks, strict=True):
                held = words[word] & mask
                losses += bit_counts(held).reshape(held.shape) * column.share
                if _has_pooled(column) and bits[-1]:
                    losses += ((held & bits[-1]) != 0) * (column.counts[-1] - column.share)
        return losses - self._share, *words

    def joined(self, states: State, values: State) -> State:
        """Return the states of classes after a row has joined each."""
        words = (own | bits for own, bits in zip(states[1:], values[len(self._pooled) :], strict=True))
        return self.joined_losses(states, values), *words

    def joined_losses(self, states: State, values: State) -> Array:
        """Return what classes lose after a row has joined each."""
        losses: Array = states[0]
        both = [own & bits for own, bits in zip(states[1:], values[len(self._pooled) :], strict=True)]
        for place, (column, tables, masks) in enumerate(zip(self._columns, self._tables, self._masks, strict=True)):
            is_new = (both[tables[0][0]] & masks[0]) == 0
            for (word, _), mask in zip(tables[1:], masks[1:], strict=True):
                is_new &= (both[word] & mask) == 0
            weight = values[self._pooled.index(place)] if place in self._pooled else column.share
            losses = losses + is_new * weight
        return losses

    def losses(self, states: State) -> Array:
        """Return what classes lose."""
        return states[0]


def sets_joins(columns: Sequence[Values], codes: Sequence[Array]) -> list[SetsJoin]:
    """Put columns together, such that eight bits are enough for each."""
    parts: list[list[int]] = []
    used = _MOST_BITS
    for place, column in enumerate(columns):
        needed = 1 + _has_pooled(column)
        if used + needed > _MOST_BITS:
            parts.append([])
            used = 0
        parts[-1].append(place)
        used += needed
    return [SetsJoin([columns[place] for place in part], [codes[place] for place in part]) for part in parts]


def _has_pooled(column: Values) -> bool:
    return bool(column.counts[-1] > column.share)


class Joins(NamedTuple):
    """The joins of all columns."""

    ordered: list[Join]  # of numbers and trees, and of groups
    sets: list[SetsJoin]  # of columns of which classes publish sets

    @property
    def every(self) -> list[Join]:
        """All joins: together they make the state of a class."""
        return [*self.ordered, *self.sets]


def joins_of(columns: Sequence[Column], codes: Sequence[Array], groups: Array | None) -> Joins:
    """Return the joins of all columns, small ones together."""
    tables: list[TableJoin] = []
    others: list[Join] = [] if groups is None else [GroupJoin(groups)]
    of_sets: list[tuple[Values, Array]] = []
    for column, of_rows in zip(columns, codes, strict=True):
        if isinstance(column, Numbers):
            others.append(RangeJoin(column, of_rows))
        elif isinstance(column, Tree):
            nodes = column.nodes()
            if len(nodes) * column.size <= _LARGEST_TABLE:
                tables.append(_tree_table(column, nodes, of_rows))
            else:
                others.append(SpanJoin(column, of_rows))
        elif isinstance(column, Values):
            of_sets.append((column, of_rows))
    sets = sets_joins([column for column, _ in of_sets], [of_rows for _, of_rows in of_sets])
    return Joins([*others, *_packed(tables)], sets)


def _packed(tables: list[TableJoin]) -> list[TableJoin]:
    """Put small tables together, the smallest first, as long as the common one is small."""
    packed: list[TableJoin] = []
    for table in sorted(tables, key=lambda each: each.entries):
        if packed and packed[-1].entries * table.entries <= _MOST_ENTRIES:
            packed[-1] = packed[-1].with_other(table)
        else:
            packed.append(table)
    return packed


def _tree_table(column: Tree, nodes: Ints, codes: Array) -> TableJoin:
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
