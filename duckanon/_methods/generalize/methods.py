"""The methods that generalize one column: what may be merged, and what the merged values are called.

A coarsening takes the leaves of a column, its distinct values, tells the search which of them may be merged, and turns
the groups of the search into the buckets of a plan. A bound is the roundest number between two values, and a value
itself only where k people share it, so that no label shows an extreme of fewer. Each method has its class:

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
import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, NamedTuple

import numpy as np
import pyarrow as pa

from duckanon._core.common import labels
from duckanon._core.common.arrays import Bools, Floats, Ints, find_run_starts, sort_distinct
from duckanon._core.common.labels import EVERYTHING, MICROSECONDS_PER_DAY, label_rest, label_value
from duckanon._core.common.values import is_time_scale, take_exact_numbers
from duckanon._methods.generalize.hierarchies import HierarchyTable, build_prefix_tree, build_tree, compute_node_losses
from duckanon._methods.generalize.leaves import DayLeaves, Leaves, NumberLeaves, TextLeaves, match_leaves
from duckanon._methods.generalize.recoding.axes import (
    ColumnRecoding,
    FlatStructure,
    LevelStructure,
    OrderedStructure,
    Structure,
)


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
    def _make_buckets(self, groups: ColumnRecoding) -> Iterable[Bucket]:
        """Return the buckets of all values but NULL."""

    def buckets(self, groups: ColumnRecoding) -> list[Bucket]:
        """Turn the groups of the column's leaves into the rows of a plan.

        There is always a bucket for the rest and one, the last, for NULL. None has its rows yet.
        """
        says_nothing = self.column.has_null and len(np.unique(groups.group_of_leaf)) == 1
        buckets = self._make_buckets(groups)
        plan_rows = [bucket._replace(label=EVERYTHING) if says_nothing else bucket for bucket in buckets]
        if not any(bucket.covers == "rest" for bucket in plan_rows):
            plan_rows.append(Bucket("rest", None, None, self.root_label))
        rest_label = next(bucket.label for bucket in plan_rows if bucket.covers == "rest")
        label: str | None = self.root_label
        if self.column.has_null:
            label = rest_label if groups.group_of_leaf[-1] == groups.rest or says_nothing else None
        return [*plan_rows, Bucket("null", None, None, label)]

    def find_extremes(self, groups: ColumnRecoding) -> Bools:
        """Tell which leaves lie beyond a value that the others of its group would be called by, and have few people."""
        return np.zeros(len(self.column.rows), bool)

    def find_codes(self, name: str, column: pa.ChunkedArray) -> Ints:
        """Return the leaf that each value of another table's column will be called as; -1 where that is not known."""
        return match_leaves(self.column, name, column)

    def _select_groups(self, groups: ColumnRecoding) -> Ints:
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
        tree, _, _ = build_prefix_tree(self.column.texts)
        return replace(tree, losses=compute_node_losses(tree, self._distinct_values))

    def _make_buckets(self, groups: ColumnRecoding) -> Iterable[Bucket]:
        # labels are filled up to the length that k people's codes have at least: no person makes all labels longer
        lengths = np.array([len(text) for text in self.column.texts])
        order = np.argsort(-lengths, kind="stable")
        reached = int(np.searchsorted(np.cumsum(self.column.people[: self.column.size][order]), self.k))
        length = int(lengths[order[min(reached, len(order) - 1)]])
        for group, first, last in _find_group_ends(self._select_groups(groups)):
            if group != groups.rest:
                low, high = self.column.texts[first], self.column.texts[last]  # the texts are sorted
                differs = (index for index, pair in enumerate(zip(low, high, strict=False)) if pair[0] != pair[1])
                prefix = low[: next(differs, len(low))]
                stars = EVERYTHING * (length - len(prefix))
                label = prefix + stars if stars else label_value(prefix)
                yield Bucket("prefix", prefix, None, label if prefix else EVERYTHING)


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
        tree, _, _ = build_tree(levels)
        losses = compute_node_losses(tree, self._distinct_values)
        if self.root_label != EVERYTHING:  # it says that a value is not NULL, and one that the hierarchy knows
            known = sum(text in self.hierarchy.leaves for text in self.column.texts)
            losses[-1] = max(known - 1, 0) / max(self._distinct_values - 1, 1)
        return replace(tree, losses=losses)

    def _make_buckets(self, groups: ColumnRecoding) -> Iterable[Bucket]:
        group_of_text = dict(zip(self.column.texts, self._select_groups(groups).tolist(), strict=True))
        label_of_group, label_of_node = {groups.rest: self.root_label}, {}
        texts_of_group: dict[int, list[str]] = {}
        for text, group in group_of_text.items():
            texts_of_group.setdefault(group, []).append(text)
        for group, texts in texts_of_group.items():
            if group != groups.rest:
                level, label = self._find_node(texts)
                label_of_group[group] = label_of_node[level, label] = label if level else label_value(label)
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

    def _find_node(self, texts: Sequence[str]) -> tuple[int, str]:
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
        return FlatStructure(self.column.size)

    def _make_buckets(self, groups: ColumnRecoding) -> Iterable[Bucket]:
        is_kept = self._select_groups(groups) != groups.rest
        is_null_merged = self.column.has_null and int(groups.group_of_leaf[-1]) == groups.rest
        if (~is_kept).sum() == 1 and is_kept.any() and not is_null_merged:
            is_kept = np.ones_like(is_kept)  # the only one of the others that is left is itself
        kept = [text for text, stays in zip(self.column.texts, is_kept.tolist(), strict=True) if stays]
        for text in kept:
            yield Bucket("value", text, text, label_value(text))
        pairs = zip(self.column.texts, self.column.people.tolist(), strict=False)
        label = label_rest([text for text, people in pairs if people >= self.k])
        yield Bucket("rest", None, None, label if kept else EVERYTHING)


