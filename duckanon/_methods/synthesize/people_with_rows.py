"""A table with several rows a person, redrawn: its groups, the order of rows, and new numbers of people."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from duckanon._core.common.arrays import Ints
from duckanon._core.common.people import NOBODY
from duckanon._core.common.progress import Tell, within
from duckanon._core.common.threads import one_thread
from duckanon._core.encoding.column_split import Reading
from duckanon._core.encoding.parts import ColumnParts
from duckanon._methods.releasable.grids import Grid
from duckanon._methods.synthesize.audited_size import without_some
from duckanon._methods.synthesize.few_valued import MOST_UNUSUAL, is_usual
from duckanon._methods.synthesize.orthogonal import apportioned
from duckanon._methods.synthesize.sequence_columns import SequenceColumns
from duckanon._methods.synthesize.sequence_order import Sequences, order_values, ordering_columns, personal_columns
from duckanon._methods.synthesize.sequences import Options, SequenceDraw
from duckanon._methods.synthesize.table_groups import groups_of, labelled, refuse_few_people, shown_sizes


class Drawing(NamedTuple):
    """How many rows are drawn, in leaves of how many people, whether rules are kept, and who is kept out."""

    leaf: int
    rows: int | None
    keep_out: int
    derived: str


class Drawn(NamedTuple):
    """A release: its rows, whose each is, its columns as they were drawn, their grids, the least people of a value."""

    table: pa.Table
    person: Ints
    columns: list[ColumnParts]
    grids: list[Grid | None]
    least: list[int]


def several_rows(people: Ints, k: int) -> bool:
    """Tell whether at least k people have several rows."""
    return bool(np.count_nonzero(np.bincount(people[people != NOBODY]) > 1) >= k)


def people_with_rows(
    table: pa.Table,
    labels: pa.Table,
    people: Ints,
    reading: Reading,
    drawing: Drawing,
    order_by: str | None,
    random: np.random.Generator,
    tell: Tell,
) -> Drawn:
    """Draw new people with all their rows; rows without a person are left out.

    Args:
        table, labels, people: The columns to release, those that are released as they are, and whose each row is.
        reading: How columns are split.
        drawing: How people are drawn.
        order_by: The column that orders the rows of a person. None: the first date or timestamp that differs between
            rows of a person; where there is none, rows have no order.
        random, tell: As everywhere.
    """
    person = np.unique(people, return_inverse=True)[1].astype(np.int64)
    personal = personal_columns(table, person)
    ordering = ordering_columns(table, personal, order_by)
    sequences = Sequences.of(people, order_values(table, ordering), reading.k, random)
    groups = groups_of(_of_people(labels, sequences), len(sequences.lengths))
    refuse_few_people(groups, None, reading.k, drawing.keep_out)
    columns = SequenceColumns.of(table, people, reading, sequences, personal, next(iter(ordering), None))
    tell(0.02)
    draw = sequence_draw(columns, drawing, random)
    tell(0.1)
    rows = table.num_rows if drawing.rows is None else drawing.rows
    total = max(1, round(rows * len(sequences.lengths) / table.num_rows))
    counts = apportioned(shown_sizes(groups, None, drawing.keep_out, random), total)
    made, whose = [], []
    for number, (group, count) in enumerate(zip(groups, counts.tolist(), strict=True)):
        share = within(tell, 0.1 + 0.9 * number / len(groups), 0.1 + 0.9 * (number + 1) / len(groups))
        new = draw.draw(number, without_some(group, None, drawing.keep_out, random), count, share)
        whose.append(new.person + int(counts[:number].sum()))
        made.append(labelled(pa.table(new.arrays, schema=table.schema), labels, int(sequences.firsts[group[0]])))
    return Drawn(pa.concat_tables(made), np.concatenate(whose), columns.released, columns.grids, draw.least)


def sequence_draw(columns: SequenceColumns, drawing: Drawing, random: np.random.Generator) -> SequenceDraw:
    """Learn how people and their rows are drawn."""
    usual = is_usual(columns.columns)
    if np.count_nonzero(~usual) > MOST_UNUSUAL * len(usual):
        usual[:] = True
    with one_thread():  # as one row a person
        return SequenceDraw(columns, Options(drawing.leaf, drawing.derived), usual, random)


def _of_people(labels: pa.Table, sequences: Sequences) -> pa.Table:
    """Return the labels of people; refuse those that differ between rows of a person."""
    firsts = labels.take(pa.array(sequences.firsts))
    for name in labels.column_names:
        if not firsts.column(name).take(pa.array(sequences.person)).equals(labels.column(name)):
            raise ValueError(f'by must name columns that are the same in all rows of a person; got "{name}".')
    return firsts
