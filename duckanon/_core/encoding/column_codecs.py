"""One column as rows of a matrix, features x records, and back: standardised numbers, +-1 groups."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from duckanon._core.common.arrays import Bools, Floats, Ints, Reals, sql_type
from duckanon._core.encoding import arrow
from duckanon._core.encoding.coordinates import Places, shared_out

LARGEST = 1e150  # squares of larger numbers, summed, come near the largest double


def above(codes: Ints, low: int) -> Floats:
    """Subtract a code from codes, exactly even where the difference does not fit a signed 64-bit integer."""
    if len(codes) == 0:
        return np.zeros(0)
    if int(codes.min()) - low >= -(2**63) and int(codes.max()) - low < 2**63:
        return np.subtract(codes, low, dtype=np.int64).astype(np.float64)
    unsigned, base = codes.view(np.uint64), np.uint64(low % 2**64)
    return np.where(codes >= low, (unsigned - base).astype(np.float64), -(base - unsigned).astype(np.float64))


@dataclass(frozen=True)
class NumberColumn:
    """A number, date or time: one standardised row, and a +-1 row that says where it was NULL if it ever was.

    Attributes:
        low, high: Its range: codes (see `arrow.codes_of`) for whole steps, floats otherwise.
        step: For codes: all are `low` plus a multiple of it.
        decimals: For floats: the decimals that they are rounded to (negative: powers of ten); None where no six
            suffice.
        logged: Whether the logarithm is standardised instead of the number.
        mean, deviation: Of what is standardised, codes counted from `low`, over the rows that are not NULL.
        nullable: Whether there is a second row.
    """

    name: str
    type: pa.DataType
    low: int | float
    high: int | float
    step: int
    decimals: int | None
    logged: bool
    mean: float
    deviation: float
    nullable: bool

    @property
    def width(self) -> int:
        """The number of matrix columns."""
        return 2 if self.nullable else 1

    def fill(self, array: pa.Array, out: Reals) -> None:
        """Write the rows of the matrix for these records; NULL is filled with the mean."""
        valid = arrow.valid_of(array)
        numbers = self._numbers(array)
        with np.errstate(over="ignore", invalid="ignore"):
            if self.logged:
                lowest = self._from_zero
                shifted = numbers + lowest if self._exact else numbers
                numbers = np.log(np.maximum(shifted, lowest))  # a number that is not positive: as the smallest one
            row = np.subtract(numbers, self.mean, dtype=np.float64)
            row /= self.deviation
        if valid is not None:
            row[~valid] = 0.0
        if not math.isfinite(float(row.sum())):
            raise ValueError(f'column "{self.name}" holds NaN or infinity; remove these rows or set them to NULL.')
        out[0] = row
        if self.nullable:
            out[1] = -1.0
            if valid is not None:
                out[1][~valid] = 1.0

    def back(self, rows: Reals) -> pa.Array:
        """Return the numbers of these records: rounded to the column's own steps, inside its range."""
        values = np.multiply(rows[0], self.deviation, dtype=np.float64)
        values += self.mean
        if self.logged:
            top = float(self.high - self.low) + self._from_zero if self._exact else float(self.high)
            np.clip(values, math.log(self._from_zero), math.log(top), out=values)
            np.exp(values, out=values)
            if self._exact:
                values -= self._from_zero
        valid = rows[1] <= 0 if self.nullable else None
        return arrow.array_of(self.codes(values) if self._exact else self._rounded(values), self.type, valid)

    @property
    def _exact(self) -> bool:
        return isinstance(self.low, int)

    @property
    def _from_zero(self) -> float:
        """The smallest number, in code steps for codes."""
        return float(self.low - arrow.zero_of(self.type)) if isinstance(self.low, int) else self.low

    def _numbers(self, array: pa.Array) -> Reals:
        if array.type != self.type:
            if arrow.is_moment(self.type):
                array = array.cast(self.type, safe=False)
            elif arrow.kind_of(self.name, array.type) == "category":
                raise ValueError(
                    f'column "{self.name}" must hold numbers ({sql_type(self.type)}); got {sql_type(array.type)}.'
                )
            else:
                values = arrow.real_values(array)
                return values * 10.0 ** arrow.scale_of(self.type) - self._from_zero if self._exact else values
        return above(arrow.codes_of(self.name, array), int(self.low)) if self._exact else arrow.floats_of(array)

    def codes(self, values: Floats) -> Ints:
        """Return the codes of numbers counted from `low`, on the column's steps and inside its range; `values` goes."""
        steps = (int(self.high) - int(self.low)) // self.step
        highest = float(steps)
        if int(highest) > steps:  # rounded up: past 2^53 steps not every count is a double
            highest = math.nextafter(highest, 0.0)
        values /= self.step
        counts = np.clip(np.rint(values, out=values), 0.0, highest, out=values).astype(np.uint64)
        counts *= np.uint64(self.step)
        counts += np.uint64(int(self.low) % 2**64)  # wraps around, as two's complement does
        return counts.view(np.int64)

    def _rounded(self, values: Floats) -> Floats:
        if self.decimals is not None:
            np.round(values, self.decimals, out=values)
            values += 0.0  # -0.0, which a small negative number is rounded to, becomes 0.0
        return np.clip(values, self.low, self.high, out=values)


