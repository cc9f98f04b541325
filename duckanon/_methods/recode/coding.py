"""Columns of a table as codes, and the labels of classes of codes.

Numbers and dates become parts that k people share, values of a hierarchy the leaves of its tree in depth-first order,
other values codes by how frequent they are, rare ones pooled. So the search compares small numbers and knows no label;
a class's label is written from its smallest and largest code, or from the set of its codes, each different one once.
"""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from duckanon._core.common.arrays import Array, Bools, Floats, Ints, find_run_starts, is_number, is_time, measure_runs
from duckanon._core.common.labels import EVERYTHING, Scale, label_entry, label_rest, label_set, label_value
from duckanon._core.common.values import take_exact_numbers
from duckanon._core.numbers.ends import cast_ends
from duckanon._core.numbers.parts import NumberParts, cut_column, cut_counts, find_part_of_value
from duckanon._core.numbers.support import NumberSupport, find_support
from duckanon._methods.generalize.hierarchies import HierarchyTable
from duckanon._methods.generalize.leaves import Holders, TextLeaves, cast_to_text, make_null_leaves, read_text_leaves
from duckanon._methods.recode.column_losses import CodedColumn, NumberColumn, SetColumn, TreeColumn

SEPARATOR, NULL_MARK = "\x1f", "\x1e"
"""Marks of a list of values as text: between two of them, and for NULL (``anon._recoded`` reads it)."""


@dataclass(frozen=True)
class LabelCoding(ABC):
    """A column as codes."""

    name: str
    column: CodedColumn  # as the search sees it
    codes: Array  # of each row

    @abstractmethod
    def texts(self, codes: Array, starts: Ints) -> pa.Array:
        """Return the label of each class, given the codes of its rows, which follow each other, as a dictionary."""

    @abstractmethod
    def values(self, codes: Array, starts: Ints) -> tuple[pa.Array, ...]:
        """Return what each class says as values: its ends, or the list of its values as text (`SEPARATOR`).

        As dictionaries: what many classes say is written once.
        """

    def of(self, column: pa.ChunkedArray) -> Self:
        """Return the same coding for other rows of the same table."""
        return replace(self, codes=self._find_codes(column).astype(np.int32))

    @abstractmethod
    def _find_codes(self, column: pa.ChunkedArray) -> Array:
        """Return the codes of values; all of them occur in the column that was encoded."""


@dataclass(frozen=True)
class NumberCoding(LabelCoding):
    """Numbers, dates or moments: parts with published ends, ascending, and NULL behind them.

    The first and the last code are open: what lies below an end that k people share and above it, or, where k people
    share none, the outermost parts.
    """

    lower: Floats  # the ends of the parts; of what lies beyond a shared end, a number that is only computed with
    upper: Floats
    scale: Scale  # how ends are written
    kind: pa.DataType
    support: NumberSupport | None  # the column's unit and ends; None where all of it is NULL

    def _find_codes(self, column: pa.ChunkedArray) -> Array:
        known, is_known, _ = take_exact_numbers(self.name, column)
        codes = np.full(len(is_known), len(self.lower))
        if len(known):
            assert self.support is not None
            known = known + 0.0  # -0.0 + 0.0 is 0.0
            before, after = self.support.is_shared
            inside = slice(int(before), len(self.lower) - after)
            rounded = self.support.round_and_clip(known)
            numbers = before + find_part_of_value(self.lower[inside], self.upper[inside], rounded)
            is_below, is_above = self.support.beyond(known)
            numbers[is_below] = 0
            numbers[is_above] = len(self.lower) - 1
            codes[is_known] = numbers
        return codes

    def texts(self, codes: Array, starts: Ints) -> pa.Array:
        """Return the label of each class: ``[20, 34]``, ``<=34``, one number, NULL, or ``*`` for NULLs among others."""
        return _label_spans(codes, starts, self.column.size, self._text)

    def _text(self, first: int, last: int) -> str | None:
        parts = len(self.lower)
        if last == parts:
            return None if first == parts else EVERYTHING
        low, high = (self.scale.text(end) for end in (self.lower[first], self.upper[last]))
        if first == 0 or last == parts - 1:
            return EVERYTHING if last - first == parts - 1 else f"<={high}" if first == 0 else f">={low}"
        return low if low == high else f"[{low}, {high}]"

    def values(self, codes: Array, starts: Ints) -> tuple[pa.Array, ...]:
        """Return the lower and the upper end of each class; NULL where it is open, both where it says nothing."""
        pairs, pair_of_class = _find_spans(codes, starts, self.column.size)
        indices = pa.array(pair_of_class, pa.int32())
        if not len(self.lower):
            nothing = pa.DictionaryArray.from_arrays(indices, pa.nulls(1, self.kind))
            return nothing, nothing
        first, last = np.divmod(pairs, self.column.size)
        parts, says_nothing = len(self.lower), last == len(self.lower)
        at_first = pa.array(np.where(says_nothing, 0, first), mask=says_nothing | (first == 0))
        at_last = pa.array(np.where(says_nothing, 0, last), mask=says_nothing | (last == parts - 1))
        low, high = cast_ends(self.kind, self.lower, self.upper, has_unit=True)
        # both columns have the same codes, and the macro reads those of the first for the pairs
        return tuple(pa.DictionaryArray.from_arrays(indices, ends) for ends in (low.take(at_first), high.take(at_last)))


