"""The functions of this package that SQL can call."""

from __future__ import annotations

import pyarrow as pa

from duckanon._core.common.contracts import TABLE, Between, InvariantUnder
from duckanon._core.common.declare import Options, Parameter, Report
from duckanon._core.common.parameters import (
    CATEGORIES,
    LOG,
    PERSON,
    SEED,
    SPECIAL,
    refuse_order_outside_cols,
    refuse_person_in_cols,
)
from duckanon._core.common.rules import ColumnName, Flag, OneOf, Whole
from duckanon._measure.comparison import columns, comparison
from duckanon._measure.parameters import COLS, HIERARCHIES, HOLDOUT, PAIR, REFERENCE, coding

_SPECIAL = SPECIAL.having(default="off")
_CATEGORIES = CATEGORIES.having(default=[])
_DEGREE = Parameter("degree", Whole(1), "The degree of the polynomial kernel `(x'y + 1)^degree`", 4)
_COMPONENTS = Parameter("components", Whole(1), "How many kernel principal components to look at", 20)
_STANDARDIZE = Parameter(
    "standardize",
    Flag(),
    "false keeps numbers (or their logarithms) at their own scale, as the thesis does; the components are then nearly "
    "linear and test little",
    True,
)
_KERNEL = Parameter(
    "kernel",
    OneOf("polynomial", "gaussian", "exponential"),
    "`'polynomial'`; `'gaussian'`: `exp(-|x - y|^2 / (2 sigma^2))`, sigma the median distance; `'exponential'`: "
    "`exp((x - m)'(y - m) / sigma^2)`, m the mean row of the original",
    "polynomial",
)
_POINTS = Parameter(
    "points", Whole(2, null=True), "How many random rows of each table to compare (the thesis: 1296); NULL: all", None
)


def _special_is_not_logged(options: Options) -> str | None:
    """Refuse special values of columns that are logged, in whose logarithms nobody would find them."""
    logged = [name.lower() for name in options["log"] or ()]
    both = (
        [name for name in options["special"] if name.lower() in logged] if isinstance(options["special"], dict) else []
    )
    return f"special must name columns that are none of log; got {both[0]} in both." if both else None


UTILITY = comparison(
    name="utility",
    algorithm="duckanon._measure.utility.utility_measures:utility",
    summary="How far means, variances, correlations and distributions of a release are from the original's.",
    promises=(InvariantUnder("order", "storage", "others"),),
    parameters=(
        COLS,
        HIERARCHIES,
        LOG.having(default=[], meaning="Columns to take logarithms of"),
        _SPECIAL,
        _CATEGORIES,
        SEED,
    ),
    checks=(_special_is_not_logged,),
    schema=[
        *columns(pa.string(), "statistic", "column_name", "other_column"),
        *columns(pa.float64(), "original", "released", "difference", "normalized_difference", "median_difference"),
    ],
)

KERNEL_UTILITY = comparison(
    name="kernel_utility",
    algorithm="duckanon._measure.utility.kernels:kernel_utility",
    summary="Compares a release with the original along kernel principal components, for structure that is not linear.",
    promises=(
        Between(0, 1, "ks", "p_value", "reference_ks", "reference_p_value"),
        InvariantUnder("storage", "others"),
    ),
    parameters=(COLS, _DEGREE, _COMPONENTS, _STANDARDIZE, _KERNEL, REFERENCE, _POINTS, HIERARCHIES, coding(), SEED),
    schema=[
        ("component", pa.int64()),
        *columns(pa.float64(), "eigenvalue", "cumulative", "ks", "p_value", "reference_ks", "reference_p_value"),
    ],
    other_tables=("reference",),
)

