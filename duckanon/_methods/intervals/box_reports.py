"""Reports over a table of boxes: its statistics with guaranteed ranges, which boxes to leave out, how to weigh them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from duckanon._core.common import progress, values
from duckanon._core.common.arrays import Floats, Ints, is_number, is_time, run_starts
from duckanon._core.common.declare import report_rows
from duckanon._core.common.labels import MICROSECONDS_PER_DAY
from duckanon._methods.intervals import choices, regression, statistics
from duckanon._methods.intervals import dismissal as dismissals
from duckanon._methods.intervals import weights as weightings
from duckanon._methods.intervals.declared import BOX_WEIGHTS, DISMISSAL, GROUP, INTERVAL_REGRESSION, INTERVAL_STATISTICS

_FIRST_INEXACT = 2.0**53  # from here on doubles skip whole numbers
_Rows: TypeAlias = Iterable[Mapping[str, Any]]


def interval_statistics(table: pa.Table | None, *, weights: str | None, unbiased: bool) -> pa.Table:
    """Report means, variances, standard deviations, covariances and correlations with guaranteed ranges."""

    def answer(boxes: pa.Table) -> _Rows:
        names, lower, upper, counts, weight = _boxes(boxes, weights)
        intervals = statistics.interval_statistics(lower, upper, counts, weight, unbiased=unbiased)
        return [{**vars(interval), "columns": [names[index] for index in interval.columns]} for interval in intervals]

    return report_rows(_in_groups(table, answer), INTERVAL_STATISTICS.schema)


def interval_regression(
    table: pa.Table | None, *, target: str, predictors: Sequence[str], weights: str | None, seconds: float | None
) -> pa.Table:
    """Report the coefficients of a linear regression with guaranteed ranges; the intercept has no predictor."""
    started = time.monotonic()

    def answer(boxes: pa.Table) -> _Rows:
        names, lower, upper, counts, weight = _boxes(boxes, weights)
        index_of = {name.lower(): index for index, name in enumerate(names)}
        wanted = tuple(index_of[name.lower()] for name in predictors)
        left = None if seconds is None else max(seconds - (time.monotonic() - started), 0)  # for this group and others
        coefficients = regression.interval_regression(
            lower, upper, counts, weight, target=index_of[target.lower()], predictors=wanted, seconds=left
        )
        return [
            {**vars(row), "predictor": None if row.predictor is None else names[row.predictor]} for row in coefficients
        ]

    return report_rows(_in_groups(table, answer), INTERVAL_REGRESSION.schema)


def dismissal(table: pa.Table | None, *, statistic: str, cols: Sequence[str]) -> pa.Table:
    """Report which boxes to leave out of a statistic: all kept, as the papers choose, and with the shift counted."""
    numbers, lower, upper, counts = _numbered(table, cols)
    choice_of_version = dismissals.dismissal(statistic, lower, upper, counts)
    rows = [
        {**_choice(version, choice), "dismissed": numbers[choice.weight == 0].tolist()}
        for version, choice in vars(choice_of_version).items()
    ]
    return report_rows(rows, DISMISSAL.schema)


def box_weights(table: pa.Table | None, *, statistic: str, cols: Sequence[str]) -> pa.Table:
    """Report with which weights to count the boxes in a statistic, in the same three versions."""
    numbers, lower, upper, counts = _numbered(table, cols)
    choice_of_version = weightings.box_weights(statistic, lower, upper, counts)
    rows = []
    for version, choice in vars(choice_of_version).items():
        pairs = zip(numbers.tolist(), choice.weight.tolist(), strict=True)
        weights = [{"box": box, "weight": weight} for box, weight in pairs]
        rows.append({**_choice(version, choice), "weights": weights})
    return report_rows(rows, BOX_WEIGHTS.schema)


def _in_groups(table: pa.Table | None, answer: Callable[[pa.Table], _Rows]) -> list[dict[str, Any]]:
    """Return the rows that `answer` makes of the boxes of each group, with its number, in the order of the numbers."""
    if table is None:
        raise ValueError("the table has no rows to look at.")
    group = table.column(GROUP).to_numpy()
    boxes = table.drop_columns([GROUP])
    order = np.argsort(group, kind="stable")
    parts = np.split(order, run_starts(group[order])[1:])
    rows = []
    for place, part in enumerate(parts):
        chosen = boxes if len(parts) == 1 else boxes.take(pa.array(part))  # one group need not be copied
        progress.at(place / len(parts))
        with progress.part(place / len(parts), (place + 1) / len(parts)):
            rows += [{GROUP: int(group[part[0]]), **row} for row in answer(chosen)]
    return rows


def _choice(version: str, choice: choices.Choice) -> dict[str, Any]:
    kept = ("threshold", "privacy", "statistical", "shift", "total", "estimate", "standard_error")
    fields = {name: float(getattr(choice, name)) for name in kept}
    return {"version": version, **fields, "kept_boxes": choice.kept_boxes, "kept_records": choice.kept_records}


def _boxes(table: pa.Table, weights: str | None) -> tuple[list[str], Floats, Floats, Ints, Floats | None]:
    """Return the names, lower and upper ends (boxes by columns), records and weights of distinct boxes."""
    counts = table.column(table.num_columns - 1).to_numpy().astype(np.int64)
    names = table.column_names[:-1]
    weight = None
    if weights is not None:
        weight_column = next(name for name in names if name.lower() == weights.lower())
        names.remove(weight_column)
        if table.column(weight_column).null_count:
            raise ValueError(f'column "{weight_column}" has NULLs, which are no weights; leave them out.')
        weight = values.numbers(weight_column, table.column(weight_column))[0]
    ends = [_ends(name, table.column(name)) for name in names]
    return names, np.column_stack([low for low, _ in ends]), np.column_stack([high for _, high in ends]), counts, weight


def _numbered(table: pa.Table | None, cols: Sequence[str]) -> tuple[Ints, Floats, Floats, Ints]:
    """Return the numbers, ends and records of the boxes, the columns in the order of ``cols``."""
    if table is None:
        raise ValueError("the table has no rows to look at.")
    if table.column("_duckanon_box").null_count:
        raise ValueError('column "box" has NULLs; leave out what is in no box.')
    spelling = {name.lower(): name for name in table.column_names}
    ends = [_ends(name, table.column(spelling[name.lower()])) for name in cols]
    numbers, counts = (table.column(name).to_numpy().astype(np.int64) for name in ("_duckanon_box", "_duckanon_size"))
    order = np.argsort(numbers, kind="stable")
    low, high = (np.column_stack([pair[side] for pair in ends])[order] for side in (0, 1))
    return numbers[order], low, high, counts[order]


def _ends(name: str, column: pa.ChunkedArray) -> tuple[Floats, Floats]:
    """Return the ends of a column of intervals, or its exact values as both; times in days since 1970."""
    whole = column.combine_chunks()
    kind = whole.type
    if whole.null_count:
        raise ValueError(f'column "{name}" has {whole.null_count} NULLs, which no interval contains; remove them.')
    if is_number(kind) or is_time(kind):
        return _outward(name, whole, -np.inf), _outward(name, whole, np.inf)
    if not pa.types.is_struct(kind) or {field.name for field in kind} != {"lo", "hi"}:
        raise ValueError(
            f'column "{name}" must hold intervals STRUCT(lo, hi), as anon.boxes makes them, or numbers or times; '
            f"got {kind}."
        )
    if open_ends := sum(whole.field(side).null_count for side in ("lo", "hi")):
        raise ValueError(
            f'column "{name}" has {open_ends} open ends, beyond which nothing is guaranteed; '
            "leave these records out, or ask anon.interval_quantiles and anon.interval_counts."
        )
    return _outward(name, whole.field("lo"), -np.inf), _outward(name, whole.field("hi"), np.inf)


def _outward(name: str, column: pa.Array, away: float) -> Floats:
    """Return ends as doubles, times in days since 1970; those that no double is equal to are moved one step outward."""
    numbers, _, _ = values.numbers(name, column)
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
