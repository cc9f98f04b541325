"""Tables as matrices for measuring: original, release and further tables with one encoding, fitted to the original.

Special values (zeros, codes such as -8) and whole numbers that are categories are read as the releases read them
(`column_split.split_columns`), but nothing is merged or refused: a measure looks at a release as it is. A number with
special values is one standardised row and an indicator of each special value; NULL is at the mean, with an indicator.
Fitting costs one pass and a sort of each number.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from duckanon._core.common.arguments import refuse_unless, spell_columns
from duckanon._core.common.arrays import Array, Floats, Reals, is_number, sql_type
from duckanon._core.common.names import match_columns
from duckanon._core.common.rules import OneOf
from duckanon._core.encoding.arrow import arrow_kind
from duckanon._core.encoding.column_codecs import NumberColumn, SpectralColumn
from duckanon._core.encoding.column_split import (
    SplitOptions,
    find_special_values,
    is_category,
    join_chunks,
    read_special,
    split_columns,
)
from duckanon._core.encoding.fit import fit_columns
from duckanon._core.encoding.formulas import find_formulas, find_lookups
from duckanon._core.encoding.pairs import CategoryPair, NumberPair, Pair, pair_kind
from duckanon._core.encoding.parts import ColumnParts, read_doubles

ROWS_PER_VALUE = 10
"""Rows for each value from which on whole numbers of few values are categories: of a dozen rows, any number has few."""
_SEED = 1  # of the rows in which lookups are looked for first: the same table has the same columns each time


@dataclass(frozen=True)
class SpecialColumn:
    """A number with special values: one standardised row, and a +-1 row for each special value and for NULL.

    Special values and NULL are at the mean of the regular numbers.
    """

    name: str
    regular: NumberColumn
    special: tuple[float, ...]
    nullable: bool

    @property
    def width(self) -> int:
        """The number of matrix columns."""
        return 1 + len(self.special) + self.nullable

    def fill(self, array: pa.Array, out: Reals) -> None:
        """Write the rows of the matrix for these records."""
        values = _read_doubles(self.name, array)
        is_special = np.isin(values, self.special)
        self.regular.fill(pc.if_else(pa.array(is_special), pa.scalar(None, array.type), array), out[:1])
        for index, value in enumerate(self.special, 1):
            out[index] = np.where(values == value, 1.0, -1.0)
        if self.nullable:
            out[-1] = np.where(np.isnan(values), 1.0, -1.0)


@dataclass(frozen=True)
class CodeColumn:
    """Numbers that are categories: a +-1 row for two values, else one for each, ascending; NaN, for NULL, is last."""

    name: str
    values: tuple[float, ...]

    @property
    def width(self) -> int:
        """The number of matrix columns."""
        return 1 if len(self.values) == 2 else len(self.values)

    def fill(self, array: pa.Array, out: Reals) -> None:
        """Write the rows of the matrix for these records; a value that was never seen is 0 or -1 throughout."""
        numbers = _read_doubles(self.name, array)
        is_value = [np.isnan(numbers) if value != value else numbers == value for value in self.values]
        if self.width == 1:
            out[0] = is_value[1].astype(np.float64) - is_value[0]
            return
        for row, is_this in zip(out, is_value, strict=True):
            row[:] = np.where(is_this, 1.0, -1.0)


MeasureColumn: TypeAlias = SpectralColumn | SpecialColumn | CodeColumn


@dataclass(frozen=True)
class MeasureEncoding:
    """Encoding of the columns of a table as those of a matrix."""

    columns: tuple[MeasureColumn, ...]

    @property
    def names(self) -> list[str]:
        """The names of the source columns."""
        return [column.name for column in self.columns]

    @property
    def groups(self) -> list[slice]:
        """The matrix columns of each source column."""
        return [slice(*ends) for ends in pairwise(accumulate((column.width for column in self.columns), initial=0))]

    def matrix(self, table: pa.Table) -> Array:
        """Encode rows of this table or of another one with the same columns, as `Encoding.matrix` does."""
        groups = self.groups
        out = np.empty((table.num_rows, groups[-1].stop))
        rows = max(1, 2**20 // groups[-1].stop)
        start = 0
        for batch in table.to_batches(rows):
            for column, group in zip(self.columns, groups, strict=True):
                part = np.empty((column.width, batch.num_rows))
                column.fill(batch.column(column.name), part)
                out[start : start + batch.num_rows, group] = part.T
            start += batch.num_rows
        return out


def fit_measure_encoding(
    table: pa.Table,
    log: Sequence[str] | None = None,
    special: Any = "auto",
    categories: Sequence[str] | None = None,
    derived: str = "off",
) -> MeasureEncoding:
    """Fit how a table and others like it are coded for measuring.

    NULL is a category of its own, or a number's mean with an indicator beside it. Options are those of the releases and
    of `fit.fit_columns`, which is lenient here: a column that is named in ``log`` is no category; ``special`` of
    ``'off'`` and ``categories`` of ``[]`` take all numbers as amounts, as the thesis does; ``derived`` of ``'auto'``
    leaves columns out that follow from others.
    """
    names = table.column_names
    log = spell_columns("log", log, names)
    match_columns("log", log or [], names)
    refuse_unless(OneOf("auto", "off"), "derived", derived)
    reading = read_measure_options(names, special, categories)
    if derived == "auto":
        left_out = find_derived_columns(table, reading)
        names = [name for name in names if name not in left_out]
    marked: dict[str, MeasureColumn] = {}
    for name in names:
        if is_number(table.schema.field(name).type):
            column = _fit_number(name, join_chunks(table.column(name)), log, reading)
            if column is not None:
                marked[name] = column
    rest = [name for name in names if name not in marked]
    if rest:
        named = None if log is None else [name for name in log if name in rest]
        encoding, _ = fit_columns(table.select(rest), log=named, nulls="category", lenient=True)
        marked |= {column.name: column for column in encoding.columns}
    return MeasureEncoding(tuple(marked[name] for name in names))


def read_measure_options(names: Sequence[str], special: Any, categories: Sequence[str] | None) -> SplitOptions:
    """Read the options of a measure that say what numbers are; refuse those that name no column."""
    chosen = spell_columns("categories", categories, names)
    match_columns("categories", chosen or [], names)
    return SplitOptions(1, read_special(special, names), chosen, "category")


def find_derived_columns(table: pa.Table, reading: SplitOptions) -> list[str]:
    """Name the columns that are sums or products of others, or categories that another column decides.

    They are found as the releases find them. A number of which only the special values follow from another column
    stays, and so do columns that no release would take, such as identifiers.
    """
    columns: list[ColumnParts] = []
    for name in table.column_names:
        # Read as it would be among the others, without merging anything.
        categories = None if reading.categories is None else [name] * (name in reading.categories)
        alone = replace(reading, k=1, categories=categories, nulls="category")
        try:
            columns += split_columns(table.select([name]), None, alone)
        except ValueError:
            continue
    if len(columns) < 2:
        return []
    computed = [formula.column for formula in find_formulas(columns)]
    decided = find_lookups(columns, computed, np.random.default_rng(_SEED))
    computed += [lookup.column for lookup in decided if columns[lookup.column].regular is None]
    return [columns[index].name for index in computed]


def _fit_number(name: str, array: pa.Array, log: Sequence[str] | None, reading: SplitOptions) -> MeasureColumn | None:
    """Code a number that is a category or has special values; None for one that is an amount throughout."""
    if reading.special is None and reading.categories is not None and name not in reading.categories:
        return None
    values = read_doubles(array)
    distinct, counts = np.unique(values[~np.isnan(values)], return_counts=True)
    if len(distinct) < 2 or not np.isfinite(distinct[[0, -1]]).all():
        return None
    is_logged = log is not None and name in log
    is_known = reading.categories is not None or len(values) >= ROWS_PER_VALUE * len(distinct)
    if is_category(name, distinct, reading) and is_known and not is_logged:
        return CodeColumn(name, (*distinct.tolist(), *([np.nan] if array.null_count else [])))
    if reading.special is None:
        return None
    special = np.asarray(reading.special.get(name, find_special_values(distinct, counts)))
    special = np.intersect1d(distinct, special)
    if not 0 < len(special) < len(distinct):
        return None
    is_regular = ~np.isin(values, special) & ~np.isnan(values)
    named = None if log is None else [name] * is_logged
    encoding, _ = fit_columns(pa.table({name: array.filter(pa.array(is_regular))}), log=named, lenient=True)
    regular = encoding.columns[0]
    assert isinstance(regular, NumberColumn)
    return SpecialColumn(name, regular, tuple(special.tolist()), array.null_count > 0)


def _read_doubles(name: str, array: pa.Array) -> Floats:
    """Take a column of another table as doubles; NaN is NULL."""
    if arrow_kind(name, array.type) == "category":
        raise ValueError(f'column "{name}" must hold numbers; got {sql_type(array.type)}.')
    if pa.types.is_floating(array.type) and not np.isfinite(array.drop_null().to_numpy(zero_copy_only=False)).all():
        raise ValueError(f'column "{name}" holds NaN or infinity; remove these rows or set them to NULL.')
    return read_doubles(array)


def code_pairs(pairs: Sequence[Pair], schema: pa.Schema, special: Any, categories: Sequence[str] | None) -> list[Pair]:
    """Tell which numbers of the first of two tables are categories, and which values of others are special.

    ``schema`` has the types of the first table's columns. Options ``'off'`` and ``[]`` leave numbers as they are.
    """
    reading = read_measure_options([column.name for column in pairs], special, categories)
    return [
        _code_pair(column, reading)
        if isinstance(column, NumberPair) and is_number(schema.field(column.name).type)
        else column
        for column in pairs
    ]


def _code_pair(column: NumberPair, reading: SplitOptions) -> Pair:
    known = column.original[~np.isnan(column.original)]
    distinct, counts = np.unique(known, return_counts=True)
    if not len(distinct):
        return column
    is_known = reading.categories is not None or len(known) >= ROWS_PER_VALUE * len(distinct)
    if is_known and is_category(column.name, distinct, reading):
        both = np.concatenate([column.original, column.released])
        values, codes = np.unique(both, return_inverse=True)  # NaN, which is NULL, comes last
        texts = [None if np.isnan(value) else f"{value:.15g}" for value in values.tolist()]
        return CategoryPair(column.name, codes[: len(column.original)], codes[len(column.original) :], texts)
    if reading.special is None:
        return column
    special = np.intersect1d(distinct, reading.special.get(column.name, find_special_values(distinct, counts)))
    return replace(column, special=tuple(special.tolist()))


@dataclass(frozen=True)
class EncodedTables:
    """Matrices with one encoding, which is fitted to the original, and those of further tables."""

    encoding: MeasureEncoding
    original: Array
    released: Array
    outsiders: list[Array | None]


def align_tables(
    original: pa.Table | None, released: pa.Table | None, **tables: pa.Table | None
) -> tuple[pa.Table, pa.Table, list[pa.Table | None]]:
    """Put the columns of other tables in the order of the original's, under its names.

    Tables are None where no row came; original and release are refused then, and so are columns that hold different
    kinds of values. More tables are given under the names that an error should call them.
    """
    original, released = align_release(original, released)
    more = [None if table is None else _rename_columns(original, table) for table in tables.values()]
    for role, table in zip(("released", *tables), (released, *more), strict=True):
        if table is not None:
            for name in original.column_names:
                _refuse_other_kind(name, role, original.schema.field(name).type, table.schema.field(name).type)
    return original, released, more


def align_release(original: pa.Table | None, released: pa.Table | None) -> tuple[pa.Table, pa.Table]:
    """Refuse tables without rows; give the released columns the names and the order of the original's."""
    for role, table in (("original", original), ("released", released)):
        if table is None:
            raise ValueError(f"the {role} table has no rows; give one that has.")
    return original, _rename_columns(original, released)


