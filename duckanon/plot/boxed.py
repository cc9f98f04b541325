"""Boxes of two columns, as `anon.boxes` and `anon.box_table` return them."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from duckanon.plot import style
from duckanon.plot.reading import table_of

_EPOCH = datetime.datetime(1970, 1, 1)
_MOST_BOXES = 3000  # drawn: the file stays small


def boxes(relation: Any, columns: Sequence[str] | None = None) -> Figure:
    """Draw the intervals of two columns as boxes, the darker the more records they hold for their size.

    Args:
        relation: Rows of `anon.boxes` or `anon.box_table`. An open end reaches to the edge of the picture.
        columns: The two columns; without them the first two that hold intervals.
    """
    table = table_of("boxes", relation)
    structs = [field for field in table.schema if pa.types.is_struct(field.type)]
    intervals = [field.name for field in structs if {"lo", "hi"} <= {part.name for part in field.type}]
    chosen = list(columns or intervals[:2])
    if len(chosen) != 2 or not set(chosen) <= set(intervals):
        raise ValueError(
            "duckanon.plot.boxes: columns must be two columns of intervals "
            f"(there are: {', '.join(intervals) or 'none'}); got {', '.join(chosen) or 'none'}."
        )
    cells = [
        [cell and (_number(cell["lo"]), _number(cell["hi"])) for cell in table.column(name).to_pylist()]
        for name in chosen
    ]
    weights = table.column("records").to_pylist() if "records" in table.column_names else [1] * table.num_rows
    records: Counter[tuple[Any, Any]] = Counter()
    for across, up, weight in zip(*cells, weights, strict=True):
        if across is not None and up is not None:
            records[across, up] += weight
    if not records:
        raise ValueError("duckanon.plot.boxes: relation must have rows with intervals in both columns; got none.")
    limits = [_limits([box[axis] for box in records]) for axis in (0, 1)]
    rectangles, density = [], []
    spans = [end - start for start, end in limits]
    for box, count in sorted(records.items(), key=str)[:_MOST_BOXES]:
        (left, right), (low, high) = (_closed(box[axis], limits[axis]) for axis in (0, 1))
        rectangles.append((left, low, right - left, high - low))
        density.append(count / max((right - left) / spans[0] * (high - low) / spans[1], 1e-4))
    figure, (axes,) = style.new_figure(3.8)
    for (left, low, wide, high), dense in zip(rectangles, density, strict=True):
        # A box without width is drawn as a line: all its records share a value.
        shade = 0.1 + 0.6 * (dense / max(density)) ** 0.25
        colour = to_rgba(style.RELEASED, round(shade, 2))
        axes.add_patch(Rectangle((left, low), wide, high, facecolor=colour, edgecolor=style.INK, linewidth=0.5))
    axes.set_xlim(*limits[0])
    axes.set_ylim(*limits[1])
    for axis, name in ((axes.xaxis, chosen[0]), (axes.yaxis, chosen[1])):
        ends = table.schema.field(name).type.field("lo").type
        if pa.types.is_date(ends) or pa.types.is_timestamp(ends):
            axis.axis_date()
    style.label(axes, chosen[0], chosen[1])
    return figure


def _number(end: Any) -> float | None:
    if isinstance(end, datetime.date):  # days since 1970, as matplotlib counts them
        moment = end if isinstance(end, datetime.datetime) else datetime.datetime.combine(end, datetime.time())
        return (moment.replace(tzinfo=None) - _EPOCH) / datetime.timedelta(days=1)
    return None if end is None else float(end)


def _limits(intervals: Sequence[tuple[float | None, float | None]]) -> tuple[float, float]:
    ends = [end for interval in intervals for end in interval if end is not None]
    low, high = (min(ends), max(ends)) if ends else (0.0, 1.0)
    margin = 0.04 * ((high - low) or 1.0)
    return low - margin, high + margin


def _closed(interval: tuple[float | None, float | None], limits: tuple[float, float]) -> tuple[float, float]:
    low, high = interval
    return limits[0] if low is None else low, limits[1] if high is None else high
