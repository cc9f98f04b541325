"""A table as a matrix of floats and back: standardised numbers, +-1 groups for categories, indicators for NULL."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from duckanon._core.common.arrays import Array
from duckanon._core.common.names import unknown_column
from duckanon._core.encoding.column_codecs import SpectralColumn

FEWEST_ROWS = 200
"""The least that a spectral release takes: components of fewer records show single ones (REFERENCES.md, Thesis, point
10)."""
ROWS_PER_COMPONENT = 8
"""The same for tables of many components."""


@dataclass(frozen=True)
class Encoding:
    """Encoding of the columns of a table, whose schema is given, as those of a matrix, fitted by `fit.fit`.

    Categories are coded as in Thesis, Section 4.1, one +-1 column per value, and come back by the largest of their
    group. Corrected: a threshold at 0 leaves rows with no category or several (REFERENCES.md, Thesis, point 6). Numbers
    come back with the decimals and inside the range that their column had; unrounded, a classifier tells a release from
    its original every time.
    """

    columns: tuple[SpectralColumn, ...]
    schema: pa.Schema

    @property
    def width(self) -> int:
        """The number of matrix columns."""
        return sum(column.width for column in self.columns)

    @property
    def groups(self) -> list[slice]:
        """The matrix columns of each source column."""
        return [slice(*ends) for ends in pairwise(accumulate((column.width for column in self.columns), initial=0))]

    def matrix(self, table: pa.Table | pa.RecordBatch, dtype: Any = np.float64) -> Array:
        """Encode rows, records x matrix columns, of this table or of another one with the same columns, found by name.

        A category that the encoding has not seen is -1 throughout its group (0 where the group has two values); NULL
        where it saw none is the mean of a number.
        """
        out = np.empty((table.num_rows, self.width), dtype)
        rows = max(1, 2**20 // self.width)
        batches = table.to_batches() if isinstance(table, pa.Table) else [table]
        start = 0
        for batch in batches:
            for first in range(0, batch.num_rows, rows):
                piece = batch.slice(first, rows)
                out[start : start + piece.num_rows] = self.features(piece, dtype).T
                start += piece.num_rows
        return out

    def features(self, batch: pa.RecordBatch, dtype: Any = np.float64, out: Array | None = None) -> Array:
        """Encode one batch the other way round, matrix columns x records, into `out` where it is given."""
        if out is None:
            out = np.empty((self.width, batch.num_rows), dtype)
        for column, group in zip(self.columns, self.groups, strict=True):
            index = batch.schema.get_field_index(column.name)
            if index < 0:
                raise ValueError(unknown_column(column.name, batch.schema.names))
            column.fill(batch.column(index), out[group])
        return out

    def table(self, matrix: Array) -> pa.Table:
        """Decode a matrix, records x matrix columns, into a table of the source's schema."""
        rows = max(1, 2**20 // self.width)
        batches = [
            self.batch(np.ascontiguousarray(matrix[first : first + rows].T)) for first in range(0, len(matrix), rows)
        ]
        return pa.Table.from_batches(batches, self.schema)

    def batch(self, features: Array) -> pa.RecordBatch:
        """Decode one batch the other way round, matrix columns x records."""
        arrays = [column.back(features[group]) for column, group in zip(self.columns, self.groups, strict=True)]
        return pa.record_batch(arrays, schema=self.schema)


def refuse_too_few(rows: int, rank: int) -> None:
    """Refuse a table of fewer than 200 rows, or 8 per component: components of few records are single records."""
    needed = max(FEWEST_ROWS, ROWS_PER_COMPONENT * rank)
    if rows < needed:
        raise ValueError(f"at least {needed:,} rows are needed for {rank:,} independent components; got {rows:,}.")
