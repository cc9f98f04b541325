"""The columns of a table with several rows a person: those of people, those of rows, and dates as what lies between."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from duckanon._core.common.arrays import Bools, Floats, Ints
from duckanon._core.encoding.arrow import codes_of, is_moment, kind_of
from duckanon._core.encoding.column_split import Reading, number_parts, split_columns, whole
from duckanon._core.encoding.digits import cleaned
from duckanon._core.encoding.parts import ColumnParts, doubles
from duckanon._core.encoding.special import special_values
from duckanon._methods.releasable.grids import Grid, off_taken, places_of
from duckanon._methods.releasable.safe_numbers import SafeNumbers
from duckanon._methods.synthesize.sequence_order import Sequences
from duckanon._methods.synthesize.table_groups import with_digits


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
        people: Whose each row is.
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
    reading: Reading
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
        reading: Reading,
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
        arrays = {name: cleaned(whole(table.column(name))) for name in names}
        order, beside = order_and_dates(table.schema, personal, order)
        plain = [name for name in names if name not in beside and name != order]
        parts = dict(split or {one.name: one for one in split_columns(table.select(plain), people, reading)})
        dates = {}
        for name in [] if order is None else [order, *beside]:
            if split is None:
                parts[name] = number_parts(name, arrays[name], people, reading, np.zeros(0))
            if name != order:
                dates[names.index(name)] = parts[name]
                parts[name] = between(name, arrays[order or name], arrays[name], people, reading)
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
        found = {}
        for index, column in enumerate(self.columns):
            known = self._whole_numbers(index, column) if index not in self.dates else None
            if column.regular is not None:
                # Dates of a few more people moved to the next would change the gaps between rows.
                chance = None if index == self.order or index in self.dates else self.reading.chance
                found[index] = ranked(known or SafeNumbers.of(column, self.people, self.k, chance), self.learnt)
        return found

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
    def released(self) -> list[ColumnParts]:
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
        found = {}
        for index, numbers in (order | self.date_numbers).items():
            lowest, highest = numbers.quantiles(self.learnt, self.people)(np.array([0.0, 1.0])).tolist()
            found[index] = (lowest, highest)
        return found

    def moved(self, index: int, places: Ints) -> Ints:
        """Move places of the column that orders rows, or of a date, to the nearest ones that may be released."""
        numbers = self.date_numbers.get(index) or self.numbers[index]
        lowest, highest = self.ranges[index]
        step = numbers.grid.step
        places = np.clip(lowest + np.rint((places - lowest) / step).astype(np.int64) * step, lowest, highest)
        found = off_taken(places, numbers.rare, step, lowest, highest)
        assert found is not None  # both ends may be released
        return found


def order_and_dates(schema: pa.Schema, personal: Sequence[str], order: str | None) -> tuple[str | None, list[str]]:
    """Return the column that orders rows, if its steps are counted, and the dates that are drawn as the time after it.

    Args:
        schema: That of the table.
        personal: The columns of people.
        order: The column that orders rows; None for none.
    """
    if order is None:
        return None, []
    kind = schema.field(order).type
    others = [one.name for one in schema if one.name not in personal and one.name != order and one.type == kind]
    return order if kind_of(order, kind) == "exact" else None, others if is_moment(kind) else []


def taken(column: ColumnParts, rows: Ints, name: str | None = None) -> ColumnParts:
    """Return some rows of a column."""
    return replace(column, name=name or column.name, codes=column.codes[rows], array=column.array.take(pa.array(rows)))


def ranked(numbers: SafeNumbers, rows: Ints) -> SafeNumbers:
    """Rank the numbers of a column among some rows."""
    held = rows[numbers.is_regular[rows]]
    return replace(numbers, ordered=np.sort(numbers.places[held])) if len(held) else numbers


def between(name: str, start: pa.Array, end: pa.Array, people: Ints, reading: Reading) -> ColumnParts:
    """Return how far values are from others, in whole steps of their type: days, microseconds; NULL where one is."""
    is_valid = is_known(start) & is_known(end)
    steps = codes_of(name, end) - codes_of(name, start)
    array = pa.array(steps, mask=~is_valid)
    distinct, counts = np.unique(steps[is_valid], return_counts=True)
    special = special_values(distinct.astype(np.float64), counts) if len(distinct) else np.zeros(0)
    return number_parts(name, array, people, reading, special if reading.special is not None else np.zeros(0))


def is_known(array: pa.Array) -> Bools:
    """Tell which values are not NULL."""
    return np.asarray(array.is_valid().to_numpy(zero_copy_only=False))


def coded(column: ColumnParts, numbers: SafeNumbers, array: pa.Array) -> tuple[Ints, Ints]:
    """Return the choices and the places of computed numbers."""
    values = doubles(array)
    codes = np.full(len(values), len(column.outcomes), np.int64)
    for code, outcome in enumerate(column.outcomes):
        codes[np.isnan(values) if outcome is None else values == float(outcome)] = code
    return codes, places_of(numbers.grid, array)
