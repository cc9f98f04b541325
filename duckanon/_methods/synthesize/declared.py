"""The functions of this package, declared: `anon.spectral_release` and `anon.synthesize`."""

from __future__ import annotations

from duckanon._core.common import parameters as shared
from duckanon._core.common.contracts import DrawsRows, InvariantUnder, KeepsTypes, OnlyColumns, SharedValues
from duckanon._core.common.declare import Parameter, Release
from duckanon._core.common.rules import ColumnName, ColumnNames, Whole

K = Parameter(
    "k",
    Whole(2),
    "The smallest number of people who share a released value; numbers that nobody has are released too, and "
    "those shared by three where nearly every number of a column is somebody's. Rarer categories are merged",
    10,
)
_BY = shared.BY.having(
    rule=ColumnNames(null=True),
    meaning="Columns released as they are: records are drawn within each of their groups",
)
_KEEP_OUT = Parameter(
    "keep_out",
    Whole(0),
    "People, drawn at random in each group, whom the release says nothing about: whoever knows everybody else "
    "could compute the last person from exact means and counts",
    25,
)

SPECTRAL_RELEASE = Release(
    name="spectral_release",
    algorithm="duckanon._methods.synthesize.spectral_release:spectral_release",
    stage="release",
    summary="Draws new records that keep a table's means and correlations, of values shared by at least k people.",
    promises=(
        SharedValues(),
        DrawsRows(),
        OnlyColumns("cols", "by"),
        KeepsTypes("cols", "by"),
        InvariantUnder("order", "storage", "others"),
    ),
    parameters=(
        shared.TBL,
        shared.COLS.having(meaning="The columns to release"),
        K,
        shared.CLUSTER_SIZE.having(
            meaning=f"{shared.CLUSTER_SIZE.meaning}. NULL: the smallest size at which releases with and without an "
            "isolated person hardly differ, or all records as one cluster"
        ),
        shared.ROWS,
        _BY.without("spark"),
        _KEEP_OUT,
        shared.SPECIAL,
        shared.CATEGORIES,
        shared.DERIVED,
        shared.ENCODED_NULLS,
        shared.SEED.without("spark"),
        shared.UNRELEASED_PERSON,
    ),
    checks=(shared.refuse_person_in_cols, shared.refuse_by_in_cols),
    tables=("source",),
    columns=("cols", "by"),
)

SYNTHESIZE = Release(
    name="synthesize",
    algorithm="duckanon._methods.synthesize.synthesize:synthesize",
    stage="release",
    summary="Draws new records column by column, which keep what belongs together, of values shared by at least k "
    "people: the release to recommend.",
    promises=(
        SharedValues(),
        DrawsRows(),
        OnlyColumns("cols", "by", "person"),
        KeepsTypes("cols", "by"),
        InvariantUnder("order", "storage", "others"),
    ),
    parameters=(
        shared.TBL,
        shared.COLS.having(meaning="The columns to release, drawn in the order of the table"),
        K,
        Parameter(
            "leaf",
            Whole(3),
            "The smallest number of people in a leaf of a tree: fewer keep more structure and hide less",
            25,
        ),
        shared.ROWS,
        _BY.without("large", "spark"),
        shared.PERSON.having(
            meaning="The column that identifies people, released as new numbers: `k` and `leaf` then count different "
            "people, and people with several rows get several. In a policy, the role of the column says "
            "whether it is released; Spark draws rows, and releases no such column. NULL: every row is another person"
        ),
        Parameter(
            "order_by",
            ColumnName(null=True),
            "A column of `cols` that orders the rows of a person. NULL: the first date or timestamp that differs "
            "between rows of a person; without one, rows have no order",
            None,
        ).without("spark"),
        _KEEP_OUT,
        shared.SPECIAL,
        shared.CATEGORIES.having(
            meaning="Columns of numbers that are categories. NULL: whole numbers with at most twelve different values, "
            "and others on an uneven scale of at most 64 values that nearly everybody shares with k people"
        ),
        shared.DERIVED.having(
            meaning="`'auto'`: columns that follow from others, such as sums, products and coarser columns, are "
            "computed again, and rules that hold for everybody are kept; `'off'`: neither"
        ),
        shared.ENCODED_NULLS,
        shared.SEED.having(
            meaning="Makes the result repeatable. Whoever knows it can repeat the random choices, among them how many "
            "people must share each value: it stays with the data, and leaves with no release"
        ).without("spark"),
    ),
    checks=(shared.refuse_person_in_cols, shared.refuse_by_in_cols, shared.refuse_order_outside_cols),
    tables=("source",),
    columns=("cols", "by"),
    numbered="person",
)

FUNCTIONS = (SPECTRAL_RELEASE, SYNTHESIZE)
