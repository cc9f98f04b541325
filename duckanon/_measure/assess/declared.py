"""The functions of this package that SQL can call."""

from __future__ import annotations

import pyarrow as pa

from duckanon._core.common.contracts import TABLE, Between, InvariantUnder, RowPer
from duckanon._core.common.declare import Parameter, Report
from duckanon._core.common.parameters import COLS, PERSON, TBL, refuse_own_names, refuse_person_in_cols
from duckanon._core.common.rules import ColumnNames, Flag, Number, OneOf, Whole
from duckanon._measure.comparison import columns

QUASI_IDENTIFIERS_ROWS = pa.schema(
    [
        ("columns", pa.list_(pa.string())),
        *columns(pa.int64(), "rows", "people", "distinct_observed", "singletons", "smallest_class", "members"),
        *columns(pa.float64(), "distinct_product", "distinct_error", "singletons_error"),
    ]
)

SPECIAL_UNIQUES_ROWS = pa.schema(
    [
        ("alike", pa.int32()),
        ("classes", pa.list_(pa.uint64())),
        ("contributions", pa.list_(pa.float64())),
        ("same_sizes", pa.int32()),
        ("sets_by_size", pa.list_(pa.int32())),
        *columns(pa.float64(), "suda_score", "dis_score"),
    ]
)
SPECIAL_UNIQUE_COLUMNS_ROWS = pa.schema(
    [*columns(pa.int64(), "place", "unique_sets", "rows"), ("contribution", pa.float64())]
)

ASSESS_ROWS = pa.schema(
    [
        ("place", pa.int64()),
        *columns(pa.string(), "role", "why"),
        ("unique_growth", pa.float64()),
        *columns(pa.list_(pa.string()), "determines", "determined_by"),
    ]
)

ASSESS = Report(
    name="assess",
    algorithm="duckanon._measure.assess.glance:assess",
    stage="assess",
    summary="Returns one row per column of a table: the role it should have in a release, and why.",
    promises=(
        RowPer("column"),
        Between(0, 1, "unique_fraction"),
        InvariantUnder("order", "storage", "columns"),
    ),
    parameters=(TBL, PERSON.having(meaning="The column that identifies people. NULL: such a column is looked for")),
    body="anon._assessed",
    schema=ASSESS_ROWS,
)

QUASI_IDENTIFIERS = Report(
    name="quasi_identifiers",
    algorithm="duckanon._measure.assess.column_sets:exact",
    stage="assess",
    summary="Returns every set of up to max_size columns, with its unique rows and whether it is a quasi-identifier.",
    promises=(
        Between(0, 1, "unique_fraction", "unique_fraction_bound"),
        InvariantUnder("order", "storage"),
    ),
    parameters=(
        TBL,
        COLS.having(rule=ColumnNames(null=True), meaning="The columns to combine; NULL: all", default=None),
        Parameter("max_size", Whole(1), "The number of columns in the largest sets", 3),
        Parameter(
            "alpha", Number(above=0, below=1), "The share of unique people from which a set is a quasi-identifier", 0.2
        ),
        Parameter(
            "population",
            Number(1, null=True),
            "The number of people that the table comes from; NULL: the table is its own universe",
            None,
        ),
        Parameter("minimal", Flag(), "Whether to return only quasi-identifiers none of whose subsets is one", False),
        Parameter(
            "approximate",
            Flag(),
            "Whether to estimate from hash-sampled combinations of values, in memory that does not grow with the table",
            False,
        ),
        PERSON.having(
            meaning="The column that identifies people: unique people are then counted, and a row without one counts "
            "as nobody. NULL: every row is another person"
        ),
    ),
    checks=(refuse_own_names, refuse_person_in_cols),
    body="anon._identifying_sets",
    schema=QUASI_IDENTIFIERS_ROWS,
)

_SEARCH = (
    TBL,
    COLS.having(meaning="The columns that somebody may know"),
    Parameter("max_size", Whole(1, null=True), "The number of columns in the largest sets; NULL: all", None),
    Parameter(
        "weighting",
        OneOf("factorial", "share"),
        "What a set of s of M columns weighs: (M - s)!; or (2^(M-s) - 1) s! (M-s)! / M!, so that a set of all columns "
        "weighs 0",
        "factorial",
    ),
)
_WHOSE = (
    Parameter(
        "nulls",
        OneOf("value", "drop"),
        "`'drop'`: NULL belongs to no set, as nobody is looked up by a missing value; `'value'`: NULL is a value",
        "drop",
    ),
    PERSON.having(
        meaning="The column that identifies people: a row is unique where nobody else has its values, and a row "
        "without a person hides nobody. NULL: every row is another person"
    ),
)

SPECIAL_UNIQUES = Report(
    name="special_uniques",
    algorithm="duckanon._measure.assess.special_uniques:special_uniques",
    stage="risk",
    summary="Returns every row that some columns make unique, with its SUDA score, DIS score and each column's share.",
    promises=(
        Between(0, 1, "dis_score"),
        InvariantUnder(*TABLE, "types"),
    ),
    parameters=(
        *_SEARCH,
        Parameter(
            "sampling_fraction",
            Number(above=0, below=1),
            "The share of the population that the table is a sample of, for `dis_score`",
            0.01,
        ),
        *_WHOSE,
    ),
    checks=(refuse_own_names, refuse_person_in_cols),
    body="anon._special_rows",
    hands_over=True,
    schema=SPECIAL_UNIQUES_ROWS,
)

SPECIAL_UNIQUE_COLUMNS = Report(
    name="special_unique_columns",
    algorithm="duckanon._measure.assess.special_uniques:special_unique_columns",
    stage="risk",
    summary="Returns what each column contributes to the rows that few columns make unique (SUDA).",
    promises=(
        Between(0, 1, "contribution"),
        InvariantUnder(*TABLE, "types"),
    ),
    parameters=(*_SEARCH, *_WHOSE),
    checks=(refuse_own_names, refuse_person_in_cols),
    body="anon._special_columns",
    hands_over=True,
    schema=SPECIAL_UNIQUE_COLUMNS_ROWS,
)

FUNCTIONS = (
    ASSESS,
    QUASI_IDENTIFIERS,
    Report(
        name="sampled_quasi_identifiers",
        algorithm="duckanon._measure.assess.column_sets:approximate",
        schema=QUASI_IDENTIFIERS_ROWS,
        tables=("sampler",),
        collector="duckanon._measure.assess.column_sets:SetSampler",
        caller="anon.quasi_identifiers",
    ),
    SPECIAL_UNIQUES,
    SPECIAL_UNIQUE_COLUMNS,
)
