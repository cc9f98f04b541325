"""People behind rows: where a table has several rows a person, k means k different people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from duckanon._core.common.arrays import Ints, distinct
from duckanon._core.common.codes import encode
from duckanon._core.common.names import did_you_mean

NOBODY = -1
"""The number of a row whose person is NULL: it counts as nobody, as in SQL's count(DISTINCT person)."""
ONLY = -2
"""The number of a pair that has one row, where there is no need for one of its own: `occurrences` is quicker then."""


def person_index(person: Any, names: Sequence[str], cols: Sequence[str] = ()) -> int:
    """Find the column of people among the table's, whatever its case; it must not be one of `cols`."""
    if not isinstance(person, str):
        raise ValueError(f"person must be NULL or the name of one column, in quotes; got {person}.")
    if person.lower() in (name.lower() for name in cols):
        raise ValueError(f"person must be a column that is none of cols; got {person}.")
    lower = [name.lower() for name in names]
    if person.lower() not in lower:
        raise ValueError(f"person must be one column of the table; got {person}{did_you_mean(person, names)}")
    return lower.index(person.lower())


def person_numbers(column: pa.ChunkedArray) -> Ints:
    """Give numbers to the people of a column, equal values with equal numbers, NULL with `NOBODY`."""
    ((codes, _),) = encode(pa.table({"person": column}))
    numbers = codes.astype(np.int64)
    if column.null_count:
        numbers[column.is_null().to_numpy()] = NOBODY
    return numbers


def unless_rows(people: Ints | None) -> Ints | None:
    """Return the people of rows, or None where every row is another person: rows are counted then, which is quicker."""
    if people is None or (people == NOBODY).any() or len(distinct(people)) < len(people):
        return people
    return None


def people_in(groups: Ints, people: Ints | None, count: int) -> Ints:
    """Count the different people of each of `count` groups, all rows where nobody tells people apart."""
    if people is None:
        return np.bincount(groups, minlength=count)
    known = people != NOBODY
    numbers = int(people.max(initial=0)) + 1
    pairs = np.sort(groups[known] * numbers + people[known])  # several times faster than numpy's unique
    is_new = np.ones(len(pairs), dtype=np.bool_)
    np.not_equal(pairs[1:], pairs[:-1], out=is_new[1:])
    return np.bincount(pairs[is_new] // numbers, minlength=count)


def refuse_too_few(k: int, rows: int, people: Ints | None, rows_are: str = "rows") -> None:
    """Refuse a k that the whole table does not reach."""
    found = rows if people is None else int(people_in(np.zeros(rows, dtype=np.int64), people, 1)[0])
    if k > found:
        raise ValueError(
            f"k must be at most the number of {rows_are if people is None else 'people'}, {found}; got {k}."
        )


def numbered_pairs(groups: Ints, people: Ints) -> Ints:
    """Give dense numbers to the pairs of group and person, with `NOBODY` where there is no person."""
    known = np.flatnonzero(people != NOBODY)
    keys = pa.array(groups[known] * (people.max(initial=0) + 1) + people[known])
    pairs = np.full(len(people), NOBODY)
    pairs[known] = keys.dictionary_encode().indices.to_numpy()
    return pairs


def cut_range(pairs: Ints, starts: Ints, ends: Ints, k: int) -> tuple[Ints, Ints]:
    """Tell where segments can be cut in two so that both parts have at least k different people.

    The rows at which a person comes up for the first time count the people left of a place, those of the last time the
    people right of it. Both are found without sorting: of several rows that write to one cell, the last one stays.
    `pairs` are the segment and person of each row as one number (`numbered_pairs`), in the order of the segments. The
    result is for each segment the first and the last place at which the right part may begin; first is above last where
    no place will do.
    """
    return cut_places(occurrences(pairs), starts, ends, k, k)


def occurrences(pairs: Ints) -> tuple[Ints, Ints]:
    """Return the rows at which pairs (`numbered_pairs`) come up for the first time, and those of the last time."""
    several = np.flatnonzero(pairs >= 0)
    written = pairs[several]
    occurrence = np.empty(int(written.max(initial=-1)) + 1, dtype=np.int64)
    is_first = pairs == ONLY
    is_last = is_first.copy()
    occurrence[written[::-1]] = several[::-1]
    is_first[occurrence] = True
    occurrence[written] = several
    is_last[occurrence] = True
    return np.flatnonzero(is_first), np.flatnonzero(is_last)


def cut_places(
    seen: tuple[Ints, Ints], starts: Ints, ends: Ints, left: Ints | int, right: Ints | int
) -> tuple[Ints, Ints]:
    """Return the first place of each segment with so many people on its left, and the last with so many on its right.

    `seen` holds the first and the last row of each pair of segment and person (`occurrences`); `left` and `right` are
    one number, or one for each segment. The result is that of `cut_range`.
    """
    firsts, lasts = seen
    before, after = np.searchsorted(firsts, starts), np.searchsorted(lasts, ends)
    enough = np.searchsorted(firsts, ends) - before >= np.maximum(left, right)
    first, last = ends.copy(), starts.copy()
    first[enough] = firsts[(before + left - 1)[enough]] + 1
    last[enough] = lasts[(after - right)[enough]]
    return first, last


def label_names(table: pa.Table, by: Sequence[str]) -> list[str]:
    """Return the columns of labels, in the order in which they matter, under the names that the table has for them."""
    spelling = {name.lower(): name for name in table.column_names}
    labels = [spelling[name.lower()] for name in by]
    for name in labels:
        if pa.types.is_nested(table.schema.field(name).type):
            raise ValueError(f'by must name columns of labels, which are not nested; got "{name}".')
    return labels
