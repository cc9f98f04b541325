"""A budget of distinct values: what each column may keep, and the finest groups that keep to it."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from duckanon.common.arrays import Floats, Ints
from duckanon.generalize.methods import Coarsening
from duckanon.generalize.partition.fit import quantile_buckets
from duckanon.generalize.recoding.columns import Flat, Levels, Ordered, Tree
from duckanon.generalize.recoding.recode import ColumnRecoding


def distinct_budget(population: float, k: int, beta: float) -> float:
    """Return how many classes a (1-beta, k)-anonymous table may have, as ``anon.distinct_budget`` does."""
    if k == 1:
        return population
    x = -math.log(beta) / (k - 1)
    return population / (k - 1) * (1 + x - math.sqrt(x * x + 2 * x))


def allocate(budget: float, distinct_counts: Sequence[int], weights: Sequence[float]) -> list[int]:
    """Share a budget out among columns, as ``anon.allocate`` does (which is for those who have no Python)."""
    counts = np.asarray(distinct_counts, dtype=np.float64)
    weight = np.asarray(weights, dtype=np.float64)
    some = weight > 0
    low, high = -np.log(weight[some]), np.log(counts[some]) - np.log(weight[some])
    corners = np.unique(np.concatenate([low, high]))
    reached = (np.clip(corners[:, None], low, high) - low).sum(axis=1)
    at = int(np.flatnonzero(reached <= math.log(budget))[-1])
    slope = int(((low <= corners[at]) & (corners[at] < high)).sum())
    level = corners[at] + ((math.log(budget) - reached[at]) / slope if slope else 0.0)
    kept = np.floor(np.clip(weight * np.exp(level), 1, counts) * (1 + 1e-12))
    turns = np.lexsort((np.arange(len(kept)), -weight / (kept * (kept + 1))))
    for most in (1.0, np.inf):
        for turn in turns:
            fits = math.floor(budget / (kept.prod() / kept[turn]) * (1 + 1e-15))
            kept[turn] = min(counts[turn], kept[turn] + most, max(kept[turn], fits))
    return [int(one) for one in kept]


def groups_within(
    coarsenings: Sequence[Coarsening], budget: float, weights: Sequence[float]
) -> tuple[list[ColumnRecoding], list[int]]:
    """Find the finest groups of every column so that the product of their numbers keeps to a budget.

    A column whose levels leave no choice near its share, such as a calendar, takes less than it may. What it leaves is
    given to the others: it is set to what it takes, and the rest is solved again, as where a column has too few values.

    Returns
    -------
    groups, allowed
        The groups of each column, and how many it was allowed.
    """
    counts = [len(one.column.rows) for one in coarsenings]
    while True:
        allowed = allocate(budget, counts, weights)
        found = [finest(one, most) for one, most in zip(coarsenings, allowed, strict=True)]
        taken = [int(groups.group_of_leaf.max()) + 1 for groups in found]
        leaving = [one for one, took in enumerate(taken) if took < min(allowed[one], counts[one])]
        if not leaving:
            return found, allowed
        # the column that leaves most is fixed first: the others may then reach a level that they had just missed
        worst = max(leaving, key=lambda one: allowed[one] / taken[one])
        counts[worst] = taken[worst]


def finest(coarsening: Coarsening, most: int) -> ColumnRecoding:
    """Return the finest groups of a column of which there are at most ``most``, NULL's counted."""
    column, structure = coarsening.column, coarsening.structure
    own = most - column.has_null
    if not column.size:
        return ColumnRecoding(np.zeros(1, np.int64), np.zeros(1))
    nodes: Ints | None = None
    level: int | None = None
    if isinstance(structure, Ordered):
        group, losses = _quantiles(structure, column.rows[: column.size], max(own, 1))
    elif isinstance(structure, Levels):
        level = next(at for at, groups in enumerate(structure.maps) if int(groups.max()) < max(own, 1))
        group, losses = structure.maps[level], structure.losses[level]
    elif isinstance(structure, Flat):
        group = _most_frequent(column.rows[: column.size], max(own, 1))
        losses = _leaf_share(group)
    else:
        nodes, group = _climbed(structure, column.size, max(own, 1))
        losses = _leaf_share(group)
    if column.has_null and own >= 1:
        group, losses = np.append(group, int(group.max()) + 1), np.append(losses, 0.0)
        nodes = None if nodes is None else np.append(nodes, -1)
    elif column.has_null:  # NULL is one with all other values: nothing is said about any of them
        group, losses = np.zeros(column.size + 1, np.int64), np.ones(1)
    return ColumnRecoding(group.astype(np.int64), losses.astype(np.float64), nodes, level)


def _quantiles(structure: Ordered, rows: Ints, own: int) -> tuple[Ints, Floats]:
    starts = quantile_buckets(rows, own).starts
    ends = np.append(starts[1:], len(rows))
    span = float(structure.positions[-1] - structure.positions[0]) or 1.0
    losses = (structure.positions[ends - 1] - structure.positions[starts]) / span
    return np.repeat(np.arange(len(starts)), ends - starts), losses


def _leaf_share(group: Ints) -> Floats:
    return (np.bincount(group) - 1) / max(len(group) - 1, 1)


def _most_frequent(rows: Ints, own: int) -> Ints:
    if own >= len(rows):
        return np.arange(len(rows))
    group = np.full(len(rows), own - 1)
    group[np.argsort(-rows, kind="stable")[: own - 1]] = np.arange(own - 1)
    return group


def _climbed(tree: Tree, size: int, own: int) -> tuple[Ints, Ints]:
    """Climb from the leaves, all of them a level at a time, until few enough nodes are left."""
    node = np.arange(size)
    while True:
        nodes, group = np.unique(node, return_inverse=True)
        if len(nodes) <= own:
            return nodes, group.reshape(-1)
        above = tree.parents[node]
        node = np.where(above < 0, node, above)
