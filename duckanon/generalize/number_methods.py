"""How columns of numbers and dates can be made coarser: intervals, steps, the calendar."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from duckanon.common import labels, values
from duckanon.common.arrays import Ints
from duckanon.generalize.methods import ROOT, Bucket, Coarsening, tree_of
from duckanon.generalize.recoding.columns import Levels, Ordered
from duckanon.generalize.recoding.recode import ColumnRecoding


class Intervals(Coarsening):
    """Numbers and dates in contiguous runs."""

    method = "interval"

    def __init__(self, column: values.NumberLeaves) -> None:
        super().__init__(column)
        self.numbers = column
        self.structure = Ordered(column.positions)

    def _own_buckets(self, groups: ColumnRecoding) -> Iterable[tuple[int, Bucket]]:
        own, scale, positions = groups.group_of_leaf[: self.column.size], self.numbers.scale, self.numbers.positions
        starts = np.flatnonzero(np.concatenate([[True], own[1:] != own[:-1]]))
        cuts = [scale.readable(positions[at - 1], positions[at]) for at in starts[1:]]
        edges = [self.numbers.least, *cuts, self.numbers.largest]
        names = labels.of_runs(scale, cuts)
        if len(starts) > 1 and scale.is_whole and starts[1] == 1:  # one code: not "below 2", but 1; below it is nothing
            names[0] = scale.text(edges[0])
            yield -1, Bucket(scale.covers, "-inf", scale.text(edges[0]), ROOT)
        is_last_alone = len(starts) > 1 and scale.is_whole and starts[-1] == self.column.size - 1
        if is_last_alone:
            edges[-2] = edges[-1]
            names = [*labels.of_runs(scale, edges[1:-1])[: len(starts) - 1], scale.text(edges[-1])]
            names[0] = scale.text(edges[0]) if starts[1] == 1 else names[0]
        for place, start in enumerate(starts):
            lower, upper = scale.text(edges[place]), scale.text(edges[place + 1])
            yield int(own[start]), Bucket(scale.covers, lower, upper, names[place])
        if is_last_alone:
            yield -1, Bucket(scale.covers, scale.text(edges[-1] + 1), None, ROOT)


class Steps(Coarsening):
    """Numbers rounded down to steps of 1, 2, 5 times a power of ten: one step for the whole column."""

    method = "round"

    def __init__(self, column: values.NumberLeaves) -> None:
        super().__init__(column)
        self.numbers = column
        positions = column.positions
        span = float(positions[-1] - positions[0]) or 1.0
        self.steps = [step for step in labels.round_steps(positions) if step < span]
        self.starts = [np.floor(positions / step + 1e-9) for step in self.steps]
        maps = [np.unique(start, return_inverse=True)[1].astype(np.int64) for start in self.starts]
        identity = np.arange(column.size)
        losses = [
            np.full(int(groups.max()) + 1, min(1.0, step / span)) for groups, step in zip(maps, self.steps, strict=True)
        ]
        self.structure = Levels(
            (identity, *maps, np.zeros(column.size, np.int64)), (np.zeros(column.size), *losses, np.ones(1))
        )

    def _own_buckets(self, groups: ColumnRecoding) -> Iterable[tuple[int, Bucket]]:
        own = groups.group_of_leaf[: self.column.size]
        level = 0 if groups.level is None else groups.level
        scale, positions = self.numbers.scale, self.numbers.positions
        if own.max() == own.min():
            yield int(own[0]), Bucket(scale.covers, scale.text(positions[0]), scale.text(positions[-1]), ROOT)
            return
        if level == 0:
            step = 1.0 if scale.is_whole else 0.0
            spans = [(float(x), float(x + step) if step else float(np.nextafter(x, np.inf))) for x in positions]
        else:
            step, begins = self.steps[level - 1], np.unique(self.starts[level - 1])
            spans = [(labels.tidy(begin * step), labels.tidy((begin + 1) * step)) for begin in begins]
        yield from _with_gaps(self.numbers, own, spans, [labels.of_span(scale, *span) for span in spans])


class Calendar(Coarsening):
    """Dates as periods of the calendar; each part of the time line at a level of its own."""

    method = "calendar"

    def __init__(self, column: values.DayLeaves) -> None:
        super().__init__(column)
        self.days = column
        periods = [labels.period_starts(column.days, level) for level in labels.CALENDAR]
        self.structure, self.node_leaf, self.node_level = tree_of(periods)

    def _own_buckets(self, groups: ColumnRecoding) -> Iterable[tuple[int, Bucket]]:
        assert groups.nodes is not None
        own = groups.group_of_leaf[: self.column.size]
        order = own[np.flatnonzero(np.concatenate([[True], own[1:] != own[:-1]]))]
        if len(order) == 1:
            text = self.days.scale.text
            yield int(order[0]), Bucket("time", text(self.days.least), text(self.days.largest), ROOT)
            return
        spans, names = [], []
        for group in order:
            node = int(groups.nodes[group])
            level = int(self.node_level[node])
            start, end = labels.period(int(self.days.days[self.node_leaf[node]]), labels.CALENDAR[level])
            spans.append((start, end))
            names.append(labels.of_period(start, labels.CALENDAR[level]))
        names[0], names[-1] = "<=" + names[0], ">=" + names[-1]
        yield from _with_gaps(self.days, own, spans, names, is_open=False)


def _with_gaps(
    column: values.NumberLeaves | values.DayLeaves,
    own: Ints,
    spans: Sequence[tuple[float, float]],
    names: Sequence[str],
    is_open: bool = True,
) -> Iterable[tuple[int, Bucket]]:
    """Return a bucket per span, and one for each gap between them: no value there was ever seen."""
    scale = column.scale
    order = own[np.flatnonzero(np.concatenate([[True], own[1:] != own[:-1]]))].tolist()
    last = len(spans) - 1
    for place, (group, (start, end), name) in enumerate(zip(order, spans, names, strict=True)):
        if is_open and place == 0:
            name = labels.below(scale, end)
        elif is_open and place == last:
            name = labels.from_on(scale, start)
        lower = column.least if place == 0 else start
        upper = column.largest if place == last else end
        yield group, Bucket(scale.covers, scale.text(lower), scale.text(upper), name)
        if place < last and spans[place + 1][0] > end:
            yield -1, Bucket(scale.covers, scale.text(end), scale.text(spans[place + 1][0]), ROOT)
