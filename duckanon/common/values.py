"""The values of a column as leaves: their order, their rows, and how they are written."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from duckanon.common.arrays import Array, Ints
from duckanon.common.labels import FIRST_DAY, LAST_DAY, Numbers, Scale, Times

_DAY = 86_400_000_000  # microseconds


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


@dataclass(frozen=True)
class NumberLeaves(Leaves):
    """Numbers or moments in ascending order."""

    positions: npt.NDArray[np.float64]
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
        """The smallest value."""
        return float(self.days[0])

    @property
    def largest(self) -> float:
        """The largest value."""
        return float(self.days[-1])


@dataclass(frozen=True)
class TextLeaves(Leaves):
    """Texts in ascending order."""

    texts: list[str]


class Days(Times):
    """Days since 1970."""

    def text(self, number: float) -> str:
        """Write a day."""
        return super().text(number * _DAY)


_LARGEST = 1e150


def is_time_scale(scale: Scale) -> bool:
    """Tell whether numbers are moments."""
    return scale.covers == "time"


def is_number(kind: pa.DataType) -> bool:
    """Tell whether an Arrow type holds numbers."""
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def is_time(kind: pa.DataType) -> bool:
    """Tell whether an Arrow type holds dates or timestamps."""
    return bool(pa.types.is_date(kind) or pa.types.is_timestamp(kind))


def numbers(
    name: str, column: pa.Array | pa.ChunkedArray
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_], Scale]:
    """Take a column as numbers: dates and timestamps in microseconds since 1970, as ``anon._plan_number`` does.

    Returns
    -------
    numbers, valid, scale
        The numbers that are not NULL, which rows these are, and how such numbers are written.
    """
    valid = np.asarray(column.is_valid()) if column.null_count else np.ones(len(column), bool)
    scale: Scale
    if is_time(column.type):
        scale = Times(pa.types.is_date(column.type), pa.types.is_timestamp(column.type) and column.type.tz is not None)
        column = column.cast(pa.timestamp("us"), safe=False).cast(pa.int64())
    elif is_number(column.type):
        scale = Numbers(_is_whole(column.type))
    else:
        raise ValueError(f'column "{name}" must hold numbers, dates or timestamps; its type is {column.type}.')
    known = column.drop_null() if column.null_count else column
    found = np.asarray(known.cast(pa.float64(), safe=False))
    if pa.types.is_decimal(column.type):  # Arrow multiplies by 0.1 where DuckDB divides by 10
        found = np.round(found, column.type.scale)
    if not np.isfinite(found).all():
        raise ValueError(f'column "{name}" holds NaN or infinity; replace them by NULL or a number first.')
    if (
        len(found)
        and is_time_scale(scale)
        and not FIRST_DAY * _DAY <= found.min() <= found.max() < (LAST_DAY + 1) * _DAY
    ):
        raise ValueError(f'column "{name}" holds dates before the year 1 or after 9999; replace them by NULL first.')
    if len(found) and np.abs(found).max() > _LARGEST:
        raise ValueError(f'column "{name}" holds numbers beyond {_LARGEST:g}, whose squares cannot be computed.')
    return found, valid, scale


def no_leaves(counts: Ints) -> TextLeaves:
    """Take a column that is NULL in every row."""
    return TextLeaves(np.zeros(len(counts), np.int64), np.array([counts.sum()], np.int64), 0, [])


def number_leaves(name: str, column: pa.ChunkedArray, counts: Ints) -> NumberLeaves:
    """Take a column of numbers, dates or timestamps as leaves."""
    found, valid, scale = numbers(name, column)
    positions, codes, rows = _leaves(found + 0.0, valid, counts)  # -0.0 + 0.0 is 0.0
    return NumberLeaves(codes, rows, len(positions), positions, scale)


def day_leaves(name: str, column: pa.ChunkedArray, counts: Ints) -> DayLeaves:
    """Take a column of dates or timestamps as days."""
    found, valid, _ = numbers(name, column)
    days, codes, rows = _leaves(found // _DAY, valid, counts)
    return DayLeaves(codes, rows, len(days), days.astype(np.int64), Days(True))


def text_leaves(name: str, column: pa.ChunkedArray, counts: Ints) -> TextLeaves:
    """Take a column as text, written as DuckDB would cast it."""
    kind = column.type
    if pa.types.is_floating(kind):
        raise ValueError(
            f'column "{name}" holds floating-point numbers, which have no fixed text; cast it to VARCHAR first.'
        )
    if pa.types.is_boolean(kind):
        column = pc.if_else(column, "true", "false")
    elif pa.types.is_dictionary(kind):
        column = column.cast(kind.value_type)
    texts = column.cast(pa.large_string()).combine_chunks()
    encoded = texts.dictionary_encode()
    encoded = encoded.combine_chunks() if isinstance(encoded, pa.ChunkedArray) else encoded
    order = np.argsort(np.array(encoded.dictionary.to_pylist(), dtype=object))
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    valid = ~encoded.is_null().to_numpy(zero_copy_only=False)
    found = encoded.indices.drop_null().to_numpy(zero_copy_only=False)
    _, codes, rows = _leaves(rank[found], valid, counts)
    return TextLeaves(codes, rows, len(order), encoded.dictionary.take(pa.array(order)).to_pylist())


def _leaves(values: Array, valid: npt.NDArray[np.bool_], counts: Ints) -> tuple[Array, Ints, Ints]:
    distinct, inverse = np.unique(values, return_inverse=True)
    codes = np.full(len(valid), len(distinct), np.int64)
    codes[valid] = inverse.reshape(-1)
    rows = np.bincount(codes, counts, len(distinct) + (not valid.all())).astype(np.int64)
    return distinct, codes, rows


def _is_whole(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or (pa.types.is_decimal(kind) and kind.scale == 0))


class HierarchyTable:
    """A hierarchy: for each leaf its label on every level, the leaf itself first.

    Parameters
    ----------
    name
        The column that it is for.
    rows
        Leaf, level from 1, label.
    """

    def __init__(self, name: str, rows: Iterable[tuple[str, int, str]]) -> None:
        paths: dict[str, dict[int, str]] = {}
        for leaf, level, label in rows:
            paths.setdefault(leaf, {})[level] = label
        levels = max((max(path) for path in paths.values()), default=0)
        tops = {path.get(levels) for path in paths.values()}
        self.root = next(iter(tops)) or "*" if len(tops) == 1 else "*"
        self.height = levels + (len(tops) != 1) + (levels == 0)
        self._paths = {leaf: self._filled(leaf, path) for leaf, path in paths.items()}
        self._refuse_two_parents(name)

    def _filled(self, leaf: str, path: dict[int, str]) -> tuple[str, ...]:
        """Fill levels that a leaf does not have with the label below."""
        labels = [leaf]
        for level in range(1, self.height):
            labels.append(path.get(level) or labels[-1])
        return tuple(labels)

    def _refuse_two_parents(self, name: str) -> None:
        parents: dict[tuple[int, str], str] = {}
        for path in self._paths.values():
            for level in range(1, len(path) - 1):
                parent = parents.setdefault((level, path[level]), path[level + 1])
                if parent != path[level + 1]:
                    raise ValueError(
                        f'the hierarchy of column "{name}" is not a tree: "{path[level]}" on level {level} lies in '
                        f'both "{parent}" and "{path[level + 1]}"; give one of them another label.'
                    )

    @property
    def leaves(self) -> Iterable[str]:
        """The values that the hierarchy knows."""
        return self._paths

    def path(self, text: str) -> tuple[str, ...]:
        """Return the labels of a value below the root, itself first; a value that is not known is alone."""
        return self._paths.get(text) or (text,) * self.height
