"""Minimal sample uniques: for each row the smallest sets of columns in which no other row has its values.

The table comes as cells, its distinct rows. A row that is unique in some set of columns is unique in all columns
together, so it is a cell of its own, and only such cells are looked for; the others stand in their way. `walk` visits
the sets as `assess.lattice` does: a set is refined to its children, cells that are unique in a set are left
out of the work below it, and cells that agree on every column still in play are put together.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from duckanon._core.common import progress
from duckanon._core.common.arrays import Bools, Ints, Ints32, run_starts
from duckanon._core.common.codes import Codes
from duckanon._measure.assess.class_keys import DENSE, MAX_KEY, count_sets, distinct_share, order_of_keys, ranked

SEVERAL = -1
"""In place of a number: the cell has rows of several people, and nobody is unique in it, whatever the columns."""

NOBODY = 0  # the holder of a row that does not say whose it is: it hides nobody, and is not hidden by its like
_SHRINK = 0.75  # cells are put together where at most this share of them is left, so that tables shrink geometrically
_GAIN = 4.0  # that costs about as much as visiting so many sets, and one more for each column to be taken along
_FEW_CELLS = 256  # with fewer the cost of numpy's calls is nearly all there is


class KeyColumn(NamedTuple):
    """A column as dense codes: the code of each cell, the number of codes, and that of NULL where it has no matches."""

    codes: Codes
    distinct: int
    missing: int | None


class _Table(NamedTuple):
    """The cells under a node of the lattice."""

    prefix: Codes  # the code of each cell in the node's columns
    prefix_count: int  # codes are below this
    tail: list[KeyColumn]  # columns that may still join the set
    numbers: Ints32  # which of the rows looked for the cell is, or SEVERAL
    holders: Ints | None  # whose the cell is, NOBODY or SEVERAL; None: every row is a person

    def taken(self, chosen: Ints) -> _Table:
        tail = [column._replace(codes=column.codes.take(chosen)) for column in self.tail]
        holders = None if self.holders is None else self.holders.take(chosen)
        return _Table(self.prefix.take(chosen), self.prefix_count, tail, self.numbers.take(chosen), holders)


class MinimalUniques(NamedTuple):
    """A set of columns, as indices, and the numbers of the rows of which it is a minimal unique set."""

    columns: tuple[int, ...]
    rows: Ints32


def walk(
    columns: Sequence[KeyColumn], is_single: Bools, holders: Ints | None = None, max_size: int | None = None
) -> Iterator[MinimalUniques]:
    """Find the minimal unique sets of every row, of at most `max_size` columns, and yield those minimal for some row.

    The cells of `columns` are distinct rows. Those with `is_single`, of one row or one person, are numbered 0, 1, 2 ...
    in the result; `holders` says whose they are, or `NOBODY`; None: every row is a person.

    Examples:
        >>> sex, age = KeyColumn(np.array([0, 0, 1]), 2, None), KeyColumn(np.array([0, 1, 1]), 2, None)
        >>> for found in walk([sex, age], np.ones(3, bool)):
        ...     print(found.columns, found.rows)
        (1,) [0]
        (0,) [2]
        (0, 1) [1]
    """
    order = sorted(range(len(columns)), key=lambda place: -columns[place].distinct)
    size = len(columns) if max_size is None else min(max_size, len(columns))
    numbers = np.where(is_single, np.cumsum(is_single) - 1, SEVERAL).astype(np.int32)
    if holders is not None:
        holders = np.where(is_single, holders, SEVERAL)
    root = _Table(np.zeros(len(is_single), np.uint8), 1, [columns[place] for place in order], numbers, holders)
    known = _Known(int(np.count_nonzero(is_single)), size)
    yield from _children(root, order, 0, size, known, 0.0, 1.0)


class _Known:
    """The rows with a minimal unique set within a set of columns, as packed bits for every set that was visited."""

    def __init__(self, rows: int, max_size: int) -> None:
        self._marked = np.zeros(rows, np.bool_)
        self._bits: dict[int, NDArray[np.uint8]] = {}
        self._max_size = max_size

    def without_subsets(self, mask: int, rows: Ints32) -> Ints32:
        """Return those of some rows that are unique in the set which are so in no subset of it, and remember them."""
        subsets = [mask ^ (1 << place) for place in range(mask.bit_length()) if mask >> place & 1]
        bits = [self._bits[subset] for subset in subsets if subset in self._bits]
        before = np.bitwise_or.reduce(bits) if len(bits) > 1 else bits[0] if bits else None
        if before is not None and len(rows):
            rows = rows[(before.take(rows >> 3) >> (rows & 7).astype(np.uint8)) & 1 == 0]
        if mask.bit_count() < self._max_size and (len(rows) or before is not None):
            self._bits[mask] = self._with(before, rows)
        return rows

    def _with(self, before: NDArray[np.uint8] | None, rows: Ints32) -> NDArray[np.uint8]:
        if len(rows) == 0 and before is not None:
            return before
        self._marked[rows] = True
        packed = np.packbits(self._marked, bitorder="little")
        self._marked[rows] = False
        return packed if before is None else packed | before


def _children(
    table: _Table, names: list[int], parent: int, depth: int, known: _Known, begin: float, end: float
) -> Iterator[MinimalUniques]:
    """Visit the sets below a node, each after its subsets: last column first is the order of counting in binary.

    The sets with a column but none before it are half of those of that column and the later ones: so far is the walk,
    between its shares `begin` and `end`.
    """
    for view in reversed(_views(table, depth)):
        position = len(names) - len(view.tail)
        middle = begin + (end - begin) / 2 ** (position + 1)
        progress.at(middle)
        mask = parent | 1 << names[position]
        alone, child = _refine(view, depth)
        rows = known.without_subsets(mask, alone)
        if len(rows):
            yield MinimalUniques(tuple(place for place in range(mask.bit_length()) if mask >> place & 1), rows)
        if child is not None:
            until = begin + (end - begin) / 2**position
            yield from _children(child, names[position + 1 :], mask, depth - 1, known, middle, until)


def _refine(table: _Table, depth: int) -> tuple[Ints32, _Table | None]:
    """Add the first tail column to the set of a node: the rows that are unique, and the table if it has children."""
    (codes, count, missing), *tail = table.tail
    table = table._replace(tail=tail)
    if missing is not None:
        present = np.flatnonzero(codes != missing)
        codes, table = codes.take(present), table.taken(present)
    sets_below, cells = count_sets(len(tail), depth - 1), table.prefix_count * count
    is_dense = cells <= max(_FEW_CELLS, len(codes) * DENSE)
    key: Codes = np.multiply(table.prefix, count, dtype=np.int64 if is_dense or cells >= 2**31 else np.int32)
    key += codes
    if not (is_dense or sets_below or table.holders is not None):
        numbers = table.numbers.take(_alone_in_order(key, cells))
        return numbers[numbers >= 0], None
    if not is_dense:
        key, sizes = ranked(key, cells, None)
    else:
        sizes = np.bincount(key, minlength=cells)
    is_one = sizes == 1 if table.holders is None else _are_of_one(key, len(sizes), table.holders)
    is_alone = is_one.take(key)
    is_alone &= table.numbers >= 0
    found = table.numbers.compress(is_alone)
    if not sets_below:
        return found, None
    table = table._replace(prefix=key, prefix_count=len(sizes))
    return found, _child(table, is_alone, len(found), sets_below)


def _child(table: _Table, is_alone: Bools, alone: int, sets_below: int) -> _Table | None:
    """Make the table of a set: without unique cells, where leaving them out costs less than it saves below."""
    if 2 * alone * sets_below > (len(is_alone) - alone) * len(table.tail):
        table = table.taken(np.flatnonzero(~is_alone))
    if not (table.numbers >= 0).any():
        return None
    renumbered = np.cumsum(np.bincount(table.prefix, minlength=table.prefix_count) > 0, dtype=np.int32)
    renumbered -= 1
    return table._replace(prefix=renumbered.take(table.prefix), prefix_count=int(renumbered[-1]) + 1)


def _alone_in_order(key: Codes, cells: int) -> Ints:
    """Return the places of keys that occur once."""
    order = order_of_keys(key, cells)
    ordered = key.take(order)
    first = np.ones(len(key) + 1, np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=first[1:-1])
    return order.compress(first[1:] & first[:-1])


def _are_of_one(key: Codes, classes: int, holders: Ints) -> Bools:
    """Tell for each class whether all its cells are one person's, or nobody's."""
    largest, least = np.full(classes, NOBODY), np.full(classes, np.iinfo(np.int64).max)
    np.maximum.at(largest, key, holders)
    np.minimum.at(least, key, np.where(holders == NOBODY, np.iinfo(np.int64).max, holders))
    return np.asarray(least >= largest)


def _views(table: _Table, depth: int) -> list[_Table]:
    """Return for each tail column the table of that and the later columns, equal cells merged where that pays."""
    views: list[_Table] = []
    for _ in table.tail:
        table = _collapsed(table, depth)
        views.append(table)
        table = table._replace(tail=table.tail[1:])
    return views


def _collapsed(table: _Table, depth: int) -> _Table:
    """Merge cells that agree on every column in play: none of them is unique in any set below."""
    size, left = len(table.prefix), count_sets(len(table.tail), depth)
    cells = table.prefix_count * math.prod(column.distinct for column in table.tail)
    if table.holders is not None or size < _FEW_CELLS or cells >= MAX_KEY:
        return table
    key = table.prefix.astype(np.int64)
    for column in table.tail:
        key *= column.distinct
        key += column.codes
    share = distinct_share(key)
    if share > _SHRINK or left * (1 - share) <= _GAIN + len(table.tail):
        return table
    order = order_of_keys(key, cells)
    starts = run_starts(key.take(order))
    together = table.taken(order.take(starts))
    together.numbers[np.diff(starts, append=size) > 1] = SEVERAL
    return together
