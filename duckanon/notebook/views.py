"""Views of results of which a table says little: class sizes and compared releases as pictures, numbers below them."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

import duckdb
import pyarrow as pa

CLASS_SIZES = ("class_size", "classes", "rows", "cumulative_fraction")  # the columns of anon.class_sizes
COMPARED = ("release", "kind", "measure", "value", "reference_value")  # columns of anon.compare_releases, among others
MOST_ROWS = 10_000  # a result with more rows is left to the notebook's own view
MOST_BARS = 40

_CELL = "padding:2px 8px;text-align:right"


def of_relation(relation: duckdb.DuckDBPyRelation) -> str | None:
    """Return the HTML of a relation that has a view; None leaves it to the notebook."""
    names = list(relation.columns)
    return view(names, relation.limit(MOST_ROWS + 1).fetchall()) if _has_view(names) else None


def of_result(result: Any) -> str | None:
    """Return the HTML of a result of jupysql: a view of ours, or its own table."""
    html: str | None = result._repr_html_()
    names = [str(name) for name in result.keys]
    return (view(names, [tuple(row) for row in result]) if _has_view(names) else None) or html


def _has_view(names: Sequence[str]) -> bool:
    return tuple(names) == CLASS_SIZES or set(COMPARED) <= set(names)


def view(names: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> str | None:
    """Return the HTML of rows of anon.class_sizes or anon.compare_releases; None where there is no view of them."""
    if not rows or len(rows) > MOST_ROWS:
        return None
    if tuple(names) == CLASS_SIZES:
        return _picture("class_sizes", "Class sizes", names, rows) + _bars(rows)
    if set(COMPARED) <= set(names):
        drawn = _picture("risk_utility", "Risk-utility map", names, rows)
        return drawn + _map([dict(zip(names, row, strict=True)) for row in rows])
    return None


def _picture(kind: str, title: str, names: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> str:
    """Draw rows with `duckanon.plot`; what it has no picture of, such as too few measures, has numbers only."""
    from duckanon import plot  # matplotlib takes a second to load

    table = pa.table({name: [row[place] for row in rows] for place, name in enumerate(names)})
    try:
        svg = plot.svg(getattr(plot, kind)(table), title, "The table below has the same numbers.", "white")
    except (ValueError, TypeError, pa.ArrowException):
        return ""
    return f'<div style="max-width:640px">{svg}</div>'


def _bars(rows: Sequence[tuple[Any, ...]]) -> str:
    """Draw one bar a class size, as long as its share of the rows; sizes beyond the last bar are put together."""
    total = sum(row[2] for row in rows) or 1
    shown = sorted(rows)
    bars = [(str(size), classes, count) for size, classes, count, _ in shown[:MOST_BARS]]
    if len(shown) > MOST_BARS:
        rest = shown[MOST_BARS:]
        bars.append((f"{rest[0][0]} and more", sum(row[1] for row in rest), sum(row[2] for row in rest)))
    longest = max(count for *_, count in bars) or 1
    lines = [
        f'<tr><td style="{_CELL}">{escape(size)}</td><td style="{_CELL}">{classes:,}</td>'
        f'<td style="{_CELL}">{count:,}</td><td style="padding:2px;width:300px;text-align:left">'
        f'<div style="background:#4477aa;height:0.9em;width:{100 * count / longest:.1f}%" role="img" '
        f'aria-label="{count / total:.1%} of the rows"></div></td></tr>'
        for size, classes, count in bars
    ]
    return _table("Class sizes", ["class size", "classes", "rows", "share of the rows"], lines)


def _map(rows: Sequence[dict[str, Any]]) -> str:
    """Draw a row for each measure, a column for each release, and what another sample has beside them."""
    releases = list(dict.fromkeys(str(row["release"]) for row in rows))
    measures = list(dict.fromkeys((str(row["kind"]), str(row["measure"])) for row in rows))
    values = {(str(row["kind"]), str(row["measure"]), str(row["release"])): row["value"] for row in rows}
    samples = {(str(row["kind"]), str(row["measure"])): row["reference_value"] for row in rows}
    lines = []
    for measure in measures:
        row_values = [values.get((*measure, release)) for release in releases]
        largest = max((abs(value) for value in row_values if value is not None), default=0) or 1
        cells = "".join(_shade(value, largest) for value in row_values)
        lines.append(
            f'<tr><td style="text-align:left">{escape(measure[0])}</td><td style="text-align:left">'
            f"{escape(measure[1])}</td>{cells}{_shade(samples[measure], None)}</tr>"
        )
    return _table("Risk and utility", ["kind", "measure", *releases, "another sample"], lines)


def _shade(value: float | None, largest: float | None) -> str:
    """Write a number, the darker the larger it is among those of its row."""
    text = "" if value is None else f"{value:.4g}"
    shade = "" if value is None or largest is None else f";background:rgba(68,119,170,{0.5 * abs(value) / largest:.2f})"
    return f'<td style="{_CELL}{shade}">{text}</td>'


def _table(caption: str, header: Sequence[str], lines: Sequence[str]) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in header)
    return f"<table><caption>{caption}</caption><thead><tr>{head}</tr></thead><tbody>{''.join(lines)}</tbody></table>"
