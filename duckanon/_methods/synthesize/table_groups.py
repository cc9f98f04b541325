"""A table to synthesize: its columns, the groups that it is drawn in, and the size of clusters in each.

Group sizes are counted without the people who are kept out, since exact sizes would tell the labels of the last one.
Where no cluster size is chosen, the smallest is taken with which isolated people are hardly recognised: releases of
halves of the table are audited, and sizes bisected (`find_smallest_size`). An audit is off by .011, so it is repeated,
up to four times, where one alone does not decide.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from duckanon._core.common import progress
from duckanon._core.common.arrays import Floats, Ints, find_run_starts, sample_rows, sort_distinct
from duckanon._core.common.codes import encode_columns
from duckanon._core.common.names import match_columns
from duckanon._core.common.parameters import LEAST_CLUSTER_SIZE
from duckanon._core.common.people import NOBODY, refuse_large_k
from duckanon._core.common.row_keys import order_keys, pack_columns
from duckanon._core.encoding.column_split import with_telling_digits
from duckanon._core.encoding.number_types import NumberTypes
from duckanon._core.encoding.parts import ColumnParts
from duckanon._core.encoding.whole_sources import read_people_apart
from duckanon._core.privacy.audit import FEWEST, LIMIT, audit_pairs
from duckanon._methods.releasable.grids import Grid, round_to_digits
from duckanon._methods.releasable.marginals import refuse_rare
from duckanon._methods.synthesize.redrawing import Redrawing

_AUDITED_ROWS = 4_000  # with which a size is tried: the right one hardly depends on their number
_FACTOR = 2.0  # between the sizes that are tried
_MOST_AUDITS = 4  # of a size
_NOISE = 0.011  # the standard deviation of one audit: .008 and .014 were measured on two tables of 1,500 people


class _AuditedPeople(NamedTuple):
    """People who are audited: one row of each, drawn at random, and all their rows."""

    shown: Ints
    rows: Ints
    person_of_row: Ints | None

    def of(self, half: Ints) -> Ints:
        """Return all rows of some of the people."""
        if self.person_of_row is None:
            return self.shown[half]
        return self.rows[np.isin(self.person_of_row, half)]


def leave_out_people(rows: Ints, people: Ints | None, keep_out: int, random: np.random.Generator) -> Ints:
    """Leave people out, drawn at random, with all their rows."""
    if people is None:
        return rows[np.sort(random.permutation(len(rows))[keep_out:])]
    out = random.choice(sort_distinct(people[rows]), keep_out, replace=False)
    return rows[~np.isin(people[rows], out)]


def find_smallest_size(redrawing: Redrawing, group: Ints, keep_out: int, random: np.random.Generator) -> float | None:
    """Look for the smallest clusters with which isolated people are not recognised; None for all rows as one.

    Sizes are twice as large each time, from twice the rank on, the least with which a cluster is not its records. They
    are bisected: the larger clusters are, the less they tell about a record. Where people have several rows, halves are
    halves of the people, each with all rows, and one row of each isolated person is looked for. The release says
    nothing about ``keep_out`` people.
    """
    audited = _sample_people(redrawing.people, group, random)
    if len(audited.shown) < 2 * FEWEST:
        return None
    sizes = []
    size = max(2.0 * redrawing.rank, 2.0 * redrawing.k, LEAST_CLUSTER_SIZE)
    while 1.5 * size < len(audited.rows) / 2:  # in halves of the table there are at least two clusters
        sizes.append(size)
        size *= _FACTOR
    points = redrawing.matrix(redrawing.original(audited.shown), None).astype(np.float64)
    most_out = min(keep_out, len(audited.shown) // 8)

    def audit(size: float) -> float:
        def release(half: Ints, chance: np.random.Generator) -> Floats:
            rows = audited.of(half)
            used = leave_out_people(rows, redrawing.people, most_out, chance)
            parts = redrawing.redraw(used, len(rows), size, chance)
            return redrawing.matrix(parts, None).astype(np.float64)

        return audit_pairs(points, release, seed=int(random.integers(2**31)))

    first, last = 0, len(sizes)
    while first < last:
        middle = (first + last) // 2
        progress.advance(1 - (last - first) / (len(sizes) + 1))
        with progress.mute():
            is_large_enough = passes(partial(audit, sizes[middle]))
        if is_large_enough:
            last = middle
        else:
            first = middle + 1
    return sizes[last] if last < len(sizes) else None


def passes(audit: Callable[[], float]) -> bool:
    """Tell whether the mean of audits is at most the limit by more than its standard error; where in doubt, it is not.

    Examples:
        >>> passes(lambda: 0.52), passes(lambda: 0.549), passes(lambda: 0.58)
        (True, False, False)
    """
    rates: list[float] = []
    while len(rates) < _MOST_AUDITS:
        rates.append(audit())
        mean, error = float(np.mean(rates)), _NOISE / len(rates) ** 0.5
        if abs(mean - LIMIT) >= error:
            return mean < LIMIT
    return False


def _sample_people(people: Ints | None, group: Ints, random: np.random.Generator) -> _AuditedPeople:
    """Draw people of about as many rows as are audited."""
    if people is None:
        rows = group[sample_rows(_AUDITED_ROWS, len(group), random)]
        return _AuditedPeople(rows, rows, None)
    rows = group[people[group] != NOBODY]
    persons = sort_distinct(people[rows])
    most = max(2 * FEWEST, _AUDITED_ROWS * len(persons) // max(len(rows), 1))
    persons = persons[sample_rows(most, len(persons), random)]
    rows = random.permutation(rows[np.isin(people[rows], persons)])
    shown, person_of_row = np.unique(people[rows], return_index=True)[1], np.searchsorted(persons, people[rows])
    return _AuditedPeople(rows[shown], rows, person_of_row)


MOST_KEPT_OUT = 0.25
"""The share of the people that a release may say nothing about."""


def with_digits(column: ColumnParts) -> ColumnParts:
    """Give unrounded numbers the digits at which their holders are counted."""
    if column.regular is None:
        return column
    regular = column.array.filter(pa.array(column.is_regular))
    return replace(column, regular=with_telling_digits(column.regular, regular))


class TableRows(NamedTuple):
    """A table to draw from: its columns, the labels, the person of each row, and how its numbers were read."""

    table: pa.Table
    labels: pa.Table
    people: Ints | None
    types: NumberTypes


def read_rows(source: object, by: Sequence[str], person: str | None, k: int) -> TableRows:
    """Read a source whole, the columns of labels and of people apart; refuse too few people or columns."""
    table, people = read_people_apart(source, person)
    labels = match_columns("by", by, table.column_names)
    refuse_large_k(k, table.num_rows, people)
    drawn = table.drop_columns(labels)
    if drawn.num_columns < 2:
        raise ValueError(f"cols must name at least two columns; got {drawn.num_columns}.")
    types = NumberTypes.of(drawn)
    return TableRows(types.read(drawn), table.select(labels), people, types)


def refuse_rare_values(
    columns: Sequence[ColumnParts],
    grids: Sequence[Grid | None],
    released: pa.Table,
    people: Ints | None,
    least: list[int],
) -> None:
    """Count, at the digits that each column is drawn with, that every released value has its least number of people."""
    counted, shown = {}, {}
    for column, grid in zip(columns, grids, strict=True):
        counted[column.name] = round_to_digits(grid, column, column.array)
        shown[column.name] = round_to_digits(grid, column, released.column(column.name).combine_chunks())
    labels = [column.merged for column in columns]
    refuse_rare(pa.table(counted), pa.table(shown), people, least, labels)


def groups_of(labels: pa.Table, rows: int) -> list[Ints]:
    """Return the rows of each group of equal labels."""
    order, ordered = order_keys(pack_columns(encode_columns(labels), rows)[0])
    return list(np.split(order, find_run_starts(ordered)[1:]))


def count_group_rows(groups: Sequence[Ints], people: Ints | None, keep_out: int, random: np.random.Generator) -> Ints:
    """Count the rows of each group without some people: exact sizes would tell the labels of the last one."""
    if len(groups) == 1:
        return np.array([1])
    rows = np.concatenate(groups)
    is_counted = np.zeros(len(rows), bool)
    is_counted[leave_out_people(np.arange(len(rows)), people, keep_out, random)] = True
    return np.array([np.count_nonzero(is_counted[group]) for group in groups])


def add_labels(table: pa.Table, labels: pa.Table, row: int) -> pa.Table:
    """Give new rows the labels of their group."""
    rows = pa.array(np.full(table.num_rows, row))
    for name in labels.column_names:
        table = table.append_column(labels.schema.field(name), labels.column(name).take(rows))
    return table


def refuse_few_people(groups: Sequence[Ints], people: Ints | None, k: int, keep_out: int) -> None:
    """Refuse groups of fewer than k people, and those too small for the people who are kept out."""
    fewest = min(len(group) if people is None else len(sort_distinct(people[group])) for group in groups)
    if fewest < k:
        raise ValueError(f"by must make groups of at least {k} people; got one of {fewest}: name fewer columns.")
    if keep_out > MOST_KEPT_OUT * fewest:
        raise ValueError(
            f"keep_out must be at most a quarter of the people, {int(MOST_KEPT_OUT * fewest)}; got {keep_out}."
        )
