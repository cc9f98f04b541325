"""Reports over boxes that search: regressions with guaranteed ranges, boxes to leave out, weights."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from duckanon._core.common.arrays import Floats, Ints
from duckanon._core.common.declare import report_rows
from duckanon._methods.intervals import choices, regression
from duckanon._methods.intervals import dismissal as dismissals
from duckanon._methods.intervals import weights as weightings
from duckanon._methods.intervals.boxed_columns import Rows, boxes_of, ends_of, rows_by_group
from duckanon._methods.intervals.declared import BOX_WEIGHTS, DISMISSAL, INTERVAL_REGRESSION


def interval_regression(
    table: pa.Table | None, *, target: str, predictors: Sequence[str], weights: str | None, seconds: float | None
) -> pa.Table:
    """Report the coefficients of a linear regression with guaranteed ranges; the intercept has no predictor."""
    started = time.monotonic()

    def answer(boxes: pa.Table) -> Rows:
        names, lower, upper, counts, weight = boxes_of(boxes, weights)
        index_of = {name.lower(): index for index, name in enumerate(names)}
        wanted = tuple(index_of[name.lower()] for name in predictors)
        left = None if seconds is None else max(seconds - (time.monotonic() - started), 0)  # for this group and others
        coefficients = regression.interval_regression(
            lower, upper, counts, weight, target=index_of[target.lower()], predictors=wanted, seconds=left
        )
        return [
            {**vars(row), "predictor": None if row.predictor is None else names[row.predictor]} for row in coefficients
        ]

    return report_rows(rows_by_group(table, answer), INTERVAL_REGRESSION.schema)


def dismissal(table: pa.Table | None, *, statistic: str, cols: Sequence[str]) -> pa.Table:
    """Report which boxes to leave out of a statistic: all kept, as the papers choose, and with the shift counted."""
    numbers, lower, upper, counts = _numbered(table, cols)
    choice_of_version = dismissals.dismissal(statistic, lower, upper, counts)
    rows = [
        {**_choice(version, choice), "dismissed": numbers[choice.weight == 0].tolist()}
        for version, choice in vars(choice_of_version).items()
    ]
    return report_rows(rows, DISMISSAL.schema)


def box_weights(table: pa.Table | None, *, statistic: str, cols: Sequence[str]) -> pa.Table:
    """Report with which weights to count the boxes in a statistic, in the same three versions."""
    numbers, lower, upper, counts = _numbered(table, cols)
    choice_of_version = weightings.box_weights(statistic, lower, upper, counts)
    rows = []
    for version, choice in vars(choice_of_version).items():
        pairs = zip(numbers.tolist(), choice.weight.tolist(), strict=True)
        weights = [{"box": box, "weight": weight} for box, weight in pairs]
        rows.append({**_choice(version, choice), "weights": weights})
    return report_rows(rows, BOX_WEIGHTS.schema)


def _choice(version: str, choice: choices.Choice) -> dict[str, Any]:
    kept = ("threshold", "privacy", "statistical", "shift", "total", "estimate", "standard_error")
    fields = {name: float(getattr(choice, name)) for name in kept}
    return {"version": version, **fields, "kept_boxes": choice.kept_boxes, "kept_records": choice.kept_records}


def _numbered(table: pa.Table | None, cols: Sequence[str]) -> tuple[Ints, Floats, Floats, Ints]:
    """Return the numbers, ends and records of the boxes, the columns in the order of ``cols``."""
    if table is None:
        raise ValueError("the table has no rows to look at.")
    if table.column("_duckanon_box").null_count:
        raise ValueError('column "box" has NULLs; leave out what is in no box.')
    spelling = {name.lower(): name for name in table.column_names}
    ends = [ends_of(name, table.column(spelling[name.lower()])) for name in cols]
    numbers, counts = (table.column(name).to_numpy().astype(np.int64) for name in ("_duckanon_box", "_duckanon_size"))
    order = np.argsort(numbers, kind="stable")
    low, high = (np.column_stack([pair[side] for pair in ends])[order] for side in (0, 1))
    return numbers[order], low, high, counts[order]
