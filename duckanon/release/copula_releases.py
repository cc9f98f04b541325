"""Releases by a normal copula: the table's own values in another order, or new records drawn from distributions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from duckanon.common.arguments import generator
from duckanon.release import copulas
from duckanon.release.copula_columns import copula_columns
from duckanon.release.tables import read_whole, reader_of


def data_shuffle(
    source: object, cols: Sequence[str] | None = None, *, nulls: str = "error", seed: int | None = None
) -> pa.RecordBatchReader:
    """Rearrange every column to the ranks of normal data with the same rank correlations.

    Parameters
    ----------
    source, cols, nulls, seed
        As for `spectral_rhs`.

    Returns
    -------
    pyarrow.RecordBatchReader
        As many rows; every column has exactly the values that it had.

    Raises
    ------
    ValueError
        For what cannot be encoded: see `fit.fit`.

    Notes
    -----
    See `copulas.data_shuffle`.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from duckanon import spectral
    >>> people = pa.table({"height": [150 + i % 50 for i in range(400)], "weight": [50 + i % 41 for i in range(400)]})
    >>> released = spectral.data_shuffle(people, seed=1).read_all()
    >>> sorted(released["height"].to_pylist()) == sorted(people["height"].to_pylist())
    True
    """
    random = generator(seed)
    table, encoding, _, _ = read_whole(source, cols, None, [], nulls)
    columns = copula_columns(encoding, encoding.matrix(table))
    rows_of_columns = copulas.data_shuffle([column.codes for column in columns], random)
    rearranged = [column.take(pa.array(rows)) for column, rows in zip(table.columns, rows_of_columns, strict=True)]
    return reader_of(pa.table(rearranged, schema=table.schema))


def copula_synthesize(
    source: object,
    cols: Sequence[str] | None = None,
    *,
    rows: int | None = None,
    nulls: str = "error",
    seed: int | None = None,
) -> pa.RecordBatchReader:
    """Draw new records from a normal copula with the data's rank correlations and distributions.

    Parameters
    ----------
    source, cols, nulls, seed
        As for `spectral_rhs`.
    rows
        How many records to draw; None for as many as the source has.

    Returns
    -------
    pyarrow.RecordBatchReader
        The records drawn, of the same columns and types.

    Raises
    ------
    ValueError
        For fewer than one row, and for what cannot be encoded: see `fit.fit`.

    Notes
    -----
    See `copulas.copula_synthesize`.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from duckanon import spectral
    >>> people = pa.table({"height": [150 + i % 50 for i in range(400)], "weight": [50 + i % 41 for i in range(400)]})
    >>> spectral.copula_synthesize(people, rows=1000, seed=1).read_all().num_rows
    1000
    """
    random = generator(seed)
    table, encoding, _, _ = read_whole(source, cols, None, None, nulls)
    columns = copula_columns(encoding, encoding.matrix(table))
    codes, kinds = [column.codes for column in columns], [column.kind for column in columns]
    drawn = copulas.copula_synthesize(codes, kinds, table.num_rows if rows is None else rows, random)
    features = np.empty((encoding.width, len(drawn[0])))
    for column, group, values in zip(columns, encoding.groups, drawn, strict=True):
        column.fill(values, features[group])
    return reader_of(encoding.table(features.T))
