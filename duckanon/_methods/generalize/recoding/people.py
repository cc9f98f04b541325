"""Classes of people who have several rows.

How many people a class has is not the sum over its combinations, since a person may be in several. Those who are in one
combination only are just counted. The pairs of the others stand in small matrices, a column for each person, whose
columns numpy sorts several times faster than all pairs: a person counts once for each different class in the column.
Seen from one column, the entries of a class are runs, so that nothing has to be sorted for a move.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from duckanon._core.common import progress
from duckanon._core.common.arrays import Bools, Floats, Ints, find_run_starts, measure_runs, sort_distinct
from duckanon._core.common.people import NOBODY

# Pairs of a person that a block has room for: 2, 3, 4, 6, 8, 12, ... Less than a third of a block are repetitions.
_WIDTHS = np.sort(np.concatenate([2 ** np.arange(1, 40), 3 * 2 ** np.arange(39)]))
_MOST_BLOCK = 1 << 17  # pairs of a block: with half and with twice as many a view takes as long, with all a half more
_MOST_COMPARED = 16  # rows of a block that are compared with each other; more are sorted column by column


@dataclass(frozen=True)
class People:
    """The people of a grouped table."""

    settled: Floats  # how many people each combination has who are in no other
    # combination, person: all others: one pair for each combination that a person is in
    combination: Ints
    person: Ints

    @classmethod
    def of_entries(cls, combination: Ints, person: Ints, combinations: int) -> People:
        """Take pairs of a combination and a person, in any order and possibly repeated, but for those of `NOBODY`."""
        known = person != NOBODY
        pairs = sort_distinct(person[known] * combinations + combination[known], is_nearly_sorted=True)
        progress.check()
        person, combination = pairs // combinations, pairs % combinations
        is_settled = np.bincount(person, minlength=1)[person] == 1
        settled = np.bincount(combination[is_settled], minlength=combinations).astype(np.float64)
        progress.check()
        return cls(settled, combination[~is_settled], np.unique(person[~is_settled], return_inverse=True)[1])

    def merge(self, of_combination: Ints, combinations: int) -> People:
        """Return the same people in merged combinations, given the merged one of each combination."""
        progress.check()
        moved = People.of_entries(of_combination[self.combination], self.person, combinations)
        settled = np.bincount(of_combination, self.settled, combinations)
        return People(settled + moved.settled, moved.combination, moved.person)

    def sizes(self, class_of_combination: Ints, classes: int) -> Floats:
        """Count the different people of each class."""
        progress.check()
        settled = np.bincount(class_of_combination, self.settled, classes)
        counted = [(block, _is_first(block)) for block in self._sort_blocks(class_of_combination, classes)]
        return np.asarray(settled + self._count(counted, class_of_combination, classes), dtype=np.float64)

    @cached_property
    def _blocks(self) -> list[Ints]:
        """The pairs as matrices with a column for each person: of people with about as many pairs, the last repeated.

        numpy sorts rows of such matrices against each other several times faster than it sorts the pairs, and small
        ones stay in the processor's cache.
        """
        starts = find_run_starts(self.person)
        lengths = measure_runs(starts, len(self.person))
        width_of_person = np.searchsorted(_WIDTHS, lengths)
        blocks = []
        for index in np.unique(width_of_person):
            persons, width = np.flatnonzero(width_of_person == index), int(_WIDTHS[index])
            for people in np.array_split(persons, -(-len(persons) * width // _MOST_BLOCK)):
                pairs = starts[people] + np.minimum(np.arange(width)[:, None], lengths[people] - 1)
                blocks.append(self.combination[pairs])
        return blocks

    @cached_property
    def _blocks_count(self) -> Ints:
        """How often each combination is in the blocks."""
        return sum(
            (np.bincount(block.reshape(-1), minlength=len(self.settled)) for block in self._blocks),
            np.zeros(len(self.settled), np.int64),
        )

    def _sort_blocks(self, number_of_combination: Ints, numbers: int) -> Iterator[Ints]:
        """Return blocks of the combinations' numbers, which are below ``numbers``, every column sorted."""
        narrow = number_of_combination.astype(np.min_scalar_type(max(numbers - 1, 0)))
        for combinations in self._blocks:
            yield _sort_columns(narrow.take(combinations, mode="clip"))  # checking each would take as long again

    def _count(self, blocks: list[tuple[Ints, Bools]], number_of_combination: Ints, numbers: int) -> Ints:
        """Count each number where it is marked in the sorted blocks."""
        marked = sum(np.count_nonzero(is_marked) for _, is_marked in blocks)
        if 2 * marked <= sum(block.size for block, _ in blocks):
            return _count_marks(blocks, numbers)
        # There are fewer of the others to be counted.
        whole = np.bincount(number_of_combination, self._blocks_count, numbers).astype(np.int64)
        return whole - _count_marks([(block, ~is_marked) for block, is_marked in blocks], numbers)

    def moving(self, entry_of_combination: Ints, class_of_entry: Ints) -> tuple[Ints, Moving | None]:
        """Return the people in several combinations, by the entries that the combinations have been sorted into.

        Entries are sorted by class first. Those who are in one entry of a class count there, whatever else of the class
        it is merged with: they are returned as a number for each entry, all others one by one.
        """
        entries = len(class_of_entry)
        class_of_entry = class_of_entry.astype(np.min_scalar_type(class_of_entry.max(initial=0)))
        settled, entry, person, people = [], [], [], 0
        for block in self._sort_blocks(entry_of_combination, entries):
            is_first, of_class = _is_first(block), class_of_entry.take(block, mode="clip")
            is_same = of_class[1:] == of_class[:-1]
            is_moving = np.zeros(block.shape, bool)
            is_another = is_same & is_first[1:]
            if is_another.any():
                is_moving[1:] = is_same
                is_moving[:-1] |= _is_above(is_another, ~is_first[1:])
                is_moving &= is_first
                entry.append(block.T[is_moving.T])
                person.append(np.arange(people, people + block.shape[1]).repeat(is_moving.sum(axis=0)))
                people += block.shape[1]
            settled.append((block, is_first > is_moving))
        counted = self._count(settled, entry_of_combination, entries)
        if not entry:
            return counted, None
        return counted, Moving(np.concatenate(entry).astype(np.int64), np.concatenate(person), entries)


