"""Classes of people who have several rows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

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
        pairs = distinct(person[known] * combinations + combination[known], is_nearly_sorted=True)
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
        pairs, bits = self._pairs(class_of_combination, classes)
        return np.asarray(settled + np.bincount(pairs & ((1 << bits) - 1), minlength=classes), dtype=np.float64)

    def _pairs(self, number_of_combination: Ints, numbers: int) -> tuple[Ints, int]:
        """Return the different pairs of a person and a number that combinations have, and how many bits it takes."""
        bits = (numbers - 1).bit_length()  # shifts are quicker than products and divisions
        pairs = self.person << bits
        pairs += number_of_combination.take(self.combination)
        return distinct(pairs, is_nearly_sorted=True), bits

    def moving(self, entry_of_combination: Ints, class_of_entry: Ints) -> tuple[Ints, Moving | None]:
        """Return those who are in several combinations, by the entries that the combinations have been sorted into.

        Entries are sorted by class first. Those who are in one entry of a class count there, whatever else of the class
        it is merged with: they are returned as a number for each entry, all others one by one.
        """
        entries = len(class_of_entry)
        pairs, bits = self._pairs(entry_of_combination, entries)
        entry = pairs & ((1 << bits) - 1)
        of_class = class_of_entry.take(entry)
        is_several = np.zeros(len(pairs) + 1, bool)
        np.equal(of_class[1:], of_class[:-1], out=is_several[1:-1])
        is_several[1:-1] &= (pairs[1:] ^ pairs[:-1]) < 1 << bits  # of one person
        if not is_several.any():
            return np.bincount(entry, minlength=entries), None
        is_several = is_several[1:] | is_several[:-1]
        counted = np.bincount(entry.compress(~is_several), minlength=entries)
        return counted, Moving(entry.compress(is_several), pairs.compress(is_several) >> bits, entries)


@dataclass(frozen=True)
class Moving:
    """People who are in several entries of a class of a sorted table.

    A stretch is a run of entries of one class, so that a person's pairs of one stretch stand beside each other: nothing
    has to be sorted to count people, which a search asks for thousands of times.
    """

    # entry, person: one pair for each entry that a person is in, by person and entry
    entry: Ints
    person: Ints
    entries: int  # of the table

    @cached_property
    def _is_another_person(self) -> Bools:
        """Whether each pair but the first is of another person than the pair before it."""
        return np.not_equal(self.person[1:], self.person[:-1])

    @cached_property
    def counts(self) -> Ints:
        """The number of people of each entry."""
        return np.bincount(self.entry, minlength=self.entries)

    def distinct(self, group_of_entry: Ints, groups: int) -> Ints:
        """Count the different people of each group of entries, which need not be stretches."""
        progress.check()
        group = group_of_entry.take(self.entry)
        if (group_of_entry[1:] >= group_of_entry[:-1]).all():
            return np.bincount(group.compress(self.is_first(group_of_entry)), minlength=groups)
        return np.bincount(distinct(self.person * groups + group, is_nearly_sorted=True) % groups, minlength=groups)

    def is_first(self, stretch_of_entry: Ints) -> Bools:
        """Tell for each pair whether the person is in no earlier entry of its stretch."""
        stretch = stretch_of_entry.take(self.entry)
        first = np.ones(len(stretch), bool)
        np.not_equal(stretch[1:], stretch[:-1], out=first[1:])
        first[1:] |= self._is_another_person
        return first

    def first_and_last_counts(self, stretch_of_entry: Ints) -> tuple[Ints, Ints]:
        """Count for each entry the people who are in no earlier entry of its stretch, and those in no later one."""
        is_first = self.is_first(stretch_of_entry)
        is_last = np.ones(len(is_first), bool)  # of nobody, where the entries that were taken have no such people
        is_last[:-1] = is_first[1:]
        if 2 * np.count_nonzero(is_first) < len(is_first):
            first, last = (np.bincount(self.entry.compress(own), minlength=self.entries) for own in (is_first, is_last))
            return first, last
        # There are fewer of the others to be counted.
        others = (np.bincount(self.entry.compress(~own), minlength=self.entries) for own in (is_first, is_last))
        first, last = (self.counts - count for count in others)
        return first, last

    def entries_before(self, stretch_of_entry: Ints) -> Ints:
        """Return for each pair the last earlier entry of its stretch that the person is in; -1 where there is none."""
        return np.where(self.is_first(stretch_of_entry), -1, np.roll(self.entry, 1))

    def taken(self, is_taken: Bools) -> Moving:
        """Return the people of those entries that are taken, which are numbered anew."""
        keep = is_taken.take(self.entry)
        entry = (np.cumsum(is_taken) - 1).take(self.entry.compress(keep))
        return Moving(entry, self.person.compress(keep), int(np.count_nonzero(is_taken)))
