"""The method for columns of dates: periods of the calendar."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from duckanon._core.common import labels
from duckanon._core.common.arrays import Floats, Ints, run_starts
from duckanon._core.common.made_labels import EVERYTHING
from duckanon._methods.generalize.hierarchy_trees import tree_of
from duckanon._methods.generalize.leaves import DayLeaves
from duckanon._methods.generalize.methods import Bucket, Coarsening
from duckanon._methods.generalize.number_methods import with_gaps
from duckanon._methods.generalize.recoding.column_moves import ColumnRecoding, Structure


@dataclass(eq=False)
class Calendar(Coarsening):
    """Dates as periods of the calendar; each part of the time line at a level of its own."""

    column: DayLeaves
    method = "calendar"

    @cached_property
    def structure(self) -> Structure:
        """The periods; extremes of fewer than k people are in those of the first or the last day of all others."""
        inner = self.column.inner
        periods = [labels.period_starts(inner, level) for level in labels.CALENDAR]
        if self.column.core != (0, self.column.size - 1):
            periods.insert(0, self.column.days)  # below the days, since several are one
        tree, node_leaf, node_level = tree_of(periods)
        return replace(tree, losses=self._losses(inner[node_leaf], node_level - (len(periods) - len(labels.CALENDAR))))

    def _losses(self, days: Ints, levels: Ints) -> Floats:
        """Return what each node loses: its period's length, as far as the column reaches."""
        first, last = int(self.column.inner[0]), int(self.column.inner[-1]) + self.column.has_times
        losses = np.full(len(days), float(self._distinct_values > 1))
        losses[levels < 0] = 0.0
        for level, name in enumerate(labels.CALENDAR):
            nodes = np.flatnonzero(levels == level)
            starts, ends = labels.periods(days[nodes], name)
            width = np.minimum(last, ends - (0 if self.column.has_times else 1)) - np.maximum(first, starts)
            losses[nodes] = np.maximum(width, 0) / max(last - first, 1)
        return losses

    def _known_buckets(self, groups: ColumnRecoding) -> Iterable[Bucket]:
        group_of_leaf, inner, days = self._known_groups(groups), self.column.inner, self.column.days
        starts = run_starts(group_of_leaf)
        if len(starts) == 1 and inner[0] != inner[-1]:
            yield Bucket("time", None, None, EVERYTHING)
            return
        firsts, lasts = inner[starts], inner[np.append(starts[1:], self.column.size) - 1]
        begins, ends = labels.periods(firsts, labels.CALENDAR[0])
        names = [labels.of_period(start, labels.CALENDAR[0]) for start in begins.tolist()]
        is_open = np.flatnonzero(firsts != lasts)  # runs for which no period was long enough so far
        for level in labels.CALENDAR[1:]:
            starts_of, ends_of = labels.periods(firsts[is_open], level)
            is_found = starts_of == labels.period_starts(lasts[is_open], level)
            for run, start, end in zip(is_open[is_found], starts_of[is_found], ends_of[is_found], strict=True):
                begins[run], ends[run], names[run] = start, end, labels.of_period(int(start), level)
            is_open = is_open[~is_found]
        is_first_open, is_last_open = (len(starts) > 1 or days[end] != inner[end] for end in (0, -1))
        if len(starts) == 1 and is_first_open and is_last_open:
            names = [EVERYTHING]
        else:
            names[0] = "<=" + names[0] if is_first_open else names[0]
            names[-1] = ">=" + names[-1] if is_last_open else names[-1]
        spans = list(zip(begins.astype(float).tolist(), ends.astype(float).tolist(), strict=True))
        yield from with_gaps(self.column.scale, group_of_leaf[starts] != groups.rest, spans, names)
