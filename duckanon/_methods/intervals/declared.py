"""The functions of this package that SQL can call."""

from __future__ import annotations

import pyarrow as pa

from duckanon._core.common.declare import Report

_ENCLOSED = [
    ("estimate", pa.float64()),
    ("lower", pa.float64()),
    ("upper", pa.float64()),
    ("lower_looseness", pa.float64()),
    ("upper_looseness", pa.float64()),
    ("linear_halfwidth", pa.float64()),
    ("standard_error", pa.float64()),
    ("records", pa.int64()),
]
_GROUP = ("_duckanon_group", pa.int64())
INTERVAL_STATISTICS = pa.schema([_GROUP, ("statistic", pa.string()), ("columns", pa.list_(pa.string())), *_ENCLOSED])
_ATTAINED = [("inner_lower", pa.float64()), ("inner_upper", pa.float64())]
INTERVAL_REGRESSION = pa.schema([_GROUP, ("predictor", pa.string()), *_ENCLOSED, *_ATTAINED])
INTERVAL_COUNTS = pa.schema(
    [
        _GROUP,
        ("certain", pa.int64()),
        ("estimate", pa.float64()),
        ("possible", pa.int64()),
        ("records", pa.int64()),
        ("certain_fraction", pa.float64()),
        ("estimate_fraction", pa.float64()),
        ("possible_fraction", pa.float64()),
    ]
)

_CHOICE = [
    ("version", pa.string()),
    ("threshold", pa.float64()),
    ("privacy", pa.float64()),
    ("statistical", pa.float64()),
    ("shift", pa.float64()),
    ("total", pa.float64()),
    ("estimate", pa.float64()),
    ("standard_error", pa.float64()),
    ("kept_boxes", pa.int64()),
    ("kept_records", pa.int64()),
]
_WEIGHT = pa.struct([("box", pa.int64()), ("weight", pa.float64())])
DISMISSAL = pa.schema([*_CHOICE, ("dismissed", pa.list_(pa.int64()))])
BOX_WEIGHTS = pa.schema([*_CHOICE, ("weights", pa.list_(_WEIGHT))])

FUNCTIONS = (
    Report(
        name="interval_statistics",
        algorithm="duckanon._methods.intervals.box_reports:interval_statistics",
        schema=INTERVAL_STATISTICS,
    ),
    Report(
        name="interval_regression",
        algorithm="duckanon._methods.intervals.box_reports:interval_regression",
        schema=INTERVAL_REGRESSION,
    ),
    Report(
        name="interval_counts", algorithm="duckanon._methods.intervals.counts:interval_counts", schema=INTERVAL_COUNTS
    ),
    Report(name="dismissal", algorithm="duckanon._methods.intervals.box_reports:dismissal", schema=DISMISSAL),
    Report(name="box_weights", algorithm="duckanon._methods.intervals.box_reports:box_weights", schema=BOX_WEIGHTS),
)
