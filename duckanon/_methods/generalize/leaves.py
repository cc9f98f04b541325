"""The distinct values of a column, called leaves: their order, the rows that have each, and how they are written."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from duckanon._core.common.arrays import Array, Bools, Floats, Ints
from duckanon._core.common.labels import MICROSECONDS_PER_DAY, Scale, Times
from duckanon._core.common.people import NOBODY, people_in
from duckanon._core.common.values import exact_numbers


@dataclass(frozen=True)
class Holders:
    """People by combination of a grouped table."""

    rows: Ints  # how many rows of the table have each combination
    # whose they are, where people have several rows; `NOBODY` where that is not known. None: rows are people.
    persons: Ints | None = None

    def people(self, codes: Ints, size: int) -> Ints:
        """Count the different people of each of ``size`` codes, given the code of each combination."""
        if self.persons is None:
            return np.bincount(codes, self.rows, size).astype(np.int64)
        return people_in(codes.astype(np.int64), self.persons, size)

    def taken(self, is_taken: Bools) -> Holders:
        """Return who has some of the combinations."""
        return Holders(self.rows[is_taken], None if self.persons is None else self.persons[is_taken])

    def core(self, codes: Ints, size: int, k: int) -> tuple[int, int]:
        """Return the first and the last of ``size`` sorted codes that are no extremes of fewer than k people.

        Fewer than k people have a code below the first, and fewer than k one above the last: no label may tell of these
        alone. Where there are too few people for two such ends, all codes are between them. Codes from ``size`` on are
        left out.
        """
        is_known = codes < size
        if self.persons is None:
            people = np.bincount(codes[is_known], self.rows[is_known], size)
            low, high = (int(np.searchsorted(np.cumsum(side), k)) for side in (people, people[::-1]))
        else:
            is_known &= self.persons != NOBODY
            persons, own = self.persons[is_known], codes[is_known].astype(np.int64)  # narrow ones take 20 times as long
            least = np.full(int(persons.max(initial=-1)) + 1, size)
            most = np.full_like(least, -1)
            np.minimum.at(least, persons, own)
            np.maximum.at(most, persons, own)
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
    def known_rows(self) -> Ints:
        """The rows of the table with each leaf that is not NULL."""
        return self.rows[: self.size]

    def found(self, is_taken: Bools) -> Ints:
        """Return the leaves that some combinations of the table have."""
        return np.flatnonzero(np.bincount(self.codes[is_taken], minlength=len(self.rows)))

    def taken(self, is_taken: Bools, holders: Holders, k: int) -> Self:
        """Return the leaves of the combinations that are taken, which the holders have: as if there were no others."""
        own, found = self.codes[is_taken], self.found(is_taken)
        place = np.zeros(len(self.rows), self.codes.dtype)
        place[found] = np.arange(len(found))
        codes = place[own]
        rows = np.bincount(codes, holders.rows, len(found)).astype(np.int64)
        people = rows if holders.persons is None else holders.people(codes, len(found))
        known = found[found < self.size]
        return replace(
            self, codes=codes, rows=rows, people=people, size=len(known), **self._values(known, codes, holders, k)
        )

    def _values(self, known: Ints, codes: Ints, holders: Holders, k: int) -> dict[str, Any]:
        """Return what a kind of leaves says of some of them, given the new code of each combination."""
        raise NotImplementedError


@dataclass(frozen=True)
class NumberLeaves(Leaves):
    """Numbers or moments in ascending order."""

    # positions, scale: the numbers, and how they are written
    positions: Floats
    scale: Scale
    core: tuple[int, int]  # the first and the last leaf that are no extremes of fewer than k people (`Holders.core`)

    @property
    def inner(self) -> Floats:
        """The numbers, extremes of fewer than k people moved to the ends of all others."""
        return np.clip(self.positions, *self.positions[list(self.core)])

    def _values(self, known: Ints, codes: Ints, holders: Holders, k: int) -> dict[str, Any]:
        return {"positions": self.positions[known], "core": holders.core(codes, len(known), k)}


@dataclass(frozen=True)
class DayLeaves(Leaves):
    """Days in ascending order, counted from 1970. Times of day are left out."""

    days: Ints
    scale: Scale
    core: tuple[int, int]  # the first and the last leaf that are no extremes of fewer than k people (`Holders.core`)
    has_times: bool  # whether moments of k rows are not midnight

    @property
    def inner(self) -> Ints:
        """The days, extremes of fewer than k people moved to the ends of all others."""
        return np.clip(self.days, *self.days[list(self.core)])

    def _values(self, known: Ints, codes: Ints, holders: Holders, k: int) -> dict[str, Any]:
        return {"days": self.days[known], "core": holders.core(codes, len(known), k)}


@dataclass(frozen=True)
class TextLeaves(Leaves):
    """Texts in ascending order."""

    texts: list[str]

    def _values(self, known: Ints, codes: Ints, holders: Holders, k: int) -> dict[str, Any]:
        return {"texts": [self.texts[leaf] for leaf in known.tolist()]}


class Days(Times):
    """Days since 1970."""

    def text(self, number: float) -> str:
        """Write a day."""
        return super().text(number * MICROSECONDS_PER_DAY)


def no_leaves(holders: Holders) -> TextLeaves:
    """Take a column that is NULL in every row."""
    codes = np.zeros(len(holders.rows), np.int64)
    return TextLeaves(codes, np.array([holders.rows.sum()], np.int64), holders.people(codes, 1), 0, [])


def number_leaves(name: str, column: pa.ChunkedArray, holders: Holders, k: int) -> NumberLeaves:
    """Take a column of numbers, dates or timestamps as leaves; its name is for the error where it holds neither."""
    known, is_known, scale = exact_numbers(name, column)
    positions, leaves = _distinct(known + 0.0, is_known, holders)  # -0.0 + 0.0 is 0.0
    core = holders.core(leaves.codes, leaves.size, k)
    return NumberLeaves(**vars(leaves), positions=positions, scale=scale, core=core)


def day_leaves(name: str, column: pa.ChunkedArray, holders: Holders, k: int) -> DayLeaves:
    """Take a column of dates or timestamps as days."""
    known, is_known, _ = exact_numbers(name, column)
    days, leaves = _distinct(known // MICROSECONDS_PER_DAY, is_known, holders)
    has_times = bool(holders.rows[is_known][known % MICROSECONDS_PER_DAY != 0].sum() >= k)
    core = holders.core(leaves.codes, leaves.size, k)
    return DayLeaves(**vars(leaves), days=days.astype(np.int64), scale=Days(True), core=core, has_times=has_times)


def text_leaves(name: str, column: pa.ChunkedArray, holders: Holders) -> TextLeaves:
    """Take a column as text, written as DuckDB would cast it."""
    encoded = as_text(name, column).dictionary_encode()
    encoded = encoded.combine_chunks() if isinstance(encoded, pa.ChunkedArray) else encoded
    order = np.argsort(np.array(encoded.dictionary.to_pylist(), dtype=object))
    is_known = ~encoded.is_null().to_numpy(zero_copy_only=False)
    entries = encoded.indices.drop_null().to_numpy(zero_copy_only=False)
    leaves = _leaves(entries, order, is_known, holders)
    return TextLeaves(**vars(leaves), texts=encoded.dictionary.take(pa.array(order)).to_pylist())


def codes_among(leaves: Leaves, name: str, column: pa.ChunkedArray) -> Ints:
    """Return the leaf of each value of another table's column; -1 where it is none of the leaves."""
    null_code = leaves.size if leaves.has_null else -1
    if not leaves.size:
        return np.where(np.asarray(column.is_null()), null_code, -1)
    if isinstance(leaves, TextLeaves):
        found = pc.index_in(as_text(name, column), pa.array(leaves.texts, pa.large_string()))
        is_null = np.asarray(column.is_null())
        return np.where(is_null, null_code, np.asarray(found.fill_null(-1)).astype(np.int64))
    known, is_known, _ = exact_numbers(name, column)
    codes = np.full(len(is_known), null_code, np.int64)
    values: Array = known + 0.0
    if isinstance(leaves, DayLeaves):
        values, sorted_leaves = known // MICROSECONDS_PER_DAY, np.asarray(leaves.days, np.float64)
    else:
        assert isinstance(leaves, NumberLeaves)
        sorted_leaves = leaves.positions
    place = np.minimum(np.searchsorted(sorted_leaves, values), leaves.size - 1)
    codes[is_known] = np.where(sorted_leaves[place] == values, place, -1)
    return codes


def as_text(name: str, column: pa.ChunkedArray) -> pa.Array:
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


def _distinct(known: Array, is_known: Bools, holders: Holders) -> tuple[Array, Leaves]:
    """Return the distinct known values, and who has them."""
    encoded = pa.array(known).dictionary_encode()  # by hashing: most columns have few values, and need no sorting
    values = encoded.dictionary.to_numpy(zero_copy_only=False)
    order = np.argsort(values)
    return values[order], _leaves(encoded.indices.to_numpy(), order, is_known, holders)


def _leaves(entries: Ints, order: Ints, is_known: Bools, holders: Holders) -> Leaves:
    """Return who has which of the values, given which of them each known one is, and their order."""
    rank = np.empty(len(order), np.min_scalar_type(len(order)))  # codes are as narrow as they can be
    rank[order] = np.arange(len(order))
    codes = np.full(len(is_known), len(order), rank.dtype)
    codes[is_known] = rank[entries]
    size = len(order) + (not is_known.all())
    rows = np.bincount(codes, holders.rows, size).astype(np.int64)
    people = rows if holders.persons is None else holders.people(codes, size)
    return Leaves(codes, rows, people, len(order))
