"""A source read whole, with the column of keys apart, and released rows as a reader."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from duckanon.matrix.encoding import Encoding
from duckanon.matrix.fit import fit
from duckanon.matrix.sources import open_source

_BATCH_ROWS = 65_536  # read at a time


def read_whole(
    source: object, cols: Sequence[str] | None, key: str | None, log: Sequence[str] | None, nulls: str
) -> tuple[pa.Table, Encoding, tuple[int, pa.Table] | None]:
    """Read a source whole; the column of keys apart, with its index."""
    table = whole_table(source, column_names(cols))
    keys = None
    if key is not None:
        names = [name.lower() for name in table.column_names]
        if str(key).lower() not in names:
            raise ValueError(f"key must be one of cols; got {key}.")
        index = names.index(str(key).lower())
        keys, table = (index, table.select([index])), table.remove_column(index)
    encoding, _ = fit(table, log=log, nulls=nulls)
    return table, encoding, keys


def whole_table(source: object, cols: list[str] | None) -> pa.Table:
    """Read a source into memory."""
    if isinstance(source, pa.Table) and cols is None:  # as it came, without putting its chunks together anew
        return source
    opened = open_source(source, cols)
    try:
        return pa.Table.from_batches(list(opened.batches(_BATCH_ROWS)), opened.schema)
    finally:
        if opened is not source:
            opened.close()


def smallest_class(table: pa.Table) -> int:
    """Count the rows of the record that occurs least often."""
    names = [str(index) for index in range(table.num_columns)]  # Arrow takes names with dots for paths
    counts = table.rename_columns(names).group_by(names).aggregate([([], "count_all")])["count_all"]
    return int(pc.min(counts).as_py())


def shuffled(table: pa.Table, keys: tuple[int, pa.Table] | None, random: np.random.Generator) -> pa.Table:
    """Put the rows into random order, each with its key."""
    if keys is not None:
        index, column = keys
        table = table.add_column(index, column.schema.field(0), column.column(0))
    return table.take(pa.array(random.permutation(table.num_rows)))


def column_names(names: Sequence[str] | None) -> list[str] | None:
    """Take names of columns as a list; None stays None."""
    if names is None:
        return None
    if isinstance(names, str) or not isinstance(names, Sequence):
        raise ValueError(f"columns must be given as a list of names; got {names!r}.")
    return list(names)


def reader_of(table: pa.Table) -> pa.RecordBatchReader:
    """Return a reader of the table's rows."""
    return pa.RecordBatchReader.from_batches(table.schema, table.to_batches())
