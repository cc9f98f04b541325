"""What the report calls things: roles, measures, promises, and definitions for readers who are no statisticians."""

from __future__ import annotations

ROLES = {
    "identifier": "names a person",
    "drop": "",
    "pseudonym": "names a person",
    "person": "says whose a row is",
    "person_key": "says whose a row is",
    "quasi_identifier": "others may know it",
    "sensitive": "nobody should learn it",
    "numeric": "a number, to be made new",
    "spectral": "a number, to be made new",
    "free": "tells nothing about who somebody is",
}

PROMISES = {
    "k": "people who look the same",
    "l": "different sensitive values among them",
    "t": "distance of sensitive values from those of all",
    "suppressed": "rows left out",
    "max_suppressed_fraction": "rows left out",
    "correlation": "largest difference of a correlation",
    "max_correlation_difference": "largest difference of a correlation",
}

MEASURES = {
    "distance": "distance to the nearest released record",
    "ambiguity": "how many records are as near as the nearest",
    "uncertainty": "how much the nearest records differ",
    "class_size": "people who share a record",
    "exact_copies": "records that equal an original",
    "unique_copies": "copies of people whom nobody equals",
    "near_copies": "near copies of the most isolated people",
    "membership": "can members be told from others?",
    "isolated_membership": "can isolated members be told from others?",
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
    "t": "farthest sensitive values of a class (t)",
    "max_suppressed_fraction": "share of the rows that may be left out",
    "tolerance": "tolerance",
    "cluster_size": "records in a cluster",
    "population": "people of the population",
    "beta": "share of people who may have fewer equals",
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
        "Every class has at least k people. Whoever knows somebody's values in these columns is left with at least k "
        "people and cannot tell which of them is meant.",
    ),
    (
        "l-diversity",
        "l-diversity",
        "Every class has at least l different values of a sensitive column, so that being in a class does not give the "
        "value away.",
    ),
    (
        "t-closeness",
        "t-closeness",
        "The sensitive values of every class are distributed nearly as those of all people: t is the largest distance.",
    ),
    (
        "risk",
        "Re-identification risk",
        "The chance to pick the right row for somebody who is known to be in the table: 1 divided by the size of the "
        "person's class. A row is at risk if the chance is above 20 %, which is a class of fewer than five.",
    ),
    (
        "quasi-identifier",
        "Column that others may know",
        "Also called a quasi-identifier: date of birth, postal code, sex, and whatever neighbours, employers or a "
        "phone book know. Together such columns pick people out although none of them is a name.",
    ),
    (
        "narrowing",
        "Narrowing",
        "A column that was kept as it is may tell what another one hides, as an exact age tells the year of birth.",
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
        "others are as near (1: a crowd). Uncertainty: how much the nearest records differ from each other. More "
        "is safer.",
    ),
    (
        "correlation",
        "Correlation",
        "How strongly two columns go together, from -1 to 1. A release that keeps correlations keeps what "
        "analysts look for.",
    ),
    (
        "component",
        "Kernel component",
        "A direction in which columns vary together, curves and interactions included. The distance says how far "
        "original and release are apart along it: 0 is the same, 1 is nothing in common.",
    ),
    ("suppression", "Left out", "Rows of people who did not fit into any class that is large enough."),
)
