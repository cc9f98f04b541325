"""Several releases of the same people together: candidates and sensitive values left to who knows a person in each.

Who knows a person's values in every release sees the list of their classes, absent ones too; the people with the same
list are the candidates. A sensitive value that never changes is in all of these classes, and at most as many of the
candidates have it as people have it in the class where they are fewest. Who follows pseudonyms sees the candidates one
by one: what counts then are the values of the people with the same list of classes, not those of their classes
(`ValuePaths`). Each release costs a sort of its people, since a group only ever splits (`split_groups`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from duckanon._core.common.arrays import Bools, Floats, Ints, sort_distinct
from duckanon._core.common.codes import encode_columns
from duckanon._core.common.row_keys import group_keys, pack_columns, rank_keys

ABSENT = -1
"""The class of people who are not in a release."""


def find_smallest(counts: Ints) -> int | None:
    """Return the smallest count above 0: groups of nobody do not count."""
    counts = counts[counts > 0]
    return int(counts.min()) if len(counts) else None


def split_groups(groups: Ints, classes: Ints) -> tuple[Ints, Ints, Ints]:
    """Split groups of people by their classes in one more release.

    Return the group of each person, and of each group the one that it was part of, and its class in the release.
    """
    width = int(classes.max(initial=ABSENT)) + 2
    parts = group_keys(pack_columns([(classes + 1, width)], len(groups), groups)[0])
    return parts.codes, groups[parts.firsts], classes[parts.firsts]


@dataclass(frozen=True)
class ValuePaths:
    """The values of a sensitive column by person and release.

    Attributes:
        numbers: Of each person, the number of their path.
        steps: Of each path, a row: in each release the set of the person's values, by number; `ABSENT` where they were
            not in it.
    """

    numbers: Ints
    steps: Ints

    @classmethod
    def of_nobody(cls, people: int) -> ValuePaths:
        """Return the paths before the first release."""
        return cls(np.zeros(people, np.int64), np.zeros((1, 0), np.int64))

    def after(self, sets: Ints) -> ValuePaths:
        """Return the paths after one more release, given the set of each person's values in it."""
        numbers, parents, last = split_groups(self.numbers, sets)
        return ValuePaths(numbers, np.column_stack([self.steps[parents], last]))

    def of_people(self, people: Ints) -> ValuePaths:
        """Return the paths of these people."""
        return ValuePaths(self.numbers[people], self.steps)

    def count_fewest(self, groups: Ints, count: int) -> Ints:
        """Return the fewest values that the people of each group showed in a release; 0 where they were in none.

        Args:
            groups: Of each person, the group, whose people were in the same releases; negative for nobody's.
            count: The number of groups.
        """
        fewest = np.full(count, np.iinfo(np.int64).max)
        for group, _, _ in self._count_shown(groups):
            values = np.bincount(group, minlength=count)
            fewest = np.where(values > 0, np.minimum(fewest, values), fewest)
        return np.where(fewest == np.iinfo(np.int64).max, 0, fewest)

    def is_diverse(self, groups: Ints, count: int, l: int) -> Bools:  # noqa: E741 - as the functions call it
        """Tell for each group whether its people showed l values in every release that they were in."""
        fewest = self.count_fewest(groups, count)
        return np.asarray((fewest >= l) | (fewest == 0))

    def distances(self, groups: Ints, count: int) -> Floats:
        """Return the largest distance, in a release, of a group's values from those of all people in it."""
        farthest = np.zeros(count)
        for group, value, people in self._count_shown(groups):
            shares = np.bincount(value, people) / people.sum()
            sizes = np.bincount(group, people, count)
            common = np.bincount(group, np.minimum(people / sizes[group], shares[value]), count)
            farthest = np.maximum(farthest, np.where(sizes > 0, 1 - common, 0))
        return np.maximum(np.round(farthest, 12), 0)

    def _count_shown(self, groups: Ints) -> Iterator[tuple[Ints, Ints, Ints]]:
        """Yield of each release the different pairs of group and value, and the people of each pair."""
        rows, width = np.flatnonzero(groups >= 0), len(self.steps)
        keys, people = np.unique(groups[rows] * width + self.numbers[rows], return_counts=True)
        group, path = keys // width, keys % width
        for step in self.steps.T:
            is_there = step[path] != ABSENT
            values = int(step.max(initial=0)) + 1
            pairs = group[is_there] * values + step[path[is_there]]
            different = sort_distinct(pairs)
            sizes = np.bincount(np.searchsorted(different, pairs), people[is_there], len(different))
            yield different // values, different % values, sizes.astype(np.int64)


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
        groups, parents, classes = split_groups(self.groups, release.classes)
        left = {}
        for column in self.left.keys() | release.values.keys():
            before, values = self.left.get(column), release.values.get(column)
            if values is not None:
                counts = release.counts.get(column)
                left[column] = ValuesLeft.after(before, parents, classes, values, counts, widths[column])
            elif before is not None:
                left[column] = before.inherit(parents)
        is_seen = self.is_seen | (release.classes != ABSENT)
        paths = dict(self.paths)
        for column, sets in release.sets.items():
            paths[column] = paths.get(column, ValuePaths.of_nobody(len(groups))).after(sets)
        return JointCounts(groups, is_seen, left, np.bincount(groups[is_seen], minlength=len(parents)), paths)

    @property
    def k(self) -> int | None:
        """The people of the smallest group; None without people."""
        return find_smallest(self.sizes)

    def count_values_left(self, column: str) -> int | None:
        """Return the fewest values that a group is left with, 0 where none is; None for a column without any.

        Where people can be followed by pseudonyms, groups are left with what their own people showed in each release.
        """
        left = self.left.get(column)
        if left is None:
            return None
        counts = left.counts()[(self.sizes > 0) & ~left.is_open]
        if column in self.paths:
            shown = self.paths[column].count_fewest(np.where(self.is_seen, self.groups, ABSENT), len(self.sizes))
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
        indexes, pairs = _repeat_pairs(values, classes[newly], newly, width)
        people = None if counts is None else counts[indexes]
        whole = None if counts is None else np.bincount(values % width, counts, width).astype(np.int64)
        if before is not None:
            known = np.flatnonzero(~was_open)
            indexes, inherited = _repeat_pairs(before.pairs, parents[known], known, width)
            group, value = inherited // width, inherited % width
            here = classes[group] * width + value
            is_left = ~is_there[group] | np.isin(here, values)
            pairs = np.concatenate([pairs, inherited[is_left]])
            if people is None or whole is None or counts is None or before.people is None or before.whole is None:
                people = whole = None
            else:
                is_here = is_there[group] & is_left
                fewest = before.people[indexes]
                fewest[is_here] = np.minimum(fewest[is_here], counts[np.searchsorted(values, here[is_here])])
                people, whole = np.concatenate([people, fewest[is_left]]), whole + before.whole
        order = np.argsort(pairs, kind="stable")
        return cls(pairs[order], was_open & ~is_there, width, None if people is None else people[order], whole)

    def inherit(self, parents: Ints) -> ValuesLeft:
        """Return what is left after a release without the column."""
        indexes, pairs = _repeat_pairs(self.pairs, parents, np.arange(len(parents)), self.width)
        people = None if self.people is None else self.people[indexes]
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


