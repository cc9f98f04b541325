"""Classes whose sensitive values are diverse, and close to those of the whole table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from duckanon._core.common import progress
from duckanon._core.common.arrays import Array, Bools, Ints, run_starts
from duckanon._core.common.people import people_in
from duckanon._methods.recode.classes import POOL_CLASSES, balance_of
from duckanon._methods.recode.column_joins import Joins
from duckanon._methods.recode.column_losses import Column, class_losses
from duckanon._methods.recode.cuts import Rules, Table
from duckanon._methods.recode.growth import Grown, Guide, Pools
from duckanon._methods.recode.pools import exchanged, grow
from duckanon._methods.recode.promises import Diversity
from duckanon._methods.recode.rounds import Members, Round, Search
from duckanon._methods.recode.start import start_classes

_CLOSER = (0.25, 0.5, 0.75)
"""Distances of the parts within which rows are dealt from the table, as shares of t."""

_LARGER = 3
"""Where l is nearly k, classes of up to so many people more are tried."""


def find_diverse_classes(
    columns: Sequence[Column],
    codes: Sequence[Array],
    groups: Ints | None,
    people: Ints | None,
    k: int,
    rounds: int,
    diversity: Diversity,
) -> Ints:
    """Return the class of each row: classes of diverse sensitive values that lose as little as can be found.

    Every group holds what is asked.
    """
    group_of = np.zeros(len(codes[0]), np.int64) if groups is None else groups
    diversity = diversity.of_what_occurs()
    table = Table(columns, codes, np.ones(len(group_of), np.int64), people, diversity.values)
    if diversity.rule.t is None:
        classes, size = start_classes(table, group_of, Rules(k, diversity.holds, balance_of(columns))), k
    else:
        classes, size = _close_start(table, group_of, k, diversity)
    members = Members(columns, codes, groups, np.full(len(group_of), -1), people, diversity.values)
    search = Search(members, classes, 0, k)

    def make(generator: np.random.Generator, number: int) -> Round:
        if diversity.rule.t is not None and number % 2:
            return _exchange(k, size, diversity, people is not None)
        return _growth(generator, size, diversity)

    search.improve(rounds, make)
    progress.at(1.0)
    return _repaired(codes, search.classes, group_of, people, k, diversity)


def _growth(generator: np.random.Generator, size: int, diversity: Diversity) -> Round:
    """Make a round in which classes are built anew, and kept where they hold what is asked."""
    count = int(generator.choice(POOL_CLASSES))
    larger = size + (int(generator.integers(_LARGER)) if diversity.rule.l >= size - 1 else 0)
    guide = Guide(min(int(diversity.rule.l), larger), diversity.shares, diversity.rule.t)

    def regrow(joins: Joins, pools: Pools, of_pools: np.random.Generator) -> Grown:
        grown = grow(joins, pools, larger, of_pools, guide)
        return _if_diverse(grown, pools, diversity)

    return Round(count, 2 * count * larger + larger, regrow)


def _exchange(k: int, size: int, diversity: Diversity, counts_people: bool) -> Round:
    """Make a round in which two classes exchange rows, such that neither's sensitive values change."""

    def regrow(joins: Joins, pools: Pools, of_pools: np.random.Generator) -> Grown:
        found = exchanged(joins, pools, of_pools)
        return _if_enough_people(found, pools, k) if counts_people else found

    return Round(2, 6 * size, regrow, only_whole=True)


def _if_diverse(grown: Grown, pools: Pools, diversity: Diversity) -> Grown:
    """Give up pools of which a class does not hold what is asked."""
    assert pools.sensitive is not None
    width = int(grown.labels.max(initial=0)) + 1
    inside = grown.labels >= 0
    pool = np.broadcast_to(np.arange(inside.shape[1]), inside.shape)
    keys = (pool[inside] * width + grown.labels[inside]) * diversity.size + pools.sensitive[inside]
    histograms = np.bincount(keys, minlength=inside.shape[1] * width * diversity.size).reshape(-1, diversity.size)
    fails = (histograms.sum(axis=1) > 0) & ~diversity.holds(histograms)
    return grown._replace(losses=np.where(fails.reshape(-1, width).any(axis=1), np.inf, grown.losses))


def _if_enough_people(grown: Grown, pools: Pools, k: int) -> Grown:
    """Give up pools of which a class has too few people."""
    assert pools.people is not None
    inside = grown.labels >= 0
    pool = np.broadcast_to(np.arange(inside.shape[1]), inside.shape)
    found = people_in(pool[inside] * 2 + grown.labels[inside], pools.people[inside], 2 * inside.shape[1]).reshape(-1, 2)
    return grown._replace(losses=np.where((found < k).any(axis=1), np.inf, grown.losses))


