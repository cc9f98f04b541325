"""Pictures of what an analyst keeps: correlations and distributions before and after."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from duckanon.plot import style
from duckanon.plot.assessment import shaded_cell, square_axes
from duckanon.plot.reading import rows_of

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
                shaded_cell(axes, column, line, abs(value) if known else 0, text, colour)
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
