"""The functions of this package that SQL can call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from duckanon._core.common import parameters as shared
from duckanon._core.common.contracts import (
    TABLE,
    AtLeastKPeople,
    BucketsOfKRows,
    InvariantUnder,
    KeepsRows,
    KeepsTypes,
    KeepsValues,
    OnlyColumns,
    TrueLabels,
)
from duckanon._core.common.declare import ColumnReport, Options, Parameter, Release, Report
from duckanon._core.common.rules import ColumnName, MapOf, Number, OneOf, TableName, Whole

METHODS = ("hierarchy", "interval", "round", "calendar", "prefix", "top")

PLAN_ROWS = pa.schema(
    [(name, pa.string()) for name in ("column_name", "method", "covers", "lower", "upper", "label")]
    + [(name, pa.int64()) for name in ("rows", "allowed", "suppressed_rows")]
)

# Bounds as text, since the report's type is the same for every column. A bucket begins at the roundest number that
# parts it from the one before, which is a value only where many rows have it; the column's own ends are NULL.
PARTITION_ROWS = pa.schema(
    [
        ("bucket", pa.int64()),
        ("lower", pa.string()),
        ("upper", pa.string()),
        ("rows", pa.int64()),
        ("label", pa.string()),
        ("cost", pa.float64()),
    ]
)


@dataclass(frozen=True)
class Population:
    """The number of people, or a table of them: its name in SQL, a DataFrame in Python; None too."""

    def holds(self, value: Any) -> bool:
        """Tell whether a value is allowed."""
        return TableName(null=True).holds(value) or Number(2).holds(value) or hasattr(value, "columns")

    def __str__(self) -> str:
        return "NULL or a finite number of at least k, or the name of a table, in quotes"


def _population_is_enough(options: Options) -> str | None:
    """Refuse a population that has fewer people than a class."""
    if isinstance(options["population"], int | float) and options["population"] < options["k"]:
        return f"population must be {Population()}; got {options['population']}."
    return None


def _methods_exist(options: Options) -> str | None:
    """Refuse methods that do not exist, and a hierarchy's where there is none."""
    trees = {name.lower() for name in options["hierarchies"] or ()}
    for name, method in (options["methods"] or {}).items():
        if method not in METHODS:
            return f'the method of column "{name}" must be one of {", ".join(METHODS)}; got {method}.'
        if method == "hierarchy" and name.lower() not in trees:
            return f'the method hierarchy needs a hierarchy for column "{name}"; name one in hierarchies.'
    return None


_FITTING = (
    Parameter(
        "beta",
        Number(above=0, below=1),
        "The share of the released people who may have fewer than `k` equals in the population, where `population` is "
        "a number",
        0.1,
    ).without("large"),
    Parameter(
        "population",
        Population(),
        "The number of people that the table is a random sample of: at most the share `beta` of the released people "
        "then have fewer than `k` equals among them. Or a table with the columns `cols`, one row a person: every class "
        "then has at least `k` people in it. NULL: `k` people of the table itself",
        None,
    ).without("large"),
    shared.WEIGHTS,
    shared.HIERARCHIES,
    shared.MAX_SUPPRESSED_FRACTION.having(
        default=0.01, meaning="The share of the rows that may be suppressed: those of smaller classes"
    ).without("policy"),
    Parameter(
        "methods",
        MapOf("MAP {'zip': 'prefix'}"),
        "How columns are generalized: `hierarchy`, `interval`, `round` (steps of 1, 2, 5 times a power of ten), "
        "`calendar`, `prefix` or `top` (frequent values and `other`). Where none is given: `hierarchy` where there is "
        "one, `interval` for numbers, `calendar` for dates, `prefix` for codes of one length with digits, else `top`",
        None,
    ),
)
_ASKED = (shared.TBL, shared.COLS.having(meaning="The columns to generalize"), shared.K, *_FITTING)
_SPREAD = shared.SENSITIVE.without("large", "policy")
_CHECKS = (
    shared.refuse_own_names,
    shared.refuse_person_in_cols,
    shared.refuse_sensitive_in_cols,
    shared.refuse_fractional_l,
    _population_is_enough,
    _methods_exist,
)

