"""The wide matrix of one pass: everything that the encoded matrix may turn out to need, and its sums and products."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from duckanon._core.common.arrays import Bools, Floats


@dataclass
class Wide:
    """Rows of numbers, given out to columns as they need them, for one batch of records at a time.

    Sums and products of the rows over all batches grow by zeros, for a new category was absent before.
    """

    size: int = 0
    totals: Floats = field(default_factory=lambda: np.zeros(0))
    products: Floats = field(default_factory=lambda: np.zeros((0, 0)))
    _cells: Floats = field(default_factory=lambda: np.zeros((0, 0)))
    _records: int = 0

    def next(self) -> int:
        """Give out one more row."""
        self.size += 1
        return self.size - 1

    def start(self, records: int) -> None:
        """Begin a batch: all zeros."""
        self._records = records
        if self._cells.shape[0] < self.size or self._cells.shape[1] < records:
            self._cells = np.zeros((self.size, records))
        self.rows().fill(0.0)  # rows that were not given out yet are zeros anyway

    def rows(self) -> Floats:
        """Return the rows of this batch, for the columns to write into; to be asked for again after `next`."""
        if self.size > len(self._cells):  # at least twice as many: categories come one by one
            self._cells = np.pad(self._cells, ((0, max(self.size, 2 * len(self._cells)) - len(self._cells)), (0, 0)))
        return self._cells[: self.size, : self._records]

    def finish(self) -> None:
        """End a batch: add it to the sums."""
        rows = self.rows()
        grown = self.size - len(self.totals)
        if grown:
            self.totals = np.pad(self.totals, (0, grown))
            self.products = np.pad(self.products, (0, grown))
        self.totals += rows.sum(axis=1)
        self.products += rows @ rows.T


@dataclass
class Shifted:
    """A number moved and scaled by what the first batch says, so that sums of its powers lose nothing."""

    slot: int
    shift: float = 0.0
    scale: float = 0.0
    cubes: float = 0.0

    def write(self, numbers: Floats, valid: Bools | None, wide: Wide, cubes: bool) -> None:
        """Write the moved and scaled numbers, which are those of the valid records, and add up their cubes if asked."""
        if self.scale == 0.0:
            self.shift = float(numbers.mean())
            deviation = float(np.abs(numbers - self.shift).mean())
            self.scale = deviation if deviation > 0 else max(abs(self.shift), 1e-200)
        row = wide.rows()[self.slot]
        moved = np.subtract(numbers, self.shift, out=row if valid is None else None)
        moved /= self.scale
        if valid is not None:
            row[valid] = moved
        if cubes:
            with np.errstate(over="ignore", invalid="ignore"):
                self.cubes += float(np.dot(moved * moved, moved))

    def moments(self, count: int, wide: Wide) -> tuple[float, float, float]:
        """Return mean, standard deviation and skewness of the moved and scaled numbers."""
        squares = float(wide.products[self.slot, self.slot])
        mean = float(wide.totals[self.slot]) / count
        variance = squares / count - mean * mean
        if not variance > 0:
            return mean, 0.0, 0.0
        with np.errstate(over="ignore", invalid="ignore"):
            third = np.float64(self.cubes) / count - 3 * mean * squares / count + 2 * np.float64(mean) ** 3
            return mean, math.sqrt(variance), float(third / np.float64(variance) ** 1.5)
