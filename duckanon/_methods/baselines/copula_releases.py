"""Releases by a normal copula: the table's own values in another order, or new records drawn from distributions."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from duckanon._core.common.arguments import checked, generator
from duckanon._core.common.people import refuse_too_few
from duckanon._core.common.rules import Whole
from duckanon._core.encoding.whole_sources import read_whole, reader_of, refuse_identifiers
from duckanon._methods.baselines import copulas
from duckanon._methods.baselines.copula_columns import copula_columns
from duckanon._methods.baselines.drawing import drawn
from duckanon._methods.releasable.rare_values import refuse_rare


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
        For identifiers, whose values would come out as they are, and for what cannot be encoded: see `fit.fit`.

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
    refuse_identifiers(table)
    columns = copula_columns(encoding, encoding.matrix(table))
    rows_of_columns = copulas.data_shuffle([column.codes for column in columns], random)
    rearranged = [column.take(pa.array(rows)) for column, rows in zip(table.columns, rows_of_columns, strict=True)]
    return reader_of(pa.table(rearranged, schema=table.schema))


@checked(k=Whole(2))
def copula_synthesize(
    source: object,
    cols: Sequence[str] | None = None,
    *,
    rows: int | None = None,
    k: int = 10,
    nulls: str = "error",
    seed: int | None = None,
    person: str | None = None,
) -> pa.RecordBatchReader:
    """Draw new records from a normal copula with the data's rank correlations and distributions.

    Parameters
    ----------
    source, cols, nulls, seed
        As for `spectral_rhs`.
    rows
        How many records to draw; None for as many as the source has.
    k
        The least number of people that hold a value which is released; numbers that nobody holds may come out too.
    person
        A column, none of `cols`, that tells whose each row is, and is not released; where it is NULL, the row counts as
        nobody's. None: every row is another person.

    Returns
    -------
    pyarrow.RecordBatchReader
        The records drawn, of the same columns and types.

    Raises
    ------
    ValueError
        For fewer than one row, fewer than k rows or people, a column of which no value may be released, and for what
        cannot be encoded: see `fit.fit`.

    Notes
    -----
    See `copulas.copula_levels` and `marginals.of_numbers`.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from duckanon import spectral
    >>> people = pa.table({"height": [150 + i % 50 for i in range(400)], "weight": [50 + i % 41 for i in range(400)]})
    >>> spectral.copula_synthesize(people, rows=1000, k=5, seed=1).read_all().num_rows
    1000
    """
    random = generator(seed)
    table, encoding, _, people = read_whole(source, cols, None, None, nulls, person)
    refuse_too_few(k, table.num_rows, people)
    columns = copula_columns(encoding, encoding.matrix(table))
    drawn_rows = table.num_rows if rows is None else rows
    all_levels = copulas.copula_levels([column.codes for column in columns], drawn_rows, random)
    arrays = [
        drawn(column, values, copula, people, k, levels)
        for column, values, copula, levels in zip(encoding.columns, table.columns, columns, all_levels, strict=True)
    ]
    released = pa.table(arrays, schema=table.schema)
    refuse_rare(table, released, people, [k] * table.num_columns)
    return reader_of(released)
