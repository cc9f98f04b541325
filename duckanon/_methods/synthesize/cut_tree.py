"""A decision tree that is cut back, whatever grew it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from duckanon._core.common.arrays import Ints, Reals


class Tree(NamedTuple):
    """A tree that is cut back.

    Attributes:
        fitted: The tree as it was grown, with `apply` (scikit-learn's, or a `BinnedTree`).
        kept: For each of its nodes the leaf of the tree that is left of it: the node itself or one above.
        parents: The node above each node; the root is its own.
    """

    fitted: Any
    kept: Ints
    parents: Ints

    def leaves(self, features: Reals) -> Ints:
        """Return the leaf of each row."""
        return np.asarray(self.kept[self.fitted.apply(features)])
