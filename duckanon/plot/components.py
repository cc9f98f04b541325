"""Kernel components in pairs (Thesis, Figure 3-1), without a place of any single original."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from duckanon._core.common.arrays import Floats
from duckanon.plot import style
from duckanon.plot.reading import rows_of

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
                    shares = shared_shares(values[:, row], edges[row], k)
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


def shared_shares(values: Floats, edges: Floats, k: int) -> Floats:
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
