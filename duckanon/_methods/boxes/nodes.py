"""Nodes of the tree that cuts a table into boxes: many nodes at once, in flat arrays.

Every column keeps its own order of the records, by node and by value within the node.  So the ends of a node, the
values at a cut and the sums left of a cut are read off, and a cut only moves records: the left parts of all nodes come
first, the right parts after them, and no order has to be sorted again. The values of a box that are far enough apart
are counted, and not assumed (l-diversity). `Boxes` is what is left in the end: the box of each record, and its ends.

References:
    REFERENCES.md, Boxes, point 7 (counting of l-diversity).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from duckanon._core.common.arguments import refuse_unless
from duckanon._core.common.arrays import Bools, Floats, Ints
from duckanon._core.common.rules import OneOf
from duckanon._core.numbers.ends import round_outward
from duckanon._methods.boxes.shaping import Sensitivities


class Points(NamedTuple):
    """Records to be put into boxes.

    The weights are the sensitivities a_i(x) of the records (Fuzzy Boxes, Section II), one number where it is the same
    for all. The parts are the lower and the upper ends of the part that each record lies in: boxes are made of whole
    parts, and as wide as these; None where every value is a part of its own.
    """

    values: Sequence[Floats]  # the columns that shape the boxes come first; those that only have to be diverse follow
    weights: Sequence[Floats | float]  # of the shaping columns
    people: Ints | None = None
    parts: Sequence[tuple[Floats, Floats]] | None = None  # of the shaping columns
    tiles: bool = False  # whether the widths of cells count, which reach to their neighbours, not those of the records

    @property
    def shaping(self) -> int:
        """The number of columns that shape the boxes."""
        return len(self.weights)

    def ends(self, column: int) -> tuple[Floats, Floats]:
        """Return the lower and the upper end of each record's part, or its value as both."""
        return (self.values[column], self.values[column]) if self.parts is None else self.parts[column]

    def take(self, rows: Ints | slice) -> Points:
        """Return the records with these indices."""
        weights = [w if isinstance(w, float) else w[rows] for w in self.weights]
        people = None if self.people is None else self.people[rows]
        parts = None if self.parts is None else [(low[rows], high[rows]) for low, high in self.parts]
        return Points([v[rows] for v in self.values], weights, people, parts, self.tiles)


class Nodes(NamedTuple):
    """Nodes of the tree, with their records."""

    orders: list[Ints]  # by column: the records by node, and by the column's value within a node; last of all by person
    sizes: Ints
    roots: Ints  # the node of an earlier level that each comes from
    lower: Floats  # the cells, nodes by shaping columns: the ends of the nodes as the cuts made them
    upper: Floats

    @property
    def starts(self) -> Ints:
        """The indices at which the records of each node begin."""
        starts: Ints = self.sizes.cumsum() - self.sizes
        return starts

    def keep(self, chosen: Bools) -> Nodes:
        """Return the chosen nodes."""
        if chosen.all():
            return self
        records = chosen.repeat(self.sizes)
        orders = [order.compress(records) for order in self.orders]
        return Nodes(orders, self.sizes[chosen], self.roots[chosen], self.lower[chosen], self.upper[chosen])

    def leaves(self) -> Leaves:
        """Return the nodes as boxes that are done."""
        return Leaves(self.orders[0], *self[1:])


class Leaves(NamedTuple):
    """Boxes that are done; `records` has the records of one box after the other."""

    records: Ints
    sizes: Ints
    roots: Ints
    lower: Floats
    upper: Floats

    def keep(self, chosen: Bools) -> Leaves:
        """Return the chosen boxes."""
        if chosen.all():
            return self
        records = self.records.compress(np.repeat(chosen, self.sizes))
        return Leaves(records, self.sizes[chosen], self.roots[chosen], self.lower[chosen], self.upper[chosen])


def sort_by_value(columns: Sequence[Floats]) -> Ints:
    """Sort records by the first column, equal ones by the second, and so on.

    Faster than `np.lexsort`, as few records are equal in most tables.

    Examples:
        >>> sort_by_value([np.array([2.0, 1.0, 2.0]), np.array([5.0, 9.0, 4.0])]).tolist()
        [1, 2, 0]
    """
    order: Ints = np.argsort(columns[0])
    first = columns[0].take(order)
    if (first[1:] != first[:-1]).all():
        return order
    run = _number_runs(first)
    for values in columns[1:]:
        if run[-1] == len(order) - 1:
            break
        tied = np.zeros(len(order), dtype=np.bool_)
        np.equal(run[1:], run[:-1], out=tied[1:])
        tied[:-1] |= tied[1:]
        rows = np.flatnonzero(tied)
        records = order[rows]
        tied_values = values.take(records)
        by_value = np.argsort(tied_values)
        tied_values = tied_values[by_value]
        # Run and rank of the value in one number, as sorting one number is fast.
        key = np.empty(len(rows), dtype=np.int64)
        key[by_value] = _number_runs(tied_values)
        key += run[rows] * len(order)
        by_key = np.argsort(key)
        order[rows] = records[by_key]
        key = key[by_key]
        step = np.concatenate([[True], run[1:] != run[:-1]])
        step[rows[1:]] |= key[1:] != key[:-1]
        run = np.cumsum(step) - 1
    return order


