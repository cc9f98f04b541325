"""The leaves of people and of new rows in a tree on the columns drawn so far."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from duckanon._core.common.arrays import Floats, Ints
from duckanon._methods.synthesize.leaf_draws import leaf_shares
from duckanon._methods.synthesize.predictors import Predictors
from duckanon._methods.synthesize.sequential_trees import (
    Response,
    Tree,
    counted,
    grow_tree,
    learning_rows,
    person_weights,
    summed_up,
)


@dataclass
class LeafLearner:
    """Grows trees whose leaves have at least so many people.

    Attributes:
        people: Whose each row is that is learnt from; None where every row is another person.
        leaf: The least number of people in a leaf.
        random: Where chance comes from.
        predictors: The columns drawn so far.
        root: The shares of choices in the whole table, where these rows are a part of it.
    """

    people: Ints | None
    leaf: int
    random: np.random.Generator
    predictors: Predictors = field(default_factory=Predictors)
    root: Floats | None = None

    def __post_init__(self) -> None:
        """Weigh the rows."""
        self.weights = person_weights(self.people)

    def shares(self, leaves: Ints, codes: Ints, choices: int, rows: Ints, parents: Ints) -> Floats:
        """Return the shares of choices at all nodes of a tree."""
        shape = (len(parents), choices)
        held = summed_up(counted(leaves, codes, shape, None), parents)
        if self.weights is None:
            return leaf_shares(held, held, parents, self.root)
        people = summed_up(counted(leaves, codes, shape, self.weights[rows]), parents)
        return leaf_shares(people, held, parents, self.root)

    def leaves(self, rows: Ints, new: Ints, response: Response, summary: Floats) -> tuple[Tree | None, Ints, Ints]:
        """Grow a tree on what is drawn; return the leaves of people and of new rows, one leaf where there is no tree.

        Args:
            rows: The people it is learnt from, by their place.
            new: The new rows.
            response, summary: What is explained, by person, and one number that orders choices.
        """
        people = None if self.people is None else self.people[rows]
        weights = None if self.weights is None else self.weights[rows]
        total = len(rows) if weights is None else float(weights.sum())
        if not self.predictors.columns or total < 2 * self.leaf or not len(new):
            return None, np.zeros(len(rows), np.int64), np.zeros(len(new), np.int64)
        orders = self.predictors.orders(summary, rows)
        learnt = learning_rows(len(rows), people, self.random)
        features = self.predictors.matrix(orders, rows[learnt], new=False)
        weights = None if weights is None else weights[learnt]
        tree = grow_tree(features, response.of(learnt), self.leaf, weights, self.random)
        leaves = tree.leaves(features)
        if len(learnt) < len(rows):
            leaves = self.predictors.leaves(tree, orders, rows, new=False)
        return tree, leaves, self.predictors.leaves(tree, orders, new, new=True)
