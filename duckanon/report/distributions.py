"""The distribution of a column before and after, in parts that enough people of the original share."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from duckanon._core.common.arrays import Floats

_MOST_PARTS = 8
_DAYS_A_YEAR = 365.2425


def shares_of(name: str, original: pa.ChunkedArray, released: pa.ChunkedArray, least: int) -> list[dict[str, Any]]:
    """Return rows for `duckanon.plot.distributions`; none where the column cannot be cut into two such parts.

    A part has at least `least` originals. A release of labels comes as values drawn from them.
    """
    numbers, others = _numbers(original), _numbers(released)
    if numbers is None or others is None:
        parts, counts, released_counts = _categories(original, released, least)
    else:
        parts, counts, released_counts = _ranges(numbers, others, least)
    if len(parts) < 2:
        return []
    totals = max(sum(counts), 1), max(sum(released_counts), 1)
    return [
        {
            "column_name": name,
            "part": part,
            "original": round(count / totals[0], 2),
            "released": round(released_count / totals[1], 2),
        }
        for part, count, released_count in zip(parts, counts, released_counts, strict=True)
    ]


def _numbers(column: pa.ChunkedArray) -> Floats | None:
    """Return numbers and years as they are written on an axis; None for other columns."""
    kind, column = column.type, column.drop_null()
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        days = np.asarray(column.cast(pa.timestamp("us")).to_numpy().astype("datetime64[D]").astype(float))
        return 1970 + days / _DAYS_A_YEAR
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        values: Floats = np.asarray(column.cast(pa.float64()).to_numpy())
        finite: Floats = values[np.isfinite(values)]
        return finite
    return None


def _ranges(original: Floats, released: Floats, least: int) -> tuple[list[str], Sequence[int], Sequence[int]]:
    """Cut at round numbers; the outermost ranges are open, so that no extreme is told."""
    if len(original) < 2 * least:
        return [], [], []
    low, high = np.quantile(original, [0.05, 0.95])
    if high <= low:
        return [], [], []
    step = 10.0 ** np.floor(np.log10((high - low) / _MOST_PARTS))
    step *= next(factor for factor in (1, 2, 5, 10, 20) if (high - low) / (factor * step) <= _MOST_PARTS - 2)
    cuts = [float(cut) for cut in np.arange(np.floor(low / step) + 1, np.ceil(high / step)) * step]
    while cuts and min(counts := _counted(original, cuts)) < least:
        smallest = counts.index(min(counts))
        cuts.pop(min(smallest, len(cuts) - 1))
    if not cuts:
        return [], [], []
    decimals = max(0, -int(np.floor(np.log10(step) + 1e-9)))
    ends = [f"{cut:.{decimals}f}" if step < 1e6 else f"{cut:g}" for cut in cuts]
    parts = [f"< {ends[0]}", *(f"{a}–{b}" for a, b in itertools.pairwise(ends)), f"≥ {ends[-1]}"]
    return parts, _counted(original, cuts), _counted(released, cuts)


def _counted(values: Floats, cuts: Sequence[float]) -> list[int]:
    counted = np.bincount(np.searchsorted(cuts, values, side="right"), minlength=len(cuts) + 1)
    return [int(count) for count in counted]


def _categories(
    original: pa.ChunkedArray, released: pa.ChunkedArray, least: int
) -> tuple[list[str], Sequence[int], Sequence[int]]:
    """Name categories that enough people have in both tables; all others, missing ones included, are one part."""
    counts, released_counts = (
        {row["values"]: row["counts"] for row in pc.value_counts(column.cast(pa.string()).drop_null()).to_pylist()}
        for column in (original, released)
    )
    common = [value for value, count in counts.items() if count >= least and released_counts.get(value, 0) >= least]
    common = sorted(common, key=lambda value: (-counts[value], value))[: _MOST_PARTS - 1]
    rest, released_rest = (
        len(column) - sum(of.get(value, 0) for value in common)
        for column, of in ((original, counts), (released, released_counts))
    )
    if 0 < rest < least and common:  # the rest would be few people: the rarest of the named ones joins it
        last = common.pop()
        rest, released_rest = rest + counts[last], released_rest + released_counts[last]
    shown, released_shown = ([of[value] for value in common] for of in (counts, released_counts))
    if rest or released_rest:
        return [*common, "others"], [*shown, rest], [*released_shown, released_rest]
    return common, shown, released_shown
