"""The values of a column as choices and numbers in every part of a table: as in the whole table.

The cluster counts the values of a column with those who hold them. Which values are releasable is decided once, over
the whole table. The functions that decide it take the rows of a column; the driver gives them fewer rows, in which
whatever k people hold has k people, and nothing else has.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812

from duckanon._core.common.arguments import spelled
from duckanon._core.common.arrays import Floats, Ints, is_number
from duckanon._core.common.declare import Options
from duckanon._core.common.names import known_columns
from duckanon._core.common.people import NOBODY
from duckanon._core.encoding.column_split import Reading, split_columns, whole
from duckanon._core.encoding.digits import cleaned
from duckanon._core.encoding.fit import refuse_nulls
from duckanon._core.encoding.parts import ColumnParts, doubles
from duckanon._core.encoding.special import special_choices, special_values
from duckanon.spark.frames import column, person_hash
from duckanon.spark.partwise import SAMPLE

_ALL = 2**30  # of which a share is drawn, by a hash of the person
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
    def numbers(self) -> tuple[Floats, Ints] | None:
        """The different numbers, ascending, and the rows of each; None for what is no number, or not finite."""
        if not is_number(self.values.type):
            return None
        numbers = doubles(self.values)
        known = np.isfinite(numbers)
        distinct, place = np.unique(numbers[known], return_inverse=True)
        return distinct, np.bincount(place, self.rows[known], len(distinct)).astype(np.int64)


def holders(frame: DataFrame, name: str, person: str | None) -> DataFrame:
    """Count the rows and the people of each value of a column, on the cluster."""
    pairs = _pairs(frame, name, person)
    people = F.sum(ROWS) if person is None else F.count(_PERSON)
    return pairs.groupBy(VALUE).agg(F.sum(ROWS).alias(ROWS), people.alias(HOLDERS))


def counted(frame: DataFrame, name: str, person: str | None, k: int) -> Counted:
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


def _pairs(frame: DataFrame, name: str, person: str | None) -> DataFrame:
    keys = [column(name).alias(VALUE)] + ([] if person is None else [column(person).alias(_PERSON)])
    rows = frame.select(*keys)
    return rows.groupBy(*rows.columns).agg(F.count("*").alias(ROWS))


def _rare_rows(
    frame: DataFrame, sized: DataFrame, name: str, person: str, k: int, share: float
) -> tuple[pa.Array, Ints]:
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


@dataclass(frozen=True)
class Scheme:
    """The split of one column."""

    column: ColumnParts  # as the whole table's was, without rows
    known: pa.Array  # values that have a choice of their own
    codes: Ints  # the choice of each of these
    null_code: int  # the choice of NULL; -1 where there was none
    other_code: int  # the choice of all other values; -1 where there were none

    @classmethod
    def of(cls, parts: ColumnParts) -> Scheme:
        """Learn it from a column in small."""
        coded = parts.array.dictionary_encode()
        indices = coded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        null_code = int(parts.codes[indices < 0][0]) if (indices < 0).any() else -1
        codes = np.zeros(len(coded.dictionary), np.int64)
        codes[indices[indices >= 0]] = parts.codes[indices >= 0]
        kept, other_code = np.arange(len(codes)), -1
        if parts.regular is not None:
            other_code = len(parts.outcomes)
            kept = np.flatnonzero(codes != other_code)
        nothing = np.zeros(0, np.int64)
        column = replace(parts, codes=nothing, array=parts.array.slice(0, 0))
        return cls(column, coded.dictionary.take(pa.array(kept)), codes[kept], null_code, other_code)

    def applied(self, values: pa.ChunkedArray) -> ColumnParts:
        """Take rows of the column apart."""
        array = whole(values)
        if pa.types.is_floating(array.type):
            array = pc.add(array, pa.scalar(0.0, array.type))  # -0.0 is 0.0, as where values were counted
        found = pc.index_in(array, value_set=self.known, skip_nulls=True)
        places = found.fill_null(len(self.codes)).to_numpy(zero_copy_only=False)
        codes = np.append(self.codes, self.other_code)[places]
        if array.null_count:
            codes[array.is_null().to_numpy(zero_copy_only=False)] = self.null_code
        if (codes < 0).any():
            raise ValueError(f'column "{self.column.name}" has other values than before; it may have changed.')
        return replace(self.column, codes=codes, array=array)


@dataclass(frozen=True)
class Surveyed:
    """A table of which everything is known that a release must know of all rows."""

    frame: DataFrame  # the columns to release, floats without a computation's rounding, and a hash of the person
    names: list[str]
    person: str | None
    rows: int  # how many there are
    whole: list[tuple[ColumnParts, Ints | None]]  # the columns in small, split, and the people of their rows
    schemes: list[Scheme]  # how each is split
    sample: pa.Table  # some rows, drawn at random; all rows of a person

    @property
    def schema(self) -> T.StructType:
        """Spark's schema of what is released."""
        return self.frame.select(*map(column, self.names)).schema


def applied(schemes: Sequence[Scheme], rows: pa.Table) -> list[ColumnParts]:
    """Split rows of the table."""
    return [scheme.applied(rows.column(scheme.column.name)) for scheme in schemes]


def surveyed(frame: DataFrame, names: list[str], person: str | None, k: int, options: Options) -> Surveyed:
    """Count the values of a table's columns and learn how each is split.

    The options ``special``, ``categories`` and ``nulls`` are those of `anon.spectral_release`.
    """
    special = special_choices(options["special"], names)
    categories = spelled("categories", options["categories"], names)
    known_columns("categories", categories or [], names)
    whose = [] if person is None else [person_hash(person).alias(person)]
    frame = frame.select(*map(column, names), *whose)
    found: list[Counted] = []
    for name in names:
        one = counted(frame, name, person, k)
        decimals = decimals_without_noise(one.values)
        if decimals is not None:
            frame = frame.withColumn(name, F.round(column(name), decimals))
            one = counted(frame, name, person, k)
        found.append(one)
    rows = int(found[0].rows.sum())
    if rows == 0:
        raise ValueError("the table has no rows; give one that has.")
    if options["nulls"] == "error":
        refuse_nulls({one.name: one.null_rows for one in found})
    whole_columns = []
    for one in found:
        own = special
        if special is not None and one.name not in special and one.numbers is not None and len(one.numbers[0]):
            own = {one.name: special_values(*one.numbers).tolist()}  # by the rows of the table, not those in small
        reading = Reading(k, own, categories, options["nulls"])
        whole_columns.append((split_columns(pa.table({one.name: one.array}), one.people, reading)[0], one.people))
    drawn = frame if rows <= SAMPLE else frame.where(chance(person) < F.lit(SAMPLE / rows))
    schemes = [Scheme.of(parts) for parts, _ in whole_columns]
    return Surveyed(frame, names, person, rows, whole_columns, schemes, drawn.toArrow())


def chance(person: str | None) -> Column:
    """Return an expression that is a random number from 0 to 1 for each row, or for each person."""
    salt = int.from_bytes(os.urandom(7), "big")
    drawn = F.rand(salt)
    if person is None:
        return drawn
    of_person = F.pmod(F.xxhash64(F.lit(salt), column(person)), F.lit(_ALL)) / F.lit(float(_ALL))
    return F.when(column(person).isNotNull(), of_person).otherwise(drawn)