def _number_runs(sorted_values: Floats) -> Ints:
    """Return the number of the run of equal values that each value belongs to, from 0."""
    return np.concatenate([[0], np.cumsum(sorted_values[1:] != sorted_values[:-1])])


def make_roots(points: Points, sizes: Ints, lower: Floats, upper: Floats) -> Nodes:
    """Make nodes of records that come one node after the other, with the cells from `lower` to `upper`."""
    ends = np.cumsum(sizes)
    orders: list[Ints] = []
    for values in points.values if points.people is None else [*points.values, points.people]:
        pieces = []
        for start, end in zip(ends - sizes, ends, strict=True):
            piece = values[start:end]
            ascending = bool((piece[1:] >= piece[:-1]).all())  # true of the column that the table is sorted by
            pieces.append(np.arange(start, end) if ascending else start + np.argsort(piece))
        orders.append(np.concatenate(pieces))
    return Nodes(orders, sizes, np.arange(len(sizes), dtype=np.int64), lower, upper)


def split_nodes(points: Points, nodes: Nodes, column: Ints, cuts: Ints, final: bool = False) -> Nodes:
    """Cut every node once, and return the left parts of all nodes, then their right parts.

    `cuts` says where in the order of the column that is cut the right part begins; a cut at the end of the node leaves
    the node as it is. If the parts are `final`, they are boxes, for which the order of one column is enough.
    """
    starts = nodes.starts
    right = _mark_right(nodes, column, cuts, starts + nodes.sizes - cuts, len(points.values[0]))
    orders: list[Ints] = []
    for order in nodes.orders[:1] if final else nodes.orders:
        goes_right = right.take(order)
        # Compress is several times faster than indexing with a mask that has no pattern.
        orders.append(np.concatenate([order.compress(~goes_right), order.compress(goes_right)]))
    left_sizes = cuts - starts
    cut = left_sizes < nodes.sizes
    numbers = np.concatenate([np.arange(len(cuts)), cut.nonzero()[0]])
    lower, upper = nodes.lower.take(numbers, axis=0), nodes.upper.take(numbers, axis=0)
    right_number = cut.cumsum() + (len(cuts) - 1)
    for j in range(points.shaping):
        of_column = (cut & (column == j)).nonzero()[0]
        if not len(of_column):
            continue
        at = cuts[of_column]
        lower_ends, upper_ends = points.ends(j)
        middle = find_middle(upper_ends[nodes.orders[j][at - 1]], lower_ends[nodes.orders[j][at]])
        upper[of_column, j] = middle
        lower[right_number[of_column], j] = middle
    sizes = np.concatenate([left_sizes, (nodes.sizes - left_sizes)[cut]])
    return Nodes(orders, sizes, nodes.roots.take(numbers), lower, upper)


def _mark_right(nodes: Nodes, column: Ints, cuts: Ints, lengths: Ints, records: int) -> Bools:
    """Tell for every record whether it lies right of its node's cut (False for records of no node).

    `lengths` are the numbers of records of the right sides.
    """
    right = np.zeros(records, dtype=np.bool_)
    for j, order in enumerate(nodes.orders):
        of_column = (column == j).nonzero()[0]
        if len(of_column):
            # The ranges of indices from each cut to the end of its node, one after the other.
            ranges = lengths.take(of_column)
            firsts = (cuts.take(of_column) - (ranges.cumsum() - ranges)).repeat(ranges)
            right[order.take(firsts + np.arange(len(firsts)))] = True
    return right


def find_middle(below: Floats | np.float64, above: Floats | np.float64) -> Floats:
    """Return the middle of two values, or the upper one where rounding makes the middle equal to the lower one."""
    middle = below / 2 + above / 2
    between: Floats = np.where((middle > below) & (middle <= above), middle, above)
    return between


def sum_segments(weight: Floats | float, order: Ints, starts: Ints, sizes: Ints) -> Floats:
    """Sum the sensitivities of one column over segments of an order that follow each other without a gap."""
    if isinstance(weight, float):
        return weight * sizes.astype(np.float64)
    sums: Floats = np.add.reduceat(weight.take(order), starts)
    return sums


