"""Answers for each group of records: the boxes of a table are told apart by group, and each group is asked alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from duckanon._core.common import progress
from duckanon._core.common.arrays import run_starts

GROUP = "_duckanon_group"
"""The column with the number of the group, which the macros replace by what the group's records have in common."""

Rows = Iterable[Mapping[str, Any]]


def in_groups(table: pa.Table | None, answer: Callable[[pa.Table], Rows]) -> list[dict[str, Any]]:
    """Return the rows that `answer` makes of the boxes of each group, with its number, in the order of the numbers."""
    if table is None:
        raise ValueError("the table has no rows to look at.")
    group = table.column(GROUP).to_numpy()
    boxes = table.drop_columns([GROUP])
    order = np.argsort(group, kind="stable")
    parts = np.split(order, run_starts(group[order])[1:])
    rows = []
    for place, part in enumerate(parts):
        chosen = boxes if len(parts) == 1 else boxes.take(pa.array(part))  # one group need not be copied
        progress.at(place / len(parts))
        with progress.part(place / len(parts), (place + 1) / len(parts)):
            rows += [{GROUP: int(group[part[0]]), **row} for row in answer(chosen)]
    return rows
