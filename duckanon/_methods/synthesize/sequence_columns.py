"""The columns of a table with several rows a person: those of people, those of rows, and dates as what lies between."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pyarrow as pa

from duckanon._core.common.arrays import Bools, Floats, Ints
from duckanon._core.encoding.arrow import codes_of, is_moment, kind_of
from duckanon._core.encoding.column_split import Reading, number_parts, split_columns, whole
from duckanon._core.encoding.digits import cleaned
from duckanon._core.encoding.parts import ColumnParts, doubles
from duckanon._core.encoding.special import special_values
from duckanon._methods.releasable.grids import off_taken, places_of
from duckanon._methods.releasable.safe_numbers import SafeNumbers
from duckanon._methods.synthesize.sequence_order import Sequences
from duckanon._methods.synthesize.table_groups import with_digits


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

    @classmethod
    def of(
        cls,
        table: pa.Table,
        people: Ints,
        reading: Reading,
        sequences: Sequences,
        personal: Sequence[str],
        order: str | None,
    ) -> SequenceColumns:
        """Split the columns of a table, numbers that order rows and the dates beside them apart."""
        names = table.column_names
        arrays = {name: cleaned(whole(table.column(name))) for name in names}
        is_ordered = order is not None and is_moment(arrays[order].type)
        order = order if order is not None and kind_of(order, arrays[order].type) == "exact" else None
        beside = [
            name
            for name in names
            if is_ordered and name not in personal and name != order and arrays[name].type == arrays[order or name].type
        ]
        plain = [name for name in names if name not in beside and name != order]
        parts = {one.name: one for one in split_columns(table.select(plain), people, reading)}
        dates = {}
        if order is not None:
            parts[order] = number_parts(order, arrays[order], people, reading, np.zeros(0))
        for name in beside:
            assert order is not None
            parts[name] = between(name, arrays[order], arrays[name], people, reading)
            dates[names.index(name)] = number_parts(name, arrays[name], people, reading, np.zeros(0))
        return cls(
            [with_digits(parts[name]) for name in names],
            people,
            reading,
            sequences,
            [index for index, name in enumerate(names) if name in personal],
            [index for index, name in enumerate(names) if name not in personal and name != order],
            None if order is None else names.index(order),
            dates,
            sequences.learnt,
        )

    @property
    def k(self) -> int:
        """The least number of people who share a released value."""
        return self.reading.k

    @cached_property
    def numbers(self) -> dict[int, SafeNumbers]:
        """The numbers of the columns, ranked among the rows that are learnt from."""
        return {
            index: ranked(column, self.people, self.k, self.learnt)
            for index, column in enumerate(self.columns)
            if column.regular is not None
        }

    @cached_property
    def date_numbers(self) -> dict[int, SafeNumbers]:
        """Those of the dates that are drawn as the time between."""
        return {index: SafeNumbers.of(column, self.people, self.k) for index, column in self.dates.items()}

    @property
    def released(self) -> list[ColumnParts]:
        """The columns as they are released."""
        return [self.dates.get(index, column) for index, column in enumerate(self.columns)]

    def least(self, index: int) -> int:
        """Return the least number of people who share a released value of a column."""
        numbers = self.date_numbers.get(index) or self.numbers.get(index)
        return self.k if numbers is None else numbers.least

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


def taken(column: ColumnParts, rows: Ints, name: str | None = None) -> ColumnParts:
    """Return some rows of a column."""
    return replace(column, name=name or column.name, codes=column.codes[rows], array=column.array.take(pa.array(rows)))


def ranked(column: ColumnParts, people: Ints, k: int, rows: Ints) -> SafeNumbers:
    """Learn the numbers of a column, and rank them among some rows."""
    found = SafeNumbers.of(column, people, k)
    held = rows[found.is_regular[rows]]
    return replace(found, ordered=np.sort(found.places[held])) if len(held) else found


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
