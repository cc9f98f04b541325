"""MDAV, the maximum distance to average vector: groups of k around the records that are farthest out.

The record farthest from the mean of what is left gathers its nearest neighbours until k people are together, then the
record farthest from that one does, and so on. The records left are the first columns of an array whose holes the last
ones fill, so each look at them is one pass over memory. The time grows with the square of the records divided by k:
a second for 10,000 records. Parts of a larger table are grouped many at once (`group_parts`).

References:
    MDAV, Algorithm MDAV-generic.
"""

from __future__ import annotations

import numpy as np

from duckanon._core.common import progress
from duckanon._core.common.arguments import check_arguments
from duckanon._core.common.arrays import Bools, Floats, Ints, Matrix
from duckanon._core.common.people import NOBODY, refuse_large_k
from duckanon._core.common.rules import Whole

_BLOCK_CELLS = 100_000
"""Numbers that are worked on at once: they stay within the processor's cache."""


@check_arguments(k=Whole(2))
def mdav(points: Matrix, k: int, people: Ints | None = None) -> Ints:
    """Group records around those that are farthest from the mean of what is left.

    MDAV, Algorithm MDAV-generic: while 3k or more are left, the record farthest from the mean of those left gathers its
    k - 1 nearest, then the record farthest from that one does; of fewer than 3k the farthest gathers k, and the others
    are a group, as are fewer than 2k.  Where people are told apart a record gathers until k different people are
    together, and the 2k and 3k count people.  The last group would then hold whatever is left of people with many
    records: it takes k people, and the other records go to the groups that they are nearest to.

    Each group costs a look at all records left: time grows with the square of the records, divided by k.

    Examples:
        >>> mdav(np.array([[1.0], [2.0], [3.0], [41.0], [42.0], [49.0]]), 3).tolist()
        [1, 1, 1, 0, 0, 0]
    """
    refuse_large_k(k, len(points), people)
    left = _Ungrouped(points, k, people)
    while left.people >= 3 * k:
        progress.advance(1 - left.count / len(points))
        distance = left.measure_from(left.find_farthest())
        opposite = left.find_farthest(distance)
        left.gather(distance)
        left.gather(left.measure_from(opposite))
    if left.people >= 2 * k:
        left.gather(left.measure_from(left.find_farthest()))
    return left.finish()


class _Ungrouped:
    """The records without a group: the first `count` columns of an array, whose holes the last ones fill."""

    def __init__(self, points: Matrix, k: int, people: Ints | None) -> None:
        self._points, self._k, self._person_of_row = points, k, people
        self._columns = np.ascontiguousarray(points.T)
        self._room = np.empty_like(self._columns)
        self._record = np.arange(len(points))
        self._group = np.full(len(points), -1)
        self._groups = 0
        self.count = self.people = len(points)
        if people is not None:
            self._records_of = np.bincount(people[people != NOBODY])
            self.people = int(np.count_nonzero(self._records_of))

    def find_farthest(self, distance: Floats | None = None) -> Floats:
        """Return a copy of the record with the largest distance, to the mean unless another is asked for."""
        distance = self.measure_from() if distance is None else distance
        return self._columns[:, int(distance.argmax())].copy()

    def measure_from(self, point: Floats | None = None) -> Floats:
        """Return the squared distance of each record to a point, or to the mean of all."""
        point = self._columns[:, : self.count].mean(axis=1) if point is None else point
        room = np.subtract(self._columns[:, : self.count], point[:, np.newaxis], out=self._room[:, : self.count])
        squares: Floats = np.multiply(room, room, out=room).sum(axis=0)
        return squares

    def gather(self, distance: Floats) -> None:
        """Make a group of the nearest records, k of them or as many as k people need."""
        if self._person_of_row is None:
            self._take(np.argpartition(distance, self._k - 1)[: self._k])
            return
        nearest = 4 * self._k  # mostly enough for k people, in a hundredth of the time that sorting all would take
        while True:
            nearest = min(nearest, self.count)
            indices = np.argpartition(distance, nearest - 1)[:nearest]
            indices = indices[np.lexsort((indices, distance[indices]))]
            people = self._person_of_row[self._record[indices]]
            firsts = np.sort(np.unique(people, return_index=True)[1])
            firsts = firsts[people[firsts] != NOBODY]
            if len(firsts) >= self._k:
                self._take(indices[: firsts[self._k - 1] + 1])
                return
            nearest *= 4

    def finish(self) -> Ints:
        """Group the records that are left: the last k people, whose spare records join the nearest groups."""
        if self._person_of_row is None:
            self._take(np.arange(self.count))
            return self._group
        self.gather(self.measure_from())
        left = self._record[: self.count]
        sizes = np.bincount(self._group[self._group >= 0])
        grouped = self._group >= 0
        means = np.stack([np.bincount(self._group[grouped], x[grouped]) / sizes for x in self._points.T], axis=1)
        for start in range(0, len(left), 256):
            progress.check()
            apart = self._points[left[start : start + 256], np.newaxis] - means
            self._group[left[start : start + 256]] = np.einsum("rgc,rgc->rg", apart, apart).argmin(axis=1)
        return self._group

    def _take(self, indices: Ints) -> None:
        """Give a group's number to records, and let the last ones fill their columns."""
        taken = self._record[indices]
        self._group[taken] = self._groups
        self._groups += 1
        if self._person_of_row is not None:
            people = self._person_of_row[taken]
            np.subtract.at(self._records_of, people[people != NOBODY], 1)
            self.people -= int(np.count_nonzero(self._records_of[np.unique(people[people != NOBODY])] == 0))
        else:
            self.people -= len(indices)
        self.count -= len(indices)
        is_hole = indices < self.count
        stays = np.ones(len(indices), np.bool_)
        stays[indices[~is_hole] - self.count] = False
        last = self.count + np.flatnonzero(stays)
        self._columns[:, indices[is_hole]] = self._columns[:, last]
        self._record[indices[is_hole]] = self._record[last]


