"""A budget of distinct values: what each column may keep, and the finest groups that keep to it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from duckanon.common.arrays import Floats, Ints
from duckanon.generalize.methods import Coarsening
from duckanon.generalize.partition.fit import quantile_buckets
from duckanon.generalize.recoding.columns import Flat, Levels, Ordered, Tree
from duckanon.generalize.recoding.recode import ColumnRecoding


def distinct_budget(population: float, k: int, beta: float) -> float:
    """Return how many classes a (1-beta, k)-anonymous table may have, as ``anon.distinct_budget`` does.

    Parameters
    ----------
    population
        The number of people.
    k
        The smallest class.
    beta
        The probability, above 0 and below 1, with which a class may be smaller.

    Returns
    -------
    float
        The largest product of the columns' numbers of values (Probabilistic Anonymity, Section 3).

    Examples
    --------
    >>> round(distinct_budget(3e8, 100, 0.1))
    2443425
    """
    if k == 1:
        return population
    x = -math.log(beta) / (k - 1)
    return population / (k - 1) * (1 + x - math.sqrt(x * x + 2 * x))


def allocate(budget: float, distinct_counts: Sequence[int], weights: Sequence[float]) -> list[int]:
    """Share a budget out among columns, as ``anon.allocate`` does (which is for those who have no Python).

    Parameters
    ----------
    budget
        The largest product of the numbers of values that the columns keep, at least 1.
    distinct_counts
        How many values each column has.
    weights
        How much each column matters, at least 0; not all of them 0.

    Returns
    -------
    list of int
        How many values each column may keep: in proportion to the weights, but at least 1 and at most all.

    Examples
    --------
    >>> allocate(100, [2, 1000, 1000], [1.0, 1.0, 1.0])
    [2, 7, 7]
    """
    counts = np.asarray(distinct_counts, dtype=np.float64)
    weight = np.asarray(weights, dtype=np.float64)
    # The logarithm of what a column keeps grows with a level that all share, from 0 at `low` to its maximum at `high`.
    # The logarithm of the product is linear between these corners, so the level that uses up the budget is read off.
    matters = weight > 0
    low, high = -np.log(weight[matters]), np.log(counts[matters]) - np.log(weight[matters])
    corners = np.unique(np.concatenate([low, high]))
    reached = (np.clip(corners[:, None], low, high) - low).sum(axis=1)
    corner = int(np.flatnonzero(reached <= math.log(budget))[-1])
    slope = int(((low <= corners[corner]) & (corners[corner] < high)).sum())
    level = corners[corner] + ((math.log(budget) - reached[corner]) / slope if slope else 0.0)
    # exp and log may leave a whole number a few bits short: 1e-12 is far more than that, and far less than a value.
    kept = np.floor(np.clip(weight * np.exp(level), 1, counts) * (1 + 1e-12))
    # What rounding down left over goes to the columns that gain most by one more value; then to whoever can use more.
    turns = np.lexsort((np.arange(len(kept)), -weight / (kept * (kept + 1))))
    for most in (1.0, np.inf):
        for turn in turns:
            fits = math.floor(budget / (kept.prod() / kept[turn]) * (1 + 1e-15))
            kept[turn] = min(counts[turn], kept[turn] + most, max(kept[turn], fits))
    return [int(count) for count in kept]


def groups_within(
    coarsenings: Sequence[Coarsening], budget: float, weights: Sequence[float]
) -> tuple[list[ColumnRecoding], list[int]]:
    """Find the finest groups of every column so that the product of their numbers keeps to a budget.

    A column whose levels leave no choice near its share, such as a calendar, takes less than it may. What it leaves is
    given to the others: it is set to what it takes, and the rest is solved again, as where a column has too few values.

    Parameters
    ----------
    coarsenings
        The columns.
    budget, weights
        As in `allocate`.

    Returns
    -------
    groups, allowed
        The groups of each column, and how many it was allowed.
    """
    counts = [len(coarsening.column.rows) for coarsening in coarsenings]
    while True:
        allowed = allocate(budget, counts, weights)
        groups = [finest(coarsening, most) for coarsening, most in zip(coarsenings, allowed, strict=True)]
        taken = [int(column_groups.group_of_leaf.max()) + 1 for column_groups in groups]
        leaving = [column for column, took in enumerate(taken) if took < min(allowed[column], counts[column])]
        if not leaving:
            return groups, allowed
        # the column that leaves most is fixed first: the others may then reach a level that they had just missed
        worst = max(leaving, key=lambda column: allowed[column] / taken[column])
        counts[worst] = taken[worst]


def finest(coarsening: Coarsening, most: int) -> ColumnRecoding:
    """Return the finest groups of a column of which there are at most ``most``, NULL's counted."""
    column = coarsening.column
    if not column.size:
        return ColumnRecoding(np.zeros(1, np.int64), np.zeros(1))
    most_known = most - column.has_null
    groups = _finest_known(coarsening, max(most_known, 1))
    if not column.has_null:
        return groups
    if most_known < 1:  # NULL is one with all other values: nothing is said about any of them
        return replace(groups, group_of_leaf=np.zeros(column.size + 1, np.int64), losses=np.ones(1))
    return replace(
        groups,
        group_of_leaf=np.append(groups.group_of_leaf, len(groups.losses)),
        losses=np.append(groups.losses, 0.0),
        nodes=None if groups.nodes is None else np.append(groups.nodes, -1),
    )


