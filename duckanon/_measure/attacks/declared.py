"""The functions of this package that SQL can call."""

from __future__ import annotations

import pyarrow as pa

from duckanon._core.common.contracts import Between, InvariantUnder, OneRow, RowPer
from duckanon._core.common.declare import Options, Parameter, Report
from duckanon._core.common.parameters import CATEGORIES, LOG, SEED, SPECIAL, TBL
from duckanon._core.common.rules import ColumnName, ColumnNames, MapOf, Number, OneOf, Whole
from duckanon._measure.comparison import columns, comparison
from duckanon._measure.parameters import COLS, CONTROL, DERIVED, HIERARCHIES, NEAREST, PAIR, coding

AUDITED = ("svd_swap", "pica", "spectral_release", "synthesize", "copula_synthesize", "data_shuffle", "additive_noise")
"""The releases that `anon.membership_audit` can make."""

_RISK = columns(pa.float64(), "success", "control_success", "naive_success", "risk", "risk_lower", "risk_upper")


def _key_is_no_col(options: Options) -> str | None:
    """Refuse a key that distances would be measured by."""
    if (options["key"] or "").lower() in (name.lower() for name in options["cols"]):
        return f"key must not be one of cols; got {options['key']}."
    return None


def _releases_are_pairs(options: Options) -> str | None:
    """Refuse an odd number of releases: the second of each two holds those whom the first does not."""
    return f"releases must be an even number; got {options['releases']}." if options["releases"] % 2 else None


def _secrets_are_unknown(options: Options) -> str | None:
    """Refuse a secret that the attacker knows."""
    known = [name.lower() for name in options["known_cols"]]
    both = [name for name in options["secret_cols"] if name.lower() in known]
    return f"secret_cols must name columns that are none of known_cols; got {both[0]} in both." if both else None


MATCHING_ATTACK = Report(
    name="matching_attack",
    algorithm="duckanon._measure.privacy_measures:matching_attack",
    stage="measure",
    summary="How many records are found again by their nearest released row, and whether an attacker can tell which.",
    promises=(
        OneRow(),
        Between(0, 1, "matched", "expected", "distance_auc"),
        InvariantUnder("storage", "columns", "others"),
    ),
    parameters=(
        *PAIR,
        COLS.having(meaning="The columns that the attacker knows"),
        Parameter(
            "key",
            ColumnName(null=True),
            "The column of both tables that says which record a released row was made from; NULL: the n-th row was "
            "made from the n-th record",
            None,
        ),
        NEAREST,
        coding(),
    ),
    checks=(_key_is_no_col,),
    schema=pa.schema(
        [
            *columns(pa.int64(), "records", "released_rows", "images"),
            *columns(pa.float64(), "matched", "expected", "tied_rows"),
            *columns(pa.float64(), "distance_auc", "ambiguity_auc", "uncertainty_auc"),
        ]
    ),
    tables=("original", "released"),
    columns=("cols", "key"),
    row_key="key",
)

LINKAGE_RISK = comparison(
    name="linkage_risk",
    algorithm="duckanon._measure.privacy_measures:linkage_risk",
    summary="How much better secret columns are predicted from a release for its own people than for others.",
    promises=(
        RowPer("column of secret_cols"),
        Between(0, 1, "success", "naive_success", "control_success"),
        InvariantUnder("storage", "others"),
    ),
    parameters=(
        Parameter("known_cols", ColumnNames(), "The columns that the attacker knows"),
        Parameter(
            "secret_cols", ColumnNames(), "The columns to find out: the nearest released row's value is the guess"
        ),
        CONTROL.having(meaning=f"{CONTROL.meaning}; NULL: the secret of a random released row is the baseline"),
        Parameter("attacks", Whole(1), "How many records to attack at most, drawn at random", 2000),
        Parameter("tolerance", Number(0, 1), "A guessed number is right within this share of the column's range", 0.05),
        HIERARCHIES,
        coding(
            derived=DERIVED.having(
                meaning="`'auto'` leaves out known columns that can be computed from other known ones; `'off'` keeps "
                "them. Secret columns always stay"
            )
        ),
        SEED,
    ),
    checks=(_secrets_are_unknown,),
    schema=[("secret", pa.string()), ("attacks", pa.int64()), _RISK[0], ("control_attacks", pa.int64()), *_RISK[1:]],
    other_tables=("control",),
    columns=("known_cols", "secret_cols"),
)

SINGLING_OUT_RISK = comparison(
    name="singling_out_risk",
    algorithm="duckanon._measure.privacy_measures:singling_out_risk",
    summary="The share of predicates made from a release that single out one original record, against a control group.",
    promises=(
        Between(0, 1, "success", "naive_success", "control_success"),
        InvariantUnder("storage", "others"),
    ),
    parameters=(
        COLS.having(meaning="The columns to make predicates of"),
        CONTROL.having(meaning=f"{CONTROL.meaning}; NULL: random predicates are the baseline"),
        Parameter("attacks", Whole(1), "How many predicates of each mode to try", 2000),
        Parameter("predicate_columns", Whole(1), "How many columns a multivariate predicate has", 3),
        HIERARCHIES,
        SEED,
    ),
    schema=[("mode", pa.string()), ("attacks", pa.int64()), ("rows_looked_at", pa.int64()), *_RISK],
    other_tables=("control",),
)

MEMBERSHIP_AUDIT = Report(
    name="membership_audit",
    algorithm="duckanon._measure.attacks.audit:membership_audit",
    stage="measure",
    summary="How well an attacker tells releases with an isolated person from releases without, by a method.",
    promises=(
        Between(0, 1, "win_rate", "worst_rate"),
        InvariantUnder("storage", "others"),
    ),
    parameters=(
        TBL,
        COLS.having(meaning="The columns to release and to measure distances by"),
        Parameter("method", OneOf(*AUDITED), "The function that makes the releases", "svd_swap"),
        Parameter(
            "options",
            MapOf("{'cluster_size': 200}"),
            "Options of `method`. Its own checks are off, so that a release that they would refuse is measured too",
            None,
        ),
        Parameter(
            "releases",
            Whole(4),
            "How many releases to make, an even number: each holds a random half of the people who are looked for. The "
            "audit takes as long as that many releases",
            40,
        ),
        Parameter("people", Whole(2), "How many of the most isolated 5 % of the people to look for", 20),
        Parameter(
            "max_rows",
            Whole(400),  # releases of `table_encoding.FEWEST_ROWS` at least
            "A larger table is audited on this many random rows. One person weighs more in a small table, so that less "
            "is hidden",
            2_000,
        ),
        LOG,
        SPECIAL,
        CATEGORIES,
        DERIVED.having(
            meaning="`'auto'` leaves columns that can be computed from others out of distances; `'off'` keeps them. "
            "What the release does with them is one of its `options`"
        ),
        SEED,
    ),
    checks=(_releases_are_pairs,),
    schema=pa.schema(
        [
            *columns(pa.string(), "attack", "scale"),
            *columns(pa.int64(), "people", "releases"),
            *columns(pa.float64(), "win_rate", "standard_error", "win_rate_bound", "tolerance"),
            *columns(pa.float64(), "worst_rate", "worst_standard_error", "worst_bound", "worst_tolerance"),
            ("pass", pa.bool_()),
            ("answer", pa.string()),
        ]
    ),
)

FUNCTIONS = (MATCHING_ATTACK, LINKAGE_RISK, SINGLING_OUT_RISK, MEMBERSHIP_AUDIT)