@dataclass(frozen=True)
class TreeCoding(LabelCoding):
    """Values of a hierarchy in the order of its tree.

    The root stands for everything: the hierarchy's own values, others that k people have, None for NULL if they do,
    and their label where fewer have one, as entries of a list (`listed_value`).
    """

    paths: Sequence[tuple[str, ...] | None]  # by code: the labels from the value up to below the root; None for NULL
    root: str
    leaves_below: dict[tuple[int, str], list[str]]  # by level and label: the hierarchy's values, if they occur or not
    everything: Sequence[str | None]

    def _find_codes(self, column: pa.ChunkedArray) -> Array:
        leaves = [None if path is None else path[0] for path in self.paths]
        return _index_values(self.name, column, leaves, None)

    def texts(self, codes: Array, starts: Ints) -> pa.Array:
        """Return the lowest common ancestor of each class."""
        return _label_spans(codes, starts, self.column.size, self._text)

    def _text(self, first: int, last: int) -> str | None:
        level, label = self._find_ancestor(first, last)
        return label_value(label) if level == 0 and label is not None else label

    def _find_ancestor(self, first: int, last: int) -> tuple[int, str | None]:
        """Return the level and the label of the ancestor of two codes."""
        first_path, last_path = self.paths[first], self.paths[last]
        if first_path is None and last_path is None:
            return 0, None
        if first_path is not None and last_path is not None:
            for level, label in enumerate(first_path):
                if first_path[level:] == last_path[level:]:
                    return level, label
        return -1, self.root

    def values(self, codes: Array, starts: Ints) -> tuple[pa.Array, ...]:
        """Return the values below each class's ancestor, as text."""
        return (_label_spans(codes, starts, self.column.size, self._list_values),)

    def _list_values(self, first: int, last: int) -> str | None:
        level, label = self._find_ancestor(first, last)
        if label is None:
            return None
        if level < 0:
            return _join_values(self.everything)
        return _join_values([label_entry(leaf) for leaf in self.leaves_below.get((level, label), [label])])


@dataclass(frozen=True)
class SetCoding(LabelCoding):
    """Values without an order; one may be NULL, and the last code may stand for rare ones.

    These are called `rest_label`: naming a value of fewer than k people would reveal its few people.
    """

    named: Sequence[str | None]  # by code: the value as text, None for NULL
    has_rest: bool  # whether one more code stands for all others

    @cached_property
    def _rest(self) -> str:
        return label_rest(self.named)

    def _find_codes(self, column: pa.ChunkedArray) -> Array:
        return _index_values(self.name, column, self.named, len(self.named) if self.has_rest else None)

    def texts(self, codes: Array, starts: Ints) -> pa.Array:
        """Return the set of each class: ``{a, b}``, or the one value that it has (`set_label`)."""
        return self._label_sets(codes, starts, label_set)

    def values(self, codes: Array, starts: Ints) -> tuple[pa.Array, ...]:
        """Return the list of each class's values, as text."""
        return (self._label_sets(codes, starts, _join_values),)

    def _list_values(self, members: tuple[int, ...]) -> list[str | None]:
        values = [self.named[member] for member in members if member < len(self.named)]
        listed = [label_entry(value) for value in sorted(value for value in values if value is not None)]
        return [*listed, *[self._rest] * (len(values) < len(members)), *[None] * (None in values)]

    def _label_sets(self, codes: Array, starts: Ints, label: Callable[[list[str | None]], str | None]) -> pa.Array:
        members = _list_members(codes, starts)
        numbers = {of_class: number for number, of_class in enumerate(dict.fromkeys(members))}
        indices = np.array([numbers[of_class] for of_class in members], np.int32)
        return _encode_labels(indices, [label(self._list_values(of_class)) for of_class in numbers])


def _join_values(values: Sequence[str | None]) -> str:
    return SEPARATOR.join(NULL_MARK if value is None else value for value in values)


