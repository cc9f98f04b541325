"""The cells of a column as predicates meet them: values, codes with a table of parts, and intervals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from duckanon._core.common.arrays import Array, Bools, Floats, Ints


class Cells(Protocol):
    """The cells of a column in one of the tables."""

    def share(self, number: int, rows: slice) -> Array:
        """Return the part of each row's cell that the predicate covers; booleans where it is all or nothing."""


@dataclass(frozen=True)
class RangeCells:
    """Values and ranges, both as positions among the ends of all ranges: few different codes, quick to compare."""

    codes: npt.NDArray[np.unsignedinteger[Any]]
    low: Ints
    high: Ints

    def share(self, number: int, rows: slice) -> Bools:
        """Tell which values lie in the range."""
        kind = self.codes.dtype.type
        above = self.codes[rows] - kind(self.low[number])  # what is below becomes huge
        return np.asarray(above <= kind(self.high[number] - self.low[number]))


@dataclass(frozen=True)
class TableCells:
    """Codes, and for every predicate the part of each code's cell that it covers."""

    codes: Ints
    shares: Array

    def share(self, number: int, rows: slice) -> Array:
        """Look the parts up."""
        return np.take(self.shares[number], self.codes[rows])


class IntervalCells:
    """Intervals with both ends inside, NaN for none; values are whole numbers (step 1) or any numbers (step 0)."""

    def __init__(self, low: Floats, high: Floats, step: float, ranges: Floats) -> None:
        self._low, self._high, self._ranges = low, high + step, ranges
        length = self._high - low
        self._points = length == 0
        self._any_point = bool(self._points.any())
        with np.errstate(divide="ignore"):
            self._density = np.where(self._points, 0.0, 1 / length)
        self._step = step

    def share(self, number: int, rows: slice) -> Floats:
        """Return the part of each interval that lies in the range."""
        start, end = self._ranges[number]
        low = self._low[rows]
        share = np.minimum(self._high[rows], end + self._step)
        share -= np.maximum(low, start)
        with np.errstate(invalid="ignore"):
            share *= self._density[rows]
        np.fmax(share, 0.0, out=share)  # NULL is in no range
        if self._any_point:
            share += self._points[rows] & (start <= low) & (low <= end)
        return np.asarray(share)
