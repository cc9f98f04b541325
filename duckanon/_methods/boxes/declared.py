"""The functions of this package that SQL can call."""

from __future__ import annotations

import pyarrow as pa

from duckanon._core.common.declare import Release, Report, Scalar

OPTIMAL_UNCERTAINTY = pa.schema(
    [
        ("optimum", pa.float64()),
        ("parts", pa.float64()),
        ("parts_ratio", pa.float64()),
        ("bounds", pa.float64()),
        ("bounds_ratio", pa.float64()),
        ("cell", pa.float64()),
        ("cell_ratio", pa.float64()),
    ]
)

FUNCTIONS = (
    Release(name="boxes", algorithm="duckanon._methods.boxes.boxed_table:boxes"),
    Report(
        name="optimal_uncertainty",
        algorithm="duckanon._methods.boxes.boxed_table:optimal_uncertainty",
        schema=OPTIMAL_UNCERTAINTY,
    ),
    Scalar(
        name="box_halfwidths",
        algorithm="duckanon._methods.boxes.boxed_table:box_halfwidths",
        result=pa.list_(pa.float64()),
    ),
)
