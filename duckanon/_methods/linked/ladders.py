"""Ladders: the labels of the rows of a table from fine to coarse, written by the caller or found by search.

A column has levels, from its own values to ``*``: those of a hierarchy, periods of the calendar, or ranges of numbers
whose widths double about. A step of the ladder says which level each column shows. The search begins with the values
and coarsens, step by step, the column in which that hides most people for what it loses; of this path it keeps at most
six steps, since each takes a pass over all choices. The labels of a row in all columns together become one number.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from duckanon._core.common import labels, progress
from duckanon._core.common.arrays import Bools, Floats, Ints, Ints32, Reals, is_number, is_time
from duckanon._core.common.codes import Codes, encode_columns
from duckanon._core.common.labels import EVERYTHING, label_value
from duckanon._core.common.row_keys import rank_keys
from duckanon._core.common.values import take_exact_numbers, take_numbers
from duckanon._methods.generalize.hierarchies import HierarchyTable

_MOST_RANGES = 6
"""Widths of ranges that are tried, of about half as many ranges each."""
_NO_SPAN = 1e-300
"""In place of the span of rows that all have one value, of which every range and period loses all."""
_ALIKE = 0.6
"""Share of the ranges of the width before, above which a width joins too few of them to be a level."""


class ColumnLevels(NamedTuple):
    """The labels of one column of a table, level by level, the finest first and ``*`` last."""

    name: str
    levels: list[str]  # their names: 'month', '10', '1', '*'
    value_of_row: Codes
    value_codes: list[Ints32]  # for each level the text of each value, as a number: equal texts have equal numbers
    texts: list[str | None]
    positions: Floats | None  # of each value, NaN for NULL; None: only the levels say which values lie together
    widths: list[Floats]  # for each level how wide the label of each value is, in the unit of `positions`

    def codes(self, level: int) -> Ints32:
        """Return the number of the text that each row shows at a level."""
        return self.value_codes[level][self.value_of_row]

    def losses(self, level: int, rows: Ints | Ints32 | slice = slice(None)) -> Reals:
        """Return what some rows lose at a level, from 0 to 1: the part of what these rows span that a label covers.

        It is measured by these rows alone, so that no other class has a part in it.
        """
        values = self.value_of_row[rows]
        if level in (0, len(self.levels) - 1):
            return np.full(len(values), float(level > 0), np.float32)
        if self.positions is None:
            return _measure_shares(values, self.value_codes[level])
        known = self.positions[values]
        known = known[~np.isnan(known)]
        span = float(known.max() - known.min()) if len(known) else 0.0
        return np.minimum(self.widths[level][values] / (span or _NO_SPAN), 1).astype(np.float32)

    def find_level(self, name: str) -> int:
        """Return the index of a level by its name."""
        if name not in self.levels:
            raise ValueError(f'ladder must give column "{self.name}" one of {", ".join(self.levels)}; got {name}.')
        return self.levels.index(name)


def find_column_levels(
    name: str, column: pa.ChunkedArray, tree: HierarchyTable | None, asked: Sequence[str] | None = None
) -> ColumnLevels:
    """Find the levels of a column: of its hierarchy, of the calendar, of ranges, or only the values and ``*``.

    All levels that are `asked` for are kept; without any, those that join values.
    """
    ((codes, count),) = encode_columns(pa.table({"value": column}))
    firsts = np.unique(codes, return_index=True)[1]
    different = column.take(pa.array(firsts))
    if pa.types.is_dictionary(different.type):
        different = different.cast(different.type.value_type)
    positions: Floats | None = None
    if tree is not None:
        candidates = _list_tree_levels([_write_text(value) for value in different.to_pylist()], tree)
    elif is_time(column.type):
        positions, candidates = _list_periods(name, different, may_end=asked is None)
    elif is_number(column.type):
        positions, candidates = _list_ranges(name, different, asked)
    else:
        shown = [None if text is None else label_value(text) for text in map(_write_text, different.to_pylist())]
        candidates = [("value", shown, np.zeros(count))]
    candidates.append((EVERYTHING, [tree.root if tree else EVERYTHING] * count, np.zeros(count)))
    number_of: dict[str | None, int] = {}
    levels: list[str] = []
    coded: list[Ints32] = []
    widths: list[Floats] = []
    for level, texts, width in candidates:
        numbers_of_texts = np.array([number_of.setdefault(text, len(number_of)) for text in texts], np.int64)
        joins_nothing = coded and len(np.unique(numbers_of_texts)) == len(np.unique(coded[-1]))
        if asked is None and joins_nothing and level != EVERYTHING:
            continue
        levels.append(level)
        coded.append(numbers_of_texts.astype(np.int32))
        widths.append(width)
    return ColumnLevels(name, levels, codes, coded, list(number_of), positions, widths)


_Level = tuple[str, list[str | None], Floats]
"""Its name, the label of each value, and how wide that label is."""


def _write_text(value: object) -> str | None:
    if value is None:
        return None
    return str(value).lower() if isinstance(value, bool) else str(value)


def _measure_shares(values: Codes, label_of_value: Ints32) -> Reals:
    """Return for each row the share of the other values of these rows that its label joins with its own."""
    different, index = np.unique(values, return_inverse=True)
    _, label, sizes = np.unique(label_of_value[different], return_inverse=True, return_counts=True)
    return ((sizes[label] - 1) / max(len(different) - 1, 1)).astype(np.float32)[index]


def _list_tree_levels(texts: Sequence[str | None], tree: HierarchyTable) -> list[_Level]:
    paths = [(None,) * tree.height if text is None else tree.path(text) for text in texts]
    nothing = np.zeros(len(texts))
    tree_levels: list[_Level] = []
    for level in range(tree.height):
        shown = [path[level] for path in paths]
        if level == 0:
            shown = [None if text is None else label_value(text) for text in shown]
        tree_levels.append((str(level), shown, nothing))
    return tree_levels


def _list_periods(name: str, different: pa.ChunkedArray, may_end: bool) -> tuple[Floats, list[_Level]]:
    """Return days and periods; where it may, it ends with the first period in which all days lie."""
    moments, is_known, _ = take_numbers(name, different)
    days = np.floor(moments / labels.MICROSECONDS_PER_DAY).astype(np.int64)
    periods: list[_Level] = []
    for level in labels.CALENDAR:
        starts, ends = labels.find_periods(days, level)
        texts = [labels.label_period(start, level) for start in starts.tolist()]
        periods.append((level, _spread_texts(is_known, texts), _spread_numbers(is_known, ends - starts - 1, 0)))
        if may_end and len(starts) and (starts == starts[0]).all():
            break
    return _spread_numbers(is_known, days, np.nan), periods


def _list_ranges(name: str, different: pa.ChunkedArray, asked: Sequence[str] | None) -> tuple[Floats, list[_Level]]:
    """Return values and ranges: of the widths that are asked for, or of those that join something."""
    values, is_known, scale = take_exact_numbers(name, different)
    column_levels: list[_Level] = [
        ("value", _spread_texts(is_known, map(scale.text, values.tolist())), np.zeros(len(is_known)))
    ]
    different_values = np.unique(values)
    steps = _read_widths(name, asked or ())
    if asked is None and len(different_values) > 1:
        steps = {f"{step:g}": step for step in labels.list_round_steps(different_values)}
    ranges = len(different_values)
    for level, step in steps.items():
        of_step = labels.number_steps(values, step)
        count = len(np.unique(of_step))
        if asked is None and (count > _ALIKE * ranges or len(column_levels) > _MOST_RANGES):
            continue
        ranges = count
        lows, highs = labels.multiply_step(of_step, step), labels.multiply_step(of_step + 1, step)
        if ((values < lows) | (values >= highs)).any():
            raise ValueError(f'ladder must give column "{name}" a larger width than {level}: doubles are as far apart.')
        texts = [labels.label_span(scale, *ends) for ends in zip(lows.tolist(), highs.tolist(), strict=True)]
        column_levels.append(
            (level, _spread_texts(is_known, texts), _spread_numbers(is_known, np.full(len(values), step), 0))
        )
        if asked is None and count == 1:
            break
    return _spread_numbers(is_known, values, np.nan), column_levels


def _read_widths(name: str, asked: Iterable[str]) -> dict[str, float]:
    """Return the widths of ranges that a ladder asks for, from narrow to wide, by their names."""
    widths: dict[str, float] = {}
    for level in asked:
        if level in ("value", EVERYTHING):
            continue
        try:
            widths[level] = float(level)
        except ValueError:
            widths[level] = math.nan
        if not 1e-100 < widths[level] < 1e100:
            raise ValueError(
                f'ladder must give column "{name}" the width of a range such as 10, value or *; got {level}.'
            )
    return dict(sorted(widths.items(), key=lambda item: item[1]))


def _spread_texts(is_known: Bools, texts: Iterable[str]) -> list[str | None]:
    """Spread the texts of known values over all values, with None for NULL."""
    following = iter(texts)
    return [next(following) if known else None for known in is_known.tolist()]


def _spread_numbers(is_known: Bools, numbers_of_known: Floats | Ints, other: float) -> Floats:
    """Spread the numbers of known values over all values, with another number for NULL."""
    spread = np.full(len(is_known), other, np.float64)
    spread[is_known] = numbers_of_known
    return spread


MOST_LEVELS = 6
"""Levels of a ladder that is found by search: every one takes a pass over all choices."""
_FULL = 3.0
"""Logarithm, to the base of ten, of the people beyond which it does not matter how many share a label."""

LadderSteps = list[tuple[int, ...]]
"""For each level of the ladder the level of each column."""


class TableLadder(NamedTuple):
    """The labels of the rows of one table, for each level of the ladder."""

    steps: LadderSteps
    items: list[Ints32]  # the number of each row's label, equal on two levels where the texts are


def read_levels(ladder: Sequence[Mapping[str, str | None]]) -> dict[str, list[str]]:
    """Return the levels that a ladder gives to each column, by its name in lower case."""
    asked: dict[str, list[str]] = {}
    for named in ladder:
        for name, level in named.items():
            asked.setdefault(name.lower(), []).extend([level] if level is not None else [])
    return asked


def read_steps(columns: Sequence[ColumnLevels], ladder: Sequence[Mapping[str, str | None]]) -> LadderSteps:
    """Return the steps that a caller wrote; a column that a step does not name stays as it is on the step before."""
    index_of_name = {column.name.lower(): index for index, column in enumerate(columns)}
    current, steps = [0] * len(columns), []
    for named in ladder:
        for name, level in named.items():
            if name.lower() in index_of_name and level is not None:
                index = index_of_name[name.lower()]
                step = columns[index].find_level(level)
                if step < current[index]:
                    raise ValueError(f'ladder must go from fine to coarse; got "{level}" for column "{name}".')
                current[index] = step
        steps.append(tuple(current))
    return steps


def find_steps(columns: Sequence[ColumnLevels], classes: Ints, k: int) -> LadderSteps:
    """Find a ladder: each step takes the column in which a coarser level joins most people for what it loses.

    How well rows are hidden is the mean logarithm of the rows that share a label within a class. Of the path from the
    values to ``*`` everywhere, levels are kept that lie evenly between what is hidden at both ends.
    """
    current = [0] * len(columns)
    labels = _JointLabels(columns, classes)
    path = [tuple(current)]
    hidden = [_measure_hiding(labels.join_all_but(len(columns)), k)]
    losses: dict[tuple[int, int], float] = {}  # of a column, from the level before to another
    while any(level < len(column.levels) - 1 for level, column in zip(current, columns, strict=True)):
        best: tuple[float, int, float] | None = None
        for index, column in enumerate(columns):
            coarser = current[index] + 1
            if coarser < len(column.levels):
                progress.check()
                gain = _measure_hiding(_add_column(labels.join_all_but(index), column, coarser), k) - hidden[-1]
                if (index, coarser) not in losses:
                    losses[index, coarser] = float((column.losses(coarser) - column.losses(coarser - 1)).mean())
                score = (gain + 1e-9) / (losses[index, coarser] + 1e-3)
                if best is None or score > best[0]:
                    best = score, index, hidden[-1] + gain
        assert best is not None
        current[best[1]] += 1
        labels.change(best[1], current[best[1]])
        path.append(tuple(current))
        hidden.append(best[2])
    marks = np.linspace(hidden[0], hidden[-1], MOST_LEVELS)
    chosen = {int(np.argmin(np.abs(np.array(hidden) - mark))) for mark in marks} | {0, len(path) - 1}
    return [path[index] for index in sorted(chosen)]


class _JointLabels:
    """The labels of rows within their classes, of all columns but one: else each try would join all columns anew.

    Those of the columns before each, and of those behind it, are kept until one of them changes.
    """

    def __init__(self, columns: Sequence[ColumnLevels], classes: Ints) -> None:
        self._columns, self._levels = columns, [0] * len(columns)
        self._before: list[Ints] = [classes]
        self._behind: dict[int, Ints] = {}

    def change(self, index: int, level: int) -> None:
        """Show a column at another level."""
        self._levels[index] = level
        del self._before[index + 1 :]
        self._behind = {first: labels for first, labels in self._behind.items() if first > index}

    def join_all_but(self, index: int) -> Ints:
        """Return a number for the labels of all columns but one; of all where the index is none of a column."""
        for column in range(len(self._before) - 1, min(index, len(self._columns))):
            self._before.append(_add_column(self._before[column], self._columns[column], self._levels[column]))
        if index >= len(self._columns) - 1:
            return self._before[min(index, len(self._columns))]
        for column in range(len(self._columns) - 1, index, -1):
            if column not in self._behind:
                behind_column = self._behind.get(column + 1, np.zeros(len(self._before[0]), np.int64))
                self._behind[column] = _add_column(behind_column, self._columns[column], self._levels[column])
        behind = self._behind[index + 1]
        return rank_keys(self._before[index] * (int(behind.max(initial=0)) + 1) + behind)


def _add_column(labels: Ints, column: ColumnLevels, level: int) -> Ints:
    return rank_keys(labels * len(column.texts) + column.codes(level))


def _measure_hiding(labels: Ints, k: int) -> float:
    sizes = np.bincount(labels)[labels]
    return float(np.minimum(np.log10(sizes / k), _FULL).mean())


def build_ladder(columns: Sequence[ColumnLevels], steps: LadderSteps, rows: int) -> TableLadder:
    """Return the labels of the rows at every level: the texts of all columns together, as numbers."""
    key = np.zeros(len(steps) * rows, np.int64)
    for index, column in enumerate(columns):
        texts = np.concatenate([column.codes(levels[index]) for levels in steps])
        key = rank_keys(key * len(column.texts) + texts)
    return TableLadder(steps, np.split(key.astype(np.int32), len(steps)))


def measure_loss(columns: Sequence[ColumnLevels], levels: Sequence[int], rows: Ints32) -> Reals:
    """Return what some rows lose at a step of the ladder, the mean of their columns."""
    lost = np.zeros(len(rows), np.float32)
    for column, level in zip(columns, levels, strict=True):
        lost += column.losses(level, rows) / np.float32(len(columns))
    return lost
