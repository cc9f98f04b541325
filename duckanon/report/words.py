"""Names of roles and measures in the report, for readers who are not statisticians; of promises: `quantities`."""

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

TERMS = {
    "recipient": "Recipient",
    "purpose": "Purpose",
    "legal_basis": "Legal basis",
    "valid_until": "Valid until",
    "reviewers": "Reviewers",
}
