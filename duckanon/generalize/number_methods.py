"""How columns of numbers and dates can be made coarser: intervals, steps, the calendar."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from duckanon.common import labels
from duckanon.common.arrays import Ints
from duckanon.common.runs import run_starts
from duckanon.generalize.hierarchies import ROOT, tree_of
from duckanon.generalize.leaves import DayLeaves, NumberLeaves
from duckanon.generalize.methods import NO_GROUP, Bucket, Coarsening
from duckanon.generalize.recoding.columns import Levels, Ordered
from duckanon.generalize.recoding.recode import ColumnRecoding


class Intervals(Coarsening):
    """Numbers and dates in contiguous runs."""

    method = "interval"

    def __init__(self, column: NumberLeaves) -> None:
        super().__init__(column)
        self.numbers = column
        self.structure = Ordered(column.positions)

    def _known_buckets(self, groups: ColumnRecoding) -> Iterable[tuple[int, Bucket]]:
        scale, positions = self.numbers.scale, self.numbers.positions
        group_of_leaf = self._known_groups(groups)
        starts = run_starts(group_of_leaf)
        cuts = [scale.readable(positions[start - 1], positions[start]) for start in starts[1:]]
        edges = [self.numbers.least, *cuts, self.numbers.largest]
        names = labels.of_runs(scale, cuts)
        # A whole number that is alone at an end is a code, and is named so: 1, not "<2". Beyond it there is nothing.
        names_codes = len(starts) > 1 and scale.is_whole
        is_first_alone = names_codes and starts[1] == 1
        is_last_alone = names_codes and starts[-1] == self.column.size - 1
        if is_last_alone:
            edges[-2] = edges[-1]
            names = [*labels.of_runs(scale, edges[1:-1])[:-1], scale.text(edges[-1])]
        if is_first_alone:
            names[0] = scale.text(edges[0])
            yield NO_GROUP, Bucket(scale.covers, "-inf", scale.text(edges[0]), ROOT)
        for run, start in enumerate(starts):
            lower, upper = scale.text(edges[run]), scale.text(edges[run + 1])
            yield int(group_of_leaf[start]), Bucket(scale.covers, lower, upper, names[run])
        if is_last_alone:
            yield NO_GROUP, Bucket(scale.covers, scale.text(edges[-1] + 1), None, ROOT)


class Steps(Coarsening):
    """Numbers rounded down to steps of 1, 2, 5 times a power of ten: one step for the whole column."""

    method = "round"

    def __init__(self, column: NumberLeaves) -> None:
        super().__init__(column)
        self.numbers = column
        positions = column.positions
        span = float(positions[-1] - positions[0]) or 1.0
        self.steps = [step for step in labels.round_steps(positions) if step < span]
        # A multiple of the step may come out just below its whole number: 0.3 / 0.1 is 2.9999999999999996.
        self.starts = [np.floor(positions / step + 1e-9) for step in self.steps]
        maps = [np.unique(start, return_inverse=True)[1].astype(np.int64) for start in self.starts]
        identity = np.arange(column.size)
        losses = [
            np.full(int(groups.max()) + 1, min(1.0, step / span)) for groups, step in zip(maps, self.steps, strict=True)
        ]
        self.structure = Levels(
            (identity, *maps, np.zeros(column.size, np.int64)), (np.zeros(column.size), *losses, np.ones(1))
        )

    def _known_buckets(self, groups: ColumnRecoding) -> Iterable[tuple[int, Bucket]]:
        group_of_leaf = self._known_groups(groups)
        scale = self.numbers.scale
        if group_of_leaf.max() == group_of_leaf.min():
            lower, upper = scale.text(self.numbers.least), scale.text(self.numbers.largest)
            yield int(group_of_leaf[0]), Bucket(scale.covers, lower, upper, ROOT)
            return
        spans = self._spans(0 if groups.level is None else groups.level)
        yield from _with_gaps(self.numbers, group_of_leaf, spans, [labels.of_span(scale, *span) for span in spans])

    def _spans(self, level: int) -> list[tuple[float, float]]:
        """Return from where to where each group of a level reaches; level 0 has all values."""
        if level == 0:
            is_whole = self.numbers.scale.is_whole
            return [(float(x), float(x + 1.0 if is_whole else np.nextafter(x, np.inf))) for x in self.numbers.positions]
        step, begins = self.steps[level - 1], np.unique(self.starts[level - 1])
        return [(labels.tidy(begin * step), labels.tidy((begin + 1) * step)) for begin in begins]


class Calendar(Coarsening):
    """Dates as periods of the calendar; each part of the time line at a level of its own."""

    method = "calendar"

    def __init__(self, column: DayLeaves) -> None:
        super().__init__(column)
        self.days = column
        periods = [labels.period_starts(column.days, level) for level in labels.CALENDAR]
        self.structure, self.node_leaf, self.node_level = tree_of(periods)

    def _known_buckets(self, groups: ColumnRecoding) -> Iterable[tuple[int, Bucket]]:
        assert groups.nodes is not None
        group_of_leaf = self._known_groups(groups)
        group_of_run = group_of_leaf[run_starts(group_of_leaf)]
        if len(group_of_run) == 1:
            text = self.days.scale.text
            yield int(group_of_run[0]), Bucket("time", text(self.days.least), text(self.days.largest), ROOT)
            return
        spans, names = [], []
        for node in groups.nodes[group_of_run].tolist():
            level = labels.CALENDAR[int(self.node_level[node])]
            start, end = labels.period(int(self.days.days[self.node_leaf[node]]), level)
            spans.append((start, end))
            names.append(labels.of_period(start, level))
        names[0], names[-1] = "<=" + names[0], ">=" + names[-1]
        yield from _with_gaps(self.days, group_of_leaf, spans, names, names_ends=False)


def _with_gaps(
    column: NumberLeaves | DayLeaves,
    group_of_leaf: Ints,
    spans: Sequence[tuple[float, float]],
    names: Sequence[str],
    names_ends: bool = True,
) -> Iterable[tuple[int, Bucket]]:
    """Return a bucket for each span, and one for each gap between two spans, where the table had no value.

    Parameters
    ----------
    column, group_of_leaf
        The column, and the group of each leaf that is not NULL.
    spans, names
        From where to where each run of leaves of one group reaches, and what it is called.
    names_ends
        Whether the first and the last span get open names, ``<20`` and ``>=80``, instead of theirs.
    """
    scale = column.scale
    group_of_run = group_of_leaf[run_starts(group_of_leaf)].tolist()
    last = len(spans) - 1
    for run, (group, (start, end), name) in enumerate(zip(group_of_run, spans, names, strict=True)):
        if names_ends and run == 0:
            name = labels.below(scale, end)
        elif names_ends and run == last:
            name = labels.from_on(scale, start)
        lower = column.least if run == 0 else start
        upper = column.largest if run == last else end
        yield group, Bucket(scale.covers, scale.text(lower), scale.text(upper), name)
        if run < last and spans[run + 1][0] > end:
            yield NO_GROUP, Bucket(scale.covers, scale.text(end), scale.text(spans[run + 1][0]), ROOT)
