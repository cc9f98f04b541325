"""The functions of this package that SQL can call."""

from __future__ import annotations

from duckanon._core.common.contracts import (
    AtLeastKPeople,
    InvariantUnder,
    KeepsRows,
    KeepsTypes,
    KeepsValues,
    KeepsValuesOrNull,
    OnlyColumns,
)
from duckanon._core.common.declare import Options, Parameter, Release
from duckanon._core.common.parameters import (
    COLS,
    KEPT,
    PERSON,
    TBL,
    K,
    refuse_by_in_cols,
    refuse_keep_in_cols,
    refuse_person_in_cols,
)
from duckanon._core.common.rules import OneOf
from duckanon._methods.boxes.declared import BY_LABELS

METHOD = Parameter(
    "method",
    OneOf("mdav", "fast"),
    "`'mdav'`: the maximum distance to average vector, whose time grows with the square of the rows. `'fast'`: "
    "MDAV within parts of the table, then improved group by group: it loses less, and its time grows with the "
    "rows",
    "mdav",
)


def _unpacking(options: Options) -> str:
    return "_unpack_boxes" if options["label"] == "interval" else "_unpack_means"


MICROAGGREGATE = Release(
    name="microaggregate",
    algorithm="duckanon._methods.microaggregate.microaggregated_table:microaggregate",
    stage="release",
    summary="Replaces numbers and dates by the means, medians or intervals of groups of at least k similar records.",
    promises=(
        AtLeastKPeople("cols", "by"),
        OnlyColumns("cols", "keep", "by", "column box"),
        KeepsTypes("keep", "by"),
        KeepsValues("keep"),
        KeepsValuesOrNull("by"),
        KeepsRows(),
        InvariantUnder("storage", "columns", "others"),
    ),
    parameters=(
        TBL,
        COLS.having(meaning="The columns of numbers and dates that are grouped"),
        K.having(meaning="The smallest number of people in a group"),
        METHOD,
        Parameter(
            "label",
            OneOf("mean", "median", "interval"),
            "What a group is released as. `'mean'`: the mean of its people. `'median'`: the mean of those in the "
            "middle, half of `k` and at least three people. `'interval'`: `STRUCT(lo, hi)` as in `anon.boxes`, with "
            "the number of the group in `box`",
            "mean",
        ),
        BY_LABELS,
        PERSON,
        KEPT,
    ),
    checks=(refuse_person_in_cols, refuse_keep_in_cols, refuse_by_in_cols),
    unpacked_by=_unpacking,
)

FUNCTIONS = (MICROAGGREGATE,)
