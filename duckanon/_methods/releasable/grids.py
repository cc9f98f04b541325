"""The numbers that a column can hold, as places: whole numbers that count them from below.

A place is the index of a number on its column's grid: codes of whole numbers and dates, decimals, or the bits of
floats, which are in the order of the floats. On places it is exact which numbers are equal, which are neighbours, and
which are free, at one `searchsorted` for a column (`find_free_places`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from duckanon._core.common.arrays import Array, Bools, Floats, Ints, find_run_starts
from duckanon._core.common.people import count_people
from duckanon._core.encoding.arrow import buffer_type, find_valid, make_array, read_codes, read_floats, zero_of
from duckanon._core.encoding.column_codecs import NumberColumn, subtract_code
from duckanon._core.encoding.column_split import USUAL
from duckanon._core.encoding.parts import ColumnParts

_SPARE_BITS = 2  # of a float: with fewer, neighbours of so many decimals could be the same float


@dataclass(frozen=True)
class Grid(ABC):
    """The places of a column's values: whole numbers in their order, `step` apart.

    Attributes:
        shared: Values of more digits than the grid's that stand for their places, since many people share them: their
            places, ascending, and the values, codes or floats as the column has them. None where there are none.
    """

    column: NumberColumn
    shared: tuple[Ints, Array] | None = field(default=None, kw_only=True)

    @property
    def step(self) -> int:
        """The distance of neighbours."""
        return 1

    @property
    def origin(self) -> float:
        """The number from which the grid's own numbers are counted."""
        return 0.0

    @abstractmethod
    def numbers(self, places: Ints) -> Floats:
        """Return the numbers at places, from an origin of the grid's own."""

    @abstractmethod
    def nearest(self, numbers: Floats) -> Ints:
        """Return the places nearest to such numbers."""

    def places(self, array: pa.Array) -> Ints:
        """Return the place of every value; what stands at NULLs is arbitrary."""
        return self.nearest(read_floats(array).astype(np.float64))

    def array(self, places: Ints, valid: Bools | None) -> pa.Array:
        """Return the values at places, in the column's type."""
        values = self._values(places)
        if self.shared is not None and len(places):
            at, exact = self.shared
            index = np.minimum(np.searchsorted(at, places), len(at) - 1)
            values = np.where(at[index] == places, exact[index], values)
        return make_array(values, self.column.type, valid)

    def _values(self, places: Ints) -> Array:
        """Return the grid's own values at places, as codes or as floats."""
        return self.numbers(places)


