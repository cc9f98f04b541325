"""Special uniques (SUDA): how risky a row is, by how few of its columns nobody else shares.

A minimal sample unique is a set of columns in which a row is unique, and in no part of which it is. A row's score is
the sum over its sets of (M - s)! for s of M columns (Elliot, Manning and Ford 2002), or with the weighting "share" of
(2^(M-s) - 1) s! (M-s)! / M!, which grows less steeply. DIS-SUDA turns scores into probabilities that a match with
somebody in the population is right, from the rows that are one of two (Elliot, Manning, Mayes, Gurd and Bane 2005).
Both are as in sdcMicro's `suda2`, where NULL belongs to no set.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from duckanon._core.common.arrays import Array, Bools, Floats, Ints, Ints32, Matrix
from duckanon._core.common.codes import encode
from duckanon._core.common.declare import report
from duckanon._core.common.memory import give_back
from duckanon._measure.assess.column_sets import MOST_SETS, refuse_too_many_sets
from duckanon._measure.assess.declared import SPECIAL_UNIQUE_COLUMNS_ROWS, SPECIAL_UNIQUES_ROWS
from duckanon._measure.assess.minimal_uniques import NOBODY, KeyColumn, walk

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
    scored = _scored(cells, max_size, weighting)
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
    scored = _scored(cells, max_size, weighting)
    row_counts = cells.row_counts[scored.places].astype(np.float64)
    total = float(scored.scores @ row_counts)
    by_column = scored.by_column @ row_counts
    has_column = scored.by_column > 0
    if len(scored.by_size) == len(cells.columns):
        has_column |= scored.by_size[-1] > 0  # a set of all columns may weigh nothing
    return report(
        {
            "place": np.arange(len(by_column)) + 1,
            "unique_sets": scored.sets_by_column,
            "rows": (has_column @ row_counts).astype(np.int64),
            "contribution": by_column / total if total else np.zeros(len(by_column)),
        },
        SPECIAL_UNIQUE_COLUMNS_ROWS,
    )


def _cells(table: pa.Table, nulls: str, person: str | None) -> Cells:
    own = [table[name] for name in OWN]
    table = table.drop_columns(list(OWN))
    columns = []
    for (codes, count), column in zip(encode(table), table.columns, strict=True):
        missing = int(codes[column.is_null().to_numpy().argmax()]) if nulls == "drop" and column.null_count else None
        columns.append(KeyColumn(codes, count, missing))
    holders = None
    if person is not None:
        if own[3].null_count == len(own[3]):
            raise ValueError(
                f"person must name a column that says whose rows they are; got {person}, which is NULL in every row."
            )
        [(codes, _)] = encode(pa.table({person: own[3]}))
        holders = np.where(own[3].is_valid().to_numpy(), codes.astype(np.int64) + 1, NOBODY)
    classes, people, row_counts = (column.to_numpy() for column in own[:3])
    is_single = people <= 1
    pairs = int(row_counts[people == 2].sum())  # NULLs among their values or not, as sdcMicro counts them
    return Cells(columns, is_single, holders, classes[is_single], row_counts[is_single], pairs)


def _scored(cells: Cells, max_size: int | None, weighting: str) -> Scored:
    width = len(cells.columns)
    size = width if max_size is None else min(max_size, width)
    count, row_counts = len(cells.classes), cells.row_counts
    if count > _MANY_CELLS:
        give_back()  # of a million cells the hashes took a hundred MB, which numpy would not get
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
