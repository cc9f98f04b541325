"""Choices of a person's rows: all multisets of at most m labels, and how many people of the class hold each.

Equal rows of one person are a chain: the second one stands for "at least twice". A set of rows is a choice where it has
the earlier rows of a chain with every later one, so that each multiset is counted once a person.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from duckanon._core.common import progress
from duckanon._core.common.arrays import Bools, Ints, Ints32, run_lengths, run_starts

_MOST_CELLS = 1 << 24
"""Numbers up to which choices are counted in a table of all possible ones; beyond, they are sorted."""
_MOST_KEY = 1 << 62
MOST_SETS = 60_000_000
"""Sets of rows of one class, of 4 to 16 bytes each and ten times that for a moment."""


class Rows(NamedTuple):
    """The rows of the people of one class, those of a person behind each other."""

    person: Ints  # the number of each row's person
    sets: Ints32  # all sets of at most m rows of a person, one a line; places that are left over hold `size`; stored
    # column by column

    @property
    def size(self) -> int:
        """The number of rows, which also is the place of a row that does not exist."""
        return len(self.person)


def rows_of_class(person: Ints, part: Ints, known: Sequence[int]) -> Rows:
    """Return the sets of rows that somebody may know, of rows in the order of `person`.

    `part` is the table of each row, of which `known` rows may be known, and the largest of these numbers in all.
    """
    most, size = max(known, default=0), len(person)
    limits = np.array(known, np.int64)
    starts = run_starts(person)
    lengths = run_lengths(starts, size)
    found: list[Ints32] = [np.empty((0, most), np.int32)]
    if sum(math.comb(length, count) for length in lengths.tolist() for count in range(1, most + 1)) > MOST_SETS:
        raise ValueError(
            f"known must be smaller, or classes finer: the {int(lengths.max())} rows of one person, or all of a class, "
            f"have more than {MOST_SETS} choices."
        )
    for length in np.unique(lengths).tolist():
        progress.check()
        firsts = starts[lengths == length].astype(np.int32)
        for count in range(1, min(most, length) + 1):
            places = np.array(list(itertools.combinations(range(length), count)), np.int32)
            chosen = (firsts[:, None, None] + places[None]).reshape(-1, count)
            if (limits < count).any():
                tables = part[chosen]
                same = (tables[:, :, None] == tables[:, None, :]).sum(axis=2)
                chosen = chosen[(same <= limits[tables]).all(axis=1)]
            found.append(np.pad(chosen, ((0, 0), (0, most - count)), constant_values=size))
    return Rows(person, np.asfortranarray(np.concatenate(found)))


class Chains(NamedTuple):
    """Equal rows of one person."""

    before: Ints  # the row before each in its chain, -1 where there is none; with an entry for the row that is none
    chain: Ints  # the number of each row's chain
    place: Ints  # the row's place in it, from 0


def chains(person: Ints, items: Ints, movable: Bools | None = None) -> Chains:
    """Find the rows of a person with the same label; those that are movable come last in their chain."""
    keys = person * (int(items.max(initial=0)) + 1) + items
    order = np.argsort(keys if movable is None else 2 * keys + movable, kind="stable")
    starts = run_starts(keys[order])
    lengths = run_lengths(starts, len(order))
    chain, place, before = (np.empty(len(order), np.int64) for _ in range(3))
    chain[order] = np.repeat(np.arange(len(starts)), lengths)
    place[order] = np.arange(len(order)) - np.repeat(starts, lengths)
    before[order] = np.where(place[order] > 0, np.roll(order, 1), -1)
    return Chains(np.append(before, -1), chain, place)


def has_any(sets: Ints32, marks: Bools) -> Bools:
    """Tell which sets have a marked row; column by column, which is many times faster than by rows of two or three."""
    marks = np.append(marks, False)
    found: Bools = marks[sets[:, 0]]
    for place in range(1, sets.shape[1]):
        found |= marks[sets[:, place]]
    return found


def choices(sets: Ints32, before: Ints) -> Bools:
    """Tell which sets of rows are choices: those that have the row before each of their rows."""
    late = np.flatnonzero(has_any(sets, before[:-1] >= 0))
    found: Bools = np.ones(len(sets), np.bool_)
    some = sets[late]
    are = np.ones(len(late), np.bool_)
    for place in range(sets.shape[1]):
        earlier = before[some[:, place]]
        is_there = earlier < 0
        for other in range(sets.shape[1]):
            is_there |= some[:, other] == earlier
        are &= is_there
    found[late] = are
    return found


def keys(sets: Ints32, items: Ints) -> Ints:
    """Return a number for each set of rows, equal where the labels are; `items` are from 1, with a 0 at the end.

    No hashes: two choices that meet would hide a violation.
    """
    count = sets.shape[1]
    span = int(items.max(initial=0)) + 1
    if span**count > _MOST_KEY:
        raise ValueError(f"known must be smaller: {span - 1} different labels in a class are too many for it.")
    columns = [items[sets[:, place]] for place in range(count)]
    for end in range(count - 1, 0, -1):  # a network that sorts: the largest to the end, and so on
        for place in range(end):
            low, high = columns[place], columns[place + 1]
            columns[place], columns[place + 1] = np.minimum(low, high), np.maximum(low, high)
    key = columns[0]
    for column in columns[1:]:
        key = key * span + column
    return key


class Supports:
    """How many people hold each choice."""

    def __init__(self, held: Ints) -> None:
        self._is_table = int(held.max(initial=0)) < _MOST_CELLS
        self._counts = np.bincount(held) if self._is_table else np.sort(held)

    def of(self, asked: Ints) -> Ints:
        """Return the number of people who hold each choice, 0 where nobody does."""
        if self._is_table:
            counts: Ints = np.zeros(len(asked), np.int64)
            inside = asked < len(self._counts)
            counts[inside] = self._counts[asked[inside]]
            return counts
        left, right = (np.searchsorted(self._counts, asked, side=side) for side in ("left", "right"))
        return right - left


def smallest_support(rows: Rows, items: Ints, people: int) -> int:
    """Return the smallest number of people who hold a choice; `people` are those of the class."""
    held = keys(rows.sets[choices(rows.sets, chains(rows.person, items).before)], np.append(items, 0))
    return min(people, int(Supports(held).of(held).min(initial=people)))
