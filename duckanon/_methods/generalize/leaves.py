"""The distinct values of a column, called leaves: their order, the rows that have each, and how they are written.

The table is grouped by the columns before, so that a leaf is a code of each combination of values. Numbers are ordered
by size, days without their times, all other values as the text that DuckDB would cast them to. Values that fewer than k
people have at an end of a column are known by its `core`: no label may show these alone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from duckanon._core.common.arrays import Array, Bools, Ints
from duckanon._core.common.labels import MICROSECONDS_PER_DAY, Scale, Times
from duckanon._core.common.people import NOBODY, count_people
from duckanon._core.common.values import take_exact_numbers


@dataclass(frozen=True)
class Holders:
    """People by combination of a grouped table."""

    rows: Ints  # how many rows of the table have each combination
    persons: Ints | None = None  # the person of each combination, `NOBODY` where not known; None: rows are people

    def people(self, codes: Ints, size: int) -> Ints:
        """Count the different people of each of ``size`` codes, given the code of each combination."""
        if self.persons is None:
            return np.bincount(codes, self.rows, size).astype(np.int64)
        return count_people(codes.astype(np.int64), self.persons, size)

    def select(self, is_selected: Bools) -> Holders:
        """Return the people of some of the combinations."""
        return Holders(self.rows[is_selected], None if self.persons is None else self.persons[is_selected])

    def core(self, codes: Ints, size: int, k: int) -> tuple[int, int]:
        """Return the first and the last of ``size`` sorted codes that are no extremes of fewer than k people.

        Fewer than k people have a code below the first, and fewer than k one above the last: no label may show these
        alone. Where there are too few people for two such ends, all codes are between them. Codes from ``size`` on do
        not count.
        """
        is_known = codes < size
        if self.persons is None:
            people = np.bincount(codes[is_known], self.rows[is_known], size)
            low, high = (int(np.searchsorted(np.cumsum(side), k)) for side in (people, people[::-1]))
        else:
            is_known &= self.persons != NOBODY
            persons, codes = self.persons[is_known], codes[is_known].astype(np.int64)  # narrow ones: 20 times as long
            least = np.full(int(persons.max(initial=-1)) + 1, size)
            most = np.full_like(least, -1)
            np.minimum.at(least, persons, codes)
            np.maximum.at(most, persons, codes)
            ends = np.sort(least[most >= 0]), np.sort(size - 1 - most[most >= 0])
            low, high = (int(end[k - 1]) if len(end) >= k else size for end in ends)
        high = size - 1 - high
        return (low, high) if low <= high else (0, size - 1)


@dataclass(frozen=True)
class Leaves:
    """The distinct values of a column."""

    codes: Ints  # the leaf of each row of the grouped table
    # rows, people: how many rows and how many people of the table have each leaf, NULL last where there is one
    rows: Ints
    people: Ints
    size: int  # the number of leaves without NULL

    @property
    def has_null(self) -> bool:
        """Whether one more leaf, after all others, is NULL."""
        return len(self.rows) > self.size

    @property
    def value_rows(self) -> Ints:
        """The rows of the table with each leaf that is not NULL."""
        return self.rows[: self.size]

    def list_leaves(self, is_selected: Bools) -> Ints:
        """List the leaves that some combinations of the table have."""
        return np.flatnonzero(np.bincount(self.codes[is_selected], minlength=len(self.rows)))

    def select(self, is_selected: Bools, holders: Holders, k: int) -> Self:
        """Return the leaves of the combinations that are taken, which the holders have: as if there were no others."""
        leaves = self.list_leaves(is_selected)
        number = np.zeros(len(self.rows), self.codes.dtype)
        number[leaves] = np.arange(len(leaves))
        codes = number[self.codes[is_selected]]
        rows = np.bincount(codes, holders.rows, len(leaves)).astype(np.int64)
        people = rows if holders.persons is None else holders.people(codes, len(leaves))
        known = leaves[leaves < self.size]
        fields = self._select_fields(known, codes, holders, k)
        return replace(self, codes=codes, rows=rows, people=people, size=len(known), **fields)

    def _select_fields(self, known: Ints, codes: Ints, holders: Holders, k: int) -> dict[str, Any]:
        """Return the fields of a subclass for some of the leaves, given the new code of each combination."""
        raise NotImplementedError


@dataclass(frozen=True)
class NumberLeaves(Leaves):
    """Numbers or moments in ascending order."""

    # positions, scale: the numbers, and how they are written
    positions: Array
    scale: Scale
    core: tuple[int, int]  # the first and the last leaf that are no extremes of fewer than k people (`Holders.core`)

    @property
    def inner(self) -> Array:
        """The numbers, extremes of fewer than k people moved to the ends of all others."""
        return np.clip(self.positions, *self.positions[list(self.core)])

    def _select_fields(self, known: Ints, codes: Ints, holders: Holders, k: int) -> dict[str, Any]:
        return {"positions": self.positions[known], "core": holders.core(codes, len(known), k)}


@dataclass(frozen=True)
class DayLeaves(NumberLeaves):
    """Days, whole numbers counted from 1970; times of day are dropped."""

    has_times: bool  # whether moments of k rows are not midnight


@dataclass(frozen=True)
class TextLeaves(Leaves):
    """Texts in ascending order."""

    texts: list[str]

    def _select_fields(self, known: Ints, codes: Ints, holders: Holders, k: int) -> dict[str, Any]:
        return {"texts": [self.texts[leaf] for leaf in known.tolist()]}


class Days(Times):
    """Days since 1970."""

    def text(self, number: float) -> str:
        """Write a day."""
        return super().text(number * MICROSECONDS_PER_DAY)


def make_null_leaves(holders: Holders) -> TextLeaves:
    """Take a column that is NULL in every row."""
    codes = np.zeros(len(holders.rows), np.int64)
    return TextLeaves(codes, np.array([holders.rows.sum()], np.int64), holders.people(codes, 1), 0, [])


def read_number_leaves(name: str, column: pa.ChunkedArray, holders: Holders, k: int) -> NumberLeaves:
    """Take a column of numbers, dates or timestamps as leaves; its name is for the error where it holds neither."""
    known, is_known, scale = take_exact_numbers(name, column)
    positions, leaves = _read_distinct(known + 0.0, is_known, holders)  # -0.0 + 0.0 is 0.0
    core = holders.core(leaves.codes, leaves.size, k)
    return NumberLeaves(**vars(leaves), positions=positions, scale=scale, core=core)


def read_day_leaves(name: str, column: pa.ChunkedArray, holders: Holders, k: int) -> DayLeaves:
    """Take a column of dates or timestamps as days."""
    known, is_known, _ = take_exact_numbers(name, column)
    days, leaves = _read_distinct(known // MICROSECONDS_PER_DAY, is_known, holders)
    has_times = bool(holders.rows[is_known][known % MICROSECONDS_PER_DAY != 0].sum() >= k)
    core = holders.core(leaves.codes, leaves.size, k)
    positions = days.astype(np.int64)
    return DayLeaves(**vars(leaves), positions=positions, scale=Days(True), core=core, has_times=has_times)


def read_text_leaves(name: str, column: pa.ChunkedArray, holders: Holders) -> TextLeaves:
    """Take a column as text, written as DuckDB would cast it."""
    encoded = cast_to_text(name, column).dictionary_encode()
    encoded = encoded.combine_chunks() if isinstance(encoded, pa.ChunkedArray) else encoded
    order = np.argsort(np.array(encoded.dictionary.to_pylist(), dtype=object))
    is_known = ~encoded.is_null().to_numpy(zero_copy_only=False)
    entries = encoded.indices.drop_null().to_numpy(zero_copy_only=False)
    leaves = _make_leaves(entries, order, is_known, holders)
    return TextLeaves(**vars(leaves), texts=encoded.dictionary.take(pa.array(order)).to_pylist())


def match_leaves(leaves: Leaves, name: str, column: pa.ChunkedArray) -> Ints:
    """Return the leaf of each value of another table's column; -1 where it is none of the leaves."""
    null_code = leaves.size if leaves.has_null else -1
    if not leaves.size:
        return np.where(np.asarray(column.is_null()), null_code, -1)
    if isinstance(leaves, TextLeaves):
        leaf = pc.index_in(cast_to_text(name, column), pa.array(leaves.texts, pa.large_string()))
        return np.where(np.asarray(column.is_null()), null_code, np.asarray(leaf.fill_null(-1)).astype(np.int64))
    known, is_known, _ = take_exact_numbers(name, column)
    codes = np.full(len(is_known), null_code, np.int64)
    assert isinstance(leaves, NumberLeaves)
    values = known // MICROSECONDS_PER_DAY if isinstance(leaves, DayLeaves) else known + 0.0
    sorted_leaves = np.asarray(leaves.positions, np.float64)
    leaf = np.minimum(np.searchsorted(sorted_leaves, values), leaves.size - 1)
    codes[is_known] = np.where(sorted_leaves[leaf] == values, leaf, -1)
    return codes


