"""The methods for columns of numbers and dates: intervals and steps."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from duckanon._core.common import labels
from duckanon._core.common.arrays import Bools, Floats, Ints, distinct, run_starts
from duckanon._core.common.labels import MICROSECONDS_PER_DAY
from duckanon._core.common.made_labels import EVERYTHING
from duckanon._core.common.values import exact_numbers, is_time_scale
from duckanon._methods.generalize.leaves import NumberLeaves
from duckanon._methods.generalize.methods import Bucket, Coarsening
from duckanon._methods.generalize.recoding.column_moves import ColumnRecoding, Levels, Ordered, Structure


@dataclass(eq=False)
class Intervals(Coarsening):
    """Numbers and dates in contiguous runs.

    Two runs are parted at the roundest number between their values, which is one of these only if at least k people
    have it.
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
        """The numbers in their order; extremes of fewer than k people are never parted from all others."""
        return Ordered(self.column.inner, self._ends, self.names_ends)

    def _cuts(self, leaves: Ints) -> list[float]:
        """Return where a run that begins with each of these leaves is cut off from the one before."""
        positions, scale = self.column.positions, self.column.scale
        for leaf in leaves.tolist():
            if leaf not in self._cut_of_leaf:
                low, high = float(positions[leaf - 1]), float(positions[leaf])
                self._cut_of_leaf[leaf] = scale.cut(low, high, bool(self.is_shared[leaf]))
        return [self._cut_of_leaf[leaf] for leaf in leaves.tolist()]

    def _ends(self, leaves: Ints) -> tuple[Floats, Floats]:
        first, last = self.column.core
        cuts = np.full(len(leaves), np.nan)
        is_inner = (leaves > first) & (leaves <= last)
        cuts[is_inner] = self._cuts(leaves[is_inner])
        unit = _unit(self.column, self.k)
        if not unit:
            return cuts, cuts
        firsts: Floats = np.ceil(cuts / unit) * unit
        return firsts - unit, firsts

    def extremes(self, groups: ColumnRecoding) -> Bools:
        """Tell which leaves are beyond a whole number that is alone at an end but for them."""
        can_name = self.is_shared[: self.column.size] & self.column.scale.is_whole
        return _beyond(self.column, self._known_groups(groups), can_name)

    def codes_of(self, name: str, column: pa.ChunkedArray) -> Ints:
        """Return the leaf whose runs hold each value: between two leaves, which side of their cut it is on."""
        known, is_known, _ = exact_numbers(name, column)
        positions = self.column.positions
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

    def _known_buckets(self, groups: ColumnRecoding) -> Iterable[Bucket]:
        scale, positions = self.column.scale, self.column.positions
        group_of_leaf = self._known_groups(groups)
        starts = run_starts(group_of_leaf)
        all_cuts = np.array([-math.inf, *self._cuts(starts[1:])])
        starts = starts[~np.isnan(all_cuts)]  # where there is no number to part two runs they are one
        cuts = all_cuts[~np.isnan(all_cuts)].tolist()[1:]
        names, edges = labels.of_runs(scale, cuts), [-math.inf, *cuts, math.inf]
        spans = list(itertools.pairwise(edges))
        is_alone = np.diff(np.append(starts, self.column.size)) == 1
        for end in (0, -1):
            if is_alone[end] and self.names_ends[end] and (len(starts) > 1 or self.column.size == 1):
                value = float(positions[end])
                names[end], spans[end] = scale.text(value), (value, min(scale.after(value), spans[end][1]))
        yield from with_gaps(scale, group_of_leaf[starts] != groups.rest, spans, names)


