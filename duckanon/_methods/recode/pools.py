"""Pools: a few neighbouring classes each, dissolved and rebuilt from random seeds, many pools at once."""

from __future__ import annotations

import numpy as np

from duckanon._core.common.arrays import Bools, Floats, Ints
from duckanon._methods.recode.column_joins import Joins
from duckanon._methods.recode.growth import NEVER, Grown, Growth, Guide, Pools


def grow(joins: Joins, pools: Pools, k: int, generator: np.random.Generator, guide: Guide | None = None) -> Grown:
    """Build classes of k people: a random row, then again and again the one that adds least; the rest then joins."""
    growth = Growth(joins, pools, generator, 0 if guide is None else len(guide.shares))
    while growth.begin(k):
        for step in range(1, k):
            growth.take(growth.scores(guide, step, k))
        growth.end(k)
    return growth.finished(guide)


def nearest_groups(joins: Joins, rows: Ints, is_row: Bools, size: int, generator: np.random.Generator) -> Ints:
    """Group rows of windows, places by windows, by `size` that are near each other; -1 where a row is left over."""
    growth = Growth(joins, Pools(rows, is_row), generator)
    while growth.begin(size):
        for _ in range(1, size):
            growth.take(growth.scores())
        growth.label()
    return growth.labels


def exchanged(joins: Joins, pools: Pools, generator: np.random.Generator) -> Grown:
    """Build the first of two classes anew from a random row, with as many rows of each sensitive value as before."""
    sensitive, sizes = pools.sensitive, pools.first_sizes
    assert sensitive is not None
    assert sizes is not None
    growth = Growth(joins, pools._replace(people=None, is_free=None), generator)
    pool = np.arange(len(sizes))
    is_first = np.arange(len(pools.rows))[:, None] < sizes
    kinds = int(sensitive.max()) + 1  # of these pools: others may have more
    keys = pool * kinds + sensitive
    wanted = np.bincount(keys[is_first], minlength=len(sizes) * kinds).reshape(-1, kinds)
    growth.begin(1, wanted[pool, sensitive] == 0)
    for step in range(1, int(sizes.max())):
        assert growth.kinds_seen is not None
        is_full = (growth.kinds_seen >= wanted)[pool, sensitive]
        growth.take(np.where(is_full, NEVER, growth.scores()), sizes > step)
    growth.label()
    labels = np.where(growth.labels == 0, 0, np.where(pools.is_row, 1, -1))
    losses = sum((labels == label).sum(axis=0) * _set_losses(joins, pools.rows, labels == label) for label in (0, 1))
    return Grown(labels, np.asarray(losses, np.float64))


def _set_losses(joins: Joins, rows: Ints, is_member: Bools) -> Floats:
    """Return what one class of each pool loses, given its members."""
    order = np.argsort(~is_member, axis=0, kind="stable")
    members = np.take_along_axis(rows, order, axis=0)
    counts = is_member.sum(axis=0)
    total: Floats = np.zeros(rows.shape[1])
    for join in joins.every:
        state = join.single(join.values(members[0]))
        for place in range(1, int(counts.max())):
            joined = join.joined(state, join.values(members[place]))
            is_on = place < counts
            state = tuple(np.where(is_on, after, before) for after, before in zip(joined, state, strict=True))
        total += join.losses(state)
    return total