def _find_group_ends(group_of_leaf: Ints) -> list[tuple[int, int, int]]:
    """Return each group with the first and the last of its leaves, in the order of the first."""
    groups, first, which = np.unique(group_of_leaf, return_index=True, return_inverse=True)
    last = np.zeros_like(first)
    np.maximum.at(last, which.reshape(-1), np.arange(len(group_of_leaf)))
    order = np.argsort(first)
    return list(zip(groups[order].tolist(), first[order].tolist(), last[order].tolist(), strict=True))


@dataclass(eq=False)
class Intervals(Coarsening):
    """Numbers and dates in contiguous runs.

    The cut between two runs is the roundest number between their values, and one of these only if k people share it.
    """

    column: NumberLeaves
    k: int
    method = "interval"

    def __post_init__(self) -> None:
        column = self.column
        self.is_shared = column.people >= self.k
        self._cut_of_leaf: dict[int, float] = {}
        # A whole number that is alone at an end is a code, and is named so: 1, not "<2". Beyond it there is nothing.
        first, last = (
            bool(self.is_shared[end]) and (column.scale.is_whole or column.size == 1) for end in (0, column.size - 1)
        )
        self.names_ends = first, last

    @cached_property
    def structure(self) -> Structure:
        """The numbers in their order; extremes of fewer than k people are never cut off from all others."""
        return OrderedStructure(self.column.inner, self._find_ends, self.names_ends)

    def _find_cuts(self, leaves: Ints) -> list[float]:
        """Return where a run that begins with each of these leaves is cut off from the one before."""
        positions, scale = self.column.positions, self.column.scale
        for leaf in leaves.tolist():
            if leaf not in self._cut_of_leaf:
                low, high = float(positions[leaf - 1]), float(positions[leaf])
                self._cut_of_leaf[leaf] = scale.cut(low, high, bool(self.is_shared[leaf]))
        return [self._cut_of_leaf[leaf] for leaf in leaves.tolist()]

    def _find_ends(self, leaves: Ints) -> tuple[Floats, Floats]:
        first, last = self.column.core
        cuts = np.full(len(leaves), np.nan)
        is_inner = (leaves > first) & (leaves <= last)
        cuts[is_inner] = self._find_cuts(leaves[is_inner])
        unit = _find_unit(self.column, self.k)
        if not unit:
            return cuts, cuts
        firsts: Floats = np.ceil(cuts / unit) * unit
        return firsts - unit, firsts

    def find_extremes(self, groups: ColumnRecoding) -> Bools:
        """Tell which leaves are beyond a whole number that is alone at an end but for them."""
        can_name = self.is_shared[: self.column.size] & self.column.scale.is_whole
        return _is_beyond_ends(self.column, self._select_groups(groups), can_name)

    def find_codes(self, name: str, column: pa.ChunkedArray) -> Ints:
        """Return the leaf whose runs hold each value: between two leaves, which side of their cut it is on."""
        known, is_known, _ = take_exact_numbers(name, column)
        positions = self.column.positions
        above = np.searchsorted(positions, known)  # the first leaf that is not smaller
        between = (above > 0) & (above < self.column.size)
        between[between] &= positions[above[between]] != known[between]
        leaf = np.minimum(above, self.column.size - 1)
        cut_leaves, which = np.unique(above[between], return_inverse=True)
        cuts = np.array(self._find_cuts(cut_leaves), dtype=np.float64)[which.reshape(-1)]
        leaf[between] -= ~(known[between] >= cuts)
        # What is beside an end that is named is called so only where the end is not alone.
        for end, is_named in zip((0, self.column.size - 1), self.names_ends, strict=True):
            leaf[(leaf == end) & (known != positions[end]) & is_named] = -1
        codes = np.full(len(is_known), self.column.size if self.column.has_null else -1, np.int64)
        codes[is_known] = leaf
        return codes

    def _make_buckets(self, groups: ColumnRecoding) -> Iterable[Bucket]:
        scale, positions = self.column.scale, self.column.positions
        group_of_leaf = self._select_groups(groups)
        starts = find_run_starts(group_of_leaf)
        all_cuts = np.array([-math.inf, *self._find_cuts(starts[1:])])
        starts = starts[~np.isnan(all_cuts)]  # where there is no number to part two runs they are one
        cuts = all_cuts[~np.isnan(all_cuts)].tolist()[1:]
        names, edges = labels.label_runs(scale, cuts), [-math.inf, *cuts, math.inf]
        spans = list(itertools.pairwise(edges))
        is_alone = np.diff(np.append(starts, self.column.size)) == 1
        for end in (0, -1):
            if is_alone[end] and self.names_ends[end] and (len(starts) > 1 or self.column.size == 1):
                value = float(positions[end])
                names[end], spans[end] = scale.text(value), (value, min(scale.after(value), spans[end][1]))
        yield from fill_gaps(scale, group_of_leaf[starts] != groups.rest, spans, names)


