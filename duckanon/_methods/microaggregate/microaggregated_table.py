"""The table that ``anon.microaggregate`` releases: numbers and dates as what at least k people have in common.

Columns are divided by their standard deviations and sorted by value, so that groups depend neither on units nor on the
order of the records; each stratum of labels is grouped on its own (`mdav` or `fast`). A group is released as the mean
of its people, the mean of those in the middle, or an interval of parts that k people share. A person with many records
counts once in a group. Kept columns that would narrow a group's values are refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from duckanon._core.common import progress, resources
from duckanon._core.common.arguments import make_generator
from duckanon._core.common.arrays import Floats, Ints, is_time
from duckanon._core.common.imports import import_function
from duckanon._core.common.labels import MICROSECONDS_PER_DAY
from duckanon._core.common.parameters import Kept
from duckanon._core.common.people import count_people, refuse_large_k, spell_label_columns
from duckanon._core.numbers.ends import HIGH_PREFIX
from duckanon._core.numbers.parts import cut_column
from duckanon._core.numbers.support import NumberSupport, find_support
from duckanon._core.privacy.narrowing import refuse_narrowing
from duckanon._methods.boxes.boxed_table import publish_ends, read_numbers, select_kept, split_people
from duckanon._methods.boxes.nodes import Boxes, sort_by_value
from duckanon._methods.boxes.shaping import measure_sensitivities
from duckanon._methods.boxes.strata import form_strata

_MIDDLE = 3
"""People whose mean stands for a median, at least: the value of one would be that person's, and of the mean of two each
could compute the other's."""


def compute_group_values(numbers: Floats, group: Ints, people: Ints | None, k: int, label: str) -> Floats:
    """Return one number for each group.

    'mean' is the mean of the group's people, 'median' the mean of those in the middle, half of k and at least three
    people, as a median would be one person's own value.

    A person with many records counts once, with the mean of those in the group: otherwise the group's mean would be
    near that person's. Records of nobody known count as one person's. Sums are taken from the group's smallest value,
    so that the mean of equal values is that value.

    Examples:
        >>> numbers = np.array([1.0, 2.0, 3.0, 4.0, 90.0])
        >>> compute_group_values(numbers, np.zeros(5, np.int64), None, 3, "median").tolist()
        [3.0]
    """
    if people is not None:
        units, unit = np.unique(group * (int(people.max(initial=0)) + 2) + people + 1, return_inverse=True)
        numbers = _compute_means(numbers, unit.reshape(-1), len(units))
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
    return _compute_means(numbers, group, count)


def type_values(kind: pa.DataType, numbers: Floats) -> pa.Array:
    """Write the numbers of groups, dates and moments in the column's own type; dates are rounded to the nearest day."""
    if not is_time(kind):
        return pa.array(numbers)
    if pa.types.is_date(kind):
        return pa.array(np.rint(numbers / MICROSECONDS_PER_DAY).astype(np.int32)).cast(pa.date32())
    moments = pa.array(np.rint(numbers).astype(np.int64)).cast(pa.timestamp("us", kind.tz))
    return moments.cast(kind, safe=False)


