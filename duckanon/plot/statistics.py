"""Pictures of what an analyst keeps: correlations and distributions before and after.

Boxes of two columns, as `anon.boxes` and `anon.box_table` return them.

Kernel components in pairs (Thesis, Figure 3-1), without a place of any single original.
"""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from duckanon._core.common.arrays import Floats
from duckanon.plot import style
from duckanon.plot.assessment import draw_cell, square_axes
from duckanon.plot.style import rows_of, table_of

_MOST_WRITTEN = 10  # columns up to which the numbers stand in the cells
_MOST_COLUMNS = 40


def correlations(relation: Any) -> Figure:
    """Draw correlations of `anon.utility` as a square: above the diagonal the original's, below it the release's.

    Of more than ten columns the cells are shaded only; the first 40 columns are drawn.

    Args:
        relation: Rows of `anon.utility`, of which those of the statistic `correlation` are drawn.
    """
    needed = ("statistic", "column_name", "other_column", "original", "released")
    rows = [row for row in rows_of("correlations", relation, needed) if row["statistic"] == "correlation"]
    names = list(dict.fromkeys(name for row in rows for name in (row["column_name"], row["other_column"])))
    if not names:
        raise ValueError("duckanon.plot.correlations: relation must have correlations; got none.")
    names = names[:_MOST_COLUMNS]
    is_written = len(names) <= _MOST_WRITTEN
    figure, (axes,) = style.new_figure(1.1 + (0.44 * len(names) if is_written else 4.4))
    for row in rows:
        if row["column_name"] in names and row["other_column"] in names:
            low, high = sorted((names.index(row["column_name"]), names.index(row["other_column"])))
            for column, line, value, colour in (
                (high, low, row["original"], style.ORIGINAL),
                (low, high, row["released"], style.RELEASED),
            ):
                known = value is not None and np.isfinite(value)
                text = (f"{value:.2f}" if known else "–") if is_written else ""
                draw_cell(axes, column, line, abs(value) if known else 0, text, colour)
    square_axes(axes, names)
    if not is_written:
        axes.tick_params(labelsize=max(style.SMALL * 20 / len(names), 5.0) if len(names) > 20 else style.SMALL)
        axes.tick_params(axis="x", rotation=90)
    axes.plot([], [], "s", color=style.ORIGINAL, label="original, above the diagonal")
    axes.plot([], [], "s", color=style.RELEASED, label="released, below it")
    style.legend(figure, 1)
    return figure


def distributions(relation: Any) -> Figure:
    """Draw distributions of columns before and after, side by side.

    Args:
        relation: Rows with `column_name`, `part` (the text below a pair of bars), and the shares `original` and
            `released`.
    """
    needed = ("column_name", "part", "original", "released")
    rows = rows_of("distributions", relation, needed)
    names = list(dict.fromkeys(row["column_name"] for row in rows))
    figure, all_axes = style.new_figure(0.5 + 2.0 * len(names), rows=len(names))
    for axes, name in zip(all_axes, names, strict=True):
        parts = [row for row in rows if row["column_name"] == name]
        places = np.arange(len(parts))
        labels = ("original", "released") if axes is all_axes[0] else (None, None)
        before, after = ([row[side] for row in parts] for side in ("original", "released"))
        axes.bar(places - 0.21, before, 0.4, color=style.ORIGINAL, label=labels[0], **style.HATCHED)
        axes.bar(places + 0.21, after, 0.4, color=style.RELEASED, label=labels[1])
        crowded = sum(len(row["part"]) for row in parts) > 40
        shown = [style.plain(row["part"], 14) for row in parts]
        axes.set_xticks(places, shown, rotation=35 if crowded else 0, ha="right" if crowded else "center")
        style.percents(axes, 0)
        style.label(axes, title=name)
    style.legend(figure, 2)
    return figure


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
        (left, right), (low, high) = (_close(box[axis], limits[axis]) for axis in (0, 1))
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


def _close(interval: tuple[float | None, float | None], limits: tuple[float, float]) -> tuple[float, float]:
    low, high = interval
    return limits[0] if low is None else low, limits[1] if high is None else high


_MOST_COMPONENTS = 3
_BINS = 20
_MOST_DOTS = 150


