"""Better groups by taking two or three neighbours apart and growing them anew."""

from __future__ import annotations

import numpy as np
from scipy.spatial import cKDTree

from duckanon._core.common import progress
from duckanon._core.common.arrays import Bools, Ints, Matrix
from duckanon._core.common.people import people_in
from duckanon._methods.microaggregate import groups
from duckanon._methods.microaggregate.groups import group_means, renumbered, squared_errors
from duckanon._methods.microaggregate.mdav import part_distances
from duckanon._methods.microaggregate.refine import NEARLY

_NEAREST = 8
"""Groups among which a pool's others are drawn, the nearest more often."""

_FALLS = 0.15
"""Handicap of each against the one before, which is drawn more often."""

_SPREAD = 0.5
"""Chance in drawing the record around which a group grows: 0 is always the one farthest out."""

_BLOCK_CELLS = 400_000


def regrouped(
    points: Matrix, group: Ints, k: int, width: int, random: np.random.Generator, people: Ints | None
) -> Ints:
    """Take pools of 2 or 3 neighbouring groups (`width`) apart, grow groups anew, and keep what is better."""
    count = int(group.max()) + 1
    usual = np.flatnonzero(np.bincount(group) <= groups.LARGEST * k)
    if len(usual) < width:
        return group
    pools = _pools(group_means(points, group, count)[usual], width, random)
    pool_of_group = np.full(count, -1)
    pool_of_group[usual[pools]] = np.arange(len(pools))[:, np.newaxis]
    rows = np.flatnonzero(pool_of_group[group] >= 0)
    pool = pool_of_group[group[rows]]
    table = groups.member_table(pool, len(pools), rows)
    grown = np.empty_like(table)
    step = max(1, _BLOCK_CELLS // (table.shape[1] * points.shape[1]))
    for start in range(0, len(table), step):
        progress.check()
        grown[start : start + step] = _grown(points, table[start : start + step], k, random)
    anew = np.empty(len(points), np.int64)
    anew[table[table >= 0]] = (grown + np.arange(len(pools))[:, np.newaxis] * table.shape[1])[table >= 0]
    numbers = renumbered(anew[rows])
    before = np.bincount(pool, squared_errors(points[rows], renumbered(group[rows])))
    after = np.bincount(pool, squared_errors(points[rows], numbers))
    is_better = after < before * (1 - 1e-9)
    if people is not None:
        is_small = people_in(numbers, people[rows], int(numbers.max()) + 1) < k
        is_better &= np.bincount(pool, is_small[numbers]) == 0
    group = group.copy()
    better = is_better[pool]
    group[rows[better]] = count + numbers[better]
    return renumbered(group)


def _pools(means: Matrix, width: int, random: np.random.Generator) -> Ints:
    """Draw pools of groups that are near each other, no group in two pools."""
    nearest = cKDTree(means).query(means, k=min(_NEAREST, len(means)), eps=NEARLY)[1]
    others = nearest[:, 1:]
    drawn = np.argsort(random.random(others.shape) + _FALLS * np.arange(others.shape[1]), axis=1)[:, : width - 1]
    drawn = np.concatenate([np.arange(len(means))[:, np.newaxis], np.take_along_axis(others, drawn, 1)], axis=1)
    # Of equal means a group may be its own neighbour.
    ordered = np.sort(drawn, axis=1)
    waiting = random.permutation(len(means))
    waiting = waiting[(ordered[:, 1:] != ordered[:, :-1]).all(axis=1)[waiting]]
    pools: Ints = drawn[groups.disjoint(drawn, waiting, len(means))]
    return pools


def _grown(points: Matrix, table: Ints, k: int, random: np.random.Generator) -> Ints:
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
        own, free, every = values[pools], is_free[pools], np.arange(len(pools))
        means = np.einsum("psc,ps->pc", own, free) / left[pools, np.newaxis]
        far = part_distances(own, means) * np.exp(_SPREAD * random.standard_normal(free.shape))
        seed = np.where(free, far, -1.0).argmax(axis=1)
        total = own[every, seed].copy()
        free[every, seed] = False
        group[pools, seed] = number
        for size in range(1, k):
            near = np.where(free, part_distances(own, total / size), np.inf).argmin(axis=1)
            free[every, near] = False
            group[pools, near] = number
            total += own[every, near]
        is_free[pools] = free
        number += 1
