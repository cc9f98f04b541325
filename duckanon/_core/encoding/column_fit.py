"""Statistics of a column from one pass over a table, and its rows of the pass's wide matrix."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from duckanon._core.common.arrays import Bools, Floats, Ints, Reals, sql_type
from duckanon._core.encoding.arrow import codes_of, floats_of, indices_of, is_moment, storage_of, valid_of, zero_of
from duckanon._core.encoding.column_codecs import LARGEST, CategoryColumn, NumberColumn, PlacedColumn, above
from duckanon._core.encoding.coordinates import Places
from duckanon._core.encoding.identifiers import refuse_distinct_texts, refuse_many_categories
from duckanon._core.encoding.wide import Shifted, Wide

Map: TypeAlias = list[dict[int, float]]  # one matrix column each: coefficients by row of the wide matrix

MOST_DECIMALS = 6
"""Numbers with more decimals count as unrounded."""
_HEAVY_SKEWNESS = 2.0  # that of an exponential distribution: beyond it a logarithm is worth trying
FEWEST_DECIMALS = -6
"""Numbers rounded to millions."""
_SAMPLE = 1024  # rows looked at first: most columns turn out there to have no step or decimals of their own


@dataclass
class NumberSeen:
    """A number, date or time: its range, its steps, and the rows number, logarithm and NULL of the wide matrix."""

    name: str
    type: pa.DataType
    exact: bool
    log: bool | None
    wide: Wide
    count: int = 0
    null_count: int = 0
    low: Any = None
    high: Any = None
    origin: int = 0
    step: int = 0
    decimals: int | None = FEWEST_DECIMALS
    raw: Shifted = field(init=False)
    logs: Shifted | None = None
    null_slot: int | None = None

    def __post_init__(self) -> None:
        self.raw = Shifted(self.wide.next())
        if is_moment(self.type) and self.log is None:
            self.log = False

    def read(self, array: pa.Array) -> None:
        """Look at the next records and write them into the wide matrix: NULL is 0, and 1 in a row of its own."""
        valid = valid_of(array)
        numbers: Any = codes_of(self.name, array) if self.exact else floats_of(array)
        if valid is not None:
            self.null_count += array.null_count
            if self.null_slot is None:
                self.null_slot = self.wide.next()
            self.wide.rows()[self.null_slot] = ~valid
            numbers = numbers[valid]
        if len(numbers) == 0:
            return
        self.count += len(numbers)
        low, high = numbers.min(), numbers.max()
        read = self._read_codes if self.exact else self._read_floats
        shifted = read(numbers, low.item(), high.item())
        if self.log is not False:
            self._read_logs(numbers, valid)
        self.raw.write(shifted, valid, self.wide, self.log is None)

    def finish(self, rows: int, lenient: bool = False) -> tuple[NumberColumn, Map, Floats]:
        """Fit the column; return it with its rows of the affine map from the wide matrix to the encoded one."""
        if self.count == 0:
            raise ValueError(f'column "{self.name}" holds nothing but NULL; leave it out of cols.')
        if self.low == self.high and not self.null_count and not lenient:
            raise ValueError(f'column "{self.name}" has the same value in every row; leave it out of cols.')
        used, logged = self.raw, False
        mean, deviation, skewness = self.raw.moments(self.count, self.wide)
        if self.logs is not None:
            moments_of_logs = self.logs.moments(self.count, self.wide)
            if self.log or (skewness > _HEAVY_SKEWNESS and abs(moments_of_logs[2]) < skewness):
                used, logged = self.logs, True
                mean, deviation, skewness = moments_of_logs
        deviation = deviation or 1.0
        centre = used.shift + used.scale * mean
        from_origin = self.low - self.origin if self.exact and not logged else 0
        centre -= from_origin
        mean = (centre + from_origin - used.shift) / used.scale  # of the centre as it was rounded
        column = NumberColumn(
            name=self.name,
            type=self.type,
            low=self.low,
            high=self.high,
            step=max(self.step, 1),
            decimals=self.decimals,
            logged=logged,
            mean=centre,
            deviation=1.0 if self.low == self.high else used.scale * deviation,
            nullable=self.null_slot is not None,
        )
        map_rows = [{used.slot: 1.0 / deviation}]
        constants = [-mean / deviation]
        if self.null_slot is not None:
            map_rows[0][self.null_slot] = mean / deviation
            map_rows.append({self.null_slot: 2.0})
            constants.append(-1.0)
        return column, map_rows, np.array(constants)

    def _read_logs(self, numbers: Any, valid: Bools | None) -> None:
        zero = zero_of(self.type) if self.exact else 0
        if self.low <= zero:
            if self.log:
                raise ValueError(
                    f'column "{self.name}" has no logarithms: it must hold positive numbers; leave it out of log.'
                )
            self.log, self.logs = False, None
            return
        if self.logs is None:
            self.logs = Shifted(self.wide.next())
        from_zero = above(numbers, zero) if self.exact else numbers.astype(np.float64, copy=False)
        self.logs.write(np.log(from_zero), valid, self.wide, self.log is None)

    def _read_codes(self, codes: Ints, low: int, high: int) -> Floats:
        if is_moment(self.type) and max(-low, high) >= 2 ** (31 if self.type.bit_width == 32 else 63) - 1:
            raise ValueError(f'column "{self.name}" holds NaN or infinity; remove these rows or set them to NULL.')
        if self.low is None:
            self.origin = int(codes[0])
        self.low = low if self.low is None else min(low, self.low)
        self.high = high if self.high is None else max(high, self.high)
        if self.step != 1:
            self._read_steps(codes)
        return above(codes, self.origin)

    def _read_steps(self, codes: Ints) -> None:
        if self.high - self.low >= 2**63:
            self.step = 1
            return
        apart = codes - self.origin
        for part in (apart[:_SAMPLE], apart[_SAMPLE:]):
            if self.step != 1 and (self.step == 0 or (part % self.step).any()):
                self.step = math.gcd(self.step, int(np.gcd.reduce(part)))

    def _read_floats(self, floats: Reals, low: float, high: float) -> Floats:
        if not (math.isfinite(low) and math.isfinite(high)):
            raise ValueError(f'column "{self.name}" holds NaN or infinity; remove these rows or set them to NULL.')
        if max(-low, high) > LARGEST:
            raise ValueError(
                f'column "{self.name}" holds numbers beyond {LARGEST:g}; set them to NULL, or divide the column first.'
            )
        self.low = low if self.low is None else min(low, self.low)
        self.high = high if self.high is None else max(high, self.high)
        doubles = floats.astype(np.float64, copy=False)
        for part in (slice(None, _SAMPLE), slice(_SAMPLE, None)):
            while self.decimals is not None and not _rounded(floats[part], doubles[part], self.decimals):
                self.decimals = self.decimals + 1 if self.decimals < MOST_DECIMALS else None
        return doubles


@dataclass
class CategoriesSeen:
    """Texts or booleans: the values so far, each with a row of its own in the wide matrix."""

    name: str
    type: pa.DataType
    wide: Wide
    count: int = 0
    null_count: int = 0
    values: dict[Any, int] = field(default_factory=dict)

    def read(self, array: pa.Array) -> None:
        """Look at the next records and write them into the wide matrix."""
        indices, listed = indices_of(array)
        listed.append(None)
        present = np.bincount(np.where(indices < 0, len(listed) - 1, indices), minlength=len(listed))
        slots = np.zeros(len(listed), np.intp)
        for index in np.flatnonzero(present):
            value = listed[index]
            if value is None:
                self.null_count += int(present[index])
            if value not in self.values:
                if value is not None:
                    refuse_many_categories(self.name, len(self.values) - (None in self.values) + 1)
                self.values[value] = self.wide.next()
            slots[index] = self.values[value]
        self.count += len(indices)
        self.wide.rows()[slots.take(indices, mode="wrap"), np.arange(len(indices))] = 1.0  # -1, NULL, is the last

    def finish(self, rows: int, lenient: bool = False) -> tuple[CategoryColumn, Map, Floats]:
        """Fit the column; return it with its rows of the affine map from the wide matrix to the encoded one."""
        known = sorted(value for value in self.values if value is not None)
        if len(self.values) == 1 and not lenient:
            what = "the same value in every row" if known else "nothing but NULL"
            raise ValueError(f'column "{self.name}" has {what}; leave it out of cols.')
        if not pa.types.is_boolean(self.type) and not lenient:
            refuse_distinct_texts(self.name, len(known), rows)
            if pa.types.is_dictionary(self.type) and len(known) - 1 > np.iinfo(storage_of(self.type.index_type)).max:
                raise ValueError(
                    f'column "{self.name}" has {len(known)} values, too many for {sql_type(self.type)}; cast it to '
                    "text."
                )
        values = (*known, None) if self.null_count else tuple(known)
        column = CategoryColumn(self.name, self.type, values)
        shown = values[1:] if len(values) == 2 else values
        return column, [{self.values[value]: 2.0} for value in shown], np.full(len(shown), -1.0)


@dataclass
class PlacedSeen:
    """Texts that are whole numbers from 0 on, whose coordinates are given, in rows of their own in the wide matrix."""

    name: str
    type: pa.DataType
    wide: Wide
    places: Places
    null_count: int = 0
    slots: list[int] = field(init=False)

    def __post_init__(self) -> None:
        self.slots = [self.wide.next() for _ in range(self.places.coordinates.shape[1])]

    def read(self, array: pa.Array) -> None:
        """Look at the next records and write them into the wide matrix."""
        indices, listed = indices_of(array)
        codes = np.array([int(value) for value in listed])
        self.wide.rows()[self.slots] = self.places.coordinates[codes].T.take(indices, axis=1)

    def finish(self, rows: int, lenient: bool = False) -> tuple[PlacedColumn, Map, Floats]:
        """Fit the column; return it with its rows of the affine map from the wide matrix to the encoded one."""
        values = tuple(str(code) for code in range(len(self.places.counts)))
        maps = [{slot: 1.0} for slot in self.slots]
        return PlacedColumn(self.name, self.type, values, self.places), maps, np.zeros(len(self.slots))


def _rounded(floats: Reals, doubles: Floats, decimals: int) -> bool:
    rounded = np.round(doubles, decimals)
    return bool((rounded.astype(floats.dtype, copy=False) == floats).all())