@dataclass(eq=False)
class Steps(Coarsening):
    """Numbers rounded down to steps of 1, 2, 5 times a power of ten: one step for the whole column."""

    column: NumberLeaves
    k: int  # people who make a value one that may be named
    steps: Sequence[float]  # those that may be taken, finest first
    method = "round"

    @classmethod
    def parting(cls, column: NumberLeaves, k: int) -> Steps:
        """Take the steps that part the numbers."""
        inner = column.inner
        span = float(inner[-1] - inner[0])
        return cls(column, k, [step for step in labels.round_steps(distinct(inner)) if step < span])

    @cached_property
    def structure(self) -> Structure:
        """All values, each of the steps, one group."""
        inner = self.column.inner
        numbers = [inner, *(labels.step_numbers(inner, step) for step in self.steps)]
        maps = [np.unique(own, return_inverse=True)[1].reshape(-1).astype(np.int64) for own in numbers]
        losses = [np.zeros(int(maps[0].max()) + 1), *map(self._losses, self.steps, numbers[1:])]
        everything = np.full(1, float(self._distinct_values > 1))
        return Levels((*maps, np.zeros(self.column.size, np.int64)), (*losses, everything))

    def _losses(self, step: float, step_numbers: Floats) -> Floats:
        """Return what each of the steps loses: its width, as far as the column reaches."""
        inner, numbers = self.column.inner, distinct(step_numbers)
        starts, ends = labels.multiples(numbers, step), labels.multiples(numbers + 1, step)
        unit = _unit(self.column, self.k)
        if unit:
            starts, ends = np.ceil(starts / unit) * unit, (np.ceil(ends / unit) - 1) * unit
        width = np.minimum(ends, inner[-1]) - np.maximum(starts, inner[0])
        return np.asarray(np.maximum(width, 0) / (float(inner[-1] - inner[0]) or 1.0), dtype=np.float64)

    def _known_buckets(self, groups: ColumnRecoding) -> Iterable[Bucket]:
        scale, group_of_leaf = self.column.scale, self._known_groups(groups)
        starts = run_starts(group_of_leaf)
        level = 0 if groups.level is None or self.column.size == 1 else groups.level
        if level > len(self.steps) or (len(starts) == 1 and self.column.size > 1 and level == 0):
            yield Bucket(scale.covers, None, None, EVERYTHING)
            return
        spans = self._single_values(starts) if level == 0 else self._stepped(starts, self.steps[level - 1])
        if len(starts) == 1:
            (start, end), first, last = spans[0], self.column.positions[0], self.column.positions[-1]
            name = scale.text(start) if level == 0 else labels.of_span(scale, start, end)
            names = [name if start <= first <= last < end else EVERYTHING]
        elif any(map(math.isnan, itertools.chain(*spans))):  # no number parts extremes from all others
            spans, names, starts = [(-math.inf, math.inf)], [EVERYTHING], starts[:1]
        else:  # all values are kept: each is called by itself, but for extremes
            inner = [
                scale.text(start) if level == 0 else labels.of_span(scale, start, end) for start, end in spans[1:-1]
            ]
            is_single = (np.diff(np.append(starts, self.column.size)) == 1) & (level == 0)
            first_name = scale.text(spans[0][0]) if is_single[0] else labels.below(scale, spans[0][1])
            last_name = scale.text(spans[-1][0]) if is_single[-1] else labels.from_on(scale, spans[-1][0])
            names = [first_name, *inner, last_name]
        yield from with_gaps(scale, group_of_leaf[starts] != groups.rest, spans, names)

    def extremes(self, groups: ColumnRecoding) -> Bools:
        """Tell which leaves are beyond the first or the last of values that are all kept."""
        can_name = (self.column.people[: self.column.size] >= self.k) & (groups.level == 0)
        return _beyond(self.column, self._known_groups(groups), can_name)

    def _stepped(self, starts: Ints, step: float) -> list[tuple[float, float]]:
        """Return from where to where the step of each run reaches."""
        numbers = labels.step_numbers(self.column.inner[starts], step)
        lows, highs = labels.multiples(numbers, step), labels.multiples(numbers + 1, step)
        return list(zip(lows.tolist(), highs.tolist(), strict=True))

    def _single_values(self, starts: Ints) -> list[tuple[float, float]]:
        """Return from where to where each single value reaches; extremes are cut off as runs are."""
        scale, positions = self.column.scale, self.column.positions
        spans = [(value, scale.after(value)) for value in positions[starts].tolist()]
        for at, leaf in ((0, int(starts[min(1, len(starts) - 1)])), (-1, int(starts[-1]))):
            end = len(positions) if at else leaf
            if end - int(starts[at]) > 1 and len(starts) > 1:
                cut = scale.cut(
                    float(positions[leaf - 1]), float(positions[leaf]), bool(self.column.people[leaf] >= self.k)
                )
                spans[at] = (cut, math.inf) if at else (-math.inf, cut)
        return spans


def _beyond(column: NumberLeaves, group_of_leaf: Ints, can_name: Bools) -> Bools:
    """Tell which leaves lie beyond the ends of all others and in the group of such an end alone, if it can be named."""
    result = np.zeros(len(column.rows), bool)
    first, last = column.core
    is_parted = np.append(True, group_of_leaf[1:] != group_of_leaf[:-1])  # from the leaf before
    if can_name[first] and (first == last or is_parted[first + 1]):
        result[:first] = True
    if can_name[last] and (first == last or is_parted[last]):
        result[last + 1 : column.size] = True
    return result


def _unit(column: NumberLeaves, k: int) -> float:
    """Return the step between neighbouring values: 1 where all are whole, a day where all are midnights, else 0.

    All are those of all but k - 1 people.
    """
    unit = float(MICROSECONDS_PER_DAY) if is_time_scale(column.scale) else 1.0
    return unit if int(column.people[: column.size][column.positions % unit != 0].sum()) < max(k, 1) else 0.0


def with_gaps(
    scale: labels.Scale, is_told: Bools, spans: Sequence[tuple[float, float]], names: Sequence[str]
) -> Iterable[Bucket]:
    """Return a bucket for each span that is told of anybody, and one for each gap between two of them.

    The name of the first or the last is open where it begins with a sign, or is all; else what lies beyond it is in a
    gap.
    """
    reached: str | None = None
    for place in np.flatnonzero(is_told).tolist():
        start, end = spans[place]
        is_open_below, is_open_above = names[place][0] in "<*", names[place][0] in ">*"
        lower = None if is_open_below else scale.text(start)
        upper = None if is_open_above else scale.text(end)
        if lower is not None and lower != reached:
            yield Bucket(scale.covers, reached, lower, EVERYTHING)
        yield Bucket(scale.covers, lower, upper, names[place])
        reached = upper
    if reached is not None or not is_told.any():
        yield Bucket(scale.covers, reached, None, EVERYTHING)
