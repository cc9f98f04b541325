"""The values of a release in the digits that the original's columns have, and as codes of equal values."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from duckanon._core.common.arrays import Floats
from duckanon._core.encoding.pairs import NumberPair, kind_of, numbers_of, paired, stacked
from duckanon._core.privacy.rare_values import ColumnCodes

_MOST_DECIMALS = 6  # numbers with more are taken to be unrounded


def with_digits_of(original: pa.Table, released: pa.Table) -> pa.Table:
    """Round released numbers to the decimals that all numbers of the original's column have.

    A copy with a little noise then is a copy again, and a release of unrounded numbers comparable with people's.
    """
    for name in original.column_names:
        kinds = {kind_of(table.schema.field(name).type) for table in (original, released)}
        if kinds != {"number"} or pa.types.is_integer(released.schema.field(name).type):
            continue
        decimals = _decimals(numbers_of(name, original.column(name)))
        if decimals is not None:
            values = np.round(numbers_of(name, released.column(name)), decimals)
            place = released.column_names.index(name)
            released = released.set_column(place, name, pa.chunked_array([pa.array(values, from_pandas=True)]))
    return released


def _decimals(values: Floats) -> int | None:
    """Return how many decimals numbers have; None where they are unrounded."""
    known = values[~np.isnan(values)]
    for decimals in range(_MOST_DECIMALS + 1):
        if (np.round(known, decimals) == known).all():
            return decimals
    return None


def column_codes(original: pa.Table, released: pa.Table, others: pa.Table | None) -> list[ColumnCodes]:
    """Give equal values of each column the same number in all tables."""
    people = original if others is None else stacked(original, others)
    found = []
    for pair in paired(people, released):
        codes, shown = pair.original, pair.released
        if isinstance(pair, NumberPair):
            both = np.concatenate([codes, shown])
            both = np.where(np.isnan(both), np.inf, both)  # NULL is one value
            _, both = np.unique(both, return_inverse=True)
            codes, shown = np.split(both.reshape(-1), [len(codes)])
        inside, outside = np.split(np.asarray(codes, np.int64), [original.num_rows])
        found.append(ColumnCodes(inside, np.asarray(shown, np.int64), None if others is None else outside))
    return found
