"""The functions of this package that SQL can call."""

from __future__ import annotations

import pyarrow as pa

from duckanon._core.common.contracts import TABLE, Between, InvariantUnder, RowPer
from duckanon._core.common.declare import Options, Parameter, Release, Report
from duckanon._core.common.parameters import LOG, PERSON, SEED, K, refuse_person_in_cols
from duckanon._core.common.rules import ColumnName, Flag, MapOf, Number, Tables, Whole
from duckanon._measure.comparison import columns, comparison
from duckanon._measure.parameters import COLS, DERIVED, HIERARCHIES, HOLDOUT, NEAREST, ORIGINAL, PAIR, REFERENCE, coding

_DRAWS = Parameter(
    "draws",
    Tables("['second', 'third']", null=True),
    "Further releases of the same people; the membership tests attack all of them together",
    None,
)


def _weights_are_of_cols(options: Options) -> str | None:
    """Refuse weights of other columns."""
    cols = [name.lower() for name in options["cols"]]
    unknown = [name for name in options["weights"] or () if name.lower() not in cols]
    return f"weights must name columns of cols; got {unknown[0]}." if unknown else None


def _draws_have_others(options: Options) -> str | None:
    """Refuse further releases where there is nobody to tell members from."""
    if options["draws"] and not (options["reference"] or options["holdout"]):
        return "draws are attacked by comparing members with other people; name a reference or a holdout."
    return None


def _sensitive_is_no_col(options: Options) -> str | None:
    """Refuse a sensitive column that the attacker knows already, or that identifies people."""
    known = [name.lower() for name in (*options["cols"], options["person"])]
    name = options["sensitive"]
    return f"sensitive must be none of cols, nor person; got {name}." if name and name.lower() in known else None


PREDICTION_RISK = Release(
    name="prediction_risk",
    algorithm="duckanon._measure.privacy_measures:prediction_risk",
    stage="measure",
    summary="How well each original record can be predicted from a release: distance, ambiguity and uncertainty.",
    promises=(
        RowPer("row"),
        InvariantUnder("order", "storage", "others"),
    ),
    parameters=(
        *PAIR,
        COLS,
        NEAREST,
        Parameter("sample", Whole(1, null=True), "How many random originals to look at; NULL: all", None),
        HIERARCHIES,
        Parameter(
            "weights",
            MapOf("MAP {'income': 3}, of numbers that are at least 0", Number(0)),
            "How much each column counts in the uncertainty; 1 where none is given",
            None,
        ),
        coding(
            derived=DERIVED.having(
                meaning=f"{DERIVED.meaning}. The `column_uncertainty` of a column that is left out is NULL"
            )
        ),
        SEED,
    ),
    checks=(_weights_are_of_cols,),
    tables=("original", "released"),
    unpacked_by="_unpack_predictions",
)

PRIVACY_TEST = comparison(
    name="privacy_test",
    algorithm="duckanon._measure.privacy_measures:privacy_test",
    summary="Tests whether a release is as safe as not taking part: prediction risk, copies, isolated records, "
    "membership.",
    promises=(
        Between(0, 1, "p_value", "ks"),
        InvariantUnder("order", "storage", "others"),
    ),
    parameters=(
        COLS,
        REFERENCE.having(
            meaning="A sample of other people from the same population, as large as the release; NULL: every record is "
            "compared with all other records"
        ),
        HOLDOUT.having(
            meaning=f"{HOLDOUT.meaning}, to whom released rows should be as near as to the people in `original`"
        ),
        NEAREST,
        Parameter("sample", Whole(20, null=True), "How many random originals to look at; NULL: up to 5,000", None),
        HIERARCHIES,
        _DRAWS,
        coding(),
        SEED,
    ),
    checks=(_draws_have_others,),
    schema=[
        ("measure", pa.string()),
        *columns(pa.float64(), "value", "reference_value", "ks", "p_value", "shift", "shift_bound", "limit"),
        ("pass", pa.bool_()),
        ("answer", pa.string()),
    ],
    other_tables=(
        "reference",
        "holdout",
        "stacked",
    ),
)

