"""Groups of similar records, each released as copies of one record: recursive halving of a table of people."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from duckanon._core.common.arguments import checked, generator
from duckanon._core.common.arrays import Floats, Ints
from duckanon._core.common.rules import OneOf
from duckanon._core.encoding.table_encoding import Encoding
from duckanon._core.encoding.whole_sources import read_whole, reader_of, refuse_identifiers, shuffled, smallest_class
from duckanon._methods.swap import halving


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
    person: str | None = None,
) -> pa.RecordBatchReader:
    """Replace groups of at least k records, formed along principal components, by copies of one record.

    Parameters
    ----------
    source
        A pyarrow Table, RecordBatch, Dataset or RecordBatchReader, the path of a Parquet file or of a folder of them,
        or a function that opens a reader. The matrix is held in memory.
    cols
        The columns to release; None for all.
    k
        The least number of rows that share a released record, or of people where `person` tells them apart; counted
        before they are returned.
    label
        ``'mean'`` releases the mean of each group, ``'member'`` the record nearest to it.
    key
        A column that travels unchanged, to measure the release with.
    log
        The numbers whose logarithm is taken; None for those that are positive and skewed.
    nulls
        ``'error'`` refuses NULLs, ``'category'`` makes them one more value.
    seed
        Makes the release of the same rows in the same order repeatable, and whoever learns it can undo it.
    person
        A column, none of `cols`, that tells whose each row is, and is not released; where it is NULL, the row counts as
        nobody's. None: every row is another person.

    Returns
    -------
    pyarrow.RecordBatchReader
        As many rows, of the same columns and types; each occurs at least k times.

    Raises
    ------
    ValueError
        For fewer than k rows or people, and for what cannot be encoded: see `fit.fit`.

    Notes
    -----
    Thesis, Section 4.1.2, Figure 4-2.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from duckanon import spectral
    >>> people = pa.table({"height": [150 + i % 50 for i in range(400)], "weight": [50 + i % 41 for i in range(400)]})
    >>> released = spectral.spectral_rhs(people, k=5, seed=1).read_all()
    >>> groups = released.group_by(released.column_names).aggregate([([], "count_all")])
    >>> min(groups["count_all"].to_pylist()) >= 5
    True
    """
    random = generator(seed)
    table, encoding, keys, people = read_whole(source, cols, key, log, nulls, person)
    matrix = encoding.matrix(table)
    labels = halving.spectral_rhs(matrix, k, people)
    released = _masked(table, encoding, matrix, labels, label, random)
    least = smallest_class(released, people)
    if least < k:
        counted = "rows" if people is None else "people"
        raise ValueError(
            f"a released record would stand for {least} {counted} instead of {k}: the promise is not kept."
        )
    return reader_of(shuffled(released, keys, random))


@checked(checks=OneOf("error", "off"))
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
    person: str | None = None,
) -> pa.RecordBatchReader:
    """Replace groups, formed by splitting all columns at once, by copies of one record: for comparison only.

    Parameters
    ----------
    source, cols, label, key, log, nulls, seed, person
        As for `spectral_rhs`.
    k
        The group size aimed at; groups of up to 2k rows, or people, are not split.
    checks
        ``'error'`` refuses a release in which groups of fewer than k rows, or people, are left, ``'off'`` returns it.

    Returns
    -------
    pyarrow.RecordBatchReader
        As many rows, of the same columns and types.

    Raises
    ------
    ValueError
        As `spectral_rhs` does, and for groups that are too small.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from duckanon import spectral
    >>> people = pa.table({"height": [150 + i % 50 for i in range(400)], "weight": [50 + i % 41 for i in range(400)]})
    >>> spectral.rhs(people, k=5, checks="off", seed=1).read_all().num_rows
    400
    """
    random = generator(seed)
    table, encoding, keys, people = read_whole(source, cols, key, log, nulls, person)
    matrix = encoding.matrix(table)
    labels = halving.rhs(matrix, k, people)
    unprotected = halving.rows_in_small_groups(labels, k, people)
    if unprotected and checks == "error":
        fewer = f"{k}" if people is None else f"{k} people"
        raise ValueError(
            f"{unprotected:,} of {len(matrix):,} records end in groups of fewer than {fewer}, as they do when many "
            f"columns are split at once; use anon.spectral_rhs, or checks := 'off' to compare with it."
        )
    return reader_of(shuffled(_masked(table, encoding, matrix, labels, label, random), keys, random))


def _masked(
    table: pa.Table, encoding: Encoding, matrix: Floats, labels: Ints, label: str, random: np.random.Generator
) -> pa.Table:
    if label == "member":  # a record as it stands, not as it comes back from the matrix
        refuse_identifiers(table)
        return table.take(pa.array(halving.members(matrix, labels, random)))
    return encoding.table(halving.masked(matrix, labels, random, label))
