"""What promises and parameters of a release count: one meaning each, for terminal, report and workbench alike.

The sentence of a promise in the record says the number; the meaning here says what is counted, in words for readers who
are no statisticians. What is suppressed is counted in people, in rows, or as the value of hidden cells: a share of one
is none of another.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

Unit = Literal["people", "rows", "value"]

_SUPPRESSED: dict[Unit, str] = {
    "people": "share of the people all of whose rows are suppressed",
    "rows": "share of the rows that are suppressed",
    "value": "share of the value of the inner cells that is hidden",
}

_PROMISES = {
    "k": "{} in the smallest class",
    "l": "different values of a sensitive column in a class, at least",
    "recursive l": "how much more frequent the top value of a sensitive column is than the rare ones of its class",
    "t": "largest distance between the sensitive values of a class and of the release",
    "linked_k": "people whose rows, taken together, are in the same classes, at least",
    "known_events": "people who share any known events of a person, at least",
    "max_confidence": "largest share of one sensitive value among people who share known events",
    "joint_k": "people who were in the same class in each release of the account, at least",
    "joint_l": "sensitive values common to all classes of such people, at least",
    "joint_t": "largest distance between these values and the whole table's",
    "max_small_changes": "classes that changed by fewer than k since the previous release",
    "open_cells": "hidden cells that a reader can compute, or knows too closely",
    "rare_values": "released values that belong to too few people",
    "rows_of_people": "new people with as many rows as hardly anybody has",
    "max_correlation_difference": "median difference of the correlations",
    "max_marginal_difference": "largest difference of the distribution of one column",
    "max_detectability_auc": "AUC of a classifier that tells released from original records",
    "prediction": "whether the release is as safe as not taking part",
}

_PARAMETERS = {
    "k": "people who must look the same (k)",
    "l": "different sensitive values in a class (l)",
    "t": "largest distance of a class's sensitive values (t)",
    "known": "events of a person that somebody may know",
    "max_confidence": _PROMISES["max_confidence"],
    "cluster_size": "records in a cluster",
    "population": "people in the population",
    "beta": "share of people who may share their values with fewer than k people in the population",
}

_OF_METHODS = {
    ("boxes", "l"): "values at least epsilon apart in each column of a box (l of boxes, no l-diversity)",
    ("protect_table", "k"): "people in every cell that is shown (k)",
    ("synthesize", "k"): "people who must share a category that is released (k of the method)",
    ("spectral_release", "k"): "people who must share a category that is released (k of the method)",
}
"""Parameters of methods that are called as a promise is, and mean something else."""


def list_promises() -> frozenset[str]:
    """Return the names of all promises that have a meaning."""
    return frozenset(_PROMISES) | {"max_suppressed_fraction"}


def explain_promise(name: str, unit: Unit = "people") -> str:
    """Say what a promise counts; it may have the name of a column or a measure, as in the record.

    Examples:
        >>> explain_promise("k", "rows"), explain_promise("t of diagnosis")[:16]
        ('rows in the smallest class', 'largest distance')
    """
    kind = name.partition(": ")[0].partition(" of ")[0]
    if kind == "max_suppressed_fraction":
        return _SUPPRESSED[unit]
    if kind == "k" and unit == "value":
        return "people in the smallest cell that is shown"
    return _PROMISES.get(kind, "").format("rows" if unit == "rows" else "people")


def explain_parameter(method: str, name: str, unit: Unit = "people") -> str:
    """Say what a parameter of a method means."""
    if name == "max_suppressed_fraction":
        return f"{_SUPPRESSED[unit]}, at most"
    return _OF_METHODS.get((method, name), _PARAMETERS.get(name, name.replace("_", " ")))


def choose_unit(table: Mapping[str, Any]) -> Unit:
    """Return what the suppressed of a table are counted in, from its entry in a record."""
    if table.get("cells"):
        return "value"
    suppressed, method = table.get("suppressed") or {}, (table.get("method") or {}).get("name")
    return "rows" if suppressed.get("people") is None or method == "release_linked" else "people"


def explain_entry(table: Mapping[str, Any], promise: str) -> str:
    """Say what a promise of a table counts, from its entry in a record."""
    unit = choose_unit(table)
    if unit != "value" and not promise.startswith("max_suppressed"):
        unit = "rows" if table.get("people") is None else "people"
    return explain_promise(promise, unit)


def list_ambiguous_parameters(table: Mapping[str, Any]) -> Iterator[tuple[str, Any, str]]:
    """Yield the parameters of a table's method that are called as a promise is, with value and meaning."""
    method = table["method"]
    for name, value in method["parameters"].items():
        if (method["name"], name) in _OF_METHODS and not table.get("cells"):
            yield name, value, _OF_METHODS[method["name"], name]
