"""The functions of this package that SQL can call."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from duckanon._core.common.contracts import Between, EstimatesInside, InvariantUnder
from duckanon._core.common.declare import Options, Parameter, Report
from duckanon._core.common.parameters import COLS
from duckanon._core.common.rules import ColumnName, ColumnNames, Flag, Number, OneOf, TableName, Text


def _floats(*names: str) -> list[tuple[str, pa.DataType]]:
    return [(name, pa.float64()) for name in names]


# The column with the number of the group, which the macros replace by what the group's records have in common.
GROUP = "_duckanon_group"
_ENCLOSED = [
    *_floats("estimate", "lower", "upper", "lower_looseness", "upper_looseness", "linear_halfwidth", "standard_error"),
    ("records", pa.int64()),
]
_NUMBER = (GROUP, pa.int64())
_STATISTICS_ROWS = pa.schema([_NUMBER, ("statistic", pa.string()), ("columns", pa.list_(pa.string())), *_ENCLOSED])
_REGRESSION_ROWS = pa.schema([_NUMBER, ("predictor", pa.string()), *_ENCLOSED, *_floats("inner_lower", "inner_upper")])
_COUNTS_ROWS = pa.schema(
    [
        _NUMBER,
        ("certain", pa.int64()),
        ("estimate", pa.float64()),
        ("possible", pa.int64()),
        ("records", pa.int64()),
        *_floats("certain_fraction", "estimate_fraction", "possible_fraction"),
    ]
)
_CHOICE = [
    ("version", pa.string()),
    *_floats("threshold", "privacy", "statistical", "shift", "total", "estimate", "standard_error"),
    ("kept_boxes", pa.int64()),
    ("kept_records", pa.int64()),
]
_WEIGHT = pa.struct([("box", pa.int64()), ("weight", pa.float64())])

_BOXED = Parameter(
    "boxed",
    TableName(),
    "The table of intervals, as `anon.boxes` releases them, or with two columns `x_lo` and `x_hi` for each",
)
_COLS = COLS.having(meaning="The columns of intervals, or of exact numbers and times; times count in days since 1970")
_WEIGHTS = Parameter(
    "weights", ColumnName(null=True), "The column of the records' weights; NULL: all are the same", None
)
_BY = Parameter(
    "by",
    ColumnNames(null=True),
    "Exact columns: an answer for each group of records that agree in them, with the columns of the group first. NULL: "
    "one answer for all records",
    None,
)
_STATISTIC = Parameter(
    "statistic",
    OneOf("mean", "variance", "standard_deviation", "covariance", "correlation", "regression"),
    "The statistic of `cols`, of a regression with the target first",
)


def _check_apart(rows: pa.Schema, *asked: str) -> Callable[[Options], str | None]:
    """Refuse weights and groups that are asked for themselves, and groups that are called like an answer."""

    def check(options: Options) -> str | None:
        named = [options[parameter] for parameter in asked]
        cols = {name.lower() for names in named for name in ([names] if isinstance(names, str) else names)}
        weights = options.get("weights")
        if weights is not None and weights.lower() in cols:
            return f'weights must be a column that is not asked for; got "{weights}".'
        for name in options["by"] or ():
            if name.lower() in cols or name.lower() == (weights or "").lower():
                return f'by must not name a column that is asked for; got "{name}".'
            if name.lower() in rows.names:
                return f'by must not name a column that the answer has too; got "{name}": rename it first.'
        return None

    return check


def _target_is_no_predictor(options: Options) -> str | None:
    """Refuse a target that is to predict itself."""
    if options["target"].lower() in (name.lower() for name in options["predictors"]):
        return f"predictors must be columns other than the target; got {options['predictors']}."
    return None


INTERVAL_STATISTICS = Report(
    name="interval_statistics",
    algorithm="duckanon._methods.intervals.statistics:interval_statistics",
    stage="release",
    summary="Estimates statistics of columns of intervals, each with a guaranteed range.",
    promises=(
        EstimatesInside(),
        InvariantUnder("order", "storage", "others"),
    ),
    parameters=(
        _BOXED,
        _COLS,
        _WEIGHTS,
        Parameter("unbiased", Flag(), "Whether variances of `N` records are multiplied by `N / (N - 1)`", False),
        _BY,
    ),
    checks=(_check_apart(_STATISTICS_ROWS, "cols"),),
    body="anon._interval_statistics",
    schema=_STATISTICS_ROWS,
)

INTERVAL_REGRESSION = Report(
    name="interval_regression",
    algorithm="duckanon._methods.intervals.box_reports:interval_regression",
    stage="release",
    summary="Estimates the coefficients of a linear regression over intervals, each with a guaranteed range.",
    promises=(
        EstimatesInside(),
        InvariantUnder("storage", "columns", "others"),
    ),
    parameters=(
        _BOXED,
        Parameter("target", ColumnName(), "The column that is predicted"),
        Parameter("predictors", ColumnNames(), "The columns that it is predicted from"),
        _WEIGHTS,
        Parameter(
            "seconds",
            Number(0, null=True),
            "When to stop narrowing the ranges, for all groups together; NULL: when they are as narrow as they get",
            None,
        ),
        _BY,
    ),
    checks=(_target_is_no_predictor, _check_apart(_REGRESSION_ROWS, "target", "predictors")),
    body="anon._interval_regression",
    schema=_REGRESSION_ROWS,
)

INTERVAL_COUNTS = Report(
    name="interval_counts",
    algorithm="duckanon._methods.intervals.counts:interval_counts",
    stage="release",
    summary="Counts the records of a boxed table that meet a condition: for certain, at most, and estimated.",
    promises=(
        Between(0, 1, "certain_fraction", "estimate_fraction", "possible_fraction"),
        InvariantUnder("order", "storage", "columns", "others"),
    ),
    parameters=(
        _BOXED,
        Parameter(
            "condition",
            Text("'sbp >= 140 AND age BETWEEN 30 AND 40'"),
            "Comparisons of columns with values, joined by AND, OR, NOT and parentheses. It is read, never run as SQL",
        ),
        _BY,
    ),
    checks=(_check_apart(_COUNTS_ROWS),),
    body="anon._interval_counts",
    schema=_COUNTS_ROWS,
)

DISMISSAL = Report(
    name="dismissal",
    algorithm="duckanon._methods.intervals.box_reports:dismissal",
    stage="release",
    summary="Reports which boxes to leave out of a statistic, and what that costs: width, standard error, shift.",
    promises=(InvariantUnder("storage", "columns", "others"),),
    parameters=(_BOXED, _STATISTIC, _COLS),
    schema=pa.schema([*_CHOICE, ("dismissed", pa.list_(pa.int64()))]),
    rows_by="_numbered_boxes",
)

BOX_WEIGHTS = Report(
    name="box_weights",
    algorithm="duckanon._methods.intervals.box_reports:box_weights",
    stage="release",
    summary="Reports with which weights to count boxes in a statistic, and what that costs: width, standard error, "
    "shift.",
    promises=(InvariantUnder("storage", "columns", "others"),),
    parameters=(_BOXED, _STATISTIC, _COLS),
    schema=pa.schema([*_CHOICE, ("weights", pa.list_(_WEIGHT))]),
    rows_by="_numbered_boxes",
)

FUNCTIONS = (INTERVAL_STATISTICS, INTERVAL_REGRESSION, INTERVAL_COUNTS, DISMISSAL, BOX_WEIGHTS)
