"""Groups of similar records, each released as copies of one record: `anon.spectral_rhs` and `anon.rhs`.

The groups are those of `halving`; a group is released as its mean or as the member nearest to it. The promise is
counted again on the release.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from duckanon._core.common.arguments import make_generator
from duckanon._core.common.arrays import Floats, Ints
from duckanon._core.encoding.column_codecs import Encoding
from duckanon._core.encoding.whole_sources import (
    count_smallest_class,
    make_reader,
    read_whole,
    refuse_identifiers,
    shuffle_rows,
)
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
    random = make_generator(seed)
    table, encoding, keys, people, types = read_whole(source, key, log, nulls, person)
    matrix = encoding.matrix(table)
    labels = halving.spectral_rhs(matrix, k, people)
    released = _mask_table(table, encoding, matrix, labels, label, random)
    least = count_smallest_class(released, people)
    if least < k:
        counted = "rows" if people is None else "people"
        raise ValueError(
            f"a released record would stand for {least} {counted} instead of {k}: the promise is not kept."
        )
    return make_reader(types.write(shuffle_rows(released, keys, random)))


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
    random = make_generator(seed)
    table, encoding, keys, people, types = read_whole(source, key, log, nulls, person)
    matrix = encoding.matrix(table)
    labels = halving.rhs(matrix, k, people)
    unprotected = halving.count_rows_in_small_groups(labels, k, people)
    if unprotected and checks == "error":
        fewer = f"{k}" if people is None else f"{k} people"
        raise ValueError(
            f"{unprotected:,} of {len(matrix):,} records end in groups of fewer than {fewer}, as they do when many "
            f"columns are split at once; use anon.spectral_rhs, or checks := 'off' to compare with it."
        )
    masked = _mask_table(table, encoding, matrix, labels, label, random)
    return make_reader(types.write(shuffle_rows(masked, keys, random)))


def _mask_table(
    table: pa.Table, encoding: Encoding, matrix: Floats, labels: Ints, label: str, random: np.random.Generator
) -> pa.Table:
    if label == "member":  # a record as it stands, not as it comes back from the matrix
        refuse_identifiers(table)
        return table.take(pa.array(halving.choose_members(matrix, labels, random)))
    return encoding.table(halving.mask_rows(matrix, labels, random, label))
