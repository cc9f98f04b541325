"""Tables of boxes as arrays: the ends of their columns, and the groups that are answered one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from duckanon._core.common import progress, values
from duckanon._core.common.arrays import Floats, Ints, find_run_starts, is_number, is_time, sql_type
from duckanon._core.common.labels import MICROSECONDS_PER_DAY
from duckanon._methods.intervals.declared import GROUP

_FIRST_INEXACT = 2.0**53  # from here on doubles skip whole numbers
ReportRows: TypeAlias = Iterable[Mapping[str, Any]]


def answer_by_group(table: pa.Table | None, answer: Callable[[pa.Table], ReportRows]) -> list[dict[str, Any]]:
    """Return the rows that `answer` makes of the boxes of each group, with its number, in the order of the numbers."""
    if table is None:
        raise ValueError("the table has no rows to look at.")
    group = table.column(GROUP).to_numpy()
    boxes = table.drop_columns([GROUP])
    order = np.argsort(group, kind="stable")
    parts = np.split(order, find_run_starts(group[order])[1:])
    rows = []
    for number, part in enumerate(parts):
        chosen = boxes if len(parts) == 1 else boxes.take(pa.array(part))  # one group need not be copied
        progress.advance(number / len(parts))
        with progress.step(number / len(parts), (number + 1) / len(parts)):
            rows += [{GROUP: int(group[part[0]]), **row} for row in answer(chosen)]
    return rows


def read_boxes(table: pa.Table, weights: str | None) -> tuple[list[str], Floats, Floats, Ints, Floats | None]:
    """Return the names, lower and upper ends (boxes by columns), records and weights of distinct boxes."""
    counts = table.column(table.num_columns - 1).to_numpy().astype(np.int64)
    names = table.column_names[:-1]
    weight = None
    if weights is not None:
        weight_column = next(name for name in names if name.lower() == weights.lower())
        names.remove(weight_column)
        if table.column(weight_column).null_count:
            raise ValueError(f'column "{weight_column}" has NULLs, which are no weights; leave them out.')
        weight = values.take_numbers(weight_column, table.column(weight_column))[0]
    ends = [read_ends(name, table.column(name)) for name in names]
    return names, np.column_stack([low for low, _ in ends]), np.column_stack([high for _, high in ends]), counts, weight


def read_ends(name: str, column: pa.ChunkedArray) -> tuple[Floats, Floats]:
    """Return the ends of a column of intervals, or its exact values as both; times in days since 1970."""
    whole = column.combine_chunks()
    kind = whole.type
    if whole.null_count:
        raise ValueError(f'column "{name}" has {whole.null_count} NULLs, which no interval contains; remove them.')
    if is_number(kind) or is_time(kind):
        return _round_outward(name, whole, -np.inf), _round_outward(name, whole, np.inf)
    if not pa.types.is_struct(kind) or {field.name for field in kind} != {"lo", "hi"}:
        raise ValueError(
            f'column "{name}" must hold intervals STRUCT(lo, hi), as anon.boxes makes them, or numbers or times; '
            f"got {sql_type(kind)}."
        )
    if open_ends := sum(whole.field(side).null_count for side in ("lo", "hi")):
        raise ValueError(
            f'column "{name}" has {open_ends} open ends, beyond which nothing is guaranteed; '
            "leave these records out, or ask anon.interval_quantiles and anon.interval_counts."
        )
    return _round_outward(name, whole.field("lo"), -np.inf), _round_outward(name, whole.field("hi"), np.inf)


def _round_outward(name: str, column: pa.Array, away: float) -> Floats:
    """Return ends as doubles, times in days since 1970; those that no double is equal to are moved one step outward."""
    numbers, _, _ = values.take_numbers(name, column)
    is_exact = np.abs(numbers) < _FIRST_INEXACT
    if is_time(column.type):
        is_exact &= np.fmod(numbers, MICROSECONDS_PER_DAY) == 0
        # Both the microseconds and their division may be rounded.
        days = numbers / MICROSECONDS_PER_DAY
        return np.where(is_exact, days, np.nextafter(np.nextafter(days, away), away))
    if pa.types.is_decimal(column.type):
        is_exact &= numbers == np.rint(numbers)
    elif not pa.types.is_integer(column.type):
        return numbers
    return np.where(is_exact, numbers, np.nextafter(numbers, away))
