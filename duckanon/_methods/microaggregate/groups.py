"""Groups of records as arrays: members, means, sizes, people."""

from __future__ import annotations

import numpy as np

from duckanon._core.common.arrays import Bools, Floats, Ints, Matrix
from duckanon._core.common.people import NOBODY

LARGEST = 4
"""Groups of more than so many times k stay as they are: only people with many records make such, and a table of all
members is as wide as the largest group."""


def group_means(points: Matrix, group: Ints, count: int) -> Matrix:
    """Return the mean of each group, groups by columns."""
    sizes = np.maximum(np.bincount(group, minlength=count), 1)
    means: Matrix = np.stack([np.bincount(group, column, minlength=count) for column in points.T], axis=1)
    means /= sizes[:, np.newaxis]
    return means


def squared_errors(points: Matrix, group: Ints) -> Floats:
    """Return the squared distance of each record to the mean of its group."""
    apart = points - group_means(points, group, int(group.max()) + 1)[group]
    squares: Floats = np.einsum("rc,rc->r", apart, apart)
    return squares


def member_table(group: Ints, count: int, rows: Ints | None = None) -> Ints:
    """Return the records of each of `count` groups, a group a line, filled up with -1; `rows` if they are some only."""
    sizes = np.bincount(group, minlength=count)
    order = np.argsort(group, kind="stable")
    place = np.arange(len(group)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    table = np.full((count, int(sizes.max())), -1)
    table[group[order], place] = order if rows is None else rows[order]
    return table


def renumbered(group: Ints) -> Ints:
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


def disjoint(lines: Ints, waiting: Ints, count: int) -> Ints:
    """Choose lines, pairs or pools of groups, that share no group; of those `waiting`, the first go first."""
    chosen = [np.zeros(0, np.int64)]
    while len(waiting):
        place = np.arange(len(waiting))
        first = np.full(count, len(waiting))
        np.minimum.at(first, lines[waiting].ravel(), np.repeat(place, lines.shape[1]))
        is_first = (first[lines[waiting]] == place[:, np.newaxis]).all(axis=1)
        chosen.append(waiting[is_first])
        is_used = np.zeros(count, np.bool_)
        is_used[lines[waiting[is_first]]] = True
        waiting = waiting[~is_used[lines[waiting]].any(axis=1)]
    return np.concatenate(chosen)
