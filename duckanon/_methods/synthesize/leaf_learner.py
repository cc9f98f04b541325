"""Decision trees whose leaves hold at least so many people, and the leaves of people and of new rows.

A tree is grown on the columns drawn before, from at most 30,000 people, and cut back where a split explains no more
than chance (three units of deviance for each parameter: between Akaike's two and BIC's ten). Of more than 8,000 rows a
regression tree is grown in bins, in a third of the time (`binned_trees`). A tree is kept by column, so that rows drawn
in several steps come from the same leaves.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from duckanon._core.common.arrays import Floats, Ints, Reals, sort_distinct
from duckanon._core.common.imports import import_function
from duckanon._methods.synthesize.coded_table import count_cells, sum_up_tree, weigh_rows
from duckanon._methods.synthesize.leaf_draws import CutTree, Predictors, find_leaf_shares

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


def draw_learning_rows(rows: int, people: Ints | None, random: np.random.Generator) -> Ints:
    """Draw the rows of at most `MOST_LEARNT_FROM` people."""
    if people is None:
        if rows <= MOST_LEARNT_FROM:
            return np.arange(rows)
        return np.sort(random.choice(rows, MOST_LEARNT_FROM, replace=False))
    persons = sort_distinct(people)
    if len(persons) <= MOST_LEARNT_FROM:
        return np.arange(rows)
    return np.flatnonzero(np.isin(people, random.choice(persons, MOST_LEARNT_FROM, replace=False)))


def grow_tree(
    features: Reals, response: Response, leaf: int, weights: Floats | None, random: np.random.Generator
) -> CutTree:
    """Grow a tree whose leaves have at least `leaf` people, and cut it back.

    Args:
        features: Rows by predictors, float32.
        response: What is explained.
        leaf: The least weight of a leaf.
        weights: Those of `weigh_rows`.
        random: Breaks ties between splits.
    """
    tree, left, right = _fit_tree(features, response, leaf, weights, int(random.integers(2**31)))
    parents = np.zeros(len(left), np.int64)
    inner = np.flatnonzero(left >= 0)
    parents[left[inner]] = parents[right[inner]] = inner
    leaves = tree.apply(features)
    saved = _measure_deviances(leaves, response, weights, np.asarray(parents))
    return CutTree(tree, _cut_back(left, right, *saved), parents)


def _fit_tree(
    features: Reals, response: Response, leaf: int, weights: Floats | None, seed: int
) -> tuple[Any, Ints, Ints]:
    """Return a tree as it has grown, and the nodes below each node, -1 for leaves."""
    is_plain = not response.choices and response.numbers.ndim == 1
    if is_plain and weights is None and len(features) >= FEWEST_BINNED:
        binned_tree = import_function("duckanon._methods.synthesize.binned_trees:grow_binned_tree")
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


def _measure_deviances(
    leaves: Ints, response: Response, weights: Floats | None, parents: Ints
) -> tuple[Floats, Floats]:
    """Return the deviance of every node as if it were a leaf, and its parameters."""
    nodes = len(parents)
    if response.choices:
        counts = sum_up_tree(count_cells(leaves, response.codes, (nodes, response.choices), weights), parents)
        totals = counts.sum(axis=1, keepdims=True)
        logs = np.log(np.where(counts > 0, counts, 1.0) / np.maximum(totals, 1e-12))
        return -2 * (counts * logs).sum(axis=1, where=counts > 0), np.maximum((counts > 0).sum(axis=1) - 1.0, 1.0)
    deviance, parameters = np.zeros(nodes), np.zeros(nodes)
    numbers = response.numbers.reshape(len(leaves), -1)
    row_weights = np.ones(len(leaves)) if weights is None else weights
    for values in numbers.T.astype(np.float64):
        sums: Floats = np.stack([np.bincount(leaves, row_weights * values**power, nodes) for power in range(3)], axis=1)
        count, first, second = sum_up_tree(sums, parents).T
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


class GrownTree(NamedTuple):
    """A tree, the orders of choices that it was grown with, and the leaves of the people; no tree: all are alike."""

    tree: CutTree | None
    orders: list[Floats]
    leaves: Ints


@dataclass
class LeafLearner:
    """Grows trees whose leaves have at least so many people.

    Attributes:
        people: The person of each row that trees learn from; None where every row is another person.
        leaf: The least number of people in a leaf.
        random: Where chance comes from.
        grown: The trees that were grown.
        ranks: The ranks of people's numbers, by column.
        factors: Those of transitions, by column.
        predictors: The columns drawn so far.
        root: The shares of choices in the whole table, where these rows are a part of it.
    """

    people: Ints | None
    leaf: int
    random: np.random.Generator
    trees: dict[tuple[str, int], GrownTree] = field(default_factory=dict)
    ranks: dict[int, Floats] = field(default_factory=dict)
    factors: dict[int, Floats] = field(default_factory=dict)
    predictors: Predictors = field(default_factory=Predictors)
    root: Floats | None = None

    def __post_init__(self) -> None:
        """Weigh the rows."""
        self.weights = weigh_rows(self.people)
        self._shares: dict[tuple[str, int], Floats] = {}

    def shares(self, key: tuple[str, int], codes: Ints, choices: int, rows: Ints) -> Floats:
        """Return the shares of choices at all nodes of a tree that was grown."""
        if key in self._shares:
            return self._shares[key]
        tree, _, leaves = self.trees[key]
        parents = np.zeros(1, np.int64) if tree is None else tree.parents
        shape = (len(parents), choices)
        people = held = sum_up_tree(count_cells(leaves, codes, shape, None), parents)
        if self.weights is not None:
            people = sum_up_tree(count_cells(leaves, codes, shape, self.weights[rows]), parents)
        self._shares[key] = find_leaf_shares(people, held, parents, self.root)
        return self._shares[key]

    def forget(self, index: int) -> None:
        """Leave out what is known of a column that is drawn, and will not be drawn again."""
        self.ranks.pop(index, None)
        for key in (("choice", index), ("number", index)):
            self.trees.pop(key, None)
            self._shares.pop(key, None)

    def again(self) -> LeafLearner:
        """Return a learner of the same trees, which are grown already, for other new rows."""
        other = copy(self)
        other.predictors = Predictors()
        return other

    def leaves(
        self, key: tuple[str, int], rows: Ints, new: Ints, response: Response, summary: Floats
    ) -> tuple[CutTree | None, Ints, Ints]:
        """Grow a tree on what is drawn; return the leaves of people and of new rows, one leaf where there is no tree.

        Args:
            key: Of the tree: it is grown once, for all new rows that are drawn from it.
            rows: The people it is learnt from, by their place.
            new: The new rows.
            response, summary: What is explained, by person, and one number that orders choices.
        """
        if key not in self.trees:
            self.trees[key] = self._grow(rows, response, summary)
        tree, orders, leaves = self.trees[key]
        if tree is None:
            return None, leaves, np.zeros(len(new), np.int64)
        return tree, leaves, self.predictors.leaves(tree, orders, new, new=True)

    def _grow(self, rows: Ints, response: Response, summary: Floats) -> GrownTree:
        people = None if self.people is None else self.people[rows]
        weights = None if self.weights is None else self.weights[rows]
        total = len(rows) if weights is None else float(weights.sum())
        if not self.predictors.columns or total < 2 * self.leaf:
            return GrownTree(None, [], np.zeros(len(rows), np.int64))
        orders = self.predictors.orders(summary, rows)
        learnt = draw_learning_rows(len(rows), people, self.random)
        features = self.predictors.matrix(orders, rows[learnt], new=False)
        weights = None if weights is None else weights[learnt]
        tree = grow_tree(features, response.of(learnt), self.leaf, weights, self.random)
        leaves = tree.leaves(features)
        if len(learnt) < len(rows):
            leaves = self.predictors.leaves(tree, orders, rows, new=False)
        return GrownTree(tree, orders, leaves)
