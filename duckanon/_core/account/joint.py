"""Several releases of the same people together: candidates and sensitive values left to who knows a person in each.

Who knows a person's values in every release sees the list of their classes, absent ones too; the people with the same
list are the candidates. A sensitive value that never changes is in all of these classes, and at most as many of the
candidates have it as people have it in the class where they are fewest. Where pseudonyms are released, the candidates'
own values are seen (`ValuePaths`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from duckanon._core.account.groups import ABSENT, least, refined, unique
from duckanon._core.account.value_paths import ValuePaths
from duckanon._core.common.arrays import Bools, Floats, Ints
from duckanon._core.common.codes import encode


@dataclass(frozen=True)
class PeopleOfRelease:
    """The people of one release.

    Attributes:
        classes: The class of each person of all releases, `ABSENT` where they are not in this one.
        values: By sensitive column, the different pairs of class and value as `class * width + value`, ascending.
        counts: By sensitive column, the people of each of these pairs; without the column if they are not known.
        sets: By sensitive column, the set of each person's values, by number; only where pseudonyms tell whose they
            are.
    """

    classes: Ints
    values: Mapping[str, Ints] = field(default_factory=dict)
    counts: Mapping[str, Ints] = field(default_factory=dict)
    sets: Mapping[str, Ints] = field(default_factory=dict)


@dataclass(frozen=True)
class JointCounts:
    """What all releases so far leave to who knows a person in each of them.

    Attributes:
        groups: Of each person, the number of the people with the same list.
        is_seen: Of each person, whether they were in a release.
        left: By sensitive column, the values that are in every class of a group's list.
        sizes: The people of each group; 0 for the one of people who were in no release.
        paths: By sensitive column, what each person showed in releases with pseudonyms.
    """

    groups: Ints
    is_seen: Bools
    left: Mapping[str, ValuesLeft]
    sizes: Ints
    paths: Mapping[str, ValuePaths] = field(default_factory=dict)

    @classmethod
    def of_nobody(cls, people: int) -> JointCounts:
        """Return the counts before the first release."""
        return cls(np.zeros(people, np.int64), np.zeros(people, np.bool_), {}, np.zeros(1, np.int64))

    def after(self, release: PeopleOfRelease, widths: Mapping[str, int]) -> JointCounts:
        """Return the counts after one more release, given how many values each sensitive column has."""
        groups, parents, classes = refined(self.groups, release.classes)
        left = {}
        for column in self.left.keys() | release.values.keys():
            before, values = self.left.get(column), release.values.get(column)
            if values is not None:
                counts = release.counts.get(column)
                left[column] = ValuesLeft.after(before, parents, classes, values, counts, widths[column])
            elif before is not None:
                left[column] = before.inherited(parents)
        is_seen = self.is_seen | (release.classes != ABSENT)
        paths = dict(self.paths)
        for column, sets in release.sets.items():
            paths[column] = paths.get(column, ValuePaths.of_nobody(len(groups))).after(sets)
        return JointCounts(groups, is_seen, left, np.bincount(groups[is_seen], minlength=len(parents)), paths)

    @property
    def k(self) -> int | None:
        """The people of the smallest group; None without people."""
        return least(self.sizes)

    def values_left(self, column: str) -> int | None:
        """Return the fewest values that a group is left with, 0 where none is; None for a column without any.

        Where people can be followed by pseudonyms, groups are left with what their own people showed in each release.
        """
        left = self.left.get(column)
        if left is None:
            return None
        counts = left.counts()[(self.sizes > 0) & ~left.is_open]
        if column in self.paths:
            shown = self.paths[column].fewest(np.where(self.is_seen, self.groups, ABSENT), len(self.sizes))
            counts = np.append(counts, shown[shown > 0])
        return int(counts.min()) if len(counts) else None

    def distance(self, column: str) -> float | None:
        """Return the largest distance of a group's values from the whole; None where people were not counted."""
        left = self.left.get(column)
        distances = None if left is None else left.distances()
        if left is None or distances is None:
            return None
        distances = distances[(self.sizes > 0) & ~left.is_open]
        if column in self.paths:
            followed = self.paths[column].distances(np.where(self.is_seen, self.groups, ABSENT), len(self.sizes))
            distances = np.append(distances, followed)
        return float(distances.max()) if len(distances) else None


