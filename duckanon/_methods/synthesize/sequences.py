"""New people with several rows each: first the people, then how many rows they have, then row after row.

People are drawn as rows of their personal columns and their first row; then `NextRows` draws each next row. A person
whose first row breaks a rule is replaced by another one. A history that ends early is cut to a number of rows that
enough people have. `draw_people` does this for each group of labels and numbers the new people.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from duckanon._core.common import progress
from duckanon._core.common.arrays import Bools, Floats, Ints
from duckanon._core.common.people import NOBODY
from duckanon._core.common.resources import use_one_thread
from duckanon._core.encoding.column_split import SplitOptions
from duckanon._core.encoding.parts import ColumnParts, read_doubles
from duckanon._methods.releasable.grids import Grid
from duckanon._methods.synthesize.coded_table import MOST_UNUSUAL, is_usual
from duckanon._methods.synthesize.implications import Implications, RuleRows, find_implications
from duckanon._methods.synthesize.leaf_draws import FEWEST
from duckanon._methods.synthesize.next_rows import HistoryLimits, NextRows, SourcePeople, count_steps
from duckanon._methods.synthesize.orthogonal import apportion
from duckanon._methods.synthesize.sequence_columns import (
    Lengths,
    SequenceColumns,
    Sequences,
    find_ordering_columns,
    find_personal_columns,
    read_order,
    take_rows,
)
from duckanon._methods.synthesize.sequential_draw import Stage, StageCells, StageColumn
from duckanon._methods.synthesize.table_groups import (
    add_labels,
    count_group_rows,
    groups_of,
    leave_out_people,
    refuse_few_people,
)


class NewPeople(NamedTuple):
    """New people: the person of each row, numbered from 0, and the columns of the table."""

    person: Ints
    arrays: list[pa.Array]


class SequenceDraw:
    """Draws people with all their rows."""

    def __init__(
        self, table: SequenceColumns, options: DrawOptions, is_usual: Bools, random: np.random.Generator
    ) -> None:
        """Learn what people are like, and how their rows follow each other."""
        self._table, self._random = table, random
        self._is_usual = is_usual
        rows = table.sequences
        self._lengths = Lengths.of(rows.lengths, table.k)
        length = StageColumn("length", self._lengths.column, self._lengths.column, None, None)
        drawn = [self._first("person", index) for index in table.personal]
        drawn.append(length)
        order = [] if table.order is None else [table.order]
        drawn += [self._first("own", index) for index in sorted([*order, *table.events])]
        self._people = Stage([], drawn, None, options.leaf, table.k, options.derived, random)
        self._next = None
        if len(rows.later):
            self._next = NextRows(table, self._lengths, options.leaf, options.derived, is_usual, random)
        self._computed_least = self._people.least | ({} if self._next is None else self._next.least)
        self._rules = Implications([], [], [])
        if options.derived == "auto":
            computed = sorted({int(key.split()[1]) for key in self._computed_least})  # about which no rule is found
            self._rules = find_implications(table.final_columns, computed, table.people, table.k, FEWEST - 1)
        self._dated = [] if table.order is None or not len(rows.later) else [table.order, *table.dates]
        self._between = self._date_rules() if self._dated and options.derived == "auto" else Implications([], [], [])

    @property
    def least(self) -> list[int]:
        """The least number of people who share a released value, by column."""
        leasts = [self._table.least(index) for index in range(len(self._table.columns))]
        for key, least in self._computed_least.items():
            index = int(key.split()[1])
            leasts[index] = min(leasts[index], least)
        return leasts

    def draw(self, group: int, persons: Ints, count: int) -> NewPeople:
        """Draw people, from some of those of the table."""
        table, rows = self._table, self._table.sequences
        is_used = np.zeros(len(rows.lengths), np.bool_)
        is_used[persons] = True
        usual = persons[self._is_usual[rows.firsts[persons]]]
        with progress.step(0.0, 0.5):
            cells, _ = self._people.draw(group, usual, count, {}, {}, {})
        self._mend_rows(cells, count)
        lengths = self._lengths.draw(cells["length"][0], self._random)
        people = {key: value for key, value in cells.items() if not key.startswith("own")}
        first = {key: value for key, value in cells.items() if key.startswith("own")}
        person_of_rows, rows_of_position = [np.arange(count)], [first]
        if self._next is not None:
            learnt_rows = table.learnt[is_used[rows.person[table.learnt]]]
            quantiles = {index: table.quantiles(index, learnt_rows) for index in table.events if index in table.numbers}
            limits = HistoryLimits(partial(self._highest, people), partial(self._breaks_rules, people))
            learnt = SourcePeople(group, is_used, quantiles)
            for active, next_rows in self._next.histories(people, first, lengths, learnt, limits):
                person_of_rows.append(active)
                rows_of_position.append(next_rows)
                progress.advance(0.5 + 0.5 * len(rows_of_position) / rows.longest)
        kept, person, like = self._cut_histories(person_of_rows, count)
        joined = {
            key: (
                np.concatenate([one[key][0] for one in rows_of_position])[kept],
                np.concatenate([one[key][1] for one in rows_of_position])[kept],
            )
            for key in first
        }
        return NewPeople(person, self._arrays(_take_cells(people, like[person]) | joined))

    def _cut_histories(self, person_of_rows: Sequence[Ints], count: int) -> tuple[Ints, Ints, Ints]:
        """Cut histories that ended early to a number of rows that enough people have, or of nobody.

        Rows end where none was found that keeps all rules. Who would be left with none is like another new person.

        Args:
            whose: The person of each first row, of each second row, and so on.
            count: How many people there are.

        Returns:
            The rows to keep, the person of each, and the person whom each person is like, mostly themselves.
        """
        person = np.concatenate(person_of_rows)
        position = np.repeat(np.arange(1, len(person_of_rows) + 1), [len(one) for one in person_of_rows])
        allowed = np.concatenate([[0], np.unique(np.concatenate(self._lengths.numbers))])
        cut = allowed[np.searchsorted(allowed, np.bincount(person, minlength=count), "right") - 1]
        good, bad, like = np.flatnonzero(cut), np.flatnonzero(cut == 0), np.arange(count)
        if len(bad) and len(good):
            like[bad] = self._random.choice(good, len(bad))
        kept = np.flatnonzero(position <= cut[person])
        kept = kept[np.argsort(person[kept], kind="stable")]
        starts, ends = (np.searchsorted(person[kept], like, side) for side in ("left", "right"))
        of_person = np.repeat(np.arange(count), ends - starts)
        offsets = np.arange(len(of_person)) - np.repeat(np.cumsum(ends - starts) - (ends - starts), ends - starts)
        return kept[starts[of_person] + offsets], of_person, like

    def _first(self, kind: str, index: int) -> StageColumn:
        table = self._table
        part = take_rows(table.columns[index], table.sequences.firsts)
        return StageColumn(f"{kind} {index}", part, *table.whole_of(index), table.numbers.get(index))

    def _cell(self, cells: StageCells, index: int) -> tuple[Ints, Ints]:
        return cells[f"person {index}" if index in self._table.personal else f"own {index}"]

    def _date(self, cells: StageCells, index: int) -> tuple[Ints, Bools]:
        """Return the places of a date that was drawn as the time after another, and where there is one."""
        table = self._table
        assert table.order is not None
        steps, is_valid = count_steps(table.columns[index], self._cell(cells, index))
        codes, places = cells[f"own {table.order}"]
        is_valid = is_valid & (codes == len(table.columns[table.order].outcomes))
        date_places = table.move_places(index, np.where(is_valid, places + steps, places))
        if None not in table.dates[index].outcomes and is_valid.any():  # too few people have none
            date_places[~is_valid] = self._random.choice(date_places[is_valid], np.count_nonzero(~is_valid))
            is_valid = np.ones_like(is_valid)
        return date_places, is_valid

    def _arrays(self, cells: StageCells) -> list[pa.Array]:
        """Recombine the columns of the table."""
        arrays = []
        for index, column in enumerate(self._table.columns):
            if index in self._table.dates:
                grid = self._table.date_numbers[index].grid
                arrays.append(grid.array(*self._date(cells, index)))
                continue
            codes, places = self._cell(cells, index)
            numbers = self._table.numbers.get(index)
            arrays.append(column.join(codes, None if numbers is None else numbers.grid.array(places, None)))
        return arrays

    def _rows(self, cells: StageCells) -> RuleRows:
        """Return the rows as rules see them: with dates."""
        codes: dict[int, Ints] = {}
        numbers: dict[int, Floats] = {}
        for index, column in enumerate(self._table.final_columns):
            if index in self._table.dates:
                places, is_valid = self._date(cells, index)
                null = column.outcomes.index(None) if None in column.outcomes else -1
                codes[index] = np.where(is_valid, len(column.outcomes), null)
                grid = self._table.date_numbers[index].grid
            else:
                codes[index], places = self._cell(cells, index)
                if index not in self._table.numbers:
                    continue
                grid = self._table.numbers[index].grid
            is_regular = codes[index] == len(column.outcomes)
            numbers[index] = np.where(is_regular, read_doubles(grid.array(places, None)), np.nan)
        return RuleRows(codes, numbers)

    def _breaks_rules(self, people: StageCells, last: StageCells, next_row: StageCells, active: Ints) -> Bools:
        """Tell which rows of some people break a rule of the table, or one about two rows."""
        personal = _take_cells(people, active)
        after = self._rows(personal | next_row)
        is_broken = self._rules.is_broken(after)
        if self._dated:
            numbers = {
                position: self._rows(personal | last).numbers[index] for position, index in enumerate(self._dated)
            }
            numbers |= {len(self._dated) + position: after.numbers[index] for position, index in enumerate(self._dated)}
            codes = {position: np.zeros(len(active), np.int64) for position in numbers}
            is_broken |= self._between.is_broken(RuleRows(codes, numbers))
        return is_broken

    def _date_rules(self) -> Implications:
        """Find dates of two rows that follow each other which are always in order."""
        table, rows = self._table, self._table.sequences
        columns = [
            take_rows(table.final_columns[index], rows_of_pair)
            for rows_of_pair in (rows.before, rows.later)
            for index in self._dated
        ]
        people = table.people[rows.later]
        rules = find_implications(columns, [], people, table.k, FEWEST - 1, range(len(self._dated)))
        return Implications([], [], rules.ordered)

    def _highest(self, people: StageCells, active: Ints, index: int) -> Floats:
        """Return the last date that the rows of some people may have: that of the table, or of their death."""
        table = self._table
        last_dates = np.full(len(active), float(table.ranges[index][1]))
        for rule in self._rules.ordered:
            if rule.first == index and rule.second in table.personal and rule.second in table.numbers:
                codes, places = people[f"person {rule.second}"]
                is_regular = codes[active] == len(table.columns[rule.second].outcomes)
                last_dates = np.where(is_regular, np.minimum(last_dates, places[active] - rule.offset), last_dates)
        return last_dates

    def _mend_rows(self, cells: StageCells, count: int) -> None:
        """Give people whose first row breaks a rule all that another one has."""
        is_bad = self._rules.is_broken(self._rows(cells)) if count else np.zeros(0, np.bool_)
        bad, good = np.flatnonzero(is_bad), np.flatnonzero(~is_bad)
        if len(bad) and len(good):
            donors = self._random.choice(good, len(bad))
            for codes, places in cells.values():
                codes[bad], places[bad] = codes[donors], places[donors]


def _take_cells(cells: StageCells, rows: Ints) -> StageCells:
    return {key: (codes[rows], places[rows]) for key, (codes, places) in cells.items()}


class DrawOptions(NamedTuple):
    """How many rows are drawn, in leaves of how many people, whether rules are kept, and who is kept out."""

    leaf: int
    rows: int | None
    keep_out: int
    derived: str


class NewRecords(NamedTuple):
    """A release: its rows, the person of each, its columns as drawn, their grids, the least people of a value."""

    table: pa.Table
    person: Ints
    columns: list[ColumnParts]
    grids: list[Grid | None]
    least: list[int]


def has_several_rows(people: Ints, k: int) -> bool:
    """Tell whether at least k people have several rows."""
    return bool(np.count_nonzero(np.bincount(people[people != NOBODY]) > 1) >= k)


def draw_people(
    table: pa.Table,
    labels: pa.Table,
    people: Ints,
    reading: SplitOptions,
    drawing: DrawOptions,
    order_by: str | None,
    random: np.random.Generator,
) -> NewRecords:
    """Draw new people with all their rows; rows without a person are left out.

    Args:
        table, labels, people: The columns to release, those that are released as they are, and the person of each row.
        reading: How columns are split.
        drawing: How people are drawn.
        order_by: The column that orders the rows of a person. None: the first date or timestamp that differs between
            rows of a person; where there is none, rows have no order.
        random: As everywhere.
    """
    person = np.unique(people, return_inverse=True)[1].astype(np.int64)
    personal = find_personal_columns(table, person)
    ordering = find_ordering_columns(table, personal, order_by)
    sequences = Sequences.of(people, read_order(table, ordering), reading.k, random)
    groups = groups_of(_labels_of_people(labels, sequences), len(sequences.lengths))
    refuse_few_people(groups, None, reading.k, drawing.keep_out)
    columns = SequenceColumns.of(table, people, reading, sequences, personal, next(iter(ordering), None))
    progress.advance(0.02)
    draw = learn_sequences(columns, drawing, random)
    progress.advance(0.1)
    rows = table.num_rows if drawing.rows is None else drawing.rows
    total = max(1, round(rows * len(sequences.lengths) / table.num_rows))
    counts = apportion(count_group_rows(groups, None, drawing.keep_out, random), total)
    tables, person_of_rows = [], []
    for number, (group, count) in enumerate(zip(groups, counts.tolist(), strict=True)):
        used = leave_out_people(group, None, drawing.keep_out, random)
        with progress.step(0.1 + 0.9 * number / len(groups), 0.1 + 0.9 * (number + 1) / len(groups)):
            new = draw.draw(number, used, count)
        person_of_rows.append(new.person + int(counts[:number].sum()))
        tables.append(add_labels(pa.table(new.arrays, schema=table.schema), labels, int(sequences.firsts[group[0]])))
    return NewRecords(
        pa.concat_tables(tables), np.concatenate(person_of_rows), columns.final_columns, columns.grids, draw.least
    )


def learn_sequences(columns: SequenceColumns, drawing: DrawOptions, random: np.random.Generator) -> SequenceDraw:
    """Learn how people and their rows are drawn."""
    usual = is_usual(columns.columns)
    if np.count_nonzero(~usual) > MOST_UNUSUAL * len(usual):
        usual[:] = True
    with use_one_thread():  # as one row a person
        return SequenceDraw(columns, drawing, usual, random)


def _labels_of_people(labels: pa.Table, sequences: Sequences) -> pa.Table:
    """Return the labels of people; refuse those that differ between rows of a person."""
    firsts = labels.take(pa.array(sequences.firsts))
    for name in labels.column_names:
        if not firsts.column(name).take(pa.array(sequences.person)).equals(labels.column(name)):
            raise ValueError(f'by must name columns that are the same in all rows of a person; got "{name}".')
    return firsts
