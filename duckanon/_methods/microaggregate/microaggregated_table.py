"""The table that ``anon.microaggregate`` releases: numbers and dates as what at least k people have in common."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from duckanon._core.common import progress, threads
from duckanon._core.common.arguments import generator
from duckanon._core.common.arrays import Floats, Ints
from duckanon._core.common.imports import imported
from duckanon._core.common.parameters import Kept
from duckanon._core.common.people import label_names, people_in, refuse_too_few
from duckanon._core.numbers.ends import HIGH
from duckanon._core.numbers.support import column_support
from duckanon._core.privacy.narrowing import refuse_narrowing
from duckanon._methods.boxes.nodes import value_order
from duckanon._methods.boxes.strata import with_strata
from duckanon._methods.boxes.typed import column_numbers, split_people
from duckanon._methods.microaggregate.labels import group_intervals, group_values, typed_values

_METHODS = {name: f"duckanon._methods.microaggregate.{name}:{name}" for name in ("mdav", "fast")}
"""Loaded when they are called for: only one of them needs scipy."""


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

    Options are as `MICROAGGREGATE` declares them; `deviations` are the standard deviations of the table that this one
    is a part of, if it is one.
    """
    table, names, people = split_people(table, cols, person, kept)
    for name in table.column_names:
        if (label == "interval" and name.lower() == "box") or name.lower().startswith("_duckanon_"):
            raise ValueError(f'the table has a column "{name}", a name that is needed for the groups; rename it first.')
    numbers = column_numbers(table, names)
    refuse_too_few(k, table.num_rows, people, "records")
    strata, supports = None, {}
    if by:
        table, strata = with_strata(table, label_names(table, by), numbers, k, people)
    if label == "interval":
        supports = {n: column_support(table.schema.field(n).type, c, k, people) for n, c in numbers.items()}
        numbers = {name: supports[name].coded(column) for name, column in numbers.items()}
    with threads.one_thread(), progress.part(0, 0.9):
        group = grouped(list(numbers.values()), k, method, people, strata, deviations)
    released: dict[str, tuple[pa.Array, ...]] = {}  # by column: a value of each group, or two ends
    if label == "interval":
        released |= group_intervals(table, numbers, supports, group, people, strata, k)
    else:
        for name, column in numbers.items():
            values = group_values(column, group, people, k, label)
            released[name] = (typed_values(table.schema.field(name).type, values),)
    # a group has the same labels, which k people share
    allowed = {name.lower() for name in [*(kept.narrowing or []), *(by or []), *([person] if person else [])]}
    _refuse_narrowing(table, numbers, released, group, allowed)
    order = generator(None).permutation(table.num_rows)
    shuffled, number = table.take(pa.array(order)), pa.array(group[order])
    for name, ends in released.items():
        shuffled = shuffled.set_column(shuffled.column_names.index(name), name, ends[0].take(number))
        if label == "interval":
            shuffled = shuffled.append_column(HIGH + name, ends[1].take(number))
    return shuffled.append_column("_duckanon_box", pa.array(group[order] + 1)) if label == "interval" else shuffled


def grouped(
    columns: Sequence[Floats],
    k: int,
    method: str,
    people: Ints | None,
    strata: Ints | None = None,
    deviations: Sequence[float] | None = None,
) -> Ints:
    """Return the group of each record, numbered from 0, by columns of any scale.

    The records of each stratum are grouped on their own. Columns are divided by their standard deviations, or by those
    that are given.
    """
    order = value_order(list(columns))  # so that groups do not depend on the order of the records
    given = [None] * len(columns) if deviations is None else deviations
    points = np.stack([_scaled(column[order], by) for column, by in zip(columns, given, strict=True)], axis=1)
    group = np.empty(len(order), np.int64)
    number = np.zeros(len(order), np.int64) if strata is None else strata[order]
    sizes = np.bincount(number)
    done = groups = 0
    for rows in np.split(np.argsort(number, kind="stable"), np.cumsum(sizes)[:-1]):
        with progress.part(done / len(order), (done + len(rows)) / len(order)):
            whose = None if people is None else people[order[rows]]
            within: Ints = imported(_METHODS[method])(points[rows], k, whose)
        group[order[rows]] = groups + within
        done, groups = done + len(rows), groups + int(within.max()) + 1
    if people_in(group, people, groups).min() < k:
        raise AssertionError(f"a group has fewer than {k} {'records' if people is None else 'people'}.")
    return group


def _scaled(column: Floats, given: float | None = None) -> Floats:
    """Return how many standard deviations each value is above the mean; 0 where all are the same."""
    above: Floats = column - column.mean()
    deviation = float(above.std(ddof=1)) if given is None else given
    return above / deviation if deviation > 0 and column.min() < column.max() else np.zeros_like(column)


def _refuse_narrowing(
    table: pa.Table,
    numbers: dict[str, Floats],
    released: dict[str, tuple[pa.Array, ...]],
    group: Ints,
    allowed: set[str],
) -> None:
    """Refuse a kept column that narrows down what the groups say, unless that is allowed."""
    kept = {
        name: table.column(name) for name in table.column_names if name not in numbers and name.lower() not in allowed
    }
    if not kept:
        return
    labels = {}
    for name, values in released.items():
        codes = [np.asarray(column.dictionary_encode().indices).astype(np.int64) for column in values]
        labels[name] = (codes[0] * (codes[-1].max() + 1) + codes[-1])[group]
    refuse_narrowing(numbers, labels, kept, group)