COMPARE_RELEASES = Report(
    name="compare_releases",
    algorithm="duckanon._measure.compare:compare_releases",
    stage="measure",
    summary="Privacy and utility of several releases of a table, one row per release and measure.",
    promises=(InvariantUnder("storage", "others"),),
    parameters=(
        ORIGINAL.having(meaning="The table that the releases were made from"),
        Parameter("releases", Tables("MAP {'swapped': 'svd'}", named=True), "The releases by name"),
        COLS,
        REFERENCE,
        Parameter("max_rows", Whole(200), "A larger table is compared on this many random rows", 10_000),
        HIERARCHIES,
        coding(
            LOG.having(meaning=f"{LOG.meaning}. For privacy and `kernel_ks`"),
            DERIVED.having(meaning=f"{DERIVED.meaning}. For privacy and `kernel_ks`"),
        ),
        SEED,
    ),
    schema=pa.schema(
        [
            *columns(pa.string(), "release", "kind", "measure"),
            *columns(pa.float64(), "value", "reference_value"),
            ("pass", pa.bool_()),
        ]
    ),
    tables=("original", "stacked", "reference"),
)

JOINT_RELEASES = Report(
    name="joint_releases",
    algorithm="duckanon._measure.joint_releases:joint_releases",
    stage="measure",
    summary="How many people, and sensitive values, remain possible for who knows a person in several releases.",
    promises=(
        Between(0, 1, "joint_t"),
        InvariantUnder(*TABLE),
    ),
    parameters=(
        Parameter("releases", Tables("['january', 'february']"), "Releases of the same people, the oldest first"),
        COLS.having(meaning="The released columns that an attacker knows of a person, in every release"),
        Parameter("person", ColumnName(), "The column that identifies people, the same in all releases"),
        Parameter("sensitive", ColumnName(null=True), "The column of `joint_l` and `joint_t`", None),
        K.having(default=10, meaning="People with fewer candidates than this are counted in `people_below_k`"),
        Parameter(
            "followed",
            Flag(),
            "Whether the releases show `person`, or a pseudonym that stays the same: the candidates' own values are "
            "seen then, and `joint_l` and `joint_t` are those of the candidates, not of their classes",
            False,
        ),
    ),
    checks=(refuse_person_in_cols, _sensitive_is_no_col),
    schema=pa.schema(
        [
            ("release", pa.string()),
            *columns(pa.int64(), "people", "k", "joint_people", "joint_k", "people_below_k", "l", "joint_l"),
            ("joint_t", pa.float64()),
        ]
    ),
    tables=("stacked",),
    stacks_columns=True,
)

VERDICT = Report(
    name="verdict",
    stage="measure",
    summary="Whether a release keeps its promises of privacy, class size and utility: one row each, pass or fail.",
    promises=(InvariantUnder("storage", "others"),),
    parameters=(
        *PAIR,
        COLS,
        REFERENCE,
        HOLDOUT,
        Parameter("k", Whole(1, null=True), "The smallest class that is allowed over `cols`; NULL: any", None),
        Parameter(
            "max_correlation_difference",
            Number(0, null=True),
            "The largest median difference of correlations that is allowed, as `anon.utility` measures it; NULL: any",
            None,
        ),
        Parameter(
            "max_detectability_auc",
            Number(0, 1, null=True),
            "The largest AUC of `anon.detectability` that is allowed; NULL: any",
            None,
        ),
        HIERARCHIES,
        _DRAWS,
        coding(),
        SEED,
        PERSON,
    ),
    checks=(_draws_have_others, refuse_person_in_cols),
    body="anon._verdict",
    schema=pa.schema(
        [("promise", pa.string()), ("measured", pa.float64()), ("limit", pa.float64()), ("pass", pa.bool_())]
    ),
)

REQUIRE = Report(
    name="require",
    stage="measure",
    summary="The rows of anon.verdict, or an error that names the broken promises, so that a job stops by itself.",
    promises=(InvariantUnder("storage", "others"),),
    parameters=VERDICT.parameters,
    checks=VERDICT.checks,
    body="anon._require",
    schema=VERDICT.schema,
)

QUERY_UTILITY = comparison(
    name="query_utility",
    algorithm="duckanon._measure.utility.utility_measures:query_utility",
    summary="Relative errors of random range counts on a release.",
    promises=(InvariantUnder("storage", "others"),),
    parameters=(
        COLS.having(meaning="The columns to ask about"),
        Parameter("queries", Whole(1), "How many random counts to compare", 1000),
        HIERARCHIES,
        SEED,
    ),
    schema=[
        *columns(pa.int64(), "predicates", "queries"),
        *columns(pa.float64(), "median_relative_error", "mean_relative_error", "p90_relative_error"),
    ],
)

FUNCTIONS = (PREDICTION_RISK, PRIVACY_TEST, COMPARE_RELEASES, JOINT_RELEASES, VERDICT, REQUIRE, QUERY_UTILITY)
