"""Columns of a table that follow from others, for measures that leave them out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa

from duckanon._core.encoding.column_split import Reading, split_columns
from duckanon._core.encoding.formulas import found_formulas
from duckanon._core.encoding.lookups import found_lookups
from duckanon._core.encoding.parts import ColumnParts

_SEED = 1  # of the rows that are looked at first: the same table has the same columns each time


def derived_columns(table: pa.Table, reading: Reading) -> list[str]:
    """Name the columns that are sums or products of others, or categories that another column decides.

    They are found as the releases find them. A number of which only the special values follow from another column
    stays, and so do columns that no release would take, such as identifiers.
    """
    columns: list[ColumnParts] = []
    for name in table.column_names:
        try:
            columns += split_columns(table.select([name]), None, _only(reading, name))
        except ValueError:
            continue
    if len(columns) < 2:
        return []
    computed = [formula.column for formula in found_formulas(columns)]
    decided = found_lookups(columns, computed, np.random.default_rng(_SEED))
    computed += [lookup.column for lookup in decided if columns[lookup.column].regular is None]
    return [columns[index].name for index in computed]


def _only(reading: Reading, name: str) -> Reading:
    """Read one column as it would be read among the others, without merging anything."""
    categories = None if reading.categories is None else [one for one in reading.categories if one == name]
    return replace(reading, k=1, categories=categories, nulls="category")