KERNEL_COMPONENTS = comparison(
    name="kernel_components",
    algorithm="duckanon._measure.utility.kernels:kernel_components",
    summary="Original and released records along kernel principal components, for a plot of structure that is not "
    "linear.",
    promises=(InvariantUnder("storage", "others"),),
    parameters=(
        COLS,
        _DEGREE,
        _COMPONENTS.having(default=2, meaning="How many coordinates each record has"),
        _STANDARDIZE,
        _KERNEL,
        _POINTS.having(rule=Whole(2), default=1000, meaning="How many random rows of each table to place"),
        HIERARCHIES,
        coding(),
        SEED,
    ),
    schema=[("source", pa.string()), ("projections", pa.list_(pa.float64()))],
)

CLASSIFIER_UTILITY = comparison(
    name="classifier_utility",
    algorithm="duckanon._measure.utility.classifiers:classifier_utility",
    summary="What models trained on a release predict for originals, against models trained on originals.",
    promises=(InvariantUnder("storage", "others"),),
    parameters=(
        COLS.having(meaning="The columns to predict from"),
        Parameter("target", ColumnName(), "The column to predict: a category or a number"),
        HOLDOUT.having(
            meaning="Other people, to test on; NULL: a random part of `original`, which the release may have been made "
            "from"
        ),
        HIERARCHIES,
        _SPECIAL,
        _CATEGORIES,
        SEED,
    ),
    schema=[
        *columns(pa.string(), "model", "measure"),
        *columns(pa.float64(), "trained_on_original", "trained_on_released", "difference"),
        *columns(pa.int64(), "train_rows", "test_rows"),
    ],
    other_tables=("holdout",),
    columns=("cols", "target"),
)

DETECTABILITY = comparison(
    name="detectability",
    algorithm="duckanon._measure.utility.classifiers:detectability",
    summary="How well boosted trees tell released rows from those of people.",
    promises=(
        Between(0, 1, "auc"),
        InvariantUnder("storage", "others"),
    ),
    parameters=(
        COLS,
        HOLDOUT.having(
            meaning="Other people, to tell released rows from; NULL: from the rows of `original`, among which copies "
            "of people pass for unrecognizable"
        ),
        HIERARCHIES,
        _CATEGORIES,
        SEED,
    ),
    schema=[("comparison", pa.string()), *columns(pa.float64(), "auc", "standard_error"), ("rows_each", pa.int64())],
    other_tables=("holdout",),
)

CONTRADICTIONS = Report(
    name="contradictions",
    algorithm="duckanon._measure.utility.contradictions:contradictions",
    stage="measure",
    summary="Counts the released rows that break a rule which all rows of the original keep, rule by rule.",
    promises=(
        Between(0, 1, "broken_fraction"),
        InvariantUnder(*TABLE),
    ),
    parameters=(
        *PAIR,
        COLS.having(meaning="The columns between which rules are looked for"),
        Parameter(
            "k",
            Whole(2),
            "The smallest number of people behind a value that a rule names; twice as many would break a rule by "
            "chance, at least",
            10,
        ),
        PERSON.having(
            meaning="The column that identifies people, in both tables: `k` then counts different people, and rules "
            "are looked for from each row of a person to the next. NULL: every row is another person"
        ),
        Parameter(
            "order_by",
            ColumnName(null=True),
            "A column of `cols` that orders the rows of a person. NULL: the first date or timestamp that differs "
            "between rows of a person; without one, only rules within rows are looked for",
            None,
        ),
        SPECIAL,
        CATEGORIES,
    ),
    checks=(refuse_person_in_cols, refuse_order_outside_cols),
    schema=pa.schema(
        [
            *columns(pa.string(), "kind", "rule", "column_name", "other_column"),
            *columns(pa.int64(), "original_rows", "original_broken", "released_rows", "released_broken"),
            ("broken_fraction", pa.float64()),
        ]
    ),
    tables=("original", "released"),
)

FUNCTIONS = (UTILITY, KERNEL_UTILITY, KERNEL_COMPONENTS, CLASSIFIER_UTILITY, DETECTABILITY, CONTRADICTIONS)
