"""Who enters, leaves and moves in a new release, so that everybody keeps k companions with the same list of classes.

People with the same list so far are a group. A group may split only into parts of at least k people with l sensitive
values each; what would be smaller stays as it was:

- newcomers of a class wait until a cohort has come together, and enter it as one group;
- people who are gone stay in the release, with their last record, until k of their group can leave and k can stay;
- people who must go at once take as many others of their group along;
- people who stay keep the record with which they entered, so that nobody sees whose is out of date;
- people whose class changed go to the new class if k of their group go there, and otherwise, k at a time, to the pool:
  one class whose labels are all unknown, which is true of everybody, so that nobody has to leave it by a change.

A list is longer with every release and never forgotten, so groups only become smaller. Without the pool, people who
change would be lost for good: those who move from one class to another are seldom k.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from duckanon._core.account.joint import ABSENT, ValuesLeft, unique
from duckanon._core.common import progress
from duckanon._core.common.arrays import Bools, Ints

POOL = 0
"""The number of the class whose labels are all unknown; other classes have numbers from 1."""


@dataclass(frozen=True)
class Rules:
    """What every part of a group keeps, and how long newcomers wait."""

    k: int
    l: int = 1  # noqa: E741 - as the functions call it
    size: int = 0  # people of a cohort that enter without further waiting
    patience: int = 3  # releases after which k people are enough; after twice as many they are pooled
    refresh: bool = False  # whether people who stay show their new values: records that never change are of people gone


@dataclass(frozen=True)
class People:
    """The people of the last release and of the table, by number.

    Attributes:
        groups: Of each person, the number of the people with the same list so far.
        before: The class in the last release, `ABSENT` where they were not in it.
        now: The class in the table, `ABSENT` where they are gone.
        is_seen: Whether they were in any release.
        must_go: Whether they must not be in the new release.
        waited: Of people in the table, for how many releases they were not in one.
        shown: By sensitive column, the pairs of person and value of the last release, as `person * width + value`,
            ascending.
        new: By sensitive column, the same of the table.
        left: By sensitive column, the values that are in every class of a group's list.
    """

    groups: Ints
    before: Ints
    now: Ints
    is_seen: Bools
    must_go: Bools
    waited: Ints
    shown: Mapping[str, Ints] = field(default_factory=dict)
    new: Mapping[str, Ints] = field(default_factory=dict)
    left: Mapping[str, ValuesLeft] = field(default_factory=dict)
    widths: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Decision:
    """Who is in the new release.

    Attributes:
        classes: The class of each person in the new release.
        is_old: Whether their record is that of the last release.
        is_stale: Whether the record is not true any more: the person is gone, has moved, or has other sensitive values.
    """

    classes: Ints
    is_old: Bools
    is_stale: Bools


def decide(people: People, rules: Rules) -> Decision:
    """Decide for each person whether they enter, stay, move or leave."""
    people = replace(people, now=np.where(people.must_go, ABSENT, people.now))
    before, now = people.before, people.now
    is_in = before != ABSENT
    target = np.where(is_in & (before == POOL) & (now != ABSENT), POOL, now)
    target = _with_pool(people, rules, _waiting(people, rules, target))
    target = _with_erased(people, rules, _without_small_rests(people, rules, target))
    progress.check()
    stays = is_in & (target == before)
    is_wrong = stays & (now != target) & ~((target == POOL) & (now != ABSENT))
    is_old = is_wrong | _held(people, rules, target, is_wrong) if rules.refresh else stays
    return Decision(target, is_old, is_wrong | (is_old & _has_new_values(people)))


def _waiting(people: People, rules: Rules, target: Ints) -> Ints:
    """Let newcomers wait until their cohort is large enough; those who waited longest enter the pool."""
    is_new = (people.before == ABSENT) & (target != ABSENT)
    parts = _Parts.of(people, target, is_new)
    longest = parts.largest(people.waited)
    is_large = parts.sizes >= np.where(longest >= rules.patience, rules.k, max(rules.size, rules.k))
    enters = parts.of_people(is_large & parts.is_diverse(people.new, people, rules.l))
    is_pooled = is_new & ~enters & (people.waited >= 2 * rules.patience)
    target = np.where(is_new & ~enters, np.where(is_pooled, POOL, ABSENT), target)
    pooled = _Parts.of(people, target, is_new & (target == POOL))
    is_kept = pooled.of_people((pooled.sizes >= rules.k) & pooled.is_diverse(people.new, people, rules.l))
    target = np.where(is_new & (target == POOL) & ~is_kept, ABSENT, target)
    # people who left together return together or not at all: the values of those who stay away are not known any more
    count = int(people.groups.max(initial=0)) + 1
    is_split = np.bincount(people.groups[target == ABSENT], minlength=count) > 0
    parts = _Parts.of(people, target, is_new & (target != ABSENT))
    is_split |= np.bincount(parts.groups, minlength=count) > 1
    return np.where(is_new & people.is_seen & is_split[people.groups], ABSENT, target)


def _with_pool(people: People, rules: Rules, target: Ints) -> Ints:
    """Let people move where k of their group move; else to the pool; else they stay where they are, as do leavers."""
    is_in = people.before != ABSENT
    for is_last in (False, True):
        goes = is_in & (target != people.before)
        parts = _Parts.of(people, target, goes)
        is_good = (parts.sizes >= rules.k) & parts.is_diverse(people.shown, people, rules.l)
        is_good &= (parts.targets == ABSENT) | parts.is_diverse(people.new, people, rules.l)
        fails = goes & ~parts.of_people(is_good)
        target = np.where(fails & ((target != ABSENT) | is_last), people.before if is_last else POOL, target)
    return target


def _without_small_rests(people: People, rules: Rules, target: Ints) -> Ints:
    """Keep as many leavers in a group as those who stay need; where most would leave and cannot, all leave."""
    is_in = people.before != ABSENT
    stays = is_in & (target == people.before)
    goes = is_in & ~stays
    count = int(people.groups.max(initial=0)) + 1
    rests = _Parts.of(people, target, stays)
    is_small = ~((rests.sizes >= rules.k) & rests.is_diverse(people.shown, people, rules.l))
    small = np.zeros(count, np.bool_)
    small[rests.groups[is_small]] = True
    leaving = np.bincount(people.groups[goes], minlength=count) > 0
    broken = np.flatnonzero(small & leaving)
    if not len(broken):
        return target
    target = target.copy()
    members = np.flatnonzero(is_in & np.isin(people.groups, broken))
    members = members[np.lexsort((people.waited[members], people.groups[members]))]
    for group in np.split(members, np.flatnonzero(np.diff(people.groups[members])) + 1):
        _mend(people, rules, target, group)
    return target


def _mend(people: People, rules: Rules, target: Ints, members: Ints) -> None:
    """Let a group leave in part, not at all, or whole, whatever is wrong for the fewest."""
    wanted = target[members]
    goes = wanted != people.before[members]
    parts, sizes = np.unique(wanted[goes], return_counts=True)
    largest = parts[np.argmax(sizes)]
    staying = members[~goes | (wanted != largest)]
    leaving = members[wanted == largest]
    target[members] = people.before[members]
    missing = max(rules.k - len(staying), 0)
    for kept in range(missing, len(leaving) - rules.k + 1):  # a few more where the values ask for it
        rest, gone = np.concatenate([staying, leaving[:kept]]), leaving[kept:]
        is_good = _is_diverse(people, rules.l, rest) and _is_diverse(people, rules.l, gone)
        if is_good and (largest == ABSENT or _is_diverse(people, rules.l, gone, people.new)):
            target[gone] = largest
            return
    is_stale = (people.now[members] != people.before[members]) & (people.before[members] != POOL)
    is_stale |= people.now[members] == ABSENT
    if 2 * is_stale.sum() > len(members):
        target[members] = ABSENT


def _is_diverse(people: People, l: int, members: Ints, values: Mapping[str, Ints] | None = None) -> bool:  # noqa: E741
    """Tell whether these people of one group have l values, of the last release or others, left to their group."""
    group = people.groups[members[0]] if len(members) else 0
    for column, pairs in (people.shown if values is None else values).items() if l > 1 else ():
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


def _with_erased(people: People, rules: Rules, target: Ints) -> Ints:
    """Let people who must go leave at once, with as many others of their group as that takes."""
    is_in = people.before != ABSENT
    target = np.where(people.must_go & ~is_in, ABSENT, target)
    members = np.flatnonzero(is_in & np.isin(people.groups, people.groups[people.must_go & is_in]))
    stays, is_there = target[members] == people.before[members], target[members] != ABSENT
    members = members[np.lexsort((members, stays, is_there, ~people.must_go[members], people.groups[members]))]
    for group in np.split(members, np.flatnonzero(np.diff(people.groups[members])) + 1):
        leaving = len(group)
        for size in range(max(rules.k, int(people.must_go[group].sum())), len(group) - rules.k + 1):
            if _is_diverse(people, rules.l, group[:size]) and _is_diverse(people, rules.l, group[size:]):
                leaving = size
                break
        target[group] = np.where(np.arange(len(group)) < leaving, ABSENT, people.before[group])
    return target


def _held(people: People, rules: Rules, target: Ints, is_old: Bools) -> Bools:
    """Return whose changed values are held back: those of parts that would show fewer than l values."""
    stays = (people.before != ABSENT) & (target == people.before) & ~is_old
    present = (people.before != ABSENT) & (target == people.before)
    parts = _Parts.of(people, target, present)
    shows = {
        column: np.concatenate([_of_people(people.shown[column], width, is_old), _of_people(new, width, stays)])
        for column, new in people.new.items()
        for width in [people.widths[column]]
        if column in people.shown
    }
    return np.asarray(stays & ~parts.of_people(parts.is_diverse(shows, people, rules.l)))


def _has_new_values(people: People) -> Bools:
    """Return of each person whether their sensitive values are others than in the last release."""
    found = np.zeros(len(people.groups), np.bool_)
    for column, shown in people.shown.items():
        found[np.setxor1d(shown, people.new[column], assume_unique=True) // people.widths[column]] = True
    return found


def _of_people(pairs: Ints, width: int, chosen: Bools) -> Ints:
    return pairs[chosen[pairs // width]]


@dataclass(frozen=True)
class _Parts:
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
    def of(cls, people: People, target: Ints, chosen: Bools) -> _Parts:
        """Return the parts of the chosen people."""
        rows = np.flatnonzero(chosen)
        width = int(target.max(initial=ABSENT)) + 2
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
