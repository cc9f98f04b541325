"""Columns as the search for classes sees them: the code of each value, and what a class loses that holds several.

The loss of a class in a column is the share of the column that its label covers besides one value: of the range of
numbers, of the values below an ancestor, of the values of a set, times the weight of the column. Numbers and trees have
an order in which the first and the last code of a class decide its loss; sets are packed into words of 64 bits.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from duckanon._core.common.arrays import Array, Floats, Ints

Losses = NDArray[np.float32]
"""Losses are compared, not published: single precision halves the memory of the search."""

_TABLE_VALUES = 600
"""A tree of so many values has its common ancestors in a table; that of a larger one would not stay in the cache."""


class CodedColumn(ABC):
    """A column: codes from 0 to size - 1, of which classes hold one or several."""

    size: int
    weight: float  # what a class loses that says nothing about the column


class SpanColumn(CodedColumn):
    """A column of which a class publishes its smallest and its largest code, and all that lies between them."""

    @abstractmethod
    def span_losses(self, first: Array, last: Array) -> Losses:
        """Return what classes lose, given their smallest and their largest codes."""


class NumberColumn(SpanColumn):
    """Parts of a column of numbers or dates, ascending; NULL, where there is one, after all others.

    A class of NULL and others says nothing about the column. A class loses a share of `span`, the range of the column;
    None: all that the parts cover.
    """

    def __init__(
        self, lower: Floats, upper: Floats, has_null: bool, weight: float = 1.0, span: float | None = None
    ) -> None:
        if span is None:
            span = float(upper[-1] - lower[0]) if len(lower) else 0.0
        start = float(lower[0]) if len(lower) else 0.0
        scale = weight / span if span > 0 else 0.0
        ends = np.stack([lower - start, upper - start]) * scale
        if has_null:
            ends = np.concatenate([ends, np.full((2, 1), 3 * weight)], axis=1)
        self.size, self.weight, self.has_null = ends.shape[1], weight, has_null
        self.lower, self.upper = ends.astype(np.float32)

    def span_losses(self, first: Array, last: Array) -> Losses:
        """Return what classes lose: the share of the range that they cover."""
        losses: Losses = np.minimum(self.upper[last] - self.lower[first], np.float32(self.weight))
        return losses


class TreeColumn(SpanColumn):
    """Values of a hierarchy, in an order in which those below any node follow each other.

    The common ancestor of several values is the one of the first and the last, and has as many values as the largest of
    the gaps between them: the largest of a range is looked up in two ranges whose lengths are powers of two. `gaps`
    says for each value but the last how many values the common ancestor of it and the next has below it.
    """

    def __init__(self, gaps: Ints, weight: float = 1.0) -> None:
        self.size, self.weight = len(gaps) + 1, weight
        losses = ((gaps - 1) * (weight / max(self.size - 1, 1))).astype(np.float32)
        levels = [losses]
        while 2 ** len(levels) <= len(losses):
            before, half = levels[-1], 2 ** (len(levels) - 1)
            longer = before.copy()
            np.maximum(before[:-half], before[half:], out=longer[:-half])
            levels.append(longer)
        self._largest = np.stack(levels) if len(losses) else np.zeros((1, 1), np.float32)
        self._table: Losses | None = None
        if self.size <= _TABLE_VALUES:
            first, last = np.divmod(np.arange(self.size**2), self.size)
            self._table = self._look_up(np.minimum(first, last), np.maximum(first, last))

    def span_losses(self, first: Array, last: Array) -> Losses:
        """Return what classes lose: the share of the other values that lie below their common ancestor."""
        if self._table is None:
            return self._look_up(first, last)
        losses: Losses = self._table.take(first * np.int64(self.size) + last)
        return losses

    def nodes(self) -> Ints:
        """Return the first and the last value below each node, one row a node; the values themselves come first."""
        leaves = np.arange(self.size)
        first, last = self.ancestors(leaves[:-1], leaves[1:])
        inner = np.unique(np.stack([first, last], axis=1), axis=0)
        return np.concatenate([np.stack([leaves, leaves], axis=1), inner]).astype(np.int64)

    def ancestors(self, first: Ints, last: Ints) -> tuple[Ints, Ints]:
        """Return the first and the last value below the common ancestors of values."""
        if self.size == 1:
            return first, last
        # A node ends where the next gap is larger than all of its own: bisect for the farthest values whose common
        # ancestor is no larger.
        losses = self._look_up(first, last)
        low, high = np.zeros_like(first), first.copy()
        while (low < high).any():
            middle = (low + high) // 2
            fits = self._look_up(middle, last) <= losses
            low, high = np.where(fits, low, middle + 1), np.where(fits, middle, high)
        start, low, high = low, last.copy(), np.full_like(last, self.size - 1)
        while (low < high).any():
            middle = (low + high + 1) // 2
            fits = self._look_up(first, middle) <= losses
            low, high = np.where(fits, middle, low), np.where(fits, high, middle - 1)
        alone = first == last
        return np.where(alone, first, start), np.where(alone, last, low)

    def _look_up(self, first: Array, last: Array) -> Losses:
        steps = (last - first).astype(np.int64)
        level = np.frexp(np.maximum(steps, 1))[1].astype(np.int64) - 1
        from_first = self._largest[level, np.minimum(first, len(self._largest[0]) - 1)]
        to_last = self._largest[level, np.maximum(last - 2**level, 0)]
        losses: Losses = np.where(steps > 0, np.maximum(from_first, to_last), np.float32(0))
        return losses


class SetColumn(CodedColumn):
    """Values without an order, of which a class publishes the set; the last code stands for `pooled` rare ones."""

    def __init__(self, size: int, pooled: int = 1, weight: float = 1.0) -> None:
        self.size, self.weight = size, weight
        self.share = np.float32(weight / max(size + pooled - 2, 1))
        self.counts = np.full(size, self.share)
        self.counts[-1:] *= pooled

    def set_losses(self, sums: Array) -> Losses:
        """Return what classes lose, given the sums of the counts of their values."""
        losses: Losses = np.maximum(sums - self.share, 0).astype(np.float32)
        return losses


class CodedRows(NamedTuple):
    """Rows of a table as codes; what is None makes no difference between them."""

    columns: Sequence[CodedColumn]
    codes: Sequence[Array]  # by column: the code of each row
    group_of_row: Ints | None = None  # from 0; no class holds rows of two groups
    person_of_row: Ints | None = None  # None: each row is another person
    sensitive: Ints | None = None  # the sensitive value of each row, from 0

    @property
    def groups(self) -> Ints:
        """The group of each row."""
        return np.zeros(len(self.codes[0]), np.int64) if self.group_of_row is None else self.group_of_row

    def take(self, rows: Ints) -> CodedRows:
        """Return some of the rows."""
        numbers = (None if of_row is None else of_row[rows] for of_row in self[2:])
        return CodedRows(self.columns, [codes[rows] for codes in self.codes], *numbers)


def compute_losses(columns: Sequence[CodedColumn], codes: Sequence[Array], starts: Ints) -> Losses:
    """Return what each class loses over all columns; the rows of a class follow each other from its start."""
    total = np.zeros(len(starts), np.float32)
    for column, of_rows in zip(columns, codes, strict=True):
        if isinstance(column, SpanColumn):
            total += column.span_losses(np.minimum.reduceat(of_rows, starts), np.maximum.reduceat(of_rows, starts))
        elif isinstance(column, SetColumn):
            total += column.set_losses(_sum_sets(column, of_rows, starts))
    return total


def pack_bits(codes: Array, begin: int) -> NDArray[np.uint64]:
    """Return each code as a bit of a word that holds the 64 codes from ``begin`` on; 0 where it is another code."""
    shifts = np.asarray(codes, np.int64) - begin
    bits = np.left_shift(np.uint64(1), np.clip(shifts, 0, 63).astype(np.uint64))
    return np.where((shifts >= 0) & (shifts < 64), bits, np.uint64(0))


def count_bits(words: NDArray[np.uint64]) -> Ints:
    """Count the bits of words that are 1."""
    return np.asarray(_BITS_OF_16[words.view(np.uint16)].reshape(-1, 4).sum(axis=1), np.int64)


_BITS_OF_16 = np.unpackbits(np.arange(2**16, dtype=np.uint16).view(np.uint8)).reshape(-1, 16).sum(axis=1)


def _sum_sets(column: SetColumn, codes: Array, starts: Ints) -> Losses:
    """Sum up the counts of the different values of each class, 64 values at a time."""
    sums = np.zeros(len(starts), np.float32)
    for begin in range(0, column.size, 64):
        words = np.bitwise_or.reduceat(pack_bits(np.arange(column.size), begin).take(codes), starts)
        sums += count_bits(words) * column.share
    more = column.counts[-1] - column.share
    if more > 0:
        sums += np.bitwise_or.reduceat(codes == column.size - 1, starts) * more
    return sums
