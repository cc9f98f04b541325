"""Names of roles, measures and promises in the report, for readers who are not statisticians."""

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
    "free": "declared free by the policy",
}

PROMISES = {
    "k": "people who look the same",
    "l": "different sensitive values among them",
    "t": "distance between the sensitive values of a class and of the table",
    "open_cells": "hidden cells that a reader can compute",
    "linked_k": "people whose rows in all tables look the same",
    "known_events": "people who share any known events of a person",
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
    "noisy_copies": "copies with a little noise",
    "rare_values": "values of single people, column by column",
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
    "known": "events of a person that somebody may know",
    "max_confidence": "largest share of one sensitive value among people who share known events",
    "tolerance": "tolerance",
    "cluster_size": "records in a cluster",
    "population": "people in the population",
    "beta": "share of people who may share their values with fewer than k people in the population",
}

TERMS = {
    "recipient": "Recipient",
    "purpose": "Purpose",
    "legal_basis": "Legal basis",
    "valid_until": "Valid until",
    "reviewers": "Reviewers",
}
