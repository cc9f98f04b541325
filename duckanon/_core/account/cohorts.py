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

from dataclasses import dataclass, replace

import numpy as np

from duckanon._core.account.cohort_parts import Parts, has_values, is_diverse, showed
from duckanon._core.account.cohort_people import People, Rules
from duckanon._core.account.groups import ABSENT
from duckanon._core.common import progress
from duckanon._core.common.arrays import Bools, Ints


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
    target = np.where(people.is_true, people.before, people.now)
    target = _moved(people, rules, _entered(people, rules, target))
    target = _with_erased(people, rules, _without_small_rests(people, rules, target))
    progress.check()
    stays = people.is_in & (target == people.before)
    is_wrong = stays & ~people.is_true
    is_old = is_wrong | _held(people, rules, target, is_wrong) if rules.refresh else stays
    return Decision(target, is_old, is_wrong | (is_old & _has_new_values(people)))


def _entered(people: People, rules: Rules, target: Ints) -> Ints:
    """Let newcomers wait until their cohort is large enough; those who waited longest enter under coarser labels."""
    is_new = ~people.is_in & (target != ABSENT)
    parts = Parts.of(people, target, is_new)
    longest = parts.largest(people.waited)
    is_large = parts.sizes >= np.where(longest >= rules.patience, rules.k, max(rules.size, rules.k))
    is_good = is_large & parts.is_diverse(people.new, people, rules.l) & parts.showed(people, rules.l)
    enters = parts.of_people(is_good)
    target = np.where(is_new & ~enters, ABSENT, target)
    target = _climbed(people, rules, target, is_new & ~enters & (people.waited >= 2 * rules.patience))
    # people who left together return together or not at all: the values of those who stay away are not known any more
    count = int(people.groups.max(initial=0)) + 1
    is_split = np.bincount(people.groups[target == ABSENT], minlength=count) > 0
    parts = Parts.of(people, target, is_new & (target != ABSENT))
    is_split |= np.bincount(parts.groups, minlength=count) > 1
    target = np.where(is_new & people.was_in & is_split[people.groups], ABSENT, target)
    return _without_small_absences(people, rules, target)


def _without_small_absences(people: People, rules: Rules, target: Ints) -> Ints:
    """Let people of other tables wait where those of their group who are not in this one would be too few."""
    others = people.is_seen & ~people.was_in
    rests = Parts.of(people, target, others & (target == ABSENT))
    small = rests.groups[~((rests.sizes >= rules.k) & rests.showed(people, rules.l))]
    broken = np.intersect1d(small, people.groups[others & (target != ABSENT)])
    members = np.flatnonzero(others & np.isin(people.groups, broken))
    members = members[np.argsort(people.groups[members], kind="stable")]
    target = target.copy()
    for group in np.split(members, np.flatnonzero(np.diff(people.groups[members])) + 1) if len(members) else ():
        parts, sizes = np.unique(target[group], return_counts=True)
        for part in parts[np.argsort(sizes, kind="stable")]:
            rest = group[target[group] == ABSENT]
            if len(rest) >= rules.k and showed(people, rules.l, rest):
                break
            target[group[target[group] == part]] = ABSENT
    return target


def _moved(people: People, rules: Rules, target: Ints) -> Ints:
    """Let people leave or move where k of their group go; others stay where they are."""
    goes = people.is_in & (target != people.before)
    leaving = Parts.of(people, target, goes & (target == ABSENT))
    leaves = leaving.of_people(leaving.may_go(people, rules))
    target = np.where(goes & ~leaves, people.before, target)
    return _climbed(people, rules, target, goes & (people.now != ABSENT))


def _climbed(people: People, rules: Rules, target: Ints, climbing: Bools) -> Ints:
    """Let people go to the class with the least coarse labels that k of their group go to; others stay.

    Nobody moves to where all labels are unknown before somebody of the part has been stale as long as patience says.
    """
    target, places = target.copy(), np.flatnonzero(climbing)
    some, last = people.of(places), people.coarser.shape[1] - 1
    for level in range(last + 1):
        progress.check()
        wanted = people.coarser[some.now, level]
        parts = Parts.of(some, wanted, np.ones(len(wanted), np.bool_))
        is_good = (parts.sizes >= rules.k) & parts.is_diverse(some.new, some, rules.l)
        if is_good.any():
            was_in = np.zeros(len(parts.sizes), np.bool_)
            was_in[parts.numbers[some.is_in]] = True
            is_good &= parts.showed(some, rules.l) & (~was_in | parts.may_go(some, rules))
            if level == last:
                is_good &= ~was_in | (parts.largest(some.stale) >= rules.patience)
        found = parts.of_people(is_good)
        if found.any():
            target[places[found]] = wanted[found]
            places, some = places[~found], some.of(np.flatnonzero(~found))
        if len(places) < rules.k:
            break
    return target


def _without_small_rests(people: People, rules: Rules, target: Ints) -> Ints:
    """Keep as many leavers in a group as those who stay need; where most would leave and cannot, all leave."""
    is_in = people.is_in
    stays = is_in & (target == people.before)
    goes = is_in & ~stays
    count = int(people.groups.max(initial=0)) + 1
    rests = Parts.of(people, target, stays)
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
        is_good = is_diverse(people, rules.l, rest) and is_diverse(people, rules.l, gone)
        if is_good and (largest == ABSENT or has_values(people, rules.l, gone, people.new)):
            target[gone] = largest
            return
    if 2 * (~people.is_true[members]).sum() > len(members):
        target[members] = ABSENT


def _with_erased(people: People, rules: Rules, target: Ints) -> Ints:
    """Let people who must go leave at once, with as many others of their group as that takes."""
    is_in = people.is_in
    target = np.where(people.must_go & ~is_in, ABSENT, target)
    members = np.flatnonzero(is_in & np.isin(people.groups, people.groups[people.must_go & is_in]))
    stays, is_there = target[members] == people.before[members], target[members] != ABSENT
    members = members[np.lexsort((members, stays, is_there, ~people.must_go[members], people.groups[members]))]
    for group in np.split(members, np.flatnonzero(np.diff(people.groups[members])) + 1):
        leaving = len(group)
        for size in range(max(rules.k, int(people.must_go[group].sum())), len(group) - rules.k + 1):
            if is_diverse(people, rules.l, group[:size]) and is_diverse(people, rules.l, group[size:]):
                leaving = size
                break
        target[group] = np.where(np.arange(len(group)) < leaving, ABSENT, people.before[group])
    return target


def _held(people: People, rules: Rules, target: Ints, is_old: Bools) -> Bools:
    """Return whose changed values are held back: those of parts that would show fewer than l values."""
    present = people.is_in & (target == people.before)
    stays = present & ~is_old
    parts = Parts.of(people, target, present)
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
