"""Strata: groups of records by labels that are released as they are, each large enough for boxes of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from duckanon.common.arrays import Bools, Ints
from duckanon.common.codes import ranks_of

_NO_LABEL = 0


class Strata(NamedTuple):
    """Records by stratum.

    Attributes
    ----------
    number : int64, one per record
        The stratum, from 0.
    lost : bool, labels by records
        Which labels have to be NULL.
    """

    number: Ints
    lost: Bools


def label_names(table: pa.Table, by: Sequence[str], names: Sequence[str], person: str | None) -> list[str]:
    """Return the columns of labels, in the order in which they matter, under the names that the table has for them."""
    spelling = {name.lower(): name for name in table.column_names}
    for name in by:
        if name.lower() in (column.lower() for column in (*names, person or "")):
            raise ValueError(f'by must name other columns than cols and person; got "{name}".')
        if name.lower() not in spelling:
            raise ValueError(f'by must name columns of the table; got "{name}".')
        if pa.types.is_nested(table.schema.field(spelling[name.lower()]).type):
            raise ValueError(f'by must name columns of labels, which are not nested; got "{name}".')
    return list(dict.fromkeys(spelling[name.lower()] for name in by))


def pooled(labels: Sequence[pa.ChunkedArray], holds: Callable[[Ints, int], tuple[Bools, Ints]]) -> Strata:
    """Group records by their labels, and take labels from groups that are too small, the last label first.

    Parameters
    ----------
    labels : sequence of pa.ChunkedArray
        Columns; NULL is a label, the same that a record has which lost its own.
    holds : callable
        Takes the group of each record and the number of groups; tells which groups are large enough for a box, and
        their sizes.

    Returns
    -------
    Strata
        Groups that all hold enough, provided that the whole table does.

    Notes
    -----
    A group that is too small loses its last label and so joins its siblings that do, and those without one; what is
    still too small then loses the label before.  If what has lost all labels is too small in the end, the smallest of
    the other groups joins it, until it holds enough.
    """
    # by rank, so that ties between groups do not depend on the order of the records
    codes = np.stack([np.where(np.asarray(column.is_null()), _NO_LABEL, ranks_of(column)) for column in labels])
    own = codes.copy()
    for depth in range(len(codes), 0, -1):
        group, count = _groups(codes)
        is_enough, _ = holds(group, count)
        codes[depth - 1 :, ~is_enough[group]] = _NO_LABEL
    while True:
        group, count = _groups(codes)
        is_enough, sizes = holds(group, count)
        if is_enough.all() or count == 1:
            break
        has_label = np.zeros(count, np.bool_)
        has_label[group] = (codes != _NO_LABEL).any(axis=0)
        joins = np.flatnonzero(has_label)[sizes[has_label].argmin()]
        codes[:, (group == joins) | ~is_enough[group]] = _NO_LABEL
    return Strata(group, codes != own)


def without_labels(column: pa.ChunkedArray, lost: Bools) -> pa.ChunkedArray:
    """Return a column with NULL where the label is lost."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    return pc.if_else(pa.array(lost), pa.scalar(None, column.type), column)


def _groups(codes: Ints) -> tuple[Ints, int]:
    """Give numbers to groups of records with the same codes, in the order of these."""
    group = np.zeros(codes.shape[1], np.int64)
    count = 1
    for column in codes:
        keys, group = np.unique(group * (int(column.max()) + 1) + column, return_inverse=True)
        group, count = group.reshape(-1), len(keys)
    return group, count
