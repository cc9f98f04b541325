"""Numbers of different people in each class, where a person has several rows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from duckanon._core.common.arrays import Array, Bools, Ints, run_starts
from duckanon._core.common.codes import Codes
from duckanon._measure.assess.class_keys import MAX_KEY, ClassCounts, ranked


class People(NamedTuple):
    """The people of a table's rows, and counts of rows that were left out because each is a class of its own."""

    codes: Ints  # the person of each row, 0 to people_count - 1; people_count for a row that does not say whose it is
    people_count: int
    alone: Bools  # for each person whether a row of theirs was left out
    members: int = 0  # rows left out that say whose they are: classes of one person
    has_nobody: bool = False  # whether a row was left out that does not: a class of nobody

    def without(self, kept: Ints, left_out: Array) -> People:
        """Return the people of the rows that are kept; the others are classes of their own in every larger set."""
        loners = self.codes.take(np.flatnonzero(left_out))
        named = loners.compress(loners < self.people_count)
        alone = self.alone.copy()
        alone[named] = True
        has_nobody = self.has_nobody or len(named) < len(loners)
        return People(self.codes.take(kept), self.people_count, alone, self.members + len(named), has_nobody)


def coded(people: Codes, is_named: Bools) -> People:
    """Number the people of a table from a code for each row; `is_named` tells the rows that say whose they are."""
    named, numbers = np.unique(people.compress(is_named), return_inverse=True)
    coded_people = np.full(len(people), len(named), np.int64)
    coded_people[is_named] = numbers
    return People(coded_people, len(named), np.zeros(len(named), np.bool_))


def class_people(key: Codes, cells: int, people: People) -> tuple[ClassCounts, int]:
    """Count the classes of rows by key, the rows left out included, and the sum of the classes' numbers of people.

    The counts are distinct combinations, people who are unique in one at least once, people in the smallest class.
    """
    base = people.people_count + 1
    if cells * base > MAX_KEY:
        key, _ = ranked(key, cells, None)
    packed = key.astype(np.int64)
    packed *= base
    packed += people.codes
    packed.sort()
    pairs = packed.take(run_starts(packed))
    classes = pairs // base
    members = pairs - classes * base
    starts = run_starts(classes)
    ends = np.append(starts, len(pairs))[1:].astype(np.int64)
    sizes = ends - starts - (members.take(ends - 1) == people.people_count)  # nobody, the largest code, comes last
    alone = people.alone.copy()
    alone[members.take(starts.compress(sizes == 1))] = True
    left_out = [0] * people.has_nobody + [1] * (people.members > 0)
    smallest = min([*left_out, *([int(sizes.min())] if len(sizes) else [])], default=0)
    return (len(starts), int(np.count_nonzero(alone)), smallest), int(sizes.sum()) + people.members
