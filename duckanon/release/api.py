"""Releases of new records with the same statistics, for anything that can be read as Arrow batches.

The functions take a pyarrow Table, RecordBatch, Dataset or RecordBatchReader, the path of a Parquet file, or a function
that opens a reader, and return a RecordBatchReader of the same columns, names and types, whose rows are in an order
that links nothing. The SQL functions of the same names are these.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from duckanon.common.arguments import OneOf, generator, refuse_unless
from duckanon.common.arrays import Floats, Ints
from duckanon.matrix.encoding import Encoding
from duckanon.matrix.fit import fit
from duckanon.matrix.sources import open_source
from duckanon.release import copulas, microaggregation, noise, svd
from duckanon.release.copula_columns import copula_columns
from duckanon.release.pica import Partitioned, checked_size

Tell = Callable[[float], None]

_BATCH_ROWS = 65_536

svd_swap = svd.svd_swap


def pica(
    source: object,
    cols: Sequence[str] | None = None,
    *,
    cluster_size: float | None = None,
    basis: str = "ica",
    clustering: str = "auto",
    reference: object = None,
    log: Sequence[str] | None = None,
    nulls: str = "error",
    checks: str = "error",
    seed: int | None = None,
    tell: Tell | None = None,
) -> pa.RecordBatchReader:
    """Swap independent components inside clusters of similar records.

    Parameters
    ----------
    source, cols, log, nulls, checks, seed, tell
        As for `svd_swap`; the matrix is held in memory, in float32.
    cluster_size
        The records per cluster, from half of it to one and a half; None for the smallest that passes the tests of
        privacy, see `cluster_size_search`.
    basis
        ``'ica'`` or ``'pca'``.
    clustering
        ``'spectral'``, ``'bisect'``, or ``'auto'`` by the number of rows.
    reference
        Other people with the same columns, anything that the source may be, to compare with while searching; None for
        leaving each record out. Not looked at where a size is given.

    Notes
    -----
    Thesis, section 5.1, figure 5-1.
    """
    size = checked_size(cluster_size)
    random = generator(seed)
    table = Partitioned.of(source, _names(cols), log, nulls, basis, clustering, checks, random)
    others = None if reference is None or size is not None else _whole(reference, table.encoding.schema.names)
    return _reader(table.released(size, others, tell))


def spectral_rhs(
    source: object,
    cols: Sequence[str] | None = None,
    *,
    k: int,
    label: str = "mean",
    key: str | None = None,
    log: Sequence[str] | None = None,
    nulls: str = "error",
    seed: int | None = None,
) -> pa.RecordBatchReader:
    """Replace groups of at least k records, found along principal components, by copies of one.

    Parameters
    ----------
    source, cols, log, nulls, seed
        As for `svd_swap`; the matrix is held in memory.
    k
        The least number of rows that share a released record; counted before they are returned.
    label
        ``'mean'`` or ``'member'``.
    key
        A column that travels unchanged, to measure the release with.

    Notes
    -----
    Thesis, section 4.1.2, figure 4-2.
    """
    random = generator(seed)
    table, encoding, keys = _read(source, cols, key, log, nulls)
    matrix = encoding.matrix(table)
    labels = microaggregation.spectral_rhs(matrix, k)
    released = _masked(table, encoding, matrix, labels, label, random)
    least = _smallest_class(released)
    if least < k:
        raise ValueError(f"a released record would stand for {least} rows instead of {k}: the promise is not kept.")
    return _reader(_shuffled(released, keys, random))


def rhs(
    source: object,
    cols: Sequence[str] | None = None,
    *,
    k: int,
    label: str = "mean",
    key: str | None = None,
    log: Sequence[str] | None = None,
    nulls: str = "error",
    checks: str = "error",
    seed: int | None = None,
) -> pa.RecordBatchReader:
    """Replace groups, found by splitting all columns at once, by copies of one record: for comparison only.

    The parameters are those of `spectral_rhs`; a release in which groups of fewer than k rows are left is refused
    unless ``checks`` is ``'off'``.
    """
    refuse_unless(OneOf("error", "off"), "checks", checks)
    random = generator(seed)
    table, encoding, keys = _read(source, cols, key, log, nulls)
    matrix = encoding.matrix(table)
    labels = microaggregation.rhs(matrix, k)
    unprotected = microaggregation.rows_in_small_groups(labels, k)
    if unprotected and checks == "error":
        raise ValueError(
            f"{unprotected:,} of {len(matrix):,} records end in groups of fewer than {k}, as they do when many columns "
            f"are split at once; use anon.spectral_rhs, or checks := 'off' to compare with it."
        )
    return _reader(_shuffled(_masked(table, encoding, matrix, labels, label, random), keys, random))


def additive_noise(
    source: object,
    cols: Sequence[str] | None = None,
    *,
    noise_fraction: float = 0.1,
    correlated: bool = True,
    key: str | None = None,
    log: Sequence[str] | None = None,
    nulls: str = "error",
    seed: int | None = None,
) -> pa.RecordBatchReader:
    """Add noise to every record and correct mean and covariance for it: for comparison only, see `noise`."""
    random = generator(seed)
    table, encoding, keys = _read(source, cols, key, log, nulls)
    noisy = noise.additive_noise(encoding.matrix(table), random, noise_fraction, correlated)
    return _reader(_shuffled(encoding.table(noisy), keys, random))


def data_shuffle(
    source: object, cols: Sequence[str] | None = None, *, nulls: str = "error", seed: int | None = None
) -> pa.RecordBatchReader:
    """Rearrange every column to the ranks of normal data with the same rank correlations, see `copulas`."""
    random = generator(seed)
    table, encoding, _ = _read(source, cols, None, [], nulls)
    columns = copula_columns(encoding, encoding.matrix(table))
    places = copulas.data_shuffle([column.codes for column in columns], random)
    rearranged = [column.take(pa.array(place)) for column, place in zip(table.columns, places, strict=True)]
    return _reader(pa.table(rearranged, schema=table.schema))


def copula_synthesize(
    source: object,
    cols: Sequence[str] | None = None,
    *,
    rows: int | None = None,
    nulls: str = "error",
    seed: int | None = None,
) -> pa.RecordBatchReader:
    """Draw records from a normal copula, as many as the source has unless ``rows`` says otherwise, see `copulas`."""
    random = generator(seed)
    table, encoding, _ = _read(source, cols, None, None, nulls)
    columns = copula_columns(encoding, encoding.matrix(table))
    codes, kinds = [column.codes for column in columns], [column.kind for column in columns]
    drawn = copulas.copula_synthesize(codes, kinds, table.num_rows if rows is None else rows, random)
    features = np.empty((encoding.width, len(drawn[0])))
    for column, group, values in zip(columns, encoding.groups, drawn, strict=True):
        column.fill(values, features[group])
    return _reader(encoding.table(features.T))


def _read(
    source: object, cols: Sequence[str] | None, key: str | None, log: Sequence[str] | None, nulls: str
) -> tuple[pa.Table, Encoding, tuple[int, pa.Table] | None]:
    """Read a source whole; the column of keys apart, with its place."""
    table = _whole(source, _names(cols))
    keys = None
    if key is not None:
        place = next((at for at, name in enumerate(table.column_names) if name.lower() == str(key).lower()), None)
        if place is None:
            raise ValueError(f"key must be one of cols; got {key}.")
        keys, table = (place, table.select([place])), table.remove_column(place)
    encoding, _ = fit(table, log=log, nulls=nulls)
    return table, encoding, keys


def _whole(source: object, cols: list[str] | None) -> pa.Table:
    if isinstance(source, pa.Table) and cols is None:  # as it came, without putting its chunks together anew
        return source
    opened = open_source(source, cols)
    try:
        return pa.Table.from_batches(list(opened.batches(_BATCH_ROWS)), opened.schema)
    finally:
        if opened is not source:
            opened.close()


def _masked(
    table: pa.Table, encoding: Encoding, matrix: Floats, labels: Ints, label: str, random: np.random.Generator
) -> pa.Table:
    if label == "member":  # a record as it stands, not as it comes back from the matrix
        return table.take(pa.array(microaggregation.members(matrix, labels, random)))
    return encoding.table(microaggregation.masked(matrix, labels, random, label))


def _smallest_class(table: pa.Table) -> int:
    places = [str(place) for place in range(table.num_columns)]  # Arrow takes names with dots for paths
    counts = table.rename_columns(places).group_by(places).aggregate([([], "count_all")])["count_all"]
    return int(pc.min(counts).as_py())


def _shuffled(table: pa.Table, keys: tuple[int, pa.Table] | None, random: np.random.Generator) -> pa.Table:
    """Put the rows into random order, each with its key."""
    if keys is not None:
        place, column = keys
        table = table.add_column(place, column.schema.field(0), column.column(0))
    return table.take(pa.array(random.permutation(table.num_rows)))


def _names(names: Sequence[str] | None) -> list[str] | None:
    if names is None:
        return None
    if isinstance(names, str) or not isinstance(names, Sequence):
        raise ValueError(f"columns must be given as a list of names; got {names!r}.")
    return list(names)


def _reader(table: pa.Table) -> pa.RecordBatchReader:
    return pa.RecordBatchReader.from_batches(table.schema, table.to_batches())
