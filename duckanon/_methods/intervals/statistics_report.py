"""The report of statistics of boxes with guaranteed ranges; it needs no scipy, which takes a second to import."""

from __future__ import annotations

import pyarrow as pa

from duckanon._core.common.declare import report_rows
from duckanon._methods.intervals import statistics
from duckanon._methods.intervals.boxed_columns import Rows, boxes_of, rows_by_group
from duckanon._methods.intervals.declared import INTERVAL_STATISTICS


def interval_statistics(table: pa.Table | None, *, weights: str | None, unbiased: bool) -> pa.Table:
    """Report means, variances, standard deviations, covariances and correlations with guaranteed ranges."""

    def answer(boxes: pa.Table) -> Rows:
        names, lower, upper, counts, weight = boxes_of(boxes, weights)
        intervals = statistics.interval_statistics(lower, upper, counts, weight, unbiased=unbiased)
        return [{**vars(interval), "columns": [names[index] for index in interval.columns]} for interval in intervals]

    return report_rows(rows_by_group(table, answer), INTERVAL_STATISTICS.schema)
