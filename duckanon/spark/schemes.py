"""The values of columns, counted by the cluster, and what a release must know of all rows (`whole_columns`)."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812

from duckanon._core.common.arguments import spell_columns
from duckanon._core.common.arrays import Ints
from duckanon._core.common.declare import Options
from duckanon._core.common.names import match_columns
from duckanon._core.common.people import NOBODY
from duckanon._core.encoding.column_split import read_special
from duckanon._core.encoding.number_types import NumberTypes
from duckanon._core.encoding.parts import ColumnParts
from duckanon._core.encoding.whole_sources import (
    ColumnCounts,
    SplitScheme,
    count_choices,
    find_clean_decimals,
    read_counts_exactly,
    split_counts,
)
from duckanon.spark.frames import column, person_hash
from duckanon.spark.partwise import SAMPLE

_ALL = 2**30  # of which a share is drawn, by a hash of the person
MOST_VALUES = 500_000
"""Different values of a column that are brought to the driver, and sent to the executors."""
SMALL_ROWS = 5_000_000
"""Rows of a column in small; a column of no more rows is itself."""
VALUE, ROWS, HOLDERS = "_duckanon_value", "_duckanon_rows", "_duckanon_holders"
_PERSON, _OTHER = "_duckanon_person", "_duckanon_other"


def holders(frame: DataFrame, name: str, person: str | None) -> DataFrame:
    """Count the rows and the people of each value of a column, on the cluster."""
    pairs = _pairs(frame, name, person)
    people = F.sum(ROWS) if person is None else F.count(_PERSON)
    return pairs.groupBy(VALUE).agg(F.sum(ROWS).alias(ROWS), people.alias(HOLDERS))


def count_values(frame: DataFrame, name: str, person: str | None, k: int) -> ColumnCounts:
    """Bring the values of a column to the driver, at most `MOST_VALUES`."""
    sized = holders(frame, name, person)
    table = sized.limit(MOST_VALUES + 1).toArrow().combine_chunks()
    if table.num_rows > MOST_VALUES:
        raise ValueError(
            f'column "{name}" has more than {MOST_VALUES:,} different values, which is more than the driver takes; '
            "round it, generalize it or leave it out of cols."
        )
    table = table.sort_by(VALUE)
    values, rows = table.column(VALUE).combine_chunks(), table.column(ROWS).to_numpy()
    rare_rows = None if person is None else partial(_rare_rows, frame, sized, name, person, k)
    return ColumnCounts.of(name, values, rows, table.column(HOLDERS).to_numpy(), k, SMALL_ROWS, rare_rows)


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
    table = held.select(VALUE, _PERSON, ROWS).toArrow().combine_chunks()
    members = table.column(_PERSON).combine_chunks().dictionary_encode()
    people = members.indices.fill_null(NOBODY).to_numpy(zero_copy_only=False).astype(np.int64)
    shown = np.maximum(1, np.rint(table.column(ROWS).to_numpy() * share).astype(np.int64))
    index = np.repeat(np.arange(len(people)), shown)
    return table.column(VALUE).combine_chunks().take(pa.array(index)), people[index]


@dataclass(frozen=True)
class Surveyed:
    """A table of which everything is known that a release must know of all rows."""

    frame: DataFrame  # the columns to release, floats without a computation's rounding, and a hash of the person
    names: list[str]
    person: str | None
    rows: int  # how many there are
    whole: list[tuple[ColumnParts, Ints | None]]  # the columns in small, split, and the people of their rows
    schemes: list[SplitScheme]  # how each is split
    counts: list[Ints]  # how many rows have each of its choices
    sample: pa.Table  # some rows, drawn at random; all rows of a person
    types: NumberTypes  # how numbers are read, in which the columns in small are

    @property
    def schema(self) -> T.StructType:
        """Spark's schema of what is released."""
        return self.frame.select(*map(column, self.names)).schema


def survey_columns(
    frame: DataFrame,
    names: list[str],
    person: str | None,
    k: int,
    options: Options,
    categories_of: Callable[[Sequence[ColumnCounts], int], list[str]] | None = None,
) -> Surveyed:
    """Count the values of a table's columns and learn how each is split.

    The options ``special``, ``categories`` and ``nulls`` are those of `anon.spectral_release`; ``categories_of`` finds
    the numbers that are categories where none are named.
    """
    special = read_special(options["special"], names)
    categories = spell_columns("categories", options["categories"], names)
    match_columns("categories", categories or [], names)
    person_columns = [] if person is None else [person_hash(person).alias(person)]
    frame = frame.select(*map(column, names), *person_columns)
    counts: list[ColumnCounts] = []
    for name in names:
        value_counts = count_values(frame, name, person, k)
        decimals = find_clean_decimals(value_counts.values)
        if decimals is not None:
            frame = frame.withColumn(name, F.round(column(name), decimals))
            value_counts = count_values(frame, name, person, k)
        counts.append(value_counts)
    rows = int(counts[0].rows.sum())
    counts, types = read_counts_exactly(counts)
    if rows == 0:
        raise ValueError("the table has no rows; give one that has.")
    if categories is None and categories_of is not None:
        categories = categories_of(counts, k)
    whole_columns = split_counts(counts, k, special, categories, options["nulls"])
    drawn = frame if rows <= SAMPLE else frame.where(chance(person) < F.lit(SAMPLE / rows))
    schemes = [SplitScheme.of(parts) for parts, _ in whole_columns]
    choice_counts = [count_choices(scheme, one) for scheme, one in zip(schemes, counts, strict=True)]
    return Surveyed(frame, names, person, rows, whole_columns, schemes, choice_counts, drawn.toArrow(), types)


def chance(person: str | None) -> Column:
    """Return an expression that is a random number from 0 to 1 for each row, or for each person."""
    salt = int.from_bytes(os.urandom(7), "big")
    drawn = F.rand(salt)
    if person is None:
        return drawn
    of_person = F.pmod(F.xxhash64(F.lit(salt), column(person)), F.lit(_ALL)) / F.lit(float(_ALL))
    return F.when(column(person).isNotNull(), of_person).otherwise(drawn)
