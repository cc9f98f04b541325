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
    Release("swap", "duckanon.new_records.baselines:swap"),
    Release("svd_swap", "duckanon.new_records.api:svd_swap", tables=("source",)),
    Release("pica", "duckanon.new_records.api:pica", tables=("source", "reference")),
    Release("spectral_release", "duckanon.new_records.api:spectral_release", tables=("source",)),
    Release("spectral_rhs", "duckanon.new_records.api:spectral_rhs", tables=("source",)),
    Release("rhs", "duckanon.new_records.api:rhs", tables=("source",)),
    Release("additive_noise", "duckanon.new_records.api:additive_noise", tables=("source",)),
    Release("data_shuffle", "duckanon.new_records.api:data_shuffle", tables=("source",)),
    Release("copula_synthesize", "duckanon.new_records.api:copula_synthesize", tables=("source",)),
    Report("pica_report", "duckanon.new_records.functions:pica_report", PICA_REPORT, tables=("table", "reference")),
)
