"""The functions of this package that SQL can call."""

from __future__ import annotations

import pyarrow as pa

from duckanon.common.declare import Report

QUASI_IDENTIFIERS = pa.schema(
    [
        ("columns", pa.list_(pa.string())),
        ("rows", pa.int64()),
        ("people", pa.int64()),
        ("distinct_observed", pa.int64()),
        ("singletons", pa.int64()),
        ("smallest_class", pa.int64()),
        ("members", pa.int64()),
        ("distinct_product", pa.float64()),
        ("distinct_error", pa.float64()),
        ("singletons_error", pa.float64()),
    ]
)

FUNCTIONS = (
    Report("quasi_identifiers", "duckanon.assess.column_sets:exact", QUASI_IDENTIFIERS),
    Report(
        "sampled_quasi_identifiers",
        "duckanon.assess.column_sets:approximate",
        QUASI_IDENTIFIERS,
        tables=("sampler",),
        collector="duckanon.assess.column_sets:SetSampler",
        caller="anon.quasi_identifiers",
    ),
)
