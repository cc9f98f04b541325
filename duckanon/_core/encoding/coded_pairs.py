"""Columns side by side, as the releases read them: numbers that are categories, and special values beside amounts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from duckanon._core.common.arrays import is_number
from duckanon._core.encoding.column_split import Reading, is_category
from duckanon._core.encoding.measurement_encoding import ROWS_PER_VALUE, measured_reading
from duckanon._core.encoding.pairs import CategoryPair, NumberPair, Pair
from duckanon._core.encoding.special import special_values


def coded(pairs: Sequence[Pair], schema: pa.Schema, special: Any, categories: Sequence[str] | None) -> list[Pair]:
    """Tell which numbers of the first of two tables are categories, and which values of others are special.

    ``schema`` has the types of the first table's columns. Options ``'off'`` and ``[]`` leave numbers as they are.
    """
    reading = measured_reading([column.name for column in pairs], special, categories)
    return [
        _coded(column, reading)
        if isinstance(column, NumberPair) and is_number(schema.field(column.name).type)
        else column
        for column in pairs
    ]


def _coded(column: NumberPair, reading: Reading) -> Pair:
    known = column.original[~np.isnan(column.original)]
    distinct, counts = np.unique(known, return_counts=True)
    if not len(distinct):
        return column
    is_known = reading.categories is not None or len(known) >= ROWS_PER_VALUE * len(distinct)
    if is_known and is_category(column.name, distinct, reading):
        return _categories(column)
    if reading.special is None:
        return column
    special = np.intersect1d(distinct, reading.special.get(column.name, special_values(distinct, counts)))
    return replace(column, special=tuple(special.tolist()))


def _categories(column: NumberPair) -> CategoryPair:
    both = np.concatenate([column.original, column.released])
    values, codes = np.unique(both, return_inverse=True)  # NaN, which is NULL, comes last
    texts = [None if np.isnan(value) else f"{value:.15g}" for value in values.tolist()]
    return CategoryPair(column.name, codes[: len(column.original)], codes[len(column.original) :], texts)