def _index_values(name: str, column: pa.ChunkedArray, values: Sequence[str | None], pooled: int | None) -> Array:
    """Return the index of each value among those that have a code; `pooled` for all others."""
    if column.null_count == len(column):
        return np.full(len(column), values.index(None) if None in values else pooled)
    indices = pc.index_in(cast_to_text(name, column), pa.array(values, pa.large_string()))
    if pooled is None and indices.null_count:
        raise AssertionError("a value does not occur in the column that was encoded.")
    return np.asarray(indices.fill_null(-1 if pooled is None else pooled))


def _find_spans(codes: Array, starts: Ints, size: int) -> tuple[Ints, Ints]:
    """Return the different pairs of smallest and largest code, as first * size + last, and the pair of each class."""
    first, last = (extreme.reduceat(codes, starts).astype(np.int64) for extreme in (np.minimum, np.maximum))
    pairs, pair_of_class = np.unique(first * size + last, return_inverse=True)
    return pairs, pair_of_class.reshape(-1)


def _label_spans(codes: Array, starts: Ints, size: int, label: Callable[[int, int], str | None]) -> pa.Array:
    """Return the labels of classes, given their smallest and largest code; each different pair is labelled once."""
    pairs, indices = _find_spans(codes, starts, size)
    return _encode_labels(indices, [label(*divmod(pair, size)) for pair in pairs.tolist()])


def _encode_labels(indices: Array, labels: list[str | None]) -> pa.Array:
    """Return the labels at some indices as a dictionary that has each label once."""
    numbers = {label: number for number, label in enumerate(dict.fromkeys(text for text in labels if text is not None))}
    codes = np.array([-1 if label is None else numbers[label] for label in labels], np.int32)[indices]
    return pa.DictionaryArray.from_arrays(pa.array(codes, mask=codes < 0), pa.array(list(numbers), pa.string()))


