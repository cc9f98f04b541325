"""The report of a run: of a release, to go with it; of what was not released, to stay at home."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import duckdb

from duckanon.job.promises import Tables


def released(
    con: duckdb.DuckDBPyConnection, run: dict[str, Any], tables: Mapping[str, Tables], *, has_plan: bool
) -> str:
    """Measure what was released, put the numbers into the record, and return the page."""
    from duckanon import report  # matplotlib takes a second to load

    figures = {}
    for entry in run["tables"]:
        names = tables[entry["name"]]
        arguments = (con, names.original, names.released, entry, names.reference)
        hierarchies = names.hierarchies or None
        entry["measures"] = report.measured(*arguments, plan="plan" if has_plan else None, hierarchies=hierarchies)
        figures[entry["name"]] = report.figures(*arguments, hierarchies=hierarchies)
    return report.html(run, figures)


def refused(run: Mapping[str, Any]) -> str:
    """Return the page of a run that broke a promise.

    It has what the record has, numbers that were promised and measured, and no picture and no other number of a table
    that is not safe.
    """
    from duckanon import report

    tables = [{**entry, "output": None, "changes": None} for entry in run["tables"]]
    return report.html({**run, "tables": tables}, {})