def _is_first(block: Ints) -> Bools:
    """Tell where a number in a sorted column is none that stands above it."""
    is_first = np.ones(block.shape, bool)
    np.not_equal(block[1:], block[:-1], out=is_first[1:])
    return is_first


def _is_above(is_marked: Bools, is_linked: Bools) -> Bools:
    """Mark each row of a column that linked rows lead down from to one that is marked; in place."""
    step = 1
    while step < len(is_marked):
        is_marked[:-step] |= is_linked[:-step] & is_marked[step:]
        is_linked[:-step] &= is_linked[step:]
        step *= 2
    return is_marked


def _sort_columns(block: Ints) -> Ints:
    """Sort every column of a matrix, in place."""
    if len(block) > _MOST_COMPARED:
        block.sort(axis=0)
        return block
    for end in range(len(block) - 1, 0, -1):  # all columns at once: the largest of each sinks to the end
        for upper, lower in itertools.pairwise(block[: end + 1]):
            smaller = np.minimum(upper, lower)
            np.maximum(upper, lower, out=lower)
            upper[:] = smaller
    return block


def _count_marks(blocks: list[tuple[Ints, Bools]], numbers: int) -> Ints:
    marked = [block[is_marked] for block, is_marked in blocks]
    return np.bincount(np.concatenate(marked) if marked else np.zeros(0, np.int64), minlength=numbers)


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

    def count_people(self, group_of_entry: Ints, groups: int) -> Ints:
        """Count the different people of each group of entries, which need not be stretches."""
        progress.check()
        group = group_of_entry.take(self.entry)
        if (group_of_entry[1:] >= group_of_entry[:-1]).all():
            return np.bincount(group.compress(self.is_first(group_of_entry)), minlength=groups)
        return np.bincount(
            sort_distinct(self.person * groups + group, is_nearly_sorted=True) % groups, minlength=groups
        )

    def is_first(self, stretch_of_entry: Ints) -> Bools:
        """Tell for each pair whether the person is in no earlier entry of its stretch."""
        stretch = stretch_of_entry.take(self.entry)
        first = np.ones(len(stretch), bool)
        np.not_equal(stretch[1:], stretch[:-1], out=first[1:])
        first[1:] |= self._is_another_person
        return first

    def count_first_and_last(self, stretch_of_entry: Ints) -> tuple[Ints, Ints]:
        """Count for each entry the people who are in no earlier entry of its stretch, and those in no later one."""
        is_first = self.is_first(stretch_of_entry)
        is_last = np.ones(len(is_first), bool)  # of no pair, where the selected entries have no such people
        is_last[:-1] = is_first[1:]
        if 2 * np.count_nonzero(is_first) < len(is_first):
            first, last = (
                np.bincount(self.entry.compress(flags), minlength=self.entries) for flags in (is_first, is_last)
            )
            return first, last
        # There are fewer of the others to be counted.
        rest = (np.bincount(self.entry.compress(~flags), minlength=self.entries) for flags in (is_first, is_last))
        first, last = (self.counts - count for count in rest)
        return first, last

    def find_entries_before(self, stretch_of_entry: Ints) -> Ints:
        """Return for each pair the last earlier entry of its stretch that the person is in; -1 where there is none."""
        return np.where(self.is_first(stretch_of_entry), -1, np.roll(self.entry, 1))

    def select(self, is_taken: Bools) -> Moving:
        """Return the people of those entries that are taken, which are numbered anew."""
        keep = is_taken.take(self.entry)
        entry = (np.cumsum(is_taken) - 1).take(self.entry.compress(keep))
        return Moving(entry, self.person.compress(keep), int(np.count_nonzero(is_taken)))
