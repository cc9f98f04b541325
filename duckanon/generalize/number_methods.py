"""How columns of numbers and dates can be made coarser: intervals, steps, the calendar."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from duckanon.common import labels
from duckanon.common.arrays import Floats, Ints
from duckanon.common.labels import MICROSECONDS_PER_DAY
from duckanon.common.runs import run_starts
from duckanon.common.values import exact_numbers, is_time_scale
from duckanon.generalize.hierarchies import ROOT, tree_of
from duckanon.generalize.leaves import DayLeaves, NumberLeaves
from duckanon.generalize.methods import NO_GROUP, Bucket, Coarsening
from duckanon.generalize.recoding.columns import Levels, Ordered
from duckanon.generalize.recoding.outcome import ColumnRecoding


class Intervals(Coarsening):
    """Numbers and dates in contiguous runs.

    Two runs are parted at the roundest number between their values, which is one of these only if at least k people
    have it.

    Parameters
    ----------
    column
        The numbers.
    k
        How many people make a value one that may be named.
    """

    method = "interval"

    def __init__(self, column: NumberLeaves, k: int) -> None:
        super().__init__(column)
        self.numbers = column
        self.is_shared = column.people >= k
        self.unit = _unit(column)
        self._cut_of_leaf: dict[int, float] = {}
        # A whole number that is alone at an end is a code, and is named so: 1, not "<2". Beyond it there is nothing.
        self.names_ends = tuple(
            bool(self.is_shared[end]) and (column.scale.is_whole or column.size == 1) for end in (0, column.size - 1)
        )
        self.structure = Ordered(column.positions, self._ends, (self.names_ends[0], self.names_ends[1]))

    def _cuts(self, leaves: Ints) -> list[float]:
        """Return where a run that begins with each of these leaves is cut off from the one before."""
        positions, scale = self.numbers.positions, self.numbers.scale
        for leaf in leaves.tolist():
            if leaf not in self._cut_of_leaf:
                low, high = float(positions[leaf - 1]), float(positions[leaf])
                self._cut_of_leaf[leaf] = scale.cut(low, high, bool(self.is_shared[leaf]))
        return [self._cut_of_leaf[leaf] for leaf in leaves.tolist()]

    def _ends(self, leaves: Ints) -> tuple[Floats, Floats]:
        cuts = np.array(self._cuts(leaves), dtype=np.float64)
        if not self.unit:
            return cuts, cuts
        firsts: Floats = np.ceil(cuts / self.unit) * self.unit
        return firsts - self.unit, firsts

    def codes_of(self, name: str, column: pa.ChunkedArray) -> Ints:
        """Return the leaf whose runs hold each value: between two leaves, which side of their cut it is on."""
        known, is_known, _ = exact_numbers(name, column)
        positions = self.numbers.positions
        above = np.searchsorted(positions, known)  # the first leaf that is not smaller
        between = (above > 0) & (above < self.column.size)
        between[between] &= positions[above[between]] != known[between]
        leaf = np.minimum(above, self.column.size - 1)
        cut_leaves, which = np.unique(above[between], return_inverse=True)
        cuts = np.array(self._cuts(cut_leaves), dtype=np.float64)[which.reshape(-1)]
        leaf[between] -= ~(known[between] >= cuts)
        # What is beside an end that is named is called so only where the end is not alone.
        for end, is_named in zip((0, self.column.size - 1), self.names_ends, strict=True):
            leaf[(leaf == end) & (known != positions[end]) & is_named] = -1
        codes = np.full(len(is_known), self.column.size if self.column.has_null else -1, np.int64)
        codes[is_known] = leaf
        return codes

    def _known_buckets(self, groups: ColumnRecoding) -> Iterable[tuple[int, Bucket]]:
        scale, positions = self.numbers.scale, self.numbers.positions
        group_of_leaf = self._known_groups(groups)
        starts = run_starts(group_of_leaf)
        cuts = self._cuts(starts[1:])
        names, edges = labels.of_runs(scale, cuts), [-math.inf, *cuts, math.inf]
        spans = list(itertools.pairwise(edges))
        is_alone = np.diff(np.append(starts, self.column.size)) == 1
        for end in (0, -1):
            if is_alone[end] and self.names_ends[end] and (len(starts) > 1 or self.column.size == 1):
                value = float(positions[end])
                names[end], spans[end] = scale.text(value), (value, scale.after(value))
        yield from _with_gaps(scale, groups.rest, group_of_leaf[starts], spans, names)


class Steps(Coarsening):
    """Numbers rounded down to steps of 1, 2, 5 times a power of ten: one step for the whole column."""

    method = "round"

    def __init__(self, column: NumberLeaves) -> None:
        super().__init__(column)
        self.numbers = column
        positions = column.positions
        self.span = float(positions[-1] - positions[0]) or 1.0
        self.steps = [step for step in labels.round_steps(positions) if step < self.span]
        self.step_numbers = [labels.step_numbers(positions, step) for step in self.steps]
        maps = [np.unique(numbers_, return_inverse=True)[1].astype(np.int64) for numbers_ in self.step_numbers]
        losses = [self._losses(level) for level in range(1, 1 + len(maps))]
        none, everything = np.zeros(column.size), np.full(1, float(self._distinct_values > 1))
        identity = np.arange(column.size)
        self.structure = Levels((identity, *maps, np.zeros(column.size, np.int64)), (none, *losses, everything))

    def _losses(self, level: int) -> Floats:
        """Return what each step of a level loses: its width, as far as the column reaches."""
        starts, ends = np.array(self._spans(level)).T
        unit = _unit(self.numbers)
        if unit:
            starts, ends = np.ceil(starts / unit) * unit, (np.ceil(ends / unit) - 1) * unit
        width = np.minimum(ends, self.numbers.largest) - np.maximum(starts, self.numbers.least)
        return np.asarray(np.maximum(width, 0) / self.span, dtype=np.float64)

    def _known_buckets(self, groups: ColumnRecoding) -> Iterable[tuple[int, Bucket]]:
        group_of_leaf = self._known_groups(groups)
        scale = self.numbers.scale
        level = 0 if groups.level is None else groups.level
        if level > len(self.steps) and self.column.size > 1:
            yield int(group_of_leaf[0]), Bucket(scale.covers, None, None, ROOT)
            return
        level = level if self.column.size > 1 else 0
        spans = self._spans(level)
        firsts = run_starts(self.step_numbers[level - 1]) if level else np.arange(self.column.size)
        names = [labels.of_span(scale, *span) for span in spans]
        if level == 0:  # all values are kept: each is called by itself
            names = [scale.text(start) for start, _ in spans]
        else:
            names[0], names[-1] = labels.below(scale, spans[0][1]), labels.from_on(scale, spans[-1][0])
        yield from _with_gaps(scale, groups.rest, group_of_leaf[firsts], spans, names)

    def _spans(self, level: int) -> list[tuple[float, float]]:
        """Return from where to where each group of a level reaches; level 0 has all values."""
        if level == 0:
            return [(float(x), self.numbers.scale.after(float(x))) for x in self.numbers.positions]
        step, begins = self.steps[level - 1], np.unique(self.step_numbers[level - 1])
        starts, ends = labels.multiples(begins, step), labels.multiples(begins + 1, step)
        return list(zip(starts.tolist(), ends.tolist(), strict=True))


class Calendar(Coarsening):
    """Dates as periods of the calendar; each part of the time line at a level of its own."""

    method = "calendar"

    def __init__(self, column: DayLeaves) -> None:
        super().__init__(column)
        self.days = column
        periods = [labels.period_starts(column.days, level) for level in labels.CALENDAR]
        tree, self.node_leaf, self.node_level = tree_of(periods)
        self.structure = replace(tree, losses=self._losses())

    def _losses(self) -> Floats:
        """Return what each node loses: its period's length, as far as the column reaches."""
        first, last = self.days.first, self.days.last
        losses = np.full(len(self.node_leaf), float(self._distinct_values > 1))
        if first == last:
            losses[:-1] = 0.0
            return losses
        for level, name in enumerate(labels.CALENDAR):
            nodes = np.flatnonzero(self.node_level == level)
            starts, ends = labels.periods(self.days.days[self.node_leaf[nodes]], name)
            width = np.minimum(last, ends - (0 if self.days.has_times else 1)) - np.maximum(first, starts)
            losses[nodes] = np.maximum(width, 0) / (last - first)
        return losses

    def _known_buckets(self, groups: ColumnRecoding) -> Iterable[tuple[int, Bucket]]:
        assert groups.nodes is not None
        group_of_leaf = self._known_groups(groups)
        starts = run_starts(group_of_leaf)
        if len(starts) == 1 and self.column.size > 1:
            yield int(group_of_leaf[0]), Bucket("time", None, None, ROOT)
            return
        spans, names = [], []
        for start in starts.tolist():
            node = int(groups.nodes[group_of_leaf[start]])
            if node < 0 or self.node_level[node] == len(labels.CALENDAR):  # told of nobody: the days as they come
                node = start
            level = labels.CALENDAR[int(self.node_level[node])]
            period_start, period_end = labels.period(int(self.days.days[self.node_leaf[node]]), level)
            spans.append((float(period_start), float(period_end)))
            names.append(labels.of_period(period_start, level))
        if len(starts) > 1:
            names[0], names[-1] = "<=" + names[0], ">=" + names[-1]
        yield from _with_gaps(self.days.scale, groups.rest, group_of_leaf[starts], spans, names)


