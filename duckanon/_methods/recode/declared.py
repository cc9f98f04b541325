"""The functions of this package that SQL can call."""

from __future__ import annotations

from duckanon._core.common.declare import Parameter, Release
from duckanon._core.common.parameters import (
    BY,
    COLS,
    HIERARCHIES,
    KEPT,
    MAX_SUPPRESSED_FRACTION,
    PERSON,
    SENSITIVE,
    TBL,
    WEIGHTS,
    K,
    by_is_apart,
    keep_is_no_col,
    person_is_no_col,
    sensitive_is_apart,
)
from duckanon._core.common.rules import OneOf

RECODE = Release(
    name="recode",
    algorithm="duckanon._methods.recode.local_recoding:recode",
    stage="release",
    summary="Generalizes a table class by class: every class has at least k people and labels of its own.",
    parameters=(
        TBL,
        COLS.having(meaning="The columns to generalize"),
        K,
        HIERARCHIES,
        SENSITIVE.without("large", "spark", "policy"),
        WEIGHTS,
        PERSON,
        KEPT,
        BY.without("large", "spark"),
        MAX_SUPPRESSED_FRACTION.having(
            meaning="The share of the rows that may be suppressed: those of groups of `by` with fewer than `k` people, "
            "or without `l` and `t`"
        ).without("large", "spark", "policy"),
        Parameter(
            "effort",
            OneOf("quick", "default", "thorough"),
            "How long to improve the classes: not at all, 60 rounds, 150 rounds",
            "default",
        ),
        Parameter(
            "output",
            OneOf("text", "value"),
            "`'text'`: labels such as `[20, 34]`, `>=35` and `{Cook, Nurse}`; `'value'`: `STRUCT(lo, hi)` for numbers "
            "and dates without a hierarchy, with NULL for an open end, and lists of values for all others",
            "text",
        ).without("spark", "policy"),
    ),
    checks=(person_is_no_col, keep_is_no_col, by_is_apart, sensitive_is_apart),
    unpacked_by="_unpack_recoded",
    unpack_options=("hierarchies", "output"),
    hands_over=True,
    coded=True,
    orders_rows=True,
)

FUNCTIONS = (RECODE,)
