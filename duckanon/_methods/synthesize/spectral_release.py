"""New records whose clusters keep means and covariances, of values shared by many people: `anon.spectral_release`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from duckanon._core.common import progress
from duckanon._core.common.arguments import make_generator
from duckanon._core.common.arrays import Ints
from duckanon._core.common.names import match_columns
from duckanon._core.encoding import column_codecs
from duckanon._core.encoding.column_split import SplitOptions, read_special, split_columns
from duckanon._core.encoding.whole_sources import make_reader
from duckanon._methods.synthesize.orthogonal import apportion
from duckanon._methods.synthesize.redrawing import Redrawing
from duckanon._methods.synthesize.table_groups import (
    add_labels,
    count_group_rows,
    find_smallest_size,
    groups_of,
    leave_out_people,
    read_rows,
    refuse_few_people,
    refuse_rare_values,
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
) -> pa.RecordBatchReader:
    """Draw new records, cluster by cluster, from the means and covariances of normal scores and choices.

    The orthogonal variant of spectral anonymization (Perkonoja and Virta 2024), in clusters, with values mapped to a
    quantile function that says nothing about fewer than k people: numbers of three people are released where a column
    has few others (`safe_numbers.find_rare_places`). The smallest size is the one that passes the paired audit with a
    margin (`table_groups.find_smallest_size`). Records are in random order; the columns of `by` come last.
    """
    random = make_generator(seed)
    table, labels, people, types = read_rows(source, by or [], person, k)
    reading = SplitOptions(
        k,
        read_special(special, table.column_names),
        None if categories is None else match_columns("categories", categories, table.column_names),
        nulls,
    )
    columns = [with_digits(column) for column in split_columns(table, people, reading)]
    redrawing = Redrawing.of(columns, people, k, derived, random)
    groups = groups_of(labels, table.num_rows)
    _refuse_small(groups, redrawing.rank, people, k, keep_out)
    counts = apportion(count_group_rows(groups, people, keep_out, random), table.num_rows if rows is None else rows)
    tables = []
    for number, (group, count) in enumerate(zip(groups, counts.tolist(), strict=True)):
        used = leave_out_people(group, people, keep_out, random)
        size = cluster_size
        with progress.step(number / len(groups), (number + 1) / len(groups)):
            if size is None:
                with progress.step(0.0, 0.9):
                    size = find_smallest_size(redrawing, group, keep_out, random)
            with progress.step(0.9, 1.0):
                parts = redrawing.redraw(used, count, size, random)
        tables.append(add_labels(redrawing.table(parts, table.schema), labels, int(group[0])))
    released = pa.concat_tables(tables)
    refuse_rare_values(columns, redrawing.grids, released, people, redrawing.least)
    released = types.write(released)
    return make_reader(released.take(pa.array(random.permutation(released.num_rows))))


def _refuse_small(groups: Sequence[Ints], rank: int, people: Ints | None, k: int, keep_out: int) -> None:
    """Refuse tables, and groups, too small for their components or for those who are kept out, or of no component."""
    if rank == 0:
        raise ValueError(f"cols must name a column that varies; none has two values shared by at least {k} people.")
    needed = max(column_codecs.FEWEST_ROWS, column_codecs.ROWS_PER_COMPONENT * rank)
    small = sum(len(group) < needed for group in groups)
    if len(groups) == 1:
        column_codecs.refuse_few_rows(len(groups[0]), rank)
    elif small:
        raise ValueError(
            f"by must make groups of at least {needed:,} rows, for {rank:,} independent components; got {small:,} of "
            f"{len(groups):,} that are smaller: name fewer columns or coarser ones."
        )
    refuse_few_people(groups, people, k, keep_out)
