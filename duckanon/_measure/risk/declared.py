"""The functions of this package that SQL can call."""

from __future__ import annotations

import pyarrow as pa

from duckanon._core.common.declare import Report

POPULATION_UNIQUES = pa.schema([("method", pa.string()), ("uniques", pa.float64()), ("chosen", pa.string())])

EXPECTED_COUNTS = pa.schema([("pattern", pa.int64()), ("expected", pa.float64())])

FUNCTIONS = (
    Report(
        name="population_uniques",
        algorithm="duckanon._measure.risk.uniques:population_uniques",
        schema=POPULATION_UNIQUES,
        tables=("histogram",),
    ),
    Report(
        name="expected_counts",
        algorithm="duckanon._measure.risk.log_linear:expected_counts",
        schema=EXPECTED_COUNTS,
        tables=("patterns",),
        caller="anon.population_uniques",
    ),
)