def _list_members(codes: Array, starts: Ints) -> list[tuple[int, ...]]:
    """Return the different codes of each class, ascending."""
    numbers = np.arange(len(starts)).repeat(measure_runs(starts, len(codes)))
    size = int(codes.max(initial=0)) + 1
    pairs = np.sort(numbers * size + codes)
    pairs = pairs[find_run_starts(pairs)]
    class_starts = find_run_starts(pairs // size)
    values = (pairs % size).tolist()
    ends = [*class_starts.tolist()[1:], len(values)]
    return [tuple(values[start:end]) for start, end in zip(class_starts.tolist(), ends, strict=True)]


_MARGIN = 0.1
"""Distance of values beyond a shared end, as a share of the range: they are few, and best among themselves."""


def encode_column(
    name: str, column: pa.ChunkedArray, k: int, people: Ints | None, tree: HierarchyTable | None, weight: float
) -> LabelCoding:
    """Encode a column, such that k people share what is published of a value: a part of numbers, a category's name.

    `tree` is its hierarchy, if it has one, and `weight` what a class loses that says nothing about the column.
    """
    if tree is None and (is_number(column.type) or is_time(column.type)):

        def cut(known: Floats, is_known: Bools) -> tuple[NumberSupport, NumberParts]:
            persons = None if people is None else people[is_known]
            support = find_support(column.type, known, k, persons)
            return support, cut_column(known, k, support, persons)

        return _encode_numbers(name, column, weight, cut)
    leaves = _read_leaves(name, column, Holders(np.ones(len(column), np.int64), people))
    return _encode_sets(name, leaves, k, weight) if tree is None else _encode_tree(name, leaves, tree, k, weight)


def encode_values(
    name: str, values: pa.ChunkedArray, rows: Ints, people: Ints, k: int, tree: HierarchyTable | None, weight: float
) -> LabelCoding:
    """Encode a column that is not here by its different values; `Coding.of` then encodes some of its rows.

    `rows` and `people` count those that have each value. Where people have several rows, parts of numbers would count
    some of them twice: these are for `encode_column`.
    """
    if tree is None and (is_number(values.type) or is_time(values.type)):

        def cut(known: Floats, is_known: Bools) -> tuple[NumberSupport, NumberParts]:
            of_known = people[is_known]
            support = find_support(values.type, known, k, None, of_known)
            is_enough = of_known.sum() >= k  # else there is one part, which is never released without NULLs
            return support, cut_counts(known, of_known, k, support) if is_enough else cut_column(known, k, support)

        return _encode_numbers(name, values, weight, cut)
    leaves = _read_leaves(name, values, Holders(rows))
    leaves = replace(leaves, people=np.bincount(leaves.codes, people, len(leaves.rows)).astype(np.int64))
    return _encode_sets(name, leaves, k, weight) if tree is None else _encode_tree(name, leaves, tree, k, weight)


def _read_leaves(name: str, column: pa.ChunkedArray, holders: Holders) -> TextLeaves:
    return make_null_leaves(holders) if column.null_count == len(column) else read_text_leaves(name, column, holders)


def _encode_numbers(
    name: str, column: pa.ChunkedArray, weight: float, cut: Callable[[Floats, Bools], tuple[NumberSupport, NumberParts]]
) -> NumberCoding:
    """Encode a column by the parts that it is cut into, given its numbers and which values are known.

    People beyond an end that k others share have a code of their own: the labels of the k stay as they are, and only
    classes that hold such a person are open.
    """
    known, is_known, scale = take_exact_numbers(name, column)
    if not len(known):
        none, codes = np.zeros(0), np.zeros(len(column), np.int32)
        return NumberCoding(name, NumberColumn(none, none, True, weight), codes, none, none, scale, column.type, None)
    support, parts = cut(known + 0.0, is_known)  # -0.0 + 0.0 is 0.0
    span = support.high - support.low
    beyond = _MARGIN * span or 1.0
    ends = [support.low - beyond] * support.is_shared[0], [support.high + beyond] * support.is_shared[1]
    lower, upper = (np.concatenate([ends[0], inner, ends[1]]) for inner in (parts.lower, parts.upper))
    seen = NumberColumn(lower, upper, column.null_count > 0, weight, span or beyond)
    return NumberCoding(name, seen, np.zeros(0, np.int32), lower, upper, scale, column.type, support).of(column)


def _encode_sets(name: str, leaves: TextLeaves, k: int, weight: float) -> SetCoding:
    """Encode values by how frequent they are; those of fewer than k people, NULL too, are pooled as the last code."""
    is_pooled = leaves.people < k
    by_rows = np.lexsort((np.arange(len(leaves.rows)), -leaves.rows))
    named = by_rows[~is_pooled[by_rows]]
    code_of_leaf = np.full(len(leaves.rows), len(named), np.int32)
    code_of_leaf[named] = np.arange(len(named))
    values = [leaves.texts[leaf] if leaf < leaves.size else None for leaf in named.tolist()]
    pooled = int(is_pooled.sum())
    column = SetColumn(len(values) + (pooled > 0), max(pooled, 1), weight)
    return SetCoding(name, column, code_of_leaf[leaves.codes], values, pooled > 0)


def _encode_tree(name: str, leaves: TextLeaves, tree: HierarchyTable, k: int, weight: float) -> TreeCoding:
    """Encode values in an order in which those below any node follow each other, more frequent nodes first."""
    paths: list[tuple[str, ...] | None] = [tree.path(text) for text in leaves.texts]
    paths += [None] * leaves.has_null
    rows_below: dict[tuple[int, str], int] = {}
    for path, rows in zip(paths, leaves.rows.tolist(), strict=True):
        for node in enumerate(path or ()):
            rows_below[node] = rows_below.get(node, 0) + rows

    def sort_key(leaf: int) -> list[tuple[int, str]]:
        nodes = list(enumerate(paths[leaf] or ()))[::-1]
        return [(-rows_below[node], node[1]) for node in nodes] or [(-int(leaves.rows[leaf]), "")]

    order = sorted(range(len(paths)), key=sort_key)
    code_of_leaf = np.empty(len(paths), np.int32)
    code_of_leaf[order] = np.arange(len(order))
    in_order = [paths[leaf] for leaf in order]
    column = TreeColumn(_count_gaps(in_order), weight)
    values = [*leaves.texts, *([None] * leaves.has_null)]
    named = {value for value, people in zip(values, leaves.people.tolist(), strict=True) if people >= k}
    releasable = named.union(tree.leaves)
    listed = [label_entry(value) for value in sorted(value for value in releasable if value is not None)]
    everything = [*listed, *([None] * (None in named))]
    if not releasable.issuperset(values):
        everything.append(label_rest(releasable))
    codes = code_of_leaf[leaves.codes]
    return TreeCoding(name, column, codes, in_order, tree.root, _list_leaves_below(tree), everything)


def _count_gaps(paths: list[tuple[str, ...] | None]) -> Ints:
    """Count the values below the common ancestor of each value and the next."""
    below: dict[tuple[str, ...], int] = {}
    for path in paths:
        for level in range(len(path or ())):
            below[path[level:]] = below.get(path[level:], 0) + 1  # type: ignore[index]
    gaps = []
    for path, following in itertools.pairwise([path or () for path in paths]):
        shared = (path[level:] for level in range(len(path)) if following and path[level:] == following[level:])
        gaps.append(next((below[ancestor] for ancestor in shared), len(paths)))
    return np.array(gaps, np.int64)


def _list_leaves_below(tree: HierarchyTable) -> dict[tuple[int, str], list[str]]:
    """List the hierarchy's values below each of its labels, ascending."""
    below: dict[tuple[int, str], list[str]] = {}
    for leaf in sorted(tree.leaves):
        for node in enumerate(tree.path(leaf)):
            below.setdefault(node, []).append(leaf)
    return below
