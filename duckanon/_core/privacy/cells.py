"""Released cells that hold several values each: what they hold, a draw from them, and whom they single out.

A cell is an interval or a list of values. Each value that a cell holds is equally likely to be drawn; 64 points stand
for an interval where means and variances are computed. A row singles a person out if its cells hold nobody else: people
are packed into bits, and the bits of a row's cells are combined, eight people at a time. The first 5,000 people are
looked at, and only the rows that hold one of them are compared with the rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from duckanon._core.common.arrays import Bools, Floats, Ints, Matrix
from duckanon._core.common.row_keys import find_distinct_rows

MISSING = np.inf
"""What stands for NULL among the values that cells hold: beyond every number."""
_POINTS = 64  # stand for all values of an interval: its variance comes out at most 1/4,000 too small
_BLOCK = 1 << 24  # pairs of a cell and a record that are looked at in one go
_RECORDS = 5_000  # records looked at first; only cells that hold one of them are looked at again
_BITS = np.array([bin(byte).count("1") for byte in range(256)], np.uint8)


@dataclass(frozen=True)
class CellColumn:
    """A column of cells. A cell is an interval, or a list of values; one that is neither holds nothing.

    Attributes:
        codes: Of each released row, the number of its cell.
        low, high: The ends of every interval, both inside, infinite where it has no end; NaN where the cell is no
            interval. From minus to plus infinity it holds `MISSING` too.
        starts, members: The values that cell i lists are ``members[starts[i]:starts[i + 1]]``.
        limits: The original's smallest and largest value, which intervals without an end are drawn up to.
        step: 1 where only whole numbers occur, otherwise 0.
        decimals: That numbers drawn from an interval are rounded to; None: they are not.
    """

    codes: Ints
    low: Floats
    high: Floats
    starts: Ints
    members: Floats
    limits: tuple[float, float]
    step: float = 0.0
    decimals: int | None = None

    def holds(self, cells: Ints, values: Floats) -> Bools:
        """Tell which of the cells hold which of the values: a row for every cell."""
        held = (self.low[cells, None] <= values) & (values <= self.high[cells, None])
        sizes = np.diff(self.starts)[cells]
        if sizes.any():
            different, indexes = np.unique(values, return_inverse=True)
            listing = np.repeat(np.arange(len(cells)), sizes)
            offsets = np.arange(len(listing)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
            wanted = self.members[np.repeat(self.starts[cells], sizes) + offsets]
            index = np.minimum(np.searchsorted(different, wanted), len(different) - 1)
            is_listed = different[index] == wanted
            table = np.zeros((len(cells), len(different)), bool)
            table[listing[is_listed], index[is_listed]] = True
            held |= table[:, indexes.reshape(-1)]
        return np.asarray(held)

    def draw(self, random: np.random.Generator) -> Floats:
        """Draw a value for every released row, each that its cell holds equally likely; `MISSING` if there is none."""
        return self._at(self.codes, random.random(len(self.codes)))

    def points(self) -> tuple[Floats, Ints]:
        """Return values that stand for what each cell holds, and how many each has: all of a list, 64 of an interval.

        Whole numbers are all there where they are not more.
        """
        start, end = self._ends()
        counts = np.where(start == end, 1, _POINTS)
        if self.step:
            counts = np.minimum(np.where(np.isnan(start), 1, end - start + 1), _POINTS).astype(np.int64)
        counts = np.where(np.isnan(start), np.maximum(np.diff(self.starts), 1), counts)
        cells = np.repeat(np.arange(len(counts)), counts)
        rank = np.arange(len(cells)) - np.repeat(np.cumsum(counts) - counts, counts)
        return self._at(cells, (rank + 0.5) / counts[cells]), counts

    def _ends(self) -> tuple[Floats, Floats]:
        """Return the ends of intervals, cut at the limits where they have none."""
        low, high = self.limits
        with np.errstate(invalid="ignore"):
            start = np.where(np.isneginf(self.low), np.minimum(low, self.high), self.low)
            end = np.where(np.isposinf(self.high), np.maximum(high, start), self.high)
        return start, end

    def _at(self, cells: Ints, share: Floats) -> Floats:
        """Return the value at a share, from 0 up to 1, of what each cell holds."""
        start, end = self._ends()
        length = (end - start + self.step)[cells]
        values = start[cells] + (np.floor(share * length) if self.step else share * length)
        if self.decimals is not None:
            values = np.where(length > 0, np.round(values, self.decimals), values)
        values = np.clip(values, start[cells], end[cells])
        sizes = np.diff(self.starts)[cells]
        listed = np.flatnonzero(sizes)
        chosen = self.starts[cells[listed]] + np.floor(share[listed] * sizes[listed]).astype(np.int64)
        values[listed] = self.members[chosen]
        return np.where(np.isnan(values), MISSING, values)


@dataclass(frozen=True)
class ReleasedCells:
    """A release whose rows hold more than one value each.

    Attributes:
        variances: Of what the cells hold, of the shape of the released matrix, which has their means.
        original, reference: People in the numbers of the columns, see `count_singled_out`.
    """

    variances: Matrix
    columns: Sequence[CellColumn]
    original: Floats
    reference: Floats | None


def make_value_column(values: Floats) -> CellColumn:
    """Take released values as cells that hold nothing else."""
    different, codes = np.unique(values, return_inverse=True)
    none = np.full(len(different), np.nan)
    return CellColumn(
        codes.reshape(-1).astype(np.int64), none, none, np.arange(len(different) + 1), different, (0.0, 0.0)
    )


def count_singled_out(records: Floats, columns: Sequence[CellColumn], random: np.random.Generator) -> tuple[int, int]:
    """Count people whom a released row singles out, its cells holding nobody else, and people without an equal.

    The latter could be. Records have one column per released one: numbers, and codes of categories. Of more than 5,000
    some are drawn.
    """
    distinct = find_distinct_rows(np.where(np.isposinf(records), np.finfo(np.float64).max, records))
    order = random.permutation(len(distinct.firsts))
    people, is_single = records[distinct.firsts[order]], distinct.counts[order] == 1
    labels = np.column_stack([column.codes for column in columns])
    classes = labels[find_distinct_rows(labels.astype(np.float64)).firsts]
    first = people[:_RECORDS]
    counts, persons = count_members(classes, columns, first)
    holders = np.flatnonzero((counts == 1) & is_single[persons])
    held = persons[holders]
    for start in range(_RECORDS, len(people), _RECORDS):
        if not len(holders):
            break
        is_free = count_members(classes[holders], columns, people[start : start + _RECORDS])[0] == 0
        holders, held = holders[is_free], held[is_free]
    return len(np.unique(held)), int(is_single[:_RECORDS].sum())


def count_members(classes: Ints, columns: Sequence[CellColumn], people: Floats) -> tuple[Ints, Ints]:
    """Count the people whom all cells of a class hold; return also the first of them, 0 where there is none.

    A class is a row of the numbers of its cells, -1 where a column is not asked.
    """
    counts, persons = np.zeros(len(classes), np.int64), np.zeros(len(classes), np.int64)
    step = max(1, _BLOCK // len(people))
    everybody = np.packbits(np.ones(len(people), bool))
    for start in range(0, len(classes), step):
        part = classes[start : start + step]
        packed = np.repeat(everybody[None], len(part), axis=0)
        for index, column in enumerate(columns):
            cells, inverse = np.unique(part[:, index], return_inverse=True)
            held = column.holds(np.maximum(cells, 0), people[:, index])
            held[cells < 0] = True
            packed &= np.packbits(held, axis=1)[inverse.reshape(-1)]
        counts[start : start + step] = _BITS[packed].sum(axis=1, dtype=np.int64)
        byte = np.argmax(packed > 0, axis=1)
        bits = np.unpackbits(packed[np.arange(len(part)), byte][:, None], axis=1)
        persons[start : start + step] = np.where(bits.any(axis=1), 8 * byte + np.argmax(bits, axis=1), 0)
    return counts, persons
