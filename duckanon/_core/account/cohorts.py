"""Who enters, leaves and moves in a new release, so that everybody keeps k companions with the same list of classes.

People with the same list so far are a group. A group may split only into parts of at least k people with l sensitive
values each; what would be smaller stays as it was:

- newcomers of a class wait until a cohort has come together, and enter it as one group; where that takes too long, they
  enter under coarser labels;
- people who are gone stay in the release, with their last record, until k of their group can leave and k can stay;
- people who must go at once take as many others of their group along;
- people who stay keep the record with which they entered, so that nobody sees whose is out of date;
- people whose class changed go to the new class if k of their group go there; otherwise, k at a time, to the class with
  the least coarse labels that are true of k of them, in the end to the pool, where all labels are unknown.

Coarser labels that are still true need not be left, so people who move on under them stay where they are. A list is
longer with every release and never forgotten, so groups only become smaller: without coarser labels, people who change
would be lost for good, since those who move from one class to another are seldom k.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from duckanon._core.account.joint import ABSENT, ValuePaths, ValuesLeft
from duckanon._core.common import progress
from duckanon._core.common.arrays import Bools, Ints, sort_distinct
from duckanon._core.common.row_keys import group_keys, pack_columns

POOL = 0
"""The number of the class whose labels are all unknown; other classes have numbers from 1."""


@dataclass(frozen=True)
class CohortRules:
    """What every part of a group keeps, and how long newcomers wait."""

    k: int
    l: int = 1  # noqa: E741 - as the functions call it
    size: int = 0  # people of a cohort that enter without further waiting
    # releases after which k people are enough, and after which people who moved go where all labels are unknown; after
    # twice as many, newcomers enter under coarser labels
    patience: int = 3
    refresh: bool = False  # whether people who stay show their new values: records that never change are of people gone


@dataclass(frozen=True)
class CohortPeople:
    """The people of the last release and of the table, by number.

    Attributes:
        groups: Of each person, the number of the people with the same list so far.
        before: The class in the last release, `ABSENT` where they were not in it.
        now: The class in the table, `ABSENT` where they are gone.
        is_seen: Whether they were in any release.
        was_in: Whether they were in a release of this table; people of other tables are only seen.
        must_go: Whether they must not be in the new release.
        waited: Of people in the table, for how many releases they were not in one.
        stale: Of people in the last release, for how many releases their record was not true.
        coarser: Of each class (a row), the classes that are true of its people too: itself first, then under ever
            coarser labels, `POOL` last.
        shown: By sensitive column, the pairs of person and value of the last release, as `person * width + value`,
            ascending.
        new: By sensitive column, the same of the table.
        left: By sensitive column, the values that are in every class of a group's list.
        paths: By sensitive column, what people showed in all releases, where pseudonyms tell whose records are whose,
            and where several tables have the same people.
    """

    groups: Ints
    before: Ints
    now: Ints
    is_seen: Bools
    was_in: Bools
    must_go: Bools
    waited: Ints
    stale: Ints
    coarser: Ints
    shown: Mapping[str, Ints] = field(default_factory=dict)
    new: Mapping[str, Ints] = field(default_factory=dict)
    left: Mapping[str, ValuesLeft] = field(default_factory=dict)
    widths: Mapping[str, int] = field(default_factory=dict)
    paths: Mapping[str, ValuePaths] = field(default_factory=dict)

    @cached_property
    def is_in(self) -> Bools:
        """Whether they were in the last release."""
        return np.asarray(self.before != ABSENT)

    @cached_property
    def is_true(self) -> Bools:
        """Whether the class of the last release is true of them now: theirs, or under coarser labels."""
        is_true = np.asarray(self.is_in & (self.before == self.now))
        elsewhere = np.flatnonzero(self.is_in & (self.now != ABSENT) & ~is_true)
        is_true[elsewhere] = (self.coarser[self.now[elsewhere]] == self.before[elsewhere][:, None]).any(axis=1)
        return is_true

    def of(self, chosen: Ints) -> CohortPeople:
        """Return some of these people, whose numbers ascend, as if there were no others."""
        numbers = np.full(len(self.groups), ABSENT)
        numbers[chosen] = np.arange(len(chosen))

        def select_pairs(pairs: Mapping[str, Ints]) -> dict[str, Ints]:
            selected = {}
            for column, numbered in pairs.items():
                width = self.widths[column]
                person = numbers[numbered // width]
                selected[column] = (person * width + numbered % width)[person != ABSENT]
            return selected

        return replace(
            self,
            groups=self.groups[chosen],
            before=self.before[chosen],
            now=self.now[chosen],
            is_seen=self.is_seen[chosen],
            was_in=self.was_in[chosen],
            must_go=self.must_go[chosen],
            waited=self.waited[chosen],
            stale=self.stale[chosen],
            shown=select_pairs(self.shown),
            new=select_pairs(self.new),
            paths={column: paths.of_people(chosen) for column, paths in self.paths.items()},
        )


@dataclass(frozen=True)
class GroupParts:
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
    def of(cls, people: CohortPeople, target: Ints, chosen: Bools) -> GroupParts:
        """Return the parts of the chosen people."""
        rows = np.flatnonzero(chosen)
        width = int(target.max(initial=-1)) + 2
        groups, targets = people.groups[rows], target[rows]
        parts = group_keys(pack_columns([(targets + 1, width)], len(rows), groups)[0])
        numbers = np.full(len(target), -1)
        numbers[rows] = parts.codes
        return cls(numbers, groups[parts.firsts], targets[parts.firsts], parts.counts)

    def of_people(self, is_good: Bools) -> Bools:
        """Return for each person whether their part is good."""
        return np.asarray(np.append(is_good, False)[self.numbers])

    def largest(self, numbers: Ints) -> Ints:
        """Return the largest number of a person in each part."""
        largest = np.zeros(len(self.sizes), np.int64)
        rows = self.numbers >= 0
        np.maximum.at(largest, self.numbers[rows], numbers[rows])
        return largest

    def may_go(self, people: CohortPeople, rules: CohortRules) -> Bools:
        """Tell for each part whether it may become a group: k people, of whom releases so far showed l values."""
        return (
            (self.sizes >= rules.k)
            & self.is_diverse(people.shown, people, rules.l)
            & self.have_shown_values(people, rules.l)
        )

    def have_shown_values(self, people: CohortPeople, l: int) -> Bools:  # noqa: E741
        """Tell for each part whether its people, as far as they can be followed, showed l values in every release."""
        is_good = np.ones(len(self.sizes), np.bool_)
        for paths in people.paths.values() if l > 1 else ():
            is_good &= paths.is_diverse(self.numbers, len(self.sizes), l)
        return is_good

    def is_diverse(self, values: Mapping[str, Ints], people: CohortPeople, l: int) -> Bools:  # noqa: E741
        """Tell for each part whether its people have l values of every column that are left to their group."""
        is_good = np.ones(len(self.sizes), np.bool_)
        for column, pairs in values.items() if l > 1 else ():
            width = people.widths[column]
            part = self.numbers[pairs // width]
            different = sort_distinct((part * width + pairs % width)[part >= 0])
            part, value = different // width, different % width
            left = people.left.get(column)
            if left is not None:
                group = self.groups[part]
                is_left = left.is_open[group] | np.isin(group * width + value, left.pairs)
                part = part[is_left]
            is_good &= np.bincount(part, minlength=len(self.sizes)) >= l
        return is_good


def are_diverse(people: CohortPeople, l: int, members: Ints) -> bool:  # noqa: E741
    """Tell whether these people of one group may be a group: releases so far showed l values of them."""
    return have_values(people, l, members, people.shown) and have_shown_values(people, l, members)


def have_shown_values(people: CohortPeople, l: int, members: Ints) -> bool:  # noqa: E741
    """Tell whether these people of one group, as far as they can be followed, showed l values in every release."""
    group = np.zeros(len(members), np.int64)
    return l == 1 or all(paths.of_people(members).is_diverse(group, 1, l)[0] for paths in people.paths.values())


def have_values(people: CohortPeople, l: int, members: Ints, values: Mapping[str, Ints]) -> bool:  # noqa: E741
    """Tell whether these people of one group have l values that are left to their group."""
    group = people.groups[members[0]] if len(members) else 0
    for column, pairs in values.items() if l > 1 else ():
        width = people.widths[column]
        starts, ends = np.searchsorted(pairs, members * width), np.searchsorted(pairs, (members + 1) * width)
        pieces = [pairs[start:end] for start, end in zip(starts, ends, strict=True)]
        shown = sort_distinct(np.concatenate(pieces) % width)
        left = people.left.get(column)
        if left is not None and not left.is_open[group]:
            start, end = np.searchsorted(left.pairs, [group * width, (group + 1) * width])
            shown = np.intersect1d(shown, left.pairs[start:end] % width)
        if len(shown) < l:
            return False
    return True


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


def decide_cohorts(people: CohortPeople, rules: CohortRules) -> Decision:
    """Decide for each person whether they enter, stay, move or leave."""
    people = replace(people, now=np.where(people.must_go, ABSENT, people.now))
    target = np.where(people.is_true, people.before, people.now)
    target = _move_people(people, rules, _admit_newcomers(people, rules, target))
    target = _erase_people(people, rules, _mend_small_rests(people, rules, target))
    progress.check()
    stays = people.is_in & (target == people.before)
    is_wrong = stays & ~people.is_true
    is_old = is_wrong | _hold_back_values(people, rules, target, is_wrong) if rules.refresh else stays
    return Decision(target, is_old, is_wrong | (is_old & _find_new_values(people)))


def _admit_newcomers(people: CohortPeople, rules: CohortRules, target: Ints) -> Ints:
    """Let newcomers wait until their cohort is large enough; those who waited longest enter under coarser labels."""
    is_new = ~people.is_in & (target != ABSENT)
    parts = GroupParts.of(people, target, is_new)
    longest = parts.largest(people.waited)
    is_large = parts.sizes >= np.where(longest >= rules.patience, rules.k, max(rules.size, rules.k))
    is_good = is_large & parts.is_diverse(people.new, people, rules.l) & parts.have_shown_values(people, rules.l)
    enters = parts.of_people(is_good)
    target = np.where(is_new & ~enters, ABSENT, target)
    target = _climb_labels(people, rules, target, is_new & ~enters & (people.waited >= 2 * rules.patience))
    # people who left together return together or not at all: the values of those who stay away are not known any more
    count = int(people.groups.max(initial=0)) + 1
    is_split = np.bincount(people.groups[target == ABSENT], minlength=count) > 0
    parts = GroupParts.of(people, target, is_new & (target != ABSENT))
    is_split |= np.bincount(parts.groups, minlength=count) > 1
    target = np.where(is_new & people.was_in & is_split[people.groups], ABSENT, target)
    return _keep_small_absences(people, rules, target)


def _keep_small_absences(people: CohortPeople, rules: CohortRules, target: Ints) -> Ints:
    """Let people of other tables wait where those of their group who are not in this one would be too few."""
    is_elsewhere = people.is_seen & ~people.was_in
    rests = GroupParts.of(people, target, is_elsewhere & (target == ABSENT))
    small = rests.groups[~((rests.sizes >= rules.k) & rests.have_shown_values(people, rules.l))]
    broken = np.intersect1d(small, people.groups[is_elsewhere & (target != ABSENT)])
    members = np.flatnonzero(is_elsewhere & np.isin(people.groups, broken))
    members = members[np.argsort(people.groups[members], kind="stable")]
    target = target.copy()
    for group in np.split(members, np.flatnonzero(np.diff(people.groups[members])) + 1) if len(members) else ():
        parts, sizes = np.unique(target[group], return_counts=True)
        for part in parts[np.argsort(sizes, kind="stable")]:
            rest = group[target[group] == ABSENT]
            if len(rest) >= rules.k and have_shown_values(people, rules.l, rest):
                break
            target[group[target[group] == part]] = ABSENT
    return target


def _move_people(people: CohortPeople, rules: CohortRules, target: Ints) -> Ints:
    """Let people leave or move where k of their group go; others stay where they are."""
    goes = people.is_in & (target != people.before)
    leaving = GroupParts.of(people, target, goes & (target == ABSENT))
    leaves = leaving.of_people(leaving.may_go(people, rules))
    target = np.where(goes & ~leaves, people.before, target)
    return _climb_labels(people, rules, target, goes & (people.now != ABSENT))


def _climb_labels(people: CohortPeople, rules: CohortRules, target: Ints, climbing: Bools) -> Ints:
    """Let people go to the class with the least coarse labels that k of their group go to; others stay.

    Nobody moves to where all labels are unknown before somebody of the part has been stale as long as patience says.
    """
    target, numbers = target.copy(), np.flatnonzero(climbing)
    climbers, last = people.of(numbers), people.coarser.shape[1] - 1
    for level in range(last + 1):
        progress.check()
        wanted = people.coarser[climbers.now, level]
        parts = GroupParts.of(climbers, wanted, np.ones(len(wanted), np.bool_))
        is_good = (parts.sizes >= rules.k) & parts.is_diverse(climbers.new, climbers, rules.l)
        if is_good.any():
            was_in = np.zeros(len(parts.sizes), np.bool_)
            was_in[parts.numbers[climbers.is_in]] = True
            is_good &= parts.have_shown_values(climbers, rules.l) & (~was_in | parts.may_go(climbers, rules))
            if level == last:
                is_good &= ~was_in | (parts.largest(climbers.stale) >= rules.patience)
        goes = parts.of_people(is_good)
        if goes.any():
            target[numbers[goes]] = wanted[goes]
            numbers, climbers = numbers[~goes], climbers.of(np.flatnonzero(~goes))
        if len(numbers) < rules.k:
            break
    return target


def _mend_small_rests(people: CohortPeople, rules: CohortRules, target: Ints) -> Ints:
    """Keep as many leavers in a group as those who stay need; where most would leave and cannot, all leave."""
    is_in = people.is_in
    stays = is_in & (target == people.before)
    goes = is_in & ~stays
    count = int(people.groups.max(initial=0)) + 1
    rests = GroupParts.of(people, target, stays)
    small = np.zeros(count, np.bool_)
    small[rests.groups[~rests.may_go(people, rules)]] = True
    leaving = np.bincount(people.groups[goes], minlength=count) > 0
    broken = np.flatnonzero(small & leaving)
    if not len(broken):
        return target
    target = target.copy()
    members = np.flatnonzero(is_in & np.isin(people.groups, broken))
    members = members[np.lexsort((people.waited[members], people.groups[members]))]
    for group in np.split(members, np.flatnonzero(np.diff(people.groups[members])) + 1):
        _mend_group(people, rules, target, group)
    return target


def _mend_group(people: CohortPeople, rules: CohortRules, target: Ints, members: Ints) -> None:
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
        is_good = are_diverse(people, rules.l, rest) and are_diverse(people, rules.l, gone)
        if is_good and (largest == ABSENT or have_values(people, rules.l, gone, people.new)):
            target[gone] = largest
            return
    if 2 * (~people.is_true[members]).sum() > len(members):
        target[members] = ABSENT


def _erase_people(people: CohortPeople, rules: CohortRules, target: Ints) -> Ints:
    """Let people who must go leave at once, with as many others of their group as that takes."""
    is_in = people.is_in
    target = np.where(people.must_go & ~is_in, ABSENT, target)
    members = np.flatnonzero(is_in & np.isin(people.groups, people.groups[people.must_go & is_in]))
    stays, is_there = target[members] == people.before[members], target[members] != ABSENT
    members = members[np.lexsort((members, stays, is_there, ~people.must_go[members], people.groups[members]))]
    for group in np.split(members, np.flatnonzero(np.diff(people.groups[members])) + 1):
        leaving = len(group)
        for size in range(max(rules.k, int(people.must_go[group].sum())), len(group) - rules.k + 1):
            if are_diverse(people, rules.l, group[:size]) and are_diverse(people, rules.l, group[size:]):
                leaving = size
                break
        target[group] = np.where(np.arange(len(group)) < leaving, ABSENT, people.before[group])
    return target


def _hold_back_values(people: CohortPeople, rules: CohortRules, target: Ints, is_old: Bools) -> Bools:
    """Tell which people's changed values are held back: those of parts that would show fewer than l values."""
    present = people.is_in & (target == people.before)
    stays = present & ~is_old
    parts = GroupParts.of(people, target, present)
    shows = {
        column: np.concatenate([_select_pairs(people.shown[column], width, is_old), _select_pairs(new, width, stays)])
        for column, new in people.new.items()
        for width in [people.widths[column]]
        if column in people.shown
    }
    return np.asarray(stays & ~parts.of_people(parts.is_diverse(shows, people, rules.l)))


def _find_new_values(people: CohortPeople) -> Bools:
    """Return of each person whether their sensitive values are others than in the last release."""
    has_new = np.zeros(len(people.groups), np.bool_)
    for column, shown in people.shown.items():
        has_new[np.setxor1d(shown, people.new[column], assume_unique=True) // people.widths[column]] = True
    return has_new


def _select_pairs(pairs: Ints, width: int, chosen: Bools) -> Ints:
    return pairs[chosen[pairs // width]]
