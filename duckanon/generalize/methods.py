"""How one column can be made coarser: what may be merged, and what the merged values are called.

A coarsening takes the leaves of a column, its distinct values, tells the search which of them may be merged, and turns
the groups that the search found into the buckets of a plan. Each method has its class; those of the first three are in
`duckanon.generalize.number_methods`:

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

import itertools
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from duckanon.common.arrays import Ints
from duckanon.generalize.hierarchies import ROOT, HierarchyTable, leaf_shares, prefix_tree, tree_of
from duckanon.generalize.leaves import Leaves, TextLeaves, codes_among
from duckanon.generalize.recoding.columns import Flat, Structure
from duckanon.generalize.recoding.outcome import ColumnRecoding

OTHER = "other"
"""The label of values that were not frequent enough to be kept."""

NO_GROUP = -1
"""The group of a bucket for values that the table did not have."""


class Bucket(NamedTuple):
    """One row of a plan: which values it covers, and what they are called.

    ``covers`` says how ``lower`` is read: ``number`` and ``time`` begin there, ``value`` is it, ``prefix`` begins with
    it, ``rest`` is what no other bucket covers, ``null`` is NULL.
    """

    covers: str
    lower: str | None
    upper: str | None
    label: str | None
    rows: int = 0


class Coarsening(ABC):
    """One column and the method by which it is made coarser.

    Attributes
    ----------
    method
        The method's name.
    structure
        What the search may merge.
    root_label
        The label of values about which nothing is said, not even whether they are NULL.
    """

    method: str
    structure: Structure
    root_label = ROOT

    def __init__(self, column: Leaves) -> None:
        self.column = column

    @abstractmethod
    def _known_buckets(self, groups: ColumnRecoding) -> Iterable[tuple[int, Bucket]]:
        """Return the buckets of all values but NULL, each with its group; `NO_GROUP` where the table had none."""

    def buckets(self, groups: ColumnRecoding) -> list[Bucket]:
        """Turn groups into the rows of a plan.

        Parameters
        ----------
        groups
            The group of each leaf of the column, as the search or a budget has chosen them.

        Returns
        -------
        list of Bucket
            A group's rows stand in the first of its buckets. There is always a bucket for the rest and one,
            the last, for NULL.
        """
        says_nothing = self.column.has_null and len(np.unique(groups.group_of_leaf)) == 1
        plan_rows: list[Bucket] = []
        counted = {NO_GROUP}

        def add(group: int, bucket: Bucket) -> None:
            if group not in counted:
                counted.add(group)
                bucket = bucket._replace(rows=int(groups.rows[group]))
            plan_rows.append(bucket)

        for group, bucket in self._known_buckets(groups):
            add(group, bucket._replace(label=ROOT) if says_nothing else bucket)
        if not any(bucket.covers == "rest" for bucket in plan_rows):
            add(groups.rest, Bucket("rest", None, None, self.root_label))
        rest_label = next(bucket.label for bucket in plan_rows if bucket.covers == "rest")
        if not self.column.has_null:
            return [*plan_rows, Bucket("null", None, None, self.root_label)]
        null_group = int(groups.group_of_leaf[-1])
        add(null_group, Bucket("null", None, None, rest_label if null_group == groups.rest or says_nothing else None))
        return plan_rows

    def codes_of(self, name: str, column: pa.ChunkedArray) -> Ints:
        """Return the leaf that each value of another table's column will be called as; -1 where that is not known."""
        return codes_among(self.column, name, column)

    def _known_groups(self, groups: ColumnRecoding) -> Ints:
        """Return the group of each leaf that is not NULL."""
        return groups.group_of_leaf[: self.column.size]

    @property
    def _distinct_values(self) -> int:
        """How many values the column has, NULL among them."""
        return self.column.size + self.column.has_null


