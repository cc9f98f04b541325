"""Released columns of labels, with the predicates asked of them: which part of a label each predicate covers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from duckanon._core.common import arrays as arrow_types
from duckanon._core.common.arrays import Bools, Floats, Ints, sql_type
from duckanon._core.encoding.pairs import decode_storage, pair_kind, read_column_numbers


@dataclass(frozen=True)
class Meaning:
    """The values that a label stands for, by its rule.

    ``everything``, ``interval`` (numbers from low to high, both inside; infinite where it has no end), ``listed`` (the
    values as texts, and of numbers their places on the number line), or ``nothing``.
    """

    rule: str
    low: float = np.nan
    high: float = np.nan
    values: list[tuple[str | None, float | None]] = field(default_factory=list)


Meanings: TypeAlias = Mapping[str | None, Meaning]

LabelShares: TypeAlias = tuple[Ints, Floats]
"""The number of each label among those with shares, -1 where it has none; and their shares for every predicate."""


def is_text_column(kind: pa.DataType) -> bool:
    """Tell columns of texts, also where DuckDB's ENUM made them a dictionary."""
    return arrow_types.is_text(kind.value_type if pa.types.is_dictionary(kind) else kind)


def different_labels(column: pa.ChunkedArray) -> tuple[Ints, list[str | None]]:
    """Give each label of a column a number; return the number in every row, and the labels."""
    coded = pa.concat_arrays(decode_storage(column).chunks).dictionary_encode(null_encoding="encode")
    return coded.indices.to_numpy(zero_copy_only=False).astype(np.int64), coded.dictionary.to_pylist()


def intervals_of(
    name: str, labels: Sequence[str | None], meanings: Meanings, limits: tuple[float, float], scale: float
) -> tuple[Floats, Floats]:
    """Return the ends of the numbers that labels hold; NaN for labels that are listed or hold nothing.

    A label without a meaning is a number. Everything, and intervals without an end, reach to the original's smallest
    and largest value, the `limits`; numbers of the meanings are divided by `scale`.
    """
    ends = np.full((2, len(labels)), np.nan)
    for index, label in enumerate(labels):
        meaning = meanings.get(label)
        if meaning is None:
            ends[:, index] = _number(name, label)
        elif meaning.rule == "everything":
            ends[:, index] = limits
        elif meaning.rule == "interval":
            low, high = meaning.low / scale, meaning.high / scale
            ends[0, index] = low if np.isfinite(low) else min(limits[0], high)
            ends[1, index] = high if np.isfinite(high) else max(limits[1], low)
    ends[:, ends[0] > ends[1]] = np.nan  # between two whole numbers: holds nothing
    return ends[0], ends[1]


def interval_ends(name: str, kind: pa.DataType, released: pa.ChunkedArray) -> tuple[Floats, Floats]:
    """Return the ends of released intervals ``STRUCT(lo, hi)``, infinite where one is NULL; NaN for no interval.

    They are numbers or, for dates and timestamps, days since 1970; `kind` is the original's type.
    """
    fields = {field.name: field.type for field in released.type}
    if set(fields) != {"lo", "hi"} or any(pair_kind(end) not in (pair_kind(kind), "null") for end in fields.values()):
        raise ValueError(
            f'column "{name}" holds {sql_type(kind)} in the original, so that its intervals must be STRUCT(lo, hi) of '
            f"the same type; got {sql_type(released.type)}."
        )
    ends = []
    for side, limit in (("lo", -np.inf), ("hi", np.inf)):
        end_type = kind if pair_kind(fields[side]) == "null" else fields[side]
        end = read_column_numbers(name, pc.struct_field(released, side).cast(end_type))
        ends.append(np.where(np.isnan(end) & np.asarray(released.is_valid()), limit, end))
    if (ends[0] > ends[1]).any():
        row = int(np.argmax(ends[0] > ends[1]))
        raise ValueError(f'column "{name}" holds an interval that ends before it starts; got row {row + 1}.')
    return ends[0], ends[1]


def shares_of_ranges(labels: Sequence[str | None], meanings: Meanings, ranges: Floats, scale: float) -> LabelShares:
    """Return, for every range, the part of each listed label's values that it covers; NULL is in no range."""
    codes = np.full(len(labels), -1)
    shares: list[Floats] = []
    for index, label in enumerate(labels):
        meaning = meanings.get(label)
        if meaning is not None and meaning.rule == "listed":
            codes[index] = len(shares)
            numbers = np.array([np.nan if number is None else number / scale for _, number in meaning.values])
            inside = (ranges[:, :1] <= numbers) & (numbers <= ranges[:, 1:])
            shares.append(inside.mean(axis=1))
    return codes, np.array(shares).reshape(-1, len(ranges)).T


def shares_of_sets(labels: Sequence[str | None], meanings: Meanings, chosen: Bools, present: Ints) -> LabelShares:
    """Return, for every set of categories, the part of each label that it covers.

    The labels are the categories of both tables, in the order of the columns of ``chosen``, a row for each set;
    ``present`` are those that the original has, by index: together they are everything.
    """
    codes = np.full(len(labels), -1)
    shares: list[Floats] = []
    index_of = {label: index for index, label in enumerate(labels)}
    for index, label in enumerate(labels):
        meaning = meanings.get(label)
        if meaning is not None:
            held = present if meaning.rule == "everything" else [index_of[value] for value, _ in meaning.values]
            codes[index] = len(shares)
            shares.append(chosen[:, held].mean(axis=1) if len(held) else np.zeros(len(chosen)))
    return codes, np.array(shares).reshape(-1, len(chosen)).T


def _number(name: str, label: str | None) -> float:
    if label is None:
        return np.nan
    try:
        return float(label)
    except ValueError:
        raise ValueError(f'column "{name}" has a label that is not understood; give a number.') from None
