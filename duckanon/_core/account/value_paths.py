"""What each person showed in release after release, where a pseudonym tells which records are one person's.

Who follows pseudonyms sees the candidates one by one: what counts then are the values of the people with the same list
of classes, not those of their classes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from duckanon._core.account.groups import ABSENT, refined, unique
from duckanon._core.common.arrays import Bools, Floats, Ints


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
        numbers, parents, found = refined(self.numbers, sets)
        return ValuePaths(numbers, np.column_stack([self.steps[parents], found]))

    def of_people(self, places: Ints) -> ValuePaths:
        """Return the paths of some people."""
        return ValuePaths(self.numbers[places], self.steps)

    def fewest(self, groups: Ints, count: int) -> Ints:
        """Return the fewest values that the people of each group showed in a release; 0 where they were in none.

        Args:
            groups: Of each person, the group, whose people were in the same releases; negative for nobody's.
            count: The number of groups.
        """
        found = np.full(count, np.iinfo(np.int64).max)
        for group, _, _ in self._shown(groups):
            values = np.bincount(group, minlength=count)
            found = np.where(values > 0, np.minimum(found, values), found)
        return np.where(found == np.iinfo(np.int64).max, 0, found)

    def is_diverse(self, groups: Ints, count: int, l: int) -> Bools:  # noqa: E741 - as the functions call it
        """Tell for each group whether its people showed l values in every release that they were in."""
        found = self.fewest(groups, count)
        return np.asarray((found >= l) | (found == 0))

    def distances(self, groups: Ints, count: int) -> Floats:
        """Return the largest distance, in a release, of a group's values from those of all people in it."""
        found = np.zeros(count)
        for group, value, people in self._shown(groups):
            shares = np.bincount(value, people) / people.sum()
            sizes = np.bincount(group, people, count)
            common = np.bincount(group, np.minimum(people / sizes[group], shares[value]), count)
            found = np.maximum(found, np.where(sizes > 0, 1 - common, 0))
        return np.maximum(np.round(found, 12), 0)

    def _shown(self, groups: Ints) -> Iterator[tuple[Ints, Ints, Ints]]:
        """Yield of each release the different pairs of group and value, and the people of each pair."""
        rows, width = np.flatnonzero(groups >= 0), len(self.steps)
        keys, people = np.unique(groups[rows] * width + self.numbers[rows], return_counts=True)
        group, path = keys // width, keys % width
        for step in self.steps.T:
            is_there = step[path] != ABSENT
            values = int(step.max(initial=0)) + 1
            pairs = group[is_there] * values + step[path[is_there]]
            found = unique(pairs)
            sizes = np.bincount(np.searchsorted(found, pairs), people[is_there], len(found))
            yield found // values, found % values, sizes.astype(np.int64)
