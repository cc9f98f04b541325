"""Columns of numbers and categories only, which is what the thesis's methods know, and back.

A column of people is split: its special values and NULLs become a column of choices, its regular numbers one of numbers
whose ends k people stand behind. What is computed from other columns is left out and computed in the end.
`SurveyColumns` reads rows of a large table as those of a survey of it: the same choices and the same bounds. What the
survey has not seen, or has merged, is read as it would have been there: rare texts as others, numbers as the nearest
that many people share.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from duckanon._core.common.arguments import spell_columns
from duckanon._core.common.arrays import Floats, Ints, is_number, sql_type
from duckanon._core.common.codes import encode_columns
from duckanon._core.common.names import match_columns
from duckanon._core.common.people import NOBODY
from duckanon._core.encoding.arrow import arrow_kind, read_categories
from duckanon._core.encoding.column_codecs import WIDE, ChoiceCoordinates, locate_choices, sum_features
from duckanon._core.encoding.column_split import SplitOptions, clean_floats, join_chunks, read_special, split_columns
from duckanon._core.encoding.fit import fit_columns
from duckanon._core.encoding.formulas import Formula, Lookup, find_formulas, find_lookups
from duckanon._core.encoding.number_types import NumberTypes
from duckanon._core.encoding.parts import ColumnParts, read_doubles, round_numbers
from duckanon._methods.releasable.safe_numbers import Bounds

_FIRST = 1_024  # rows
_BLOCK = 65_536  # rows that are coded at a time
_CHOICE = " (choice)"  # the name of the column that says which special value a number has, or none


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
class ThesisColumns:
    """A table as columns of numbers and categories only.

    Attributes:
        schema, columns: Those of the table itself, the columns split.
        formulas, lookups: What is computed from the rest in the end.
        table, reference: These columns, and those of another table, if there is one.
        places: The coordinates of choices between many values, by the name of the column.
        types: How the numbers of the table were read.
    """

    schema: pa.Schema
    columns: Sequence[ColumnParts]
    formulas: Sequence[Formula]
    lookups: Sequence[Lookup]
    table: pa.Table
    reference: pa.Table | None
    places: Mapping[str, ChoiceCoordinates]
    types: NumberTypes

    @classmethod
    def of(
        cls, table: pa.Table, reference: pa.Table | None, nulls: str, settings: Settings, random: np.random.Generator
    ) -> ThesisColumns:
        """Split the columns of a table, and those of another one like them."""
        names = table.column_names
        special = read_special(settings.special, names)
        categories = spell_columns("categories", settings.categories, names)
        match_columns("categories", categories or [], names)
        rows = table.num_rows
        both, people = table, None
        if reference is not None:  # read like the table's own, but nobody of them counts
            both = pa.concat_tables([table, reference.cast(table.schema)])
            people = np.where(np.arange(both.num_rows) < rows, np.arange(both.num_rows), NOBODY)
        types = NumberTypes.of(both)
        columns = split_columns(types.read(both), people, SplitOptions(settings.k, special, categories, nulls))
        _refuse_constant(table)
        is_auto = settings.derived == "auto"
        formulas = find_formulas(columns) if is_auto else []
        computed = [formula.column for formula in formulas]
        lookups = find_lookups(columns, computed, random) if is_auto else []
        decided = {lookup.column for lookup in lookups}
        bounds = {
            index: Bounds.of(column, rows, settings.k)
            for index, column in enumerate(columns)
            if column.regular is not None and index not in computed
        }
        both = build_thesis_table(columns, bounds, [*computed, *decided], rows, random)
        if both.num_columns < 2:
            usable = [column.name for column in columns if {column.name, _choice_name(column)} & {*both.column_names}]
            raise ValueError(
                f"cols must name at least two columns that vary by themselves; got {len(usable)} of {len(names)}: the "
                f"others follow from them, are NULL, or have no second value shared by {settings.k} people."
            )
        encodable, other_rows = both.slice(0, rows), None if reference is None else both.slice(rows)
        return cls(
            table.schema,
            columns,
            formulas,
            lookups,
            encodable,
            other_rows,
            place_wide_choices(columns, encodable),
            types,
        )

    def log(self, log: Sequence[str] | None) -> list[str] | None:
        """Return which numbers are logged, of those that a caller names; refuse what is no number."""
        names = spell_columns("log", log, self.schema.names)
        for name in match_columns("log", names or [], self.schema.names):
            if not is_number(self.schema.field(name).type):
                type_ = self.schema.field(name).type
                raise ValueError(f'column "{name}" has no logarithms: it holds no numbers; got {sql_type(type_)}.')
        numbers = {column.name for column in self.columns if column.regular is not None}
        numbers &= set(self.table.column_names)
        return None if names is None else [name for name in names if name in numbers]

    def alike(
        self, columns: Sequence[ColumnParts], bounds: Mapping[str, Bounds], random: np.random.Generator
    ) -> pa.Table:
        """Return the columns of other rows that were split like the table's, with bounds by column name."""
        computed = [formula.column for formula in self.formulas]
        ends = {
            index: bounds[column.name]
            for index, column in enumerate(columns)
            if column.regular is not None and index not in computed
        }
        followers = [*computed, *(lookup.column for lookup in self.lookups)]
        return build_thesis_table(columns, ends, followers, len(columns[0].codes), random)

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
                numbers = np.zeros(0) if lookup.keys is None else read_doubles(arrays[lookup.source])
                codes[index] = lookup.compute(codes[lookup.source], numbers)
            elif column.choices > 1:
                chosen = batch.column(_choice_name(column)).dictionary_decode().cast(pa.int64())
                codes[index] = chosen.to_numpy(zero_copy_only=False)
            else:
                codes[index] = np.zeros(batch.num_rows, np.int64)
            arrays[index] = column.join(codes[index], None if column.regular is None else batch.column(column.name))
        for index, formula in computed.items():
            values = formula.compute([read_doubles(arrays[source]) for source in formula.sources])
            arrays[index] = round_numbers(self.columns[index], values)
        written = [self.types.write_column(column.name, arrays[index]) for index, column in enumerate(self.columns)]
        return pa.record_batch(written, schema=self.schema)

    def reader(self, released: pa.RecordBatchReader) -> pa.RecordBatchReader:
        """Read released rows as rows of the table."""
        return pa.RecordBatchReader.from_batches(self.schema, (self.back(batch) for batch in released))


