"""Tables read whole: in memory, or by the counts of each column's values where an engine holds the rows.

In memory, the columns of keys and of people stand apart from those that are released. An engine counts the values of a
column with the people who hold them, and which values are releasable is decided once, over the whole table: the
functions that decide it take rows of a column, so they get a column in small, in which whatever k people hold has k
people, and nothing else has. The split is then applied to each part of the table, whatever rows it has.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from duckanon._core.common.arrays import Floats, Ints, is_number
from duckanon._core.common.people import NOBODY, find_person_column, number_people
from duckanon._core.encoding.column_codecs import Encoding
from duckanon._core.encoding.column_split import (
    SplitOptions,
    clean_floats,
    find_special_values,
    join_chunks,
    split_columns,
)
from duckanon._core.encoding.fit import fit_columns, refuse_identifier, refuse_nulls
from duckanon._core.encoding.number_types import NumberTypes, find_number_type
from duckanon._core.encoding.parts import ColumnParts, read_doubles
from duckanon._core.encoding.sources import use_source

_BATCH_ROWS = 65_536  # read at a time


class WholeSource(NamedTuple):
    """A source that was read whole: the columns to be released without keys, how they become a matrix, and the rest.

    Attributes:
        keys: The column that travels unchanged, with its index; None where there is none.
        people: The number of each row's person; None where every row is another person.
        types: How its numbers were read.
    """

    table: pa.Table
    encoding: Encoding
    keys: tuple[int, pa.Table] | None
    people: Ints | None
    types: NumberTypes


def read_whole(
    source: object,
    key: str | None,
    log: Sequence[str] | None,
    nulls: str,
    person: str | None = None,
    is_exact: bool = True,
) -> WholeSource:
    """Read a source whole; the column of keys apart, with its index, and that of people, which is not released.

    Numbers that a double does not tell apart are refused where they must be, to be computed with.
    """
    table, people = read_people_apart(source, person)
    keys = None
    if key is not None:
        names = [name.lower() for name in table.column_names]
        if str(key).lower() not in names:
            raise ValueError(f"key must be one of cols; got {key}.")
        index = names.index(str(key).lower())
        keys, table = (index, table.select([index])), table.remove_column(index)
    types = NumberTypes.of(table, is_exact)
    table = types.read(table)
    encoding, _ = fit_columns(table, log=log, nulls=nulls)
    return WholeSource(table, encoding, keys, people, types)


def read_people_apart(source: object, person: str | None) -> tuple[pa.Table, Ints | None]:
    """Read a source into memory; the column of people, if there is one, apart and as numbers."""
    table = read_table(source)
    if person is None:
        return table, None
    index = find_person_column(person, table.column_names)
    return table.remove_column(index), number_people(table.column(index))


def refuse_identifiers(table: pa.Table) -> None:
    """Refuse whole numbers that tell people apart; texts that do are refused where they are encoded."""
    for name, column in zip(table.column_names, table.columns, strict=True):
        if is_number(column.type):
            values = read_doubles(join_chunks(column.drop_null()))
            refuse_identifier(name, values, len(np.unique(values)))


def read_table(source: object, cols: list[str] | None = None) -> pa.Table:
    """Read a source into memory."""
    if isinstance(source, pa.Table) and cols is None:  # as it came, without putting its chunks together anew
        return source
    with use_source(source, cols) as opened:
        return pa.Table.from_batches(list(opened.batches(_BATCH_ROWS)), opened.schema)


def sort_by_values(table: pa.Table) -> pa.Table:
    """Put rows into an order that depends on nothing but their values, and follows none of them.

    A seed then repeats a release however the rows come: a database or a folder of files gives them in any order.
    """
    names = [str(index) for index in range(table.num_columns)]  # Arrow takes names with dots for paths
    keys = pa.table([_make_sortable(column) for column in table.columns], names=names)
    by_value = pc.sort_indices(keys, sort_keys=[(name, "ascending") for name in names])
    return table.take(by_value.take(pa.array(np.random.default_rng(0).permutation(table.num_rows))))


def _make_sortable(column: pa.ChunkedArray) -> pa.ChunkedArray | pa.Array:
    """Return a column that Arrow sorts by, and in which only equal values are equal: NaN is, -0.0 and 0.0 are not."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        return _make_sortable(column.cast(kind.value_type))
    if isinstance(kind, pa.BaseExtensionType):
        return _make_sortable(pa.chunked_array([chunk.storage for chunk in column.chunks], kind.storage_type))
    if pa.types.is_float64(kind) or pa.types.is_float32(kind):
        bits = pa.int64() if pa.types.is_float64(kind) else pa.int32()
        return pa.chunked_array([chunk.view(bits) for chunk in column.chunks], bits)
    if pa.types.is_null(kind) or pa.types.is_nested(kind) or pa.types.is_interval(kind):
        return pa.array([repr(value) for value in column.to_pylist()])  # which Arrow cannot sort
    return column


