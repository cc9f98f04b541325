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
    path = [tuple(current)]
    hidden = [_hidden(columns, current, classes, k)]
    while any(level < len(column.levels) - 1 for level, column in zip(current, columns, strict=True)):
        best: tuple[float, int, float] | None = None
        for place, column in enumerate(columns):
            if current[place] < len(column.levels) - 1:
                progress.check()
                tried = [level + (other == place) for other, level in enumerate(current)]
                gain = _hidden(columns, tried, classes, k) - hidden[-1]
                lost = float((column.losses(tried[place]) - column.losses(current[place])).mean())
                score = (gain + 1e-9) / (lost + 1e-3)
                if best is None or score > best[0]:
                    best = score, place, hidden[-1] + gain
        assert best is not None
        current[best[1]] += 1
        path.append(tuple(current))
        hidden.append(best[2])
    marks = np.linspace(hidden[0], hidden[-1], MOST_LEVELS)
    chosen = {int(np.argmin(np.abs(np.array(hidden) - mark))) for mark in marks} | {0, len(path) - 1}
    return [path[place] for place in sorted(chosen)]


def hidden_steps(steps: Steps, least: Sequence[int]) -> Steps:
    """Return the steps with every column at least at some level, each step once."""
    return list(dict.fromkeys(tuple(map(max, step, least)) for step in steps))


def _hidden(columns: Sequence[ColumnLevels], levels: Sequence[int], classes: Ints, k: int) -> float:
    key = classes
    for column, level in zip(columns, levels, strict=True):
        key = ranked(key * len(column.texts) + column.codes(level))
    sizes = np.bincount(key)[key]
    return float(np.minimum(np.log10(sizes / k), _FULL).mean())


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
