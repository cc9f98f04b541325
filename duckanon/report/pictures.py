"""The pictures of a report about one table, drawn from numbers that may leave with the release.

The distribution of a column before and after, in parts that enough people of the original share.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import duckdb
import matplotlib.figure
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from duckanon import plot
from duckanon._core.common.arrays import Floats
from duckanon._core.common.release_record import TableEntry
from duckanon._measure.coarse.coarse_tables import read_tables
from duckanon.plot.assessment import class_bands
from duckanon.plot.privacy import MEASURES, cumulative_curves
from duckanon.plot.style import table_of
from duckanon.report.measures import measured
from duckanon.report.safe import k_of_release, significant
from duckanon.report.tables import Pair, comparable, literal, name_list, quote, sample_tables

_MOST_PARTS = 8
_DAYS_A_YEAR = 365.2425


def shares_of(name: str, original: pa.ChunkedArray, released: pa.ChunkedArray, least: int) -> list[dict[str, Any]]:
    """Return rows for `duckanon.plot.distributions`; none where the column cannot be cut into two such parts.

    A part has at least `least` originals. A release of labels comes as values drawn from them.
    """
    numbers, released_numbers = _numbers(original), _numbers(released)
    if numbers is None or released_numbers is None:
        parts, counts, released_counts = _categories(original, released, least)
    else:
        parts, counts, released_counts = _ranges(numbers, released_numbers, least)
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
    while cuts and min(counts := _count_bins(original, cuts)) < least:
        smallest = counts.index(min(counts))
        cuts.pop(min(smallest, len(cuts) - 1))
    if not cuts:
        return [], [], []
    decimals = max(0, -int(np.floor(np.log10(step) + 1e-9)))
    ends = [f"{cut:.{decimals}f}" if step < 1e6 else f"{cut:g}" for cut in cuts]
    parts = [f"< {ends[0]}", *(f"{a}–{b}" for a, b in itertools.pairwise(ends)), f"≥ {ends[-1]}"]
    return parts, _count_bins(original, cuts), _count_bins(released, cuts)


def _count_bins(values: Floats, cuts: Sequence[float]) -> list[int]:
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


_ATTACKED = 1_000
_CURVE_POINTS = 19  # of a curve in a report: every twentieth part of the people
_MOST_COLUMNS = 9
_COLUMNS_A_PICTURE = 2  # of distributions: two rows of pictures fit on a printed page
_DISTRIBUTIONS = "Distributions before and after"
_COMPONENTS = "Kernel components in pairs"
_PREDICTION = "How near released records come to people"


@dataclass(frozen=True)
class Figure:
    """A picture in a report.

    Attributes:
        title: Its heading.
        svg: The element, with `alt` inside; empty for a picture that could not be drawn, which the page says.
        alt: What it shows, for somebody who does not see it.
        caption: How to read it.
        part: The part of the report where it stands: `classes`, `prediction` or `utility`.
    """

    title: str
    svg: str
    alt: str
    caption: str
    part: str


def figures(
    con: duckdb.DuckDBPyConnection,
    original: str,
    released: str,
    table: TableEntry,
    reference: str | None = None,
    *,
    hierarchies: Mapping[str, str] | None = None,
) -> list[Figure]:
    """Draw the pictures of a release: class sizes, prediction curves, correlations, distributions, kernel components.

    Args:
        con, original, released, table, reference, hierarchies: As `duckanon.report.measured` takes them; what it
            returned is expected in `table["measures"]`, and measured otherwise.

    Returns:
        In the order of the report; those that this release has no numbers for are left out, and those that could not be
        drawn have no `svg`.
    """
    measures = table.get("measures") or measured(con, original, released, table, reference, hierarchies=hierarchies)
    pair = Pair(con, original, released, table, hierarchies or {})
    drawn = [_class_figure(measures), _correlation_figure(measures)]
    with sample_tables(pair) as (sample, rows_per_person):
        columns = comparable(
            sample, [name for name in pair.columns_of_people if name not in measures.get("erased", ())]
        )
        least = k_of_release(table) * rows_per_person
        if columns:
            for start in range(0, min(len(columns), _MOST_COLUMNS), _COLUMNS_A_PICTURE):
                group = columns[start : start + _COLUMNS_A_PICTURE]
                draw = functools.partial(_distribution_figure, sample, group, least)
                drawn.append(_try_picture(f"{_DISTRIBUTIONS}: {', '.join(group)}", "utility", draw))
            drawn.append(_try_picture(_COMPONENTS, "utility", lambda: _component_figure(sample, columns, least)))
            if reference:
                draw = functools.partial(_prediction_figure, sample, columns, reference)
                drawn.insert(1, _try_picture(_PREDICTION, "prediction", draw))
    return [figure for figure in drawn if figure]


def _try_picture(title: str, part: str, draw: Callable[[], Figure | None]) -> Figure | None:
    """Draw a picture; where tables are too small or too uniform the functions of `anon` refuse, and that is said."""
    try:
        return draw()
    except (duckdb.Error, ValueError):
        reason = "the tables have too few rows or too few different values."
        return Figure(title, "", "", f"It could not be drawn: {reason}", part)


def _figure(title: str, drawn: matplotlib.figure.Figure, alt: str, caption: str, part: str) -> Figure:
    return Figure(title, plot.svg(drawn, title, alt), alt, caption, part)


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def _class_figure(measures: Mapping[str, Any]) -> Figure | None:
    classes = measures["classes"]
    if not classes:
        return None
    shares = {
        when: np.array([band["fraction"] or 0.0 for band in classes[when]["bands"]])
        for when in ("before", "after")
        if classes[when] and any(band["fraction"] is not None for band in classes[when]["bands"])
    }
    if not shares:
        return None
    names = [band["size"] for band in classes["before"]["bands"]]
    alt = "; ".join(
        f"{when}: "
        + ", ".join(f"{_percent(share)} in classes of {name}" for name, share in zip(names, of, strict=True) if share)
        for when, of in shares.items()
    )
    return _figure(
        "How many people look the same",
        class_bands(names, shares),
        f"Bar chart of the share of rows by class size. {alt}.",
        "The height of a bar is the share of the rows in classes of the size below it. Shares before the release are "
        "rounded.",
        "classes",
    )


def _correlation_figure(measures: Mapping[str, Any]) -> Figure | None:
    rows = (measures["utility"] or {}).get("correlations") or []
    if not rows or all(row["original"] is None for row in rows):
        return None
    relation = pa.table(
        {
            "statistic": ["correlation"] * len(rows),
            "column_name": [row["column"] for row in rows],
            "other_column": [row["other"] for row in rows],
            "original": pa.array([row["original"] for row in rows], pa.float64()),
            "released": pa.array([row["released"] for row in rows], pa.float64()),
        }
    )
    largest = measures["utility"]["largest_correlation_difference"]
    return _figure(
        "Correlations before and after",
        plot.correlations(relation),
        f"Table of {len(rows)} correlations, original and released. The largest difference of all correlations, those "
        f"of categories included, is {largest}.",
        "Correlations of the original are above the diagonal, those of the release below it; the more similar the two "
        "halves, the better.",
        "utility",
    )


def distribution_rows(sample: Pair, columns: Sequence[str], least: int) -> list[dict[str, Any]]:
    """Return shares of parts of columns before and after; of a coarse release, of values drawn from its cells."""
    chosen = ", ".join(map(quote, columns))
    original, released = (
        table_of("distributions", sample.con.sql(f"SELECT {chosen} FROM {name}"))
        for name in (sample.original, sample.released)
    )
    options = sample.options().removeprefix(", hierarchies := ") or "NULL"
    hierarchies: Any = sample.rows(f"FROM anon._hierarchies('anon.utility', {options})")
    drawn = read_tables(original, released, hierarchies).draw_values(np.random.default_rng())
    return [row for name in columns for row in shares_of(name, original.column(name), drawn.column(name), least)]


def _distribution_figure(sample: Pair, columns: Sequence[str], least: int) -> Figure | None:
    """Draw the distributions of columns."""
    rows = distribution_rows(sample, columns, least)
    if not rows:
        return None
    shown = list(dict.fromkeys(row["column_name"] for row in rows))
    farthest = max(rows, key=lambda row: abs(row["original"] - row["released"]))
    return _figure(
        f"{_DISTRIBUTIONS}: {', '.join(shown)}",
        plot.distributions(pa.Table.from_pylist(rows)),
        f"Pairs of bars for {', '.join(shown)}: shares of the original and of the release. The largest difference of "
        f"two bars is {_percent(abs(farthest['original'] - farthest['released']))}, in {farthest['column_name']}.",
        "Each pair of bars is a range or a category. Where the release has ranges or groups, a value within them is "
        f"drawn for each row. Bars of fewer than {least} rows of the original are merged with their neighbours.",
        "utility",
    )


def _component_figure(sample: Pair, columns: Sequence[str], least: int) -> Figure:
    relation = sample.con.sql(
        f"""FROM anon.kernel_components({literal(sample.original)}, {literal(sample.released)}, {name_list(columns)},
                                        components := 3{sample.options()})"""
    )
    return _figure(
        _COMPONENTS,
        plot.kernel_components(relation, least),
        "The distributions of original and released records along three components on the diagonal, and in pairs "
        "beside it. The table of components has their distances.",
        "A component sums up how columns vary together, beyond correlations. Relations between columns are kept if the "
        "lines coincide and the dots are on the shaded ground.",
        "utility",
    )


def _prediction_figure(sample: Pair, columns: Sequence[str], reference: str) -> Figure | None:
    columns = [name for name in columns if name in sample.columns_of(reference)]
    if not columns:
        return None
    curves: dict[str, Any] = {}
    for name, table in (("release", sample.released), ("reference", reference)):
        rows = sample.rows(
            f"""SELECT distance, ambiguity, uncertainty
                FROM anon.prediction_risk({literal(sample.original)}, {literal(table)}, {name_list(columns)},
                                          sample := {_ATTACKED}{sample.options()})"""
        )
        curves[name] = {measure: _curve([row[measure] for row in rows]) for measure in MEASURES}
    middles = [
        f"median {measure} {curves['release'][measure][1][_CURVE_POINTS // 2]:g}, "
        f"reference {curves['reference'][measure][1][_CURVE_POINTS // 2]:g}"
        for measure in MEASURES
    ]
    return _figure(
        _PREDICTION,
        cumulative_curves(curves),
        f"Cumulative curves of three measures for the release and a reference sample: {'; '.join(middles)}.",
        "If a curve is not left of the dashed one, released records are no nearer to the people in the release than "
        "records of others are.",
        "prediction",
    )


def _curve(values: Sequence[float | None]) -> tuple[Any, Any]:
    """Return shares and rounded quantiles, which leave out the outermost twentieth at both ends."""
    known = np.array([value for value in values if value is not None and np.isfinite(value)])
    shares = np.linspace(0.05, 0.95, _CURVE_POINTS)
    return shares, np.array([significant(value, 3) for value in np.quantile(known, shares)])
