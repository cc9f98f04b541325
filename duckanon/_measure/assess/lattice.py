"""Class statistics of every set of columns of a table, by one walk over the lattice of sets.

The columns come as dense integer codes, as from `common.codes.encode_columns`. `walk` visits the sets depth first: the
codes of a set are refined to those of its children, a row that is unique in a set is left out of all the work below it,
and rows that agree on every column still in play are collapsed into one row with a weight.

Classes of rows by integer keys, counted or sorted: how many there are, how large, and which row is in which.

Numbers of different people in each class, where a person has several rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from duckanon._core.common import progress
from duckanon._core.common.arrays import Array, Bools, Floats, Ints, Ints32, find_run_starts, measure_runs
from duckanon._core.common.codes import CodedColumn, Codes
from duckanon._core.common.row_keys import LARGEST_KEY, order_keys, pack_columns

Weights: TypeAlias = Floats
ClassCounts: TypeAlias = tuple[int, int, int]
"""Distinct combinations of a set, rows whose combination occurs once, size of the smallest class."""

DENSE = 2.0  # cells per row up to which classes are counted by bincount, which writes each cell, and not by sorting
_SAMPLED_ROWS = 2**15  # tables with more rows have their share of distinct rows estimated, from a part ...
_SAMPLE_BELOW = np.uint64(2**59)  # ... with hashes below this: one in 32, so that the estimate costs next to nothing
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # 2**64 over the golden ratio: a product with it spreads nearby keys


def count_sets(columns: int, max_size: int) -> int:
    """Return how many sets of 1 .. `max_size` of so many columns there are."""
    return sum(math.comb(columns, size) for size in range(1, min(max_size, columns) + 1))


def class_counts(key: Codes, cells: int, weights: Weights | None) -> ClassCounts:
    """Count the classes of keys that are not needed any more: they are sorted in place."""
    flagged = key
    if weights is not None:  # one bit tells a row of more weight than 1, so the sort need not carry the weights
        flagged = key.astype(np.int32 if cells < 2**30 else np.int64)
        flagged *= 2
        flagged += weights > 1
    flagged.sort()
    first = np.ones(len(key) + 1, np.bool_)
    first[1:-1] = (flagged[1:] ^ flagged[:-1]) > (weights is not None)
    single = first[1:] & first[:-1]
    if weights is not None:
        single &= (flagged & 1) == 0
    distinct, singletons = int(np.count_nonzero(first)) - 1, int(np.count_nonzero(single))
    if singletons:
        return distinct, singletons, 1
    if weights is None:
        return distinct, 0, int(np.diff(np.flatnonzero(first)).min())
    return distinct, 0, int(rank_keys(key, weights)[1].min())


def distinct_share(key: Ints) -> float:
    """Estimate distinct keys over rows from the rows whose key has a hash in a small range: all copies or none."""
    if len(key) > _SAMPLED_ROWS:
        key = key.take(np.flatnonzero(key.view(np.uint64) * _GOLDEN < _SAMPLE_BELOW))
    return len(find_run_starts(np.sort(key))) / len(key) if len(key) else 1.0


def collapse_keys(key: Ints, cells: int, weights: Weights | None) -> tuple[Ints, Weights]:
    """Return the distinct keys and the weight of each."""
    if cells <= DENSE * len(key):
        sizes = np.bincount(key, weights)
        distinct = np.flatnonzero(sizes)
        return distinct, sizes.take(distinct).astype(np.float64)
    if weights is None:
        key = np.sort(key)
        starts = find_run_starts(key)
        return key.take(starts), np.diff(starts, append=len(key)).astype(np.float64)
    order, key = order_keys(key)
    starts = find_run_starts(key)
    return key.take(starts), np.add.reduceat(weights.take(order), starts)


def rank_keys(key: Codes, weights: Weights | None) -> tuple[Codes, Array]:
    """Return the dense code of every row by its key, and the size of each class."""
    order, ordered = order_keys(key)
    starts = find_run_starts(ordered)
    runs = measure_runs(starts, len(key))
    ranks = np.empty(len(key), np.int32)
    ranks[order] = np.repeat(np.arange(len(starts), dtype=np.int32), runs)
    return ranks, runs if weights is None else np.add.reduceat(weights.take(order), starts)


class People(NamedTuple):
    """The people of a table's rows, and counts of rows that were left out because each is a class of its own."""

    codes: Ints  # the person of each row, 0 to people_count - 1; people_count for a row that does not say whose it is
    people_count: int
    alone: Bools  # for each person whether a row of theirs was left out
    members: int = 0  # rows left out that say whose they are: classes of one person
    has_nobody: bool = False  # whether a row was left out that does not: a class of nobody

    def without(self, kept: Ints, left_out: Array) -> People:
        """Return the people of the rows that are kept; the others are classes of their own in every larger set."""
        loners = self.codes.take(np.flatnonzero(left_out))
        named = loners.compress(loners < self.people_count)
        alone = self.alone.copy()
        alone[named] = True
        has_nobody = self.has_nobody or len(named) < len(loners)
        return People(self.codes.take(kept), self.people_count, alone, self.members + len(named), has_nobody)


