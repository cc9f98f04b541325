"""Coarser labels of the columns of a plan, and the order in which cohorts climb them.

Each column has a ladder of labels: those of the plan, coarser ones where the plan or a hierarchy has an order to merge
them by, and in the end unknown. A level says which rung each column is on; levels are climbed in the order of the bits
that they lose.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from duckanon._bridge import sql
from duckanon.job import readback
from duckanon.job.account import Labels
from duckanon.job.policy import Table

PlanRow = tuple[str, str | None, str | None, str | None]
"""What a row of a plan covers, from where on, up to where, and its label."""

_FEWEST = 4
"""Labels of a column with a rung between them and unknown: fewer merge into two at most, of which one says little."""
_MOST_LEVELS = 256
"""Levels of all columns together: each is one look at the people who move, a few per cent of all."""


@dataclass(frozen=True)
class Ladder:
    """The labels of one column: on rung 0 those of the plan, on the last one, which is not listed, unknown."""

    count: int  # different labels of the plan
    rungs: tuple[Mapping[str, str], ...] = ()  # of each rung between, the coarser label by the plan's

    def label(self, label: str | None, rung: int) -> str | None:
        """Return a label of the plan on a rung."""
        if rung == 0 or label is None:
            return label
        return None if rung > len(self.rungs) else self.rungs[rung - 1].get(label, label)

    def count_lost_bits(self, rung: int) -> float:
        """Return the bits that are lost on a rung, as if all labels were equally frequent."""
        if rung == 0:
            return 0.0
        left = 1 if rung > len(self.rungs) else len(set(self.rungs[rung - 1].values()))
        return math.log2(max(self.count, 2) / max(left, 1))


@dataclass(frozen=True)
class CoarserLabels:
    """The ladders of all quasi-identifiers, and the levels: the rung of each column, from nothing lost to all."""

    columns: list[str]
    ladders: list[Ladder]
    levels: list[tuple[int, ...]]

    def at(self, labels: Labels, level: int) -> Labels:
        """Return the labels of a row at a level."""
        rungs = zip(self.ladders, labels, self.levels[level], strict=True)
        return tuple(ladder.label(label, rung) for ladder, label, rung in rungs)


def coarser_labels(con: sql.Connection, table: Table, hierarchies: Mapping[str, str]) -> CoarserLabels:
    """Read the ladders from the table ``plan`` and the tables of hierarchies, with labels as the target shows them."""
    columns, ladders = table.with_roles("quasi_identifier"), []
    shown = readback.text_at_target(table.target, "label")
    for column in columns:
        rows = con.execute(
            f"SELECT covers, lower, upper, {shown} FROM plan WHERE column_name = {sql.literal(column)}"
        ).fetchall()
        labels = {row[3] for row in rows if row[3] is not None}
        rungs = [_merge_buckets(rows), _shorten_prefixes(rows)]
        if column in hierarchies:
            rungs += _above(con, hierarchies[column], rows)
        kept: list[dict[str, str]] = []
        for rung in rungs:
            fewer = len(set(kept[-1].values())) if kept else len(labels)
            rung |= {label: label for label in labels - rung.keys()}
            if 1 < len(set(rung.values())) < fewer:
                kept.append(_show_rung(con, rung, shown))
        ladders.append(Ladder(len(labels), tuple(kept)))
    return CoarserLabels(columns, ladders, list(levels_of(ladders)))


def _show_rung(con: sql.Connection, rung: Mapping[str, str], shown: str) -> dict[str, str]:
    """Return a rung whose labels are as the target shows them."""
    query = f"SELECT label, coalesce({shown}, label) FROM (SELECT unnest($labels::VARCHAR[]) AS label)"
    written = dict(con.execute(query, {"labels": sorted(set(rung.values()))}).fetchall())
    return {label: written[coarser] for label, coarser in rung.items()}


def _merge_buckets(rows: Sequence[PlanRow]) -> dict[str, str]:
    """Merge neighbouring buckets of numbers or times, about as many as there are merged ones in the end."""
    times = Counter(label for *_, label in rows)  # the label of what lies between and beyond is that of several buckets
    buckets = [row for row in rows if row[0] in ("number", "time") and row[3] and times[row[3]] == 1]
    if len(buckets) < _FEWEST:
        return {}
    buckets.sort(key=lambda row: (row[1] is not None, float(row[1] or 0) if row[0] == "number" else 0, row[1] or ""))
    size = math.ceil(math.sqrt(len(buckets)))
    runs: list[list[PlanRow]] = []
    for bucket in buckets:
        is_next = runs and len(runs[-1]) < size and runs[-1][-1][2] == bucket[1]
        runs.append([*runs.pop(), bucket] if is_next else [bucket])
    names: dict[str, str] = {}
    for run in runs:
        lower, upper = run[0][1], run[-1][2]
        name = f"<{upper}" if lower is None else f">={lower}" if upper is None else f"[{lower}, {upper})"
        names |= {str(label): name if len(run) > 1 else str(label) for *_, label in run}
    return names


def _shorten_prefixes(rows: Sequence[PlanRow]) -> dict[str, str]:
    """Shorten prefixes to the longest length that leaves about the square root of them."""
    prefixes = {label: lower for covers, lower, _, label in rows if covers == "prefix" and lower and label}
    if len(prefixes) < _FEWEST:
        return {}
    for length in range(max(map(len, prefixes.values())) - 1, 0, -1):
        if len({prefix[:length] for prefix in prefixes.values()}) <= math.ceil(math.sqrt(len(prefixes))):
            widths = {label: len(label if label.startswith(own) else own) for label, own in prefixes.items()}
            return {
                label: prefix[:length] + "*" * (widths[label] - length) if len(prefix) > length else label
                for label, prefix in prefixes.items()
            }
    return {}


def _above(con: sql.Connection, hierarchy: str, rows: Sequence[PlanRow]) -> list[dict[str, str]]:
    """Return for each level of a hierarchy the label there of all values that a label of the plan covers."""
    leaves: dict[str, set[str]] = {}
    for covers, lower, _, label in rows:
        if covers == "value" and lower is not None and label is not None:
            leaves.setdefault(label, set()).add(lower)
    paths = {
        str(path[0]): path
        for path in con.execute(f"SELECT COLUMNS(*)::VARCHAR FROM {sql.quote(hierarchy)}").fetchall()
        if path[0] is not None
    }
    rungs = []
    for level in range(1, max(map(len, paths.values()), default=0)):
        rung = {}
        for label, texts in leaves.items():
            above = {paths[text][level] if text in paths else None for text in texts}
            if len(above) == 1 and None not in above:
                rung[label] = str(above.pop())
        rungs.append(rung)
    return rungs


def levels_of(ladders: Sequence[Ladder]) -> Iterator[tuple[int, ...]]:
    """Yield the levels in the order of the bits that they lose, all columns unknown last.

    Where these are too many: those at which few columns are coarser, and one after the other unknown.
    """
    tops = [len(ladder.rungs) + 1 for ladder in ladders]
    levels = {(0,) * len(tops), tuple(tops)}
    by_bits = sorted(range(len(tops)), key=lambda place: -ladders[place].count_lost_bits(tops[place]))
    for count in range(1, len(tops)):
        unknown = by_bits[:count]
        levels.add(tuple(top if place in unknown else 0 for place, top in enumerate(tops)))
    for changed in range(1, len(tops) + 1):
        chosen = {
            tuple(dict(zip(places, rungs, strict=True)).get(place, 0) for place in range(len(tops)))
            for places in itertools.combinations(range(len(tops)), changed)
            for rungs in itertools.product(*(range(1, tops[place] + 1) for place in places))
        }
        if len(levels | chosen) > _MOST_LEVELS:
            break
        levels |= chosen

    def order_by_loss(level: tuple[int, ...]) -> tuple[float, tuple[int, ...]]:
        return round(sum(ladder.count_lost_bits(rung) for ladder, rung in zip(ladders, level, strict=True)), 9), level

    levels.discard(tuple(tops))
    yield from sorted(levels, key=order_by_loss)
    yield tuple(tops)
