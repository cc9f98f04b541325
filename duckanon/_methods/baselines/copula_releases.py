"""Releases by a normal copula: the table's own values in another order, or new records drawn from distributions."""

from __future__ import annotations

import pyarrow as pa

from duckanon._core.common.arguments import generator
from duckanon._core.common.people import refuse_too_few
from duckanon._core.encoding.whole_sources import read_whole, reader_of, refuse_identifiers
from duckanon._methods.baselines import copulas
from duckanon._methods.baselines.copula_columns import copula_columns
from duckanon._methods.baselines.drawing import drawn
from duckanon._methods.releasable.rare_values import refuse_rare


def data_shuffle(source: object, *, nulls: str, seed: int | None) -> pa.RecordBatchReader:
    """Rearrange every column to the ranks of normal data with the same rank correlations: `copulas.data_shuffle`."""
    random = generator(seed)
    table, encoding, _, _ = read_whole(source, None, [], nulls)
    refuse_identifiers(table)
    columns = copula_columns(encoding, encoding.matrix(table))
    rows_of_columns = copulas.data_shuffle([column.codes for column in columns], random)
    rearranged = [column.take(pa.array(rows)) for column, rows in zip(table.columns, rows_of_columns, strict=True)]
    return reader_of(pa.table(rearranged, schema=table.schema))


def copula_synthesize(
    source: object, *, rows: int | None, k: int, nulls: str, seed: int | None, person: str | None
) -> pa.RecordBatchReader:
    """Draw new records from a normal copula with the data's rank correlations and distributions.

    See `copulas.copula_levels` and `marginals.of_numbers`.
    """
    random = generator(seed)
    table, encoding, _, people = read_whole(source, None, None, nulls, person)
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
