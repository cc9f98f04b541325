"""The common style of all plots: size, colours, and how names are written.

Everything is set on the figure itself: `matplotlib.rcParams` belong to the user, and to all threads.

The tables that plots take: relations, Arrow tables and whatever gives one, with the columns that a plot needs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

INK = "#1c2128"
"""Text, axes and ticks. In a page it becomes the colour of the text around the picture, see `vector`."""

ORIGINAL = "#b4530a"
RELEASED = "#1263a3"
REFERENCE = "#66707c"
SERIES = (RELEASED, ORIGINAL, REFERENCE, "#2f7d4f", "#8a4fa3")
"""Told apart with all kinds of colour vision; lines also differ by their dashes."""

DASHES: tuple[Any, ...] = ("-", "--", ":", "-.", (0, (6, 1, 1, 1, 1, 1)))
WIDTH = 5.0  # inches: as wide as a phone, where a letter is then as large as in the text beside it
TEXT = 10.0
SMALL = 9.0
HATCHED: dict[str, Any] = {"alpha": 0.75, "hatch": "///", "edgecolor": INK, "linewidth": 0}  # not by colour alone
_LONGEST_NAME = 24
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff\ufffe\uffff]")


def new_figure(height: float, rows: int = 1, columns: int = 1, **options: Any) -> tuple[Figure, list[Axes]]:
    """Return an empty figure and its axes, row by row."""
    figure = Figure(figsize=(WIDTH, height), layout="constrained")
    axes = list(figure.subplots(rows, columns, squeeze=False, **options).flat)
    for ax in axes:
        ax.set_facecolor("none")
        ax.tick_params(labelsize=SMALL, colors=INK, labelcolor=INK, length=3)
        for side, spine in ax.spines.items():
            spine.set_color(INK)
            spine.set_visible(side in ("left", "bottom"))
    return figure, axes


def label(axes: Axes, across: str = "", up: str = "", title: str = "") -> None:
    """Name the axes."""
    axes.set_xlabel(plain(across, 80), fontsize=TEXT, color=INK)
    axes.set_ylabel(plain(up, 80), fontsize=TEXT, color=INK)
    if title:
        axes.set_title(plain(title, 40), fontsize=TEXT, color=INK)


def percents(axes: Axes, low: float | None = None, high: float | None = None) -> None:
    """Write the shares of the vertical axis in percent, and set the ends that are given."""
    axes.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    if low is not None:
        axes.set_ylim(low, high)


def legend(figure: Figure, columns: int, **options: Any) -> None:
    """Say above the picture which colour is what."""
    figure.legend(
        loc="outside upper left",
        ncols=columns,
        frameon=False,
        fontsize=SMALL,
        labelcolor=INK,
        borderpad=0,
        handlelength=2.6,
        **options,
    )


def plain(name: str, longest: int = _LONGEST_NAME) -> str:
    r"""Write a name so that matplotlib shows it as it is: no formulas between dollars, no control characters.

    Examples:
        >>> plain("$x$")
        '\\$x\\$'
        >>> plain("a name that does not fit on an axis")
        'a name that does not fi…'
    """
    shown = _CONTROL.sub("\N{REPLACEMENT CHARACTER}", str(name))
    shown = shown if len(shown) <= longest else shown[: longest - 1] + "…"
    return shown.replace("$", r"\$")


def together(names: Sequence[str]) -> str:
    """Write a set of columns."""
    return " + ".join(names)


_WAYS = ("to_arrow_table", "fetch_arrow_table", "arrow", "to_arrow")  # methods that give an Arrow table; the first


def table_of(plot: str, relation: Any, columns: Sequence[str] = ()) -> pa.Table:
    """Return a relation as an Arrow table that has rows and the columns that a plot needs.

    A TypeError refuses what is no table, a ValueError a table without rows or columns, by the name of the plot.
    """
    table = _arrow(relation)
    if table is None:
        raise TypeError(
            f"duckanon.plot.{plot}: relation must be a DuckDB relation or an Arrow table; "
            f"got {type(relation).__name__}."
        )
    missing = [name for name in columns if name not in table.column_names]
    if missing:
        raise ValueError(
            f"duckanon.plot.{plot}: relation must have the columns {', '.join(columns)}; "
            f"got {', '.join(table.column_names)}."
        )
    if not table.num_rows:
        raise ValueError(f"duckanon.plot.{plot}: relation must have rows; got none.")
    return table


def rows_of(plot: str, relation: Any, columns: Sequence[str]) -> list[dict[str, Any]]:
    """Return some columns of a relation, row by row."""
    rows: list[dict[str, Any]] = table_of(plot, relation, columns).select(columns).to_pylist()
    return rows


def tables_by_name(plot: str, relations: Any, name: str, columns: Sequence[str]) -> dict[str, pa.Table]:
    """Return several relations by the names of a mapping; one relation alone has the given name."""
    by_name = relations if isinstance(relations, Mapping) else {name: relations}
    if not by_name:
        raise ValueError(f"duckanon.plot.{plot}: relation must be a relation or several by name; got none.")
    return {str(name): table_of(plot, relation, columns) for name, relation in by_name.items()}


def _arrow(relation: Any) -> pa.Table | None:
    if isinstance(relation, pa.RecordBatch):
        return pa.Table.from_batches([relation])
    for way in _WAYS:
        if not isinstance(relation, pa.Table) and callable(getattr(relation, way, None)):
            relation = getattr(relation, way)()
    if callable(getattr(relation, "read_all", None)):  # DuckDB's arrow() gives a reader
        relation = relation.read_all()
    return relation if isinstance(relation, pa.Table) else None