def kernel_components(relation: Any, k: int = 10) -> Figure:
    """Draw where originals and released records lie along the kernel components, as in figure 3-1 of the Thesis.

    On the diagonal the distribution along a component, above it two components at a time: shaded where at least `k`
    originals lie, dots for released records. A place that fewer than `k` originals share is not drawn, nor are the
    outermost: they would be those of single people.

    Args:
        relation: Rows of `anon.kernel_components`, of which the first three components are drawn.
        k: How many originals must share what is drawn of them.
    """
    rows = rows_of("kernel_components", relation, ("source", "projections"))
    original, released = (
        np.array([row["projections"][:_MOST_COMPONENTS] for row in rows if row["source"] == source], dtype=float)
        for source in ("original", "released")
    )
    if not len(original) or not len(released):
        raise ValueError(
            "duckanon.plot.kernel_components: relation must have original and released rows; got one kind."
        )
    return component_pairs(original, released, k)


def component_pairs(original: Floats, released: Floats, k: int) -> Figure:
    """Draw two matrices of projections, a column each component."""
    count = original.shape[1]
    edges = [round_edges(original[:, column], k) for column in range(count)]
    figure, all_axes = style.new_figure(1.1 + 1.35 * count, rows=count, columns=count)
    for row in range(count):
        for column in range(count):
            axes = all_axes[row * count + column]
            axes.set(xticks=[], yticks=[])
            if row == column:
                for values, colour, dashes, name in (
                    (original, style.ORIGINAL, "--", "original"),
                    (released, style.RELEASED, "-", "released"),
                ):
                    shares = shares_of_bins(values[:, row], edges[row], k)
                    axes.stairs(shares, edges[row], color=colour, linestyle=dashes, label=name if row == 0 else None)
                style.label(axes, title=f"component {row + 1}")
            elif row < column:
                _draw_pair(axes, original[:, [column, row]], released[:, [column, row]], [edges[column], edges[row]], k)
            else:
                axes.set_visible(False)
    style.legend(figure, 2)
    return figure


def round_edges(values: Floats, k: int) -> Floats:
    """Cut an axis into bins whose ends are round and leave out the outermost k values: no end is anybody's value."""
    outside = min(0.1, max(0.03, k / max(len(values), 1)))
    low, high = np.quantile(values, [outside, 1 - outside])
    span = (high - low) or 1.0
    step = 10.0 ** np.floor(np.log10(span / _BINS))
    step *= next(factor for factor in (1, 2, 5, 10, 20) if span / (factor * step) <= _BINS)
    return np.asarray(np.arange(np.floor(low / step), np.ceil(high / step) + 1) * step)


def shares_of_bins(values: Floats, edges: Floats, k: int) -> Floats:
    """Return the shares of bins in whole hundredths; a bin of fewer than k values is shown as empty."""
    counts, _ = np.histogram(values, edges)
    return np.round(np.where(counts < k, 0, counts) / max(len(values), 1), 2)


def _draw_pair(axes: Any, original: Floats, released: Floats, edges: list[Floats], k: int) -> None:
    counts, _, _ = np.histogram2d(original[:, 0], original[:, 1], bins=[edges[0][::2], edges[1][::2]])
    shown = np.where(counts < k, 0.0, counts)
    strongest = shown.max() or 1.0
    for column, row in zip(*np.nonzero(shown), strict=True):
        left, right = edges[0][::2][column : column + 2]
        low, high = edges[1][::2][row : row + 2]
        axes.fill(
            [left, right, right, left],
            [low, low, high, high],
            color=style.ORIGINAL,
            alpha=round(0.1 + 0.5 * shown[column, row] / strongest, 1),
            linewidth=0,
        )
    is_inside = [(released[:, axis] >= edges[axis][0]) & (released[:, axis] <= edges[axis][-1]) for axis in (0, 1)]
    inside = released[is_inside[0] & is_inside[1]][:_MOST_DOTS]
    axes.scatter(inside[:, 0], inside[:, 1], s=2, color=style.RELEASED, linewidths=0)
    axes.set_xlim(edges[0][0], edges[0][-1])
    axes.set_ylim(edges[1][0], edges[1][-1])
