"""The functions of this package that SQL can call."""

from __future__ import annotations

import pyarrow as pa

from duckanon._core.common.declare import Release, Report

PRIVACY_TEST = pa.schema(
    [
        ("measure", pa.string()),
        ("value", pa.float64()),
        ("reference_value", pa.float64()),
        ("ks", pa.float64()),
        ("p_value", pa.float64()),
        ("shift", pa.float64()),
        ("shift_bound", pa.float64()),
        ("limit", pa.float64()),
        ("pass", pa.bool_()),
        ("answer", pa.string()),
    ]
)

MEMBERSHIP_AUDIT = pa.schema(
    [
        ("scale", pa.string()),
        ("people", pa.int64()),
        ("releases", pa.int64()),
        ("win_rate", pa.float64()),
        ("standard_error", pa.float64()),
        ("tolerance", pa.float64()),
        ("pass", pa.bool_()),
    ]
)

MATCHING_ATTACK = pa.schema(
    [
        ("records", pa.int64()),
        ("released_rows", pa.int64()),
        ("images", pa.int64()),
        ("matched", pa.float64()),
        ("expected", pa.float64()),
        ("tied_rows", pa.float64()),
        ("distance_auc", pa.float64()),
        ("ambiguity_auc", pa.float64()),
        ("uncertainty_auc", pa.float64()),
    ]
)

LINKAGE_RISK = pa.schema(
    [
        ("secret", pa.string()),
        ("attacks", pa.int64()),
        ("success", pa.float64()),
        ("control_attacks", pa.int64()),
        ("control_success", pa.float64()),
        ("naive_success", pa.float64()),
        ("risk", pa.float64()),
        ("risk_lower", pa.float64()),
        ("risk_upper", pa.float64()),
    ]
)

SINGLING_OUT_RISK = pa.schema(
    [
        ("mode", pa.string()),
        ("attacks", pa.int64()),
        ("rows_looked_at", pa.int64()),
        ("success", pa.float64()),
        ("control_success", pa.float64()),
        ("naive_success", pa.float64()),
        ("risk", pa.float64()),
        ("risk_lower", pa.float64()),
        ("risk_upper", pa.float64()),
    ]
)

UTILITY = pa.schema(
    [
        ("statistic", pa.string()),
        ("column_name", pa.string()),
        ("other_column", pa.string()),
        ("original", pa.float64()),
        ("released", pa.float64()),
        ("difference", pa.float64()),
        ("normalized_difference", pa.float64()),
        ("median_difference", pa.float64()),
    ]
)

KERNEL_UTILITY = pa.schema(
    [
        ("component", pa.int64()),
        ("eigenvalue", pa.float64()),
        ("cumulative", pa.float64()),
        ("ks", pa.float64()),
        ("p_value", pa.float64()),
        ("reference_ks", pa.float64()),
        ("reference_p_value", pa.float64()),
    ]
)

KERNEL_COMPONENTS = pa.schema(
    [
        ("source", pa.string()),
        ("projections", pa.list_(pa.float64())),
    ]
)

CLASSIFIER_UTILITY = pa.schema(
    [
        ("model", pa.string()),
        ("measure", pa.string()),
        ("trained_on_original", pa.float64()),
        ("trained_on_released", pa.float64()),
        ("difference", pa.float64()),
        ("train_rows", pa.int64()),
        ("test_rows", pa.int64()),
    ]
)

DETECTABILITY = pa.schema(
    [
        ("comparison", pa.string()),
        ("auc", pa.float64()),
        ("standard_error", pa.float64()),
        ("rows_each", pa.int64()),
    ]
)

QUERY_UTILITY = pa.schema(
    [
        ("predicates", pa.int64()),
        ("queries", pa.int64()),
        ("median_relative_error", pa.float64()),
        ("mean_relative_error", pa.float64()),
        ("p90_relative_error", pa.float64()),
    ]
)

COMPARE_RELEASES = pa.schema(
    [
        ("release", pa.string()),
        ("kind", pa.string()),
        ("measure", pa.string()),
        ("value", pa.float64()),
        ("reference_value", pa.float64()),
        ("pass", pa.bool_()),
    ]
)

_BOTH = ("original", "released")

FUNCTIONS = (
    Release(name="prediction_risk", algorithm="duckanon._measure.privacy_measures:prediction_risk", tables=_BOTH),
    Report(
        name="privacy_test",
        algorithm="duckanon._measure.privacy_measures:privacy_test",
        schema=PRIVACY_TEST,
        tables=(*_BOTH, "reference", "holdout", "stacked"),
    ),
    Report(
        name="membership_audit", algorithm="duckanon._measure.attacks.audit:membership_audit", schema=MEMBERSHIP_AUDIT
    ),
    Report(
        name="matching_attack",
        algorithm="duckanon._measure.privacy_measures:matching_attack",
        schema=MATCHING_ATTACK,
        tables=_BOTH,
    ),
    Report(
        name="linkage_risk",
        algorithm="duckanon._measure.privacy_measures:linkage_risk",
        schema=LINKAGE_RISK,
        tables=(*_BOTH, "control"),
    ),
    Report(
        name="singling_out_risk",
        algorithm="duckanon._measure.privacy_measures:singling_out_risk",
        schema=SINGLING_OUT_RISK,
        tables=(*_BOTH, "control"),
    ),
    Report(
        name="utility", algorithm="duckanon._measure.utility.utility_measures:utility", schema=UTILITY, tables=_BOTH
    ),
    Report(
        name="kernel_utility",
        algorithm="duckanon._measure.utility.utility_measures:kernel_utility",
        schema=KERNEL_UTILITY,
        tables=(*_BOTH, "reference"),
    ),
    Report(
        name="kernel_components",
        algorithm="duckanon._measure.utility.utility_measures:kernel_components",
        schema=KERNEL_COMPONENTS,
        tables=_BOTH,
    ),
    Report(
        name="classifier_utility",
        algorithm="duckanon._measure.utility.utility_measures:classifier_utility",
        schema=CLASSIFIER_UTILITY,
        tables=(*_BOTH, "holdout"),
    ),
    Report(
        name="detectability",
        algorithm="duckanon._measure.utility.utility_measures:detectability",
        schema=DETECTABILITY,
        tables=_BOTH,
    ),
    Report(
        name="query_utility",
        algorithm="duckanon._measure.utility.utility_measures:query_utility",
        schema=QUERY_UTILITY,
        tables=_BOTH,
    ),
    Report(
        name="compare_releases",
        algorithm="duckanon._measure.compare:compare_releases",
        schema=COMPARE_RELEASES,
        tables=("original", "stacked", "reference"),
    ),
)