GENERALIZE = Release(
    name="generalize",
    stage="generalize",
    summary="Generalizes columns, the same way for all rows, until every class has at least k people.",
    promises=(
        AtLeastKPeople("cols"),
        OnlyColumns("cols", "keep"),
        KeepsTypes("keep"),
        KeepsValues("keep"),
        KeepsRows("max_suppressed_fraction"),
        TrueLabels(),
        InvariantUnder(*TABLE),
    ),
    parameters=(*_ASKED, shared.KEPT, shared.PERSON, _SPREAD),
    checks=(*_CHECKS, shared.refuse_keep_in_cols),
    body="anon._generalized",
)

PLAN = Report(
    name="plan",
    algorithm="duckanon._methods.generalize.plans:plan",
    stage="generalize",
    summary="Returns how each column is to be generalized so that every class has at least k people: a row per bucket.",
    promises=(InvariantUnder(*TABLE),),
    parameters=(*_ASKED, shared.PERSON, _SPREAD),
    checks=_CHECKS,
    body="anon._planned",
    schema=PLAN_ROWS,
    tables=("table", "population_table"),
    hands_over=True,
)

_COL = Parameter("col", ColumnName(), "The column, of numbers, dates or timestamps")
_LABEL = Parameter(
    "label",
    OneOf("interval", "median", "mean"),
    "What a bucket is called. The median is given where at least `k` rows share it, else the roundest number between "
    "the values of the `k` rows in the middle of the bucket",
    "interval",
)
_NULLS = Parameter(
    "nulls", OneOf("error", "drop"), "`'error'`: NULLs are refused; `'drop'`: rows with NULL are left out", "error"
)


def _has_k_or_buckets(options: Options) -> str | None:
    if (options["k"] is None) == (options["buckets"] is None):
        return "give one of k, the least rows of a bucket, and buckets, their number."
    return None


QUANTILE_PARTITION = ColumnReport(
    name="quantile_partition",
    algorithm="duckanon._methods.generalize.partition.column_partitions:report_quantiles",
    stage="generalize",
    summary="Splits one column into buckets of equal size, equal values together: the quantile transformation.",
    promises=(
        BucketsOfKRows(),
        InvariantUnder(*TABLE, "types"),
    ),
    parameters=(
        shared.TBL,
        _COL,
        Parameter("k", Whole(1, null=True), "The smallest number of rows in a bucket; or give `buckets`", None),
        Parameter("buckets", Whole(1, null=True), "The number of buckets; ties may force fewer", None),
        _LABEL.having(
            meaning=_LABEL.meaning + "; with `buckets`, `'median'` and `'mean'` need 10 rows in every bucket"
        ),
        _NULLS,
    ),
    checks=(_has_k_or_buckets,),
    schema=PARTITION_ROWS,
    unpacked_by="_partition",
)

OPTIMAL_PARTITION = ColumnReport(
    name="optimal_partition",
    algorithm="duckanon._methods.generalize.partition.column_partitions:report_optimum",
    stage="generalize",
    summary="Splits one column into buckets of at least k rows at the least possible cost.",
    promises=(
        BucketsOfKRows(),
        InvariantUnder(*TABLE, "types"),
    ),
    parameters=(
        shared.TBL,
        _COL,
        Parameter("k", Whole(1), "The smallest number of rows in a bucket"),
        Parameter(
            "cost",
            OneOf("squares", "median", "radius", "center"),
            "What is minimized: the sum of squared distances to the bucket's mean; of distances to its median; of half "
            "its range times its rows; or the largest half of a range",
            "squares",
        ),
        _LABEL,
        _NULLS,
    ),
    schema=PARTITION_ROWS,
    unpacked_by="_partition",
)

FUNCTIONS = (GENERALIZE, PLAN, QUANTILE_PARTITION, OPTIMAL_PARTITION)