def count_smallest_class(table: pa.Table, people: Ints | None = None) -> int:
    """Count the rows, or the people where they are told apart, of the record that has the fewest."""
    names = [str(index) for index in range(table.num_columns)]  # Arrow takes names with dots for paths
    table = table.rename_columns(names)
    if people is None:
        counts = table.group_by(names).aggregate([([], "count_all")])["count_all"]
    else:
        table = table.append_column("person", pa.array(people, mask=people == NOBODY))
        counts = table.group_by(names).aggregate([("person", "count_distinct")])["person_count_distinct"]
    return int(pc.min(counts).as_py())


def shuffle_rows(table: pa.Table, keys: tuple[int, pa.Table] | None, random: np.random.Generator) -> pa.Table:
    """Put the rows into random order, each with its key."""
    if keys is not None:
        index, column = keys
        table = table.add_column(index, column.schema.field(0), column.column(0))
    return table.take(pa.array(random.permutation(table.num_rows)))


def make_reader(table: pa.Table) -> pa.RecordBatchReader:
    """Return a reader of the table's rows."""
    return pa.RecordBatchReader.from_batches(table.schema, table.to_batches())


_DECIMALS = range(-6, 7)


@dataclass(frozen=True)
class ColumnCounts:
    """A column of a table."""

    name: str  # the column's
    values: pa.Array  # its different values, NULL too
    rows: Ints  # the rows of each value
    holders: Ints  # the people of each value
    array: pa.Array  # the column in small: values of rows
    people: Ints | None  # the number of each of these rows' person; None where every row is another person

    @classmethod
    def of(
        cls,
        name: str,
        values: pa.Array,
        rows: Ints,
        holders: Ints,
        k: int,
        most: int,
        rare_rows: Callable[[float], tuple[pa.Array, Ints]] | None,
    ) -> ColumnCounts:
        """Write a column in small, of about `most` rows, and at least k of each value that has them.

        `rare_rows` returns the values shared by fewer than k people, and numbers of these, for each row in small, given
        the share of the rows that is kept; None where every row is another person.
        """
        share = min(1.0, most / max(int(rows.sum()), 1))
        shown = np.maximum(np.minimum(rows, k), np.rint(rows * share).astype(np.int64))
        if rare_rows is None:
            array = values.take(pa.array(np.repeat(np.arange(len(rows)), shown)))
            return cls(name, values, rows, holders, array, None)
        is_rare = holders < k
        common = np.repeat(np.flatnonzero(~is_rare), shown[~is_rare])
        listed = [values.take(pa.array(common))]
        holder_of_rare = np.zeros(0, np.int64)
        if is_rare.any():  # who holds these is counted over several values
            rare, holder_of_rare = rare_rows(share)
            listed.append(rare)
        first = int(holder_of_rare.max(initial=-1)) + 1
        people = np.concatenate([first + np.arange(len(common)), holder_of_rare])
        return cls(name, values, rows, holders, pa.concat_arrays(listed), people)

    @property
    def null_rows(self) -> int:
        """The rows without a value."""
        return int(self.rows[self.values.is_null().to_numpy(zero_copy_only=False)].sum())

    @property
    def numbers(self) -> tuple[Floats, Ints, Ints] | None:
        """The different finite numbers, ascending, with the rows and at least so many people of each; or None."""
        if not is_number(self.values.type):
            return None
        numbers = read_doubles(self.values)
        known = np.isfinite(numbers)
        distinct, index_of_value = np.unique(numbers[known], return_inverse=True)
        holders = np.zeros(len(distinct), np.int64)
        np.maximum.at(holders, index_of_value, self.holders[known])  # 0.0 and -0.0 are one
        return distinct, np.bincount(index_of_value, self.rows[known], len(distinct)).astype(np.int64), holders


def read_counts_exactly(counted: Sequence[ColumnCounts]) -> tuple[list[ColumnCounts], NumberTypes]:
    """Read the values of columns in the types in which a double tells them apart; return these types, too."""
    number_types = {column.name: find_number_type(column.name, column.values) for column in counted}
    types = NumberTypes({name: number_type for name, number_type in number_types.items() if number_type is not None})
    columns = []
    for column in counted:
        values, array = (types.read_column(column.name, values) for values in (column.values, column.array))
        columns.append(replace(column, values=values, array=array))
    return columns, types


