"""Cells of new rows: those of one leaf to which rules allow the same choices."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from duckanon._core.common.arrays import Bools, Ints

_MOST = 4_000_000  # cells times choices: where rules divide leaves further, rows that break one are replaced in the end


def allowed_cells(leaves: Ints, has_choice: Bools, limits: Sequence[tuple[Ints, Bools]]) -> tuple[Ints, Ints, Bools]:
    """Divide the rows of each leaf by the choices that rules allow, as far as there is memory for them.

    Args:
        leaves: The leaf of each row, a node of the tree.
        has_choice: Which choices each node has: rules about others divide no leaf.
        limits: For each rule the class of each row, -1 for none, and the choices that each class may have.

    Returns:
        The node of each cell, the cell of each row, and the choices that each cell may have.
    """
    nodes, cells = np.unique(leaves, return_inverse=True)
    allowed = np.ones((len(nodes), has_choice.shape[1]), np.bool_)
    for classes, table in limits:
        tables, kind = np.unique(np.vstack([table, np.ones_like(table[:1])]), axis=0, return_inverse=True)
        kinds = kind.ravel()[classes]  # that of class -1 is the last, which may have any
        pairs, places = np.unique(cells * len(tables) + kinds, return_inverse=True)
        if len(pairs) * has_choice.shape[1] > _MOST:
            continue
        cells = places
        before, kinds = pairs // len(tables), pairs % len(tables)
        nodes, allowed = nodes[before], allowed[before] & tables[kinds]
        some = allowed & has_choice[nodes]
        some = np.where(some.any(axis=1, keepdims=True), some, allowed)
        keys = np.column_stack([nodes, np.packbits(some, axis=1)])
        _, first, merged = np.unique(keys, axis=0, return_index=True, return_inverse=True)
        nodes, allowed, cells = nodes[first], some[first], merged.ravel()[cells]
    return nodes, cells, allowed
