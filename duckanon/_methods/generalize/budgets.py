"""A budget of distinct values: what each column may keep, and the finest recoding that keeps to it."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from duckanon._core.common.arrays import Ints
from duckanon._methods.generalize.methods import Coarsening
from duckanon._methods.generalize.partition.fit import quantile_buckets
from duckanon._methods.generalize.recoding.column_moves import Flat, Levels, Ordered, State, Tree


def distinct_budget(population: float, k: int, beta: float) -> float:
    """Return how many classes a (1-beta, k)-anonymous table may have, as ``anon.distinct_budget`` does.

    It is the largest product of the columns' numbers of values (Probabilistic Anonymity, Section 3). ``beta`` is the
    probability, above 0 and below 1, with which a class may have fewer than k people.

    Examples:
        >>> round(distinct_budget(3e8, 100, 0.1))
        2443425
    """
    x = -math.log(beta) / (k - 1)
    return population / (k - 1) * (1 + x - math.sqrt(x * x + 2 * x))


def allocate(budget: float, distinct_counts: Sequence[int], weights: Sequence[float]) -> list[int]:
    """Share a budget out among columns, as ``anon.allocate`` does (which is for those who have no Python).

    The budget is the largest product of the numbers of values that the columns keep, at least 1. Each column keeps
    values in proportion to its weight, but at least 1 and at most all; weights are at least 0, not all of them 0.

    Examples:
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
    shares = np.clip(weight * np.exp(level), 1, counts)
    kept = np.floor(shares * (1 + 1e-12))
    if kept.prod() > budget:
        kept = np.maximum(np.floor(shares * (1 - 1e-12)), 1)
    # What rounding down left over goes to the columns that gain most by one more value; then to whoever can use more.
    turns = np.lexsort((np.arange(len(kept)), -weight / (kept * (kept + 1))))
    for most in (1.0, np.inf):
        for turn in turns:
            others = kept.prod() / kept[turn]
            fits = math.floor(budget / others * (1 + 1e-15))
            fits -= fits * others > budget
            kept[turn] = min(counts[turn], kept[turn] + most, max(kept[turn], fits))
    return [int(count) for count in kept]


def states_within(
    coarsenings: Sequence[Coarsening], budget: float, weights: Sequence[float]
) -> tuple[list[State], list[int]]:
    """Find the finest recoding of every column so that the product of their numbers of groups keeps to a budget.

    A column whose levels leave no choice near its share, such as a calendar, takes less than it may. What it leaves is
    given to the others: it is set to what it takes, and the rest is solved again, as where a column has too few values.
    Return the recodings, as `recode` takes them to start from, and how many groups each column was allowed.
    """
    counts = [len(coarsening.column.rows) for coarsening in coarsenings]
    while True:
        allowed = allocate(budget, counts, weights)
        found = [finest(coarsening, most) for coarsening, most in zip(coarsenings, allowed, strict=True)]
        leaving = [column for column, (_, took) in enumerate(found) if took < min(allowed[column], counts[column])]
        if not leaving:
            return [state for state, _ in found], allowed
        # the column that leaves most is fixed first: the others may then reach a level that they had just missed
        worst = max(leaving, key=lambda column: allowed[column] / found[column][1])
        counts[worst] = found[worst][1]


def finest(coarsening: Coarsening, most: int) -> tuple[State, int]:
    """Return the finest recoding of a column with at most ``most`` groups, NULL's counted, and how many it has."""
    column = coarsening.column
    if not column.size:
        return (), 1
    if most - column.has_null < 1:  # NULL is one with all other values: nothing is said about any of them
        return None, 1
    state, groups = _finest_known(coarsening, max(most - column.has_null, 1))
    return state, groups + column.has_null


def _finest_known(coarsening: Coarsening, most: int) -> tuple[tuple[int, ...], int]:
    """Return the finest recoding of the values that are not NULL, and its groups."""
    column, structure = coarsening.column, coarsening.structure
    if isinstance(structure, Ordered):
        starts = tuple(quantile_buckets(column.known_rows, most).starts.tolist())
        return starts, len(starts)
    if isinstance(structure, Levels):
        level = next(level for level, groups in enumerate(structure.maps) if int(groups.max()) < most)
        return (level,), int(structure.maps[level].max()) + 1
    if isinstance(structure, Flat):
        if most >= column.size:
            return (), column.size
        merged = np.argsort(-column.known_rows, kind="stable")[most - 1 :]
        return tuple(np.sort(merged).tolist()), most
    nodes = _climbed(structure, column.size, most)
    return tuple(nodes.tolist()), len(nodes)


def _climbed(tree: Tree, size: int, most: int) -> Ints:
    """Climb from the leaves, all of them a level at a time, until few enough nodes are left."""
    node_of_leaf = np.arange(size)
    levels = iter([] if tree.levels is None else np.unique(tree.levels[size:]).tolist())
    while len(nodes := np.unique(node_of_leaf)) > most:
        above = tree.parents[node_of_leaf]
        can_climb = above >= 0
        if tree.levels is not None:
            can_climb &= tree.levels[above] <= next(levels)
        node_of_leaf = np.where(can_climb, above, node_of_leaf)
    return nodes
