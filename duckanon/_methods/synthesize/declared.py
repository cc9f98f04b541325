"""The functions of this package that SQL can call."""

from __future__ import annotations

from duckanon._core.common import parameters as shared
from duckanon._core.common.declare import Parameter, Release
from duckanon._core.common.rules import ColumnNames, Whole

SPECTRAL_RELEASE = Release(
    name="spectral_release",
    algorithm="duckanon._methods.synthesize.spectral_release:spectral_release",
    stage="release",
    summary="Draws new records that keep a table's structure, of values shared by at least k people: the release to "
    "recommend.",
    parameters=(
        shared.TBL,
        shared.COLS.having(meaning="The columns to release"),
        Parameter(
            "k",
            Whole(2),
            "The smallest number of people who share a released value; numbers that nobody has are released too, and "
            "those shared by three where nearly every number of a column is somebody's. Rarer categories are merged",
            10,
        ),
        shared.CLUSTER_SIZE.having(
            meaning=f"{shared.CLUSTER_SIZE.meaning}. NULL: the smallest size at which releases with and without an "
            "isolated person hardly differ, or all records as one cluster"
        ),
        shared.ROWS,
        shared.BY.having(
            rule=ColumnNames(null=True),
            meaning="Columns released as they are: records are drawn within each of their groups",
        ).without("spark"),
        Parameter(
            "keep_out",
            Whole(0),
            "People, drawn at random in each group, whom the release says nothing about: whoever knows everybody else "
            "could compute the last person from exact means and counts",
            25,
        ),
        shared.SPECIAL,
        shared.CATEGORIES,
        shared.DERIVED,
        shared.ENCODED_NULLS,
        shared.SEED.without("spark"),
        shared.UNRELEASED_PERSON,
    ),
    checks=(shared.person_is_no_col, shared.by_is_apart),
    tables=("source",),
    columns=("cols", "by"),
)

FUNCTIONS = (SPECTRAL_RELEASE,)
