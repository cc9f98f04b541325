"""The arrays that algorithms pass to each other: their types, runs of equal values, samples of rows, names of types.

Sorting and comparing neighbours is the tool for equal values here: NumPy's `unique` puts them into a hash table first,
which takes five times as long for numbers that are mostly different. Functions take one pass over their array.
"""

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
"""Whole numbers: counts, codes, and the indexes of rows."""
Ints32: TypeAlias = NDArray[np.int32]
Bools: TypeAlias = NDArray[np.bool_]
Array: TypeAlias = NDArray[Any]
Kind = TypeVar("Kind", bound=np.generic)

_SQL_NAMES = {
    pa.null(): "NULL",
    pa.bool_(): "BOOLEAN",
    pa.int8(): "TINYINT",
    pa.int16(): "SMALLINT",
    pa.int32(): "INTEGER",
    pa.int64(): "BIGINT",
    pa.uint8(): "UTINYINT",
    pa.uint16(): "USMALLINT",
    pa.uint32(): "UINTEGER",
    pa.uint64(): "UBIGINT",
    pa.float16(): "FLOAT",
    pa.float32(): "FLOAT",
    pa.float64(): "DOUBLE",
    pa.date32(): "DATE",
    pa.date64(): "DATE",
    pa.month_day_nano_interval(): "INTERVAL",
}
_SQL_TIMESTAMPS = {"s": "TIMESTAMP_S", "ms": "TIMESTAMP_MS", "us": "TIMESTAMP", "ns": "TIMESTAMP_NS"}
_SQL_EXTENSIONS = {"arrow.uuid": "UUID", "arrow.json": "JSON", "arrow.bool8": "BOOLEAN"}

_LONG_LINE = 300  # numbers that are worth a call each


def find_run_starts(sorted_values: Array) -> Ints:
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


def measure_runs(starts: Ints, entries: int) -> Ints:
    """Return the length of each run, given where the runs begin and how many entries there are in all."""
    lengths = np.empty_like(starts)
    if len(starts):
        np.subtract(starts[1:], starts[:-1], out=lengths[:-1])
        lengths[-1] = entries - starts[-1]
    return lengths


def sort_distinct(values: NDArray[Kind], is_nearly_sorted: bool = False) -> NDArray[Kind]:
    """Return the different values, ascending.

    By sorting: `numpy.unique` of version 2.4 puts them into a hash table first, which takes five times as long, and
    sixty times if a million are all different. Values that are nearly sorted are merged, which takes a fifth of sorting
    them. There must be no NaN.
    """
    ordered = np.sort(values, kind="stable" if is_nearly_sorted else None)
    return ordered[find_run_starts(ordered)]


def accumulate_maxima(lines: NDArray[Kind]) -> NDArray[Kind]:
    """Return the maxima along the first axis; of long lines, faster than NumPy goes along each index of them."""
    if lines[0].size < _LONG_LINE:
        return np.asarray(np.maximum.accumulate(lines, axis=0))
    reached = np.empty_like(lines, order="C")
    reached[0] = lines[0]
    for index in range(1, len(lines)):
        np.maximum(reached[index - 1], lines[index], out=reached[index])
    return reached


def sample_rows(count: int, available: int, random: np.random.Generator) -> Ints:
    """Draw rows without replacement, and return their indexes, ascending; all of them where there are no more.

    Examples:
        >>> sample_rows(5, 3, np.random.default_rng(0)).tolist()
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


def sql_type(arrow_type: pa.DataType) -> str:
    """Return the name of a type as DuckDB writes it; an ENUM's without its values.

    Examples:
        >>> sql_type(pa.list_(pa.string())), sql_type(pa.dictionary(pa.uint8(), pa.string())), sql_type(pa.time64("us"))
        ('VARCHAR[]', 'ENUM', 'TIME')
    """
    if name := _SQL_NAMES.get(arrow_type):
        return name
    return _name_nested_type(arrow_type) or _name_type_with_parameters(arrow_type) or str(arrow_type).upper()


def _name_nested_type(arrow_type: Any) -> str:
    """Return the name of a type of other types; nothing for one that is not."""
    if pa.types.is_map(arrow_type):
        return f"MAP({sql_type(arrow_type.key_type)}, {sql_type(arrow_type.item_type)})"
    if pa.types.is_struct(arrow_type):
        fields = ", ".join(f'"{field.name}" {sql_type(field.type)}' for field in arrow_type)
        return f"STRUCT({fields})"
    if pa.types.is_fixed_size_list(arrow_type):
        return f"{sql_type(arrow_type.value_type)}[{arrow_type.list_size}]"
    if pa.types.is_list(arrow_type) or pa.types.is_large_list(arrow_type):
        return f"{sql_type(arrow_type.value_type)}[]"
    return "UNION" if pa.types.is_union(arrow_type) else ""


def _name_type_with_parameters(arrow_type: Any) -> str:
    """Return the name of a type with a unit, a width or several encodings; nothing for others."""
    if isinstance(arrow_type, pa.BaseExtensionType):
        opaque = getattr(arrow_type, "type_name", "").upper()
        return _SQL_EXTENSIONS.get(arrow_type.extension_name) or opaque or sql_type(arrow_type.storage_type)
    if pa.types.is_timestamp(arrow_type):
        return _SQL_TIMESTAMPS[arrow_type.unit] if arrow_type.tz is None else "TIMESTAMP WITH TIME ZONE"
    if pa.types.is_decimal(arrow_type):
        return f"DECIMAL({arrow_type.precision},{arrow_type.scale})"
    for is_kind, name in (
        (pa.types.is_dictionary, "ENUM"),
        (pa.types.is_time, "TIME"),
        (pa.types.is_duration, "INTERVAL"),
        (pa.types.is_string, "VARCHAR"),
        (pa.types.is_large_string, "VARCHAR"),
        (pa.types.is_string_view, "VARCHAR"),
        (pa.types.is_binary, "BLOB"),
        (pa.types.is_large_binary, "BLOB"),
        (pa.types.is_binary_view, "BLOB"),
        (pa.types.is_fixed_size_binary, "BLOB"),
    ):
        if is_kind(arrow_type):
            return name
    return ""


def spell_count(count: float, singular: str, plural: str) -> str:
    """Return a number of things in words.

    Examples:
        >>> spell_count(1, "person", "people"), spell_count(0, "person", "people"), spell_count(2.5, "value", "values")
        ('1 person', '0 people', '2.5 values')
    """
    return f"{count if isinstance(count, int) else format(count, '.4g')} {singular if count == 1 else plural}"
