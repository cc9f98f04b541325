"""The tree that sends rows into parts, each of which is released on its own.

It is fitted on a sample, with the cuts that boxes are made with, and written as SQL, so that any engine can route by
it. What is published of a part comes from the part's own rows; the tree's thresholds are no part of any release.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from duckanon._core.common.arrays import Floats, Ints
from duckanon._methods.boxes.blocks import Block, find_best_cut
from duckanon._methods.boxes.box_search import BoxRules
from duckanon._methods.boxes.nodes import Points, find_middle, sort_by_value

_UNEVEN = 0.02  # how much better an uneven cut must be: parts of about the same size need the least memory


class Split(NamedTuple):
    """A node of the tree: rows whose value is at most the threshold go left, all others, NULL too, go right."""

    column: str
    threshold: float
    left: Tree
    right: Tree


Tree = Split | int
"""A node, or the number of a part; parts are numbered from 0, from left to right."""


def fit_tree(
    columns: Mapping[str, Floats],
    weights: Sequence[Floats | float],
    rows: int,
    k: int,
    part_rows: int,
    l: int = 1,  # noqa: E741 - the papers' name
    epsilon: Sequence[float] | None = None,
) -> Tree:
    """Fit a tree whose parts have about so many rows, on a sample's columns of finite numbers.

    `weights` say how much the width of each column matters (`boxes.shaping.Sensitivities`): one number, or one per row.
    Each column of a part has at least `l` values that are at least its `epsilon` apart. A part of rows that nothing
    separates may have more than `part_rows`; each has rows of the sample.

    Examples:
        >>> ages = np.arange(100.0)
        >>> tree = fit_tree({"age": ages}, [1.0], rows=100, k=2, part_rows=50)
        >>> tree
        Split(column='age', threshold=49.5, left=0, right=1)
    """
    names = list(columns)
    order = sort_by_value(list(columns.values()))
    values = [columns[name].take(order) for name in names]
    in_order = [weight if isinstance(weight, float) else weight.take(order) for weight in weights]
    shaping = [column for column, weight in enumerate(in_order) if np.max(weight) > 0]
    passive = [column for column in range(len(names)) if column not in shaping] if l > 1 else []
    chosen = shaping + passive
    points = Points([values[column] for column in chosen], [in_order[column] for column in shaping])
    share = len(order) / rows
    distances = [0.0] * len(names) if epsilon is None else list(epsilon)
    is_even = all(isinstance(weight, float) for weight in points.weights)
    needed = max(1, math.ceil(k * share))  # a whole number: small nodes are cut at places that are counted by it
    rules = BoxRules(needed, l, [distances[column] for column in chosen], uneven=_UNEVEN if is_even else _UNEVEN / 4)
    most = max(2, math.floor(part_rows * share))
    parts = iter(range(len(order)))

    def grow(records: Ints) -> Tree:
        cut = _cut(points, records, rules) if shaping and len(records) > most else None
        if cut is None:
            return next(parts)
        column, left = cut
        of_column = points.values[column].take(records)
        threshold = find_middle(of_column.compress(left).max(), of_column.compress(~left).min())
        if not threshold < of_column.compress(~left).min():
            threshold = of_column.compress(left).max()
        below, above = records.compress(left), records.compress(~left)
        return Split(names[chosen[column]], float(threshold), grow(below), grow(above))

    return grow(np.arange(len(order)))


def divide_parts(tree: Tree, rows: Mapping[int, float], part_rows: int, column: str) -> Tree:
    """Divide parts that have too many rows by a column whose numbers are spread evenly between 0 and 1.

    Examples:
        >>> divide_parts(Split("age", 49.5, 0, 1), {0: 40, 1: 90}, part_rows=50, column="chance")
        Split(column='age', threshold=49.5, left=0, right=Split(column='chance', threshold=0.5, left=1, right=2))
    """
    numbers = iter(range(sum(max(1, math.ceil(count / part_rows)) for count in rows.values()) + part_count(tree)))

    def evenly(first: int, last: int, pieces: int) -> Tree:
        if last - first == 1:
            return next(numbers)
        middle = (first + last) // 2
        return Split(column, middle / pieces, evenly(first, middle, pieces), evenly(middle, last, pieces))

    def grow(node: Tree) -> Tree:
        if isinstance(node, int):
            pieces = max(1, math.ceil(rows.get(node, 0) / part_rows))
            return evenly(0, pieces, pieces)
        return Split(node.column, node.threshold, grow(node.left), grow(node.right))

    return grow(tree)


def nulls_beyond(values: Floats) -> Floats:
    """Put NULL, which is NaN, beyond all numbers, where a tree sends it."""
    known = values[~np.isnan(values)]
    if not len(known):
        return np.zeros(len(values))
    least, largest = float(known.min()), float(known.max())
    return np.where(np.isnan(values), largest + max((largest - least) / 100, 1.0), values)


def _cut(points: Points, records: Ints, rules: BoxRules) -> tuple[int, np.ndarray] | None:
    if len(records) < max(2, 2 * rules.k):
        return None
    ends = [(of_column.min(), of_column.max()) for of_column in (v.take(records) for v in points.values)]
    lower, upper = np.array(ends[: points.shaping]).T
    return find_best_cut(points, Block(records, lower, upper, False), rules)


def part_count(tree: Tree) -> int:
    """Count the parts of a tree."""
    return len(parts_of(tree))


def parts_of(tree: Tree) -> list[int]:
    """Return the numbers of a tree's parts, from left to right."""
    return [tree] if isinstance(tree, int) else [*parts_of(tree.left), *parts_of(tree.right)]


