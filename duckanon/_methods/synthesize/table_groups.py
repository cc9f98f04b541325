"""A table to synthesize: its columns, the groups that it is drawn in, and whose each row is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from duckanon._core.common.arrays import Ints, distinct
from duckanon._core.common.codes import encode
from duckanon._core.common.names import known_columns
from duckanon._core.common.people import refuse_too_few
from duckanon._core.encoding.digits import with_telling_digits
from duckanon._core.encoding.number_types import NumberTypes
from duckanon._core.encoding.parts import ColumnParts
from duckanon._core.encoding.whole_sources import whole_people
from duckanon._methods.releasable.grids import Grid, at_digits
from duckanon._methods.releasable.marginals import refuse_rare
from duckanon._methods.synthesize.audited_size import without_some

MOST_KEPT_OUT = 0.25
"""The share of the people that a release may say nothing about."""


def with_digits(column: ColumnParts) -> ColumnParts:
    """Give unrounded numbers the digits at which their holders are counted."""
    if column.regular is None:
        return column
    regular = column.array.filter(pa.array(column.is_regular))
    return replace(column, regular=with_telling_digits(column.regular, regular))


class TableRows(NamedTuple):
    """A table to draw from: its columns, the columns of labels, whose each row is, and how its numbers were read."""

    table: pa.Table
    labels: pa.Table
    people: Ints | None
    types: NumberTypes


def read_rows(source: object, by: Sequence[str], person: str | None, k: int) -> TableRows:
    """Read a source whole, the columns of labels and of people apart; refuse too few people or columns."""
    table, people = whole_people(source, person)
    labels = known_columns("by", by, table.column_names)
    refuse_too_few(k, table.num_rows, people)
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
        counted[column.name] = at_digits(grid, column, column.array)
        shown[column.name] = at_digits(grid, column, released.column(column.name).combine_chunks())
    labels = [column.merged for column in columns]
    refuse_rare(pa.table(counted), pa.table(shown), people, least, labels)


def groups_of(labels: pa.Table, rows: int) -> list[Ints]:
    """Return the rows of each group of equal labels."""
    group = np.zeros(rows, np.int64)
    for codes, count in encode(labels):
        group = np.unique(group * count + codes, return_inverse=True)[1].astype(np.int64)
    order = np.argsort(group, kind="stable")
    return list(np.split(order, np.cumsum(np.bincount(group))[:-1]))


def _people_count(rows: Ints, people: Ints | None) -> int:
    return len(rows) if people is None else len(distinct(people[rows]))


def shown_sizes(groups: Sequence[Ints], people: Ints | None, keep_out: int, random: np.random.Generator) -> Ints:
    """Count the rows of each group without some people: exact sizes would tell the labels of the last one."""
    if len(groups) == 1:
        return np.array([1])
    rows = np.concatenate(groups)
    is_counted = np.zeros(len(rows), bool)
    is_counted[without_some(np.arange(len(rows)), people, keep_out, random)] = True
    return np.array([np.count_nonzero(is_counted[group]) for group in groups])


def labelled(made: pa.Table, labels: pa.Table, row: int) -> pa.Table:
    """Give new rows the labels of their group."""
    rows = pa.array(np.full(made.num_rows, row))
    for name in labels.column_names:
        made = made.append_column(labels.schema.field(name), labels.column(name).take(rows))
    return made


def refuse_few_people(groups: Sequence[Ints], people: Ints | None, k: int, keep_out: int) -> None:
    """Refuse groups of fewer than k people, and those too small for the people who are kept out."""
    fewest = min(_people_count(group, people) for group in groups)
    if fewest < k:
        raise ValueError(f"by must make groups of at least {k} people; got one of {fewest}: name fewer columns.")
    if keep_out > MOST_KEPT_OUT * fewest:
        raise ValueError(
            f"keep_out must be at most a quarter of the people, {int(MOST_KEPT_OUT * fewest)}; got {keep_out}."
        )