@dataclass(eq=False)
class Steps(Coarsening):
    """Numbers rounded down to steps of 1, 2, 5 times a power of ten: one step for the whole column."""

    column: NumberLeaves
    k: int  # people who make a value one that may be named
    steps: Sequence[float]  # those that may be taken, finest first
    method = "round"

    @classmethod
    def of(cls, column: NumberLeaves, k: int) -> Steps:
        """Take the steps that part the numbers."""
        inner = column.inner
        span = float(inner[-1] - inner[0])
        return cls(column, k, [step for step in labels.list_round_steps(sort_distinct(inner)) if step < span])

    @cached_property
    def structure(self) -> Structure:
        """All values, each of the steps, one group."""
        inner = self.column.inner
        numbers = [inner, *(labels.number_steps(inner, step) for step in self.steps)]
        maps = [np.unique(part, return_inverse=True)[1].reshape(-1).astype(np.int64) for part in numbers]
        losses = [np.zeros(int(maps[0].max()) + 1), *map(self._compute_losses, self.steps, numbers[1:])]
        everything = np.full(1, float(self._distinct_values > 1))
        return LevelStructure((*maps, np.zeros(self.column.size, np.int64)), (*losses, everything))

    def _compute_losses(self, step: float, step_numbers: Floats) -> Floats:
        """Return what each of the steps loses: its width, as far as the column reaches."""
        inner, numbers = self.column.inner, sort_distinct(step_numbers)
        starts, ends = labels.multiply_step(numbers, step), labels.multiply_step(numbers + 1, step)
        unit = _find_unit(self.column, self.k)
        if unit:
            starts, ends = np.ceil(starts / unit) * unit, (np.ceil(ends / unit) - 1) * unit
        width = np.minimum(ends, inner[-1]) - np.maximum(starts, inner[0])
        return np.asarray(np.maximum(width, 0) / (float(inner[-1] - inner[0]) or 1.0), dtype=np.float64)

    def _make_buckets(self, groups: ColumnRecoding) -> Iterable[Bucket]:
        scale, group_of_leaf = self.column.scale, self._select_groups(groups)
        starts = find_run_starts(group_of_leaf)
        level = 0 if groups.level is None or self.column.size == 1 else groups.level
        if level > len(self.steps) or (len(starts) == 1 and self.column.size > 1 and level == 0):
            yield Bucket(scale.covers, None, None, EVERYTHING)
            return
        if level == 0:
            spans = self._find_value_spans(starts)
        else:
            step = self.steps[level - 1]
            numbers = labels.number_steps(self.column.inner[starts], step)
            lows, highs = labels.multiply_step(numbers, step), labels.multiply_step(numbers + 1, step)
            spans = list(zip(lows.tolist(), highs.tolist(), strict=True))

        def name_span(start: float, end: float) -> str:
            return scale.text(start) if level == 0 else labels.label_span(scale, start, end)

        if len(starts) == 1:
            (start, end), first, last = spans[0], self.column.positions[0], self.column.positions[-1]
            name = name_span(start, end)
            names = [name if start <= first <= last < end else EVERYTHING]
        elif any(map(math.isnan, itertools.chain(*spans))):  # no number parts extremes from all others
            spans, names, starts = [(-math.inf, math.inf)], [EVERYTHING], starts[:1]
        else:  # all values are kept: each is called by itself, but for extremes
            inner = [name_span(start, end) for start, end in spans[1:-1]]
            is_single = (np.diff(np.append(starts, self.column.size)) == 1) & (level == 0)
            first_name = scale.text(spans[0][0]) if is_single[0] else labels.label_below(scale, spans[0][1])
            last_name = scale.text(spans[-1][0]) if is_single[-1] else labels.label_from(scale, spans[-1][0])
            names = [first_name, *inner, last_name]
        yield from fill_gaps(scale, group_of_leaf[starts] != groups.rest, spans, names)

    def find_extremes(self, groups: ColumnRecoding) -> Bools:
        """Tell which leaves are beyond the first or the last of values that are all kept."""
        can_name = (self.column.people[: self.column.size] >= self.k) & (groups.level == 0)
        return _is_beyond_ends(self.column, self._select_groups(groups), can_name)

    def _find_value_spans(self, starts: Ints) -> list[tuple[float, float]]:
        """Return from where to where each single value reaches; extremes are cut off as runs are."""
        scale, positions = self.column.scale, self.column.positions
        spans = [(value, scale.after(value)) for value in positions[starts].tolist()]
        for at, leaf in ((0, int(starts[min(1, len(starts) - 1)])), (-1, int(starts[-1]))):
            end = len(positions) if at else leaf
            if end - int(starts[at]) > 1 and len(starts) > 1:
                is_shared = bool(self.column.people[leaf] >= self.k)
                cut = scale.cut(float(positions[leaf - 1]), float(positions[leaf]), is_shared)
                spans[at] = (cut, math.inf) if at else (-math.inf, cut)
        return spans