def _finest_known(coarsening: Coarsening, most: int) -> ColumnRecoding:
    """Return the finest groups of the values that are not NULL."""
    column, structure = coarsening.column, coarsening.structure
    if isinstance(structure, Ordered):
        return _quantiles(structure, column.known_rows, most)
    if isinstance(structure, Levels):
        level = next(level for level, groups in enumerate(structure.maps) if int(groups.max()) < most)
        return ColumnRecoding(structure.maps[level].astype(np.int64), structure.losses[level], level=level)
    if isinstance(structure, Flat):
        group_of_leaf = _most_frequent(column.known_rows, most)
        return ColumnRecoding(group_of_leaf, _leaf_share(group_of_leaf))
    nodes, group_of_leaf = _climbed(structure, column.size, most)
    return ColumnRecoding(group_of_leaf, _leaf_share(group_of_leaf), nodes)


def _quantiles(structure: Ordered, rows: Ints, most: int) -> ColumnRecoding:
    starts = quantile_buckets(rows, most).starts
    ends = np.append(starts[1:], len(rows))
    span = float(structure.positions[-1] - structure.positions[0]) or 1.0
    losses = (structure.positions[ends - 1] - structure.positions[starts]) / span
    return ColumnRecoding(np.repeat(np.arange(len(starts)), ends - starts), losses)


def _leaf_share(group_of_leaf: Ints) -> Floats:
    """Return the loss of each group of a tree or a flat column: the share of the other leaves that are in it too."""
    return (np.bincount(group_of_leaf) - 1) / max(len(group_of_leaf) - 1, 1)


def _most_frequent(rows: Ints, most: int) -> Ints:
    """Keep the most frequent leaves, and merge all others into the last group."""
    if most >= len(rows):
        return np.arange(len(rows))
    group_of_leaf = np.full(len(rows), most - 1)
    group_of_leaf[np.argsort(-rows, kind="stable")[: most - 1]] = np.arange(most - 1)
    return group_of_leaf


def _climbed(tree: Tree, size: int, most: int) -> tuple[Ints, Ints]:
    """Climb from the leaves, all of them a level at a time, until few enough nodes are left."""
    node_of_leaf = np.arange(size)
    while True:
        nodes, group_of_leaf = np.unique(node_of_leaf, return_inverse=True)
        if len(nodes) <= most:
            return nodes, group_of_leaf.reshape(-1)
        above = tree.parents[node_of_leaf]
        node_of_leaf = np.where(above < 0, node_of_leaf, above)
