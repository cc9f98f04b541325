"""Rows of a table read like those of a survey of it: the same choices, the same bounds, nothing else comes out.

A survey's values that k of its people hold are held by k people of the whole table. What the survey has not seen, or
has merged, is read as it would have been there: rare texts as others, numbers as the nearest that many hold.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from duckanon._core.common.arrays import Floats, Ints
from duckanon._core.encoding.arrow import indices_of, kind_of
from duckanon._core.encoding.column_split import whole
from duckanon._core.encoding.digits import cleaned
from duckanon._core.encoding.parts import ColumnParts, doubles
from duckanon._methods.releasable.bounds import Bounds
from duckanon._methods.swap.plain_columns import PlainColumns


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
        indices, listed = indices_of(column.array)
        listed = [*listed, None]
        found, firsts = np.unique(np.where(indices < 0, len(listed) - 1, indices), return_index=True)
        type_ = column.array.type.value_type if pa.types.is_dictionary(column.array.type) else column.array.type
        values = pa.array([listed[index] for index in found.tolist()], type_)
        unseen = _commonest(column) if column.merged is None else column.outcomes.index(column.merged)
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
        numbers = doubles(column.array)
        regular = None if column.regular is None else len(column.outcomes)
        is_null = np.isnan(numbers)
        chosen = (
            np.flatnonzero(~is_null & (column.codes != regular)) if regular is not None else np.flatnonzero(~is_null)
        )
        values, firsts = np.unique(numbers[chosen], return_index=True)
        at_null = column.codes[is_null][:1].tolist() or [_commonest(column) if regular is None else regular]
        return cls(values, column.codes[chosen[firsts]], at_null[0], regular)

    def choices(self, array: pa.Array) -> Ints:
        """Return the choice of every row."""
        numbers = doubles(array)
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

    def __init__(self, plain: PlainColumns, k: int) -> None:
        self._plain, self.types = plain, plain.types
        self._choices: list[_Texts | _Numbers] = [
            (_Texts if kind_of(column.name, column.array.type) == "category" else _Numbers).of(column)
            for column in plain.columns
        ]
        self.bounds = {
            column.name: Bounds.of(column, plain.table.num_rows, k)
            for column in plain.columns
            if column.regular is not None
        }

    @property
    def schema(self) -> pa.Schema:
        """The columns of the survey."""
        return self._plain.schema

    def table(self, rows: pa.Table, random: np.random.Generator) -> pa.Table:
        """Return the plain columns of rows of the survey's columns and types; missing numbers are drawn."""
        columns = []
        for column, choices in zip(self._plain.columns, self._choices, strict=True):
            values = cleaned(self.types.read_column(column.name, whole(rows.column(column.name))))
            columns.append(replace(column, codes=choices.choices(values), array=values))
        return self._plain.alike(columns, self.bounds, random)

    def released(self, plain: pa.Table) -> pa.Table:
        """Recombine the columns of released rows."""
        batches = [self._plain.back(batch) for batch in plain.to_batches()]
        return pa.Table.from_batches(batches, self._plain.schema)

    def drawn(self) -> Sequence[ColumnParts]:
        """Return the survey's columns that are not computed from others."""
        computed = {formula.column for formula in self._plain.formulas}
        return [column for index, column in enumerate(self._plain.columns) if index not in computed]


def _commonest(column: ColumnParts) -> int:
    return int(np.argmax(np.bincount(column.codes)))
