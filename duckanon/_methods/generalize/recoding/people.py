"""Classes of people who have several rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from duckanon._core.common import progress
from duckanon._core.common.arrays import Bools, Floats, Ints, distinct
from duckanon._core.common.people import NOBODY


@dataclass(frozen=True)
class People:
    """The people of a grouped table.

    How many people a class has is not the sum over its combinations, since a person may be in several of them. Those
    who are in one combination only, most of them as a rule, are just counted.
    """

    settled: Floats  # how many people each combination has who are in no other
    # combination, person: all others: one pair for each combination that a person is in
    combination: Ints
    person: Ints

    @classmethod
    def of_entries(cls, combination: Ints, person: Ints, combinations: int) -> People:
        """Take pairs of a combination and a person, in any order and possibly repeated, but for those of `NOBODY`."""
        known = person != NOBODY
        pairs = distinct(person[known] * combinations + combination[known])
        progress.check()
        person, combination = pairs // combinations, pairs % combinations
        is_settled = np.bincount(person, minlength=1)[person] == 1
        settled = np.bincount(combination[is_settled], minlength=combinations).astype(np.float64)
        progress.check()
        return cls(settled, combination[~is_settled], np.unique(person[~is_settled], return_inverse=True)[1])

    def merged(self, of_combination: Ints, combinations: int) -> People:
        """Return the same people in merged combinations, given the merged one of each combination."""
        progress.check()
        moved = People.of_entries(of_combination[self.combination], self.person, combinations)
        settled = np.bincount(of_combination, self.settled, combinations)
        return People(settled + moved.settled, moved.combination, moved.person)

    def sizes(self, class_of_combination: Ints, classes: int) -> Floats:
        """Count the different people of each class."""
        progress.check()
        settled = np.bincount(class_of_combination, self.settled, classes)
        pairs = distinct(self.person * classes + class_of_combination[self.combination])
        return np.asarray(settled + np.bincount(pairs % classes, minlength=classes), dtype=np.float64)

    def moving(self, entry_of_combination: Ints) -> Moving | None:
        """Return those who are in several combinations, by the entries that the combinations have been sorted into."""
        if not len(self.person):
            return None
        people = int(self.person.max()) + 1
        pairs = distinct(entry_of_combination[self.combination] * people + self.person)
        return Moving(pairs // people, pairs % people, people)


@dataclass(frozen=True)
class Moving:
    """People who are in several entries of a sorted table."""

    # entry, person: one pair for each entry that a person is in, in the order of the entries
    entry: Ints
    person: Ints
    people: int  # the number of people

    def counts(self, entries: int) -> Ints:
        """Count the people of each entry."""
        return np.bincount(self.entry, minlength=entries)

    def distinct(self, group_of_entry: Ints, groups: int) -> Ints:
        """Count the different people of each group of entries."""
        progress.check()
        pairs = distinct(group_of_entry[self.entry] * self.people + self.person)
        return np.bincount(pairs // self.people, minlength=groups)

    def first_counts(self, stretch_of_entry: Ints) -> Ints:
        """Count for each entry the people who are in no earlier entry of its stretch."""
        is_first = self._before(stretch_of_entry) < 0
        return np.bincount(self.entry[is_first], minlength=len(stretch_of_entry))

    def last_counts(self, stretch_of_entry: Ints) -> Ints:
        """Count for each entry the people who are in no later entry of its stretch."""
        is_last = np.ones(len(self.entry), bool)
        before = self._before(stretch_of_entry)
        is_last[before[before >= 0]] = False
        return np.bincount(self.entry[is_last], minlength=len(stretch_of_entry))

    def entries_before(self, stretch_of_entry: Ints) -> Ints:
        """Return for each pair the last earlier entry of its stretch that the person is in; -1 where there is none."""
        before = self._before(stretch_of_entry)
        return np.where(before < 0, -1, self.entry[before])

    def _before(self, stretch_of_entry: Ints) -> Ints:
        """Return for each pair the pair of the same person just before it in its stretch; -1 where there is none."""
        key = stretch_of_entry[self.entry] * self.people + self.person
        order = np.argsort(key, kind="stable")
        before = np.full(len(key), -1, np.int64)
        follows = key[order[1:]] == key[order[:-1]]
        before[order[1:][follows]] = order[:-1][follows]
        return before

    def taken(self, is_taken: Bools) -> Moving:
        """Return the people of those entries that are taken, which are numbered anew."""
        keep = is_taken[self.entry]
        return Moving((np.cumsum(is_taken) - 1)[self.entry[keep]], self.person[keep], self.people)
