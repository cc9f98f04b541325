"""New records whose clusters keep means and covariances, of values shared by many people: the thesis's line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from duckanon._core.common.arguments import generator
from duckanon._core.common.arrays import Ints
from duckanon._core.common.names import known_columns
from duckanon._core.common.progress import Tell, silent, within
from duckanon._core.encoding import table_encoding
from duckanon._core.encoding.column_split import Reading, split_columns
from duckanon._core.encoding.special import special_choices
from duckanon._core.encoding.whole_sources import reader_of
from duckanon._methods.synthesize.audited_size import smallest_size, without_some
from duckanon._methods.synthesize.orthogonal import apportioned
from duckanon._methods.synthesize.redrawing import Redrawing
from duckanon._methods.synthesize.table_groups import (
    groups_of,
    labelled,
    read_rows,
    refuse_few_people,
    refuse_rare_values,
    shown_sizes,
    with_digits,
)


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
    table, labels, people, types = read_rows(source, by or [], person, k)
    reading = Reading(
        k,
        special_choices(special, table.column_names),
        None if categories is None else known_columns("categories", categories, table.column_names),
        nulls,
    )
    columns = [with_digits(column) for column in split_columns(table, people, reading)]
    redrawing = Redrawing.of(columns, people, k, derived, random)
    groups = groups_of(labels, table.num_rows)
    _refuse_small(groups, redrawing.rank, people, k, keep_out)
    counts = apportioned(shown_sizes(groups, people, keep_out, random), table.num_rows if rows is None else rows)
    made = []
    for number, (group, count) in enumerate(zip(groups, counts.tolist(), strict=True)):
        tell_group = within(told, number / len(groups), (number + 1) / len(groups))
        used = without_some(group, people, keep_out, random)
        size = cluster_size
        if size is None:
            size = smallest_size(redrawing, group, keep_out, random, within(tell_group, 0.0, 0.9))
        parts = redrawing.redrawn(used, count, size, random, within(tell_group, 0.9, 1.0))
        made.append(labelled(redrawing.table(parts, table.schema), labels, int(group[0])))
    released = pa.concat_tables(made)
    refuse_rare_values(columns, redrawing.grids, released, people, redrawing.least)
    released = types.write(released)
    return reader_of(released.take(pa.array(random.permutation(released.num_rows))))


def _refuse_small(groups: Sequence[Ints], rank: int, people: Ints | None, k: int, keep_out: int) -> None:
    """Refuse tables, and groups, too small for their components or for those who are kept out, or of no component."""
    if rank == 0:
        raise ValueError(f"cols must name a column that varies; none has two values shared by at least {k} people.")
    needed = max(table_encoding.FEWEST_ROWS, table_encoding.ROWS_PER_COMPONENT * rank)
    small = sum(len(group) < needed for group in groups)
    if len(groups) == 1:
        table_encoding.refuse_too_few(len(groups[0]), rank)
    elif small:
        raise ValueError(
            f"by must make groups of at least {needed:,} rows, for {rank:,} independent components; got {small:,} of "
            f"{len(groups):,} that are smaller: name fewer columns or coarser ones."
        )
    refuse_few_people(groups, people, k, keep_out)
