"""The search for the size of clusters, as ``anon.pica_report`` shows it."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from duckanon.common.arguments import generator
from duckanon.common.reports import report_rows
from duckanon.release.declared import PICA_REPORT
from duckanon.release.pica import Partitioned

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
    tell: Callable[[float], None],
) -> pa.Table:
    """Report the search for a cluster size."""
    if table is None:
        return report_rows([], PICA_REPORT)
    partitioned = Partitioned.of(table, None, log, nulls, basis, clustering, checks, generator(seed))
    found = partitioned.search(reference, tell)
    rows = [
        {
            "step": number,
            "purpose": _PURPOSES[step.stage],
            "cluster_size": round(step.cluster_size),
            **{f"{name}_shift": step.verdict.numbers.get(name) for name in ("distance", "ambiguity", "uncertainty")},
            **{name: step.verdict.numbers.get(name) for name in ("exact_copies", "unique_copies", "near_copies")},
            "passed": step.verdict.passed,
            "chosen": step.cluster_size == found.cluster_size,
        }
        for number, step in enumerate(found.steps, 1)
    ]
    return report_rows(rows, PICA_REPORT)
