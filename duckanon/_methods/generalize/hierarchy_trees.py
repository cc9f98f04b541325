"""Hierarchies of values as trees for the search."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from duckanon._core.common.arrays import Array, Floats, Ints
from duckanon._methods.generalize.recoding.column_moves import Tree


def tree_of(levels: Sequence[Array]) -> tuple[Tree, Ints, Ints]:
    """Make a tree of the keys that the leaves have on each level, finest first; a root is put on top.

    Return it, and for each node one of its leaves and its level.

    Examples:
        >>> tree, _, node_level = tree_of([np.array(["02139", "02140", "10001"]), np.array(["021", "021", "100"])])
        >>> tree.parents.tolist(), node_level.tolist()
        ([3, 3, 4, 5, 5, -1], [0, 0, 0, 1, 1, 2])
    """
    size = len(levels[0])
    owners, node_leaf, node_level, offset = [np.arange(size)], [np.arange(size)], [np.zeros(size, np.int64)], size
    for level, keys in enumerate(levels[1:], start=1):
        _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
        owners.append(offset + inverse.reshape(-1))
        node_leaf.append(first)
        node_level.append(np.full(len(first), level))
        offset += len(first)
    owners.append(np.full(size, offset))
    parents = np.full(offset + 1, -1, np.int64)
    for below, above in itertools.pairwise(owners):
        parents[below] = above
    return (
        Tree(parents),
        np.concatenate([*node_leaf, [0]]).astype(np.int64),
        np.concatenate([*node_level, [len(levels)]]).astype(np.int64),
    )


def prefix_tree(texts: Sequence[str]) -> tuple[Tree, Ints, Ints]:
    """Make the tree of the prefixes that texts share: a node for each prefix after which they go on differently.

    A node for every length would be millions for long codes, nearly all of them with one text below. Texts are
    different and in ascending order. Return the tree, and for each node one of its leaves and its level: how many
    characters of the longest text it lacks.

    Examples:
        >>> tree, node_leaf, node_level = prefix_tree(["02139", "02140", "10001"])
        >>> tree.parents.tolist()
        [3, 3, 4, 4, -1]
        >>> node_level.tolist()
        [0, 0, 0, 2, 5]
    """
    size, length = len(texts), max(map(len, texts))
    parents, node_leaf, node_level = [-1] * size, list(range(size)), [0] * size
    open_nodes: list[tuple[int, list[int]]] = []  # prefixes that the next text may share: their lengths, and who does
    for leaf, shared in enumerate([*_shared_lengths(texts).tolist(), -1]):
        below = leaf
        while open_nodes and open_nodes[-1][0] > shared:
            characters, children = open_nodes.pop()
            node = len(parents)
            for child in [*children, below]:
                parents[child] = node
            parents.append(-1)
            node_leaf.append(node_leaf[below])
            node_level.append(length - characters)
            below = node
        if open_nodes and open_nodes[-1][0] == shared:
            open_nodes[-1][1].append(below)
        elif shared >= 0:
            open_nodes.append((shared, [below]))
    if node_level[-1] < length or len(parents) == 1:  # all texts share a prefix: the root has one child
        parents[-1] = len(parents)
        parents, node_leaf, node_level = [*parents, -1], [*node_leaf, 0], [*node_level, length]
    levels = np.array(node_level, np.int64)
    return Tree(np.array(parents, np.int64), levels=levels), np.array(node_leaf, np.int64), levels


_PIECE = 32  # so many characters of texts are compared at a time


def _shared_lengths(texts: Sequence[str]) -> Ints:
    """Return how many characters each text but the last shares with the next."""
    lengths = np.array([len(text) for text in texts], np.int64)
    shortest = np.minimum(lengths[:-1], lengths[1:])
    shared = np.zeros(len(texts) - 1, np.int64)
    alike, start = np.arange(len(shared)), 0  # pairs that are the same so far
    while len(alike):
        own, following = (
            np.array([texts[place][start : start + _PIECE] for place in places.tolist()], f"U{_PIECE}")
            .view(np.uint32)
            .reshape(-1, _PIECE)
            for places in (alike, alike + 1)
        )
        differs = own != following
        same = np.where(differs.any(axis=1), differs.argmax(axis=1), _PIECE)
        shared[alike] = np.minimum(start + same, shortest[alike])
        start += _PIECE
        alike = alike[(same == _PIECE) & (shortest[alike] > start)]
    return shared


def leaf_shares(tree: Tree, distinct_values: int) -> Floats:
    """Return what each node of a tree loses: the share of the other values that it stands for too; the root, all.

    NULL is one of the values. Nodes come after those below them, as `tree_of` has them.

    Examples:
        >>> tree, _, _ = tree_of([np.array(["02139", "02140", "10001"]), np.array(["021", "021", "100"])])
        >>> leaf_shares(tree, 3).tolist()
        [0.0, 0.0, 0.0, 0.5, 0.0, 1.0]
    """
    leaves = np.ones(len(tree.parents), np.int64)
    leaves[tree.parents[tree.parents >= 0]] = 0
    for node, parent in enumerate(tree.parents.tolist()):
        if parent >= 0:
            leaves[parent] += leaves[node]
    losses = np.asarray((leaves - 1) / max(distinct_values - 1, 1), dtype=np.float64)
    losses[-1] = 1.0 if distinct_values > 1 else 0.0
    return losses