@dataclass(frozen=True)
class CodingOptions:
    """Options of coding numbers for measuring, those of `fit_measure_encoding`."""

    log: list[str] | None = None
    special: Any = "auto"
    categories: list[str] | None = None
    derived: str = "off"


def encode_tables(
    original: pa.Table, released: pa.Table, tables: Sequence[pa.Table | None], coding: CodingOptions
) -> EncodedTables:
    """Code tables by the original."""
    encoding = fit_measure_encoding(original, coding.log, coding.special, coding.categories, coding.derived)
    first, second = (encoding.matrix(table) for table in (original, released))
    more = [None if table is None else encoding.matrix(table) for table in tables]
    return EncodedTables(encoding, first, second, more)


def unscale_matrix(encoding: MeasureEncoding, matrix: Array) -> Array:
    """Give numbers (their logarithms) their own scale and origin back; categories stay as they are."""
    result = np.array(matrix, np.float64)
    for column, group in zip(encoding.columns, encoding.groups, strict=True):
        number = column.regular if isinstance(column, SpecialColumn) else column
        if isinstance(number, NumberColumn):
            result[:, group.start] = result[:, group.start] * number.deviation + number.mean
    return result


def _rename_columns(original: pa.Table, table: pa.Table) -> pa.Table:
    indices = {name.lower(): index for index, name in enumerate(table.column_names)}
    return table.select([indices[name.lower()] for name in original.column_names]).rename_columns(original.column_names)


def _refuse_other_kind(name: str, role: str, first: pa.DataType, second: pa.DataType) -> None:
    kinds = {pair_kind(first), pair_kind(second)} - {"null"}
    booleans = any(test(first) != test(second) for test in (pa.types.is_boolean, pa.types.is_time))
    if len(kinds) > 1 or (booleans and "null" not in (pair_kind(first), pair_kind(second))):
        raise ValueError(
            f'column "{name}" holds {sql_type(first)} in the original and {sql_type(second)} in the {role} table; '
            "cast one of them."
        )