def _is_beyond_ends(column: NumberLeaves, group_of_leaf: Ints, can_name: Bools) -> Bools:
    """Tell which leaves lie beyond the ends of all others and in the group of such an end alone, if it can be named."""
    result = np.zeros(len(column.rows), bool)
    first, last = column.core
    is_parted = np.append(True, group_of_leaf[1:] != group_of_leaf[:-1])  # from the leaf before
    if can_name[first] and (first == last or is_parted[first + 1]):
        result[:first] = True
    if can_name[last] and (first == last or is_parted[last]):
        result[last + 1 : column.size] = True
    return result


def _find_unit(column: NumberLeaves, k: int) -> float:
    """Return the step between neighbouring values: 1 where all are whole, a day where all are midnights, else 0.

    All are those of all but k - 1 people.
    """
    unit = float(MICROSECONDS_PER_DAY) if is_time_scale(column.scale) else 1.0
    return unit if int(column.people[: column.size][column.positions % unit != 0].sum()) < max(k, 1) else 0.0


def fill_gaps(
    scale: labels.Scale, is_used: Bools, spans: Sequence[tuple[float, float]], names: Sequence[str]
) -> Iterable[Bucket]:
    """Return a bucket for each span that is the label of somebody, and one for each gap between two of them.

    The name of the first or the last is open where it begins with a sign, or is all; else what lies beyond it is in a
    gap.
    """
    reached: str | None = None
    for index in np.flatnonzero(is_used).tolist():
        start, end = spans[index]
        is_open_below, is_open_above = names[index][0] in "<*", names[index][0] in ">*"
        lower = None if is_open_below else scale.text(start)
        upper = None if is_open_above else scale.text(end)
        if lower is not None and lower != reached:
            yield Bucket(scale.covers, reached, lower, EVERYTHING)
        yield Bucket(scale.covers, lower, upper, names[index])
        reached = upper
    if reached is not None or not is_used.any():
        yield Bucket(scale.covers, reached, None, EVERYTHING)


