"""The labels that a cell may show, from its own value to ``*``: levels of a hierarchy, of the calendar, or ranges."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from duckanon._core.common import labels
from duckanon._core.common.arrays import Floats, Ints, Ints32, Reals, is_number, is_time, run_starts
from duckanon._core.common.codes import Codes, encode
from duckanon._core.common.made_labels import EVERYTHING, value_label
from duckanon._core.common.values import numbers
from duckanon._methods.generalize.hierarchies import HierarchyTable

_MOST_RANGES = 6
"""Widths of ranges that are tried, of about half as many ranges each."""


class ColumnLevels(NamedTuple):
    """The labels of one column of a table, level by level, the finest first and ``*`` last."""

    name: str
    levels: list[str]  # their names: 'month', '10', '1', '*'
    value_of_row: Codes
    value_codes: list[Ints32]  # for each level the text of each value, as a number: equal texts have equal numbers
    value_losses: list[Reals]  # for each level what each value loses, from 0 to 1
    texts: list[str | None]

    def codes(self, level: int) -> Ints32:
        """Return the number of the text that each row shows at a level."""
        return self.value_codes[level][self.value_of_row]

    def losses(self, level: int, rows: Ints | Ints32 | slice = slice(None)) -> Reals:
        """Return what rows lose at a level, all of them or some."""
        return self.value_losses[level][self.value_of_row[rows]]

    def level(self, name: str) -> int:
        """Return the place of a level by its name."""
        if name not in self.levels:
            raise ValueError(f'ladder must give column "{self.name}" one of {", ".join(self.levels)}; got {name}.')
        return self.levels.index(name)


def column_levels(name: str, column: pa.ChunkedArray, tree: HierarchyTable | None) -> ColumnLevels:
    """Return the levels of a column: of its hierarchy, of the calendar, of ranges, or only the values and ``*``."""
    ((codes, count),) = encode(pa.table({"value": column}))
    firsts = np.unique(codes, return_index=True)[1]
    different = column.take(pa.array(firsts))
    if pa.types.is_dictionary(different.type):
        different = different.cast(different.type.value_type)
    if tree is not None:
        found = _of_tree([_text(one) for one in different.to_pylist()], tree)
    elif is_time(column.type):
        found = _of_calendar(name, different)
    elif is_number(column.type):
        found = _of_ranges(name, different)
    else:
        shown = [None if text is None else value_label(text) for text in map(_text, different.to_pylist())]
        found = [("value", shown, np.zeros(count))]
    found.append((EVERYTHING, [tree.root if tree else EVERYTHING] * count, np.ones(count)))
    number_of: dict[str | None, int] = {}
    levels: list[str] = []
    coded: list[Ints] = []
    losses: list[Floats] = []
    for level, texts, loss in found:
        numbered = np.array([number_of.setdefault(text, len(number_of)) for text in texts], np.int64)
        if coded and len(np.unique(numbered)) == len(np.unique(coded[-1])) and level != EVERYTHING:
            continue  # it joins nothing
        levels.append(level)
        coded.append(numbered)
        losses.append(loss)
    return ColumnLevels(
        name,
        levels,
        codes,
        [one.astype(np.int32) for one in coded],
        [one.astype(np.float32) for one in losses],
        list(number_of),
    )


_Level = tuple[str, list[str | None], Floats]


def _text(value: object) -> str | None:
    if value is None:
        return None
    return str(value).lower() if isinstance(value, bool) else str(value)


def _of_tree(texts: Sequence[str | None], tree: HierarchyTable) -> list[_Level]:
    paths = [(None,) * tree.height if text is None else tree.path(text) for text in texts]
    found: list[_Level] = []
    for level in range(tree.height):
        shown = [path[level] for path in paths]
        if level == 0:
            shown = [None if text is None else value_label(text) for text in shown]
        sizes: dict[str | None, int] = {}
        for text in shown:
            sizes[text] = sizes.get(text, 0) + 1
        share = np.array([(sizes[text] - 1) / max(len(texts) - 1, 1) for text in shown])
        found.append((str(level), shown, share))
    return found


def _of_calendar(name: str, different: pa.ChunkedArray) -> list[_Level]:
    known_days, is_known, _ = numbers(name, different)
    days = np.floor(known_days[is_known] / labels.MICROSECONDS_PER_DAY).astype(np.int64)
    span = max(int(days.max(initial=0) - days.min(initial=0)), 1)
    found: list[_Level] = []
    for level in labels.CALENDAR:
        starts, ends = labels.periods(days, level)
        texts = np.full(len(different), None, object)
        texts[is_known] = [labels.of_period(start, level) for start in starts.tolist()]
        loss = np.zeros(len(different))
        loss[is_known] = np.minimum((ends - starts - 1) / span, 1)
        found.append((level, texts.tolist(), loss))
        if len(starts) and (starts == starts[0]).all():
            break
    return found


def _of_ranges(name: str, different: pa.ChunkedArray) -> list[_Level]:
    values, is_known, scale = numbers(name, different)
    positions = np.sort(values[is_known])
    positions = positions[run_starts(positions)]
    whole = [None if value is None else scale.text(value) for value in np.where(is_known, values, np.nan).tolist()]
    texts = [text if known else None for text, known in zip(whole, is_known.tolist(), strict=True)]
    found: list[_Level] = [("value", texts, np.zeros(len(different)))]
    if len(positions) < 2:
        return found
    span = float(positions[-1] - positions[0])
    ranges = len(positions)
    for step in labels.round_steps(positions):
        of_step = labels.step_numbers(values[is_known], step)
        count = len(np.unique(of_step))
        if count > 0.6 * ranges or len(found) > _MOST_RANGES:
            continue
        ranges = count
        shown = np.full(len(different), None, object)
        lows, highs = labels.multiples(of_step, step), labels.multiples(of_step + 1, step)
        shown[is_known] = [labels.of_span(scale, *ends) for ends in zip(lows.tolist(), highs.tolist(), strict=True)]
        loss = np.where(is_known, min(step / span, 1), 0.0)
        found.append((f"{step:g}", shown.tolist(), loss))
        if count == 1:
            break
    return found
