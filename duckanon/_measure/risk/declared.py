"""The functions of this package that SQL can call."""

from __future__ import annotations

import pyarrow as pa

from duckanon._core.common.contracts import TABLE, Between, InvariantUnder
from duckanon._core.common.declare import Options, Parameter, Report
from duckanon._core.common.parameters import COLS, PERSON, TBL, refuse_own_names, refuse_person_in_cols
from duckanon._core.common.rules import ColumnNames, ListOf, Number, OneOf

POPULATION_UNIQUES_ROWS = pa.schema(
    [("method", pa.string()), ("uniques", pa.float64()), ("in_table", pa.float64()), ("chosen", pa.string())]
)


def _interactions_are_among(options: Options) -> str | None:
    """Refuse columns that interact with themselves, or are not looked at."""
    known = {name.lower() for name in options["cols"]}
    for names in options["interactions"] or ():
        if len(names) < 2 or not {name.lower() for name in names} <= known:
            return f"interactions must be lists of two or more columns of cols; got {names} among them."
    return None


POPULATION_UNIQUES = Report(
    name="population_uniques",
    algorithm="duckanon._measure.risk.uniques:population_uniques",
    stage="risk",
    summary="Estimates by six methods, from a sample, how many people of the population are unique in the columns.",
    promises=(
        Between(0, 1, "fraction"),
        InvariantUnder(*TABLE, "types"),
    ),
    parameters=(
        TBL,
        COLS.having(meaning="The columns that somebody may know"),
        Parameter("population", Number(1), "The number of people that the table is a simple random sample of"),
        Parameter(
            "interactions",
            ListOf(ColumnNames(), "[['age', 'education'], ['sex', 'occupation']]", null=True),
            "Sets of columns that depend on each other, for `log_linear`, which takes all others to be independent",
            None,
        ),
        Parameter(
            "variant",
            OneOf("corrected", "arx", "sdcmicro"),
            "`'arx'`: `snb` with two errors of ARX; `'sdcmicro'`: `log_linear` without the division by the sampling "
            "fraction, as sdcMicro computes it",
            "corrected",
        ),
        Parameter(
            "nulls",
            OneOf("value", "drop"),
            "`'value'`: NULL is a value; `'drop'`: rows with a NULL in `cols` are left out",
            "value",
        ),
        PERSON.having(
            meaning="The column that identifies people, who are alike if their rows have the same set of combinations; "
            "a row without one counts as nobody. `log_linear` is NULL where somebody has several combinations. NULL: "
            "every row is another person"
        ),
    ),
    checks=(refuse_own_names, refuse_person_in_cols, _interactions_are_among),
    body="anon._estimated_uniques",
    schema=POPULATION_UNIQUES_ROWS,
    tables=("classes", "groups"),
)

FUNCTIONS = (POPULATION_UNIQUES,)
