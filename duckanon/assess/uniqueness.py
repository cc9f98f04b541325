"""By how much the share of unique people grows with each column."""

from __future__ import annotations

import numpy as np

from duckanon.assess.profiles import Profile
from duckanon.common import progress
from duckanon.common.arrays import Array

_PEOPLE = 5000
_WIDE = 60
"""Columns, above which fewer people are looked at."""
_HALF = 0.5


def growth(known: list[Profile], asked: list[Profile], person: Profile | None) -> dict[str, float]:
    """Return by how much the share of unique people grows with each column that is asked for.

    One column after the other is added to the quasi-identifiers, the one first with which most people are unique. Where
    half of the people are unique already, a further column can hardly add: it is added to fewer columns, those of few
    values first.

    Parameters
    ----------
    known
        Quasi-identifiers.
    asked
        Columns that may be some.
    person
        Says whose a row is: one row of each person is looked at.
    """
    rows = _some_people(known + asked, person)
    codes = {profile.name: profile.codes[rows] for profile in known + asked}
    classes, share = np.zeros(len(rows), np.int64), 0.0
    for profile in sorted(known, key=lambda one: one.distinct):
        joined, more = _joined(classes, codes[profile.name])
        if more <= _HALF:
            classes, share = joined, more
    grown: dict[str, float] = {}
    waiting = list(asked)
    while waiting:
        progress.check()
        tried = [(*_joined(classes, codes[profile.name]), profile) for profile in waiting]
        too_fine = {profile.name: more - share for _, more, profile in tried if more > _HALF}
        grown |= too_fine
        joined, more, best = max((one for one in tried if one[1] <= _HALF), key=lambda one: one[1], default=tried[0])
        if best.name not in too_fine:
            grown[best.name], classes, share = more - share, joined, more
        waiting = [profile for profile in waiting if profile.name not in grown]
    return grown


def _some_people(profiles: list[Profile], person: Profile | None) -> Array:
    count = _PEOPLE if len(profiles) <= _WIDE else _PEOPLE * _WIDE // len(profiles)
    rows = np.arange(len(profiles[0].codes)) if profiles else np.zeros(0, np.int64)
    if person is not None:
        rows = np.unique(person.codes, return_index=True)[1]
    return np.random.default_rng(1).permutation(rows)[:count]


def _joined(classes: Array, codes: Array) -> tuple[Array, float]:
    _, joined, sizes = np.unique(classes * (codes.max(initial=0) + 2) + codes, return_inverse=True, return_counts=True)
    return joined, float((sizes == 1).sum() / max(len(codes), 1))
