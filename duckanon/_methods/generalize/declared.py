"""The functions of this package that SQL can call."""

from __future__ import annotations

import pyarrow as pa

from duckanon._core.common.declare import ColumnReport, Report

PLAN = pa.schema(
    [
        ("column_name", pa.string()),
        ("method", pa.string()),
        ("covers", pa.string()),
        ("lower", pa.string()),
        ("upper", pa.string()),
        ("label", pa.string()),
        ("rows", pa.int64()),
        ("allowed", pa.int64()),
        ("suppressed_rows", pa.int64()),
    ]
)

PARTITION = pa.schema(
    [
        ("bucket", pa.int64()),
        ("lower", pa.string()),
        ("upper", pa.string()),
        ("rows", pa.int64()),
        ("label", pa.string()),
        ("cost", pa.float64()),
    ]
)
"""Bounds as text, since the report's type is the same for every column. A bucket begins at the roundest number that
parts it from the one before, which is a value only where many rows have it; the column's own ends are NULL."""

FUNCTIONS = (
    Report(
        name="plan",
        algorithm="duckanon._methods.generalize.plans:plan",
        schema=PLAN,
        tables=("table", "population_table"),
    ),
    ColumnReport(
        name="quantile_partition",
        algorithm="duckanon._methods.generalize.partition.column_partitions:quantile",
        schema=PARTITION,
    ),
    ColumnReport(
        name="optimal_partition",
        algorithm="duckanon._methods.generalize.partition.column_partitions:optimal",
        schema=PARTITION,
    ),
)
