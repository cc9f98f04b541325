"""By how much the share of unique people grows with each column."""

from __future__ import annotations

import numpy as np

from duckanon._core.common import progress
from duckanon._core.common.arrays import Array
from duckanon._measure.assess.profiles import Profile

_PEOPLE = 5000
_WIDE = 60  # columns, above which fewer people are looked at
_HALF = 0.5
_MOST_REMOVED = 12  # columns that added nothing when they came, and are measured by what is lost without them


def growth(known: list[Profile], asked: list[Profile], person: Profile | None) -> tuple[dict[str, float], float]:
    """Return how much each column `asked` adds to the share of unique people, and the share with all that are coarse.

    One column after the other is added to the known quasi-identifiers, the one first with which most people are unique.
    Where half of the people are unique already, a further column can hardly add: it is added to fewer columns, those of
    few values first. The first columns add nothing where many are needed: of those it is what the others lose without
    them. One row of each person is looked at.
    """
    rows = _some_people(known + asked, person)
    codes = {profile.name: profile.codes[rows] for profile in known + asked}
    classes, share = np.zeros(len(rows), np.int64), 0.0
    added = []
    for profile in sorted(known, key=lambda one: one.distinct):
        joined, more = _joined(classes, codes[profile.name])
        if more <= _HALF:
            classes, share = joined, more
            added.append(profile.name)
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
            added.append(best.name)
        waiting = [profile for profile in waiting if profile.name not in grown]
    for name in [name for name in added if grown.get(name) == 0][:_MOST_REMOVED]:  # the first of many adds little
        classes, fewer = np.zeros(len(rows), np.int64), 0.0
        for other in added:
            if other != name:
                classes, fewer = _joined(classes, codes[other])
        grown[name] = max(0.0, share - fewer)
    return grown, share


def _some_people(profiles: list[Profile], person: Profile | None) -> Array:
    count = _PEOPLE if len(profiles) <= _WIDE else _PEOPLE * _WIDE // len(profiles)
    rows = np.arange(len(profiles[0].codes)) if profiles else np.zeros(0, np.int64)
    if person is not None:
        rows = np.unique(person.codes, return_index=True)[1]
    return np.random.default_rng(1).permutation(rows)[:count]


def _joined(classes: Array, codes: Array) -> tuple[Array, float]:
    _, joined, sizes = np.unique(classes * (codes.max(initial=0) + 2) + codes, return_inverse=True, return_counts=True)
    return joined, float((sizes == 1).sum() / max(len(codes), 1))
