"""Pictures of what an attacker learns: the curves of thesis figure 4-3, and the risk-utility map of releases."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from duckanon._core.common.arrays import Floats
from duckanon.plot import style
from duckanon.plot.style import rows_of, tables_by_name

MEASURES = ("distance", "ambiguity", "uncertainty")
_MOST_POINTS = 100  # of a curve: more are not seen, and each would be one person's


def prediction_curves(relation: Any) -> Figure:
    """Draw the cumulative distributions of prediction distance, ambiguity and uncertainty (Thesis, Figure 4-3).

    The farther right a curve, the better people are protected. A release protects as well as not taking part where its
    curve is not left of that of a reference sample: `{"release": ..., "reference": ...}`. Curves leave out the
    outermost records, which are those of single people.

    Args:
        relation: Rows of `anon.prediction_risk`, or several such relations by name.
    """
    tables = tables_by_name("prediction_curves", relation, "release", MEASURES)
    curves = {
        name: {measure: quantiles(np.asarray(table.column(measure).to_pylist(), dtype=float)) for measure in MEASURES}
        for name, table in tables.items()
    }
    return cumulative_curves(curves)


def quantiles(values: Floats, points: int = _MOST_POINTS) -> tuple[Floats, Floats]:
    """Return shares and quantiles of a curve that does not reach the outermost five values at either end."""
    values = values[np.isfinite(values)]
    outside = min(0.25, 5 / max(len(values), 1))
    shares = np.linspace(outside, 1 - outside, min(points, max(len(values) // 5, 2)))
    return shares, np.quantile(values, shares) if len(values) else np.full(len(shares), np.nan)


def cumulative_curves(curves: dict[str, dict[str, tuple[Floats, Floats]]]) -> Figure:
    """Draw curves that are given as shares and quantiles, by name and measure."""
    figure, all_axes = style.new_figure(6.4, rows=3)
    for axes, measure in zip(all_axes, MEASURES, strict=True):
        for place, (name, of_measures) in enumerate(curves.items()):
            shares, values = of_measures[measure]
            is_reference = name == "reference"
            axes.plot(
                values,
                shares,
                color=style.REFERENCE if is_reference else style.SERIES[place % len(style.SERIES)],
                linestyle="--" if is_reference else style.DASHES[place % len(style.DASHES)],
                linewidth=1.6,
                label=style.plain(name),
            )
        style.percents(axes, 0, 1)
        axes.set_xlim(0, None)
        style.label(axes, measure, "of the people")
    handles, names = all_axes[0].get_legend_handles_labels()
    style.legend(figure, 3, handles=handles, labels=names)
    return figure


def risk_utility(relation: Any, risk: str = "distance", loss: str = "correlation") -> Figure:
    """Draw the risk-utility map of `anon.compare_releases`: a point for each release, best at the lower left.

    A filled point passed all tests of privacy, a cross failed one.

    Args:
        relation: Rows of `anon.compare_releases`.
        risk, loss: The measures on the axes, by their names in the relation.
    """
    needed = ("release", "kind", "measure", "value", "pass")
    rows = rows_of("risk_utility", relation, needed)
    measures = sorted({row["measure"] for row in rows})
    for parameter, measure in (("risk", risk), ("loss", loss)):
        if measure not in measures:
            raise ValueError(
                f"duckanon.plot.risk_utility: {parameter} must be one of {', '.join(measures)}; got {measure}."
            )
    values = {(row["release"], row["measure"]): row["value"] for row in rows}
    failed = {row["release"] for row in rows if row["kind"] == "privacy" and row["pass"] is False}
    points = [
        (name, values[name, risk], values[name, loss])
        for name in sorted({row["release"] for row in rows})
        if values.get((name, risk)) is not None and values.get((name, loss)) is not None
    ]
    figure, (axes,) = style.new_figure(3.4)
    seen: set[str] = set()
    for name, across, up in points:
        meaning = "a privacy test failed" if name in failed else "all privacy tests passed"
        axes.scatter(
            [across],
            [up],
            s=46,
            marker="x" if name in failed else "o",
            color=style.ORIGINAL if name in failed else style.RELEASED,
            label=None if meaning in seen else meaning,
            zorder=3,
        )
        seen.add(meaning)
    axes.set_xlim(*_from_zero([across for _, across, _ in points]))
    axes.set_ylim(*_from_zero([up for _, _, up in points]))
    _name_releases(axes, points)
    style.label(axes, f"risk: {risk}", f"loss: {loss}")
    style.legend(figure, 1)
    return figure


def _from_zero(values: list[float]) -> tuple[float, float]:
    """Return the ends of an axis that has 0 on it and room beyond the values."""
    low, high = min([0.0, *values]), max([0.0, *values])
    room = 0.12 * ((high - low) or 1.0)
    return low - (room if low < 0 else 0.3 * room), high + room


def _name_releases(axes: Any, points: list[tuple[str, float, float]]) -> None:
    """Write the releases' names beside their points; where two are near each other, one is written higher."""
    (left, right), (low, high) = axes.get_xlim(), axes.get_ylim()
    taken: list[tuple[bool, float]] = []
    for name, across, up in sorted(points, key=lambda point: point[2]):
        is_right = across > (left + right) / 2
        height = (up - low) / ((high - low) or 1)
        text_height = height
        while any(side == is_right and abs(text_height - at) < 0.07 for side, at in taken):
            text_height += 0.07
        taken.append((is_right, text_height))
        axes.annotate(
            style.plain(name),
            (across, up),
            xytext=(-8 if is_right else 8, (text_height - height) * 180),
            textcoords="offset points",
            ha="right" if is_right else "left",
            va="center",
            fontsize=style.SMALL,
            color=style.INK,
        )