@dataclass(frozen=True)
class ValuesLeft:
    """The sensitive values that are in every class of a group's list, as `group * width + value`, ascending.

    Attributes:
        is_open: Of each group, whether it was in no release yet: any value is left.
        people: Of each of these pairs, the people who have the value in the class where they are fewest.
        whole: Of each value, the people who have it, over all releases; None, like `people`, if one has no counts.
    """

    pairs: Ints
    is_open: Bools
    width: int
    people: Ints | None
    whole: Ints | None

    @classmethod
    def after(
        cls, before: ValuesLeft | None, parents: Ints, classes: Ints, values: Ints, counts: Ints | None, width: int
    ) -> ValuesLeft:
        """Return what is left after one more release, given the groups before, and the classes, of each group."""
        was_open = np.ones(len(parents), np.bool_) if before is None else before.is_open[parents]
        is_there = classes != ABSENT
        newly = np.flatnonzero(was_open & is_there)
        places, pairs = _repeated(values, classes[newly], newly, width)
        people = None if counts is None else counts[places]
        whole = None if counts is None else np.bincount(values % width, counts, width).astype(np.int64)
        if before is not None:
            known = np.flatnonzero(~was_open)
            places, inherited = _repeated(before.pairs, parents[known], known, width)
            group, value = inherited // width, inherited % width
            here = classes[group] * width + value
            is_left = ~is_there[group] | np.isin(here, values)
            pairs = np.concatenate([pairs, inherited[is_left]])
            if people is None or whole is None or counts is None or before.people is None or before.whole is None:
                people = whole = None
            else:
                is_here = is_there[group] & is_left
                fewest = before.people[places]
                fewest[is_here] = np.minimum(fewest[is_here], counts[np.searchsorted(values, here[is_here])])
                people, whole = np.concatenate([people, fewest[is_left]]), whole + before.whole
        order = np.argsort(pairs, kind="stable")
        return cls(pairs[order], was_open & ~is_there, width, None if people is None else people[order], whole)

    def inherited(self, parents: Ints) -> ValuesLeft:
        """Return what is left after a release without the column."""
        places, pairs = _repeated(self.pairs, parents, np.arange(len(parents)), self.width)
        people = None if self.people is None else self.people[places]
        return ValuesLeft(pairs, self.is_open[parents], self.width, people, self.whole)

    def counts(self) -> Ints:
        """Return how many values each group is left with; those that any value is left to have none here."""
        return np.bincount(self.pairs // self.width, minlength=len(self.is_open))

    def distances(self) -> Floats | None:
        """Return how far each group's values are from the whole: half the sum of the differences of shares.

        Values are equally far from each other: their order is not in a hash. A group without a value has distance 1.
        """
        if self.people is None or self.whole is None:
            return None
        groups, count = self.pairs // self.width, len(self.is_open)
        totals = np.bincount(groups, self.people, count)
        shares = self.whole / max(int(self.whole.sum()), 1)
        common = np.minimum(self.people / totals[groups], shares[self.pairs % self.width])
        # the order of values, and with it the last digits of a sum, is not that of the next run
        return np.maximum(np.round(1 - np.bincount(groups, common, count), 12), 0)


def _repeated(pairs: Ints, of: Ints, to: Ints, width: int) -> tuple[Ints, Ints]:
    """Return the places of the pairs of groups `of`, and these pairs under the numbers `to`."""
    starts, ends = np.searchsorted(pairs, of * width), np.searchsorted(pairs, (of + 1) * width)
    counts = ends - starts
    places = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts) + np.repeat(starts, counts)
    return places, np.repeat(to, counts) * width + pairs[places] % width


def people_by_value(who: Ints, classes: Ints, values: Ints, width: int) -> tuple[Ints, Ints]:
    """Return the different pairs of class and value, ascending, and how many people have each.

    Args:
        who: Of each row, the person.
        classes: Of each person, the class.
        values: Of each row, the value.
        width: The number of values.
    """
    held = unique(who * width + values)
    pairs, counts = np.unique(classes[held // width] * width + held % width, return_counts=True)
    return pairs, counts


def row_classes(table: pa.Table) -> Ints:
    """Return the class of each row: equal cells have equal classes; intervals are compared by their ends."""
    while any(pa.types.is_struct(kind) for kind in table.schema.types):
        table = table.flatten()
    classes = np.zeros(table.num_rows, np.int64)
    for codes, count in encode(table):
        classes = np.unique(classes * max(count, 1) + codes, return_inverse=True)[1]
    return classes


def classes_of_people(who: Ints, of_rows: Ints, everybody: int) -> Ints:
    """Return the class of each person: the set of the classes of their rows, by number; `ABSENT` without rows."""
    width = int(of_rows.max(initial=0)) + 1
    pairs = unique(who * width + of_rows)
    owners, members = pairs // width, pairs % width
    classes = np.full(everybody, ABSENT)
    starts = np.flatnonzero(np.diff(owners, prepend=-1))
    sizes = np.diff(starts, append=len(owners))
    sets = np.zeros(len(starts), np.int64)
    for place in range(int(sizes.max(initial=0))):  # one member more of each set, the smallest first
        member = np.where(sizes > place, members[np.minimum(starts + place, len(members) - 1)] + 1, 0)
        sets = np.unique(sets * (width + 1) + member, return_inverse=True)[1]
    classes[owners[starts]] = sets
    return classes
