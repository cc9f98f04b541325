"""Parts of groups that go to the same class, and whether each has the sensitive values that it needs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from duckanon._core.account.cohort_people import People, Rules
from duckanon._core.account.groups import unique
from duckanon._core.common.arrays import Bools, Ints


@dataclass(frozen=True)
class Parts:
    """The parts of groups that go to the same class.

    Attributes:
        numbers: Of each person, the part; -1 for people who are not asked about.
        groups, targets, sizes: Of each part, its group, where it goes, and its people.
    """

    numbers: Ints
    groups: Ints
    targets: Ints
    sizes: Ints

    @classmethod
    def of(cls, people: People, target: Ints, chosen: Bools) -> Parts:
        """Return the parts of the chosen people."""
        rows = np.flatnonzero(chosen)
        width = int(target.max(initial=-1)) + 2
        keys, found, sizes = np.unique(
            people.groups[rows] * width + target[rows] + 1, return_inverse=True, return_counts=True
        )
        numbers = np.full(len(target), -1)
        numbers[rows] = found
        return cls(numbers, keys // width, keys % width - 1, sizes)

    def of_people(self, is_good: Bools) -> Bools:
        """Return for each person whether their part is good."""
        return np.asarray(np.append(is_good, False)[self.numbers])

    def largest(self, numbers: Ints) -> Ints:
        """Return the largest number of a person in each part."""
        found = np.zeros(len(self.sizes), np.int64)
        rows = self.numbers >= 0
        np.maximum.at(found, self.numbers[rows], numbers[rows])
        return found

    def may_go(self, people: People, rules: Rules) -> Bools:
        """Tell for each part whether it may become a group: k people, of whom releases so far showed l values."""
        return (self.sizes >= rules.k) & self.is_diverse(people.shown, people, rules.l) & self.showed(people, rules.l)

    def showed(self, people: People, l: int) -> Bools:  # noqa: E741
        """Tell for each part whether its people, as far as they can be followed, showed l values in every release."""
        is_good = np.ones(len(self.sizes), np.bool_)
        for paths in people.paths.values() if l > 1 else ():
            is_good &= paths.is_diverse(self.numbers, len(self.sizes), l)
        return is_good

    def is_diverse(self, values: Mapping[str, Ints], people: People, l: int) -> Bools:  # noqa: E741
        """Tell for each part whether its people have l values of every column that are left to their group."""
        is_good = np.ones(len(self.sizes), np.bool_)
        for column, pairs in values.items() if l > 1 else ():
            width = people.widths[column]
            part = self.numbers[pairs // width]
            found = unique((part * width + pairs % width)[part >= 0])
            part, value = found // width, found % width
            left = people.left.get(column)
            if left is not None:
                group = self.groups[part]
                is_left = left.is_open[group] | np.isin(group * width + value, left.pairs)
                part = part[is_left]
            is_good &= np.bincount(part, minlength=len(self.sizes)) >= l
        return is_good


def is_diverse(people: People, l: int, members: Ints) -> bool:  # noqa: E741
    """Tell whether these people of one group may be a group: releases so far showed l values of them."""
    return has_values(people, l, members, people.shown) and showed(people, l, members)


def showed(people: People, l: int, members: Ints) -> bool:  # noqa: E741
    """Tell whether these people of one group, as far as they can be followed, showed l values in every release."""
    one = np.zeros(len(members), np.int64)
    found = (paths.of_people(members).is_diverse(one, 1, l)[0] for paths in people.paths.values())
    return l == 1 or all(found)


def has_values(people: People, l: int, members: Ints, values: Mapping[str, Ints]) -> bool:  # noqa: E741
    """Tell whether these people of one group have l values that are left to their group."""
    group = people.groups[members[0]] if len(members) else 0
    for column, pairs in values.items() if l > 1 else ():
        width = people.widths[column]
        starts, ends = np.searchsorted(pairs, members * width), np.searchsorted(pairs, (members + 1) * width)
        found = unique(np.concatenate([pairs[start:end] for start, end in zip(starts, ends, strict=True)]) % width)
        left = people.left.get(column)
        if left is not None and not left.is_open[group]:
            start, end = np.searchsorted(left.pairs, [group * width, (group + 1) * width])
            found = np.intersect1d(found, left.pairs[start:end] % width)
        if len(found) < l:
            return False
    return True
