"""The arrays that algorithms pass to each other: types, runs of equal values, running maxima, samples of rows."""

from __future__ import annotations

from typing import Any, TypeAlias, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Matrix: TypeAlias = NDArray[np.float64]
"""Rows by columns."""
Reals: TypeAlias = NDArray[np.floating[Any]]
"""Of either precision: what spectral releases compute in float32 where memory matters."""
Ints: TypeAlias = NDArray[np.int64]
"""Whole numbers: counts, codes, and the places of rows."""
Ints32: TypeAlias = NDArray[np.int32]
Bools: TypeAlias = NDArray[np.bool_]
Array: TypeAlias = NDArray[Any]
Kind = TypeVar("Kind", bound=np.generic)

_LONG_LINE = 300  # numbers that are worth a call each


def run_starts(sorted_values: Array) -> Ints:
    """Return the index at which each run of equal values begins; of rows where the array has several columns."""
    if len(sorted_values) == 0:
        return np.empty(0, np.int64)
    differs = sorted_values[1:] != sorted_values[:-1]
    if differs.ndim > 1:
        differs = differs.any(axis=tuple(range(1, differs.ndim)))
    is_start = np.empty(len(sorted_values), dtype=bool)  # filled in place: searches ask thousands of times a second
    is_start[0] = True
    is_start[1:] = differs
    return is_start.nonzero()[0].astype(np.int64, copy=False)


def run_lengths(starts: Ints, entries: int) -> Ints:
    """Return the length of each run, given where the runs begin and how many entries there are in all."""
    lengths = np.empty_like(starts)
    if len(starts):
        np.subtract(starts[1:], starts[:-1], out=lengths[:-1])
        lengths[-1] = entries - starts[-1]
    return lengths


def distinct(values: NDArray[Kind], is_nearly_sorted: bool = False) -> NDArray[Kind]:
    """Return the different values, ascending.

    By sorting: `numpy.unique` of version 2.4 puts them into a hash table first, which takes five times as long, and
    sixty times if a million are all different. Values that are nearly sorted are merged, which takes a fifth of sorting
    them. There must be no NaN.
    """
    ordered = np.sort(values, kind="stable" if is_nearly_sorted else None)
    return ordered[run_starts(ordered)]


def running_maxima(lines: NDArray[Kind]) -> NDArray[Kind]:
    """Return the maxima along the first axis; of long lines, faster than NumPy goes along each place of them."""
    if lines[0].size < _LONG_LINE:
        return np.asarray(np.maximum.accumulate(lines, axis=0))
    reached = np.empty_like(lines, order="C")
    reached[0] = lines[0]
    for place in range(1, len(lines)):
        np.maximum(reached[place - 1], lines[place], out=reached[place])
    return reached


def sampled_rows(count: int, available: int, random: np.random.Generator) -> Ints:
    """Draw rows without replacement, and return their places, ascending; all, undrawn, where there are no more.

    Examples:
        >>> sampled_rows(5, 3, np.random.default_rng(0)).tolist()
        [0, 1, 2]
    """
    if count >= available:
        return np.arange(available)
    return np.sort(random.choice(available, count, replace=False))


def is_text(arrow_type: pa.DataType) -> bool:
    """Tell whether a type holds text, however it is stored."""
    is_ = pa.types
    return bool(is_.is_string(arrow_type) or is_.is_large_string(arrow_type) or is_.is_string_view(arrow_type))


def is_number(arrow_type: pa.DataType) -> bool:
    """Tell whether a type holds numbers; booleans are none."""
    is_ = pa.types
    return bool(is_.is_integer(arrow_type) or is_.is_floating(arrow_type) or is_.is_decimal(arrow_type))


def is_time(arrow_type: pa.DataType) -> bool:
    """Tell whether a type holds days or moments; times of day are neither."""
    return bool(pa.types.is_date(arrow_type) or pa.types.is_timestamp(arrow_type))