def build_thesis_table(
    columns: Sequence[ColumnParts],
    bounds: Mapping[int, Bounds],
    followers: Sequence[int],
    rows: int,
    random: np.random.Generator,
) -> pa.Table:
    """Return the columns of a table that was split, the first rows of which are its own: see `Bounds.array`.

    Bounds are the ends of numbers that are not computed; followers have numbers or choices computed in the end.
    """
    arrays: dict[str, pa.Array] = {}
    for index, column in enumerate(columns):
        if column.choices > 1 and index not in followers:
            codes, texts = pa.array(column.codes.astype(np.int32)), [str(code) for code in range(column.choices)]
            arrays[_choice_name(column)] = pa.DictionaryArray.from_arrays(codes, pa.array(texts))
        if index in bounds:
            arrays[column.name] = bounds[index].array(column, rows, random)
    return pa.table(arrays)


def _refuse_constant(table: pa.Table) -> None:
    for name, column in zip(table.column_names, table.columns, strict=True):
        looked_at = [column.slice(0, _FIRST), column]  # most columns differ in their first rows
        is_constant = all(encode_columns(pa.table({"value": part}))[0][1] == 1 for part in looked_at)
        if is_constant and column.null_count < len(column):
            raise ValueError(f'column "{name}" has the same value in every row; leave it out of cols.')


def place_wide_choices(columns: Sequence[ColumnParts], table: pa.Table) -> dict[str, ChoiceCoordinates]:
    """Return the coordinates of choices between many values, from what the other columns say about them."""
    named = {_choice_name(column): column for column in columns if column.choices > WIDE}
    wide = {name: column for name, column in named.items() if name in table.column_names}
    if not wide:
        return {}
    codes = [column.codes[: table.num_rows] for column in wide.values()]
    choices = [column.choices for column in wide.values()]
    sums = [np.zeros((count, 0)) for count in choices]
    narrow = table.drop_columns(list(wide))
    if narrow.num_columns:
        encoding, _ = fit_columns(narrow, lenient=True)
        sums = sum_features(codes, choices, (encoding.matrix(batch) for batch in narrow.to_batches(_BLOCK)))
    return dict(zip(wide, locate_choices(codes, choices, sums), strict=True))


def _choice_name(column: ColumnParts) -> str:
    return column.name if column.regular is None else column.name + _CHOICE


