"""The release to recommend: new records whose clusters keep means and covariances, of values that many people hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from duckanon._core.common.arguments import checked, generator, spelled
from duckanon._core.common.arrays import Ints
from duckanon._core.common.codes import encode
from duckanon._core.common.names import known_columns
from duckanon._core.common.people import person_index, person_numbers, refuse_too_few
from duckanon._core.common.progress import Tell, silent, within
from duckanon._core.common.rules import Number, OneOf, Whole
from duckanon._core.encoding import table_encoding
from duckanon._core.encoding.column_split import Reading, split_columns
from duckanon._core.encoding.digits import with_telling_digits
from duckanon._core.encoding.parts import ColumnParts
from duckanon._core.encoding.special import special_choices
from duckanon._core.encoding.whole_sources import column_names, reader_of, whole_table
from duckanon._methods.releasable.grids import at_digits
from duckanon._methods.releasable.rare_values import refuse_rare
from duckanon._methods.synthesize.audited_size import LEAST_CLUSTER_SIZE, smallest_size, without_some
from duckanon._methods.synthesize.orthogonal import apportioned
from duckanon._methods.synthesize.redrawing import Redrawing

_MOST_KEPT_OUT = 0.25  # of the people


@checked(
    k=Whole(2),
    cluster_size=Number(LEAST_CLUSTER_SIZE, null=True),
    rows=Whole(1, null=True),
    keep_out=Whole(0),
    nulls=OneOf("error", "category"),
    derived=OneOf("auto", "off"),
)
def spectral_release(
    source: object,
    cols: Sequence[str] | None = None,
    *,
    k: int = 10,
    cluster_size: float | None = None,
    rows: int | None = None,
    by: Sequence[str] | None = None,
    keep_out: int = 25,
    special: Any = "auto",
    categories: Sequence[str] | None = None,
    derived: str = "auto",
    nulls: str = "error",
    seed: int | None = None,
    person: str | None = None,
    tell: Tell | None = None,
) -> pa.RecordBatchReader:
    """Draw new records, cluster by cluster, from the means and covariances of normal scores and choices.

    Parameters
    ----------
    source
        A pyarrow Table, RecordBatch, Dataset or RecordBatchReader, the path of a Parquet file or of a folder of them,
        or a function that opens a reader. The matrix is held in memory, in float32.
    cols
        The columns to release; None for all.
    k
        The least number of people that hold a value which is released; numbers that nobody holds come out, too, and
        those of three people where a column has few others (`safe_numbers.rare_places`).
    cluster_size
        The records per cluster, from half of it to one and a half; None for the smallest that passes the paired audit
        with a margin (`audited_size.smallest_size`), or all records as one cluster where none does.
    rows
        How many records to draw; None for as many as the source has.
    by
        Columns, none of `cols`, that are released as they are: records are drawn within each group of theirs.
    keep_out
        How many people, drawn at random, the release says nothing about: who knows everybody but one would compute the
        last one from exact means otherwise.
    special
        ``'auto'`` finds special values of numbers (zeros of many, codes), ``'off'`` has none, and a map says which the
        columns have that it names.
    categories
        The numbers that are categories; None for whole ones of at most twelve values.
    derived
        ``'auto'`` finds columns that follow from others and computes them again, ``'off'`` draws them.
    nulls
        ``'error'`` refuses NULLs, ``'category'`` makes them one more value.
    seed
        Makes the release of the same rows in the same order repeatable, and whoever learns it can undo it.
    person
        A column, none of `cols`, that tells whose each row is, and is not released; where it is NULL, the row counts as
        nobody's. None: every row is another person.
    tell
        Is told the share of the work done, from 0 to 1.

    Returns
    -------
    pyarrow.RecordBatchReader
        The records drawn, in random order; `cols` first, then those of `by`.

    Raises
    ------
    ValueError
        For too few rows, people or columns, for what `split_columns` refuses, and for columns no value of which
        may be released.

    Notes
    -----
    The orthogonal variant of spectral anonymization (Perkonoja and Virta 2024), in clusters, with values mapped to a
    quantile function that says nothing about fewer than k people.

    Examples
    --------
    >>> import numpy as np
    >>> import pyarrow as pa
    >>> from duckanon import spectral
    >>> random = np.random.default_rng(0)
    >>> height = random.normal(170, 10, 400)
    >>> people = pa.table({"height": height, "weight": height - 100 + random.normal(0, 8, 400)})
    >>> released = spectral.spectral_release(people, cluster_size=100, seed=1).read_all()
    >>> released.num_rows, released.column_names
    (400, ['height', 'weight'])
    """
    random = generator(seed)
    told = tell or silent
    table, labels, people = _read(source, column_names(cols), column_names(by) or [], person)
    refuse_too_few(k, table.num_rows, people)
    if table.num_columns < 2:
        raise ValueError(f"cols must name at least two columns; got {table.num_columns}.")
    reading = Reading(
        k,
        special_choices(special, table.column_names),
        _known_names("categories", categories, table.column_names),
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


def _read(
    source: object, cols: list[str] | None, by: list[str], person: str | None
) -> tuple[pa.Table, pa.Table, Ints | None]:
    """Read a source whole; the columns of labels and of people apart."""
    if cols is not None:
        lower = [name.lower() for name in cols]
        for name in by:
            if name.lower() in lower:
                raise ValueError(f"by must name columns that are none of cols; got {name}.")
    people = None
    extra = [*by, *([] if person is None else [person])]
    if person is not None:
        person_index(person, [str(person)], [*(cols or []), *by])
    table = whole_table(source, None if cols is None else [*cols, *extra])
    if person is not None:
        index = person_index(person, table.column_names)
        people, table = person_numbers(table.column(index)), table.remove_column(index)
    labels = _known_names("by", by, table.column_names) or []
    return table.drop_columns(labels), table.select(labels), people


def _known_names(parameter: str, names: Sequence[str] | None, columns: Sequence[str]) -> list[str] | None:
    """Spell names as the table does; refuse those that it does not have, and repetitions."""
    found = spelled(parameter, names, columns)
    known_columns(parameter, found or [], columns)
    if found is not None and len(set(found)) < len(found):
        raise ValueError(f"{parameter} must name each column once; got {', '.join(found)}.")
    return found


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
    fewest = min(_people_count(group, people) for group in groups)
    if fewest < k:
        raise ValueError(f"by must make groups of at least {k} people; got one of {fewest}: name fewer columns.")
    if keep_out > _MOST_KEPT_OUT * fewest:
        raise ValueError(
            f"keep_out must be at most a quarter of the people, {int(_MOST_KEPT_OUT * fewest)}; got {keep_out}."
        )


def _people_count(rows: Ints, people: Ints | None) -> int:
    return len(rows) if people is None else len(np.unique(people[rows]))


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