def measure_costs(points: Points, nodes: Nodes) -> Floats:
    """Sum a_i times half the width over the records and columns of each node: N Delta of Fuzzy Boxes, Section II."""
    starts = nodes.starts
    last = starts + nodes.sizes - 1
    costs = np.zeros(len(starts))
    for j, (weight, order) in enumerate(zip(points.weights, nodes.orders, strict=False)):
        sums = sum_segments(weight, order, starts, nodes.sizes)
        low, high = nodes.lower[:, j], nodes.upper[:, j]
        if not points.tiles:
            lower_ends, upper_ends = points.ends(j)
            low, high = lower_ends[order[starts]], upper_ends[order[last]]
        costs += sums * (high / 2 - low / 2)
    return costs


def count_spread_values(sorted_values: Floats, starts: Ints, sizes: Ints, epsilon: float, at_most: int) -> Ints:
    """Count in every segment the values that are pairwise at least epsilon apart, up to `at_most`.

    Taking the smallest value, then the next one that is far enough, and so on, gives the largest number. One step of
    all segments is one bisection of all segments. The segments follow each other, ascending within a segment, and none
    is empty; an epsilon of 0 asks only that values differ.

    Examples:
        >>> values = np.array([1.0, 2.0, 4.0, 7.0])
        >>> count_spread_values(values, np.array([0]), np.array([4]), epsilon=2, at_most=9).tolist()
        [3]
    """
    ends = starts + sizes
    counts = np.ones(len(starts), dtype=np.int64)
    current = sorted_values[starts]
    open_segments = np.arange(len(starts))
    position = starts.copy()  # of the value taken last
    for _ in range(at_most - 1):
        low, high = position[open_segments] + 1, ends[open_segments]
        value = current[open_segments]
        while (low < high).any():
            middle = np.minimum((low + high) // 2, ends[open_segments] - 1)
            probe = sorted_values[middle]
            far = (probe > value) & (probe - value >= epsilon)
            running = low < high
            high = np.where(running & far, middle, high)
            low = np.where(running & ~far, middle + 1, low)
        has_next = low < ends[open_segments]
        open_segments, low = open_segments[has_next], low[has_next]
        if not len(open_segments):
            break
        counts[open_segments] += 1
        position[open_segments] = low
        current[open_segments] = sorted_values[low]
    return counts


def is_diverse(
    values: Sequence[Floats],
    orders: Sequence[Ints],
    starts: Ints,
    sizes: Ints,
    l: int,  # noqa: E741 - the papers' name
    epsilon: Sequence[float],
) -> Bools:
    """Tell for every segment whether each column has at least l values at least its epsilon apart.

    `orders` has for each column the records by segment, and by the column's value within a segment; none is empty.
    """
    good = np.ones(len(starts), dtype=np.bool_)
    for column, order, distance in zip(values, orders, epsilon, strict=True):
        good &= count_spread_values(column[order], starts, sizes, distance, l) >= l
    return good


KINDS = ("parts", "cell", "bounds", "rounded")


@dataclass(frozen=True)
class Boxes:
    """Records in boxes; pairs of ends are boxes by columns."""

    names: tuple[str, ...]  # of the columns
    box: Ints  # the number of each record's box, from 0
    counts: Ints  # of the records of each box
    bounds: tuple[Floats, Floats]  # the smallest and the largest value of the records
    cell: tuple[Floats, Floats]  # which tile the space between the data's extremes: cuts lie midway between neighbours
    sensitivities: Sensitivities  # what shaped the boxes
    parts: tuple[Floats, Floats] | None = None  # of the parts of columns that a box is made of, if it is made of them
    open_ends: tuple[Bools, Bools] | None = None  # which of these are of an outermost part, far beyond the rest

    def intervals(self, kind: str = "parts") -> tuple[Floats, Floats]:
        """Return lower and upper ends, boxes by columns; `kind` is one of `KINDS`."""
        refuse_unless(OneOf(*KINDS), "kind", kind)
        if kind == "parts" and self.parts is None:
            raise ValueError("kind must be 'parts' when the boxes are made, too.")
        if kind == "rounded":  # the bounds, grown outward to readable numbers
            return round_outward(*self.bounds)
        ends: tuple[Floats, Floats] = getattr(self, kind)
        return ends

    def uncertainty(self, kind: str = "bounds") -> float:
        """Return the linear half-width Delta of Fuzzy Boxes, Section II, with the derivatives at the boxes' midpoints.

        For one statistic it is its half-width over the desired accuracy; for several the mean of that (equation 4).
        """
        return self.uncertainty_of(*self.intervals(kind))

    def uncertainty_of(self, lower: Floats, upper: Floats) -> float:
        """Return the same for other ends, boxes by columns."""
        middle = lower / 2 + upper / 2
        weights = self.sensitivities.at(list(middle.T))
        half = upper / 2 - lower / 2
        return float(sum((self.counts * w * half[:, j]).sum() for j, w in enumerate(weights)) / self.counts.sum())
