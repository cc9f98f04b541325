"""The values of a column as choices and numbers in every part of a table: as in the whole table."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F  # noqa: N812

from duckanon._core.common.arguments import spelled
from duckanon._core.common.arrays import Ints
from duckanon._core.common.names import known_columns
from duckanon._core.common.people import person_numbers
from duckanon._core.encoding.column_split import Reading, split_columns, whole
from duckanon._core.encoding.fit import refuse_nulls
from duckanon._core.encoding.parts import ColumnParts
from duckanon._core.encoding.special import special_choices, special_values
from duckanon.spark.counted import Counted, counted, decimals_without_noise
from duckanon.spark.frames import column, person_hash
from duckanon.spark.partwise import SAMPLE

_ALL = 2**30  # of which a share is drawn, by a hash of the person


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

    frame: Any  # the columns to release, floats without a computation's rounding, and a hash of the person
    names: list[str]
    person: str | None
    rows: int  # how many there are
    whole: list[tuple[ColumnParts, Ints | None]]  # the columns in small, split, and the people of their rows
    schemes: list[Scheme]  # how each is split
    sample: pa.Table  # some rows, drawn at random; all rows of a person

    @property
    def schema(self) -> Any:
        """Spark's schema of what is released."""
        return self.frame.select(*map(column, self.names)).schema

    def columns_of(self, rows: pa.Table) -> list[ColumnParts]:
        """Take rows of the table apart."""
        return applied(self.schemes, rows)

    def people_of(self, rows: pa.Table) -> Ints | None:
        """Return whose rows of the table are."""
        return None if self.person is None else person_numbers(rows.column(self.person))


def applied(schemes: Sequence[Scheme], rows: pa.Table) -> list[ColumnParts]:
    """Take rows apart."""
    return [scheme.applied(rows.column(scheme.column.name)) for scheme in schemes]


def surveyed(frame: Any, names: list[str], person: str | None, k: int, options: dict[str, Any]) -> Surveyed:
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


def chance(person: str | None) -> Any:
    """Return an expression that is a random number from 0 to 1 for each row, or for each person."""
    salt = int.from_bytes(os.urandom(7), "big")
    drawn = F.rand(salt)
    if person is None:
        return drawn
    of_person = F.pmod(F.xxhash64(F.lit(salt), column(person)), F.lit(_ALL)) / F.lit(float(_ALL))
    return F.when(column(person).isNotNull(), of_person).otherwise(drawn)
