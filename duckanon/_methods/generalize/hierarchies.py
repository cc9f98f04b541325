"""Hierarchies of values: as a caller's table gives them, and as trees for the search.

A hierarchy has a label on every level for each value; a level that a value lacks repeats the label below. The tree of a
column has only the values that occur, and a root. Prefixes of codes make a tree without a table: only prefixes after
which codes go on differently are nodes, since one for every length would be millions, nearly all with one code below.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import TypedDict

import numpy as np

from duckanon._core.common.arrays import Array, Floats, Ints
from duckanon._core.common.labels import EVERYTHING
from duckanon._methods.generalize.recoding.axes import TreeStructure


class HierarchyTable:
    """A hierarchy: for each leaf its label on every level, the leaf itself first.

    It is made of rows of leaf, level from 1, and label; the column's name is for the error where they are no tree.
    """

    def __init__(self, name: str, rows: Iterable[tuple[str, int, str]]) -> None:
        paths: dict[str, dict[int, str]] = {}
        several = {leaf for leaf, level, label in rows if paths.setdefault(leaf, {}).setdefault(level, label) != label}
        if several:
            must = f'the hierarchy of column "{name}" must give each value one label of each level'
            raise ValueError(f"{must}; got {len(several)} with several.")
        levels = max((max(path) for path in paths.values()), default=0)
        tops = {path.get(levels) for path in paths.values()}
        self.root = next(iter(tops)) or EVERYTHING if len(tops) == 1 else EVERYTHING
        self.height = levels + (len(tops) != 1) + (levels == 0)
        self._paths = {leaf: self._fill_levels(leaf, path) for leaf, path in paths.items()}
        self._refuse_two_parents(name)

    def _fill_levels(self, leaf: str, path: dict[int, str]) -> tuple[str, ...]:
        """Fill levels that a leaf does not have with the label below."""
        labels = [leaf]
        for level in range(1, self.height):
            labels.append(path.get(level) or labels[-1])
        return tuple(labels)

    def _refuse_two_parents(self, name: str) -> None:
        parents: dict[tuple[int, str], str] = {}
        for path in self._paths.values():
            for level in range(1, len(path) - 1):
                parent = parents.setdefault((level, path[level]), path[level + 1])
                if parent != path[level + 1]:
                    raise ValueError(
                        f'the hierarchy of column "{name}" is not a tree: a label on level {level} lies in two '
                        f"labels on level {level + 1}; give it another name in one of them."
                    )

    @property
    def leaves(self) -> Iterable[str]:
        """The values that the hierarchy knows."""
        return self._paths

    def path(self, text: str) -> tuple[str, ...]:
        """Return the labels of a value below the root, itself first; a value that is not known is alone."""
        return self._paths.get(text) or (text,) * self.height


class HierarchyRow(TypedDict):
    """A label of a value: the column in lower case, the value, how coarse the label is, from 1 on."""

    column_name: str
    leaf: str | None
    level: int
    label: str


def read_hierarchies(rows: Iterable[HierarchyRow]) -> dict[str, HierarchyTable]:
    """Return the hierarchy of each column that has one; a row whose leaf is NULL is left out."""
    rows_of_column: dict[str, list[tuple[str, int, str]]] = {}
    for row in rows:
        if row["leaf"] is not None:
            rows_of_column.setdefault(row["column_name"], []).append((row["leaf"], row["level"], row["label"]))
    return {name: HierarchyTable(name, column_rows) for name, column_rows in rows_of_column.items()}


def build_tree(levels: Sequence[Array]) -> tuple[TreeStructure, Ints, Ints]:
    """Make a tree of the keys that the leaves have on each level, finest first; a root is put on top.

    Return it, and for each node one of its leaves and its level.

    Examples:
        >>> tree, _, node_level = build_tree([np.array(["02139", "02140", "10001"]), np.array(["021", "021", "100"])])
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
        TreeStructure(parents),
        np.concatenate([*node_leaf, [0]]).astype(np.int64),
        np.concatenate([*node_level, [len(levels)]]).astype(np.int64),
    )


def build_prefix_tree(texts: Sequence[str]) -> tuple[TreeStructure, Ints, Ints]:
    """Make the tree of the prefixes that texts share: a node for each prefix after which they go on differently.

    Texts are different and in ascending order. Return the tree, and for each node one of its leaves and its level: how
    many characters of the longest text it lacks.

    Examples:
        >>> tree, node_leaf, node_level = build_prefix_tree(["02139", "02140", "10001"])
        >>> tree.parents.tolist()
        [3, 3, 4, 4, -1]
        >>> node_level.tolist()
        [0, 0, 0, 2, 5]
    """
    size, length = len(texts), max(map(len, texts))
    parents, node_leaf, node_level = [-1] * size, list(range(size)), [0] * size
    open_nodes: list[tuple[int, list[int]]] = []  # prefixes that the next text may share: their lengths, and who does
    for leaf, shared in enumerate([*_measure_common_prefixes(texts).tolist(), -1]):
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
    return TreeStructure(np.array(parents, np.int64), levels=levels), np.array(node_leaf, np.int64), levels


_PIECE = 32  # so many characters of texts are compared at a time


def _measure_common_prefixes(texts: Sequence[str]) -> Ints:
    """Return how many characters each text but the last shares with the next."""
    lengths = np.array([len(text) for text in texts], np.int64)
    shortest = np.minimum(lengths[:-1], lengths[1:])
    shared = np.zeros(len(texts) - 1, np.int64)
    alike, start = np.arange(len(shared)), 0  # pairs that are the same so far
    while len(alike):
        pieces, following = (
            np.array([texts[index][start : start + _PIECE] for index in indices.tolist()], f"U{_PIECE}")
            .view(np.uint32)
            .reshape(-1, _PIECE)
            for indices in (alike, alike + 1)
        )
        differs = pieces != following
        same = np.where(differs.any(axis=1), differs.argmax(axis=1), _PIECE)
        shared[alike] = np.minimum(start + same, shortest[alike])
        start += _PIECE
        alike = alike[(same == _PIECE) & (shortest[alike] > start)]
    return shared


def compute_node_losses(tree: TreeStructure, distinct_values: int) -> Floats:
    """Return what each node of a tree loses: the share of the other values that it stands for too; the root, all.

    NULL is one of the values. Nodes come after those below them, as `build_tree` has them.

    Examples:
        >>> tree, _, _ = build_tree([np.array(["02139", "02140", "10001"]), np.array(["021", "021", "100"])])
        >>> compute_node_losses(tree, 3).tolist()
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
