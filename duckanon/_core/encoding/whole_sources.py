"""A source read whole, with the column of keys apart, and released rows as a reader."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from duckanon._core.common.arrays import Ints, is_number
from duckanon._core.common.people import NOBODY, person_index, person_numbers
from duckanon._core.encoding.column_split import whole
from duckanon._core.encoding.fit import fit
from duckanon._core.encoding.identifiers import refuse_identifier
from duckanon._core.encoding.number_types import NumberTypes
from duckanon._core.encoding.parts import doubles
from duckanon._core.encoding.sources import opened_source
from duckanon._core.encoding.table_encoding import Encoding

_BATCH_ROWS = 65_536  # read at a time


class WholeSource(NamedTuple):
    """A source that was read whole: the columns to be released without keys, how they become a matrix, and the rest.

    Attributes:
        keys: The column that travels unchanged, with its index; None where there is none.
        people: Whose each row is; None where every row is another person.
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
    table, people = whole_people(source, person)
    keys = None
    if key is not None:
        names = [name.lower() for name in table.column_names]
        if str(key).lower() not in names:
            raise ValueError(f"key must be one of cols; got {key}.")
        index = names.index(str(key).lower())
        keys, table = (index, table.select([index])), table.remove_column(index)
    types = NumberTypes.of(table, is_exact)
    table = types.read(table)
    encoding, _ = fit(table, log=log, nulls=nulls)
    return WholeSource(table, encoding, keys, people, types)


def whole_people(source: object, person: str | None) -> tuple[pa.Table, Ints | None]:
    """Read a source into memory; the column that says whose each row is, if there is one, apart and as numbers."""
    table = whole_table(source)
    if person is None:
        return table, None
    index = person_index(person, table.column_names)
    return table.remove_column(index), person_numbers(table.column(index))


def refuse_identifiers(table: pa.Table) -> None:
    """Refuse whole numbers that tell people apart; texts that do are refused where they are encoded."""
    for name, column in zip(table.column_names, table.columns, strict=True):
        if is_number(column.type):
            values = doubles(whole(column.drop_null()))
            refuse_identifier(name, values, len(np.unique(values)))


def whole_table(source: object, cols: list[str] | None = None) -> pa.Table:
    """Read a source into memory."""
    if isinstance(source, pa.Table) and cols is None:  # as it came, without putting its chunks together anew
        return source
    with opened_source(source, cols) as opened:
        return pa.Table.from_batches(list(opened.batches(_BATCH_ROWS)), opened.schema)


def order_by_values(table: pa.Table) -> pa.Table:
    """Put rows into an order that depends on nothing but their values, and follows none of them.

    A seed then repeats a release however the rows come: a database or a folder of files gives them in any order.
    """
    names = [str(index) for index in range(table.num_columns)]  # Arrow takes names with dots for paths
    keys = pa.table([_sortable(column) for column in table.columns], names=names)
    by_value = pc.sort_indices(keys, sort_keys=[(name, "ascending") for name in names])
    return table.take(by_value.take(pa.array(np.random.default_rng(0).permutation(table.num_rows))))


def _sortable(column: pa.ChunkedArray) -> pa.ChunkedArray | pa.Array:
    """Return a column that Arrow sorts by, and in which only equal values are equal: NaN is, -0.0 and 0.0 are not."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        return _sortable(column.cast(kind.value_type))
    if isinstance(kind, pa.BaseExtensionType):
        return _sortable(pa.chunked_array([chunk.storage for chunk in column.chunks], kind.storage_type))
    if pa.types.is_float64(kind) or pa.types.is_float32(kind):
        bits = pa.int64() if pa.types.is_float64(kind) else pa.int32()
        return pa.chunked_array([chunk.view(bits) for chunk in column.chunks], bits)
    if pa.types.is_null(kind) or pa.types.is_nested(kind) or pa.types.is_interval(kind):
        return pa.array([repr(value) for value in column.to_pylist()])  # which Arrow cannot sort
    return column


def smallest_class(table: pa.Table, people: Ints | None = None) -> int:
    """Count the rows, or the people where they are told apart, of the record that has the fewest."""
    names = [str(index) for index in range(table.num_columns)]  # Arrow takes names with dots for paths
    table = table.rename_columns(names)
    if people is None:
        counts = table.group_by(names).aggregate([([], "count_all")])["count_all"]
    else:
        table = table.append_column("person", pa.array(people, mask=people == NOBODY))
        counts = table.group_by(names).aggregate([("person", "count_distinct")])["person_count_distinct"]
    return int(pc.min(counts).as_py())


def shuffled(table: pa.Table, keys: tuple[int, pa.Table] | None, random: np.random.Generator) -> pa.Table:
    """Put the rows into random order, each with its key."""
    if keys is not None:
        index, column = keys
        table = table.add_column(index, column.schema.field(0), column.column(0))
    return table.take(pa.array(random.permutation(table.num_rows)))


def reader_of(table: pa.Table) -> pa.RecordBatchReader:
    """Return a reader of the table's rows."""
    return pa.RecordBatchReader.from_batches(table.schema, table.to_batches())
