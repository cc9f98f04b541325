"""Several releases of the same people together: candidates and sensitive values left to who knows a person in each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from duckanon._core.common import progress
from duckanon._core.common.arrays import Bools, Ints
from duckanon._core.common.codes import encode
from duckanon._core.common.declare import report_rows
from duckanon._core.common.people import NOBODY, person_numbers
from duckanon._measure.coarse.tables import RELEASE
from duckanon._measure.declared import JOINT_RELEASES

_ABSENT = -1  # the class of people who are not in a release


@dataclass(frozen=True)
class PeopleOfRelease:
    """The people of one release.

    Attributes:
        classes: The class of each person of all releases, `_ABSENT` where they are not in this one.
        values: The different pairs of class and sensitive value, as `class * different values + value`, ascending.
    """

    classes: Ints
    values: Ints | None


def joint_releases(
    stacked: pa.Table | None,
    *,
    releases: Sequence[str],
    cols: Sequence[str],
    person: str,
    sensitive: str | None,
    k: int,
) -> pa.Table:
    """Count candidates and values after each release, given all releases up to it.

    Who knows a person's values in every release sees the list of their classes, absent ones too; the people with the
    same list are the candidates. A sensitive value that never changes is in all of these classes. People with several
    rows have the set of their rows' classes for a class.
    """
    if stacked is None:
        raise ValueError("the releases have no rows; give some that have.")
    found, value_count = _read(stacked, len(releases), cols, person, sensitive)
    joint = np.zeros(len(found[0].classes), np.int64)
    left: _ValuesLeft | None = None
    rows = []
    for place, (name, release) in enumerate(zip(releases, found, strict=True)):
        progress.at(place / len(found))
        joint, parents, classes = _refined(joint, release.classes)
        if release.values is not None:
            left = _ValuesLeft.after(left, parents, classes, release.values, value_count)
        is_seen = _is_seen(found[: place + 1])
        sizes = np.bincount(joint[is_seen], minlength=len(parents))
        here = release.classes[release.classes != _ABSENT]
        rows.append(
            {
                "release": name,
                "people": len(here),
                "k": _least(np.bincount(here)),
                "joint_people": int(is_seen.sum()),
                "joint_k": _least(sizes),
                "people_below_k": int(sizes[sizes < k].sum()),
                "l": None if release.values is None else _least(np.bincount(release.values // value_count)),
                "joint_l": None if left is None else _least(left.counts()[sizes > 0], can_be_none=True),
            }
        )
    return report_rows(rows, JOINT_RELEASES.schema)


def _least(counts: Ints, *, can_be_none: bool = False) -> int | None:
    """Return the smallest count; groups of nobody do not count, unless a count may be of values, all of which left."""
    counts = counts if can_be_none else counts[counts > 0]
    return int(counts.min()) if len(counts) else None


def _is_seen(releases: Sequence[PeopleOfRelease]) -> Bools:
    return np.asarray(np.any([release.classes != _ABSENT for release in releases], axis=0))


def _refined(joint: Ints, classes: Ints) -> tuple[Ints, Ints, Ints]:
    """Split groups of people by their classes in one more release.

    Return the group of each person, and of each group the one that it was part of, and its class in the release.
    """
    width = int(classes.max(initial=_ABSENT)) + 2
    keys, groups = np.unique(joint * width + classes + 1, return_inverse=True)
    return groups, keys // width, keys % width - 1


@dataclass(frozen=True)
class _ValuesLeft:
    """The sensitive values that are in every class of a group's list, as `group * width + value`, ascending.

    Attributes:
        is_open: Of each group, whether it was in no release yet: any value is left.
    """

    pairs: Ints
    is_open: Bools
    width: int

    @classmethod
    def after(cls, before: _ValuesLeft | None, parents: Ints, classes: Ints, values: Ints, width: int) -> _ValuesLeft:
        """Return what is left after one more release, given the groups before, and the classes, of each group."""
        was_open = np.ones(len(parents), np.bool_) if before is None else before.is_open[parents]
        is_there = classes != _ABSENT
        newly = np.flatnonzero(was_open & is_there)
        pairs = _repeated(values, classes[newly], newly, width)
        if before is not None:
            known = np.flatnonzero(~was_open)
            inherited = _repeated(before.pairs, parents[known], known, width)
            group, value = inherited // width, inherited % width
            is_left = ~is_there[group] | np.isin(classes[group] * width + value, values)
            pairs = np.concatenate([pairs, inherited[is_left]])
        return cls(np.sort(pairs), was_open & ~is_there, width)

    def counts(self) -> Ints:
        """Return how many values each group is left with; one more than there are where any value is."""
        found = np.bincount(self.pairs // self.width, minlength=len(self.is_open))
        return np.where(self.is_open, self.width + 1, found)


def _repeated(pairs: Ints, of: Ints, to: Ints, width: int) -> Ints:
    """Return the values of groups `of`, for each of them under the number `to`."""
    starts, ends = np.searchsorted(pairs, of * width), np.searchsorted(pairs, (of + 1) * width)
    counts = ends - starts
    place = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts) + np.repeat(starts, counts)
    return np.asarray(np.repeat(to, counts) * width + pairs[place] % width)


def _read(
    stacked: pa.Table, count: int, cols: Sequence[str], person: str, sensitive: str | None
) -> tuple[list[PeopleOfRelease], int]:
    """Give people, classes and sensitive values numbers, and read the classes of each release."""
    own = {name.lower(): name for name in stacked.column_names}
    numbers = stacked[RELEASE].to_numpy()
    people = person_numbers(stacked[own[person.lower()]])
    values, value_count = None, 0
    if sensitive is not None:
        ((values, value_count),) = encode(stacked.select([own[sensitive.lower()]]))
    row_classes = _row_classes(stacked.select([own[name.lower()] for name in cols]))
    everybody = int(people.max(initial=NOBODY)) + 1
    found = []
    for number in range(1, count + 1):
        progress.check()
        rows = np.flatnonzero((numbers == number) & (people != NOBODY))
        who = people[rows]
        classes = _classes_of_people(who, row_classes[rows], everybody)
        pairs = None if values is None else _unique(classes[who] * value_count + values[rows])
        found.append(PeopleOfRelease(classes, pairs))
    return found, value_count


def _unique(numbers: Ints) -> Ints:
    """Return the different numbers, ascending, several times faster than numpy's unique."""
    ordered = np.sort(numbers)
    return ordered[np.diff(ordered, prepend=-1) > 0]


