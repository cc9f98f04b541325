"""The sentences of promises that were kept, as the job writes them: a record that says anything else was forged."""

from __future__ import annotations

import re

_NUMBER = r"\d[\d,.e%+-]*"
_EVENTS = r"any \d+ events?( \(.*\))? of a person"
_ACCOUNT = r"Over all releases of the account \([^()]*\),"
_SENTENCES = {
    "k": (r"Every class has at least # (person|people|row|rows)\.", r"Every shown cell has at least # people\."),
    "linked_k": (
        r"Linked by pseudonym across all tables,( those of events left out,)? at least # (person shares|people share) "
        r"every combination of classes\.",
    ),
    "known_events": (rf"Whoever knows {_EVENTS} finds at least # (person|people) of the same class\.",),
    "max_confidence": (rf"Of the people who hold {_EVENTS}, at most # have the same value of @\.",),
    "l": (
        r"Every class has at least # values? of @(, counted by their entropy)?\.",
        rf"Among the people who hold {_EVENTS} (is|are) at least # values? of @\.",
    ),
    "recursive l": (r"In every class the top @ is less frequent than # times the rare values\.",),
    "t": (
        r"In every class, @ is distributed as in the whole release, up to a distance of #\.",
        rf"Among the people who hold {_EVENTS}, @ is distributed as among all people, up to a distance of #\.",
    ),
    "joint_k": (rf"{_ACCOUNT} at least # (person shares|people share) every list of classes\.",),
    "joint_l": (rf"{_ACCOUNT} at least # (value of @ remains|values of @ remain) for everybody\.",),
    "joint_t": (
        rf"{_ACCOUNT} the values of @ that remain for anybody are distributed as in the whole, up to a distance of #\.",
    ),
    "max_suppressed_fraction": (
        r"# (row was|rows were|person was|people were) suppressed \(#; limit #\)\.",
        r"# of the value of the inner cells is hidden \(limit #\)\.",
    ),
    "max_small_changes": (
        r"No class differs from the previous release by fewer than # (people|rows)\.",
        r"# (class differs|classes differ) from the previous release by fewer than # (people|rows): an attacker who "
        r"knows who came or left in between learns more than their class\.",
    ),
    "open_cells": (r"No hidden cell can be computed from the whole table, nor be known too closely\.",),
    "prediction": (
        r"The release reveals as little about its people as (another sample of the population|all other records) "
        r"\(@\): [^.]*\.",
    ),
    "rare_values": (r"No category of fewer than # people and no number of fewer than three is released\.",),
    "rows_of_people": (r"Nobody has more rows than # people of the original have, or as many as only one or two\.",),
    "max_correlation_difference": (r"Correlations differ from the original's by # in the median\.",),
    "max_marginal_difference": (r"The distribution of no column differs from the original's by more than #\.",),
    "max_detectability_auc": (r"A classifier tells released from original records with an AUC of #\.",),
}
"""By the kind of a promise; # is a number, and @ the column or measure that the promise is about."""


def is_sentence_of(kind: str, about: str, words: str) -> bool:
    """Tell whether the job could write these words of a promise that was kept."""
    forms = (form.replace("#", _NUMBER).replace("@", re.escape(about)) for form in _SENTENCES[kind])
    return any(re.fullmatch(form, words, re.DOTALL) for form in forms)
