"""Roles of columns found so far, with their reasons."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum

from duckanon._measure.assess.keys import Groups, Key
from duckanon._measure.assess.profiles import Profile

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
