"""The pictures of a report about one table, drawn from numbers that may leave with the release."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import duckdb
import matplotlib.figure
import numpy as np
import pyarrow as pa

from duckanon import plot
from duckanon._core.common.release_record import TableEntry
from duckanon._measure.coarse.tables import judged
from duckanon.plot.assessment import class_bands
from duckanon.plot.privacy import MEASURES, cumulative_curves
from duckanon.plot.reading import table_of
from duckanon.report.distributions import shares_of
from duckanon.report.measures import measured
from duckanon.report.safe import promised_k, significant
from duckanon.report.tables import Pair, comparable, literal, name_list, quoted, sampled

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
    with sampled(pair) as (sample, rows_per_person):
        columns = comparable(sample, [name for name in pair.described if name not in measures.get("erased", ())])
        least = promised_k(table) * rows_per_person
        if columns:
            for start in range(0, min(len(columns), _MOST_COLUMNS), _COLUMNS_A_PICTURE):
                group = columns[start : start + _COLUMNS_A_PICTURE]
                draw = functools.partial(_distribution_figure, sample, group, least)
                drawn.append(_tried(f"{_DISTRIBUTIONS}: {', '.join(group)}", "utility", draw))
            drawn.append(_tried(_COMPONENTS, "utility", lambda: _component_figure(sample, columns, least)))
            if reference:
                draw = functools.partial(_prediction_figure, sample, columns, reference)
                drawn.insert(1, _tried(_PREDICTION, "prediction", draw))
    return [figure for figure in drawn if figure]


def _tried(title: str, part: str, draw: Callable[[], Figure | None]) -> Figure | None:
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
    chosen = ", ".join(map(quoted, columns))
    original, released = (
        table_of("distributions", sample.con.sql(f"SELECT {chosen} FROM {name}"))
        for name in (sample.original, sample.released)
    )
    options = sample.options().removeprefix(", hierarchies := ") or "NULL"
    hierarchies: Any = sample.rows(f"FROM anon._hierarchies('anon.utility', {options})")
    drawn = judged(original, released, hierarchies).drawn(np.random.default_rng())
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
