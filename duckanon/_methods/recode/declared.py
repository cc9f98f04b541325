"""The functions of this package that SQL can call."""

from __future__ import annotations

from duckanon._core.common import parameters as shared
from duckanon._core.common.contracts import (
    AtLeastKPeople,
    InvariantUnder,
    KeepsRows,
    KeepsTypes,
    KeepsValues,
    OnlyColumns,
    TrueLabels,
)
from duckanon._core.common.declare import Parameter, Release
from duckanon._core.common.rules import OneOf

RECODE = Release(
    name="recode",
    algorithm="duckanon._methods.recode.local_recoding:recode",
    stage="release",
    summary="Generalizes a table class by class: every class has at least k people and labels of its own.",
    promises=(
        AtLeastKPeople("cols", "by"),
        OnlyColumns("cols", "keep", "by"),
        KeepsTypes("keep", "by"),
        KeepsValues("keep", "by"),
        KeepsRows("max_suppressed_fraction"),
        TrueLabels(),
        InvariantUnder("order", "storage", "others"),
    ),
    parameters=(
        shared.TBL,
        shared.COLS.having(meaning="The columns to generalize"),
        shared.K,
        shared.HIERARCHIES,
        shared.SENSITIVE.without("large", "spark", "policy"),
        shared.WEIGHTS,
        shared.PERSON,
        shared.KEPT,
        shared.BY.without("large", "spark"),
        shared.MAX_SUPPRESSED_FRACTION.having(
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
    checks=(
        shared.refuse_person_in_cols,
        shared.refuse_keep_in_cols,
        shared.refuse_by_in_cols,
        shared.refuse_sensitive_in_cols,
    ),
    unpacked_by="_unpack_recoded",
    unpack_options=("hierarchies", "output"),
    hands_over=True,
    coded=True,
    orders_rows=True,
)

FUNCTIONS = (RECODE,)
