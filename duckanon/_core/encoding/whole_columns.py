"""The values of a column as choices and numbers in every part of a table: as in the whole table.

An engine counts the values of a column with those who hold them. Which values are releasable is decided once, over the
whole table. The functions that decide it take the rows of a column; they get fewer rows, in which whatever k people
hold has k people, and nothing else has.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from duckanon._core.common.arrays import Floats, Ints, is_number
from duckanon._core.encoding.column_split import Reading, split_columns, whole
from duckanon._core.encoding.digits import cleaned
from duckanon._core.encoding.fit import refuse_nulls
from duckanon._core.encoding.number_types import NumberTypes, number_type
from duckanon._core.encoding.parts import ColumnParts, doubles
from duckanon._core.encoding.special import special_values

_DECIMALS = range(-6, 7)


@dataclass(frozen=True)
class Counted:
    """A column of a table."""

    name: str  # the column's
    values: pa.Array  # its different values, NULL too
    rows: Ints  # the rows of each value
    holders: Ints  # the people of each value
    array: pa.Array  # the column in small: values of rows
    people: Ints | None  # whose each of these rows is; None where every row is another person

    @classmethod
    def of(
        cls,
        name: str,
        values: pa.Array,
        rows: Ints,
        holders: Ints,
        k: int,
        most: int,
        rare_rows: Callable[[float], tuple[pa.Array, Ints]] | None,
    ) -> Counted:
        """Write a column in small, of about `most` rows, and at least k of each value that has them.

        `rare_rows` returns the values shared by fewer than k people, and numbers of these, for each row in small, given
        the share of the rows that is kept; None where every row is another person.
        """
        share = min(1.0, most / max(int(rows.sum()), 1))
        shown = np.maximum(np.minimum(rows, k), np.rint(rows * share).astype(np.int64))
        if rare_rows is None:
            array = values.take(pa.array(np.repeat(np.arange(len(rows)), shown)))
            return cls(name, values, rows, holders, array, None)
        is_rare = holders < k
        common = np.repeat(np.flatnonzero(~is_rare), shown[~is_rare])
        listed = [values.take(pa.array(common))]
        own = np.zeros(0, np.int64)
        if is_rare.any():  # who holds these is counted over several values
            rare, own = rare_rows(share)
            listed.append(rare)
        people = np.concatenate([int(own.max(initial=-1)) + 1 + np.arange(len(common)), own])
        return cls(name, values, rows, holders, pa.concat_arrays(listed), people)

    @property
    def null_rows(self) -> int:
        """The rows without a value."""
        return int(self.rows[self.values.is_null().to_numpy(zero_copy_only=False)].sum())

    @property
    def numbers(self) -> tuple[Floats, Ints, Ints] | None:
        """The different finite numbers, ascending, with the rows and at least so many people of each; or None."""
        if not is_number(self.values.type):
            return None
        numbers = doubles(self.values)
        known = np.isfinite(numbers)
        distinct, place = np.unique(numbers[known], return_inverse=True)
        holders = np.zeros(len(distinct), np.int64)
        np.maximum.at(holders, place, self.holders[known])  # 0.0 and -0.0 are one
        return distinct, np.bincount(place, self.rows[known], len(distinct)).astype(np.int64), holders


def read_counted(counted: Sequence[Counted]) -> tuple[list[Counted], NumberTypes]:
    """Read the values of columns in the types in which a double tells them apart; return these types, too."""
    kinds = {one.name: number_type(one.name, one.values) for one in counted}
    types = NumberTypes({name: kind for name, kind in kinds.items() if kind is not None})
    columns = [
        replace(one, values=types.read_column(one.name, one.values), array=types.read_column(one.name, one.array))
        for one in counted
    ]
    return columns, types


def decimals_without_noise(values: pa.Array) -> int | None:
    """Return the decimals to which floats are rounded that differ by a computation's rounding; None where none do."""
    clean = cleaned(values)
    if not pa.types.is_floating(values.type) or clean.equals(values):
        return None
    floats = doubles(clean.drop_null())
    floats = floats[np.isfinite(floats)]
    kind = clean.type.to_pandas_dtype()
    return next(places for places in _DECIMALS if (np.round(floats, places).astype(kind) == floats.astype(kind)).all())


def split_whole(
    counted: Sequence[Counted],
    k: int,
    special: Mapping[str, list[float]] | None,
    categories: Sequence[str] | None,
    nulls: str,
    chance: np.random.Generator | None = None,
) -> list[tuple[ColumnParts, Ints | None]]:
    """Split the columns of a table in small; refuse NULLs unless they are a category; `chance` is that of `Reading`."""
    if nulls == "error":
        refuse_nulls({one.name: one.null_rows for one in counted})
    found = []
    for one in counted:
        own = special
        if special is not None and one.name not in special and one.numbers is not None and len(one.numbers[0]):
            own = {one.name: special_values(*one.numbers[:2]).tolist()}  # by the rows of the table, not those in small
        reading = Reading(k, own, categories, nulls, chance)
        found.append((split_columns(pa.table({one.name: one.array}), one.people, reading)[0], one.people))
    return found


def _without_signed_zero(array: pa.Array) -> pa.Array:
    """Write -0.0 as 0.0: an engine that counts them as one value may show either."""
    return pc.add(array, pa.scalar(0.0, array.type)) if pa.types.is_floating(array.type) else array


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
        coded = _without_signed_zero(parts.array).dictionary_encode()
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
        array = _without_signed_zero(whole(values))
        codes = self.codes_of(array)
        if (codes < 0).any():
            raise ValueError(f'column "{self.column.name}" has other values than before; it may have changed.')
        return replace(self.column, codes=codes, array=array)

    def codes_of(self, array: pa.Array) -> Ints:
        """Return the choice of each value; -1 for one that there was not."""
        found = pc.index_in(_without_signed_zero(array), value_set=self.known, skip_nulls=True)
        places = found.fill_null(len(self.codes)).to_numpy(zero_copy_only=False)
        codes = np.append(self.codes, self.other_code)[places]
        if array.null_count:
            codes[array.is_null().to_numpy(zero_copy_only=False)] = self.null_code
        return np.asarray(codes)


def choice_counts(scheme: Scheme, counted: Counted) -> Ints:
    """Count the rows of the table that have each choice of a column."""
    codes = scheme.codes_of(counted.values)
    return np.bincount(codes, counted.rows, scheme.column.choices).astype(np.int64)


def applied(schemes: Sequence[Scheme], rows: pa.Table) -> list[ColumnParts]:
    """Split rows of the table."""
    return [scheme.applied(rows.column(scheme.column.name)) for scheme in schemes]