def group_parts(points: Matrix, part: Ints, k: int) -> Ints:
    """Group the records of each part by MDAV, many parts at once; no group has records of two.

    Parts are numbered from 0, hold at least k records and are about equally large.
    """
    sizes = np.bincount(part)
    by_part = np.split(np.argsort(part, kind="stable"), np.cumsum(sizes)[:-1])
    group = np.empty(len(points), np.int64)
    groups = 0
    step = max(1, _BLOCK_CELLS // (int(sizes.max()) * points.shape[1]))
    for start in range(0, len(by_part), step):
        progress.advance(start / len(by_part))
        block = by_part[start : start + step]
        rows = np.full((len(block), max(map(len, block))), -1)
        for line, members in zip(rows, block, strict=True):
            line[: len(members)] = members
        within, count = _group_block(points, rows, k)
        group[rows[rows >= 0]] = groups + within[rows >= 0]
        groups += count
    return group


def _group_block(points: Matrix, rows: Ints, k: int) -> tuple[Ints, int]:
    """Group the records of parts, one a line filled up with -1; return the groups in the same shape, and how many."""
    group = np.full(rows.shape, -1)
    groups = 0
    lines, indices = np.arange(len(rows)), np.tile(np.arange(rows.shape[1]), (len(rows), 1))
    is_left, values = rows >= 0, points[np.maximum(rows, 0)]
    while True:
        progress.check()
        count = is_left.sum(axis=1)
        goes_on = count >= 2 * k
        for line in np.flatnonzero(~goes_on):
            group[lines[line], indices[line][is_left[line]]] = groups
            groups += 1
        if not goes_on.any():
            return group, groups
        lines, count = lines[goes_on], count[goes_on]
        is_left, values, indices = _drop_grouped_records(
            is_left[goes_on], values[goes_on], indices[goes_on], int(count.max())
        )
        every = np.arange(len(lines))
        means = np.einsum("psc,ps->pc", values, is_left) / count[:, np.newaxis]
        farthest = np.where(is_left, measure_distances(values, means), -1.0).argmax(axis=1)
        distance = measure_distances(values, values[every, farthest])
        opposite = values[every, np.where(is_left, distance, -1.0).argmax(axis=1)]
        near = np.argpartition(np.where(is_left, distance, np.inf), k - 1, axis=1)[:, :k]
        group[lines[:, np.newaxis], np.take_along_axis(indices, near, 1)] = groups + every[:, np.newaxis]
        np.put_along_axis(is_left, near, False, axis=1)
        groups += len(every)
        both = np.flatnonzero(count >= 3 * k)
        if len(both):
            distance = np.where(is_left[both], measure_distances(values[both], opposite[both]), np.inf)
            near = np.argpartition(distance, k - 1, axis=1)[:, :k]
            numbers = groups + np.arange(len(both))[:, np.newaxis]
            group[lines[both][:, np.newaxis], np.take_along_axis(indices[both], near, 1)] = numbers
            is_left[both[:, np.newaxis], near] = False
            groups += len(both)


def _drop_grouped_records(is_left: Bools, values: Floats, indices: Ints, most: int) -> tuple[Bools, Floats, Ints]:
    """Leave out what is grouped already, where that is a fifth or more."""
    if most > 0.8 * is_left.shape[1]:
        return is_left, values, indices
    order = np.argsort(~is_left, axis=1, kind="stable")[:, :most]
    return (
        np.take_along_axis(is_left, order, 1),
        np.take_along_axis(values, order[:, :, np.newaxis], 1),
        np.take_along_axis(indices, order, 1),
    )


def measure_distances(values: Floats, centres: Matrix) -> Matrix:
    """Return the squared distances of each part's records to its centre."""
    apart = values - centres[:, np.newaxis]
    squares: Matrix = np.einsum("psc,psc->ps", apart, apart)
    return squares
