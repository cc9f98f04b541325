"""The functions of this package that SQL can call."""

from __future__ import annotations

import pyarrow as pa

from duckanon.common.declare import Release, Report

PICA_REPORT = pa.schema(
    [
        ("step", pa.int64()),
        ("purpose", pa.string()),
        ("cluster_size", pa.int64()),
        ("distance_shift", pa.float64()),
        ("ambiguity_shift", pa.float64()),
        ("uncertainty_shift", pa.float64()),
        ("exact_copies", pa.float64()),
        ("unique_copies", pa.float64()),
        ("near_copies", pa.float64()),
        ("passed", pa.bool_()),
        ("chosen", pa.bool_()),
    ]
)

FUNCTIONS = (
    Release(name="swap", algorithm="duckanon.new_records.baselines:swap"),
    Release(name="svd_swap", algorithm="duckanon.new_records.api:svd_swap", tables=("source",)),
    Release(name="pica", algorithm="duckanon.new_records.api:pica", tables=("source", "reference")),
    Release(name="spectral_release", algorithm="duckanon.new_records.api:spectral_release", tables=("source",)),
    Release(name="spectral_rhs", algorithm="duckanon.new_records.api:spectral_rhs", tables=("source",)),
    Release(name="rhs", algorithm="duckanon.new_records.api:rhs", tables=("source",)),
    Release(name="additive_noise", algorithm="duckanon.new_records.api:additive_noise", tables=("source",)),
    Release(name="data_shuffle", algorithm="duckanon.new_records.api:data_shuffle", tables=("source",)),
    Release(name="copula_synthesize", algorithm="duckanon.new_records.api:copula_synthesize", tables=("source",)),
    Report(name="pica_report", algorithm="duckanon.new_records.functions:pica_report", schema=PICA_REPORT, tables=("table", "reference")),
)