def number_people(people: Codes, is_named: Bools) -> People:
    """Number the people of a table from a code for each row; `is_named` tells the rows that say whose they are."""
    named, numbers = np.unique(people.compress(is_named), return_inverse=True)
    coded_people = np.full(len(people), len(named), np.int64)
    coded_people[is_named] = numbers
    return People(coded_people, len(named), np.zeros(len(named), np.bool_))


def class_people(key: Codes, cells: int, people: People) -> tuple[ClassCounts, int]:
    """Count the classes of rows by key, the rows left out included, and the sum of the classes' numbers of people.

    The counts are distinct combinations, people who are unique in one at least once, people in the smallest class.
    """
    base = people.people_count + 1
    packed, _ = pack_columns([(key, cells), (people.codes, base)], len(key))
    packed.sort()
    pairs = packed.take(find_run_starts(packed))
    classes = pairs // base
    members = pairs - classes * base
    starts = find_run_starts(classes)
    ends = np.append(starts, len(pairs))[1:].astype(np.int64)
    sizes = ends - starts - (members.take(ends - 1) == people.people_count)  # nobody, the largest code, comes last
    alone = people.alone.copy()
    alone[members.take(starts.compress(sizes == 1))] = True
    left_out = [0] * people.has_nobody + [1] * (people.members > 0)
    smallest = min([*left_out, *([int(sizes.min())] if len(sizes) else [])], default=0)
    return (len(starts), int(np.count_nonzero(alone)), smallest), int(sizes.sum()) + people.members


Stop: TypeAlias = Callable[[tuple[int, ...], int], bool]

# Equal rows of a table are collapsed only where at most this share of its rows is left: then the tables along a path
# shrink geometrically, and all of them together take the memory of four.
_SHRINK = 0.75
# Collapsing is taken to cost as much as visiting this many sets, and one more for each column to be split again.
_GAIN = 4.0
_FEW_ROWS = 256  # with fewer rows the cost of numpy's calls is nearly all there is, and collapsing does not lower it
_FEW_CELLS = 256  # so few cells are always counted by bincount, whatever the number of rows
_DENSE_DEEPER = 8.0  # the same where the classes are numbered too: sorting must then carry the row numbers along


class SetStats(NamedTuple):
    """Counts of one set of columns, as `walk` yields them, in rows or in people."""

    columns: tuple[int, ...]  # indices, ascending
    distinct: int  # distinct combinations that occur
    singletons: int  # rows whose combination occurs exactly once; people who are unique in a class at least once
    smallest: int  # size of the smallest class; 0 for a table without rows
    stopped: bool  # whether the `stop` predicate held here; such a set is minimal when the predicate is monotone
    members: int  # sum of the sizes of the classes: the rows; or the people, each counted in every class of theirs


class _Table(NamedTuple):
    """Rows under a node of the lattice."""

    prefix: Codes  # the code of each row in the node's columns
    cells: int  # codes are below this
    tail: list[CodedColumn]  # columns that may still join the set
    weights: Weights | None  # how many rows were collapsed into each; None: one each
    unique: int  # rows left out because no other row has their combination of the node's columns
    least: float  # about the least number of distinct rows that there can be
    people: People | None = None  # whose the rows are; None: every row is a person


