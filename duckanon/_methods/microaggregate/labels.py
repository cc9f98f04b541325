"""The released value of a group: the mean of its people, the mean of those in the middle, or an interval."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from duckanon._core.common.arrays import Floats, Ints, is_time
from duckanon._core.common.labels import MICROSECONDS_PER_DAY
from duckanon._core.numbers.parts import column_parts
from duckanon._core.numbers.support import Support
from duckanon._methods.boxes.result import Boxes
from duckanon._methods.boxes.shaping import sensitivities
from duckanon._methods.boxes.typed import published_ends

_MIDDLE = 3
"""People whose mean stands for a median at least: of one it would be a person's own value, of two a difference away
from it for the other one."""


def group_values(numbers: Floats, group: Ints, people: Ints | None, k: int, label: str) -> Floats:
    """Return one number for each group.

    'mean' is the mean of the group's people, 'median' the mean of those in the middle, half of k and at least three
    people, as a median would be one person's own value.

    A person with many records counts once, with the mean of those in the group: otherwise the group's mean would be
    near that person's. Records of nobody known count as one person's. Sums are taken from the group's smallest value,
    so that the mean of equal values is that value.

    Examples:
        >>> group_values(np.array([1.0, 2.0, 3.0, 4.0, 90.0]), np.zeros(5, np.int64), None, 3, "median").tolist()
        [3.0]
    """
    if people is not None:
        units, unit = np.unique(group * (int(people.max(initial=0)) + 2) + people + 1, return_inverse=True)
        numbers = _means(numbers, unit.reshape(-1), len(units))
        group = units // (int(people.max(initial=0)) + 2)
    count = int(group.max()) + 1
    if label == "median":
        order = np.lexsort((numbers, group))
        numbers, group = numbers[order], group[order]
        sizes = np.bincount(group, minlength=count)
        rank = np.arange(len(group)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        middle = np.minimum(sizes, max(_MIDDLE, -(-k // 2)))
        left_out = ((sizes - middle) // 2)[group]
        chosen = (rank >= left_out) & (rank < sizes[group] - left_out)
        numbers, group = numbers[chosen], group[chosen]
    return _means(numbers, group, count)


def typed_values(kind: pa.DataType, numbers: Floats) -> pa.Array:
    """Write the numbers of groups, dates and moments in the column's own type; dates are rounded to the nearest day."""
    if not is_time(kind):
        return pa.array(numbers)
    if pa.types.is_date(kind):
        return pa.array(np.rint(numbers / MICROSECONDS_PER_DAY).astype(np.int32)).cast(pa.date32())
    moments = pa.array(np.rint(numbers).astype(np.int64)).cast(pa.timestamp("us", kind.tz))
    return moments.cast(kind, safe=False)


def group_intervals(
    table: pa.Table,
    numbers: Mapping[str, Floats],
    supports: Mapping[str, Support],
    group: Ints,
    people: Ints | None,
    strata: Ints | None,
    k: int,
) -> dict[str, tuple[pa.Array, pa.Array]]:
    """Return the ends of each group's intervals by column, made of parts that at least k people share.

    The columns as `numbers` are coded by `supports`, their units and ends.
    """
    starts_at = np.argsort(group, kind="stable")
    counts = np.bincount(group)
    starts = np.cumsum(counts) - counts
    ends, bounds = np.empty((2, len(counts), len(numbers))), np.empty((2, len(counts), len(numbers)))
    for place, (name, column) in enumerate(numbers.items()):
        parts = column_parts(column, k, supports[name], people, strata)
        number = parts.number[starts_at]
        ends[0, :, place] = parts.lower[np.minimum.reduceat(number, starts)]
        ends[1, :, place] = parts.upper[np.maximum.reduceat(number, starts)]
        coded = column[starts_at]
        bounds[0, :, place] = np.minimum.reduceat(coded, starts)
        bounds[1, :, place] = np.maximum.reduceat(coded, starts)
    both, within = (ends[0], ends[1]), (bounds[0], bounds[1])
    made = Boxes(tuple(numbers), group, counts, within, within, sensitivities(dict(numbers), None), both)
    return {name: published_ends(table.column(name), made, place, "parts") for place, name in enumerate(numbers)}


def _means(numbers: Floats, group: Ints, count: int) -> Floats:
    """Return the mean of each group, the same to the last digit in whatever order the records come."""
    order = np.lexsort((numbers, group))
    numbers, group = numbers[order], group[order]
    sizes = np.bincount(group, minlength=count)
    least = numbers[np.cumsum(sizes) - sizes]
    means: Floats = least + np.bincount(group, numbers - least[group], minlength=count) / sizes
    return means
