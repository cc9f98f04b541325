"""The search for the size of clusters, as ``anon.pica_report`` shows it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from duckanon._core.common.declare import report_rows
from duckanon._methods.swap.declared import TRIALS
from duckanon._methods.swap.people_swaps import partitioned

_PURPOSES = {"whole": "one cluster", "bisect": "search", "confirm": "confirm"}


def pica_report(
    table: pa.Table | None, reference: pa.Table | None, *, tell: Callable[[float], None], **options: Any
) -> pa.Table:
    """Report the search for a cluster size; the options are those of `people_swaps.partitioned`."""
    if table is None:
        return report_rows([], TRIALS)
    whole, others, _ = partitioned(table, reference, **options)
    search = whole.search(others, tell)
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
    return report_rows(rows, TRIALS)