@dataclass(frozen=True)
class Steps(Grid):
    """Whole numbers, decimals, dates and times: `low` plus a multiple of the column's step."""

    @property
    def step(self) -> int:
        """The distance of neighbours."""
        return self.column.step

    @property
    def origin(self) -> float:
        """The smallest value."""
        return float(int(self.column.low) - zero_of(self.column.type))

    def places(self, array: pa.Array) -> Ints:
        """Return the place of every value, the nearest one of a value that is none of them."""
        codes = read_codes(self.column.name, array)
        if self.step == 1:
            return codes
        low = int(self.column.low)
        nearest = (codes - low + self.step // 2) // self.step * self.step + low
        return np.clip(nearest, low, int(self.column.high))

    def numbers(self, places: Ints) -> Floats:
        """Return the numbers at places, counted from the smallest value."""
        return subtract_code(places, int(self.column.low))

    def nearest(self, numbers: Floats) -> Ints:
        """Return the places nearest to such numbers."""
        return self.column.codes(numbers.copy())

    def _values(self, places: Ints) -> Array:
        """Return codes: they are the places."""
        return places


@dataclass(frozen=True)
class Rounded(Grid):
    """Floats of so many decimals."""

    decimals: int

    def numbers(self, places: Ints) -> Floats:
        """Return the numbers at places."""
        tens = 10.0 ** abs(self.decimals)
        whole = places.astype(np.float64)
        return whole / tens if self.decimals >= 0 else whole * tens  # as numpy rounds

    def nearest(self, numbers: Floats) -> Ints:
        """Return the places nearest to numbers."""
        tens = 10.0 ** abs(self.decimals)
        return np.rint(numbers * tens if self.decimals >= 0 else numbers / tens).astype(np.int64)


@dataclass(frozen=True)
class Unrounded(Grid):
    """Any floats: their bits, read as whole numbers, are in the order of the floats that are not negative."""

    def numbers(self, places: Ints) -> Floats:
        """Return the numbers at places."""
        bits = np.where(places < 0, -places, places).astype(self._whole)
        magnitudes = bits.view(buffer_type(self.column.type)).astype(np.float64)
        return np.where(places < 0, -magnitudes, magnitudes)

    def nearest(self, numbers: Floats) -> Ints:
        """Return the places nearest to numbers; -0.0 has the place of 0.0."""
        magnitudes = np.abs(numbers).astype(buffer_type(self.column.type))
        bits = magnitudes.view(self._whole).astype(np.int64)
        return np.where(numbers < 0, -bits, bits)

    @property
    def _whole(self) -> np.dtype[np.signedinteger]:
        return np.dtype(f"i{self.column.type.bit_width // 8}")


def grid_of(column: NumberColumn) -> Grid:
    """Return the grid of a column: that of its steps or decimals, or all floats."""
    if isinstance(column.low, int):
        return Steps(column)
    return Unrounded(column) if column.decimals is None else _grid_of_decimals(column, column.decimals)


def keep_shared_values(
    grid: Grid, column: ColumnParts, people: Ints | None, k: int, chance: np.random.Generator | None
) -> Grid:
    """Let values of more digits than a grid has, that k people share stand for their places; the commonest of several.

    Rounded, what many have would be a value of nobody. `chance` draws how many people more must share each value, up
    to k / 4: at a fixed limit, it would tell whether one of them is there.
    """
    regular = column.array.filter(pa.array(column.is_regular))
    places = grid.places(regular)
    beyond = np.flatnonzero(~pc.equal(grid.array(places, None), regular).to_numpy(zero_copy_only=False))
    if len(beyond) < k:
        return grid
    exact = read_floats(regular) if pa.types.is_floating(column.type) else read_codes(column.name, regular)
    values, index = np.unique(exact[beyond], return_inverse=True)
    holders_of_row = None if people is None else people[np.flatnonzero(column.is_regular)[beyond]]
    holders = count_people(index.astype(np.int64), holders_of_row, len(values))
    more = 0 if chance is None else chance.integers(0, k // 4 + 1, len(values))
    kept = np.flatnonzero(holders >= k + more)
    if not len(kept):
        return grid
    at = grid.places(make_array(values[kept], column.type))
    first = np.lexsort((-holders[kept], at))
    first = first[find_run_starts(at[first])]
    return replace(grid, shared=(at[first], values[kept][first]))


def refine_grid(grid: Grid) -> Grid | None:
    """Return a grid with more places: of floats, one with one more decimal; None where the type has no other."""
    return _grid_of_decimals(grid.column, grid.decimals + 1) if isinstance(grid, Rounded) else None


def _grid_of_decimals(column: NumberColumn, decimals: int) -> Grid:
    digits = np.finfo(buffer_type(column.type)).nmant - _SPARE_BITS
    is_exact = max(-column.low, column.high) * 10.0**decimals <= 2.0**digits
    return Rounded(column, decimals) if is_exact else Unrounded(column)


def places_of(grid: Grid, array: pa.Array) -> Ints:
    """Return the places of a column's values; those of NULLs are 0."""
    valid = find_valid(array)
    if valid is None:
        return grid.places(array)
    places = np.zeros(len(valid), np.int64)
    places[valid] = grid.places(array.drop_null())
    return places


def has_digits(grid: Grid, column: ColumnParts) -> bool:
    """Tell whether a column has the digits of its grid: unrounded numbers only have some that tell them apart."""
    if not pa.types.is_floating(column.type):
        return True
    regular = column.array.filter(pa.array(column.is_regular))
    is_held = pc.equal(grid.array(grid.places(regular), None), regular)
    return bool((pc.sum(is_held).as_py() or 0) >= USUAL * len(regular))


def round_to_digits(grid: Grid | None, column: ColumnParts, array: pa.Array) -> pa.Array:
    """Round values of an unrounded column to the digits at which their holders are counted; all else stays."""
    if grid is None or not pa.types.is_floating(array.type):
        return array
    return array if has_digits(grid, column) else grid.array(places_of(grid, array), find_valid(array))


def find_free_places(places: Ints, taken: Ints, step: int, lowest: int, highest: int) -> Ints | None:
    """Move places that are taken to the nearest free ones of a range; None where every place of it is taken.

    ``taken`` is ascending, each place once; neighbours are a step apart.

    Examples:
        >>> find_free_places(np.array([3, 4, 5, 9]), np.array([3, 4, 5, 6]), 1, 0, 9).tolist()
        [2, 2, 7, 9]
    """
    index = np.minimum(np.searchsorted(taken, places), len(taken) - 1) if len(taken) else np.zeros(0, dtype=np.int64)
    moved = np.flatnonzero(taken[index] == places) if len(taken) else index
    if not len(moved):
        return places
    # Neighbours that are taken make a run, out of which there are two ways.
    begins = np.concatenate([[True], taken[1:] != taken[:-1] + step])
    run = (np.cumsum(begins) - 1)[index[moved]]
    first, last = taken[begins][run], taken[np.append(begins[1:], True)][run]
    can_sink, can_rise = first > lowest, last < highest
    if not (can_sink | can_rise).all():
        return None
    here = places[moved].astype(np.float64)
    rises = can_rise & (~can_sink | (last - here < here - first))
    free = places.copy()
    free[moved[rises]] = last[rises] + step
    free[moved[~rises]] = first[~rises] - step
    return free
