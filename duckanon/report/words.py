"""Names of roles, measures and promises in the report, and definitions for readers who are not statisticians."""

from __future__ import annotations

ROLES = {
    "identifier": "names a person",
    "drop": "",
    "pseudonym": "names a person",
    "person": "identifies the person of a row",
    "person_key": "identifies the person of a row",
    "quasi_identifier": "others may know it",
    "sensitive": "nobody should learn it",
    "numeric": "a number, to be synthesized",
    "spectral": "a number, to be synthesized",
    "free": "identifies nobody",
}

PROMISES = {
    "k": "people who look the same",
    "l": "different sensitive values among them",
    "t": "distance between the sensitive values of a class and of the table",
    "suppressed": "rows suppressed",
    "max_suppressed_fraction": "rows suppressed",
    "correlation": "largest change of a correlation",
    "max_correlation_difference": "largest change of a correlation",
}

MEASURES = {
    "distance": "distance to the nearest released record",
    "ambiguity": "how many records are as near as the nearest one",
    "uncertainty": "how much the nearest records differ",
    "class_size": "people who share a record",
    "exact_copies": "records that equal an original",
    "unique_copies": "copies of unique people",
    "near_copies": "near copies of the most isolated people",
    "membership": "can an attacker tell members from others?",
    "isolated_membership": "can an attacker tell isolated members from others?",
}

STATISTICS = {
    "mean": "means, in standard deviations",
    "variance": "variances, as a share of the original's",
    "correlation": "correlations",
    "rank_correlation": "rank correlations",
    "ks": "distributions of numbers",
    "total_variation": "shares of categories",
}

PARAMETERS = {
    "k": "people who must look the same (k)",
    "l": "different sensitive values in a class (l)",
    "t": "largest distance of a class's sensitive values (t)",
    "max_suppressed_fraction": "share of the rows that may be suppressed",
    "tolerance": "tolerance",
    "cluster_size": "records in a cluster",
    "population": "people in the population",
    "beta": "share of people who may share their values with fewer than k people in the population",
}

DEFINITIONS = (
    (
        "class",
        "Class",
        "All rows that look the same in the columns that others may know. The class is the crowd in which "
        "somebody hides.",
    ),
    (
        "k-anonymity",
        "k-anonymity",
        "Every class has at least k people. Whoever knows somebody's values in these columns finds at least k "
        "people and cannot tell which of them is the right one.",
    ),
    (
        "l-diversity",
        "l-diversity",
        "Every class has at least l different values of a sensitive column, so that knowing somebody's class does not "
        "reveal the value.",
    ),
    (
        "t-closeness",
        "t-closeness",
        "The sensitive values of every class are distributed nearly as in the whole table: t is the largest distance.",
    ),
    (
        "risk",
        "Re-identification risk",
        "The chance of picking the right row for somebody who is known to be in the table: 1 divided by the size of "
        "the person's class. A row is at risk if the chance is above 20 %, that is, in a class of fewer than five.",
    ),
    (
        "quasi-identifier",
        "Column that others may know",
        "Also called a quasi-identifier: date of birth, postal code, sex, and whatever neighbours, employers or a "
        "phone book know. Together these columns single people out, although none of them is a name.",
    ),
    (
        "narrowing",
        "Narrowing",
        "A column kept unchanged may reveal what another one hides, as an exact age reveals the year of birth.",
    ),
    (
        "reference",
        "Reference sample",
        "Records of other people, who are not in the release. A release that comes no nearer to its own people "
        "than these records do is as safe for them as not taking part.",
    ),
    (
        "prediction",
        "Prediction measures",
        "Distance: how far the nearest released record is from a person. Ambiguity: whether that record stands out or "
        "others are as near (1: many are). Uncertainty: how much the nearest records differ from each other. More "
        "is safer.",
    ),
    (
        "correlation",
        "Correlation",
        "How strongly two columns vary together, from -1 to 1. A release that keeps correlations keeps what "
        "analysts look for.",
    ),
    (
        "component",
        "Kernel component",
        "A direction in which columns vary together, curves and interactions included. The distance compares "
        "original and release along it: 0 means the same, 1 means nothing in common.",
    ),
    ("suppression", "Suppressed", "Rows of people who did not fit into any class of at least k people."),
)
