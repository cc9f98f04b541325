"""New records drawn column by column from trees whose leaves hold many people, of values shared by many people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from duckanon._core.common import progress
from duckanon._core.common.arguments import make_generator
from duckanon._core.common.arrays import Ints
from duckanon._core.common.names import match_columns
from duckanon._core.common.people import NOBODY, count_people, find_person_column
from duckanon._core.common.resources import use_one_thread
from duckanon._core.encoding.column_split import SplitOptions, read_special, split_columns
from duckanon._core.encoding.formulas import find_offsets
from duckanon._core.encoding.whole_sources import make_reader, read_table
from duckanon._methods.synthesize.coded_table import drop_unusual, is_usual, name_categories
from duckanon._methods.synthesize.leaf_draws import FEWEST
from duckanon._methods.synthesize.orthogonal import apportion
from duckanon._methods.synthesize.redrawing import Redrawing
from duckanon._methods.synthesize.sequences import DrawOptions, NewRecords, draw_people, has_several_rows
from duckanon._methods.synthesize.sequential_draw import SequentialDraw
from duckanon._methods.synthesize.table_groups import (
    add_labels,
    count_group_rows,
    groups_of,
    leave_out_people,
    read_rows,
    refuse_few_people,
    refuse_rare_values,
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
) -> pa.RecordBatchReader:
    """Draw new records, one column after the other, from trees on the columns drawn before.

    Sequential trees (Reiter 2005; Nowok, Raab and Dibben 2016) with leaves of many people, choices of at least three of
    them, ranks in place of people's numbers, and numbers at these ranks that say nothing about fewer than k people
    (`safe_numbers.SafeNumbers`). Rules that hold for everybody hold in the release.

    Where `person` names a column and at least k people have several rows, new people are drawn with all their rows:
    the columns that are the same in all rows of a person, how many rows there are, then row after row, each given the
    last one (`draw_people`).

    Returns:
        The records drawn, in random order: the person first, as a new number, where there is such a column; the columns
        of `by` last.

    Raises:
        ValueError: For too few rows, people or columns, for what `split_columns` refuses, and for columns no value of
            which may be released.
    """
    random = make_generator(seed)
    read = read_table(source)
    table, labels, people, types = read_rows(read, by or [], person, k)
    if categories is None:
        named = name_categories(table, people, k)
    else:
        named = match_columns("categories", categories, table.column_names)
    reading = SplitOptions(k, read_special(special, table.column_names), named, nulls, random)
    _refuse_few(table.num_rows, people, leaf)
    drawing = DrawOptions(leaf, rows, keep_out, derived)
    with use_one_thread():  # 4.5 processor seconds for 15,000 people and 27 columns, 7 to 13 with two
        if people is not None and has_several_rows(people, k):
            known = np.flatnonzero(people != NOBODY)
            table, labels, people = table.take(pa.array(known)), labels.take(pa.array(known)), people[known]
            drawn = draw_people(table, labels, people, reading, drawing, order_by, random)
        else:
            drawn = _draw_rows(table, labels, people, reading, drawing, random)
    refuse_rare_values(drawn.columns, drawn.grids, drawn.table, people, drawn.least)
    released = types.write(drawn.table)
    if person is not None:
        numbers = 1 + random.permutation(int(drawn.person.max()) + 1)
        name = read.column_names[find_person_column(person, read.column_names)]
        released = released.add_column(0, name, pa.array(numbers[drawn.person]))
    return make_reader(released.take(pa.array(random.permutation(released.num_rows))))


def _draw_rows(
    table: pa.Table,
    labels: pa.Table,
    people: Ints | None,
    reading: SplitOptions,
    drawing: DrawOptions,
    random: np.random.Generator,
) -> NewRecords:
    """Draw new people of one row each."""
    k, keep_out = reading.k, drawing.keep_out
    columns = [with_digits(column) for column in split_columns(table, people, reading)]
    offsets = find_offsets(columns, people, k, FEWEST - 1) if drawing.derived == "auto" else []
    redrawing = Redrawing.of(columns, people, k, drawing.derived, random, offsets=offsets, chance=random)
    groups = groups_of(labels, table.num_rows)
    refuse_few_people(groups, people, k, keep_out)
    progress.advance(0.05)
    rules = redrawing.find_rules(drawing.derived)
    progress.advance(0.1)
    usual = is_usual(columns)
    total = table.num_rows if drawing.rows is None else drawing.rows
    counts = apportion(count_group_rows(groups, people, keep_out, random), total)
    tables = []
    for number, (group, count) in enumerate(zip(groups, counts.tolist(), strict=True)):
        used = drop_unusual(leave_out_people(group, people, keep_out, random), usual)
        with progress.step(0.1 + 0.9 * number / len(groups), 0.1 + 0.9 * (number + 1) / len(groups)):
            parts = SequentialDraw(redrawing, used, count, drawing.leaf, rules, random).run()
        tables.append(add_labels(redrawing.table(parts, table.schema), labels, int(group[0])))
    return NewRecords(pa.concat_tables(tables), np.arange(total), columns, redrawing.grids, redrawing.least)


def _refuse_few(rows: int, people: Ints | None, leaf: int) -> None:
    """Refuse a table of which no tree has two leaves."""
    people_count = rows if people is None else int(count_people(np.zeros(rows, np.int64), people, 1)[0])
    if people_count < 2 * leaf:
        raise ValueError(f"leaf must be at most half the number of people, {people_count // 2}; got {leaf}.")