def walk(
    columns: Sequence[CodedColumn], max_size: int | None = None, stop: Stop | None = None, people: People | None = None
) -> Iterator[SetStats]:
    """Compute the class statistics of every set of 1 .. `max_size` columns (None: of all), each after its subsets.

    Columns are ordered by falling distinct count, c_0 .. c_m-1, and a set is reached from the set without its last
    column. Children are visited last column first; with bit m-1-i for column c_i that is the order of counting in
    binary, in which a subset, being the smaller number, comes before its supersets. So one depth-first walk gives exact
    minimality, with memory for the tables along a path and not for a level of the lattice. Codes of sets are int32, so
    there must be fewer than 2**28 rows.

    `stop(columns, singletons)` must be monotone: once true for a set, true for its supersets. Where it holds, the set
    is yielded with `stopped` true, and none of its supersets is visited. With `people`, classes count different people.

    Examples:
        >>> sex, age = (np.array([0, 0, 1]), 2), (np.array([0, 1, 1]), 2)
        >>> for statistics in walk([sex, age]):
        ...     print(statistics.columns, statistics.distinct, statistics.singletons)
        (1,) 2 1
        (0,) 2 1
        (0, 1) 3 3
    """
    order = sorted(range(len(columns)), key=lambda i: -columns[i][1])
    size = len(columns) if max_size is None else min(max_size, len(columns))
    if size > 0:
        root = _Table(np.zeros(len(columns[0][0]), np.uint8), 1, [columns[i] for i in order], None, 0, 0.0, people)
        yield from _children(root, order, (), size, stop, [])


def _children(
    table: _Table, names: list[int], parent: tuple[int, ...], depth: int, stop: Stop | None, minimal_masks: list[int]
) -> Iterator[SetStats]:
    """Visit the sets below a node; `minimal_masks` has the sets at which the walk stopped so far, a bit per column."""
    for view in reversed(_views(table, depth)):
        progress.check()
        position = len(names) - len(view.tail)
        columns = tuple(sorted((*parent, names[position])))
        mask = sum(1 << column for column in columns)
        if any(mask & minimal == minimal for minimal in minimal_masks):
            continue
        (distinct, singletons, smallest), members, child = _refine(view, depth)
        stopped = stop is not None and stop(columns, singletons)
        if stopped:
            minimal_masks.append(mask)
        yield SetStats(columns, distinct, singletons, smallest, stopped, members)
        if child is not None and not stopped:
            yield from _children(child, names[position + 1 :], columns, depth - 1, stop, minimal_masks)


def _refine(table: _Table, depth: int) -> tuple[ClassCounts, int, _Table | None]:
    """Add the first tail column to the set of a node: class counts, members, and the set's table if it has children."""
    (codes, count), *tail = table.tail
    rows, cells = len(codes), table.cells * count
    sets_below = count_sets(len(tail), depth - 1)
    if table.people is not None:
        return _refine_people(table._replace(tail=tail), codes, count, sets_below, table.people)
    members = table.unique + (rows if table.weights is None else int(table.weights.sum()))
    if rows == 0:
        return _with_unique((0, 0, 0), table.unique), members, table._replace(tail=tail) if sets_below else None
    is_dense = cells <= max(_FEW_CELLS, rows * (_DENSE_DEEPER if sets_below else DENSE))
    key: Codes = np.multiply(table.prefix, count, dtype=np.intp if is_dense or cells >= 2**31 else np.int32)
    key += codes
    if is_dense:
        sizes: Array = np.bincount(key, table.weights, minlength=cells)
    elif sets_below:
        key, sizes = rank_keys(key, table.weights)
    else:
        return _with_unique(class_counts(key, cells, table.weights), table.unique), members, None
    distinct, singletons = int(np.count_nonzero(sizes)), int(np.count_nonzero(sizes == 1))
    smallest = 1 if singletons or table.unique else int(sizes[sizes > 0].min())
    child = None
    if sets_below:
        child = _child(table._replace(tail=tail), key, sizes, distinct, singletons, sets_below)
    return _with_unique((distinct, singletons, smallest), table.unique), members, child


