"""The functions of this package that SQL can call."""

from __future__ import annotations

import pyarrow as pa

from duckanon._core.common.declare import Report

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

SPECIAL_UNIQUES = pa.schema(
    [
        ("class", pa.uint64()),
        ("sets_by_size", pa.list_(pa.int64())),
        ("suda_score", pa.float64()),
        ("dis_score", pa.float64()),
        ("contributions", pa.list_(pa.float64())),
    ]
)
SPECIAL_UNIQUE_COLUMNS = pa.schema(
    [("place", pa.int64()), ("unique_sets", pa.int64()), ("rows", pa.int64()), ("contribution", pa.float64())]
)

ASSESS = pa.schema(
    [
        ("place", pa.int64()),
        ("role", pa.string()),
        ("why", pa.string()),
        ("unique_growth", pa.float64()),
        ("determines", pa.list_(pa.string())),
        ("determined_by", pa.list_(pa.string())),
    ]
)

FUNCTIONS = (
    Report(name="assess", algorithm="duckanon._measure.assess.glance:assess", schema=ASSESS),
    Report(name="quasi_identifiers", algorithm="duckanon._measure.assess.column_sets:exact", schema=QUASI_IDENTIFIERS),
    Report(
        name="sampled_quasi_identifiers",
        algorithm="duckanon._measure.assess.column_sets:approximate",
        schema=QUASI_IDENTIFIERS,
        tables=("sampler",),
        collector="duckanon._measure.assess.column_sets:SetSampler",
        caller="anon.quasi_identifiers",
    ),
    Report(
        name="special_uniques",
        algorithm="duckanon._measure.assess.special_uniques:special_uniques",
        schema=SPECIAL_UNIQUES,
    ),
    Report(
        name="special_unique_columns",
        algorithm="duckanon._measure.assess.special_uniques:special_unique_columns",
        schema=SPECIAL_UNIQUE_COLUMNS,
    ),
)
