"""Decision trees whose leaves hold at least so many people, cut back where a split explains no more than chance."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from duckanon._core.common.arrays import Floats, Ints, Reals, distinct
from duckanon._core.common.imports import imported
from duckanon._methods.synthesize.cut_tree import Tree
from duckanon._methods.synthesize.weighted_counts import counted, summed_up

MOST_LEARNT_FROM = 30_000
"""People from whom the splits of a tree are learnt: more hardly change them. Its leaves hold everybody."""
FEWEST_BINNED = 8_000
"""Rows from which on bins have more people than a usual leaf."""
_SAVED = 3.0  # deviance that a split must save for each parameter: Akaike's criterion asks for 2, BIC for 10
_LEAST_VARIANCE = 2e-5  # of ranks from 0 to 1, or else a few equal numbers would pay for any split
_ALMOST = 1e-6  # weights of people are fractions, whose sums are not exact


class Response(NamedTuple):
    """The column that a tree explains.

    Attributes:
        codes: Its choices, where a classifier explains them.
        choices: How many there are; 0 where a regression explains numbers.
        numbers: The numbers, or coordinates in several columns.
    """

    codes: Ints
    choices: int
    numbers: Reals

    def of(self, rows: Ints) -> Response:
        """Return the response of some rows."""
        return Response(self.codes[rows], self.choices, self.numbers[rows])


def learning_rows(rows: int, people: Ints | None, random: np.random.Generator) -> Ints:
    """Draw the rows of at most `MOST_LEARNT_FROM` people."""
    if people is None:
        if rows <= MOST_LEARNT_FROM:
            return np.arange(rows)
        return np.sort(random.choice(rows, MOST_LEARNT_FROM, replace=False))
    persons = distinct(people)
    if len(persons) <= MOST_LEARNT_FROM:
        return np.arange(rows)
    return np.flatnonzero(np.isin(people, random.choice(persons, MOST_LEARNT_FROM, replace=False)))


def grow_tree(
    features: Reals, response: Response, leaf: int, weights: Floats | None, random: np.random.Generator
) -> Tree:
    """Grow a tree whose leaves have at least `leaf` people, and cut it back.

    Args:
        features: Rows by predictors, float32.
        response: What is explained.
        leaf: The least weight of a leaf.
        weights: Those of `person_weights`.
        random: Breaks ties between splits.
    """
    made, left, right = _fitted(features, response, leaf, weights, int(random.integers(2**31)))
    parents = np.zeros(len(left), np.int64)
    inner = np.flatnonzero(left >= 0)
    parents[left[inner]] = parents[right[inner]] = inner
    leaves = made.apply(features)
    saved = _deviances(leaves, response, weights, np.asarray(parents))
    return Tree(made, _cut_back(left, right, *saved), parents)


def _fitted(
    features: Reals, response: Response, leaf: int, weights: Floats | None, seed: int
) -> tuple[Any, Ints, Ints]:
    """Return a tree as it has grown, and the nodes below each node, -1 for leaves."""
    is_plain = not response.choices and response.numbers.ndim == 1
    if is_plain and weights is None and len(features) >= FEWEST_BINNED:
        binned_tree = imported("duckanon._methods.synthesize.binned_trees:binned_tree")
        binned = binned_tree(features, np.asarray(response.numbers, np.float64), leaf)
        return binned, binned.left, binned.right
    options: dict[str, Any] = {"random_state": seed}
    if weights is None:
        options["min_samples_leaf"] = leaf
    else:
        options["min_weight_fraction_leaf"] = min(0.5, (leaf - _ALMOST) / max(float(weights.sum()), leaf))
    grown = (DecisionTreeClassifier if response.choices else DecisionTreeRegressor)(**options)
    grown.fit(features, response.codes if response.choices else response.numbers, sample_weight=weights)
    return grown, grown.tree_.children_left, grown.tree_.children_right


def _deviances(leaves: Ints, response: Response, weights: Floats | None, parents: Ints) -> tuple[Floats, Floats]:
    """Return the deviance of every node as if it were a leaf, and its parameters."""
    nodes = len(parents)
    if response.choices:
        counts = summed_up(counted(leaves, response.codes, (nodes, response.choices), weights), parents)
        totals = counts.sum(axis=1, keepdims=True)
        logs = np.log(np.where(counts > 0, counts, 1.0) / np.maximum(totals, 1e-12))
        return -2 * (counts * logs).sum(axis=1, where=counts > 0), np.maximum((counts > 0).sum(axis=1) - 1.0, 1.0)
    deviance, parameters = np.zeros(nodes), np.zeros(nodes)
    numbers = response.numbers.reshape(len(leaves), -1)
    whose = np.ones(len(leaves)) if weights is None else weights
    for values in numbers.T.astype(np.float64):
        sums: Floats = np.stack([np.bincount(leaves, whose * values**power, nodes) for power in range(3)], axis=1)
        count, first, second = summed_up(sums, parents).T
        count = np.maximum(count, 1e-12)
        least = _LEAST_VARIANCE if numbers.shape[1] == 1 else _LEAST_VARIANCE * max(float(values.var()), 1e-12)
        deviance += count * np.log(np.maximum(second / count - (first / count) ** 2, 0.0) + least)
        parameters += 2.0
    return deviance, parameters


def _cut_back(left: Ints, right: Ints, deviances: Floats, parameters: Floats) -> Ints:
    """Return the node that stands for each node, where subtrees that save too little deviance are one leaf."""
    best = deviances.copy()
    is_leaf = np.ones(len(left), np.bool_)
    for node in range(len(left) - 1, -1, -1):
        if left[node] >= 0:
            below = best[left[node]] + best[right[node]] + _SAVED * parameters[node]
            if below < deviances[node]:
                best[node], is_leaf[node] = below, False
    kept: Ints = np.arange(len(left))
    for node in range(len(left)):
        if left[node] >= 0 and (is_leaf[node] or kept[node] != node):
            kept[left[node]] = kept[right[node]] = kept[node]
    return kept
