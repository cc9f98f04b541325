"""People behind rows: where a table has several rows a person, k means k different people.

Each row carries the number of its person, `person_of_row`; equal values of the person's column have equal numbers, and
a row whose person is NULL has `NOBODY`, which counts as nobody, as in SQL's count(DISTINCT person). Where there is no
column of people, `person_of_row` is None: every row is another person, and rows are counted, which is quicker.
Counting sorts pairs of group and person, several times faster than numpy's unique; searches for cuts mark each pair's
first and last row instead, without sorting.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from duckanon._core.common.arrays import Ints, sort_distinct
from duckanon._core.common.codes import encode_columns
from duckanon._core.common.names import suggest_name

NOBODY = -1
"""The number of a row whose person is NULL."""
SINGLE_ROW = -2
"""The number of a pair that has only one row; such pairs need no number, which makes `find_first_and_last` quicker."""


def find_person_column(person: Any, names: Sequence[str], cols: Sequence[str] = ()) -> int:
    """Find the index of the column of people among the table's, whatever its case; it must not be one of `cols`."""
    if not isinstance(person, str):
        raise ValueError(f"person must be NULL or the name of one column, in quotes; got {person}.")
    if person.lower() in (name.lower() for name in cols):
        raise ValueError(f"person must be a column that is none of cols; got {person}.")
    lower = [name.lower() for name in names]
    if person.lower() not in lower:
        raise ValueError(f"person must be one column of the table; got {person}{suggest_name(person, names)}")
    return lower.index(person.lower())


def number_people(column: pa.ChunkedArray) -> Ints:
    """Return the number of each row's person, given the column of people; NULL has `NOBODY`."""
    ((codes, _),) = encode_columns(pa.table({"person": column}))
    person_of_row = codes.astype(np.int64)
    if column.null_count:
        person_of_row[column.is_null().to_numpy()] = NOBODY
    return person_of_row


def drop_distinct_people(person_of_row: Ints | None) -> Ints | None:
    """Return the people of rows, or None where every row is another person: rows are counted then, which is quicker."""
    if person_of_row is None or (person_of_row == NOBODY).any():
        return person_of_row
    return person_of_row if len(sort_distinct(person_of_row)) < len(person_of_row) else None


def count_people(group_of_row: Ints, person_of_row: Ints | None, count: int) -> Ints:
    """Count the different people of each of `count` groups; all rows where there is no column of people."""
    if person_of_row is None:
        return np.bincount(group_of_row, minlength=count)
    known = person_of_row != NOBODY
    width = int(person_of_row.max(initial=0)) + 1
    pairs = np.sort(group_of_row[known] * width + person_of_row[known])
    is_new = np.ones(len(pairs), dtype=np.bool_)
    np.not_equal(pairs[1:], pairs[:-1], out=is_new[1:])
    return np.bincount(pairs[is_new] // width, minlength=count)


def refuse_large_k(k: int, rows: int, person_of_row: Ints | None, rows_are: str = "rows") -> None:
    """Refuse a k that the whole table does not reach."""
    most = rows if person_of_row is None else int(count_people(np.zeros(rows, dtype=np.int64), person_of_row, 1)[0])
    if k > most:
        raise ValueError(
            f"k must be at most the number of {rows_are if person_of_row is None else 'people'}, {most}; got {k}."
        )


def number_pairs(group_of_row: Ints, person_of_row: Ints) -> Ints:
    """Give dense numbers to the pairs of group and person, with `NOBODY` where there is no person."""
    known = np.flatnonzero(person_of_row != NOBODY)
    keys = pa.array(group_of_row[known] * (person_of_row.max(initial=0) + 1) + person_of_row[known])
    pair_of_row = np.full(len(person_of_row), NOBODY)
    pair_of_row[known] = keys.dictionary_encode().indices.to_numpy()
    return pair_of_row


def find_first_and_last(pair_of_row: Ints) -> tuple[Ints, Ints]:
    """Return the rows at which pairs (`number_pairs`) come up for the first time, and those of the last time."""
    several = np.flatnonzero(pair_of_row >= 0)
    pairs = pair_of_row[several]
    # of several rows that write to one cell, the last one stays: so no order of the pairs is needed
    row_of_pair = np.empty(int(pairs.max(initial=-1)) + 1, dtype=np.int64)
    is_first = pair_of_row == SINGLE_ROW
    is_last = is_first.copy()
    row_of_pair[pairs[::-1]] = several[::-1]
    is_first[row_of_pair] = True
    row_of_pair[pairs] = several
    is_last[row_of_pair] = True
    return np.flatnonzero(is_first), np.flatnonzero(is_last)


def find_cut_range(pair_of_row: Ints, starts: Ints, ends: Ints, k: int) -> tuple[Ints, Ints]:
    """Find where segments of rows can be cut in two so that both parts have at least k different people.

    `pair_of_row` numbers the pairs of segment and person (`number_pairs`), in the order of the segments. The result is
    for each segment the first and the last row at which the right part may begin; first is above last where no row will
    do.
    """
    return find_cut_bounds(find_first_and_last(pair_of_row), starts, ends, k, k)


def find_cut_bounds(
    first_and_last: tuple[Ints, Ints], starts: Ints, ends: Ints, left: Ints | int, right: Ints | int
) -> tuple[Ints, Ints]:
    """Return the first row of each segment with so many people on its left, and the last with so many on its right.

    The people left of a row are counted by their first rows, those right of it by their last ones
    (`find_first_and_last`); `left` and `right` are one number, or one for each segment.
    """
    firsts, lasts = first_and_last
    before, after = np.searchsorted(firsts, starts), np.searchsorted(lasts, ends)
    is_enough = np.searchsorted(firsts, ends) - before >= np.maximum(left, right)
    first, last = ends.copy(), starts.copy()
    first[is_enough] = firsts[(before + left - 1)[is_enough]] + 1
    last[is_enough] = lasts[(after - right)[is_enough]]
    return first, last


def spell_label_columns(table: pa.Table, by: Sequence[str]) -> list[str]:
    """Return the columns of labels, in the order in which they matter, under the names that the table has for them."""
    spelling = {name.lower(): name for name in table.column_names}
    labels = [spelling[name.lower()] for name in by]
    for name in labels:
        if pa.types.is_nested(table.schema.field(name).type):
            raise ValueError(f'by must name columns of labels, which are not nested; got "{name}".')
    return labels
