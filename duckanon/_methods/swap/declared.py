"""The functions of this package that SQL can call."""

from __future__ import annotations

import pyarrow as pa

from duckanon._core.common.declare import Release, Report

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
    Release("svd_swap", "duckanon._methods.swap.people_swaps:svd_swap", tables=("source",)),
    Release("pica", "duckanon._methods.swap.people_swaps:pica", tables=("source", "reference")),
    Release("spectral_rhs", "duckanon._methods.swap.rhs:spectral_rhs", tables=("source",)),
    Release("rhs", "duckanon._methods.swap.rhs:rhs", tables=("source",)),
    Report("pica_report", "duckanon._methods.swap.pica_report:pica_report", PICA_REPORT, tables=("table", "reference")),
)
