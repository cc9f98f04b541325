"""From a table's columns to codes: numbers and dates as parts, hierarchies in tree order, other values as they are."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pyarrow as pa

from duckanon._core.common.arrays import Bools, Floats, Ints, is_number, is_time
from duckanon._core.common.made_labels import listed_value, rest_label
from duckanon._core.common.values import exact_numbers
from duckanon._core.numbers.parts import Parts, column_parts, counted_parts
from duckanon._core.numbers.support import Support, column_support
from duckanon._methods.generalize.hierarchies import HierarchyTable
from duckanon._methods.generalize.leaves import Holders, TextLeaves, no_leaves, text_leaves
from duckanon._methods.recode.coding import Coding, NumberCoding, SetCoding, TreeCoding
from duckanon._methods.recode.column_losses import Numbers, Tree, Values

_MARGIN = 0.1
"""Distance of values beyond a shared end, as a share of the range: they are few, and best among themselves."""


def encoded(
    name: str, column: pa.ChunkedArray, k: int, people: Ints | None, tree: HierarchyTable | None, weight: float
) -> Coding:
    """Encode a column, such that k people share what is published of a value: a part of numbers, a category's name.

    `tree` is its hierarchy, if it has one, and `weight` what a class loses that says nothing about the column.
    """
    if tree is None and (is_number(column.type) or is_time(column.type)):

        def cut(known: Floats, is_known: Bools) -> tuple[Support, Parts]:
            whose = None if people is None else people[is_known]
            support = column_support(column.type, known, k, whose)
            return support, column_parts(known, k, support, whose)

        return _numbers(name, column, weight, cut)
    leaves = _leaves(name, column, Holders(np.ones(len(column), np.int64), people))
    return _values(name, leaves, k, weight) if tree is None else _hierarchy(name, leaves, tree, k, weight)


def encoded_values(
    name: str, values: pa.ChunkedArray, rows: Ints, people: Ints, k: int, tree: HierarchyTable | None, weight: float
) -> Coding:
    """Encode a column that is not here by its different values; `Coding.of` then encodes some of its rows.

    `rows` and `people` count those that have each value. Where people have several rows, parts of numbers would count
    some of them twice: these are for `encoded`.
    """
    if tree is None and (is_number(values.type) or is_time(values.type)):

        def cut(known: Floats, is_known: Bools) -> tuple[Support, Parts]:
            of_known = people[is_known]
            support = column_support(values.type, known, k, None, of_known)
            is_enough = of_known.sum() >= k  # else there is one part, which is never released without NULLs
            return support, counted_parts(known, of_known, k, support) if is_enough else column_parts(known, k, support)

        return _numbers(name, values, weight, cut)
    leaves = _leaves(name, values, Holders(rows))
    leaves = replace(leaves, people=np.bincount(leaves.codes, people, len(leaves.rows)).astype(np.int64))
    return _values(name, leaves, k, weight) if tree is None else _hierarchy(name, leaves, tree, k, weight)


def _leaves(name: str, column: pa.ChunkedArray, holders: Holders) -> TextLeaves:
    return no_leaves(holders) if column.null_count == len(column) else text_leaves(name, column, holders)


def _numbers(
    name: str, column: pa.ChunkedArray, weight: float, cut: Callable[[Floats, Bools], tuple[Support, Parts]]
) -> NumberCoding:
    """Encode a column by the parts that it is cut into, given its numbers and which values are known.

    People beyond an end that k others share have a code of their own: the labels of the k stay as they are, and only
    classes that hold such a person are open.
    """
    known, is_known, scale = exact_numbers(name, column)
    if not len(known):
        none, codes = np.zeros(0), np.zeros(len(column), np.int32)
        return NumberCoding(name, Numbers(none, none, True, weight), codes, none, none, scale, column.type, None)
    support, parts = cut(known + 0.0, is_known)  # -0.0 + 0.0 is 0.0
    span = support.high - support.low
    beyond = _MARGIN * span or 1.0
    ends = [support.low - beyond] * support.is_shared[0], [support.high + beyond] * support.is_shared[1]
    lower, upper = (np.concatenate([ends[0], own, ends[1]]) for own in (parts.lower, parts.upper))
    seen = Numbers(lower, upper, column.null_count > 0, weight, span or beyond)
    return NumberCoding(name, seen, np.zeros(0, np.int32), lower, upper, scale, column.type, support).of(column)


def _values(name: str, leaves: TextLeaves, k: int, weight: float) -> SetCoding:
    """Encode values by how frequent they are; those of fewer than k people, NULL too, are pooled as the last code."""
    is_pooled = leaves.people < k
    by_rows = np.lexsort((np.arange(len(leaves.rows)), -leaves.rows))
    named = by_rows[~is_pooled[by_rows]]
    code_of_leaf = np.full(len(leaves.rows), len(named), np.int32)
    code_of_leaf[named] = np.arange(len(named))
    values = [leaves.texts[leaf] if leaf < leaves.size else None for leaf in named.tolist()]
    pooled = int(is_pooled.sum())
    column = Values(len(values) + (pooled > 0), max(pooled, 1), weight)
    return SetCoding(name, column, code_of_leaf[leaves.codes], values, pooled > 0)


def _hierarchy(name: str, leaves: TextLeaves, tree: HierarchyTable, k: int, weight: float) -> TreeCoding:
    """Encode values in an order in which those below any node follow each other, more frequent nodes first."""
    paths: list[tuple[str, ...] | None] = [tree.path(text) for text in leaves.texts]
    paths += [None] * leaves.has_null
    rows_below: dict[tuple[int, str], int] = {}
    for path, rows in zip(paths, leaves.rows.tolist(), strict=True):
        for node in enumerate(path or ()):
            rows_below[node] = rows_below.get(node, 0) + rows

    def place(leaf: int) -> list[tuple[int, str]]:
        nodes = list(enumerate(paths[leaf] or ()))[::-1]
        return [(-rows_below[node], node[1]) for node in nodes] or [(-int(leaves.rows[leaf]), "")]

    order = sorted(range(len(paths)), key=place)
    code_of_leaf = np.empty(len(paths), np.int32)
    code_of_leaf[order] = np.arange(len(order))
    in_order = [paths[leaf] for leaf in order]
    column = Tree(_gaps(in_order), weight)
    values = [*leaves.texts, *([None] * leaves.has_null)]
    named = {value for value, people in zip(values, leaves.people.tolist(), strict=True) if people >= k}
    releasable = named.union(tree.leaves)
    listed = [listed_value(value) for value in sorted(value for value in releasable if value is not None)]
    everything = [*listed, *([None] * (None in named))]
    if not releasable.issuperset(values):
        everything.append(rest_label(releasable))
    codes = code_of_leaf[leaves.codes]
    return TreeCoding(name, column, codes, in_order, tree.root, _leaves_below(tree), everything)


def _gaps(paths: list[tuple[str, ...] | None]) -> Ints:
    """Count the values below the common ancestor of each value and the next."""
    below: dict[tuple[str, ...], int] = {}
    for path in paths:
        for level in range(len(path or ())):
            below[path[level:]] = below.get(path[level:], 0) + 1  # type: ignore[index]
    gaps = []
    for one, other in itertools.pairwise(paths):
        shared = (one[level:] for level in range(len(one)) if other and one[level:] == other[level:]) if one else ()
        gaps.append(next((below[path] for path in shared), len(paths)))
    return np.array(gaps, np.int64)


def _leaves_below(tree: HierarchyTable) -> dict[tuple[int, str], list[str]]:
    """List the hierarchy's values below each of its labels, ascending."""
    below: dict[tuple[int, str], list[str]] = {}
    for leaf in sorted(tree.leaves):
        for node in enumerate(tree.path(leaf)):
            below.setdefault(node, []).append(leaf)
    return below