def _close_start(table: Table, groups: Ints, k: int, diversity: Diversity) -> tuple[Ints, int]:
    """Return the best of several starts whose classes are close to the table, and how many rows its classes have.

    Cutting alone leaves classes large, since few cuts keep both sides close. So the table is cut into parts that are
    closer than they must be, and the rows of each part are dealt to its classes value by value (`_dealt`).
    """
    assert diversity.rule.t is not None
    order = start_classes(table._replace(people=None), groups, Rules(k, None, balance_of(table.columns)))
    starts = []
    for share in _CLOSER:
        closer = replace(diversity.rule, t=share * diversity.rule.t)
        holds = diversity._replace(rule=closer).holds
        whole = diversity.histograms(groups, None, int(groups.max()) + 1)
        parts = groups
        if holds(whole).all():
            parts = start_classes(table, groups, Rules(k, holds, balance_of(table.columns)))
        starts.append(_dealt(order, parts, table.people, k, diversity))
    best = min(starts, key=lambda start: _total(table.columns, table.codes, start))
    return best, max(k, int(np.median(np.bincount(best))))


def _dealt(order: Ints, parts: Ints, people: Ints | None, k: int, diversity: Diversity) -> Ints:
    """Deal the rows of each sensitive value evenly to the classes of their part, near ones, by `order`, to the same.

    Each part holds what is asked. Its classes are the smallest, of k, about 1.2 k, ... rows, that all hold it too, or
    the part is one.
    """
    part_rows = np.bincount(parts)
    cells = parts * diversity.size + diversity.values
    cell_rows = np.bincount(cells)
    by_cell = np.lexsort((order, cells))
    places = np.empty(len(parts), np.int64)
    places[by_cell] = np.arange(len(parts)) - (np.cumsum(cell_rows) - cell_rows)[cells[by_cell]]
    classes, is_open, size = parts * len(parts), np.ones(len(part_rows), np.bool_), k
    while size <= part_rows[is_open].max(initial=0) // 2:
        progress.check()
        counts = np.maximum(part_rows // size, 1)
        own = ((places + 0.5) * counts[parts] / cell_rows[cells]).astype(np.int64)
        dealt = (np.cumsum(counts) - counts)[parts] + own
        fails = np.zeros(len(part_rows), np.bool_)
        fails[parts[_failing(dealt, people, k, diversity)[dealt]]] = True
        chosen = (is_open & ~fails)[parts]
        classes[chosen] += own[chosen]
        is_open &= fails
        size = max(size + 1, int(size * 1.2))
    return np.unique(classes, return_inverse=True)[1].reshape(-1)


def _failing(classes: Ints, people: Ints | None, k: int, diversity: Diversity) -> Bools:
    """Tell which classes do not hold what is asked; people count, not rows."""
    count = int(classes.max()) + 1
    enough = diversity.holds(diversity.histograms(classes, people, count)) & (people_in(classes, people, count) >= k)
    return ~enough & (np.bincount(classes, minlength=count) > 0)


def _repaired(
    codes: Sequence[Array], classes: Ints, groups: Ints, people: Ints | None, k: int, diversity: Diversity
) -> Ints:
    """Merge classes that fail with a neighbour: the search counts rows, the promise people, who may have several."""
    while True:
        classes = np.unique(classes, return_inverse=True)[1].reshape(-1)
        failing = _failing(classes, people, k, diversity)
        if not failing.any():
            return classes
        first_rows = np.unique(classes, return_index=True)[1]
        order = np.lexsort([*(of_rows[first_rows] for of_rows in codes), groups[first_rows]])
        # each that fails joins the one before it in its group, or the one after it
        group_in_order, fails_in_order = groups[first_rows][order], failing[order]
        is_first = np.zeros(len(order), np.bool_)
        is_first[run_starts(group_in_order)] = True
        joins_before = fails_in_order & ~is_first
        joins_before[1:] |= fails_in_order[:-1] & is_first[:-1] & ~is_first[1:]
        if not joins_before.any():
            return classes
        merged = np.empty(len(order), np.int64)
        merged[order] = np.cumsum(~joins_before) - 1
        classes = merged[classes]


def _total(columns: Sequence[Column], codes: Sequence[Array], classes: Ints) -> float:
    """Return what all rows lose together."""
    order = np.argsort(classes, kind="stable")
    starts = run_starts(classes[order])
    losses = class_losses(columns, [of_rows[order] for of_rows in codes], starts)
    return float((losses * np.diff(starts, append=len(order))).sum())
