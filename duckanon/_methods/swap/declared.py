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
    Release(name="svd_swap", algorithm="duckanon._methods.swap.people_swaps:svd_swap", tables=("source",)),
    Release(name="pica", algorithm="duckanon._methods.swap.people_swaps:pica", tables=("source", "reference")),
    Release(name="spectral_rhs", algorithm="duckanon._methods.swap.rhs:spectral_rhs", tables=("source",)),
    Release(name="rhs", algorithm="duckanon._methods.swap.rhs:rhs", tables=("source",)),
    Report(
        name="pica_report",
        algorithm="duckanon._methods.swap.pica_report:pica_report",
        schema=PICA_REPORT,
        tables=("table", "reference"),
    ),
)
