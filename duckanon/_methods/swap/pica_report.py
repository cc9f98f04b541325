"""The search for the size of clusters, as ``anon.pica_report`` shows it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from duckanon._core.common.arguments import generator
from duckanon._core.common.declare import report_rows
from duckanon._methods.swap.declared import PICA_REPORT
from duckanon._methods.swap.pica import Partitioned
from duckanon._methods.swap.plain_columns import PlainColumns, Settings

_PURPOSES = {"whole": "one cluster", "bisect": "search", "confirm": "confirm"}


def pica_report(
    table: pa.Table | None,
    reference: pa.Table | None,
    *,
    basis: str,
    clustering: str,
    log: list[str] | None,
    nulls: str,
    checks: str,
    seed: int | None,
    k: int,
    special: Any,
    categories: list[str] | None,
    derived: str,
    tell: Callable[[float], None],
) -> pa.Table:
    """Report the search for a cluster size."""
    if table is None:
        return report_rows([], PICA_REPORT)
    settings = Settings(k, special, categories, derived)
    places = None
    if not settings.as_in_thesis:
        plain = PlainColumns.of(table, reference, nulls, settings, generator(seed).spawn(1)[0])
        table, reference, log, places = plain.table, plain.reference, plain.log(log), plain.places
    partitioned = Partitioned.of(table, None, log, nulls, basis, clustering, checks, generator(seed), places)
    search = partitioned.search(reference, tell)
    rows = [
        {
            "step": number,
            "purpose": _PURPOSES[step.stage],
            "cluster_size": round(step.cluster_size),
            **{f"{name}_shift": step.verdict.numbers.get(name) for name in ("distance", "ambiguity", "uncertainty")},
            **{name: step.verdict.numbers.get(name) for name in ("exact_copies", "unique_copies", "near_copies")},
            "passed": step.verdict.passed,
            "chosen": step.cluster_size == search.cluster_size,
        }
        for number, step in enumerate(search.steps, 1)
    ]
    return report_rows(rows, PICA_REPORT)
