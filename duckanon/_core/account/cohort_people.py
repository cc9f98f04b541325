"""The people of whom cohorts decide: where they were, where they are now, and what has been shown of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from duckanon._core.account.groups import ABSENT
from duckanon._core.account.joint import ValuesLeft
from duckanon._core.account.value_paths import ValuePaths
from duckanon._core.common.arrays import Bools, Ints

POOL = 0
"""The number of the class whose labels are all unknown; other classes have numbers from 1."""


@dataclass(frozen=True)
class Rules:
    """What every part of a group keeps, and how long newcomers wait."""

    k: int
    l: int = 1  # noqa: E741 - as the functions call it
    size: int = 0  # people of a cohort that enter without further waiting
    # releases after which k people are enough, and after which people who moved go where all labels are unknown; after
    # twice as many, newcomers enter under coarser labels
    patience: int = 3
    refresh: bool = False  # whether people who stay show their new values: records that never change are of people gone


@dataclass(frozen=True)
class People:
    """The people of the last release and of the table, by number.

    Attributes:
        groups: Of each person, the number of the people with the same list so far.
        before: The class in the last release, `ABSENT` where they were not in it.
        now: The class in the table, `ABSENT` where they are gone.
        is_seen: Whether they were in any release.
        was_in: Whether they were in a release of this table; people of other tables are only seen.
        must_go: Whether they must not be in the new release.
        waited: Of people in the table, for how many releases they were not in one.
        stale: Of people in the last release, for how many releases their record was not true.
        coarser: Of each class (a row), the classes that are true of its people too: itself first, then under ever
            coarser labels, `POOL` last.
        shown: By sensitive column, the pairs of person and value of the last release, as `person * width + value`,
            ascending.
        new: By sensitive column, the same of the table.
        left: By sensitive column, the values that are in every class of a group's list.
        paths: By sensitive column, what people showed in all releases, where pseudonyms tell whose records are whose,
            and where several tables have the same people.
    """

    groups: Ints
    before: Ints
    now: Ints
    is_seen: Bools
    was_in: Bools
    must_go: Bools
    waited: Ints
    stale: Ints
    coarser: Ints
    shown: Mapping[str, Ints] = field(default_factory=dict)
    new: Mapping[str, Ints] = field(default_factory=dict)
    left: Mapping[str, ValuesLeft] = field(default_factory=dict)
    widths: Mapping[str, int] = field(default_factory=dict)
    paths: Mapping[str, ValuePaths] = field(default_factory=dict)

    @cached_property
    def is_in(self) -> Bools:
        """Whether they were in the last release."""
        return np.asarray(self.before != ABSENT)

    @cached_property
    def is_true(self) -> Bools:
        """Whether the class of the last release is true of them now: theirs, or under coarser labels."""
        found = np.asarray(self.is_in & (self.before == self.now))
        others = np.flatnonzero(self.is_in & (self.now != ABSENT) & ~found)
        found[others] = (self.coarser[self.now[others]] == self.before[others][:, None]).any(axis=1)
        return found

    def of(self, places: Ints) -> People:
        """Return some of these people, whose numbers ascend, as if there were no others."""
        numbers = np.full(len(self.groups), ABSENT)
        numbers[places] = np.arange(len(places))

        def taken(pairs: Mapping[str, Ints]) -> dict[str, Ints]:
            found = {}
            for column, numbered in pairs.items():
                width = self.widths[column]
                person = numbers[numbered // width]
                found[column] = (person * width + numbered % width)[person != ABSENT]
            return found

        return replace(
            self,
            groups=self.groups[places],
            before=self.before[places],
            now=self.now[places],
            is_seen=self.is_seen[places],
            was_in=self.was_in[places],
            must_go=self.must_go[places],
            waited=self.waited[places],
            stale=self.stale[places],
            shown=taken(self.shown),
            new=taken(self.new),
            paths={column: paths.of_people(places) for column, paths in self.paths.items()},
        )
