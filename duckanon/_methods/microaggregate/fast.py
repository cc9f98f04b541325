"""Microaggregation of large tables: MDAV within parts, and then better groups across them.

Halving the table at medians makes parts, within which MDAV groups. Then records move and swap between neighbouring
groups as long as that lowers the sum of squared distances to the means, and pools of two or three groups are dissolved
and grown anew, in turns. The number of turns depends on the number of records alone, so the time grows little faster
than the records; it mostly loses less than MDAV. Larger parts were tried, and lost the same in the end (`PART`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.spatial import cKDTree

from duckanon._core.common import progress
from duckanon._core.common.arguments import check_arguments
from duckanon._core.common.arrays import Bools, Floats, Ints, Matrix, sort_distinct
from duckanon._core.common.people import NOBODY, count_people, refuse_large_k
from duckanon._core.common.rules import Whole
from duckanon._methods.microaggregate.mdav import group_parts, mdav, measure_distances
from duckanon._methods.swap.halving import halve_by_people, halve_rows

LARGEST = 4
"""Times k: larger groups stay as they are. Only people with many records make them, and a table of all members is as
wide as the largest group."""


def average_groups(points: Matrix, group: Ints, count: int) -> Matrix:
    """Return the mean of each group, groups by columns."""
    sizes = np.maximum(np.bincount(group, minlength=count), 1)
    means: Matrix = np.stack([np.bincount(group, column, minlength=count) for column in points.T], axis=1)
    means /= sizes[:, np.newaxis]
    return means


def measure_errors(points: Matrix, group: Ints) -> Floats:
    """Return the squared distance of each record to the mean of its group."""
    apart = points - average_groups(points, group, int(group.max()) + 1)[group]
    squares: Floats = np.einsum("rc,rc->r", apart, apart)
    return squares


def list_members(group: Ints, count: int, rows: Ints | None = None) -> Ints:
    """Return the records of each of `count` groups, a group a line, filled up with -1; `rows` if they are some only."""
    sizes = np.bincount(group, minlength=count)
    order = np.argsort(group, kind="stable")
    position = np.arange(len(group)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    table = np.full((count, int(sizes.max())), -1)
    table[group[order], position] = order if rows is None else rows[order]
    return table


def renumber(group: Ints) -> Ints:
    """Give numbers from 0 to the groups that occur."""
    occurs = np.bincount(group) > 0
    numbers: Ints = (np.cumsum(occurs) - 1)[group]
    return numbers


def is_sole(group: Ints, people: Ints) -> Bools:
    """Tell which records are the only one of their person in their group."""
    key = group * (int(people.max(initial=0)) + 2) + people + 1
    order = np.argsort(key, kind="stable")
    differs = np.diff(key[order]) != 0
    sole = np.empty(len(key), np.bool_)
    sole[order] = np.append(True, differs) & np.append(differs, True)
    sole &= people != NOBODY
    return sole


def choose_disjoint(lines: Ints, waiting: Ints, count: int) -> Ints:
    """Choose lines, pairs or pools of groups, that share no group; of those `waiting`, the first go first."""
    chosen = [np.zeros(0, np.int64)]
    while len(waiting):
        position = np.arange(len(waiting))
        first = np.full(count, len(waiting))
        np.minimum.at(first, lines[waiting].ravel(), np.repeat(position, lines.shape[1]))
        is_first = (first[lines[waiting]] == position[:, np.newaxis]).all(axis=1)
        chosen.append(waiting[is_first])
        is_used = np.zeros(count, np.bool_)
        is_used[lines[waiting[is_first]]] = True
        waiting = waiting[~is_used[lines[waiting]].any(axis=1)]
    return np.concatenate(chosen)


NEIGHBOURS = 6
"""Groups that each group looks at: their means are the nearest."""

NEARLY = 1.5
"""Nearest means may be this share farther away than the nearest, which is found in a fraction of the time."""

_BLOCK_CELLS = 400_000
"""Numbers that are compared at once."""

_LEAST = 1e-12
"""A step must gain this share of all squared distances, or rounding errors would be steps for ever."""


class _BestSteps(NamedTuple):
    """The best step of each pair of groups: how much it adds, which record leaves the first, which the second (-1)."""

    added: Floats
    first: Ints
    second: Ints


def refine_groups(points: Matrix, group: Ints, k: int, rounds: int, people: Ints | None = None) -> Ints:
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
    means = average_groups(points, group, count)
    pairs = find_neighbour_pairs(means, usual)
    least = _LEAST * float(np.square(points - points.mean(axis=0)).sum())
    steps = _BestSteps(np.zeros(len(pairs)), np.full(len(pairs), -1), np.full(len(pairs), -1))
    changed = np.ones(count, np.bool_)
    for _ in range(rounds):
        progress.check()
        asked = np.flatnonzero(changed[pairs].any(axis=1))
        best_steps = _find_best_steps(points, group, means, pairs[asked], k, people)
        for kept, new in zip(steps, best_steps, strict=True):
            kept[asked] = new
        gaining = np.flatnonzero(steps.added < -least)
        chosen = choose_disjoint(pairs, gaining[np.argsort(steps.added[gaining], kind="stable")], count)
        if not len(chosen):
            break
        for side, records in ((1, steps.first[chosen]), (0, steps.second[chosen])):
            moves = records >= 0
            group[records[moves]] = pairs[chosen[moves], side]
        changed = np.zeros(count, np.bool_)
        changed[pairs[chosen]] = True
        rows = np.flatnonzero(changed[group])
        numbers = np.cumsum(changed) - 1
        means[changed] = average_groups(points[rows], numbers[group[rows]], int(changed.sum()))
    return group


def find_neighbour_pairs(means: Matrix, usual: Ints) -> Ints:
    """Return pairs of groups whose means are near each other, each pair once, the smaller number first."""
    tree = cKDTree(means[usual])
    nearest = usual[tree.query(means[usual], k=min(NEIGHBOURS + 1, len(usual)), eps=NEARLY)[1]]
    pairs = np.stack([np.repeat(usual, nearest.shape[1]), nearest.ravel()], axis=1)
    pairs = np.sort(pairs[pairs[:, 0] != pairs[:, 1]], axis=1)
    keys = sort_distinct(pairs[:, 0] * len(means) + pairs[:, 1])
    return np.stack([keys // len(means), keys % len(means)], axis=1)


def _find_best_steps(
    points: Matrix, group: Ints, means: Matrix, pairs: Ints, k: int, people: Ints | None
) -> _BestSteps:
    """Find the best step of each pair."""
    sizes = np.bincount(group, minlength=len(means))
    asked = np.zeros(len(means), np.bool_)
    asked[pairs] = True
    rows = np.flatnonzero(asked[group])
    table = list_members((np.cumsum(asked) - 1)[group[rows]], int(asked.sum()), rows)
    members = _GroupMembers.of(points, table, means[asked])
    sole = None if people is None else is_sole(group, people)
    room = (sizes if people is None else count_people(group, people, len(means))) - k
    best = _BestSteps(np.full(len(pairs), np.inf), np.full(len(pairs), -1), np.full(len(pairs), -1))
    indices = (np.cumsum(asked) - 1)[pairs]
    step = max(1, _BLOCK_CELLS // (table.shape[1] * (table.shape[1] + 2 * points.shape[1])))
    for start in range(0, len(pairs), step):
        progress.check()
        block = slice(start, start + step)
        gives = room[pairs[block]] > (0 if people is None else -1)  # else no record may leave without another
        added = _StepChanges(members, indices[block], means[pairs[block]], sizes[pairs[block]], gives)
        hopeful = np.flatnonzero(added.least < 0)
        if not len(hopeful):
            continue
        first, second = (table[indices[block][hopeful, side]] for side in (0, 1))
        pair_room = room[pairs[block][hopeful]]
        swaps, from_first, from_second = added.of(hopeful)
        lost = [np.ones(first.shape, np.int64), np.ones(second.shape, np.int64)]
        if people is not None and sole is not None:
            swaps[~_has_enough_people(first, second, pair_room, people, sole)] = np.inf
            lost = [sole[first].astype(np.int64), sole[second].astype(np.int64)]
        from_first[lost[0] > pair_room[:, :1]] = np.inf
        from_second[lost[1] > pair_room[:, 1:]] = np.inf
        block_steps = _choose_best([swaps.reshape(len(hopeful), -1), from_first, from_second], first, second)
        for kept, new in zip(best, block_steps, strict=True):
            kept[block][hopeful] = new
    return best


def _choose_best(ways: list[Matrix], first: Ints, second: Ints) -> _BestSteps:
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
    return _BestSteps(
        added,
        np.where(is_swap | from_first, first[every, leaves_first], -1),
        np.where(is_swap | ~from_first, second[every, leaves_second % width], -1),
    )


class _GroupMembers(NamedTuple):
    """The records of groups as they lie around the mean of each; 0 where there is no record."""

    apart: Floats  # groups by records by columns
    squares: Matrix  # the squared distance of each record
    is_none: Bools  # whether there is no record
    farthest: Floats  # the largest distance of a record, of each group

    @classmethod
    def of(cls, points: Matrix, table: Ints, means: Matrix) -> _GroupMembers:
        """Take a line of records for each group, filled up with -1."""
        apart = points[np.maximum(table, 0)] - means[:, np.newaxis]
        apart[table < 0] = 0
        squares = np.einsum("grc,grc->gr", apart, apart)
        return cls(apart, squares, table < 0, np.sqrt(squares.max(axis=1)))


class _StepChanges:
    """The change of the sum of squares by steps between pairs of groups.

    With D = a - b, x and y as seen from the means of their groups, and w = 1/|A| + 1/|B|, a swap adds
    2 (1 - w) D(x - y) + (2 - w) |D|^2 - w (|x|^2 + |y|^2) + 2 w xy.  The last term alone depends on both, and is at
    least -2 w |x| |y|: most pairs need no look at it.  `least` is less than what any step of each pair adds.
    """

    def __init__(self, members: _GroupMembers, indices: Ints, means: Floats, sizes: Ints, gives: Bools) -> None:
        self._members, self._indices = members, indices
        between = means[:, 0] - means[:, 1]
        self._squared = np.einsum("pc,pc->p", between, between)[:, np.newaxis]
        self._weight = weight = (1 / sizes).sum(axis=1)[:, np.newaxis]
        self._sides, single = [], []
        for side, sign in ((0, 1.0), (1, -1.0)):
            squares, is_none = members.squares[indices[:, side]], members.is_none[indices[:, side]]
            along = sign * np.einsum("prc,pc->pr", members.apart[indices[:, side]], between)
            there, here = sizes[:, [1 - side]], sizes[:, [side]]
            moved = (squares + 2 * along + self._squared) * (there / (there + 1))
            moved -= squares * (here / np.maximum(here - 1, 1))
            alone = 2 * (1 - weight) * along - weight * squares
            moved[is_none | ~gives[:, [side]]], alone[is_none] = np.inf, np.inf
            self._sides.append(moved)
            single.append(alone)
        self._first, self._second = single
        self._first += (2 - weight) * self._squared
        product = (members.farthest[indices[:, 0]] * members.farthest[indices[:, 1]]) * weight[:, 0]
        swaps = self._first.min(axis=1) + self._second.min(axis=1) - 2 * product
        self.least = np.minimum(swaps, np.minimum(self._sides[0].min(axis=1), self._sides[1].min(axis=1)))

    def of(self, pairs: Ints) -> tuple[Floats, Matrix, Matrix]:
        """Return what steps of some pairs add: swaps of two records, moves from the first group, from the second."""
        left, right = (self._members.apart[self._indices[pairs, side]] for side in (0, 1))
        swaps = left @ right.transpose(0, 2, 1)
        swaps *= 2 * self._weight[pairs, :, np.newaxis]
        swaps += self._first[pairs, :, np.newaxis]
        swaps += self._second[pairs, np.newaxis]
        return swaps, self._sides[0][pairs], self._sides[1][pairs]


def _has_enough_people(first: Ints, second: Ints, room: Ints, people: Ints, sole: Bools) -> Bools:
    """Tell which swaps leave both groups k people: a group without people to spare must gain one for one that it loses.

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


