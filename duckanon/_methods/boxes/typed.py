"""Columns as numbers, and the ends of boxes in a column's own type."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from duckanon._core.common import labels, values
from duckanon._core.common.arrays import Floats, Ints
from duckanon._core.common.labels import MICROSECONDS_PER_DAY
from duckanon._core.common.parameters import Kept
from duckanon._core.common.people import person_index, person_numbers
from duckanon._core.numbers.ends import Ends, is_day, rounded_outward, typed_ends, unit_of
from duckanon._methods.boxes.result import Boxes

_LARGEST_EXACT = {False: 2.0**53, True: 3_700_000}
"""Units that a value may be away from 0: what a double tells apart, and for days the year 12,000 or so."""


def split_people(
    table: pa.Table, cols: Sequence[str], person: str | None, kept: Kept
) -> tuple[pa.Table, list[str], Ints | None]:
    """Return a table without its column of people, unless that is kept; its names of `cols`; and whose each row is."""
    wanted = {name.lower() for name in cols}
    names = [name for name in table.column_names if name.lower() in wanted]
    if person is None:
        return table, names, None
    index = person_index(person, table.column_names, names)
    people = person_numbers(table.column(index))
    return table if kept.has(person) else table.remove_column(index), names, people


def column_numbers(table: pa.Table, names: Sequence[str]) -> dict[str, Floats]:
    """Take columns as numbers (`common.values.numbers`), or say what no interval can hold."""
    numbers = {}
    for name in names:
        column = table.column(name)
        if column.null_count:
            raise ValueError(f'column "{name}" has {column.null_count} NULLs, which no interval contains; remove them.')
        numbers[name] = values.numbers(name, column)[0]
        units = np.abs(numbers[name]) / unit_of(column.type)
        is_far = len(units) and units.max() > _LARGEST_EXACT[is_day(column.type)]
        if is_far and not pa.types.is_floating(column.type):
            raise ValueError(f'column "{name}" has values too far away to be computed with exactly; leave them out.')
    return numbers


def published_ends(
    column: pa.ChunkedArray, made: Boxes, index: int, box: str, top_code: bool = False
) -> tuple[pa.Array, pa.Array]:
    """Return the ends of each box in a column as they are released: in its own type, and never inside its records.

    `index` says which of the boxes' columns it is, `box` which of `result.KINDS` is released, `top_code` whether parts
    that reach far beyond the rest are open: their outer end is NULL.
    """
    kind = column.type
    if box == "parts":
        lower, upper = (ends[:, index] for ends in made.intervals(box))
        low, high = typed_ends(kind, lower, upper, has_unit=True)
        numbers = [values.numbers(made.names[index], ends)[0] for ends in (low, high)]
        # A record that is coded to an end of the column is at the number that is nearest to it in the column's type.
        held = [ends[:, index] for ends in made.bounds]
        if pa.types.is_float32(kind):
            held = [ends.astype(np.float32).astype(np.float64) for ends in held]
        if (numbers[0] > held[0]).any() or (numbers[1] < held[1]).any():
            raise AssertionError("an end of a part lies inside its records.")
        return _opened((low, high), made, index) if top_code else (low, high)
    least, largest = _extremes(column, made.box)
    if box == "bounds":
        return least, largest
    # Days are rounded to months, and not to round numbers before.
    is_month = box == "rounded" and is_day(kind)
    lower, upper = (ends[:, index] for ends in made.intervals("bounds" if is_month else box))
    if is_month:
        lower, upper = _month(lower, False), _month(upper, True)
    if box == "cell":
        lower, upper = _round_outermost(kind, lower, upper)
    low, high = typed_ends(kind, lower, upper)
    if pa.types.is_float64(kind):  # what was computed with is what the column holds: nothing to make good
        return low, high
    return pc.if_else(pc.less(low, least), low, least), pc.if_else(pc.greater(high, largest), high, largest)


def _opened(ends: Ends, made: Boxes, index: int) -> Ends:
    """Leave ends open that belong to parts which reach far beyond the rest."""
    if made.open_ends is None:
        return ends
    nothing, (below, above) = pa.scalar(None, ends[0].type), made.open_ends
    return tuple(
        pc.if_else(pa.array(is_open[:, index]), nothing, end) for end, is_open in zip(ends, (below, above), strict=True)
    )


def _round_outermost(kind: pa.DataType, lower: Floats, upper: Floats) -> tuple[Floats, Floats]:
    """Grow the outermost cells to round numbers: they end at the smallest and the largest value, real people's."""
    first, last = lower.min(), upper.max()
    ends = rounded_outward(np.array([[first]]), np.array([[last]]))
    if is_day(kind):
        ends = _month(np.array([first]), False), _month(np.array([last]), True)
    lower = np.where(lower == first, float(ends[0].ravel()[0]), lower)
    return lower, np.where(upper == last, float(ends[1].ravel()[0]), upper)


def _extremes(column: pa.ChunkedArray, box_of: Ints) -> Ends:
    """Return the smallest and the largest value of each box, as the column holds them."""
    grouped = pa.table({"box": pa.array(box_of), "x": column}).group_by("box").aggregate([("x", "min"), ("x", "max")])
    grouped = grouped.sort_by("box")
    return grouped.column("x_min").combine_chunks(), grouped.column("x_max").combine_chunks()


def _month(moments: Floats, is_end: bool) -> Floats:
    """Return the first day of each moment's month, or the last, both in microseconds since 1970."""
    starts = labels.period_starts(np.floor(moments / MICROSECONDS_PER_DAY).astype(np.int64), "month")
    days = [labels.period(int(start), "month")[1] - 1 for start in starts] if is_end else starts
    return np.array(days, np.float64) * MICROSECONDS_PER_DAY