def _refine_people(
    table: _Table, codes: Codes, count: int, sets_below: int, people: People
) -> tuple[ClassCounts, int, _Table | None]:
    """Do what `_refine` does, for a table whose tail has lost the column that is added, where people are counted."""
    cells = table.cells * count
    key: Codes = np.multiply(table.prefix, count, dtype=np.int64)
    key += codes
    (distinct, alone, smallest), members = class_people(key, cells, people)
    counts = (distinct + table.unique, alone, smallest)
    if not sets_below:
        return counts, members, None
    if cells <= max(_FEW_CELLS, len(codes) * _DENSE_DEEPER):
        sizes: Array = np.bincount(key, minlength=cells)
    else:
        key, sizes = rank_keys(key, None)
    singletons = int(np.count_nonzero(sizes == 1))
    return counts, members, _child(table, key, sizes, distinct, singletons, sets_below)


def _with_unique(counts: ClassCounts, unique: int) -> ClassCounts:
    """Add the rows that were left out because each is a class of its own."""
    distinct, singletons, smallest = counts
    return distinct + unique, singletons + unique, 1 if unique else smallest


def _child(table: _Table, key: Codes, sizes: Array, distinct: int, singletons: int, sets_below: int) -> _Table:
    """Make the table of a set from the class of each row: without singletons, or renumbered, where that pays."""
    rows, tail, weights = len(key), table.tail, table.weights
    if 2 * singletons * sets_below > (rows - singletons) * len(tail):  # leaving them out costs less than it saves below
        is_kept = (sizes > 1).take(key)
        kept = np.flatnonzero(is_kept)
        people = None if table.people is None else table.people.without(kept, ~is_kept)
        key = _numbers(sizes > 1).take(key.take(kept))
        tail = [(codes.take(kept), count) for codes, count in tail]
        weights = None if weights is None else weights.take(kept)
        unique, least = table.unique + singletons, table.least - singletons
        return _Table(key, distinct - singletons, tail, weights, unique, least, people)
    if 2 * distinct < len(sizes):  # half of the codes do not occur
        return table._replace(prefix=_numbers(sizes > 0).take(key), cells=distinct)
    return table._replace(prefix=key.astype(np.int32, copy=False), cells=len(sizes))


def _numbers(chosen: Bools) -> Ints32:
    """Return a lookup table that numbers the chosen cells 0, 1, 2 ..."""
    numbers = np.cumsum(chosen, dtype=np.int32)
    numbers -= 1
    return numbers


def _views(table: _Table, depth: int) -> list[_Table]:
    """Return for each tail column the table of that and the later columns, equal rows collapsed where that pays.

    A collapsed table has at most _SHRINK of the rows of the one before it, so that together they are O(rows).
    """
    views: list[_Table] = []
    key: Ints | None = None
    for _, count in table.tail:
        rows, left = len(table.prefix), count_sets(len(table.tail), depth)
        cells = table.cells * math.prod(count for _, count in table.tail)
        may_collapse = table.people is None and rows >= _FEW_ROWS and cells < LARGEST_KEY
        if may_collapse and _pays(table.least / rows, left, len(table.tail)):
            if key is None:  # the prefix is the last digit
                key, _ = pack_columns([*table.tail, (table.prefix, table.cells)], rows)
            share = distinct_share(key)
            if _pays(share, left, len(table.tail)):
                key, weights = collapse_keys(key, cells, table.weights)
                table = _Table(*_split(key.copy(), table), weights, table.unique, len(key))
            else:
                table = table._replace(least=0.9 * share * rows)  # less than the share, which is an estimate
        views.append(table)
        if key is not None:
            key -= np.multiply(table.tail[0][0], cells // count, dtype=np.int64)
        table = table._replace(tail=table.tail[1:], least=table.least / max(count, 1))
    return views


def _pays(share: float, left: int, columns: int) -> bool:
    """Tell whether to collapse a table of so many columns to `share` of its rows for the sake of the `left` sets."""
    return share <= _SHRINK and left * (1 - share) > _GAIN + columns


def _split(key: Ints, table: _Table) -> tuple[Codes, int, list[CodedColumn]]:
    """Return the codes of the prefix and of the tail columns from a key, of which the prefix is the last digit."""
    digits: list[CodedColumn] = []
    for like, count in [(table.prefix, table.cells), *reversed(table.tail)]:
        rest = key // count  # unlike divmod this is vectorised for a scalar divisor
        key -= rest * count
        digits.append((key.astype(like.dtype), count))
        key = rest
    return *digits[0], digits[:0:-1]
