"""The table that ``anon.boxes`` releases: numbers and dates as intervals, everything else as it was."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from duckanon import box_theory, labels, leaves, progress
from duckanon.boxes import Boxes, make_boxes
from duckanon.randomness import generator
from duckanon.statistics_sensitivity import Statistic

Floats = npt.NDArray[np.float64]
DAY = 86_400_000_000  # microseconds
HIGH = "_duckanon_hi "
"""What the column of upper ends is called on its way, before the column's own name; the lower ends have that name."""

_KINDS = {"standard_deviation": "sd", "standard deviation": "sd"}

OPTIMUM_TYPE = "STRUCT(optimum DOUBLE, bounds DOUBLE, bounds_ratio DOUBLE, cell DOUBLE, cell_ratio DOUBLE)[]"


def boxes(
    table: pa.Table,
    cols: Sequence[str],
    k: int,
    statistics: Sequence[Mapping[str, Any]] | None,
    l: int,  # noqa: E741 - the papers' name
    epsilon: Any,
    box: str,
    effort: str,
    seconds: float | None,
) -> pa.Table:
    """Put the records of a table into boxes (`duckanon.boxes`) and return it with intervals, in a random order."""
    names = _own_names(table, cols)
    made = _made(table, names, k, statistics, l, epsilon, effort, seconds)
    lower, upper = made.intervals(box)
    order = generator(None).permutation(table.num_rows)
    shuffled = table.take(pa.array(order))
    number = made.box[order]
    for place, name in enumerate(names):
        kind = table.schema.field(name).type
        low, high = _typed(kind, lower[:, place], upper[:, place], box)
        shuffled = shuffled.set_column(shuffled.column_names.index(name), name, low.take(pa.array(number)))
        shuffled = shuffled.append_column(HIGH + name, high.take(pa.array(number)))
    return shuffled.append_column("_duckanon_box", pa.array(number + 1))


def optimum(
    table: pa.Table | None, cols: Sequence[str], k: int, statistics: Sequence[Mapping[str, Any]] | None
) -> pa.Table:
    """Report how wide boxes must be at best, asymptotically, and how wide those that are made are."""
    if table is None:
        raise ValueError("the table has no rows to look at.")
    names = _own_names(table, cols)
    asked = _statistics(statistics, names)
    least = box_theory.optimal_uncertainty(_numbers(table, names), k, asked)
    made = _made(table, names, k, statistics, 1, None, "default", None)
    found = {kind: made.uncertainty(kind) for kind in ("bounds", "cell")}
    row = {"optimum": least}
    for kind, width in found.items():
        row |= {kind: width, f"{kind}_ratio": width / least if least else float("nan")}
    return pa.table({name: [value] for name, value in row.items()})


def halfwidths(
    sensitivities: Sequence[float] | None,
    density: float | None,
    k: int | None,
    l: int | None,  # noqa: E741
    epsilon: Sequence[float] | None,
) -> list[float] | None:
    """Return the best half-widths of a box around one point; None where something is not known."""
    if sensitivities is None or density is None or k is None or l is None:
        return None
    found = box_theory.halfwidths(np.array(sensitivities, np.float64), density, k, l, epsilon)
    return [float(width) for width in found]


def _made(
    table: pa.Table,
    names: Sequence[str],
    k: int,
    statistics: Sequence[Mapping[str, Any]] | None,
    l: int,  # noqa: E741
    epsilon: Any,
    effort: str,
    seconds: float | None,
) -> Boxes:
    own = {name.lower(): name for name in names}
    pairs = epsilon.items() if isinstance(epsilon, dict) else epsilon or []
    apart = {own.get(str(name).lower(), str(name)): float(value) for name, value in pairs}
    for name in apart:
        if name in own.values() and leaves.is_time(table.schema.field(name).type):
            apart[name] *= DAY
    asked = _statistics(statistics, names)
    tell = progress.shown("anon.boxes") if effort == "thorough" else None
    return make_boxes(_numbers(table, names), k, asked, l, apart or None, effort, seconds, tell)


def _own_names(table: pa.Table, cols: Sequence[str]) -> list[str]:
    """Return the columns under the names that the table has for them."""
    wanted = {name.lower() for name in cols}
    return [name for name in table.column_names if name.lower() in wanted]


def _numbers(table: pa.Table, names: Sequence[str]) -> dict[str, Floats]:
    found = {}
    for name in names:
        column = table.column(name)
        if column.null_count:
            raise ValueError(f'column "{name}" has {column.null_count} NULLs, which no interval holds; leave them out.')
        found[name] = leaves.numbers(name, column)[0]
    return found


def _statistics(given: Sequence[Mapping[str, Any]] | None, names: Sequence[str]) -> list[Statistic] | None:
    """Read the statistics as the caller wrote them: structs of statistic, columns, probability, accuracy."""
    if given is None:
        return None
    own = {name.lower(): name for name in names}
    found = []
    for one in given:
        if not isinstance(one, Mapping) or not {"statistic", "columns"} <= one.keys():
            raise ValueError(
                "statistics must be a list such as [{'statistic': 'variance', 'columns': ['age']}], with probability "
                f"and accuracy where they matter; got {one}."
            )
        columns = tuple(own.get(str(name).lower(), str(name)) for name in one["columns"])
        kind = str(_KINDS.get(one["statistic"], one["statistic"]))
        more = {key: float(one[key]) for key in ("probability", "accuracy") if one.get(key) is not None}
        found.append(Statistic(kind, columns, **more))
    return found


def _typed(kind: pa.DataType, lower: Floats, upper: Floats, box: str) -> tuple[pa.Array, pa.Array]:
    """Write ends in a column's own type.

    A cell ends midway between values. Where a type has only whole numbers, days or so many decimals, no
    other value lies between that and the next value inside: cells are rounded inward, and lose nothing.
    """
    if pa.types.is_date(kind):
        days = (lower / DAY, upper / DAY)
        if box == "rounded":
            days = (_month(days[0], False), _month(days[1], True))
        low, high = np.ceil(days[0]), np.floor(days[1])
        return tuple(pa.array(end.astype(np.int32)).cast(pa.date32()) for end in (low, high))
    if pa.types.is_timestamp(kind):
        return tuple(
            pa.array(end.astype(np.int64)).cast(pa.timestamp("us", kind.tz)).cast(kind)
            for end in (np.ceil(lower), np.floor(upper))
        )
    if pa.types.is_decimal(kind):
        unit = 10.0**kind.scale
        low, high = np.ceil(lower * unit - 1e-6) / unit, np.floor(upper * unit + 1e-6) / unit
        return tuple(pa.array(np.round(end, kind.scale)).cast(kind) for end in (low, high))
    if pa.types.is_integer(kind):
        return tuple(pa.array(end.astype(np.int64)).cast(kind) for end in (np.ceil(lower), np.floor(upper)))
    return pa.array(lower), pa.array(upper)


def _month(days: Floats, is_end: bool) -> Floats:
    """Return the first day of each day's month, or the last."""
    starts = labels.period_starts(np.floor(days).astype(np.int64), "month")
    if not is_end:
        return starts.astype(np.float64)
    return np.array([labels.period(int(start), "month")[1] - 1 for start in starts], np.float64)
