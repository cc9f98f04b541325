"""Pictures of who can be picked out of a table: column sets on the curve of Figure 1, as a heat map, class sizes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from duckanon._core.common.arrays import Floats
from duckanon.plot import style
from duckanon.plot.style import rows_of, tables_by_name

BAND_STARTS = (1, 2, 3, 5, 10, 20, 50, 100, 1000)
_MOST_COLUMNS = 14  # of a heat map: more names are not readable on a phone
_LINE_APART = 0.09  # of two labels, as a share of the axis


def quasi_identifiers(relation: Any, labels: int = 5) -> Figure:
    """Draw the column sets of `anon.quasi_identifiers` on the quasi-identifier curve.

    The curve is the largest expected share of unique rows when a set of columns takes D values in a population of n
    (Probabilistic Anonymity, Figure 1): D / (e n) up to n values, e^(-n/D) above. Each point is a set of columns, at
    the share of people who are unique in it.

    Args:
        relation: Rows of `anon.quasi_identifiers`.
        labels: How many sets are named at most, those with most unique people first.
    """
    needed = ("columns", "unique_fraction", "unique_fraction_bound", "quasi_identifier_in_table")
    rows = rows_of("quasi_identifiers", relation, needed)
    rows.sort(key=lambda row: (-row["unique_fraction"], len(row["columns"]), row["columns"]))
    places = np.array([_values_per_person(row["unique_fraction_bound"]) for row in rows])
    shares = np.array([row["unique_fraction"] for row in rows])
    flagged = np.array([bool(row["quasi_identifier_in_table"]) for row in rows])
    figure, (axes,) = style.new_figure(3.4)
    lowest, highest = min(0.01, places.min() / 2), max(100.0, places.max() * 2)
    curve = np.geomspace(lowest, highest, 200)
    bound = np.where(curve <= 1, curve / math.e, np.exp(-1 / np.maximum(curve, 1.0)))
    axes.plot(curve, bound, color=style.INK, linewidth=1.2, label="at most, by the number of values")
    for is_flagged, colour, shape, name in (
        (False, style.REFERENCE, "o", "column set"),
        (True, style.ORIGINAL, "D", "column set that picks people out"),
    ):
        chosen = flagged == is_flagged
        if chosen.any():
            axes.scatter(places[chosen], shares[chosen], s=22, color=colour, marker=shape, label=name, zorder=3)
    axes.set_xscale("log")
    axes.set_xlim(lowest, highest)
    axes.set_ylim(-0.03, 1.05)
    style.percents(axes)
    style.label(axes, "different values for each person of the population", "unique people")
    _name_points(axes, [row["columns"] for row in rows], places, shares, labels)
    style.legend(figure, 1)
    return figure


def _values_per_person(bound: float) -> float:
    """Invert the curve, which tells the place of a set whatever population its row was computed for."""
    if bound <= 1 / math.e:
        return max(math.e * bound, 1e-6)
    return -1 / math.log(min(bound, 1 - 1e-6))


def _name_points(axes: Axes, sets: Sequence[Sequence[str]], places: Floats, shares: Floats, most: int) -> None:
    """Name sets in the upper left, where no point can be, with a line to each; none that has a named one within."""
    named: list[set[str]] = []
    for columns, place, share in zip(sets, places, shares, strict=True):
        if len(named) < most and not any(smaller <= set(columns) for smaller in named):
            named.append(set(columns))
            axes.annotate(
                style.plain(style.together(columns), 30),
                (place, share),
                xytext=(0.02, 0.97 - _LINE_APART * len(named)),
                textcoords="axes fraction",
                va="center",
                fontsize=style.SMALL,
                color=style.INK,
                arrowprops={"arrowstyle": "-", "color": style.INK, "linewidth": 0.4},
            )


def column_sets(relation: Any) -> Figure:
    """Draw the column sets of `anon.quasi_identifiers` as a heat map: the share of unique people by pair.

    The diagonal has the columns by themselves. Pairs that the relation does not list are marked by a dot.

    Args:
        relation: Rows of `anon.quasi_identifiers`; sets of more than two columns are left out.
    """
    rows = rows_of("column_sets", relation, ("columns", "unique_fraction"))
    alone = {frozenset(row["columns"]): row["unique_fraction"] for row in rows if len(row["columns"]) <= 2}
    if not alone:
        raise ValueError("duckanon.plot.column_sets: relation must have sets of one or two columns; got none.")
    worst: dict[str, float] = {}
    for together, share in alone.items():
        for name in together:
            worst[name] = max(worst.get(name, 0.0), share)
    names = sorted(worst, key=lambda name: (-worst[name], name))[:_MOST_COLUMNS]
    figure, (axes,) = style.new_figure(1.2 + 0.36 * len(names))
    for row, first in enumerate(names):
        for column, second in enumerate(names[: row + 1]):
            share = alone.get(frozenset((first, second)))
            if share is None:
                axes.text(column, row, "·", ha="center", va="center", fontsize=style.SMALL, color=style.INK)
            else:
                draw_cell(axes, column, row, share, f"{100 * share:.0f}")
    square_axes(axes, names)
    style.label(axes, "unique, in % of the people; · not listed")
    return figure


def draw_cell(axes: Axes, column: float, row: float, strength: float, text: str, colour: str = style.ORIGINAL) -> None:
    """Draw a cell of a heat map: one colour, the stronger the more, so that it reads on light and dark pages."""
    strength = min(max(strength, 0.0), 1.0)
    axes.add_patch(
        Rectangle((column - 0.5, row - 0.5), 1, 1, facecolor=colour, alpha=0.06 + 0.6 * strength, linewidth=0)
    )
    axes.text(column, row, text, ha="center", va="center", fontsize=style.SMALL - 1, color=style.INK)


def square_axes(axes: Axes, names: Sequence[str]) -> None:
    """Name the rows and columns of a heat map."""
    places = range(len(names))
    axes.set_xlim(-0.5, len(names) - 0.5)
    axes.set_ylim(len(names) - 0.5, -0.5)
    shown = [style.plain(name, 14) for name in names]
    axes.set_xticks(places, shown, rotation=45 if len(names) > 3 else 0, ha="right" if len(names) > 3 else "center")
    axes.set_yticks(places, shown)
    axes.tick_params(length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)


def class_sizes(relation: Any) -> Figure:
    """Draw how many rows are in small classes: the rows of `anon.class_sizes`, in bands of sizes.

    Args:
        relation: Rows of `anon.class_sizes`, or several such relations by name: `{"before": ..., "after": ...}`.
    """
    tables = tables_by_name("class_sizes", relation, "rows", ("class_size", "rows"))
    starts = np.array(BAND_STARTS)
    shares = {}
    for name, table in tables.items():
        sizes = np.maximum(np.asarray(table.column("class_size").to_pylist(), float), 1.0)
        rows = np.asarray(table.column("rows").to_pylist(), float)
        bands = np.searchsorted(starts, sizes, side="right") - 1
        shares[name] = np.bincount(bands, weights=rows, minlength=len(starts)) / max(rows.sum(), 1.0)
    return class_bands([band_name(index) for index in range(len(starts))], shares)


def band_name(index: int) -> str:
    """Write the sizes of a band: 1, 2, 3–4, ... 1000+."""
    start = BAND_STARTS[index]
    if index + 1 == len(BAND_STARTS):
        return f"{start}+"
    last = BAND_STARTS[index + 1] - 1
    return str(start) if last == start else f"{start}–{last}"


def class_bands(bands: Sequence[str], shares: dict[str, Floats]) -> Figure:
    """Draw shares of rows by bands of class sizes, one bar for each name in every band."""
    figure, (axes,) = style.new_figure(2.9)
    colours = (style.RELEASED,) if len(shares) == 1 else (style.ORIGINAL, style.RELEASED, *style.SERIES[2:])
    width = 0.84 / len(shares)
    for place, (name, heights) in enumerate(shares.items()):
        at = np.arange(len(bands)) + (place - (len(shares) - 1) / 2) * width
        bars = axes.bar(at, heights, width * 0.94, color=colours[place % len(colours)], label=style.plain(name))
        if place % 2 == 0 and len(shares) > 1:
            for bar in bars:
                bar.set(**style.HATCHED)
    axes.set_xticks(range(len(bands)), bands, rotation=30, ha="right")
    style.percents(axes, 0)
    style.label(axes, "people who look the same", "share of the rows")
    if len(shares) > 1:
        style.legend(figure, 3)
    return figure
