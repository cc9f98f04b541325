"""Choices of a person's rows: all multisets of at most m labels, and how many people of the class hold each.

Equal rows of one person are a chain: the second row stands for "at least twice". A set of rows is a choice where it has
the earlier rows of a chain with every later one, so that each multiset is counted once a person. Choices are compared
by dense numbers of their sorted labels, never by hashes, since two that meet would hide a violation. The cost is one
sort of all sets of at most m rows of a person; more than 60 million in a class are refused.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from duckanon._core.common import progress
from duckanon._core.common.arrays import Bools, Ints, Ints32, find_run_starts, measure_runs
from duckanon._core.common.row_keys import LARGEST_KEY, number_keys, order_keys


def count_holders(choices: Ints) -> Ints:
    """Return how many people hold each choice, which every person holds at most once."""
    dense = number_keys(choices)
    return np.bincount(dense)[dense] if len(dense) else np.empty(0, np.int64)


_MOST_NUMBERED = 1 << 25
"""Choices, in all ways in which their rows may show labels, that are numbered at once: 12 bytes each for a moment."""
MOST_SETS = 60_000_000
"""Sets of rows of one class, of 4 to 16 bytes each and ten times that for a moment."""


class ClassRows(NamedTuple):
    """The rows of the people of one class, those of a person behind each other."""

    person: Ints  # the number of each row's person
    sets: Ints32  # all sets of at most m rows of a person, one a line; positions that are left over hold `size`; stored
    # column by column

    @property
    def size(self) -> int:
        """The number of rows, which also is the index of a row that does not exist."""
        return len(self.person)


def find_row_sets(person: Ints, part: Ints, known: Sequence[int]) -> ClassRows:
    """Return the sets of rows that somebody may know, of rows in the order of `person`.

    `part` is the table of each row, of which `known` rows may be known, and the largest of these numbers in all.
    """
    most, size = max(known, default=0), len(person)
    limits = np.array(known, np.int64)
    starts = find_run_starts(person)
    lengths = measure_runs(starts, size)
    row_sets: list[Ints32] = [np.empty((0, most), np.int32)]
    if sum(math.comb(length, count) for length in lengths.tolist() for count in range(1, most + 1)) > MOST_SETS:
        raise ValueError(
            f"known must be smaller, or classes finer: the {int(lengths.max())} rows of one person, or all of a class, "
            f"have more than {MOST_SETS} choices."
        )
    for length in np.unique(lengths).tolist():
        progress.check()
        firsts = starts[lengths == length].astype(np.int32)
        for count in range(1, min(most, length) + 1):
            subsets = np.array(list(itertools.combinations(range(length), count)), np.int32)
            chosen = (firsts[:, None, None] + subsets[None]).reshape(-1, count)
            if (limits < count).any():
                tables = part[chosen]
                same = (tables[:, :, None] == tables[:, None, :]).sum(axis=2)
                chosen = chosen[(same <= limits[tables]).all(axis=1)]
            row_sets.append(np.pad(chosen, ((0, 0), (0, most - count)), constant_values=size))
    return ClassRows(person, np.asfortranarray(np.concatenate(row_sets)))


class Chains(NamedTuple):
    """Equal rows of one person."""

    before: Ints  # the row before each in its chain, -1 where there is none; with an entry for the row that is none
    chain: Ints  # the number of each row's chain
    position: Ints  # the row's position in it, from 0


def find_chains(person: Ints, items: Ints, movable: Bools | None = None) -> Chains:
    """Find the rows of a person with the same label; those that are movable come last in their chain."""
    keys = person * (int(items.max(initial=0)) + 1) + items
    order, _ = order_keys(keys if movable is None else 2 * keys + movable)
    starts = find_run_starts(keys[order])
    lengths = measure_runs(starts, len(order))
    chain, position, before = (np.empty(len(order), np.int64) for _ in range(3))
    chain[order] = np.repeat(np.arange(len(starts)), lengths)
    position[order] = np.arange(len(order)) - np.repeat(starts, lengths)
    before[order] = np.where(position[order] > 0, np.roll(order, 1), -1)
    return Chains(np.append(before, -1), chain, position)


def has_any(sets: Ints32, marks: Bools) -> Bools:
    """Tell which sets have a marked row; column by column, which is many times faster than by rows of two or three."""
    marks = np.append(marks, False)
    is_marked: Bools = marks[sets[:, 0]]
    for position in range(1, sets.shape[1]):
        is_marked |= marks[sets[:, position]]
    return is_marked


def find_choices(sets: Ints32, before: Ints) -> Bools:
    """Tell which sets of rows are choices: those that have the row before each of their rows."""
    late = np.flatnonzero(has_any(sets, before[:-1] >= 0))
    is_choice: Bools = np.ones(len(sets), np.bool_)
    late_sets = sets[late]
    are = np.ones(len(late), np.bool_)
    for position in range(sets.shape[1]):
        earlier = before[late_sets[:, position]]
        is_there = earlier < 0
        for other in range(sets.shape[1]):
            is_there |= late_sets[:, other] == earlier
        are &= is_there
    is_choice[late] = are
    return is_choice


def make_keys(sets: Ints32, items: Ints, items_of_position: Sequence[Ints] | None = None) -> Ints:
    """Return a number for each set of rows, equal where the labels are; `items` are from 1, with a 0 at the end.

    No hashes: two choices that meet would hide a violation. `items_of_position` has other labels for the rows at each
    position of a set.
    """
    count = sets.shape[1]
    span = int(items.max(initial=0)) + 1
    if span**count > LARGEST_KEY:
        raise ValueError(f"known must be smaller: {span - 1} different labels in a class are too many for it.")
    columns = [
        (items_of_position[position] if items_of_position else items)[sets[:, position]] for position in range(count)
    ]
    for end in range(count - 1, 0, -1):  # a network that sorts: the largest to the end, and so on
        for position in range(end):
            low, high = columns[position], columns[position + 1]
            columns[position], columns[position + 1] = np.minimum(low, high), np.maximum(low, high)
    key = columns[0]
    for column in columns[1:]:
        key = key * span + column
    return key


class Numbering:
    """Numbers of choices while rows show one of two labels: equal where the labels are, whichever rows show which.

    The keys of all 2^m ways in which the rows of a set may show their labels are numbered once; a round then looks its
    numbers up. Where these would take too much memory, they are looked for among the different keys.
    """

    def __init__(self, sets: Ints32, base: Ints, fine: Ints) -> None:
        span = max(int(base.max(initial=0)), int(fine.max(initial=0)))
        self._sets, self._labels = sets, [np.concatenate([labels, [0, span]]) for labels in (base, fine)]
        ways = 1 << sets.shape[1]
        self._table: Ints32 | None = None
        self._different: Ints = np.empty(0, np.int64)
        if ways * len(sets) <= _MOST_NUMBERED:
            together: Ints = np.empty((ways, len(sets)), np.int64)
            for way in range(ways):
                together[way] = self._keys(way)
            self._table = number_keys(together.reshape(-1), may_overwrite=True).reshape(ways, len(sets))
            self.count = int(self._table.max(initial=-1)) + 1
        else:
            for way in range(ways):
                progress.check()
                self._different = np.union1d(self._different, self._keys(way))
            self.count = len(self._different)

    def _keys(self, way: int) -> Ints:
        """Return the keys where the rows in the positions of the bits of `way` show the finer label."""
        labels = [self._labels[way >> position & 1] for position in range(self._sets.shape[1])]
        return make_keys(self._sets, self._labels[0], labels)

    def of(self, chosen: Ints, up: Bools) -> Ints32:
        """Return the numbers of some of the sets where the rows that are `up` show the finer label."""
        sets = self._sets[chosen]
        if self._table is None:
            shown = np.where(np.append(up, [False, False]), self._labels[1], self._labels[0])
            shown[-1] = self._labels[0][-1]
            return np.searchsorted(self._different, make_keys(sets, shown)).astype(np.int32)
        is_up = np.append(up, False)
        way = is_up[sets[:, 0]].astype(np.int8)
        for position in range(1, sets.shape[1]):
            way += is_up[sets[:, position]].astype(np.int8) << position
        return self._table[way, chosen]


def measure_violations(rows: ClassRows, items: Ints, k: int) -> float:
    """Return the share of the choices of all people that fewer than k hold."""
    held = make_keys(rows.sets[find_choices(rows.sets, find_chains(rows.person, items).before)], np.append(items, 0))
    return float((count_holders(held) < k).mean()) if len(held) else 0.0
