"""Groups of similar records, each released as copies of one record: recursive halving of a table of people."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from duckanon._core.common.arguments import generator
from duckanon._core.common.arrays import Floats, Ints
from duckanon._core.encoding.table_encoding import Encoding
from duckanon._core.encoding.whole_sources import read_whole, reader_of, refuse_identifiers, shuffled, smallest_class
from duckanon._methods.swap import halving


def spectral_rhs(
    source: object,
    *,
    k: int,
    label: str,
    key: str | None,
    log: Sequence[str] | None,
    nulls: str,
    seed: int | None,
    person: str | None,
) -> pa.RecordBatchReader:
    """Replace groups of at least k records, formed along principal components, by copies of one record.

    Thesis, Section 4.1.2, Figure 4-2.
    """
    random = generator(seed)
    table, encoding, keys, people, types = read_whole(source, key, log, nulls, person)
    matrix = encoding.matrix(table)
    labels = halving.spectral_rhs(matrix, k, people)
    released = _masked(table, encoding, matrix, labels, label, random)
    least = smallest_class(released, people)
    if least < k:
        counted = "rows" if people is None else "people"
        raise ValueError(
            f"a released record would stand for {least} {counted} instead of {k}: the promise is not kept."
        )
    return reader_of(types.write(shuffled(released, keys, random)))


def rhs(
    source: object,
    *,
    k: int,
    label: str,
    key: str | None,
    log: Sequence[str] | None,
    nulls: str,
    checks: str,
    seed: int | None,
    person: str | None,
) -> pa.RecordBatchReader:
    """Replace groups, formed by splitting all columns at once, by copies of one record: for comparison only."""
    random = generator(seed)
    table, encoding, keys, people, types = read_whole(source, key, log, nulls, person)
    matrix = encoding.matrix(table)
    labels = halving.rhs(matrix, k, people)
    unprotected = halving.rows_in_small_groups(labels, k, people)
    if unprotected and checks == "error":
        fewer = f"{k}" if people is None else f"{k} people"
        raise ValueError(
            f"{unprotected:,} of {len(matrix):,} records end in groups of fewer than {fewer}, as they do when many "
            f"columns are split at once; use anon.spectral_rhs, or checks := 'off' to compare with it."
        )
    masked = _masked(table, encoding, matrix, labels, label, random)
    return reader_of(types.write(shuffled(masked, keys, random)))


def _masked(
    table: pa.Table, encoding: Encoding, matrix: Floats, labels: Ints, label: str, random: np.random.Generator
) -> pa.Table:
    if label == "member":  # a record as it stands, not as it comes back from the matrix
        refuse_identifiers(table)
        return table.take(pa.array(halving.members(matrix, labels, random)))
    return encoding.table(halving.masked(matrix, labels, random, label))
