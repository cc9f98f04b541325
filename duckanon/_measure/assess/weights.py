"""Detect sampling weights, as opposed to body weights and amounts."""

from __future__ import annotations

import itertools

import numpy as np

from duckanon._measure.assess import shapes, vocabulary
from duckanon._measure.assess.findings import Role, Said
from duckanon._measure.assess.keys import CONSTANT, Groups
from duckanon._measure.assess.profiles import Profile

_MOST_PEOPLE = 9e9
_MOST_STRATA = 15  # columns of few values that are tried as strata, two together


def role_of(
    profile: Profile,
    row_count: int,
    households: list[Groups],
    coarse: list[Profile],
    found: list[Profile],
    has_heights: bool,
) -> Said:
    """Return the role of a column that may be a sampling weight, and why; None where it is none.

    `coarse` columns, of few values, may be strata; `found` are weights already. With `has_heights` another column is
    distributed like heights of people: a weight beside it is one of bodies.
    """
    if not _is_positive(profile, row_count):
        return None
    if any(_is_proportional(profile, one) for one in found):
        return Role.WEIGHT, "proportional to another weight"
    if "weight" not in profile.topics:
        if profile.topics or not may_be(profile):
            return None
        strata = _strata(profile, households, coarse)
        reason = f"like a weight: fixed by {strata}; an average of amounts looks the same"
        return (Role.UNDECIDED, reason) if strata else None
    if profile.topics & (vocabulary.CONFIDENTIAL | {"birth", "age"}):
        return None
    if shapes.is_body(profile):
        return None if has_heights else (Role.UNDECIDED, "named like a weight, distributed like body weights")
    numbers = profile.numeric
    is_fixed = any(own.fixes(profile) for own in households) or profile.distinct <= min(50, profile.known / 50)
    if numbers.heaped >= 0.6 or not (numbers.variation > 0.45 or is_fixed):
        return Role.UNDECIDED, "named like a weight, but distributed like a measurement"
    total = numbers.mean * row_count
    return Role.WEIGHT, f"named like a sampling weight; positive, without gaps, adds up to {total:.3g}"


def may_be(profile: Profile) -> bool:
    """Tell whether a column without a name may be a weight: positive with odd decimals, a mean above 1."""
    if profile.kind != "numeric" or profile.missing or profile.is_integer or shapes.is_age(profile):
        return False
    numbers = profile.numeric
    return numbers.lowest > 0 and numbers.mean > 1.5 and numbers.variation < 1.5 and numbers.decimals[2] > 0.5


def _is_positive(profile: Profile, row_count: int) -> bool:
    if profile.kind != "numeric" or profile.missing or profile.distinct < 3:
        return False
    numbers = profile.numeric
    return numbers.lowest > 0 and numbers.variation < 3 and numbers.mean * row_count < _MOST_PEOPLE


def _is_proportional(profile: Profile, other: Profile) -> bool:
    one, two = profile.numbers, other.numbers
    if one is None or two is None or profile.distinct <= 8 or profile.is_integer:
        return False
    return bool(abs(np.corrcoef(one, two)[0, 1]) > 0.9999)


def _strata(profile: Profile, households: list[Groups], coarse: list[Profile]) -> str | None:
    """Return what fixes a column: a household or two columns of few values."""
    if not 8 < profile.distinct <= profile.known / 4:
        return None
    for own in households:
        if profile.distinct <= profile.known / 50 and own.fixes(profile):
            return own.key.name
    for one, two in itertools.combinations([one for one in coarse if one is not profile][:_MOST_STRATA], 2):
        codes = one.codes * (two.distinct + 1) + two.codes
        order = np.argsort(codes, kind="stable")
        same = np.diff(codes[order]) == 0
        if same.mean() < 0.9:
            continue
        agree = (np.diff(profile.codes[order]) == 0)[same].mean()
        if (agree - profile.agreement) / (1 - profile.agreement) >= CONSTANT:
            return f"{one.name} and {two.name}"
    return None
