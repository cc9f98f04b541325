"""The distinct values of a column, called leaves: their order, the rows that have each, and how they are written."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from duckanon.common.arrays import Array, Bools, Floats, Ints
from duckanon.common.labels import MICROSECONDS_PER_DAY, Scale, Times
from duckanon.common.values import numbers


@dataclass(frozen=True)
class Leaves:
    """The distinct values of a column.

    Attributes
    ----------
    codes
        The leaf of each row of the grouped table.
    rows
        How many rows of the table have each leaf, NULL last where there is one.
    size
        The number of leaves without NULL.
    """

    codes: Ints
    rows: Ints
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
    """Days in ascending order, counted from 1970. Times of day are left out."""

    days: Ints
    scale: Scale

    @property
    def least(self) -> float:
        """The first day."""
        return float(self.days[0])

    @property
    def largest(self) -> float:
        """The last day."""
        return float(self.days[-1])


@dataclass(frozen=True)
class TextLeaves(Leaves):
    """Texts in ascending order."""

    texts: list[str]


class Days(Times):
    """Days since 1970."""

    def text(self, number: float) -> str:
        """Write a day."""
        return super().text(number * MICROSECONDS_PER_DAY)


def no_leaves(counts: Ints) -> TextLeaves:
    """Take a column that is NULL in every row.

    Parameters
    ----------
    counts
        How many rows of the table each row of the grouped table stands for; also in the functions below.
    """
    return TextLeaves(np.zeros(len(counts), np.int64), np.array([counts.sum()], np.int64), 0, [])


def number_leaves(name: str, column: pa.ChunkedArray, counts: Ints) -> NumberLeaves:
    """Take a column of numbers, dates or timestamps as leaves; its name is for the error where it holds neither."""
    known, is_known, scale = numbers(name, column)
    positions, codes, rows = _distinct(known + 0.0, is_known, counts)  # -0.0 + 0.0 is 0.0
    return NumberLeaves(codes, rows, len(positions), positions, scale)


def day_leaves(name: str, column: pa.ChunkedArray, counts: Ints) -> DayLeaves:
    """Take a column of dates or timestamps as days."""
    known, is_known, _ = numbers(name, column)
    days, codes, rows = _distinct(known // MICROSECONDS_PER_DAY, is_known, counts)
    return DayLeaves(codes, rows, len(days), days.astype(np.int64), Days(True))


def text_leaves(name: str, column: pa.ChunkedArray, counts: Ints) -> TextLeaves:
    """Take a column as text, written as DuckDB would cast it."""
    arrow_type = column.type
    if pa.types.is_floating(arrow_type):
        raise ValueError(
            f'column "{name}" holds floating-point numbers, which have no fixed text; cast it to VARCHAR first.'
        )
    if pa.types.is_boolean(arrow_type):
        column = pc.if_else(column, "true", "false")
    elif pa.types.is_dictionary(arrow_type):
        column = column.cast(arrow_type.value_type)
    texts = column.cast(pa.large_string()).combine_chunks()
    encoded = texts.dictionary_encode()
    encoded = encoded.combine_chunks() if isinstance(encoded, pa.ChunkedArray) else encoded
    order = np.argsort(np.array(encoded.dictionary.to_pylist(), dtype=object))
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    is_known = ~encoded.is_null().to_numpy(zero_copy_only=False)
    entries = encoded.indices.drop_null().to_numpy(zero_copy_only=False)
    _, codes, rows = _distinct(rank[entries], is_known, counts)
    return TextLeaves(codes, rows, len(order), encoded.dictionary.take(pa.array(order)).to_pylist())


def _distinct(known: Array, is_known: Bools, counts: Ints) -> tuple[Array, Ints, Ints]:
    """Return the distinct known values, the leaf of each row, and how many rows of the table have each leaf."""
    distinct, inverse = np.unique(known, return_inverse=True)
    codes = np.full(len(is_known), len(distinct), np.int64)
    codes[is_known] = inverse.reshape(-1)
    rows = np.bincount(codes, counts, len(distinct) + (not is_known.all())).astype(np.int64)
    return distinct, codes, rows
