"""People with a history: their classes, and how many events they have."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from duckanon._core.common.arrays import Ints, distinct
from duckanon._core.common.codes import encode
from duckanon._methods.linked.dense_numbers import ranked

_BANDS = (1, 2, 3, 5, 9, 17, 33, 65, 129)
"""The least number of rows of each band."""
BAND_NAMES = ("1", "2", "3-4", "5-8", "9-16", "17-32", "33-64", "65-128", "129+", "0")
"""The last one is that of people without events."""


def parts_of(column: pa.ChunkedArray, names: Sequence[str]) -> Ints:
    """Return the place of each row's table."""
    return np.asarray(pc.index_in(column, pa.array(names, column.type)).to_numpy(), dtype=np.int64)


def counts_of(names: Sequence[str], rows: Ints) -> str:
    """Say how many rows of each table something is said about.

    Examples:
        >>> counts_of(["visits", "labs"], np.array([0, 2]))
        '2 rows of labs'
    """
    counted = zip(names, rows.tolist(), strict=True)
    return ", ".join(f"{count} row{'s' * (count != 1)} of {name}" for name, count in counted if count)


def classes_of(
    table: pa.Table, columns: Sequence[str], person_of: Ints, part_of: Ints, names: Sequence[str], people: str | None
) -> Ints:
    """Return the class of each person, from the rows of `people`, or from all rows, which must agree."""
    rows = np.arange(len(person_of))
    if people is not None:
        rows = np.flatnonzero(part_of == names.index(people))
        if len(rows) > len(distinct(person_of[rows])):
            raise ValueError(f"people must have one row for each person; {people} has several for some.")
        missing = int(person_of.max(initial=-1)) + 1 - len(rows)
        if missing:
            raise ValueError(f"people must have every person of the tables; {people} lacks {missing}.")
    key = np.zeros(len(rows), np.int64)
    for codes, count in encode(table.select(columns).take(pa.array(rows))) if columns else ():
        key = ranked(key * count + codes.astype(np.int64))
    found = np.empty(int(person_of.max(initial=-1)) + 1, np.int64)
    found[person_of[rows]] = key
    differing = part_of[rows][found[person_of[rows]] != key]
    if len(differing):
        tables = ", ".join(names[place] for place in np.unique(differing).tolist())
        raise ValueError(
            f"class must be the same in all rows of a person; {', '.join(columns)} differs in rows of {tables}."
        )
    return found


def bands_of(person_of: Ints, people: int) -> Ints:
    """Return the band of the number of events of each person; people without any are in the last one."""
    counts = np.bincount(person_of, minlength=people)
    return np.where(counts == 0, len(_BANDS), np.searchsorted(_BANDS, counts, side="right") - 1)