@dataclass(eq=False)
class Calendar(Coarsening):
    """Dates as periods of the calendar; each part of the time line at a level of its own."""

    column: DayLeaves
    method = "calendar"

    @cached_property
    def structure(self) -> Structure:
        """The periods; extremes of fewer than k people are in those of the first or the last day of all others."""
        inner = self.column.inner
        periods = [labels.find_period_starts(inner, level) for level in labels.CALENDAR]
        if self.column.core != (0, self.column.size - 1):
            periods.insert(0, self.column.positions)  # below the days, since several are one
        tree, node_leaf, node_level = build_tree(periods)
        return replace(
            tree, losses=self._compute_losses(inner[node_leaf], node_level - (len(periods) - len(labels.CALENDAR)))
        )

    def _compute_losses(self, days: Ints, levels: Ints) -> Floats:
        """Return what each node loses: its period's length, as far as the column reaches."""
        first, last = int(self.column.inner[0]), int(self.column.inner[-1]) + self.column.has_times
        losses = np.full(len(days), float(self._distinct_values > 1))
        losses[levels < 0] = 0.0
        for level, name in enumerate(labels.CALENDAR):
            nodes = np.flatnonzero(levels == level)
            starts, ends = labels.find_periods(days[nodes], name)
            width = np.minimum(last, ends - (0 if self.column.has_times else 1)) - np.maximum(first, starts)
            losses[nodes] = np.maximum(width, 0) / max(last - first, 1)
        return losses

    def _make_buckets(self, groups: ColumnRecoding) -> Iterable[Bucket]:
        group_of_leaf, inner, days = self._select_groups(groups), self.column.inner, self.column.positions
        starts = find_run_starts(group_of_leaf)
        if len(starts) == 1 and inner[0] != inner[-1]:
            yield Bucket("time", None, None, EVERYTHING)
            return
        firsts, lasts = inner[starts], inner[np.append(starts[1:], self.column.size) - 1]
        begins, ends = labels.find_periods(firsts, labels.CALENDAR[0])
        names = [labels.label_period(start, labels.CALENDAR[0]) for start in begins.tolist()]
        is_open = np.flatnonzero(firsts != lasts)  # runs for which no period was long enough so far
        for level in labels.CALENDAR[1:]:
            starts_of, ends_of = labels.find_periods(firsts[is_open], level)
            is_found = starts_of == labels.find_period_starts(lasts[is_open], level)
            for run, start, end in zip(is_open[is_found], starts_of[is_found], ends_of[is_found], strict=True):
                begins[run], ends[run], names[run] = start, end, labels.label_period(int(start), level)
            is_open = is_open[~is_found]
        is_first_open, is_last_open = (len(starts) > 1 or days[end] != inner[end] for end in (0, -1))
        if len(starts) == 1 and is_first_open and is_last_open:
            names = [EVERYTHING]
        else:
            names[0] = "<=" + names[0] if is_first_open else names[0]
            names[-1] = ">=" + names[-1] if is_last_open else names[-1]
        spans = list(zip(begins.astype(float).tolist(), ends.astype(float).tolist(), strict=True))
        yield from fill_gaps(self.column.scale, group_of_leaf[starts] != groups.rest, spans, names)