def case(tree: Tree, expressions: Mapping[str, str]) -> str:
    """Write a tree as an SQL expression whose value is the part of a row; NULL goes right.

    Examples:
        >>> case(Split("age", 49.5, 0, 1), {"age": '"age"'})
        'CASE WHEN "age" <= 49.5 THEN 0 ELSE 1 END'
    """
    if isinstance(tree, int):
        return str(tree)
    left, right = case(tree.left, expressions), case(tree.right, expressions)
    return f"CASE WHEN {expressions[tree.column]} <= {_literal(tree.threshold)} THEN {left} ELSE {right} END"


def _literal(threshold: float) -> str:
    """Write a double such that no engine reads it as a decimal of fewer digits."""
    text = repr(threshold)
    return text if "e" not in text and len(text) <= 17 else f"CAST('{text}' AS DOUBLE)"


def route_rows(tree: Tree, columns: Mapping[str, Floats]) -> Ints:
    """Return the part of each row; NaN stands for NULL."""
    parts = np.empty(len(next(iter(columns.values()))), np.int64)
    waiting = [(tree, np.arange(len(parts)))]
    while waiting:
        node, rows = waiting.pop()
        if isinstance(node, int):
            parts[rows] = node
            continue
        left = columns[node.column].take(rows) <= node.threshold
        waiting += [(node.left, rows.compress(left)), (node.right, rows.compress(~left))]
    return parts


def merge_parts(tree: Tree, counts: Mapping[int, int], k: int) -> dict[int, int]:
    """Join parts that have fewer than k people with a neighbour: return for each the one that it joins, or itself.

    `counts` are of the whole table; parts that are not named have nobody. The people of two parts may be the same, so
    that a joined part counts as many as the larger of the two.

    Examples:
        >>> merge_parts(Split("age", 49.5, 0, Split("age", 70.0, 1, 2)), {0: 10, 1: 4, 2: 50}, k=5)
        {0: 0, 1: 2, 2: 2}
    """
    joined = {part: part for part in parts_of(tree)}
    people = {part: counts.get(part, 0) for part in joined}
    if max(people.values()) < k:
        raise ValueError(f"k must be at most the number of people of some part; got {k}.")

    def settle(node: Tree) -> None:
        """Let all parts below a node have enough, if any has; the nearest that has takes the others."""
        if isinstance(node, int):
            return
        settle(node.left)
        settle(node.right)
        below = parts_of(node)
        homes = {joined[part] for part in below}
        enough = [home for home in homes if people[home] >= k]
        if not enough:
            return
        smallest = min(enough, key=lambda home: (people[home], home))
        for part in below:
            if people[joined[part]] < k:
                joined[part] = smallest

    settle(tree)
    return joined