def _row_classes(table: pa.Table) -> Ints:
    """Return the class of each row: equal cells have equal classes; intervals are compared by their ends."""
    while any(pa.types.is_struct(kind) for kind in table.schema.types):
        table = table.flatten()
    classes = np.zeros(table.num_rows, np.int64)
    for codes, count in encode(table):
        classes = np.unique(classes * max(count, 1) + codes, return_inverse=True)[1]
    return classes


def _classes_of_people(who: Ints, row_classes: Ints, everybody: int) -> Ints:
    """Return the class of each person: the set of the classes of their rows, by number."""
    width = int(row_classes.max(initial=0)) + 1
    pairs = _unique(who * width + row_classes)
    owners, members = pairs // width, pairs % width
    classes = np.full(everybody, _ABSENT)
    starts = np.flatnonzero(np.diff(owners, prepend=-1))
    sizes = np.diff(starts, append=len(owners))
    sets = np.zeros(len(starts), np.int64)
    for place in range(int(sizes.max(initial=0))):  # one member more of each set, the smallest first
        member = np.where(sizes > place, members[np.minimum(starts + place, len(members) - 1)] + 1, 0)
        sets = np.unique(sets * (width + 1) + member, return_inverse=True)[1]
    classes[owners[starts]] = sets
    return classes
