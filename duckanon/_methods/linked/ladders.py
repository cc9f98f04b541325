"""Ladders: the labels of the rows of a table from fine to coarse, given by the caller or found by search."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from duckanon._core.common import progress
from duckanon._core.common.arrays import Ints, Ints32, Reals
from duckanon._methods.linked.column_levels import ColumnLevels
from duckanon._methods.linked.dense_numbers import ranked

MOST_LEVELS = 6
"""Levels of a ladder that is found by search: every one takes a pass over all choices."""
_FULL = 3.0
"""Logarithm, to the base of ten, of the people beyond which it does not matter how many share a label."""

Steps = list[tuple[int, ...]]
"""For each level of the ladder the level of each column."""


class Ladder(NamedTuple):
    """The labels of the rows of one table, for each level of the ladder."""

    steps: Steps
    items: list[Ints32]  # the number of each row's label, equal on two levels where the texts are


def asked_levels(ladder: Sequence[Mapping[str, str | None]]) -> dict[str, list[str]]:
    """Return the levels that a ladder gives to each column, by its name in lower case."""
    asked: dict[str, list[str]] = {}
    for named in ladder:
        for name, level in named.items():
            asked.setdefault(name.lower(), []).extend([level] if level is not None else [])
    return asked


def given_steps(columns: Sequence[ColumnLevels], ladder: Sequence[Mapping[str, str | None]]) -> Steps:
    """Return the levels that a caller gave; a column that a level does not name stays as it is on the level before."""
    own = {column.name.lower(): place for place, column in enumerate(columns)}
    current, steps = [0] * len(columns), []
    for named in ladder:
        for name, level in named.items():
            if name.lower() in own and level is not None:
                place = own[name.lower()]
                found = columns[place].level(level)
                if found < current[place]:
                    raise ValueError(f'ladder must go from fine to coarse; got "{level}" for column "{name}".')
                current[place] = found
        steps.append(tuple(current))
    return steps


def found_steps(columns: Sequence[ColumnLevels], classes: Ints, k: int) -> Steps:
    """Find a ladder: each step takes the column in which a coarser level joins most people for what it loses.

    How well rows are hidden is the mean logarithm of the rows that share a label within a class. Of the path from the
    values to ``*`` everywhere, levels are kept that lie evenly between what is hidden at both ends.
    """
    current = [0] * len(columns)
    labels = _Labels(columns, classes)
    path = [tuple(current)]
    hidden = [_hidden(labels.of_others(len(columns)), k)]
    losses: dict[tuple[int, int], float] = {}  # of a column, from the level before to another
    while any(level < len(column.levels) - 1 for level, column in zip(current, columns, strict=True)):
        best: tuple[float, int, float] | None = None
        for place, column in enumerate(columns):
            coarser = current[place] + 1
            if coarser < len(column.levels):
                progress.check()
                gain = _hidden(_joined(labels.of_others(place), column, coarser), k) - hidden[-1]
                if (place, coarser) not in losses:
                    losses[place, coarser] = float((column.losses(coarser) - column.losses(coarser - 1)).mean())
                score = (gain + 1e-9) / (losses[place, coarser] + 1e-3)
                if best is None or score > best[0]:
                    best = score, place, hidden[-1] + gain
        assert best is not None
        current[best[1]] += 1
        labels.change(best[1], current[best[1]])
        path.append(tuple(current))
        hidden.append(best[2])
    marks = np.linspace(hidden[0], hidden[-1], MOST_LEVELS)
    chosen = {int(np.argmin(np.abs(np.array(hidden) - mark))) for mark in marks} | {0, len(path) - 1}
    return [path[place] for place in sorted(chosen)]


class _Labels:
    """The labels of rows within their classes, of all columns but one: else each try would join all columns anew.

    Those of the columns before each, and of those behind it, are kept until one of them changes.
    """

    def __init__(self, columns: Sequence[ColumnLevels], classes: Ints) -> None:
        self._columns, self._levels = columns, [0] * len(columns)
        self._before: list[Ints] = [classes]
        self._behind: dict[int, Ints] = {}

    def change(self, place: int, level: int) -> None:
        """Show a column at another level."""
        self._levels[place] = level
        del self._before[place + 1 :]
        self._behind = {first: labels for first, labels in self._behind.items() if first > place}

    def of_others(self, place: int) -> Ints:
        """Return a number for the labels of all columns but one; of all where there is no such place."""
        for one in range(len(self._before) - 1, min(place, len(self._columns))):
            self._before.append(_joined(self._before[one], self._columns[one], self._levels[one]))
        if place >= len(self._columns) - 1:
            return self._before[min(place, len(self._columns))]
        for one in range(len(self._columns) - 1, place, -1):
            if one not in self._behind:
                others = self._behind.get(one + 1, np.zeros(len(self._before[0]), np.int64))
                self._behind[one] = _joined(others, self._columns[one], self._levels[one])
        behind = self._behind[place + 1]
        return ranked(self._before[place] * (int(behind.max(initial=0)) + 1) + behind)


def _joined(labels: Ints, column: ColumnLevels, level: int) -> Ints:
    return ranked(labels * len(column.texts) + column.codes(level))


def _hidden(labels: Ints, k: int) -> float:
    sizes = np.bincount(labels)[labels]
    return float(np.minimum(np.log10(sizes / k), _FULL).mean())


def hidden_steps(steps: Steps, least: Sequence[int]) -> Steps:
    """Return the steps with every column at least at some level, each step once."""
    return list(dict.fromkeys(tuple(map(max, step, least)) for step in steps))


def ladder_of(columns: Sequence[ColumnLevels], steps: Steps, rows: int) -> Ladder:
    """Return the labels of the rows at every level: the texts of all columns together, as numbers."""
    key = np.zeros(len(steps) * rows, np.int64)
    for place, column in enumerate(columns):
        texts = np.concatenate([column.codes(levels[place]) for levels in steps])
        key = ranked(key * len(column.texts) + texts)
    return Ladder(steps, np.split(key.astype(np.int32), len(steps)))


def lost_by(columns: Sequence[ColumnLevels], levels: Sequence[int], rows: Ints32) -> Reals:
    """Return what some rows lose at a step of the ladder, the mean of their columns."""
    lost = np.zeros(len(rows), np.float32)
    for column, level in zip(columns, levels, strict=True):
        lost += column.losses(level, rows) / np.float32(len(columns))
    return lost
