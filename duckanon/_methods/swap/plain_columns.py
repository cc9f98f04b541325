"""Columns of people made plain for the thesis's methods, which know numbers and categories only, and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from duckanon._core.common.arguments import spelled
from duckanon._core.common.arrays import Ints, is_number, sql_type
from duckanon._core.common.codes import encode
from duckanon._core.common.names import known_columns
from duckanon._core.common.people import NOBODY
from duckanon._core.encoding.column_split import Reading, split_columns
from duckanon._core.encoding.coordinates import WIDE, Places, placed_choices, sums_of
from duckanon._core.encoding.fit import fit
from duckanon._core.encoding.formulas import Formula, found_formulas
from duckanon._core.encoding.lookups import Lookup, found_lookups
from duckanon._core.encoding.number_types import NumberTypes
from duckanon._core.encoding.parts import ColumnParts, doubles, rounded
from duckanon._core.encoding.special import special_choices
from duckanon._methods.releasable.bounds import Bounds

_FIRST = 1_024  # rows
_BLOCK = 65_536  # rows that are coded at a time
_CHOICE = " (choice)"  # the name of the plain column that says which special value a number has, or none


@dataclass(frozen=True)
class Settings:
    """Reading of columns: the people behind the ends of a number and a category (1: as they are), and other options."""

    k: int
    special: Any
    categories: Sequence[str] | None
    derived: str

    @property
    def as_in_thesis(self) -> bool:
        """Whether numbers and categories are taken as they come."""
        return (self.k, self.special, self.derived) == (1, "off", "off") and self.categories == []


@dataclass(frozen=True)
class PlainColumns:
    """A table whose columns are plain numbers and categories.

    Attributes:
        schema, columns: Those of the table itself, the columns split.
        formulas, lookups: What is computed from the rest in the end.
        table, reference: The plain columns, and those of another table, if there is one.
        places: The coordinates of choices between many values, by the name of the plain column.
        types: How the numbers of the table were read.
    """

    schema: pa.Schema
    columns: Sequence[ColumnParts]
    formulas: Sequence[Formula]
    lookups: Sequence[Lookup]
    table: pa.Table
    reference: pa.Table | None
    places: Mapping[str, Places]
    types: NumberTypes

    @classmethod
    def of(
        cls, table: pa.Table, reference: pa.Table | None, nulls: str, settings: Settings, random: np.random.Generator
    ) -> PlainColumns:
        """Make the columns of a table plain, and those of another one like them."""
        names = table.column_names
        special = special_choices(settings.special, names)
        categories = spelled("categories", settings.categories, names)
        known_columns("categories", categories or [], names)
        rows = table.num_rows
        both, people = table, None
        if reference is not None:  # read like the table's own, but nobody of them counts
            both = pa.concat_tables([table, reference.cast(table.schema)])
            people = np.where(np.arange(both.num_rows) < rows, np.arange(both.num_rows), NOBODY)
        types = NumberTypes.of(both)
        columns = split_columns(types.read(both), people, Reading(settings.k, special, categories, nulls))
        _refuse_constant(table)
        is_auto = settings.derived == "auto"
        formulas = found_formulas(columns) if is_auto else []
        computed = [formula.column for formula in formulas]
        lookups = found_lookups(columns, computed, random) if is_auto else []
        decided = {lookup.column for lookup in lookups}
        bounds = {
            index: Bounds.of(column, rows, settings.k)
            for index, column in enumerate(columns)
            if column.regular is not None and index not in computed
        }
        both = plain_table(columns, bounds, [*computed, *decided], rows, random)
        if both.num_columns < 2:
            usable = [column.name for column in columns if {column.name, _choice_name(column)} & {*both.column_names}]
            raise ValueError(
                f"cols must name at least two columns that vary by themselves; got {len(usable)} of {len(names)}: the "
                f"others follow from them, are NULL, or have no second value shared by {settings.k} people."
            )
        plain, others = both.slice(0, rows), None if reference is None else both.slice(rows)
        return cls(table.schema, columns, formulas, lookups, plain, others, wide_places(columns, plain), types)

    def log(self, log: Sequence[str] | None) -> list[str] | None:
        """Return which plain numbers are logged, of those that a caller names; refuse what is no number."""
        names = spelled("log", log, self.schema.names)
        for name in known_columns("log", names or [], self.schema.names):
            if not is_number(self.schema.field(name).type):
                type_ = self.schema.field(name).type
                raise ValueError(f'column "{name}" has no logarithms: it holds no numbers; got {sql_type(type_)}.')
        numbers = {column.name for column in self.columns if column.regular is not None}
        numbers &= set(self.table.column_names)
        return None if names is None else [name for name in names if name in numbers]

    def alike(
        self, columns: Sequence[ColumnParts], bounds: Mapping[str, Bounds], random: np.random.Generator
    ) -> pa.Table:
        """Return the plain columns of other rows that were split like the table's, with bounds by column name."""
        computed = [formula.column for formula in self.formulas]
        ends = {
            index: bounds[column.name]
            for index, column in enumerate(columns)
            if column.regular is not None and index not in computed
        }
        followers = [*computed, *(lookup.column for lookup in self.lookups)]
        return plain_table(columns, ends, followers, len(columns[0].codes), random)

    def back(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Recombine the columns of released rows."""
        decided = {lookup.column: lookup for lookup in self.lookups}
        computed = {formula.column: formula for formula in self.formulas}
        codes: dict[int, Ints] = {}
        arrays: dict[int, pa.Array] = {}
        drawn = [index for index in range(len(self.columns)) if index not in decided and index not in computed]
        for index in (*drawn, *decided):
            column = self.columns[index]
            if index in decided:
                lookup = decided[index]
                numbers = np.zeros(0) if lookup.keys is None else doubles(arrays[lookup.source])
                codes[index] = lookup.computed(codes[lookup.source], numbers)
            elif column.choices > 1:
                chosen = batch.column(_choice_name(column)).dictionary_decode().cast(pa.int64())
                codes[index] = chosen.to_numpy(zero_copy_only=False)
            else:
                codes[index] = np.zeros(batch.num_rows, np.int64)
            arrays[index] = column.joined(codes[index], None if column.regular is None else batch.column(column.name))
        for index, formula in computed.items():
            values = formula.computed([doubles(arrays[source]) for source in formula.sources])
            arrays[index] = rounded(self.columns[index], values)
        written = [self.types.write_column(column.name, arrays[index]) for index, column in enumerate(self.columns)]
        return pa.record_batch(written, schema=self.schema)

    def reader(self, made: pa.RecordBatchReader) -> pa.RecordBatchReader:
        """Read released plain rows as rows of the table."""
        return pa.RecordBatchReader.from_batches(self.schema, (self.back(batch) for batch in made))


def plain_table(
    columns: Sequence[ColumnParts],
    bounds: Mapping[int, Bounds],
    followers: Sequence[int],
    rows: int,
    random: np.random.Generator,
) -> pa.Table:
    """Return the plain columns of a table that was split, the first rows of which are its own: see `Bounds.array`.

    Bounds are the ends of numbers that are not computed; followers have numbers or choices computed in the end.
    """
    arrays: dict[str, pa.Array] = {}
    for index, column in enumerate(columns):
        if column.choices > 1 and index not in followers:
            arrays[_choice_name(column)] = _choice(column)
        if index in bounds:
            arrays[column.name] = bounds[index].array(column, rows, random)
    return pa.table(arrays)


def _refuse_constant(table: pa.Table) -> None:
    for name, column in zip(table.column_names, table.columns, strict=True):
        looked_at = [column.slice(0, _FIRST), column]  # most columns differ in their first rows
        is_constant = all(encode(pa.table({"value": part}))[0][1] == 1 for part in looked_at)
        if is_constant and column.null_count < len(column):
            raise ValueError(f'column "{name}" has the same value in every row; leave it out of cols.')


def wide_places(columns: Sequence[ColumnParts], plain: pa.Table) -> dict[str, Places]:
    """Return the coordinates of choices between many values, from what the other plain columns say about them."""
    named = {_choice_name(column): column for column in columns if column.choices > WIDE}
    wide = {name: column for name, column in named.items() if name in plain.column_names}
    if not wide:
        return {}
    codes = [column.codes[: plain.num_rows] for column in wide.values()]
    choices = [column.choices for column in wide.values()]
    sums = [np.zeros((count, 0)) for count in choices]
    narrow = plain.drop_columns(list(wide))
    if narrow.num_columns:
        encoding, _ = fit(narrow, lenient=True)
        sums = sums_of(codes, choices, (encoding.matrix(batch) for batch in narrow.to_batches(_BLOCK)))
    return dict(zip(wide, placed_choices(codes, choices, sums), strict=True))


def _choice_name(column: ColumnParts) -> str:
    return column.name if column.regular is None else column.name + _CHOICE


def _choice(column: ColumnParts) -> pa.Array:
    """Return choices as categories: the texts of their numbers."""
    codes = pa.array(column.codes.astype(np.int32))
    return pa.DictionaryArray.from_arrays(codes, pa.array([str(code) for code in range(column.choices)]))