def _unit(column: NumberLeaves) -> float:
    """Return the step between neighbouring values: 1 where all are whole, a day where all are midnights, else 0."""
    unit = float(MICROSECONDS_PER_DAY) if is_time_scale(column.scale) else 1.0
    return unit if bool((column.positions % unit == 0).all()) else 0.0


def _with_gaps(
    scale: labels.Scale,
    rest: int,
    group_of_span: Ints,
    spans: Sequence[tuple[float, float]],
    names: Sequence[str],
) -> Iterable[tuple[int, Bucket]]:
    """Return a bucket for each span that is told of anybody, and one for each gap between two of them.

    Parameters
    ----------
    scale
        The column's scale.
    rest
        The group that is told of nobody.
    group_of_span, spans, names
        The group of each span of leaves, from where to where it reaches, and what it is called. The name of the first
        or the last is open where it begins with a sign, or is all; else what lies beyond it is in a gap.
    """
    told = np.flatnonzero(group_of_span != rest).tolist()
    reached: str | None = None
    for span in told:
        start, end = spans[span]
        is_open_below, is_open_above = names[span][0] in "<*", names[span][0] in ">*"
        lower = None if is_open_below else scale.text(start)
        upper = None if is_open_above else scale.text(end)
        if lower is not None and lower != reached:
            yield NO_GROUP, Bucket(scale.covers, reached, lower, ROOT)
        yield int(group_of_span[span]), Bucket(scale.covers, lower, upper, names[span])
        reached = upper
    if reached is not None or not told:
        yield NO_GROUP, Bucket(scale.covers, reached, None, ROOT)
