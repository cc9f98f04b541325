"""New records drawn column by column from trees whose leaves hold many people, of values shared by many people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from duckanon._core.common.arguments import generator
from duckanon._core.common.arrays import Ints
from duckanon._core.common.names import known_columns
from duckanon._core.common.people import NOBODY, people_in, person_index
from duckanon._core.common.progress import Tell, silent, within
from duckanon._core.common.threads import one_thread
from duckanon._core.encoding.column_split import Reading, split_columns
from duckanon._core.encoding.offsets import found_offsets
from duckanon._core.encoding.special import special_choices
from duckanon._core.encoding.whole_sources import reader_of, whole_table
from duckanon._methods.synthesize.audited_size import without_some
from duckanon._methods.synthesize.few_valued import MOST_UNUSUAL, few_valued, is_usual
from duckanon._methods.synthesize.implication_rules import Implications
from duckanon._methods.synthesize.implications import found_implications
from duckanon._methods.synthesize.leaf_draws import FEWEST
from duckanon._methods.synthesize.orthogonal import apportioned
from duckanon._methods.synthesize.people_with_rows import Drawing, Drawn, people_with_rows, several_rows
from duckanon._methods.synthesize.redrawing import Redrawing
from duckanon._methods.synthesize.sequential_draw import SequentialDraw
from duckanon._methods.synthesize.table_groups import (
    groups_of,
    labelled,
    read_rows,
    refuse_few_people,
    refuse_rare_values,
    shown_sizes,
    with_digits,
)


def synthesize(
    source: object,
    *,
    k: int,
    leaf: int,
    rows: int | None,
    by: Sequence[str] | None,
    person: str | None,
    order_by: str | None,
    keep_out: int,
    special: Any,
    categories: Sequence[str] | None,
    derived: str,
    nulls: str,
    seed: int | None,
    tell: Tell | None = None,
) -> pa.RecordBatchReader:
    """Draw new records, one column after the other, from trees on the columns drawn before.

    Sequential trees (Reiter 2005; Nowok, Raab and Dibben 2016) with leaves of many people, choices of at least three of
    them, ranks in place of people's numbers, and numbers at these ranks that say nothing about fewer than k people
    (`safe_numbers.SafeNumbers`). Rules that hold for everybody hold in the release.

    Where `person` names a column and at least k people have several rows, new people are drawn with all their rows:
    the columns that are the same in all rows of a person, how many rows there are, then row after row, each given the
    last one (`people_with_rows`).

    Returns:
        The records drawn, in random order: the person first, as a new number, where there is such a column; the columns
        of `by` last.

    Raises:
        ValueError: For too few rows, people or columns, for what `split_columns` refuses, and for columns no value of
            which may be released.
    """
    random = generator(seed)
    told = tell or silent
    read = whole_table(source)
    table, labels, people, types = read_rows(read, by or [], person, k)
    if categories is None:
        named = few_valued(table, people, k)
    else:
        named = known_columns("categories", categories, table.column_names)
    reading = Reading(k, special_choices(special, table.column_names), named, nulls, random)
    _refuse_few(table.num_rows, people, leaf)
    drawing = Drawing(leaf, rows, keep_out, derived)
    with one_thread():  # 4.5 processor seconds for 15,000 people and 27 columns, 7 to 13 with two
        if people is not None and several_rows(people, k):
            known = np.flatnonzero(people != NOBODY)
            table, labels, people = table.take(pa.array(known)), labels.take(pa.array(known)), people[known]
            drawn = people_with_rows(table, labels, people, reading, drawing, order_by, random, told)
        else:
            drawn = _rows(table, labels, people, reading, drawing, random, told)
    refuse_rare_values(drawn.columns, drawn.grids, drawn.table, people, drawn.least)
    released = types.write(drawn.table)
    if person is not None:
        numbers = 1 + random.permutation(int(drawn.person.max()) + 1)
        name = read.column_names[person_index(person, read.column_names)]
        released = released.add_column(0, name, pa.array(numbers[drawn.person]))
    return reader_of(released.take(pa.array(random.permutation(released.num_rows))))


def _rows(
    table: pa.Table,
    labels: pa.Table,
    people: Ints | None,
    reading: Reading,
    drawing: Drawing,
    random: np.random.Generator,
    tell: Tell,
) -> Drawn:
    """Draw new people of one row each."""
    k, keep_out = reading.k, drawing.keep_out
    columns = [with_digits(column) for column in split_columns(table, people, reading)]
    offsets = found_offsets(columns, people, k, FEWEST - 1) if drawing.derived == "auto" else []
    redrawing = Redrawing.of(columns, people, k, drawing.derived, random, offsets=offsets, chance=random)
    groups = groups_of(labels, table.num_rows)
    refuse_few_people(groups, people, k, keep_out)
    tell(0.05)
    computed = [one.formula.column for one in redrawing.computed]
    implications = Implications([], [], [])
    if drawing.derived == "auto":
        follow = [one.column for one in redrawing.offsets]
        implications = found_implications(columns, computed, people, k, FEWEST - 1, follow=follow)
    tell(0.1)
    usual = is_usual(columns)
    total = table.num_rows if drawing.rows is None else drawing.rows
    counts = apportioned(shown_sizes(groups, people, keep_out, random), total)
    made = []
    for number, (group, count) in enumerate(zip(groups, counts.tolist(), strict=True)):
        tell_group = within(tell, 0.1 + 0.9 * number / len(groups), 0.1 + 0.9 * (number + 1) / len(groups))
        used = without_some(group, people, keep_out, random)
        if np.count_nonzero(~usual[used]) <= MOST_UNUSUAL * len(used):
            used = used[usual[used]]
        parts = SequentialDraw(redrawing, used, count, drawing.leaf, implications, random).run(tell_group)
        made.append(labelled(redrawing.table(parts, table.schema), labels, int(group[0])))
    return Drawn(pa.concat_tables(made), np.arange(total), columns, redrawing.grids, redrawing.least)


def _refuse_few(rows: int, people: Ints | None, leaf: int) -> None:
    """Refuse a table of which no tree has two leaves."""
    found = rows if people is None else int(people_in(np.zeros(rows, np.int64), people, 1)[0])
    if found < 2 * leaf:
        raise ValueError(f"leaf must be at most half the number of people, {found // 2}; got {leaf}.")
