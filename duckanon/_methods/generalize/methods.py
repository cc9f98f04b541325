"""The methods that generalize one column: what may be merged, and what the merged values are called.

A coarsening takes the leaves of a column, its distinct values, tells the search which of them may be merged, and turns
the groups that the search found into the buckets of a plan. Each method has its class; those of the first three are in
`duckanon._methods.generalize.number_methods` and `duckanon._methods.generalize.calendar_method`:

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

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, NamedTuple, Self

import numpy as np
import pyarrow as pa

from duckanon._core.common.arrays import Bools, Ints
from duckanon._core.common.made_labels import EVERYTHING, rest_label, value_label
from duckanon._methods.generalize.hierarchies import HierarchyTable
from duckanon._methods.generalize.hierarchy_trees import leaf_shares, prefix_tree, tree_of
from duckanon._methods.generalize.leaves import Leaves, TextLeaves, codes_among
from duckanon._methods.generalize.recoding.column_moves import ColumnRecoding, Flat, Structure


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


@dataclass(eq=False)
class Coarsening(ABC):
    """One column and the method by which it is generalized."""

    column: Leaves
    method: ClassVar[str]
    root_label = EVERYTHING  # the label of suppressed values; it does not even say whether they are NULL

    @property
    @abstractmethod
    def structure(self) -> Structure:
        """The merges that the search may choose from."""

    @abstractmethod
    def _known_buckets(self, groups: ColumnRecoding) -> Iterable[Bucket]:
        """Return the buckets of all values but NULL."""

    def buckets(self, groups: ColumnRecoding) -> list[Bucket]:
        """Turn the groups of the column's leaves into the rows of a plan.

        There is always a bucket for the rest and one, the last, for NULL. None has its rows yet.
        """
        says_nothing = self.column.has_null and len(np.unique(groups.group_of_leaf)) == 1
        known = self._known_buckets(groups)
        plan_rows = [bucket._replace(label=EVERYTHING) if says_nothing else bucket for bucket in known]
        if not any(bucket.covers == "rest" for bucket in plan_rows):
            plan_rows.append(Bucket("rest", None, None, self.root_label))
        rest_label = next(bucket.label for bucket in plan_rows if bucket.covers == "rest")
        label: str | None = self.root_label
        if self.column.has_null:
            label = rest_label if groups.group_of_leaf[-1] == groups.rest or says_nothing else None
        return [*plan_rows, Bucket("null", None, None, label)]

    def fitted(self, column: Leaves) -> Self:
        """Return the same method for other leaves of the column."""
        return replace(self, column=column)

    def extremes(self, groups: ColumnRecoding) -> Bools:
        """Tell which leaves lie beyond a value that the others of its group would be called by, and have few people."""
        return np.zeros(len(self.column.rows), bool)

    def codes_of(self, name: str, column: pa.ChunkedArray) -> Ints:
        """Return the leaf that each value of another table's column will be called as; -1 where that is not known."""
        return codes_among(self.column, name, column)

    def _known_groups(self, groups: ColumnRecoding) -> Ints:
        """Return the group of each leaf that is not NULL."""
        return groups.group_of_leaf[: self.column.size]

    @property
    def _distinct_values(self) -> int:
        """The number of values of the column, NULL among them."""
        return self.column.size + self.column.has_null


def are_codes(leaves: TextLeaves, k: int) -> bool:
    """Tell whether texts look like codes such as ZIP: many, all of one length, a digit in each.

    Fewer than 20 are rather categories (T1 to T4), and two characters leave one prefix only, which says little. Nobody
    alone decides it: texts of fewer than k people may look otherwise, and without those that fewest have there are
    still many.
    """
    people = leaves.people[: leaves.size]
    lengths = np.array([len(text) for text in leaves.texts])
    length = int(np.bincount(lengths, people).argmax())
    has_digit = np.array([any(character.isdigit() for character in text) for text in leaves.texts])
    is_code = (lengths == length) & has_digit
    many = int((np.cumsum(np.sort(people[is_code])) >= k).sum())
    return length >= 3 and many >= 20 and int(people[~is_code].sum()) < k


@dataclass(eq=False)
class Prefixes(Coarsening):
    """Codes by their first characters; each part of the codes at a length of its own."""

    column: TextLeaves
    k: int  # people who have codes of at least the length that labels are filled up to
    method = "prefix"

    @cached_property
    def structure(self) -> Structure:
        """The tree of the prefixes that codes share."""
        tree, _, _ = prefix_tree(self.column.texts)
        return replace(tree, losses=leaf_shares(tree, self._distinct_values))

    def _known_buckets(self, groups: ColumnRecoding) -> Iterable[Bucket]:
        length = self._length()
        for group, first, last in _ends_of_groups(self._known_groups(groups)):
            if group != groups.rest:
                prefix = _shared_prefix(self.column.texts[first], self.column.texts[last])  # the texts are sorted
                stars = EVERYTHING * (length - len(prefix))
                label = prefix + stars if stars else value_label(prefix)
                yield Bucket("prefix", prefix, None, label if prefix else EVERYTHING)

    def _length(self) -> int:
        """Return the length that k people's codes have at least: nobody's alone makes all labels longer."""
        lengths = np.array([len(text) for text in self.column.texts])
        order = np.argsort(-lengths, kind="stable")
        reached = int(np.searchsorted(np.cumsum(self.column.people[: self.column.size][order]), self.k))
        return int(lengths[order[min(reached, len(order) - 1)]])


