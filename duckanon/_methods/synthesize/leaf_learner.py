"""The leaves of people and of new rows in a tree on the columns drawn so far."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from duckanon._core.common.arrays import Floats, Ints
from duckanon._methods.synthesize.cut_tree import Tree
from duckanon._methods.synthesize.leaf_draws import leaf_shares
from duckanon._methods.synthesize.predictors import Predictors
from duckanon._methods.synthesize.sequential_trees import Response, grow_tree, learning_rows
from duckanon._methods.synthesize.weighted_counts import counted, person_weights, summed_up


class Grown(NamedTuple):
    """A tree, the orders of choices that it was grown with, and the leaves of the people; no tree: all are alike."""

    tree: Tree | None
    orders: list[Floats]
    leaves: Ints


@dataclass
class LeafLearner:
    """Grows trees whose leaves have at least so many people.

    Attributes:
        people: Whose each row is that is learnt from; None where every row is another person.
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
    grown: dict[tuple[str, int], Grown] = field(default_factory=dict)
    ranks: dict[int, Floats] = field(default_factory=dict)
    factors: dict[int, Floats] = field(default_factory=dict)
    predictors: Predictors = field(default_factory=Predictors)
    root: Floats | None = None

    def __post_init__(self) -> None:
        """Weigh the rows."""
        self.weights = person_weights(self.people)
        self._shares: dict[tuple[str, int], Floats] = {}

    def shares(self, key: tuple[str, int], codes: Ints, choices: int, rows: Ints) -> Floats:
        """Return the shares of choices at all nodes of a tree that was grown."""
        if key in self._shares:
            return self._shares[key]
        tree, _, leaves = self.grown[key]
        parents = np.zeros(1, np.int64) if tree is None else tree.parents
        shape = (len(parents), choices)
        people = held = summed_up(counted(leaves, codes, shape, None), parents)
        if self.weights is not None:
            people = summed_up(counted(leaves, codes, shape, self.weights[rows]), parents)
        self._shares[key] = leaf_shares(people, held, parents, self.root)
        return self._shares[key]

    def forget(self, index: int) -> None:
        """Leave out what is known of a column that is drawn, and will not be drawn again."""
        self.ranks.pop(index, None)
        for key in (("choice", index), ("number", index)):
            self.grown.pop(key, None)
            self._shares.pop(key, None)

    def again(self) -> LeafLearner:
        """Return a learner of the same trees, which are grown already, for other new rows."""
        other = copy(self)
        other.predictors = Predictors()
        return other

    def leaves(
        self, key: tuple[str, int], rows: Ints, new: Ints, response: Response, summary: Floats
    ) -> tuple[Tree | None, Ints, Ints]:
        """Grow a tree on what is drawn; return the leaves of people and of new rows, one leaf where there is no tree.

        Args:
            key: Of the tree: it is grown once, for all new rows that are drawn from it.
            rows: The people it is learnt from, by their place.
            new: The new rows.
            response, summary: What is explained, by person, and one number that orders choices.
        """
        if key not in self.grown:
            self.grown[key] = self._grown(rows, response, summary)
        tree, orders, leaves = self.grown[key]
        if tree is None:
            return None, leaves, np.zeros(len(new), np.int64)
        return tree, leaves, self.predictors.leaves(tree, orders, new, new=True)

    def _grown(self, rows: Ints, response: Response, summary: Floats) -> Grown:
        people = None if self.people is None else self.people[rows]
        weights = None if self.weights is None else self.weights[rows]
        total = len(rows) if weights is None else float(weights.sum())
        if not self.predictors.columns or total < 2 * self.leaf:
            return Grown(None, [], np.zeros(len(rows), np.int64))
        orders = self.predictors.orders(summary, rows)
        learnt = learning_rows(len(rows), people, self.random)
        features = self.predictors.matrix(orders, rows[learnt], new=False)
        weights = None if weights is None else weights[learnt]
        tree = grow_tree(features, response.of(learnt), self.leaf, weights, self.random)
        leaves = tree.leaves(features)
        if len(learnt) < len(rows):
            leaves = self.predictors.leaves(tree, orders, rows, new=False)
        return Grown(tree, orders, leaves)
