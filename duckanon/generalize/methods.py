"""How one column can be made coarser: what may be merged, and what the merged values are called.

A coarsening turns a column into leaves (`generalize.recoding.columns`) for the search, and the groups that the search
found into the buckets of a plan. There is one class a method; the first three are in `generalize.number_methods`:

========== ============================================================================================
interval   numbers and dates: any cut into contiguous runs
round      numbers: steps of 1, 2, 5 times a power of ten
calendar   dates: day, month, quarter, half-year, year, 5 years, decade
prefix     codes: their first characters, ``021**``
hierarchy  whatever a table of leaves and levels says
top        anything: the frequent values are kept, all others become one
========== ============================================================================================
"""

from __future__ import annotations

import dataclasses
import itertools
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from duckanon.common import values as leaves
from duckanon.common.arrays import Array, Ints
from duckanon.generalize.recoding.columns import Flat, Structure, Tree
from duckanon.generalize.recoding.recode import ColumnRecoding

ROOT = "*"
OTHER = "other"


@dataclass(frozen=True)
class Bucket:
    """One row of a plan: which values it covers, and what they are called.

    ``covers`` says how ``lower`` is read: ``number`` and ``time`` begin there, ``value`` is it, ``prefix`` begins with
    it, ``rest`` is what no other bucket covers, ``null`` is NULL.
    """

    covers: str
    lower: str | None
    upper: str | None
    label: str | None
    distinct_values: int = 0
    rows: int = 0
    loss: float = 0.0


class Coarsening(ABC):
    """One column, one method. ``structure`` tells the search what may be merged."""

    method: str
    structure: Structure
    root_label = ROOT
    """What a value is called of which nothing is said, not even whether it is known."""

    def __init__(self, column: leaves.Leaves) -> None:
        self.column = column

    @abstractmethod
    def _own_buckets(self, groups: ColumnRecoding) -> Iterable[tuple[int, Bucket]]:
        """Return the buckets of all groups that are not NULL's, each with the number of its group (-1: nobody's)."""

    def buckets(self, groups: ColumnRecoding) -> list[Bucket]:
        """Turn groups into the rows of a plan: with their numbers of values and rows, with NULL's and the rest's."""
        count = int(groups.group_of_leaf.max()) + 1
        own = groups.group_of_leaf[: self.column.size]
        values = np.bincount(own, minlength=count)
        rows = np.bincount(own, self.column.rows[: self.column.size], count)
        null_group = int(groups.group_of_leaf[-1]) if self.column.has_null else -1
        says_nothing = null_group in own  # NULL is one with all others
        found, seen = [], set()
        for group, bucket in self._own_buckets(groups):
            label = self.root_label if says_nothing else bucket.label
            if group < 0 or group in seen:
                found.append(dataclasses.replace(bucket, label=label))
                continue
            seen.add(group)
            counted = (int(values[group]), int(rows[group]), float(groups.losses[group]))
            found.append(Bucket(bucket.covers, bucket.lower, bucket.upper, label, *counted))
        if not any(bucket.covers == "rest" for bucket in found):
            found.append(Bucket("rest", None, None, self.root_label))
        return [*found, self._null_bucket(groups, null_group, says_nothing)]

    def _null_bucket(self, groups: ColumnRecoding, group: int, says_nothing: bool) -> Bucket:
        if group < 0:
            return Bucket("null", None, None, self.root_label)
        label = self.root_label if says_nothing else None
        return Bucket("null", None, None, label, 1, int(self.column.rows[-1]), float(groups.losses[group]))


class Prefixes(Coarsening):
    """Codes by their first characters; each part of the codes at a length of its own."""

    method = "prefix"

    def __init__(self, column: leaves.TextLeaves) -> None:
        super().__init__(column)
        self.texts = column.texts
        self.length = max(map(len, self.texts))
        cut = [np.array([text[:length] for text in self.texts]) for length in range(self.length - 1, 0, -1)]
        self.structure, self.node_leaf, self.node_level = tree_of([np.array(self.texts), *cut])

    def _own_buckets(self, groups: ColumnRecoding) -> Iterable[tuple[int, Bucket]]:
        assert groups.nodes is not None
        own = groups.group_of_leaf[: self.column.size]
        for group in dict.fromkeys(own.tolist()):
            node = int(groups.nodes[group])
            if self.node_level[node] == self.length:  # the root
                yield group, Bucket("prefix", "", None, ROOT)
            else:
                prefix = self.texts[self.node_leaf[node]][: self.length - int(self.node_level[node])]
                yield group, Bucket("prefix", prefix, None, prefix + "*" * (self.length - len(prefix)))


class Hierarchy(Coarsening):
    """Whatever a hierarchy says; each branch at a level of its own. Values that it lacks hang below its root."""

    method = "hierarchy"

    def __init__(self, column: leaves.TextLeaves, hierarchy: leaves.HierarchyTable) -> None:
        super().__init__(column)
        self.texts, self.hierarchy = column.texts, hierarchy
        paths = [hierarchy.path(text) for text in self.texts]
        levels = [np.array([path[level] for path in paths]) for level in range(hierarchy.height)]
        self.structure, self.node_leaf, self.node_level = tree_of(levels)
        self.root_label = hierarchy.root

    def _own_buckets(self, groups: ColumnRecoding) -> Iterable[tuple[int, Bucket]]:
        assert groups.nodes is not None
        own = groups.group_of_leaf[: self.column.size]
        names = {}
        for group in set(own.tolist()):
            node = int(groups.nodes[group])
            level = int(self.node_level[node])
            path = self.hierarchy.path(self.texts[self.node_leaf[node]])
            names[group] = path[level] if level < len(path) else self.root_label
        cut = {(int(self.node_level[int(groups.nodes[group])]), name): name for group, name in names.items()}
        known = dict(zip(self.texts, own.tolist(), strict=True))
        for text in dict.fromkeys([*self.texts, *self.hierarchy.leaves]):
            if text in known:
                yield known[text], Bucket("value", text, text, names[known[text]])
            else:  # the hierarchy knows it, the table did not have it
                path = self.hierarchy.path(text)
                here = (cut[place] for place in enumerate(path) if place in cut)
                yield -1, Bucket("value", text, text, next(here, self.root_label))
        yield -1, Bucket("rest", None, None, self.root_label)


class Top(Coarsening):
    """Values without any order: the ones kept stay as they are, all others become one."""

    method = "top"

    def __init__(self, column: leaves.TextLeaves) -> None:
        super().__init__(column)
        self.texts = column.texts
        self.structure = Flat(column.size)

    def _own_buckets(self, groups: ColumnRecoding) -> Iterable[tuple[int, Bucket]]:
        own = groups.group_of_leaf[: self.column.size]
        sizes = np.bincount(own)
        merged = [int(group) for group in np.flatnonzero(sizes > 1)]
        for text, group in zip(self.texts, own.tolist(), strict=True):
            if sizes[group] == 1:
                yield group, Bucket("value", text, text, text)
        is_all = len(merged) == 1 and sizes[merged[0]] == self.column.size
        names = itertools.chain([] if is_all else [OTHER], itertools.accumulate(itertools.repeat(ROOT)))
        free = next(name for name in names if is_all or name not in self.texts)  # no value is called like the others
        yield merged[0] if merged else -1, Bucket("rest", None, None, free)


def tree_of(levels: Sequence[Array]) -> tuple[Tree, Ints, Ints]:
    """Make a tree of the keys that the leaves have on each level, finest first; a root is put on top.

    Returns
    -------
    tree, node_leaf, node_level
        The tree, and for each node one of its leaves and its level.
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