def make_intervals(
    table: pa.Table,
    numbers: Mapping[str, Floats],
    supports: Mapping[str, NumberSupport],
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
    for index, (name, column) in enumerate(numbers.items()):
        parts = cut_column(column, k, supports[name], people, strata)
        number = parts.number[starts_at]
        ends[0, :, index] = parts.lower[np.minimum.reduceat(number, starts)]
        ends[1, :, index] = parts.upper[np.maximum.reduceat(number, starts)]
        coded = column[starts_at]
        bounds[0, :, index] = np.minimum.reduceat(coded, starts)
        bounds[1, :, index] = np.maximum.reduceat(coded, starts)
    both, within = (ends[0], ends[1]), (bounds[0], bounds[1])
    boxed = Boxes(tuple(numbers), group, counts, within, within, measure_sensitivities(dict(numbers), None), both)
    return {name: publish_ends(table.column(name), boxed, index, "parts") for index, name in enumerate(numbers)}


def _compute_means(numbers: Floats, group: Ints, count: int) -> Floats:
    """Return the mean of each group, the same to the last digit in whatever order the records come."""
    order = np.lexsort((numbers, group))
    numbers, group = numbers[order], group[order]
    sizes = np.bincount(group, minlength=count)
    least = numbers[np.cumsum(sizes) - sizes]
    means: Floats = least + np.bincount(group, numbers - least[group], minlength=count) / sizes
    return means


_METHODS = {name: f"duckanon._methods.microaggregate.{name}:{name}" for name in ("mdav", "fast")}
"""Imported when called: only `fast` needs scipy."""


def microaggregate(
    table: pa.Table,
    *,
    cols: Sequence[str],
    k: int,
    method: str,
    label: str,
    by: Sequence[str] | None,
    person: str | None,
    kept: Kept,
    deviations: Sequence[float] | None = None,
) -> pa.Table:
    """Group the records of a table and release each as its group, in a random order.

    Options are as `MICROAGGREGATE` declares them; `deviations` are the standard deviations of the table of which this
    one is a part, if any.
    """
    table, names, people = split_people(table, cols, person, kept)
    for name in table.column_names:
        if (label == "interval" and name.lower() == "box") or name.lower().startswith("_duckanon_"):
            raise ValueError(f'the table has a column "{name}", a name that is needed for the groups; rename it first.')
    numbers = read_numbers(table, names)
    refuse_large_k(k, table.num_rows, people, "records")
    strata, supports = None, {}
    if by:
        table, strata = form_strata(table, spell_label_columns(table, by), numbers, k, people)
    if label == "interval":
        supports = {n: find_support(table.schema.field(n).type, c, k, people) for n, c in numbers.items()}
        numbers = {name: supports[name].round_and_clip(column) for name, column in numbers.items()}
    with resources.use_one_thread(), progress.step(0, 0.9):
        group = group_records(list(numbers.values()), k, method, people, strata, deviations)
    released: dict[str, tuple[pa.Array, ...]] = {}  # by column: a value of each group, or two ends
    if label == "interval":
        released |= make_intervals(table, numbers, supports, group, people, strata, k)
    else:
        for name, column in numbers.items():
            values = compute_group_values(column, group, people, k, label)
            released[name] = (type_values(table.schema.field(name).type, values),)
    if kept_columns := select_kept(table, names, kept, by, person):
        label_of_column = {}
        for name, arrays in released.items():
            codes = [np.asarray(array.dictionary_encode().indices).astype(np.int64) for array in arrays]
            label_of_column[name] = (codes[0] * (codes[-1].max() + 1) + codes[-1])[group]
        refuse_narrowing(numbers, label_of_column, kept_columns, group)
    order = make_generator(None).permutation(table.num_rows)
    shuffled, number = table.take(pa.array(order)), pa.array(group[order])
    for name, ends in released.items():
        shuffled = shuffled.set_column(shuffled.column_names.index(name), name, ends[0].take(number))
        if label == "interval":
            shuffled = shuffled.append_column(HIGH_PREFIX + name, ends[1].take(number))
    return shuffled.append_column("_duckanon_box", pa.array(group[order] + 1)) if label == "interval" else shuffled


def group_records(
    columns: Sequence[Floats],
    k: int,
    method: str,
    people: Ints | None,
    strata: Ints | None = None,
    deviations: Sequence[float] | None = None,
) -> Ints:
    """Return the group of each record, numbered from 0, by columns of any scale.

    The records of each stratum are grouped on their own. Columns are divided by `deviations`, or by their own standard
    deviations without these.
    """
    order = sort_by_value(list(columns))  # so that groups do not depend on the order of the records
    scales = [None] * len(columns) if deviations is None else deviations
    points = np.empty((len(order), len(columns)))  # in standard deviations from the mean; 0 where all are the same
    for index, (column, scale) in enumerate(zip(columns, scales, strict=True)):
        above = column[order] - column[order].mean()
        deviation = float(above.std(ddof=1)) if scale is None else scale
        points[:, index] = above / deviation if deviation > 0 and column.min() < column.max() else 0.0
    group = np.empty(len(order), np.int64)
    number = np.zeros(len(order), np.int64) if strata is None else strata[order]
    sizes = np.bincount(number)
    done = groups = 0
    for rows in np.split(np.argsort(number, kind="stable"), np.cumsum(sizes)[:-1]):
        with progress.step(done / len(order), (done + len(rows)) / len(order)):
            person_of_row = None if people is None else people[order[rows]]
            within: Ints = import_function(_METHODS[method])(points[rows], k, person_of_row)
        group[order[rows]] = groups + within
        done, groups = done + len(rows), groups + int(within.max()) + 1
    if count_people(group, people, groups).min() < k:
        raise AssertionError(f"a group has fewer than {k} {'records' if people is None else 'people'}.")
    return group