class Prefixes(Coarsening):
    """Codes by their first characters; each part of the codes at a length of its own."""

    method = "prefix"

    def __init__(self, column: TextLeaves) -> None:
        super().__init__(column)
        self.texts = column.texts
        self.length = max(map(len, self.texts))
        tree, self.node_leaf, self.node_level = prefix_tree(self.texts)
        self.structure = replace(tree, losses=leaf_shares(tree, self._distinct_values))

    def _known_buckets(self, groups: ColumnRecoding) -> Iterable[tuple[int, Bucket]]:
        assert groups.nodes is not None
        for group in dict.fromkeys(self._known_groups(groups).tolist()):
            if group == groups.rest:
                continue
            node = int(groups.nodes[group])
            if self.node_level[node] == self.length:  # the root
                yield group, Bucket("prefix", "", None, ROOT)
            else:
                prefix = self.texts[self.node_leaf[node]][: self.length - int(self.node_level[node])]
                yield group, Bucket("prefix", prefix, None, prefix + "*" * (self.length - len(prefix)))


class Hierarchy(Coarsening):
    """Values by a caller's hierarchy; each branch at a level of its own. Values that it lacks hang below its root."""

    method = "hierarchy"

    def __init__(self, column: TextLeaves, hierarchy: HierarchyTable) -> None:
        super().__init__(column)
        self.texts, self.hierarchy = column.texts, hierarchy
        paths = [hierarchy.path(text) for text in self.texts]
        levels = [np.array([path[level] for path in paths]) for level in range(hierarchy.height)]
        tree, self.node_leaf, self.node_level = tree_of(levels)
        losses = leaf_shares(tree, self._distinct_values)
        self.root_label = hierarchy.root
        if self.root_label != ROOT:  # it says that a value is not NULL, and one that the hierarchy knows
            known = sum(text in hierarchy.leaves for text in self.texts)
            losses[-1] = max(known - 1, 0) / max(self._distinct_values - 1, 1)
        self.structure = replace(tree, losses=losses)

    def _known_buckets(self, groups: ColumnRecoding) -> Iterable[tuple[int, Bucket]]:
        assert groups.nodes is not None
        group_of_text = dict(zip(self.texts, self._known_groups(groups).tolist(), strict=True))
        label_of_group, label_of_node = {groups.rest: self.root_label}, {}
        for group in set(group_of_text.values()) - {groups.rest}:
            node = int(groups.nodes[group])
            level = int(self.node_level[node])
            path = self.hierarchy.path(self.texts[self.node_leaf[node]])
            label = path[level] if level < len(path) else self.root_label
            label_of_group[group] = label_of_node[level, label] = label
        for text in dict.fromkeys([*self.texts, *self.hierarchy.leaves]):
            group = group_of_text.get(text, NO_GROUP)
            if text not in self.hierarchy.leaves and label_of_group[group] == self.root_label:
                continue  # it is called as the rest is, and may be one person's
            if group != NO_GROUP:
                yield group, Bucket("value", text, text, label_of_group[group])
            else:  # the hierarchy knows it, the table did not have it: it goes with the node above it, if there is one
                nodes_above = (node for node in enumerate(self.hierarchy.path(text)) if node in label_of_node)
                label = next((label_of_node[node] for node in nodes_above), self.root_label)
                yield NO_GROUP, Bucket("value", text, text, label)
        said_nothing = (group for group, label in label_of_group.items() if label == self.root_label)
        yield max(said_nothing), Bucket("rest", None, None, self.root_label)


class Top(Coarsening):
    """Values without any order: some stay as they are, all others become one."""

    method = "top"

    def __init__(self, column: TextLeaves) -> None:
        super().__init__(column)
        self.texts = column.texts
        self.structure = Flat(column.size, says_others=OTHER not in self.texts)

    def _known_buckets(self, groups: ColumnRecoding) -> Iterable[tuple[int, Bucket]]:
        group_of_leaf = self._known_groups(groups)
        for text, group in zip(self.texts, group_of_leaf.tolist(), strict=True):
            if group != groups.rest:
                yield group, Bucket("value", text, text, text)
        label = ROOT if (group_of_leaf == groups.rest).all() else self._free_label()
        yield groups.rest, Bucket("rest", None, None, label)

    def _free_label(self) -> str:
        """Return a label for the merged values that is none of the column's own: other, *, **, ..."""
        stars = itertools.accumulate(itertools.repeat(ROOT))
        return next(label for label in itertools.chain([OTHER], stars) if label not in self.texts)