@dataclass(frozen=True)
class _Texts:
    """Choices of texts and booleans: the values that the survey held, NULL too where it did, and the choice of each.

    All else is read as the choice ``unseen``.
    """

    values: pa.Array
    codes: Ints
    unseen: int

    @classmethod
    def of(cls, column: ColumnParts) -> _Texts:
        """Learn the choices of a survey's column."""
        indices, listed = read_categories(column.array)
        listed = [*listed, None]
        indices_found, firsts = np.unique(np.where(indices < 0, len(listed) - 1, indices), return_index=True)
        type_ = column.array.type.value_type if pa.types.is_dictionary(column.array.type) else column.array.type
        values = pa.array([listed[index] for index in indices_found.tolist()], type_)
        unseen = _find_commonest(column) if column.merged is None else column.outcomes.index(column.merged)
        return cls(values, column.codes[firsts], unseen)

    def choices(self, array: pa.Array) -> Ints:
        """Return the choice of every row."""
        indices = pc.index_in(array.cast(self.values.type), value_set=self.values)
        known = pc.fill_null(indices, len(self.codes)).to_numpy(zero_copy_only=False)
        return np.asarray(np.append(self.codes, self.unseen)[known])


@dataclass(frozen=True)
class _Numbers:
    """The choices of numbers, dates and times.

    Attributes:
        values, codes: The numbers that are no regular ones, ascending, and the choice that each stands for.
        regular: The choice of all other numbers; None where each is read as the nearest of `values`.
    """

    values: Floats
    codes: Ints
    at_null: int
    regular: int | None

    @classmethod
    def of(cls, column: ColumnParts) -> _Numbers:
        """Learn the choices of a survey's column."""
        numbers = read_doubles(column.array)
        regular = None if column.regular is None else len(column.outcomes)
        is_null = np.isnan(numbers)
        chosen = (
            np.flatnonzero(~is_null & (column.codes != regular)) if regular is not None else np.flatnonzero(~is_null)
        )
        values, firsts = np.unique(numbers[chosen], return_index=True)
        at_null = column.codes[is_null][:1].tolist() or [_find_commonest(column) if regular is None else regular]
        return cls(values, column.codes[chosen[firsts]], at_null[0], regular)

    def choices(self, array: pa.Array) -> Ints:
        """Return the choice of every row."""
        numbers = read_doubles(array)
        is_null = np.isnan(numbers)
        codes = np.full(len(numbers), self.at_null if self.regular is None else self.regular)
        if len(self.values):
            at = np.where(is_null, self.values[0], numbers)
            nearest = np.searchsorted((self.values[1:] + self.values[:-1]) / 2, at)
            is_read = np.full(len(at), True) if self.regular is None else self.values[nearest] == at
            codes[is_read] = self.codes[nearest[is_read]]
        codes[is_null] = self.at_null
        return codes


class SurveyColumns:
    """Reader of a table's rows like those of a survey of it, with k people behind the ends of numbers."""

    def __init__(self, survey: ThesisColumns, k: int) -> None:
        self._survey, self.types = survey, survey.types
        self._choices: list[_Texts | _Numbers] = [
            (_Texts if arrow_kind(column.name, column.array.type) == "category" else _Numbers).of(column)
            for column in survey.columns
        ]
        self.bounds = {
            column.name: Bounds.of(column, survey.table.num_rows, k)
            for column in survey.columns
            if column.regular is not None
        }

    @property
    def schema(self) -> pa.Schema:
        """The columns of the survey."""
        return self._survey.schema

    def table(self, rows: pa.Table, random: np.random.Generator) -> pa.Table:
        """Return the columns of rows of the survey's columns and types; missing numbers are drawn."""
        columns = []
        for column, choices in zip(self._survey.columns, self._choices, strict=True):
            values = clean_floats(self.types.read_column(column.name, join_chunks(rows.column(column.name))))
            columns.append(replace(column, codes=choices.choices(values), array=values))
        return self._survey.alike(columns, self.bounds, random)

    def release(self, table: pa.Table) -> pa.Table:
        """Recombine the columns of released rows."""
        batches = [self._survey.back(batch) for batch in table.to_batches()]
        return pa.Table.from_batches(batches, self._survey.schema)

    def list_independent(self) -> Sequence[ColumnParts]:
        """Return the survey's columns that are not computed from others."""
        computed = {formula.column for formula in self._survey.formulas}
        return [column for index, column in enumerate(self._survey.columns) if index not in computed]


def _find_commonest(column: ColumnParts) -> int:
    return int(np.argmax(np.bincount(column.codes)))
