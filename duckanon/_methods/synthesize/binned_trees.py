"""Regression trees of many people, whose predictors are cut into 250 bins: they grow in a third of the time."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor

from duckanon._core.common.arrays import Floats, Ints, Reals

_BINS = 250  # of ranks; with those below 0 and at 1, no more than the 255 that the boosting has


class BinnedTree(NamedTuple):
    """A tree, by the node below each node on either side, -1 for leaves; nodes come after those above them."""

    fitted: Any
    left: Ints
    right: Ints

    def apply(self, features: Reals) -> Ints:
        """Return the leaf of each row."""
        nodes: Floats = self.fitted.predict(_bin_ranks(features)) - np.ravel(self.fitted._baseline_prediction)[0]
        return np.rint(nodes).astype(np.int64)


def grow_binned_tree(features: Reals, numbers: Floats, leaf: int) -> BinnedTree:
    """Grow the first tree of a boosting, whose splits are those of least squares, with leaves of `leaf` rows at least.

    What it predicts is replaced by the number of the leaf.
    """
    boosting = HistGradientBoostingRegressor(
        max_iter=1, learning_rate=1.0, max_leaf_nodes=None, min_samples_leaf=leaf, early_stopping=False
    )
    boosting.fit(_bin_ranks(features), numbers)
    nodes = boosting._predictors[0][0].nodes
    nodes["value"] = np.arange(len(nodes))
    sides = (np.where(nodes["is_leaf"], -1, nodes[side].astype(np.int64)) for side in ("left", "right"))
    return BinnedTree(boosting, *sides)


def _bin_ranks(features: Reals) -> Reals:
    """Cut ranks from 0 to 1 into bins; whole numbers, the places of choices, stay apart."""
    return np.floor(features * _BINS)