@dataclass(eq=False)
class Hierarchy(Coarsening):
    """Values by a caller's hierarchy; each branch at a level of its own. Values that it lacks hang below its root."""

    column: TextLeaves
    hierarchy: HierarchyTable
    method = "hierarchy"

    def __post_init__(self) -> None:
        self.root_label = self.hierarchy.root

    @cached_property
    def structure(self) -> Structure:
        """The part of the hierarchy that the column has values of."""
        paths = [self.hierarchy.path(text) for text in self.column.texts]
        levels = [np.array([path[level] for path in paths]) for level in range(self.hierarchy.height)]
        tree, _, _ = tree_of(levels)
        losses = leaf_shares(tree, self._distinct_values)
        if self.root_label != EVERYTHING:  # it says that a value is not NULL, and one that the hierarchy knows
            known = sum(text in self.hierarchy.leaves for text in self.column.texts)
            losses[-1] = max(known - 1, 0) / max(self._distinct_values - 1, 1)
        return replace(tree, losses=losses)

    def _known_buckets(self, groups: ColumnRecoding) -> Iterable[Bucket]:
        group_of_text = dict(zip(self.column.texts, self._known_groups(groups).tolist(), strict=True))
        label_of_group, label_of_node = {groups.rest: self.root_label}, {}
        texts_of_group: dict[int, list[str]] = {}
        for text, group in group_of_text.items():
            texts_of_group.setdefault(group, []).append(text)
        for group, texts in texts_of_group.items():
            if group != groups.rest:
                level, label = self._shared_node(texts)
                label_of_group[group] = label_of_node[level, label] = label if level else value_label(label)
        for text in dict.fromkeys([*self.column.texts, *self.hierarchy.leaves]):
            is_known = text in self.hierarchy.leaves
            if text in group_of_text:
                label = label_of_group[group_of_text[text]]
                if is_known or label != self.root_label:  # else it is called as the rest is, and may be one person's
                    yield Bucket("value", text, text, label)
            else:  # the hierarchy knows it, the table did not have it: it goes with the node above it, if there is one
                nodes_above = (node for node in enumerate(self.hierarchy.path(text)) if node in label_of_node)
                label = next((label_of_node[node] for node in nodes_above), self.root_label)
                yield Bucket("value", text, text, label)
        yield Bucket("rest", None, None, self.root_label)

    def _shared_node(self, texts: Sequence[str]) -> tuple[int, str]:
        """Return the lowest node of the hierarchy that all of some values lie below: its level and its label."""
        paths = [self.hierarchy.path(text) for text in texts]
        for level, label in enumerate(paths[0]):
            if all(path[level] == label for path in paths):
                return level, label
        return self.hierarchy.height, self.root_label


@dataclass(eq=False)
class Top(Coarsening):
    """Values without any order: some stay as they are, all others become one."""

    column: TextLeaves
    k: int  # people who share a value that may be named
    method = "top"

    @cached_property
    def structure(self) -> Structure:
        """The values."""
        return Flat(self.column.size)

    def _known_buckets(self, groups: ColumnRecoding) -> Iterable[Bucket]:
        is_kept = self._known_groups(groups) != groups.rest
        is_null_merged = self.column.has_null and int(groups.group_of_leaf[-1]) == groups.rest
        if (~is_kept).sum() == 1 and is_kept.any() and not is_null_merged:
            is_kept = np.ones_like(is_kept)  # the only one of the others that is left is itself
        kept = [text for text, stays in zip(self.column.texts, is_kept.tolist(), strict=True) if stays]
        for text in kept:
            yield Bucket("value", text, text, value_label(text))
        pairs = zip(self.column.texts, self.column.people.tolist(), strict=False)
        label = rest_label([text for text, held in pairs if held >= self.k])
        yield Bucket("rest", None, None, label if kept else EVERYTHING)


def _shared_prefix(text: str, other: str) -> str:
    """Return the characters with which both texts begin."""
    pairs = enumerate(zip(text, other, strict=False))
    return text[: next((place for place, (own, its) in pairs if own != its), len(text))]


def _ends_of_groups(group_of_leaf: Ints) -> list[tuple[int, int, int]]:
    """Return each group with the first and the last of its leaves, in the order of the first."""
    groups, first, which = np.unique(group_of_leaf, return_index=True, return_inverse=True)
    last = np.zeros_like(first)
    np.maximum.at(last, which.reshape(-1), np.arange(len(group_of_leaf)))
    order = np.argsort(first)
    return list(zip(groups[order].tolist(), first[order].tolist(), last[order].tolist(), strict=True))
