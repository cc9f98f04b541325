"""The functions of this package that SQL can call."""

from __future__ import annotations

from duckanon._core.common.contracts import (
    TABLE,
    InvariantUnder,
    KeepsRows,
    KeepsTypes,
    KeepsValues,
    KPeopleAgree,
    OnlyColumns,
)
from duckanon._core.common.declare import Options, Parameter, Release
from duckanon._core.common.parameters import (
    COLS,
    KEEP,
    NARROWING,
    PERSON,
    TBL,
    K,
    refuse_keep_in_cols,
    refuse_person_in_cols,
)
from duckanon._core.common.rules import ColumnNames, OneOf


def _importance_is_of_cols(options: Options) -> str | None:
    """Refuse columns that are important and not looked at."""
    cols = {name.lower() for name in options["cols"]}
    for name in options["importance"] or ():
        if name.lower() not in cols:
            return f'importance must name columns of cols, the most important first; got "{name}".'
    return None


SUPPRESS_CELLS = Release(
    name="suppress_cells",
    algorithm="duckanon._methods.suppress.suppress_cells:suppress_cells",
    stage="release",
    summary="Suppresses as few single cells as possible, so that every record agrees with those of k - 1 other people.",
    promises=(
        KPeopleAgree(),
        OnlyColumns("cols", "keep"),
        KeepsTypes("cols", "keep"),
        KeepsValues("keep"),
        KeepsRows(),
        InvariantUnder(*TABLE),
    ),
    parameters=(
        TBL,
        COLS.having(meaning="The columns in which cells may become NULL"),
        K.having(meaning="How many people agree with each record, its own included"),
        Parameter(
            "importance",
            ColumnNames(null=True, empty=True),
            "Columns of `cols`, the most important first: among equally few cells, those of less important columns are "
            "suppressed. Columns that are not named come last, those with more values behind those with fewer",
            None,
        ),
        PERSON,
        KEEP,
        Parameter(
            "nulls",
            OneOf("any", "value"),
            "`'any'`: NULL agrees with every value, and `k` people of the table agree with what a record still shows. "
            "`'value'`: NULL is a value, and `k` people have the same released record, as `anon.k_anonymity` counts",
            "any",
        ),
        NARROWING.having(meaning="Columns of `keep` that are released although they show what cells were"),
    ),
    checks=(refuse_person_in_cols, refuse_keep_in_cols, _importance_is_of_cols),
)

FUNCTIONS = (SUPPRESS_CELLS,)