def cast_to_text(name: str, column: pa.ChunkedArray) -> pa.Array:
    """Write a column as DuckDB would cast it."""
    arrow_type = column.type
    if pa.types.is_floating(arrow_type):
        raise ValueError(
            f'column "{name}" holds floating-point numbers, which have no fixed text; cast it to VARCHAR first.'
        )
    if pa.types.is_boolean(arrow_type):
        column = pc.if_else(column, "true", "false")
    elif pa.types.is_dictionary(arrow_type):
        column = column.cast(arrow_type.value_type)
    return column.cast(pa.large_string()).combine_chunks()


def _read_distinct(known: Array, is_known: Bools, holders: Holders) -> tuple[Array, Leaves]:
    """Return the distinct known values, and their leaves."""
    encoded = pa.array(known).dictionary_encode()  # by hashing: most columns have few values, and need no sorting
    values = encoded.dictionary.to_numpy(zero_copy_only=False)
    order = np.argsort(values)
    return values[order], _make_leaves(encoded.indices.to_numpy(), order, is_known, holders)


def _make_leaves(entries: Ints, order: Ints, is_known: Bools, holders: Holders) -> Leaves:
    """Return the leaves of a column, given the value of each known entry, and the order of the values."""
    rank = np.empty(len(order), np.min_scalar_type(len(order)))  # codes are as narrow as they can be
    rank[order] = np.arange(len(order))
    codes = np.full(len(is_known), len(order), rank.dtype)
    codes[is_known] = rank[entries]
    size = len(order) + (not is_known.all())
    rows = np.bincount(codes, holders.rows, size).astype(np.int64)
    people = rows if holders.persons is None else holders.people(codes, size)
    return Leaves(codes, rows, people, len(order))
