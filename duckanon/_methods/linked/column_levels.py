"""The labels that a cell may show, from its own value to ``*``: levels of a hierarchy, of the calendar, or ranges."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from duckanon._core.common import labels
from duckanon._core.common.arrays import Bools, Floats, Ints, Ints32, Reals, is_number, is_time
from duckanon._core.common.codes import Codes, encode
from duckanon._core.common.made_labels import EVERYTHING, value_label
from duckanon._core.common.values import exact_numbers, numbers
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
    positions: Floats | None  # of each value, NaN where it is NULL; None: only a hierarchy tells what lies together
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
            return _joined_shares(values, self.value_codes[level])
        known = self.positions[values]
        known = known[~np.isnan(known)]
        span = float(known.max() - known.min()) if len(known) else 0.0
        return np.minimum(self.widths[level][values] / (span or _NO_SPAN), 1).astype(np.float32)

    def level(self, name: str) -> int:
        """Return the place of a level by its name."""
        if name not in self.levels:
            raise ValueError(f'ladder must give column "{self.name}" one of {", ".join(self.levels)}; got {name}.')
        return self.levels.index(name)


def column_levels(
    name: str, column: pa.ChunkedArray, tree: HierarchyTable | None, asked: Sequence[str] | None = None
) -> ColumnLevels:
    """Return the levels of a column: of its hierarchy, of the calendar, of ranges, or only the values and ``*``.

    Those that are `asked` for are there whatever the values are; else those that join something.
    """
    ((codes, count),) = encode(pa.table({"value": column}))
    firsts = np.unique(codes, return_index=True)[1]
    different = column.take(pa.array(firsts))
    if pa.types.is_dictionary(different.type):
        different = different.cast(different.type.value_type)
    positions: Floats | None = None
    if tree is not None:
        found = _of_tree([_text(one) for one in different.to_pylist()], tree)
    elif is_time(column.type):
        positions, found = _of_calendar(name, different, may_end=asked is None)
    elif is_number(column.type):
        positions, found = _of_ranges(name, different, asked)
    else:
        shown = [None if text is None else value_label(text) for text in map(_text, different.to_pylist())]
        found = [("value", shown, np.zeros(count))]
    found.append((EVERYTHING, [tree.root if tree else EVERYTHING] * count, np.zeros(count)))
    number_of: dict[str | None, int] = {}
    levels: list[str] = []
    coded: list[Ints] = []
    widths: list[Floats] = []
    for level, texts, width in found:
        numbered = np.array([number_of.setdefault(text, len(number_of)) for text in texts], np.int64)
        joins_nothing = coded and len(np.unique(numbered)) == len(np.unique(coded[-1]))
        if asked is None and joins_nothing and level != EVERYTHING:
            continue
        levels.append(level)
        coded.append(numbered)
        widths.append(width)
    return ColumnLevels(
        name, levels, codes, [one.astype(np.int32) for one in coded], list(number_of), positions, widths
    )


_Level = tuple[str, list[str | None], Floats]
"""Its name, the text of each value, and how wide what it names is."""


def _text(value: object) -> str | None:
    if value is None:
        return None
    return str(value).lower() if isinstance(value, bool) else str(value)


def _joined_shares(values: Codes, label_of_value: Ints32) -> Reals:
    """Return for each row the share of the other values of these rows that its label joins with its own."""
    different, place = np.unique(values, return_inverse=True)
    _, label, sizes = np.unique(label_of_value[different], return_inverse=True, return_counts=True)
    return ((sizes[label] - 1) / max(len(different) - 1, 1)).astype(np.float32)[place]


def _of_tree(texts: Sequence[str | None], tree: HierarchyTable) -> list[_Level]:
    paths = [(None,) * tree.height if text is None else tree.path(text) for text in texts]
    nothing = np.zeros(len(texts))
    found: list[_Level] = []
    for level in range(tree.height):
        shown = [path[level] for path in paths]
        if level == 0:
            shown = [None if text is None else value_label(text) for text in shown]
        found.append((str(level), shown, nothing))
    return found


def _of_calendar(name: str, different: pa.ChunkedArray, may_end: bool) -> tuple[Floats, list[_Level]]:
    """Return days and periods; where it may, it ends with the first period in which all days lie."""
    moments, is_known, _ = numbers(name, different)
    days = np.floor(moments / labels.MICROSECONDS_PER_DAY).astype(np.int64)
    found: list[_Level] = []
    for level in labels.CALENDAR:
        starts, ends = labels.periods(days, level)
        texts = [labels.of_period(start, level) for start in starts.tolist()]
        found.append((level, _where_known(is_known, texts), _spread(is_known, ends - starts - 1, 0)))
        if may_end and len(starts) and (starts == starts[0]).all():
            break
    return _spread(is_known, days, np.nan), found


def _of_ranges(name: str, different: pa.ChunkedArray, asked: Sequence[str] | None) -> tuple[Floats, list[_Level]]:
    """Return values and ranges: of the widths that are asked for, or of those that join something."""
    values, is_known, scale = exact_numbers(name, different)
    found: list[_Level] = [("value", _where_known(is_known, map(scale.text, values.tolist())), np.zeros(len(is_known)))]
    different_values = np.unique(values)
    steps = _widths(name, asked or ())
    if asked is None and len(different_values) > 1:
        steps = {f"{step:g}": step for step in labels.round_steps(different_values)}
    ranges = len(different_values)
    for level, step in steps.items():
        of_step = labels.step_numbers(values, step)
        count = len(np.unique(of_step))
        if asked is None and (count > _ALIKE * ranges or len(found) > _MOST_RANGES):
            continue
        ranges = count
        lows, highs = labels.multiples(of_step, step), labels.multiples(of_step + 1, step)
        if ((values < lows) | (values >= highs)).any():
            raise ValueError(f'ladder must give column "{name}" a larger width than {level}: doubles are as far apart.')
        texts = [labels.of_span(scale, *ends) for ends in zip(lows.tolist(), highs.tolist(), strict=True)]
        found.append((level, _where_known(is_known, texts), _spread(is_known, np.full(len(values), step), 0)))
        if asked is None and count == 1:
            break
    return _spread(is_known, values, np.nan), found


def _widths(name: str, asked: Iterable[str]) -> dict[str, float]:
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
    return dict(sorted(widths.items(), key=lambda one: one[1]))


def _where_known(is_known: Bools, texts: Iterable[str]) -> list[str | None]:
    """Return the texts of known values in their places, and None in those of NULL."""
    following = iter(texts)
    return [next(following) if known else None for known in is_known.tolist()]


def _spread(is_known: Bools, numbers_of_known: Floats | Ints, other: float) -> Floats:
    """Return the numbers of known values in their places, and another one in those of NULL."""
    found = np.full(len(is_known), other, np.float64)
    found[is_known] = numbers_of_known
    return found
