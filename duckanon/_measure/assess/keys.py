"""Keys of people and households, found by what is constant within them, whatever they are called.

Roles of columns found so far, with their reasons.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property

import numpy as np

from duckanon._core.common.arrays import Array
from duckanon._measure.assess.profiles import LIFETIME, Profile, is_age, is_sex, is_time
from duckanon._measure.assess.vocabulary import CONFIDENTIAL, KNOWN_BY_OTHERS

CONSTANT = 0.98
"""Rows that agree in a key agree so much more often than by chance in a column that is constant within it: a few errors
of entry are forgiven."""

_FEWEST_PAIRS = 20
_FEWEST_VALUES = 20
_LARGEST_GROUP = 300  # rows of one value on average, above which a column is no key of a person or a household
SMALL_GROUP = 12
"""Rows of a household on average, at most; a code of more is one of places unless much follows from it."""
_APART, _CLOSE = 4, 6
"""Years: ages of a household's members differ by more than the first in half of the pairs, those of a person's rows by
at most the second in nine of ten. Spouses are of about the same age in half of the couples, but not in nine of ten."""


class Groups:
    """The rows of a table in groups of equal values of a column."""

    def __init__(self, key: Profile) -> None:
        self.key = key
        codes = key.codes if key.whole is None else np.where(key.whole, key.codes, -1)
        order = np.argsort(codes, kind="stable")
        same = (codes[order][1:] == codes[order][:-1]) & (codes[order][1:] >= 0)
        self.first, self.second = order[:-1][same], order[1:][same]
        self.pairs = len(self.first)  # of neighbours in a group
        self._lifts: dict[str, float] = {}

    def agreement(self, other: Profile) -> float:
        """Return the share of pairs that agree in a column."""
        return float((other.codes[self.first] == other.codes[self.second]).mean()) if self.pairs else 0.0

    def lift(self, other: Profile) -> float:
        """Return how much more often pairs agree in a column than by chance: 1 always, 0 as by chance."""
        if other.name not in self._lifts:
            chance = other.agreement
            enough = self.pairs >= _FEWEST_PAIRS and chance < 1
            self._lifts[other.name] = (self.agreement(other) - chance) / (1 - chance) if enough else 0.0
        return self._lifts[other.name]

    def fixes(self, other: Profile) -> bool:
        """Tell whether a column is constant within the groups."""
        return self.lift(other) >= CONSTANT

    def differences(self, other: Profile) -> tuple[float, float]:
        """Return the difference in a number that half, and nine of ten, of the pairs do not exceed."""
        assert other.numbers is not None
        apart = np.abs(other.numbers[self.first] - other.numbers[self.second])
        apart = apart[np.isfinite(apart)]
        return tuple(np.quantile(apart, [0.5, 0.9])) if len(apart) >= _FEWEST_PAIRS else (0.0, np.inf)

    @cached_property
    def is_in_blocks(self) -> bool:
        """Whether the rows of each group stand together."""
        codes = self.key.codes if self.key.whole is None else self.key.codes[self.key.whole]
        runs = int((np.diff(codes) != 0).sum()) + 1
        return runs <= 1.05 * len(np.unique(codes))


@dataclass(frozen=True)
class Key:
    """A column whose values repeat and determine others."""

    profile: Profile
    constant: list[Profile]  # columns that are constant within it
    is_person: bool | None  # whether its rows are those of one person; None: the values do not tell
    reason: str  # how that is known


def find(profiles: list[Profile], groups: dict[str, Groups]) -> list[Key]:
    """Return the columns that are built like keys; the groups of all candidates are added to `groups`."""
    keys = []
    for profile in profiles:
        if not _may_be_key(profile):
            continue
        grouping = groups[profile.name] if profile.name in groups else Groups(profile)
        if is_age(profile) and "person key" not in profile.topics and not grouping.is_in_blocks:
            continue
        groups[profile.name] = grouping
        rest = [other for other in profiles if other is not profile and other.distinct > 1]
        constant = [
            other
            for other in rest
            if other.agreement < 0.95 and other.distinct <= 1.02 * profile.distinct and grouping.fixes(other)
        ]
        if _is_key(profile, grouping, _independent(profile, constant)):
            keys.append(Key(profile, constant, *_whose(grouping, rest)))
    return keys


def _independent(profile: Profile, constant: list[Profile]) -> list[Profile]:
    """Return those of the constant columns that do not follow from each other.

    From a code of a classification, as of places, follow its coarser levels, each from the one before; a person or a
    household has several things that have nothing to do with each other. A number that follows both ways, such as a
    square, says nothing.
    """
    independent: list[Profile] = []
    kept: list[Groups] = []
    for candidate in sorted(constant, key=lambda candidate: -candidate.distinct):
        is_twin = candidate.distinct > 0.5 * profile.distinct
        if (is_twin and candidate.kind == "numeric") or any(groups.fixes(candidate) for groups in kept):
            continue
        independent.append(candidate)
        if not is_twin:
            kept.append(Groups(candidate))
    return independent


def _may_be_key(profile: Profile) -> bool:
    """Tell whether a column has the values of a key: a code without gaps that repeats."""
    repeats = profile.known >= 1.1 * profile.distinct > 1.1
    if not (profile.kind == "text" or profile.is_integer) or profile.missing > 0.02 or not repeats:
        return False
    if profile.kind == "text" and profile.words.per_value >= 4:
        return False
    if profile.is_integer and (profile.numeric.zeros > 0.02 or profile.numeric.negative):
        return False
    return profile.distinct >= max(_FEWEST_VALUES, profile.known / _LARGEST_GROUP)


def _is_key(profile: Profile, groups: Groups, constant: list[Profile]) -> bool:
    numeric = profile.numeric if profile.kind == "numeric" else None
    is_even = numeric is None or numeric.density > 0.5 or numeric.same_length > 0.9 or numeric.unevenness < 0.1
    is_code = is_even or groups.is_in_blocks
    is_amount = numeric is not None and numeric.density < 0.5 and (numeric.heaped > 0.3 or numeric.tail > 4)
    is_named = profile.topics & {"person key", "household key"}
    is_about_else = profile.topics & (KNOWN_BY_OTHERS | CONFIDENTIAL) and not is_named
    if is_amount or not is_code or is_about_else:
        twins = [one for one in constant if one.kind == "text" and one.distinct >= 0.95 * profile.distinct]
        return bool(twins) or len(constant) > 3
    if "person key" in profile.topics and len(constant) + groups.is_in_blocks:
        return True
    tells_person = any(is_sex(one) or _is_birth(one) for one in constant)
    return len(constant) > 1 or (len(constant) == 1 and (groups.is_in_blocks or tells_person))


def _is_birth(profile: Profile) -> bool:
    return profile.kind == "date" and profile.span > LIFETIME


def _whose(groups: Groups, profiles: list[Profile]) -> tuple[bool | None, str]:
    """Tell whether groups are people, by what people do not change: birth, sex, age but for a few years."""
    births = [groups.lift(one) for one in profiles if _is_birth(one)]
    ages = [groups.differences(one) for one in profiles if is_age(one)]
    # a column that never repeats within a group counts its rows: the term of a panel is no sex
    sexes = [groups.lift(one) for one in _sexes(profiles) if groups.agreement(one) > 0.02]
    if births and max(births) >= CONSTANT:
        return True, "a date of birth is constant within it"
    if births and max(births) < 0.9:
        return False, "dates of birth differ within it"
    if ages and min(half for half, _ in ages) > _APART:
        return False, "ages differ within it"
    if sexes and max(sexes) < 0.9:
        return False, "sex differs within it"
    if ages and min(most for _, most in ages) <= _CLOSE:
        return True, "ages stay close within it"
    if sexes and min(sexes) >= CONSTANT:
        return True, "sex is constant within it"
    if any(groups.lift(one) < 0.7 for one in profiles if is_age(one)):
        return False, "ages differ within it"
    if any(is_time(one) for one in profiles if groups.lift(one) < 0.9):
        return True, "its rows differ by time"
    return None, "the values do not show whether it is a person or a group"


def _sexes(profiles: Iterable[Profile]) -> list[Profile]:
    """Return the columns of sex: told by words, else by name, else by two codes."""
    columns = [one for one in profiles if is_sex(one) or ("sex" in one.topics and one.distinct == 2)]
    return [one for one in columns if one.kind == "text"] or [one for one in columns if "sex" in one.topics] or columns


def is_large_group(key: Key, groups: Groups) -> bool:
    """Tell whether a code has groups too large for households, as places have."""
    rows = key.profile.known / max(key.profile.distinct, 1)
    return rows > SMALL_GROUP and len(key.constant) < 4 and not groups.is_in_blocks


def repeats(profile: Profile, key: Profile, groups: Groups) -> bool:
    """Tell whether a column is another writing of a key: the same values, one for one, or numbers in its order.

    An amount that each person has one of, such as a salary, is one for one as well: of numbers with decimals the order
    must agree, too.
    """
    if not 0.95 * key.distinct <= profile.distinct <= 1.05 * key.distinct or profile.distinct < 2:
        return False
    has_same_texts = len(set(profile.values) & set(key.values)) >= 0.9 * profile.distinct and profile.distinct > 2
    if has_same_texts or _is_monotone(profile.numbers, key.numbers):
        return True
    is_code = profile.kind == "text" or profile.is_integer
    is_told = groups.lift(profile) >= CONSTANT if groups.pairs >= _FEWEST_PAIRS else groups.agreement(profile) == 1
    return is_code and is_told and groups.pairs > 0


def _is_monotone(first: Array | None, second: Array | None) -> bool:
    """Tell whether numbers rise or fall strictly together."""
    if first is None or second is None or len(np.unique(second)) < 3:
        return False
    order = np.argsort(second, kind="stable")
    steps, is_rising = np.diff(first[order]), np.diff(second[order]) > 0
    return bool(((steps > 0) == is_rising).all() or ((steps < 0) == is_rising).all())


PICKS_OUT = 0.2  # share of unique people from which on columns pick people out, as alpha of anon.quasi_identifiers


class Role(StrEnum):
    """Roles, as anon.assess writes them."""

    PERSON = "person key"
    HOUSEHOLD = "household key"
    IDENTIFIER = "identifier"
    QUASI = "quasi-identifier"
    POSSIBLE = "possible quasi-identifier"
    SENSITIVE = "sensitive"
    WEIGHT = "weight"
    CONSTANT = "constant"
    UNDECIDED = "undecided"


Said = tuple[Role, str] | None  # a role and its reason


@dataclass
class Columns:
    """The columns of a table, with roles and reasons found so far."""

    profiles: list[Profile]
    row_count: int  # of the whole table
    roles: dict[str, Role] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)
    groups: dict[str, Groups] = field(default_factory=dict)  # rows by the values of a column that may be a key
    person: Profile | None = None  # the column that identifies people
    sources: dict[str, list[str]] = field(default_factory=dict)  # the columns that a column follows from
    growth: dict[str, float] = field(default_factory=dict)  # of the share of unique people with a column

    def say(self, profile: Profile, said: Said) -> None:
        """Note a role and its reason; what was said before is replaced."""
        if said is not None:
            self.roles[profile.name], self.reasons[profile.name] = said

    def ask(self, *rules: Callable[[Profile, Columns], Said]) -> None:
        """Ask rules of every column without a role, one rule after the other."""
        for rule in rules:
            for profile in self.open:
                self.say(profile, rule(profile, self))

    @property
    def open(self) -> list[Profile]:
        """Columns without a role."""
        return [profile for profile in self.profiles if profile.name not in self.roles]

    def having(self, *roles: Role) -> list[Profile]:
        """Return the columns of these roles."""
        return [profile for profile in self.profiles if self.roles.get(profile.name) in roles]

    def is_constant_for_person(self, profile: Profile) -> bool:
        """Tell whether a column is the same in all rows of a person."""
        return self.person is not None and self.groups[self.person.name].fixes(profile)


def constant_columns(key: Key) -> str:
    """Say how many columns are constant within a key."""
    count = len(key.constant)
    return "1 column is constant within it" if count == 1 else f"{count} columns are constant within it"


def person_reason(profile: Profile, key: Key | None = None) -> str:
    """Say why a column is the key of people whose rows are several."""
    rows = 1 / max(profile.distinct_share, 1e-12)
    structure = f"; {constant_columns(key)}, {key.reason}" if key else ""
    quoted = profile.name.replace("'", "''")
    return f"{rows:.1f} rows per value{structure}: rows are not people; pass person := '{quoted}' in every call"
