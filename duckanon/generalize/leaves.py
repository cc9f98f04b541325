"""The distinct values of a column, called leaves: their order, the rows that have each, and how they are written."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from duckanon.common.arrays import Array, Bools, Floats, Ints
from duckanon.common.labels import MICROSECONDS_PER_DAY, Scale, Times
from duckanon.common.values import exact_numbers
from duckanon.generalize.recoding.people import NOBODY


@dataclass(frozen=True)
class Holders:
    """Who has the combinations of a grouped table.

    Attributes
    ----------
    rows
        How many rows of the table have each combination.
    persons
        Whose they are, where people have several rows; `NOBODY` where that is not known. None: rows are people.
    """

    rows: Ints
    persons: Ints | None = None

    def people(self, codes: Ints, size: int) -> Ints:
        """Count the different people of each of ``size`` codes, given the code of each combination."""
        if self.persons is None:
            return np.bincount(codes, self.rows, size).astype(np.int64)
        pairs = np.unique(np.stack([self.persons, codes])[:, self.persons != NOBODY], axis=1)
        return np.bincount(pairs[1], minlength=size)


@dataclass(frozen=True)
class Leaves:
    """The distinct values of a column.

    Attributes
    ----------
    codes
        The leaf of each row of the grouped table.
    rows, people
        How many rows and how many people of the table have each leaf, NULL last where there is one.
    size
        The number of leaves without NULL.
    """

    codes: Ints
    rows: Ints
    people: Ints
    size: int

    @property
    def has_null(self) -> bool:
        """Whether one more leaf, after all others, is NULL."""
        return len(self.rows) > self.size

    @property
    def known_rows(self) -> Ints:
        """How many rows of the table have each leaf that is not NULL."""
        return self.rows[: self.size]


@dataclass(frozen=True)
class NumberLeaves(Leaves):
    """Numbers or moments in ascending order."""

    positions: Floats
    scale: Scale

    @property
    def least(self) -> float:
        """The smallest value."""
        return float(self.positions[0])

    @property
    def largest(self) -> float:
        """The largest value."""
        return float(self.positions[-1])


@dataclass(frozen=True)
class DayLeaves(Leaves):
    """Days in ascending order, counted from 1970. Times of day are left out.

    Attributes
    ----------
    first, last
        The first and the last moment, in days.
    has_times
        Whether any moment is not midnight.
    """

    days: Ints
    scale: Scale
    first: float
    last: float
    has_times: bool


@dataclass(frozen=True)
class TextLeaves(Leaves):
    """Texts in ascending order."""

    texts: list[str]


class Days(Times):
    """Days since 1970."""

    def text(self, number: float) -> str:
        """Write a day."""
        return super().text(number * MICROSECONDS_PER_DAY)


def no_leaves(holders: Holders) -> TextLeaves:
    """Take a column that is NULL in every row."""
    codes = np.zeros(len(holders.rows), np.int64)
    return TextLeaves(codes, np.array([holders.rows.sum()], np.int64), holders.people(codes, 1), 0, [])


def number_leaves(name: str, column: pa.ChunkedArray, holders: Holders) -> NumberLeaves:
    """Take a column of numbers, dates or timestamps as leaves; its name is for the error where it holds neither."""
    known, is_known, scale = exact_numbers(name, column)
    positions, leaves = _distinct(known + 0.0, is_known, holders)  # -0.0 + 0.0 is 0.0
    return NumberLeaves(**vars(leaves), positions=positions, scale=scale)


def day_leaves(name: str, column: pa.ChunkedArray, holders: Holders) -> DayLeaves:
    """Take a column of dates or timestamps as days."""
    known, is_known, _ = exact_numbers(name, column)
    days, leaves = _distinct(known // MICROSECONDS_PER_DAY, is_known, holders)
    first, last = float(known.min()) / MICROSECONDS_PER_DAY, float(known.max()) / MICROSECONDS_PER_DAY
    has_times = bool((known % MICROSECONDS_PER_DAY != 0).any())
    days = days.astype(np.int64)
    return DayLeaves(**vars(leaves), days=days, scale=Days(True), first=first, last=last, has_times=has_times)


def text_leaves(name: str, column: pa.ChunkedArray, holders: Holders) -> TextLeaves:
    """Take a column as text, written as DuckDB would cast it."""
    encoded = as_text(name, column).dictionary_encode()
    encoded = encoded.combine_chunks() if isinstance(encoded, pa.ChunkedArray) else encoded
    order = np.argsort(np.array(encoded.dictionary.to_pylist(), dtype=object))
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    is_known = ~encoded.is_null().to_numpy(zero_copy_only=False)
    entries = encoded.indices.drop_null().to_numpy(zero_copy_only=False)
    leaves = _leaves(rank[entries], len(order), is_known, holders)
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
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    return values[order], _leaves(rank[encoded.indices.to_numpy()], len(order), is_known, holders)


def _leaves(ranks: Ints, values: int, is_known: Bools, holders: Holders) -> Leaves:
    """Return who has which of the values, given the place of each known one among them."""
    codes = np.full(len(is_known), values, np.int64)
    codes[is_known] = ranks
    size = values + (not is_known.all())
    rows = np.bincount(codes, holders.rows, size).astype(np.int64)
    people = rows if holders.persons is None else holders.people(codes, size)
    return Leaves(codes, rows, people, values)