@dataclass(frozen=True)
class CategoryColumn:
    """Texts or booleans: one +-1 row for two values, else one for each value, sorted, NULL being one more, the last."""

    name: str
    type: pa.DataType
    values: tuple[Any, ...]

    @property
    def width(self) -> int:
        """The number of matrix columns."""
        return 1 if len(self.values) == 2 else len(self.values)

    def fill(self, array: pa.Array, out: Reals) -> None:
        """Write the rows of the matrix for these records; a value that was never seen is 0 or -1 throughout."""
        if arrow.kind_of(self.name, array.type) != "category":
            raise ValueError(
                f'column "{self.name}" must hold categories ({sql_type(self.type)}); got {sql_type(array.type)}.'
            )
        indices, listed = arrow.indices_of(array)
        known = {value: code for code, value in enumerate(self.values)}
        unknown = len(self.values)
        codes = np.array([*(known.get(value, unknown) for value in listed), known.get(None, unknown)], np.intp)
        if self.width == 1:
            out[0] = np.array([-1.0, 1.0, 0.0], out.dtype)[codes].take(indices, mode="wrap")  # -1, NULL, is the last
            return
        out[:] = -1.0
        rows = codes.take(indices, mode="wrap")
        records = np.arange(len(rows))
        if (codes == unknown).any():
            records = np.flatnonzero(rows < unknown)
            rows = rows[records]
        out[rows, records] = 1.0

    def back(self, rows: Reals) -> pa.Array:
        """Return the category of every record: by sign, or the largest of its group."""
        if self.width == 1:
            return arrow.categories_of((rows[0] > 0).astype(np.int16), list(self.values), self.type)
        return arrow.categories_of(_largest(rows), list(self.values), self.type)


@dataclass(frozen=True)
class PlacedColumn(CategoryColumn):
    """Texts of many values: a few rows for the coordinates of the values in place of one for each.

    Each value comes back as often, in proportion, as rows held it.
    """

    places: Places

    @property
    def width(self) -> int:
        """The number of matrix columns."""
        return int(self.places.coordinates.shape[1])

    def fill(self, array: pa.Array, out: Reals) -> None:
        """Write the rows of the matrix for these records; a value that was never seen is in the middle."""
        indices, listed = arrow.indices_of(array)
        known = {value: code for code, value in enumerate(self.values)}
        codes = [*(known.get(value, -1) for value in listed), known.get(None, -1)]
        coordinates = np.vstack([self.places.coordinates, np.zeros(self.width, np.float32)])[codes]
        out[:] = coordinates.T.take(indices, axis=1, mode="wrap")  # -1, NULL, is the last

    def back(self, rows: Reals) -> pa.Array:
        """Return the category of every record: a near one, each as often as it was."""
        wanted = shared_out(self.places.counts, rows.shape[1])
        return arrow.categories_of(self.places.assigned(rows.T, wanted), list(self.values), self.type)


SpectralColumn = NumberColumn | CategoryColumn


def _largest(rows: Reals) -> NDArray[np.int16]:
    """Return the index of the largest row for every column, without the transposition of numpy's argmax."""
    best = rows[0].copy()
    winner = np.zeros(rows.shape[1], np.int16)
    above_best: Bools = np.empty(rows.shape[1], np.bool_)
    for index in range(1, len(rows)):
        np.greater(rows[index], best, out=above_best)
        np.copyto(winner, np.int16(index), where=above_best)
        np.maximum(best, rows[index], out=best)
    return winner
