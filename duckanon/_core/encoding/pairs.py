"""The columns of an original and a released table side by side: numbers, or codes of categories.

Numbers, dates (in days) and times of day (in hours) are doubles, NULL being NaN; everything else is a category whose
codes follow the order of the texts in both tables together. Measures that need plain numbers take indicators of the
most frequent categories. The cost is one encoding of each column.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from duckanon._core.common import values as leaves
from duckanon._core.common.arrays import Floats, Ints, is_number, is_text, is_time, sql_type
from duckanon._core.common.codes import encode_columns
from duckanon._core.common.labels import MICROSECONDS_PER_DAY

_MICROSECONDS_PER_HOUR = MICROSECONDS_PER_DAY / 24
MOST_INDICATORS = 50
"""How many categories of a column, the most frequent ones of the original, get an indicator of their own."""


@dataclass(frozen=True)
class NumberPair:
    """A column of numbers, dates (in days since 1970) or times of day (in hours) in both tables; NULL is NaN.

    Each special value, such as a zero that many have, has an indicator beside the number.
    """

    name: str
    original: Floats
    released: Floats
    special: tuple[float, ...] = ()


@dataclass(frozen=True)
class CategoryPair:
    """A column of categories in both tables, with one code per category in the order of the texts; NULL is the last."""

    name: str
    original: Ints
    released: Ints
    texts: list[str | None]


Pair: TypeAlias = NumberPair | CategoryPair


def pair_tables(original: pa.Table, released: pa.Table) -> list[Pair]:
    """Put the columns of two tables side by side, in the order of the original's.

    Numbers, dates, timestamps and times of day are numbers; everything else is a category, and so is NULL among
    categories. Columns that are missing, or whose types do not match, and tables without rows are refused.
    """
    refuse_unpaired_tables(original, released)
    pairs: list[Pair] = []
    for name in original.column_names:
        first, second = original.column(name), released.column(name)
        if pa.types.is_time(first.type) and pa.types.is_time(second.type):
            pairs.append(NumberPair(name, _read_hours(first), _read_hours(second)))
        else:
            pairs.append(pair_columns(name, first, second))
    return pairs


def _read_hours(column: pa.ChunkedArray) -> Floats:
    """Take a column of times of day in hours since midnight; NULL becomes NaN."""
    microseconds = column.cast(pa.time64("us"), safe=False).cast(pa.int64()).cast(pa.float64())
    return np.asarray(microseconds.to_numpy() / _MICROSECONDS_PER_HOUR, np.float64)


def stack_tables(original: pa.Table, more: pa.Table) -> pa.Table:
    """Append the rows of other people to the original's; an ENUM in one of them is text where it is none in the other.

    Columns that hold different kinds of values are refused.
    """
    refuse_unpaired_tables(original, more)
    more = more.select(original.column_names)
    for index, name in enumerate(original.column_names):
        both = original.column(name), more.column(name)
        if both[0].type != both[1].type:
            pair_columns(name, both[0].slice(0, 1), both[1].slice(0, 1))  # which refuses types that do not match
            if any(pa.types.is_dictionary(column.type) for column in both):
                original, more = (
                    table.set_column(index, name, decode_storage(column))
                    for table, column in zip((original, more), both, strict=True)
                )
    return pa.concat_tables([original, more], promote_options="permissive")


def refuse_unpaired_tables(original: pa.Table, released: pa.Table) -> None:
    """Refuse tables without rows, and a release that lacks a column."""
    for role, table in (("original", original), ("released", released)):
        if not table.num_rows:
            raise ValueError(f"the {role} table has no rows to compare.")
    missing = [name for name in original.column_names if name not in released.column_names]
    if missing:
        raise ValueError(f'the released table has no column "{missing[0]}"; name the columns that both tables have.')


def pair_columns(name: str, original: pa.ChunkedArray, released: pa.ChunkedArray) -> Pair:
    """Put one column of both tables side by side."""
    kinds = [pair_kind(column.type) for column in (original, released)]
    if pa.types.is_null(original.type) or pa.types.is_null(released.type):  # NULL throughout fits every type
        kinds = [next((kind for kind in kinds if kind != "null"), "category")] * 2
        known = released.type if pa.types.is_null(original.type) else original.type
        original, released = original.cast(known), released.cast(known)
    if kinds[0] != kinds[1]:
        raise _different_types_error(name, original, released)
    if kinds[0] == "category" or pa.types.is_null(original.type):
        return _pair_categories(name, original, released)
    return NumberPair(name, read_column_numbers(name, original), read_column_numbers(name, released))


def pair_kind(kind: pa.DataType) -> str:
    """Tell ``number``, ``time``, ``category``, or ``null`` where a column has no type."""
    if pa.types.is_null(kind):
        return "null"
    return "number" if is_number(kind) else "time" if is_time(kind) else "category"


def step_of(kind: pa.DataType) -> float:
    """Return 1 for types of whole numbers or whole days, otherwise 0."""
    return float(pa.types.is_integer(kind) or pa.types.is_date(kind))


def read_column_numbers(name: str, column: pa.ChunkedArray) -> Floats:
    """Take a column of numbers, or of dates and timestamps in days since 1970; NULL becomes NaN."""
    numbers, valid, _ = leaves.take_numbers(name, column)
    if is_time(column.type):
        numbers = numbers / MICROSECONDS_PER_DAY
    if valid.all():
        return np.asarray(numbers, np.float64)
    filled = np.full(len(valid), np.nan)
    filled[valid] = numbers
    return filled


def _pair_categories(name: str, original: pa.ChunkedArray, released: pa.ChunkedArray) -> CategoryPair:
    first, second = (decode_storage(column) for column in (original, released))
    if first.type != second.type:
        raise _different_types_error(name, original, released)
    both = pa.chunked_array([*first.chunks, *second.chunks], first.type)
    codes, count = encode_columns(pa.table({name: both}))[0]
    firsts = np.zeros(count, np.int64)
    firsts[codes[::-1]] = np.arange(len(codes) - 1, -1, -1)  # the first row of each code is written last
    texts = [None if value is None else str(value) for value in both.take(pa.array(firsts)).to_pylist()]
    order = sorted(range(count), key=lambda code: (texts[code] is None, texts[code] or ""))
    rank = np.empty(count, np.int64)
    rank[order] = np.arange(count)
    codes = rank[codes]
    return CategoryPair(name, codes[: len(first)], codes[len(first) :], [texts[code] for code in order])


def _different_types_error(name: str, original: pa.ChunkedArray, released: pa.ChunkedArray) -> ValueError:
    return ValueError(
        f'column "{name}" holds {sql_type(original.type)} in the original and {sql_type(released.type)} in the '
        "release; cast one of them."
    )


def decode_storage(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Undo what does not change the values: dictionaries, and the several Arrow types of texts."""
    if isinstance(column.type, pa.BaseExtensionType):
        column = pa.chunked_array([chunk.storage for chunk in column.chunks], column.type.storage_type)
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if is_text(column.type):
        column = column.cast(pa.large_string())
    return column


