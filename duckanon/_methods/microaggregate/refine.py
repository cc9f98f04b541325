"""Better groups by single moves and swaps between neighbours."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.spatial import cKDTree

from duckanon._core.common import progress
from duckanon._core.common.arrays import Bools, Floats, Ints, Matrix, distinct
from duckanon._core.common.people import NOBODY, people_in
from duckanon._methods.microaggregate.groups import LARGEST, disjoint, group_means, is_sole, member_table

NEIGHBOURS = 6
"""Groups that each group looks at: their means are the nearest."""

NEARLY = 1.5
"""Nearest means may be this share farther away than the nearest, which is found in a fraction of the time."""

_BLOCK_CELLS = 400_000
"""Numbers that are compared at once."""

_LEAST = 1e-12
"""A step must gain this share of all squared distances, or rounding errors would be steps for ever."""


class _Steps(NamedTuple):
    """The best step of each pair of groups: how much it adds, which record leaves the first, which the second (-1)."""

    added: Floats
    first: Ints
    second: Ints


def refined(points: Matrix, group: Ints, k: int, rounds: int, people: Ints | None = None) -> Ints:
    """Move and swap records between neighbouring groups as long as squared distances to the means fall.

    Of two groups A and B, with means a and b, the swap of x in A and y in B adds 2 (a - b)(x - y) - |x - y|^2 (1/|A| +
    1/|B|) to the sum of squares. A round looks at the pairs of neighbours of which one has changed, and takes the best
    step of each pair that is better than those of all pairs it shares a group with; so in `rounds` each group takes
    part in at most as many steps.
    """
    count = int(group.max()) + 1
    group = group.copy()
    usual = np.flatnonzero(np.bincount(group) <= LARGEST * k)
    if len(usual) < 2:
        return group
    means = group_means(points, group, count)
    pairs = neighbour_pairs(means, usual)
    least = _LEAST * float(np.square(points - points.mean(axis=0)).sum())
    steps = _Steps(np.zeros(len(pairs)), np.full(len(pairs), -1), np.full(len(pairs), -1))
    changed = np.ones(count, np.bool_)
    for _ in range(rounds):
        progress.check()
        asked = np.flatnonzero(changed[pairs].any(axis=1))
        found = _best_steps(points, group, means, pairs[asked], k, people)
        for kept, new in zip(steps, found, strict=True):
            kept[asked] = new
        gaining = np.flatnonzero(steps.added < -least)
        chosen = disjoint(pairs, gaining[np.argsort(steps.added[gaining], kind="stable")], count)
        if not len(chosen):
            break
        for side, records in ((1, steps.first[chosen]), (0, steps.second[chosen])):
            moves = records >= 0
            group[records[moves]] = pairs[chosen[moves], side]
        changed = np.zeros(count, np.bool_)
        changed[pairs[chosen]] = True
        rows = np.flatnonzero(changed[group])
        numbers = np.cumsum(changed) - 1
        means[changed] = group_means(points[rows], numbers[group[rows]], int(changed.sum()))
    return group


def neighbour_pairs(means: Matrix, usual: Ints) -> Ints:
    """Return pairs of groups whose means are near each other, each pair once, the smaller number first."""
    tree = cKDTree(means[usual])
    nearest = usual[tree.query(means[usual], k=min(NEIGHBOURS + 1, len(usual)), eps=NEARLY)[1]]
    pairs = np.stack([np.repeat(usual, nearest.shape[1]), nearest.ravel()], axis=1)
    pairs = np.sort(pairs[pairs[:, 0] != pairs[:, 1]], axis=1)
    keys = distinct(pairs[:, 0] * len(means) + pairs[:, 1])
    return np.stack([keys // len(means), keys % len(means)], axis=1)


def _best_steps(points: Matrix, group: Ints, means: Matrix, pairs: Ints, k: int, people: Ints | None) -> _Steps:
    """Find the best step of each pair."""
    sizes = np.bincount(group, minlength=len(means))
    asked = np.zeros(len(means), np.bool_)
    asked[pairs] = True
    rows = np.flatnonzero(asked[group])
    table = member_table((np.cumsum(asked) - 1)[group[rows]], int(asked.sum()), rows)
    members = _Members.of(points, table, means[asked])
    sole = None if people is None else is_sole(group, people)
    room = (sizes if people is None else people_in(group, people, len(means))) - k
    best = _Steps(np.full(len(pairs), np.inf), np.full(len(pairs), -1), np.full(len(pairs), -1))
    places = (np.cumsum(asked) - 1)[pairs]
    step = max(1, _BLOCK_CELLS // (table.shape[1] * (table.shape[1] + 2 * points.shape[1])))
    for start in range(0, len(pairs), step):
        progress.check()
        block = slice(start, start + step)
        gives = room[pairs[block]] > (0 if people is None else -1)  # else no record may leave without another
        added = _Added(members, places[block], means[pairs[block]], sizes[pairs[block]], gives)
        hopeful = np.flatnonzero(added.least < 0)
        if not len(hopeful):
            continue
        first, second = (table[places[block][hopeful, side]] for side in (0, 1))
        pair_room = room[pairs[block][hopeful]]
        swaps, from_first, from_second = added.of(hopeful)
        lost = [np.ones(first.shape, np.int64), np.ones(second.shape, np.int64)]
        if people is not None and sole is not None:
            swaps[~_people_stay(first, second, pair_room, people, sole)] = np.inf
            lost = [sole[first].astype(np.int64), sole[second].astype(np.int64)]
        from_first[lost[0] > pair_room[:, :1]] = np.inf
        from_second[lost[1] > pair_room[:, 1:]] = np.inf
        found = _best_of([swaps.reshape(len(hopeful), -1), from_first, from_second], first, second)
        for kept, new in zip(best, found, strict=True):
            kept[block][hopeful] = new
    return best


def _best_of(ways: list[Matrix], first: Ints, second: Ints) -> _Steps:
    """Return the best among swaps, moves from the first group, and moves from the second."""
    everything = np.concatenate(ways, axis=1)
    best = everything.argmin(axis=1)
    added = everything[np.arange(len(best)), best]
    width = first.shape[1]
    left, right = best // width, best % width  # within the swaps
    move = best - width * width
    is_swap, from_first, every = move < 0, (move >= 0) & (move < width), np.arange(len(best))
    leaves_first = np.where(is_swap, left, np.where(from_first, move, 0))
    leaves_second = np.where(is_swap, right, np.where(from_first, 0, move - width))
    return _Steps(
        added,
        np.where(is_swap | from_first, first[every, leaves_first], -1),
        np.where(is_swap | ~from_first, second[every, leaves_second % width], -1),
    )


class _Members(NamedTuple):
    """The records of groups as they lie around the mean of each; 0 where there is no record."""

    apart: Floats  # groups by records by columns
    squares: Matrix  # the squared distance of each record
    is_none: Bools  # whether there is no record
    farthest: Floats  # the largest distance of a record, of each group

    @classmethod
    def of(cls, points: Matrix, table: Ints, means: Matrix) -> _Members:
        """Take a line of records for each group, filled up with -1."""
        apart = points[np.maximum(table, 0)] - means[:, np.newaxis]
        apart[table < 0] = 0
        squares = np.einsum("grc,grc->gr", apart, apart)
        return cls(apart, squares, table < 0, np.sqrt(squares.max(axis=1)))


class _Added:
    """The change of the sum of squares by steps between pairs of groups.

    With D = a - b, x and y as seen from the means of their groups, and w = 1/|A| + 1/|B|, a swap adds
    2 (1 - w) D(x - y) + (2 - w) |D|^2 - w (|x|^2 + |y|^2) + 2 w xy.  The last term alone depends on both, and is at
    least -2 w |x| |y|: most pairs need no look at it.  `least` is less than what any step of each pair adds.
    """

    def __init__(self, members: _Members, places: Ints, means: Floats, sizes: Ints, gives: Bools) -> None:
        self._members, self._places = members, places
        between = means[:, 0] - means[:, 1]
        self._squared = np.einsum("pc,pc->p", between, between)[:, np.newaxis]
        self._weight = weight = (1 / sizes).sum(axis=1)[:, np.newaxis]
        self._sides, one = [], []
        for side, sign in ((0, 1.0), (1, -1.0)):
            squares, is_none = members.squares[places[:, side]], members.is_none[places[:, side]]
            along = sign * np.einsum("prc,pc->pr", members.apart[places[:, side]], between)
            there, here = sizes[:, [1 - side]], sizes[:, [side]]
            moved = (squares + 2 * along + self._squared) * (there / (there + 1))
            moved -= squares * (here / np.maximum(here - 1, 1))
            alone = 2 * (1 - weight) * along - weight * squares
            moved[is_none | ~gives[:, [side]]], alone[is_none] = np.inf, np.inf
            self._sides.append(moved)
            one.append(alone)
        self._first, self._second = one
        self._first += (2 - weight) * self._squared
        product = (members.farthest[places[:, 0]] * members.farthest[places[:, 1]]) * weight[:, 0]
        swaps = self._first.min(axis=1) + self._second.min(axis=1) - 2 * product
        self.least = np.minimum(swaps, np.minimum(self._sides[0].min(axis=1), self._sides[1].min(axis=1)))

    def of(self, pairs: Ints) -> tuple[Floats, Matrix, Matrix]:
        """Return what steps of some pairs add: swaps of two records, moves from the first group, from the second."""
        left, right = (self._members.apart[self._places[pairs, side]] for side in (0, 1))
        swaps = left @ right.transpose(0, 2, 1)
        swaps *= 2 * self._weight[pairs, :, np.newaxis]
        swaps += self._first[pairs, :, np.newaxis]
        swaps += self._second[pairs, np.newaxis]
        return swaps, self._sides[0][pairs], self._sides[1][pairs]


def _people_stay(first: Ints, second: Ints, room: Ints, people: Ints, sole: Bools) -> Bools:
    """Tell which swaps leave both groups enough people: one loses a person, where it gains none and has none to spare.

    Records are -1 where there is none; `room` is how many people more than k each group has, `sole` whether a record is
    its person's only one in its group.
    """
    left, right = people[first], people[second]
    same = (left[:, :, np.newaxis] == right[:, np.newaxis]) & (left != NOBODY)[:, :, np.newaxis]
    same &= (first >= 0)[:, :, np.newaxis] & (second >= 0)[:, np.newaxis]
    new_on_right = ~same.any(axis=2) & (left != NOBODY)
    new_on_left = ~same.any(axis=1) & (right != NOBODY)
    first_after = room[:, 0, np.newaxis, np.newaxis] - sole[first][:, :, np.newaxis] + new_on_left[:, np.newaxis]
    second_after = room[:, 1, np.newaxis, np.newaxis] - sole[second][:, np.newaxis] + new_on_right[:, :, np.newaxis]
    stays: Bools = same | ((first_after >= 0) & (second_after >= 0))
    return stays