_NEAREST = 8
"""Groups among which a pool's others are drawn, the nearest more often."""

_FALLS = 0.15
"""Handicap of each neighbour against the nearer one before it."""

_SPREAD = 0.5
"""Chance in drawing the record around which a group grows: 0 is always the one farthest out."""

_POOL_CELLS = 400_000


def regroup(points: Matrix, group: Ints, k: int, width: int, random: np.random.Generator, people: Ints | None) -> Ints:
    """Take pools of 2 or 3 neighbouring groups (`width`) apart, grow groups anew, and keep what is better."""
    count = int(group.max()) + 1
    usual = np.flatnonzero(np.bincount(group) <= LARGEST * k)
    if len(usual) < width:
        return group
    pools = _draw_pools(average_groups(points, group, count)[usual], width, random)
    pool_of_group = np.full(count, -1)
    pool_of_group[usual[pools]] = np.arange(len(pools))[:, np.newaxis]
    rows = np.flatnonzero(pool_of_group[group] >= 0)
    pool = pool_of_group[group[rows]]
    table = list_members(pool, len(pools), rows)
    grown = np.empty_like(table)
    step = max(1, _POOL_CELLS // (table.shape[1] * points.shape[1]))
    for start in range(0, len(table), step):
        progress.check()
        grown[start : start + step] = _grow_groups(points, table[start : start + step], k, random)
    anew = np.empty(len(points), np.int64)
    anew[table[table >= 0]] = (grown + np.arange(len(pools))[:, np.newaxis] * table.shape[1])[table >= 0]
    numbers = renumber(anew[rows])
    before = np.bincount(pool, measure_errors(points[rows], renumber(group[rows])))
    after = np.bincount(pool, measure_errors(points[rows], numbers))
    is_better = after < before * (1 - 1e-9)
    if people is not None:
        is_small = count_people(numbers, people[rows], int(numbers.max()) + 1) < k
        is_better &= np.bincount(pool, is_small[numbers]) == 0
    group = group.copy()
    better = is_better[pool]
    group[rows[better]] = count + numbers[better]
    return renumber(group)


def _draw_pools(means: Matrix, width: int, random: np.random.Generator) -> Ints:
    """Draw pools of groups that are near each other, no group in two pools."""
    nearest = cKDTree(means).query(means, k=min(_NEAREST, len(means)), eps=NEARLY)[1]
    neighbours = nearest[:, 1:]
    drawn = np.argsort(random.random(neighbours.shape) + _FALLS * np.arange(neighbours.shape[1]), axis=1)[
        :, : width - 1
    ]
    drawn = np.concatenate([np.arange(len(means))[:, np.newaxis], np.take_along_axis(neighbours, drawn, 1)], axis=1)
    # Of equal means a group may be its own neighbour.
    ordered = np.sort(drawn, axis=1)
    waiting = random.permutation(len(means))
    waiting = waiting[(ordered[:, 1:] != ordered[:, :-1]).all(axis=1)[waiting]]
    pools: Ints = drawn[choose_disjoint(drawn, waiting, len(means))]
    return pools


def _grow_groups(points: Matrix, table: Ints, k: int, random: np.random.Generator) -> Ints:
    """Grow groups of k around records drawn far out, always by the record nearest to the group's mean."""
    is_free: Bools = table >= 0
    values = points[np.maximum(table, 0)]
    group = np.zeros(table.shape, np.int64)
    number = 1  # what no group takes stays in group 0
    while True:
        left = is_free.sum(axis=1)
        pools = np.flatnonzero(left >= 2 * k)
        if not len(pools):
            return group
        records, free, every = values[pools], is_free[pools], np.arange(len(pools))
        means = np.einsum("psc,ps->pc", records, free) / left[pools, np.newaxis]
        far = measure_distances(records, means) * np.exp(_SPREAD * random.standard_normal(free.shape))
        seed = np.where(free, far, -1.0).argmax(axis=1)
        total = records[every, seed].copy()
        free[every, seed] = False
        group[pools, seed] = number
        for size in range(1, k):
            near = np.where(free, measure_distances(records, total / size), np.inf).argmin(axis=1)
            free[every, near] = False
            group[pools, near] = number
            total += records[every, near]
        is_free[pools] = free
        number += 1


PART, LEAST_PART = 100, 1_000
"""Groups that a part holds at most, and records that it holds even where these are more groups: MDAV within parts takes
as many looks at each record as the part has groups. With 300 groups, 100,000 x 8 normal numbers for k = 10 took half a
second more and lost the same in the end."""

_SMALL = 10_000
"""Records that MDAV itself groups at the start, in a second: no more is lost than there."""

_MOST_TURNS, _WORK = 150, 90_000
"""Pools of small tables are dissolved more often; above 90,000 records there are single steps only."""

_SEARCHES, _STEPS = 4, 3
"""Searches for the neighbours of each group, and rounds of single steps with each: the first rounds gain
most, and new neighbours more than more rounds."""

_LAST_STEPS = 12
"""Rounds of single steps after pools were dissolved."""


@check_arguments(k=Whole(2))
def fast(points: Matrix, k: int, people: Ints | None = None) -> Ints:
    """Group records at a cost that hardly grows faster than their number, mostly at less loss than MDAV.

    Up to 10,000 records are grouped by MDAV.  Of more, halving the table at medians makes parts of at most 100 k or
    1,000 records, within which MDAV groups (`group_parts`).  Then records move and swap (`refine_groups`), and pools of
    groups are dissolved (`regroup`), in turns: their number depends on the number of records alone.  The same points
    always have the same groups.
    """
    refuse_large_k(k, len(points), people)
    random = np.random.default_rng(0)  # draws decide what is tried, and nothing of it is released
    with progress.step(0, 0.3):
        group = _make_groups(points, k, people)
    for search in range(_SEARCHES):
        progress.advance(0.3 + 0.4 * search / _SEARCHES)
        group = refine_groups(points, group, k, _STEPS, people)
    turns = min(_MOST_TURNS, _WORK // len(points))
    for turn in range(turns):
        progress.advance(0.7 + 0.3 * turn / turns)
        group = regroup(points, group, k, 2 + turn % 2, random, people)
        if turn % 3 == 2 or turn == turns - 1:
            group = refine_groups(points, group, k, _LAST_STEPS, people)
    return group


def _make_groups(points: Matrix, k: int, people: Ints | None) -> Ints:
    part = max(PART * k, LEAST_PART)
    if len(points) <= max(_SMALL, part):
        return mdav(points, k, people)
    if people is None:
        return group_parts(points, halve_rows(points, part // 2), k)
    known = int(np.count_nonzero(np.bincount(people[people != NOBODY])))
    # Few people with many records: smaller parts, as those of fewer people than asked for are not cut.
    parts = halve_by_people(points, people, max(k, min(part // 2, known // 4)))
    group, groups = np.empty(len(points), np.int64), 0
    for members in np.split(np.argsort(parts, kind="stable"), np.cumsum(np.bincount(parts))[:-1]):
        progress.check()
        group[members] = groups + mdav(points[members], k, people[members])
        groups = int(group[members].max()) + 1
    return group
