"""The columns of a table with several rows a person: those of people, those of rows, and dates as times between.

Rows are sorted by the column that orders them. A date beside it is drawn as the time between the two, which is shared
by many people where the date is not. Numbers of rows a person are drawn in groups that k people share, and histories
are cut where fewer than k people go on. A column that is the same in all rows of a person (two people may be
exceptions) is one of people.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from duckanon._core.common.arrays import Floats, Ints
from duckanon._core.common.codes import encode_columns
from duckanon._core.common.names import match_columns
from duckanon._core.encoding.arrow import arrow_kind, is_moment, read_codes
from duckanon._core.encoding.column_split import (
    SplitOptions,
    clean_floats,
    find_special_values,
    join_chunks,
    split_columns,
    split_number,
)
from duckanon._core.encoding.parts import ColumnParts, read_doubles
from duckanon._methods.releasable.grids import Grid, find_free_places, places_of
from duckanon._methods.releasable.safe_numbers import SafeNumbers
from duckanon._methods.synthesize.leaf_draws import FEWEST
from duckanon._methods.synthesize.orthogonal import apportion
from duckanon._methods.synthesize.table_groups import with_digits


@dataclass(frozen=True)
class Sequences:
    """The rows of people, in order.

    Histories are cut off where fewer than k people go on: what comes later is never learnt from.

    Attributes:
        person: The person of each row, numbered from 0.
        firsts: The first row of each person.
        later: The rows that come after another one of their person.
        before: The row before each of these.
        position: How many rows come before each of these.
        lengths: How many rows each person has, at most as many as k people have.
    """

    person: Ints
    firsts: Ints
    later: Ints
    before: Ints
    position: Ints
    lengths: Ints

    @classmethod
    def of(cls, people: Ints, order: Sequence[Floats], k: int, random: np.random.Generator) -> Sequences:
        """Sort the rows of each person by columns, NULL last, and at random where these do not differ."""
        person = np.unique(people, return_inverse=True)[1].astype(np.int64)
        chance = random.permutation(len(person))
        by_person = np.lexsort((chance, *reversed(order), person))
        lengths = np.bincount(person)
        starts = np.cumsum(lengths) - lengths
        position = np.arange(len(person)) - np.repeat(starts, lengths)
        longest = np.sort(lengths)[-k] if k <= len(lengths) else 1
        later = np.flatnonzero((position > 0) & (position < longest))
        return cls(
            person,
            by_person[starts],
            by_person[later],
            by_person[later - 1],
            position[later],
            np.minimum(lengths, longest),
        )

    @property
    def longest(self) -> int:
        """The largest number of rows: at least k people have as many."""
        return int(self.lengths.max())

    @property
    def learnt(self) -> Ints:
        """The rows that are learnt from."""
        return np.concatenate([self.firsts, self.later])


def find_personal_columns(table: pa.Table, person: Ints) -> list[str]:
    """Name the columns that are the same in all rows of a person.

    Up to two people may be exceptions, so that one of them never shows.
    """
    count = int(person.max(initial=-1)) + 1
    first = np.zeros(count, np.int64)
    first[person[::-1]] = np.arange(len(person) - 1, -1, -1)
    encoded = zip(table.column_names, encode_columns(table), strict=True)
    return [name for name, (codes, _) in encoded if len(np.unique(person[codes != codes[first][person]])) < FEWEST]


def find_ordering_columns(table: pa.Table, personal: Sequence[str], order_by: str | None) -> list[str]:
    """Name the column that orders the rows of a person, and the dates that decide where it does not; [] for none.

    Args:
        table: The table.
        personal: The columns that are the same in all rows of a person.
        order_by: The column that is asked for. None: the first date or timestamp that differs between rows of a person.
    """
    moments = [field.name for field in table.schema if is_moment(field.type) and field.name not in personal]
    if order_by is None:
        return moments
    (name,) = match_columns("order_by", [order_by], table.column_names)
    if arrow_kind(name, table.schema.field(name).type) == "category":
        raise ValueError(f'order_by must be a column of dates, times or numbers; got "{name}".')
    if name in personal:
        raise ValueError(f'order_by must be a column that differs between the rows of a person; got "{name}".')
    return [name, *(one for one in moments if one != name)]


def read_order(table: pa.Table, names: Sequence[str]) -> list[Floats]:
    """Return the columns that order rows as numbers."""
    return [read_doubles(clean_floats(join_chunks(table.column(name)))) for name in names]


class Lengths(NamedTuple):
    """Numbers of rows in groups of at least k people.

    Attributes:
        column: The group of each person.
        numbers, shares: What each group stands for: the numbers that three of its people have or, where there are none,
            that nobody has.
    """

    column: ColumnParts
    numbers: list[Ints]
    shares: list[Ints]

    @classmethod
    def of(cls, lengths: Ints, k: int) -> Lengths:
        """Put neighbouring numbers together until k people have them."""
        counts = np.bincount(lengths)
        group = np.zeros(len(counts), np.int64)
        held = 0
        for number in range(1, len(counts)):
            starts_new = held >= k and int(counts[number:].sum()) >= k
            group[number] = group[number - 1] + starts_new
            held = int(counts[number]) + (0 if starts_new else held)
        numbers, shares = [], []
        everybody = np.arange(1, len(counts))
        for number_of_group in range(int(group[-1]) + 1):
            members = everybody[group[1:] == number_of_group]
            middle = int(np.median(np.repeat(members, counts[members])))
            for candidates in (
                members[counts[members] >= FEWEST],
                members[counts[members] == 0],
                everybody[counts[1:] >= FEWEST],
            ):
                if len(candidates):
                    break
            chosen = candidates if candidates[0] in members else candidates[[np.abs(candidates - middle).argmin()]]
            numbers.append(chosen)
            shares.append(np.maximum(counts[chosen], 1))
        codes = group[lengths]
        return cls(
            ColumnParts("length", pa.int64(), codes, tuple(range(len(numbers))), None, pa.array(codes)), numbers, shares
        )

    def draw(self, codes: Ints, random: np.random.Generator) -> Ints:
        """Draw numbers of rows, given the group of each person."""
        lengths = np.zeros(len(codes), np.int64)
        for group, (numbers, shares) in enumerate(zip(self.numbers, self.shares, strict=True)):
            here = np.flatnonzero(codes == group)
            lengths[random.permutation(here)] = np.repeat(numbers, apportion(shares, len(here)))
        return lengths


def cap_numbers(name: str, values: Ints, most: int) -> ColumnParts:
    """Take small whole numbers as choices, the largest of which stands for all above."""
    codes = np.minimum(values, most)
    array = pa.array(codes)
    return ColumnParts(name, array.type, codes, tuple(range(most + 1)), None, array)


class WholeColumn(NamedTuple):
    """A column of a table that is drawn in parts: in small, with its people, and its numbers."""

    column: ColumnParts
    people: Ints | None
    numbers: SafeNumbers | None


@dataclass(frozen=True)
class SequenceColumns:
    """The columns of a table whose rows follow each other.

    Attributes:
        columns: The columns as they are drawn: a date beside the one that orders rows as the time between the two.
        people: The person of each row.
        reading: How columns are split.
        sequences: The order of the rows.
        personal, events: The columns of people, and those of rows, without that which orders them.
        order: The column that orders rows; None where rows have no order, or one that is not counted.
        dates: The columns that are drawn as the time between, as they are in the table.
        learnt: The rows that are learnt from.
        whole: The columns of the table that these are a part of; none where they are all of it.
    """

    columns: Sequence[ColumnParts]
    people: Ints
    reading: SplitOptions
    sequences: Sequences
    personal: Sequence[int]
    events: Sequence[int]
    order: int | None
    dates: dict[int, ColumnParts]
    learnt: Ints
    whole: Mapping[int, WholeColumn] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        table: pa.Table,
        people: Ints,
        reading: SplitOptions,
        sequences: Sequences,
        personal: Sequence[str],
        order: str | None,
        split: Mapping[str, ColumnParts] | None = None,
        whole_columns: Mapping[str, WholeColumn] | None = None,
    ) -> SequenceColumns:
        """Split the columns of a table, numbers that order rows and the dates beside them apart.

        Of a part of a table, `split` are its columns, as the whole table's are split, and `whole_columns` these.
        """
        names = table.column_names
        arrays = {name: clean_floats(join_chunks(table.column(name))) for name in names}
        order, beside = find_order_and_dates(table.schema, personal, order)
        plain = [name for name in names if name not in beside and name != order]
        parts = dict(split or {one.name: one for one in split_columns(table.select(plain), people, reading)})
        dates = {}
        for name in [] if order is None else [order, *beside]:
            if split is None:
                parts[name] = split_number(name, arrays[name], people, reading, np.zeros(0))
            if name != order:
                dates[names.index(name)] = parts[name]
                parts[name] = subtract_columns(name, arrays[order or name], arrays[name], people, reading)
        return cls(
            [with_digits(parts[name]) if split is None or name in beside else parts[name] for name in names],
            people,
            reading,
            sequences,
            [index for index, name in enumerate(names) if name in personal],
            [index for index, name in enumerate(names) if name not in personal and name != order],
            None if order is None else names.index(order),
            dates,
            sequences.learnt,
            {names.index(name): one for name, one in (whole_columns or {}).items()},
        )

    @property
    def k(self) -> int:
        """The least number of people who share a released value."""
        return self.reading.k

    @cached_property
    def numbers(self) -> dict[int, SafeNumbers]:
        """The numbers of the columns, ranked among the rows that are learnt from."""
        numbers = {}
        for index, column in enumerate(self.columns):
            known = self._whole_numbers(index, column) if index not in self.dates else None
            if column.regular is not None:
                # Dates of a few more people moved to the next would change the gaps between rows.
                chance = None if index == self.order or index in self.dates else self.reading.chance
                numbers[index] = rank_among(known or SafeNumbers.of(column, self.people, self.k, chance), self.learnt)
        return numbers

    @cached_property
    def date_numbers(self) -> dict[int, SafeNumbers]:
        """Those of the dates that are drawn as the time between."""
        return {
            index: self._whole_numbers(index, column) or SafeNumbers.of(column, self.people, self.k)
            for index, column in self.dates.items()
        }

    def _whole_numbers(self, index: int, column: ColumnParts) -> SafeNumbers | None:
        """Return the numbers of a column of the table that these are a part of, if it has any."""
        known = self.whole[index].numbers if index in self.whole else None
        return None if known is None else known.for_rows(column)

    def whole_of(self, index: int) -> tuple[ColumnParts, Ints | None]:
        """Return a column of the whole table with its people; what lies between dates is that of these rows."""
        if index in self.whole and index not in self.dates:
            return self.whole[index].column, self.whole[index].people
        return self.columns[index], self.people

    @property
    def final_columns(self) -> list[ColumnParts]:
        """The columns as they are released."""
        return [self.dates.get(index, column) for index, column in enumerate(self.columns)]

    def least(self, index: int) -> int:
        """Return the least number of people who share a released value of a column."""
        numbers = self.date_numbers.get(index) or self.numbers.get(index)
        return self.k if numbers is None else numbers.least

    @property
    def grids(self) -> list[Grid | None]:
        """The grids that the columns are released with; None for choices."""
        numbers = self.numbers | self.date_numbers
        return [numbers[index].grid if index in numbers else None for index in range(len(self.columns))]

    def quantiles(self, index: int, rows: Ints) -> Callable[[Floats], Ints]:
        """Return the quantile function of a number, among rows."""
        return self.numbers[index].quantiles(rows, self.people)

    @cached_property
    def ranges(self) -> dict[int, tuple[int, int]]:
        """The lowest and the highest place that may be released of the column that orders rows, and of dates."""
        order = {} if self.order is None else {self.order: self.numbers[self.order]}
        ranges = {}
        for index, numbers in (order | self.date_numbers).items():
            lowest, highest = numbers.quantiles(self.learnt, self.people)(np.array([0.0, 1.0])).tolist()
            ranges[index] = (lowest, highest)
        return ranges

    def move_places(self, index: int, places: Ints) -> Ints:
        """Move places of the column that orders rows, or of a date, to the nearest ones that may be released."""
        numbers = self.date_numbers.get(index) or self.numbers[index]
        lowest, highest = self.ranges[index]
        step = numbers.grid.step
        places = np.clip(lowest + np.rint((places - lowest) / step).astype(np.int64) * step, lowest, highest)
        free = find_free_places(places, numbers.rare, step, lowest, highest)
        assert free is not None  # both ends may be released
        return free


def find_order_and_dates(schema: pa.Schema, personal: Sequence[str], order: str | None) -> tuple[str | None, list[str]]:
    """Return the column that orders rows, if its steps are counted, and the dates that are drawn as the time after it.

    Args:
        schema: That of the table.
        personal: The columns of people.
        order: The column that orders rows; None for none.
    """
    if order is None:
        return None, []
    kind = schema.field(order).type
    dates = [one.name for one in schema if one.name not in personal and one.name != order and one.type == kind]
    return order if arrow_kind(order, kind) == "exact" else None, dates if is_moment(kind) else []


def take_rows(column: ColumnParts, rows: Ints, name: str | None = None) -> ColumnParts:
    """Return some rows of a column."""
    return replace(column, name=name or column.name, codes=column.codes[rows], array=column.array.take(pa.array(rows)))


def rank_among(numbers: SafeNumbers, rows: Ints) -> SafeNumbers:
    """Rank the numbers of a column among some rows."""
    held = rows[numbers.is_regular[rows]]
    return replace(numbers, ordered=np.sort(numbers.places[held])) if len(held) else numbers


def subtract_columns(name: str, start: pa.Array, end: pa.Array, people: Ints, reading: SplitOptions) -> ColumnParts:
    """Return how far values are from others, in whole steps of their type: days, microseconds; NULL where one is."""
    is_valid = np.logical_and(*(array.is_valid().to_numpy(zero_copy_only=False) for array in (start, end)))
    steps = read_codes(name, end) - read_codes(name, start)
    array = pa.array(steps, mask=~is_valid)
    distinct, counts = np.unique(steps[is_valid], return_counts=True)
    special = find_special_values(distinct.astype(np.float64), counts) if len(distinct) else np.zeros(0)
    return split_number(name, array, people, reading, special if reading.special is not None else np.zeros(0))


def encode_numbers(column: ColumnParts, numbers: SafeNumbers, array: pa.Array) -> tuple[Ints, Ints]:
    """Return the choices and the places of computed numbers."""
    values = read_doubles(array)
    codes = np.full(len(values), len(column.outcomes), np.int64)
    for code, outcome in enumerate(column.outcomes):
        codes[np.isnan(values) if outcome is None else values == float(outcome)] = code
    return codes, places_of(numbers.grid, array)
