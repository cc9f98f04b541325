"""New people with several rows each: first the people, then how many rows they have, then row after row."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from duckanon._core.common.arrays import Bools, Floats, Ints
from duckanon._core.common.progress import Tell, within
from duckanon._core.encoding.parts import doubles
from duckanon._methods.synthesize.implication_rules import Implications, Rows
from duckanon._methods.synthesize.implications import found_implications
from duckanon._methods.synthesize.leaf_draws import FEWEST
from duckanon._methods.synthesize.next_rows import Learnt, Limits, NextRows, steps_of
from duckanon._methods.synthesize.sequence_columns import SequenceColumns, taken
from duckanon._methods.synthesize.sequence_order import Lengths
from duckanon._methods.synthesize.stages import Cells, Stage, StageColumn


class Options(NamedTuple):
    """How people are drawn: the least people of a leaf, and whether rules are looked for."""

    leaf: int
    derived: str


class NewPeople(NamedTuple):
    """New people: whose each row is, numbered from 0, and the columns of the table."""

    person: Ints
    arrays: list[pa.Array]


class SequenceDraw:
    """Draws people with all their rows."""

    def __init__(self, table: SequenceColumns, options: Options, is_usual: Bools, random: np.random.Generator) -> None:
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
        self._rules = Implications([], [], [])
        if options.derived == "auto":
            self._rules = found_implications(table.released, self._computed(), table.people, table.k, FEWEST - 1)
        self._dated = [] if table.order is None or not len(rows.later) else [table.order, *table.dates]
        self._between = self._date_rules() if self._dated and options.derived == "auto" else Implications([], [], [])

    @property
    def least(self) -> list[int]:
        """The least number of people who share a released value, by column."""
        computed = self._people.least | ({} if self._next is None else self._next.least)
        found = [self._table.least(index) for index in range(len(self._table.columns))]
        for key, least in computed.items():
            index = int(key.split()[1])
            found[index] = min(found[index], least)
        return found

    def draw(self, group: int, persons: Ints, count: int, tell: Tell) -> NewPeople:
        """Draw people, from some of those of the table."""
        table, rows = self._table, self._table.sequences
        is_used = np.zeros(len(rows.lengths), np.bool_)
        is_used[persons] = True
        usual = persons[self._is_usual[rows.firsts[persons]]]
        cells, _ = self._people.draw(group, usual, count, {}, {}, {}, within(tell, 0.0, 0.5))
        self._replace_broken(cells, count)
        lengths = self._lengths.drawn(cells["length"][0], self._random)
        people = {key: value for key, value in cells.items() if not key.startswith("own")}
        first = {key: value for key, value in cells.items() if key.startswith("own")}
        whose, made = [np.arange(count)], [first]
        if self._next is not None:
            learnt_rows = table.learnt[is_used[rows.person[table.learnt]]]
            quantiles = {index: table.quantiles(index, learnt_rows) for index in table.events if index in table.numbers}
            limits = Limits(partial(self._highest, people), partial(self._broken, people))
            learnt = Learnt(group, is_used, quantiles)
            for active, own in self._next.histories(people, first, lengths, learnt, limits):
                whose.append(active)
                made.append(own)
                tell(0.5 + 0.5 * len(made) / rows.longest)
        kept, person, like = self._whole_histories(whose, count)
        joined = {
            key: (
                np.concatenate([one[key][0] for one in made])[kept],
                np.concatenate([one[key][1] for one in made])[kept],
            )
            for key in first
        }
        return NewPeople(person, self._arrays(_of_rows(people, like[person]) | joined))

    def _whole_histories(self, whose: Sequence[Ints], count: int) -> tuple[Ints, Ints, Ints]:
        """Cut histories that ended early to a number of rows that enough people have, or of nobody.

        Rows end where none was found that keeps all rules. Who would be left with none is like another new person.

        Args:
            whose: The person of each first row, of each second row, and so on.
            count: How many people there are.

        Returns:
            The rows to keep, whose each of them is, and the person whom each person is like, mostly themselves.
        """
        person = np.concatenate(whose)
        position = np.repeat(np.arange(1, len(whose) + 1), [len(one) for one in whose])
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
        part = taken(table.columns[index], table.sequences.firsts)
        return StageColumn(f"{kind} {index}", part, *table.whole_of(index), table.numbers.get(index))

    def _computed(self) -> list[int]:
        """Return the columns that are computed from others, of which no rule is looked for."""
        keys = [*self._people.least, *([] if self._next is None else self._next.least)]
        return sorted({int(key.split()[1]) for key in keys})

    def _cell(self, cells: Cells, index: int) -> tuple[Ints, Ints]:
        return cells[f"person {index}" if index in self._table.personal else f"own {index}"]

    def _date(self, cells: Cells, index: int) -> tuple[Ints, Bools]:
        """Return the places of a date that was drawn as the time after another, and where there is one."""
        table = self._table
        assert table.order is not None
        steps, is_valid = steps_of(table.columns[index], self._cell(cells, index))
        codes, places = cells[f"own {table.order}"]
        is_valid = is_valid & (codes == len(table.columns[table.order].outcomes))
        found = table.moved(index, np.where(is_valid, places + steps, places))
        if None not in table.dates[index].outcomes and is_valid.any():  # too few people have none
            found[~is_valid] = self._random.choice(found[is_valid], np.count_nonzero(~is_valid))
            is_valid = np.ones_like(is_valid)
        return found, is_valid

    def _arrays(self, cells: Cells) -> list[pa.Array]:
        """Recombine the columns of the table."""
        found = []
        for index, column in enumerate(self._table.columns):
            if index in self._table.dates:
                grid = self._table.date_numbers[index].grid
                found.append(grid.array(*self._date(cells, index)))
                continue
            codes, places = self._cell(cells, index)
            numbers = self._table.numbers.get(index)
            found.append(column.joined(codes, None if numbers is None else numbers.grid.array(places, None)))
        return found

    def _rows(self, cells: Cells) -> Rows:
        """Return the rows as rules see them: with dates."""
        codes: dict[int, Ints] = {}
        numbers: dict[int, Floats] = {}
        for index, column in enumerate(self._table.released):
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
            numbers[index] = np.where(is_regular, doubles(grid.array(places, None)), np.nan)
        return Rows(codes, numbers)

    def _broken(self, people: Cells, last: Cells, own: Cells, active: Ints) -> Bools:
        """Tell which rows of some people break a rule of the table, or one about two rows."""
        whose = _of_rows(people, active)
        after = self._rows(whose | own)
        is_broken = self._rules.broken(after)
        if self._dated:
            numbers = {place: self._rows(whose | last).numbers[index] for place, index in enumerate(self._dated)}
            numbers |= {len(self._dated) + place: after.numbers[index] for place, index in enumerate(self._dated)}
            codes = {place: np.zeros(len(active), np.int64) for place in numbers}
            is_broken |= self._between.broken(Rows(codes, numbers))
        return is_broken

    def _date_rules(self) -> Implications:
        """Find dates of two rows that follow each other which are always in order."""
        table, rows = self._table, self._table.sequences
        columns = [taken(table.released[index], one) for one in (rows.before, rows.later) for index in self._dated]
        people = table.people[rows.later]
        found = found_implications(columns, [], people, table.k, FEWEST - 1, range(len(self._dated)))
        return Implications([], [], found.ordered)

    def _highest(self, people: Cells, active: Ints, index: int) -> Floats:
        """Return the last date that the rows of some people may have: that of the table, or of their death."""
        table = self._table
        found = np.full(len(active), float(table.ranges[index][1]))
        for rule in self._rules.ordered:
            if rule.first == index and rule.second in table.personal and rule.second in table.numbers:
                codes, places = people[f"person {rule.second}"]
                is_regular = codes[active] == len(table.columns[rule.second].outcomes)
                found = np.where(is_regular, np.minimum(found, places[active] - rule.offset), found)
        return found

    def _replace_broken(self, cells: Cells, count: int) -> None:
        """Give people whose first row breaks a rule all that another one has."""
        is_bad = self._rules.broken(self._rows(cells)) if count else np.zeros(0, np.bool_)
        bad, good = np.flatnonzero(is_bad), np.flatnonzero(~is_bad)
        if len(bad) and len(good):
            donors = self._random.choice(good, len(bad))
            for codes, places in cells.values():
                codes[bad], places[bad] = codes[donors], places[donors]


def _of_rows(cells: Cells, rows: Ints) -> Cells:
    return {key: (codes[rows], places[rows]) for key, (codes, places) in cells.items()}