def list_indicators(column: Pair) -> list[tuple[str, Floats, Floats]]:
    """Take a column as one or several columns of plain numbers of both tables, with their names.

    Numbers and dates are themselves, NULL filled with the original's mean, and an indicator of NULL where there are
    NULLs, and of each special value. Two categories are one indicator (0 or 1) of the second, more are one each, at
    most `MOST_INDICATORS`.
    """
    return _list_number_indicators(column) if isinstance(column, NumberPair) else _list_category_indicators(column)


def _list_number_indicators(column: NumberPair) -> list[tuple[str, Floats, Floats]]:
    tables = (column.original, column.released)
    special = [
        (f"{column.name} = {value:.15g}", *((values == value).astype(np.float64) for values in tables))
        for value in column.special
    ]
    missing = [np.isnan(values) for values in tables]
    if not (missing[0].any() or missing[1].any()):
        return [(column.name, column.original, column.released), *special]
    known = column.original[~missing[0]]
    mean = known.mean() if len(known) else 0.0
    filled = [np.where(is_missing, mean, values) for is_missing, values in zip(missing, tables, strict=True)]
    return [
        (column.name, filled[0], filled[1]),
        (f"{column.name} IS NULL", missing[0].astype(np.float64), missing[1].astype(np.float64)),
        *special,
    ]


def _list_category_indicators(column: CategoryPair) -> list[tuple[str, Floats, Floats]]:
    frequency = np.bincount(column.original, minlength=len(column.texts))
    kept = np.sort(np.argsort(-frequency, kind="stable")[:MOST_INDICATORS])
    if len(column.texts) == 2:
        kept = np.array([1])
    return [
        (
            f"{column.name} IS NULL" if column.texts[code] is None else f"{column.name} = {column.texts[code]}",
            (column.original == code).astype(np.float64),
            (column.released == code).astype(np.float64),
        )
        for code in kept.tolist()
    ]
