"""Numbers of few values: which are categories, and which rows have a rare one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from duckanon._core.common.arrays import Bools, Floats, Ints, is_number
from duckanon._core.common.people import people_in
from duckanon._core.encoding.column_split import FEW_VALUES, whole
from duckanon._core.encoding.digits import cleaned
from duckanon._core.encoding.parts import ColumnParts, doubles

_FEW_NUMBERS = 64  # values that are not whole: at most as many are categories, as equivalence scales are
_RARE, _RARE_BESIDE = 0.02, 0.05  # the share of rows with rarer values then, of all and of those without the commonest
_GAPS = 0.2  # of the places between the shared values of such a column, at least: measurements have nearly all of them
MOST_UNUSUAL = 0.03
"""The share of people whose few-valued number is rare: at most as many are not learnt from."""


def few_valued(table: pa.Table, people: Ints | None, k: int) -> list[str]:
    """Name the numbers that are categories: whole ones of few values, and others nearly all of which k people share."""
    found = []
    for name, column in zip(table.column_names, table.columns, strict=True):
        if not is_number(column.type) or column.null_count == len(column):
            continue
        values = doubles(cleaned(whole(column)))
        known = np.flatnonzero(~np.isnan(values))
        if people is None:
            distinct, counts = np.unique(values[known], return_counts=True)
            holders = counts
        else:
            distinct, place, counts = np.unique(values[known], return_inverse=True, return_counts=True)
            holders = people_in(place.astype(np.int64), people[known], len(distinct))
        if is_few_valued(distinct, counts, holders, k):
            found.append(name)
    return found


def is_few_valued(distinct: Floats, counts: Ints, holders: Ints, k: int) -> bool:
    """Tell whether numbers are categories, from the different ones with the rows and the people of each."""
    if not len(distinct) or (distinct == np.rint(distinct)).all():
        return 0 < len(distinct) <= FEW_VALUES
    rows, rare = int(counts.sum()), int(counts[holders < k].sum())
    is_few = 2 <= np.count_nonzero(holders >= k) <= _FEW_NUMBERS and _has_gaps(distinct[holders >= k])
    return bool(is_few and rare <= min(_RARE * rows, _RARE_BESIDE * (rows - int(counts.max()))))


def _has_gaps(values: Floats) -> bool:
    """Tell whether numbers are no even scale, as measurements in steps of a tenth are."""
    steps = np.diff(values)
    with np.errstate(over="ignore"):
        places = (values[-1] - values[0]) / steps.min() + 1
    return bool(len(values) < (1 - _GAPS) * places)


def is_usual(columns: Sequence[ColumnParts]) -> Bools:
    """Tell which rows have no rare number among few: merged with the next one, it would go with impossible others."""
    found = np.ones(len(columns[0].codes), np.bool_)
    for column in columns:
        if column.regular is None and is_number(column.type):
            values = doubles(column.array)
            outcomes = doubles(pa.array(column.outcomes, column.type))[column.codes]
            found &= (values == outcomes) | (np.isnan(values) & np.isnan(outcomes))
    return found
