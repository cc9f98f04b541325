"""Special uniques (SUDA): how risky a row is, by how few of its columns nobody else shares.

A minimal sample unique is a set of columns in which a row is unique, and in no part of which it is. A row's score is
the sum over its sets of (M - s)! for s of M columns (Elliot, Manning and Ford 2002), or with the weighting "share" of
(2^(M-s) - 1) s! (M-s)! / M!, which grows less steeply. DIS-SUDA turns scores into probabilities that a match with
somebody in the population is right, from the rows that are one of two (Elliot, Manning, Mayes, Gurd and Bane 2005).
Both are as in sdcMicro's `suda2`, where NULL belongs to no set.

Minimal sample uniques: for each row the smallest sets of columns in which no other row has its values.

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
import pyarrow as pa
from numpy.typing import NDArray

from duckanon._core.common import progress
from duckanon._core.common.arrays import Array, Bools, Floats, Ints, Ints32, Matrix, find_run_starts
from duckanon._core.common.codes import Codes, encode_columns
from duckanon._core.common.declare import report_columns
from duckanon._core.common.resources import free_memory
from duckanon._core.common.row_keys import LARGEST_KEY, order_keys, pack_columns
from duckanon._measure.assess.column_sets import MOST_SETS, refuse_too_many_sets
from duckanon._measure.assess.declared import SPECIAL_UNIQUE_COLUMNS_ROWS, SPECIAL_UNIQUES_ROWS
from duckanon._measure.assess.lattice import DENSE, count_sets, distinct_share, rank_keys

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

    def take(self, chosen: Ints) -> _Table:
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
        progress.advance(middle)
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
        codes, table = codes.take(present), table.take(present)
    sets_below, cells = count_sets(len(tail), depth - 1), table.prefix_count * count
    is_dense = cells <= max(_FEW_CELLS, len(codes) * DENSE)
    key: Codes = np.multiply(table.prefix, count, dtype=np.int64 if is_dense or cells >= 2**31 else np.int32)
    key += codes
    if not (is_dense or sets_below or table.holders is not None):
        numbers = table.numbers.take(_alone_in_order(key))
        return numbers[numbers >= 0], None
    if not is_dense:
        key, sizes = rank_keys(key, None)
    else:
        sizes = np.bincount(key, minlength=cells)
    is_one = sizes == 1 if table.holders is None else _are_of_one(key, len(sizes), table.holders)
    is_alone = is_one.take(key)
    is_alone &= table.numbers >= 0
    unique_numbers = table.numbers.compress(is_alone)
    if not sets_below:
        return unique_numbers, None
    table = table._replace(prefix=key, prefix_count=len(sizes))
    return unique_numbers, _child(table, is_alone, len(unique_numbers), sets_below)


def _child(table: _Table, is_alone: Bools, alone: int, sets_below: int) -> _Table | None:
    """Make the table of a set: without unique cells, where leaving them out costs less than it saves below."""
    if 2 * alone * sets_below > (len(is_alone) - alone) * len(table.tail):
        table = table.take(np.flatnonzero(~is_alone))
    if not (table.numbers >= 0).any():
        return None
    renumbered = np.cumsum(np.bincount(table.prefix, minlength=table.prefix_count) > 0, dtype=np.int32)
    renumbered -= 1
    return table._replace(prefix=renumbered.take(table.prefix), prefix_count=int(renumbered[-1]) + 1)


def _alone_in_order(key: Codes) -> Ints:
    """Return the places of keys that occur once."""
    order, ordered = order_keys(key)
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
        table = _merge_cells(table, depth)
        views.append(table)
        table = table._replace(tail=table.tail[1:])
    return views


def _merge_cells(table: _Table, depth: int) -> _Table:
    """Merge cells that agree on every column in play: none of them is unique in any set below."""
    size, left = len(table.prefix), count_sets(len(table.tail), depth)
    cells = table.prefix_count * math.prod(column.distinct for column in table.tail)
    if table.holders is not None or size < _FEW_CELLS or cells >= LARGEST_KEY:
        return table
    columns = [(table.prefix, table.prefix_count), *((column.codes, column.distinct) for column in table.tail)]
    key, _ = pack_columns(columns, size)
    share = distinct_share(key)
    if share > _SHRINK or left * (1 - share) <= _GAIN + len(table.tail):
        return table
    order, ordered = order_keys(key)
    starts = find_run_starts(ordered)
    together = table.take(order.take(starts))
    together.numbers[np.diff(starts, append=size) > 1] = SEVERAL
    return together


OWN = ("_duckanon_class", "_duckanon_size", "_duckanon_rows", "_duckanon_anyone")
"""Columns that come with those of the cells: a name for the cell, how many people and how many rows it has, and the
code of one of the people (NULL where there is none, or where every row is a person)."""

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # 2**64 over the golden ratio: a product with it spreads nearby numbers

_MANY_CELLS = 100_000  # what was freed with fewer is not worth the milliseconds that giving it back takes

MOST_BYTES = 2**31
"""Of the bits that remember which row has a minimal set within which set of columns; more are refused."""


class Cells(NamedTuple):
    """The distinct rows of a table. Those of one person, or of one row, are the single ones."""

    columns: list[KeyColumn]
    is_single: Bools
    holders: Ints | None  # a code of one of the people; None: every row is a person
    classes: Array  # a name for each single cell
    row_counts: Ints  # of the single cells
    pairs: int  # rows of which two people have the values


class Scored(NamedTuple):
    """Cells with minimal sets; a person may have several rows in one."""

    places: Ints  # among the single cells
    by_size: Ints32  # sizes x cells: the number of minimal sets
    scores: Floats
    by_column: Matrix  # columns x cells: the part of the score that is from sets with the column
    sets_by_column: Ints  # minimal sets of all rows that have the column


def special_uniques(
    tables: list[pa.Table | None],
    max_size: int | None,
    weighting: str,
    sampling_fraction: float,
    nulls: str,
    person: str | None,
) -> pa.Table:
    """Score every cell that has a minimal unique set of at most `max_size` columns (None: of all).

    The cells are the distinct rows of a table: the hash of each column's value, NULL for NULL, and the columns of
    `OWN`; None where the table has no rows. The table comes in a list that is emptied, so that its memory can go. With
    `nulls` "drop" a NULL matches nothing, and belongs to no set; with "value" it is a value. `sampling_fraction` is the
    share of the population that is in the table.

    Cells with the same numbers share a row of the result, `alike`, and `sets_by_size` is given once for the rows that
    share it, at the row that `same_sizes` names: of a million workers there are 300,000 and 6,000 different ones, and
    the query need not hold the others.
    """
    table = tables.pop()
    if table is None:
        return SPECIAL_UNIQUES_ROWS.empty_table()
    cells, table = _cells(table, nulls, person), None
    scored = _score_cells(cells, max_size, weighting)
    dis = _dis_scores(
        scored.scores, cells.row_counts[scored.places], cells.pairs, len(cells.columns), sampling_fraction
    )
    order, starts = _alike([*scored.by_size, *scored.by_column])
    firsts = order[starts]
    by_size, scores, shares = scored.by_size[:, firsts], scored.scores[firsts], scored.by_column[:, firsts]
    shares /= np.where(scores > 0, scores, 1)
    by_sizes, size_starts = _alike([*by_size, scores])
    sizes_first = np.repeat(by_sizes[size_starts], np.diff(size_starts, append=len(firsts)))
    alike = np.arange(len(firsts), dtype=np.int32)
    same_sizes = np.empty_like(alike)
    same_sizes[by_sizes] = sizes_first
    return pa.table(
        [
            pa.array(alike),
            pa.ListArray.from_arrays(
                pa.array(np.append(starts, len(order)), pa.int32()), pa.array(cells.classes[scored.places[order]])
            ),
            _lists(shares, pa.float64()),
            pa.array(same_sizes),
            _lists(by_size, pa.int32(), same_sizes == alike),
            pa.array(scores),
            pa.array(dis[firsts]),
        ],
        schema=SPECIAL_UNIQUES_ROWS,
    )


def special_unique_columns(
    tables: list[pa.Table | None], max_size: int | None, weighting: str, nulls: str, person: str | None
) -> pa.Table:
    """Say what each column contributes to the scores of all rows; the parameters are those of `special_uniques`."""
    table = tables.pop()
    if table is None:
        raise ValueError("the table has no rows to look at.")
    cells, table = _cells(table, nulls, person), None
    scored = _score_cells(cells, max_size, weighting)
    row_counts = cells.row_counts[scored.places].astype(np.float64)
    total = float(scored.scores @ row_counts)
    by_column = scored.by_column @ row_counts
    has_column = scored.by_column > 0
    if len(scored.by_size) == len(cells.columns):
        has_column |= scored.by_size[-1] > 0  # a set of all columns may weigh nothing
    return report_columns(
        {
            "place": np.arange(len(by_column)) + 1,
            "unique_sets": scored.sets_by_column,
            "rows": (has_column @ row_counts).astype(np.int64),
            "contribution": by_column / total if total else np.zeros(len(by_column)),
        },
        SPECIAL_UNIQUE_COLUMNS_ROWS,
    )


def _cells(table: pa.Table, nulls: str, person: str | None) -> Cells:
    row_columns = [table[name] for name in OWN]
    table = table.drop_columns(list(OWN))
    columns = []
    for (codes, count), column in zip(encode_columns(table), table.columns, strict=True):
        missing = int(codes[column.is_null().to_numpy().argmax()]) if nulls == "drop" and column.null_count else None
        columns.append(KeyColumn(codes, count, missing))
    holders = None
    if person is not None:
        if row_columns[3].null_count == len(row_columns[3]):
            raise ValueError(
                f"person must name a column that says whose rows they are; got {person}, which is NULL in every row."
            )
        [(codes, _)] = encode_columns(pa.table({person: row_columns[3]}))
        holders = np.where(row_columns[3].is_valid().to_numpy(), codes.astype(np.int64) + 1, NOBODY)
    classes, people, row_counts = (column.to_numpy() for column in row_columns[:3])
    is_single = people <= 1
    pairs = int(row_counts[people == 2].sum())  # NULLs among their values or not, as sdcMicro counts them
    return Cells(columns, is_single, holders, classes[is_single], row_counts[is_single], pairs)


def _score_cells(cells: Cells, max_size: int | None, weighting: str) -> Scored:
    width = len(cells.columns)
    size = width if max_size is None else min(max_size, width)
    count, row_counts = len(cells.classes), cells.row_counts
    if count > _MANY_CELLS:
        free_memory()  # of a million cells the hashes took a hundred MB, which numpy would not get
    refuse_too_many_sets(width, size, min(MOST_SETS, 8 * MOST_BYTES // max(count, 1)))
    weights = [_weight(width, members, weighting) for members in range(size + 1)]
    by_size = np.zeros((size, count), np.uint8 if math.comb(width, width // 2) < 2**8 else np.int32)
    scores = np.zeros(count)
    by_column, sets_by_column = np.zeros((width, count)), np.zeros(width, np.int64)
    for columns, rows in walk(cells.columns, cells.is_single, cells.holders, size):
        weight = weights[len(columns)]
        by_size[len(columns) - 1][rows] += 1
        scores[rows] += weight
        for column in columns:
            by_column[column][rows] += weight
        sets_by_column[list(columns)] += row_counts[rows].sum()
    places = np.flatnonzero(by_size.any(axis=0))
    if len(places) < count:
        by_size, scores, by_column = by_size[:, places], scores[places], by_column[:, places]
    return Scored(places, by_size, scores, by_column, sets_by_column)


def _weight(width: int, size: int, weighting: str) -> float:
    if weighting == "factorial":
        return float(math.factorial(width - size))
    return float(2 ** (width - size) - 1) / math.comb(width, size)


def _dis_scores(scores: Floats, row_counts: Ints, pairs: int, width: int, sampling_fraction: float) -> Floats:
    """Turn scores into probabilities; a score of 0 stays 0.

    The exponent Q = 1 + (8 - M) / 20 is an empirical one; it would be negative for more than 28 columns, and lower the
    probabilities of higher scores.
    """
    exponent = max(1 + (8 - width) / 20, 0.0)
    is_above = scores > 0
    powers = scores[is_above] ** exponent
    dis = np.zeros(len(scores))
    odds = powers * float((row_counts[is_above] / powers).sum())
    dis[is_above] = odds / (odds + pairs * (1 - sampling_fraction) / sampling_fraction)
    return dis


def _alike(columns: Sequence[Array]) -> tuple[Ints, Ints]:
    """Return an order in which cells with the same numbers stand together, and where a new group begins.

    Sorted by a hash, and compared in full: were two hashes the same, there would be a few groups more.
    """
    hashes = np.zeros(len(columns[0]), np.uint64)
    for column in columns:
        hashes ^= column.view(np.uint64) if column.itemsize == 8 else column.astype(np.uint64)
        hashes *= _GOLDEN
        hashes ^= hashes >> np.uint64(29)
    order = np.argsort(hashes)
    differs = np.zeros(max(len(order) - 1, 0), np.bool_)
    for column in columns:
        ordered = column.take(order)
        differs |= ordered[1:] != ordered[:-1]
    return order, np.flatnonzero(np.append(True, differs)[: len(order)])


def _lists(matrix: Array, kind: pa.DataType, is_given: Bools | None = None) -> pa.Array:
    """Make a list of every column of a matrix, NULL for those that are not given."""
    width, rows = matrix.shape
    if is_given is not None:
        matrix = matrix.compress(is_given, axis=1)
    lengths = np.full(rows, width) if is_given is None else is_given * width
    offsets = pa.array(np.cumsum(np.append(0, lengths)), pa.int32())
    values = pa.array(np.ascontiguousarray(matrix.T).reshape(-1), kind)
    return pa.ListArray.from_arrays(offsets, values, mask=None if is_given is None else pa.array(~is_given))