def _repeat_pairs(pairs: Ints, of: Ints, to: Ints, width: int) -> tuple[Ints, Ints]:
    """Return the indexes of the pairs of groups `of`, and these pairs under the numbers `to`."""
    starts, ends = np.searchsorted(pairs, of * width), np.searchsorted(pairs, (of + 1) * width)
    counts = ends - starts
    indexes = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts) + np.repeat(starts, counts)
    return indexes, np.repeat(to, counts) * width + pairs[indexes] % width


def count_people_by_value(person_of_row: Ints, class_of_person: Ints, values: Ints, width: int) -> tuple[Ints, Ints]:
    """Return the different pairs of class and value, ascending, and how many people have each.

    Args:
        person_of_row: The number of each row's person.
        class_of_person: The class of each person.
        values: The value of each row.
        width: The number of values.
    """
    held = sort_distinct(person_of_row * width + values)
    pairs, counts = np.unique(class_of_person[held // width] * width + held % width, return_counts=True)
    return pairs, counts


def classify_rows(table: pa.Table) -> Ints:
    """Return the class of each row: equal cells have equal classes; intervals are compared by their ends."""
    while any(pa.types.is_struct(kind) for kind in table.schema.types):
        table = table.flatten()
    return rank_keys(pack_columns(encode_columns(table), table.num_rows)[0])


def classify_people(person_of_row: Ints, class_of_row: Ints, everybody: int) -> Ints:
    """Return the class of each person: the set of the classes of their rows, by number; `ABSENT` without rows."""
    width = int(class_of_row.max(initial=0)) + 1
    pairs = sort_distinct(person_of_row * width + class_of_row)
    owners, members = pairs // width, pairs % width
    classes = np.full(everybody, ABSENT)
    starts = np.flatnonzero(np.diff(owners, prepend=-1))
    sizes = np.diff(starts, append=len(owners))
    sets = np.zeros(len(starts), np.int64)
    for index in range(int(sizes.max(initial=0))):  # one member more of each set, the smallest first
        member = np.where(sizes > index, members[np.minimum(starts + index, len(members) - 1)] + 1, 0)
        sets = rank_keys(sets * (width + 1) + member)
    classes[owners[starts]] = sets
    return classes