def find_clean_decimals(values: pa.Array) -> int | None:
    """Return the decimals to which floats are rounded that differ by a computation's rounding; None where none do."""
    clean = clean_floats(values)
    if not pa.types.is_floating(values.type) or clean.equals(values):
        return None
    floats = read_doubles(clean.drop_null())
    floats = floats[np.isfinite(floats)]
    kind = clean.type.to_pandas_dtype()
    return next(digits for digits in _DECIMALS if (np.round(floats, digits).astype(kind) == floats.astype(kind)).all())


def split_counts(
    counted: Sequence[ColumnCounts],
    k: int,
    special: Mapping[str, list[float]] | None,
    categories: Sequence[str] | None,
    nulls: str,
    chance: np.random.Generator | None = None,
) -> list[tuple[ColumnParts, Ints | None]]:
    """Split the columns of a table in small; `chance` is that of `SplitOptions`. NULLs are refused or a category."""
    if nulls == "error":
        refuse_nulls({column.name: column.null_rows for column in counted})
    parts = []
    for column in counted:
        name, chosen = column.name, special
        if special is not None and name not in special and column.numbers is not None and len(column.numbers[0]):
            # by the rows of the table, not those in small
            chosen = {name: find_special_values(*column.numbers[:2]).tolist()}
        options = SplitOptions(k, chosen, categories, nulls, chance)
        parts.append((split_columns(pa.table({name: column.array}), column.people, options)[0], column.people))
    return parts


def _drop_signed_zero(array: pa.Array) -> pa.Array:
    """Write -0.0 as 0.0: an engine that counts them as one value may show either."""
    return pc.add(array, pa.scalar(0.0, array.type)) if pa.types.is_floating(array.type) else array


@dataclass(frozen=True)
class SplitScheme:
    """The split of one column."""

    column: ColumnParts  # as the whole table's was, without rows
    known: pa.Array  # values that have a choice of their own
    codes: Ints  # the choice of each of these
    null_code: int  # the choice of NULL; -1 where there was none
    other_code: int  # the choice of all other values; -1 where there were none

    @classmethod
    def of(cls, parts: ColumnParts) -> SplitScheme:
        """Learn it from a column in small."""
        coded = _drop_signed_zero(parts.array).dictionary_encode()
        indices = coded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        null_code = int(parts.codes[indices < 0][0]) if (indices < 0).any() else -1
        codes = np.zeros(len(coded.dictionary), np.int64)
        codes[indices[indices >= 0]] = parts.codes[indices >= 0]
        kept, other_code = np.arange(len(codes)), -1
        if parts.regular is not None:
            other_code = len(parts.outcomes)
            kept = np.flatnonzero(codes != other_code)
        nothing = np.zeros(0, np.int64)
        column = replace(parts, codes=nothing, array=parts.array.slice(0, 0))
        return cls(column, coded.dictionary.take(pa.array(kept)), codes[kept], null_code, other_code)

    def apply(self, values: pa.ChunkedArray) -> ColumnParts:
        """Take rows of the column apart."""
        array = _drop_signed_zero(join_chunks(values))
        codes = self.codes_of(array)
        if (codes < 0).any():
            raise ValueError(f'column "{self.column.name}" has other values than before; it may have changed.')
        return replace(self.column, codes=codes, array=array)

    def codes_of(self, array: pa.Array) -> Ints:
        """Return the choice of each value; -1 for one that there was not."""
        indexes = pc.index_in(_drop_signed_zero(array), value_set=self.known, skip_nulls=True)
        indexes = indexes.fill_null(len(self.codes)).to_numpy(zero_copy_only=False)
        codes = np.append(self.codes, self.other_code)[indexes]
        if array.null_count:
            codes[array.is_null().to_numpy(zero_copy_only=False)] = self.null_code
        return np.asarray(codes)


def count_choices(scheme: SplitScheme, counted: ColumnCounts) -> Ints:
    """Count the rows of the table that have each choice of a column."""
    codes = scheme.codes_of(counted.values)
    return np.bincount(codes, counted.rows, scheme.column.choices).astype(np.int64)


def apply_schemes(schemes: Sequence[SplitScheme], rows: pa.Table) -> list[ColumnParts]:
    """Split rows of the table."""
    return [scheme.apply(rows.column(scheme.column.name)) for scheme in schemes]
