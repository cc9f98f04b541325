"""The values of a column with those who hold them, counted by the cluster, and the column in small on the driver.

Which values are releasable is decided once, over the whole table. The functions that decide it take the rows of a
column; the driver gives them fewer rows, in which whatever k people hold has k people, and nothing else has.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812

from duckanon._core.common.arrays import Ints, is_number
from duckanon._core.common.people import NOBODY
from duckanon._core.encoding.digits import cleaned
from duckanon._core.encoding.parts import doubles
from duckanon.spark.frames import column

MOST_VALUES = 500_000
"""Different values of a column that are brought to the driver, and sent to the executors."""
SMALL_ROWS = 5_000_000
"""Rows of a column in small; a column of no more rows is itself."""
VALUE, ROWS, HOLDERS = "_duckanon_value", "_duckanon_rows", "_duckanon_holders"
_PERSON, _OTHER = "_duckanon_person", "_duckanon_other"
_DECIMALS = range(-6, 7)


@dataclass(frozen=True)
class Counted:
    """A column of a table."""

    name: str  # the column's
    values: pa.Array  # its different values, NULL too
    rows: Ints  # the rows of each value
    array: pa.Array  # the column in small: values of rows
    people: Ints | None  # whose each of these rows is; None where every row is another person

    @property
    def null_rows(self) -> int:
        """The rows without a value."""
        return int(self.rows[self.values.is_null().to_numpy(zero_copy_only=False)].sum())

    @property
    def numbers(self) -> tuple[Any, Ints] | None:
        """The different numbers, ascending, and the rows of each; None for what is no number, or not finite."""
        if not is_number(self.values.type):
            return None
        numbers = doubles(self.values)
        known = np.isfinite(numbers)
        distinct, place = np.unique(numbers[known], return_inverse=True)
        return distinct, np.bincount(place, self.rows[known], len(distinct)).astype(np.int64)


def holders(frame: Any, name: str, person: str | None) -> Any:
    """Count the rows and the people of each value of a column, on the cluster."""
    pairs = _pairs(frame, name, person)
    people = F.sum(ROWS) if person is None else F.count(_PERSON)
    return pairs.groupBy(VALUE).agg(F.sum(ROWS).alias(ROWS), people.alias(HOLDERS))


def counted(frame: Any, name: str, person: str | None, k: int) -> Counted:
    """Bring the values of a column to the driver, at most `MOST_VALUES`."""
    sized = holders(frame, name, person)
    found = sized.limit(MOST_VALUES + 1).toArrow().combine_chunks()
    if found.num_rows > MOST_VALUES:
        raise ValueError(
            f'column "{name}" has more than {MOST_VALUES:,} different values, which is more than the driver takes; '
            "round it, generalize it or leave it out of cols."
        )
    found = found.sort_by(VALUE)
    values, rows = found.column(VALUE).combine_chunks(), found.column(ROWS).to_numpy()
    share = min(1.0, SMALL_ROWS / max(int(rows.sum()), 1))
    shown = np.maximum(np.minimum(rows, k), np.rint(rows * share).astype(np.int64))
    if person is None:
        return Counted(name, values, rows, values.take(pa.array(np.repeat(np.arange(len(rows)), shown))), None)
    is_rare = found.column(HOLDERS).to_numpy() < k
    common = np.repeat(np.flatnonzero(~is_rare), shown[~is_rare])
    listed = [values.take(pa.array(common))]
    own = np.zeros(0, np.int64)
    if is_rare.any():  # who holds these is counted over several values
        rare, own = _rare_rows(frame, sized, name, person, k, share)
        listed.append(rare)
    people = np.concatenate([int(own.max(initial=-1)) + 1 + np.arange(len(common)), own])
    return Counted(name, values, rows, pa.concat_arrays(listed), people)


def decimals_without_noise(values: pa.Array) -> int | None:
    """Return the decimals to which floats are rounded that differ by a computation's rounding; None where none do."""
    clean = cleaned(values)
    if not pa.types.is_floating(values.type) or clean.equals(values):
        return None
    floats = doubles(clean.drop_null())
    kind = clean.type.to_pandas_dtype()
    return next(places for places in _DECIMALS if (np.round(floats, places).astype(kind) == floats.astype(kind)).all())


def _pairs(frame: Any, name: str, person: str | None) -> Any:
    keys = [column(name).alias(VALUE)] + ([] if person is None else [column(person).alias(_PERSON)])
    rows = frame.select(*keys)
    return rows.groupBy(*rows.columns).agg(F.count("*").alias(ROWS))


def _rare_rows(frame: Any, sized: Any, name: str, person: str, k: int, share: float) -> tuple[pa.Array, Ints]:
    """Return the values shared by fewer than k people, and numbers of these, for each row in small."""
    rare = sized.where(F.col(HOLDERS) < k).select(F.col(VALUE).alias(_OTHER))
    pairs = _pairs(frame, name, person)
    held = pairs.join(F.broadcast(rare), F.col(VALUE).eqNullSafe(F.col(_OTHER)), "inner")
    found = held.select(VALUE, _PERSON, ROWS).toArrow().combine_chunks()
    whose = found.column(_PERSON).combine_chunks().dictionary_encode()
    people = whose.indices.fill_null(NOBODY).to_numpy(zero_copy_only=False).astype(np.int64)
    shown = np.maximum(1, np.rint(found.column(ROWS).to_numpy() * share).astype(np.int64))
    index = np.repeat(np.arange(len(people)), shown)
    return found.column(VALUE).combine_chunks().take(pa.array(index)), people[index]
