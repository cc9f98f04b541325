"""The release to recommend: new records whose clusters keep means and covariances, of values shared by many people."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from duckanon._core.common.arguments import generator
from duckanon._core.common.arrays import Ints
from duckanon._core.common.codes import encode
from duckanon._core.common.names import known_columns
from duckanon._core.common.people import refuse_too_few
from duckanon._core.common.progress import Tell, silent, within
from duckanon._core.encoding import table_encoding
from duckanon._core.encoding.column_split import Reading, split_columns
from duckanon._core.encoding.digits import with_telling_digits
from duckanon._core.encoding.parts import ColumnParts
from duckanon._core.encoding.special import special_choices
from duckanon._core.encoding.whole_sources import reader_of, whole_people
from duckanon._methods.releasable.grids import at_digits
from duckanon._methods.releasable.marginals import refuse_rare
from duckanon._methods.synthesize.audited_size import smallest_size, without_some
from duckanon._methods.synthesize.orthogonal import apportioned
from duckanon._methods.synthesize.redrawing import Redrawing

_MOST_KEPT_OUT = 0.25  # of the people


def spectral_release(
    source: object,
    *,
    k: int,
    cluster_size: float | None,
    rows: int | None,
    by: Sequence[str] | None,
    keep_out: int,
    special: Any,
    categories: Sequence[str] | None,
    derived: str,
    nulls: str,
    seed: int | None,
    person: str | None,
    tell: Tell | None = None,
) -> pa.RecordBatchReader:
    """Draw new records, cluster by cluster, from the means and covariances of normal scores and choices.

    The orthogonal variant of spectral anonymization (Perkonoja and Virta 2024), in clusters, with values mapped to a
    quantile function that says nothing about fewer than k people: numbers of three people are released where a column
    has few others (`safe_numbers.rare_places`). The smallest size is the one that passes the paired audit with a margin
    (`audited_size.smallest_size`). Records are in random order; the columns of `by` come last.
    """
    random = generator(seed)
    told = tell or silent
    table, people = whole_people(source, person)
    by = known_columns("by", by or [], table.column_names)
    table, labels = table.drop_columns(by), table.select(by)
    refuse_too_few(k, table.num_rows, people)
    if table.num_columns < 2:
        raise ValueError(f"cols must name at least two columns; got {table.num_columns}.")
    reading = Reading(
        k,
        special_choices(special, table.column_names),
        None if categories is None else known_columns("categories", categories, table.column_names),
        nulls,
    )
    columns = [_with_digits(column) for column in split_columns(table, people, reading)]
    redrawing = Redrawing.of(columns, people, k, derived, random)
    groups = _groups(labels, table.num_rows)
    _refuse_small(groups, redrawing.rank, people, k, keep_out)
    counts = apportioned(_shown_sizes(groups, people, keep_out, random), table.num_rows if rows is None else rows)
    made = []
    for number, (group, count) in enumerate(zip(groups, counts.tolist(), strict=True)):
        tell_group = within(told, number / len(groups), (number + 1) / len(groups))
        used = without_some(group, people, keep_out, random)
        size = cluster_size
        if size is None:
            size = smallest_size(redrawing, group, keep_out, random, within(tell_group, 0.0, 0.9))
        parts = redrawing.redrawn(used, count, size, random, within(tell_group, 0.9, 1.0))
        made.append(_labelled(redrawing.table(parts, table.schema), labels, int(group[0])))
    released = pa.concat_tables(made)
    counted = pa.table([at_digits(column, column.array) for column in columns], schema=table.schema)
    shown = [at_digits(column, released.column(column.name).combine_chunks()) for column in columns]
    refuse_rare(counted, pa.table(shown, schema=table.schema), people, redrawing.least)
    return reader_of(released.take(pa.array(random.permutation(released.num_rows))))


def _with_digits(column: ColumnParts) -> ColumnParts:
    """Give unrounded numbers the digits at which their holders are counted."""
    if column.regular is None:
        return column
    regular = column.array.filter(pa.array(column.is_regular))
    return replace(column, regular=with_telling_digits(column.regular, regular))


def _groups(labels: pa.Table, rows: int) -> list[Ints]:
    """Return the rows of each group of equal labels."""
    group = np.zeros(rows, np.int64)
    for codes, count in encode(labels):
        group = np.unique(group * count + codes, return_inverse=True)[1].astype(np.int64)
    order = np.argsort(group, kind="stable")
    return list(np.split(order, np.cumsum(np.bincount(group))[:-1]))


def _refuse_small(groups: Sequence[Ints], rank: int, people: Ints | None, k: int, keep_out: int) -> None:
    """Refuse tables, and groups, too small for their components or for those who are kept out."""
    needed = max(table_encoding.FEWEST_ROWS, table_encoding.ROWS_PER_COMPONENT * rank)
    small = sum(len(group) < needed for group in groups)
    if len(groups) == 1:
        table_encoding.refuse_too_few(len(groups[0]), rank)
    elif small:
        raise ValueError(
            f"by must make groups of at least {needed:,} rows, for {rank:,} independent components; got {small:,} of "
            f"{len(groups):,} that are smaller: name fewer columns or coarser ones."
        )
    fewest = min(len(group if people is None else np.unique(people[group])) for group in groups)
    if fewest < k:
        raise ValueError(f"by must make groups of at least {k} people; got one of {fewest}: name fewer columns.")
    if keep_out > _MOST_KEPT_OUT * fewest:
        raise ValueError(
            f"keep_out must be at most a quarter of the people, {int(_MOST_KEPT_OUT * fewest)}; got {keep_out}."
        )


def _shown_sizes(groups: Sequence[Ints], people: Ints | None, keep_out: int, random: np.random.Generator) -> Ints:
    """Count the rows of each group without some people: exact sizes would tell the labels of the last one."""
    if len(groups) == 1:
        return np.array([1])
    rows = np.concatenate(groups)
    is_counted = np.zeros(len(rows), bool)
    is_counted[without_some(np.arange(len(rows)), people, keep_out, random)] = True
    return np.array([np.count_nonzero(is_counted[group]) for group in groups])


def _labelled(made: pa.Table, labels: pa.Table, row: int) -> pa.Table:
    """Give new rows the labels of their group."""
    rows = pa.array(np.full(made.num_rows, row))
    for name in labels.column_names:
        made = made.append_column(labels.schema.field(name), labels.column(name).take(rows))
    return made
