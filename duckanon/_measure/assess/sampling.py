"""Approximate class statistics of many column sets in one pass and fixed memory, by distinct sampling.

For each set of columns the sampler keeps the combinations of values whose hash is below a threshold, with their counts
(Gibbons, VLDB 2001). A combination is sampled with all its rows or not at all, so its count is exact. Where Gibbons
halves the sampling rate when the sample overflows, here the threshold falls to the hash of the first combination that
no longer fits (a bottom-k sample: Cohen and Kaplan, PODC 2007), so the sample stays full.

Where a person has several rows, a combination keeps the smallest and the largest hash of its people in place of a
count: it has one person where they are the same.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from duckanon._core.common.arguments import checked
from duckanon._core.common.arrays import Array, Bools, run_starts
from duckanon._core.common.rules import Whole

Hashes: TypeAlias = "NDArray[np.uint64]"

BYTES_PER_COMBINATION = 48  # at most: a hash and a count, and waiting hashes and their copies while they join
BLOCK_ROWS = 2**16  # rows hashed at a time: the hashes of a block, half a megabyte a column, stay in the cache
PEOPLE_CAPACITY = 2**16  # people who are sampled to estimate their number: a standard error of 0.4 percent
_HASHES = 2.0**64  # how many hashes there are
# The smallest and the largest person of a combination of nobody: never the same, and never one that anybody replaces.
_NOBODY_LOW, _NOBODY_HIGH = np.uint64(2**64 - 1), np.uint64(0)


class Estimate(NamedTuple):
    """Estimates for one set of columns, exact when `rate` is 1.

    An estimate is c / p for c sampled combinations. Its relative standard error is sqrt((1 - p) / (p n)) if n is the
    true number, so sqrt((1 - p) / c) from the sample. Where c is 0 the error is given as for c = 1; then the true
    number is below 3 / p with 95 % confidence.

    Where people are counted, `singletons` is the number of people who are unique in a combination when `rate` is 1, and
    otherwise the estimated number of combinations of one person, which is at least as large: a person who is unique in
    several counts in each.
    """

    columns: tuple[int, ...]  # indices, ascending
    distinct: float  # distinct combinations
    singletons: float  # rows whose combination occurs once
    distinct_error: float  # standard errors of the two
    singletons_error: float
    rate: float  # probability p with which a combination was sampled
    sampled: int  # combinations in the sample


class DistinctSampler:
    """Samples of the distinct combinations of values, one for each of many column sets, as indices of columns.

    With `capacity` combinations for each set, the relative standard error of the number of distinct ones is about 1 /
    sqrt(capacity); memory is at most about `BYTES_PER_COMBINATION` * capacity for each set, whatever the number of
    rows. Samplers with different seeds draw independent samples. With `has_people` people are counted instead of rows.

    Examples:
        >>> sampler = DistinctSampler([(0,), (0, 1)])
        >>> sampler.update([np.array([1, 1, 2], np.uint64), np.array([1, 2, 2], np.uint64)])
        >>> [(estimate.columns, estimate.distinct, estimate.singletons) for estimate in sampler.estimates()]
        [((0,), 2.0, 1.0), ((0, 1), 3.0, 3.0)]
    """

    @checked(capacity=Whole(1))
    def __init__(
        self, sets: Iterable[Iterable[int]], capacity: int = 8192, seed: int = 0, has_people: bool = False
    ) -> None:
        self.rows = 0
        make = _PeopleSample if has_people else _Sample
        self._samples = {columns: make(capacity) for columns in sorted({tuple(sorted(set(s))) for s in sets} - {()})}
        self._people = _Sample(PEOPLE_CAPACITY)
        self._seed = seed

    def update(self, hashes: Sequence[Hashes], people: Hashes | None = None, is_named: Bools | None = None) -> None:
        """Add rows by the 64-bit hashes of every column; equal values, and NULL and NULL, must have equal hashes.

        `people` are hashes of those whose rows they are, and rows that are not `is_named` belong to nobody.
        """
        rows = len(hashes[0])
        used = {column for columns in self._samples for column in columns}
        for start in range(0, rows, BLOCK_ROWS):
            block = slice(start, start + BLOCK_ROWS)
            mixed = {column: _mix(hashes[column][block], _salt(self._seed, column)) for column in used}
            carried: list[Array] = []
            if people is not None and is_named is not None:
                persons, named = _mix(people[block], _salt(self._seed, len(hashes))), is_named[block]
                self._people.add(persons.compress(named))
                carried = [np.where(named, persons, _NOBODY_LOW), np.where(named, persons, _NOBODY_HIGH)]
            for columns, hashed in _set_hashes(self._samples, mixed):
                self._samples[columns].add(hashed, *carried)
        self.rows += rows

    def merge(self, other: DistinctSampler) -> None:
        """Add the rows that another sampler of the same sets and seed has seen."""
        if self._seed != other._seed or self._samples.keys() != other._samples.keys():
            raise ValueError("other must be a sampler of the same sets and seed.")
        for columns, sample in self._samples.items():
            sample.merge(other._samples[columns])
        self._people.merge(other._people)
        self.rows += other.rows

    def people(self) -> Estimate:
        """Estimate the number of different people, as `distinct`."""
        return self._people.estimate(())

    def estimates(self) -> Iterator[Estimate]:
        """Estimate distinct combinations and singletons of each set, in lexicographic order of the sets."""
        for columns, sample in self._samples.items():
            yield sample.estimate(columns)


class _Sample:
    """Combinations of one column set with a hash below a threshold, and how often each occurs."""

    reducers: tuple[np.ufunc, ...] = (np.add,)  # how what is carried with a combination is joined: here its count

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._limit: np.uint64 | None = None  # None as long as every combination is in the sample
        self._keys: Hashes = np.zeros(0, np.uint64)  # ascending
        self._carried: list[Array] | None = None  # None as long as there are no keys
        self._pending: list[tuple[Hashes, ...]] = []
        self._waiting = 0

    def add(self, hashed: Hashes, *carried: Array) -> None:
        columns = (hashed, *carried)
        if self._limit is not None:
            is_below = hashed < self._limit
            columns = tuple(column.compress(is_below) for column in columns)
        self._pending.append(columns)
        self._waiting += len(columns[0])
        if self._waiting >= 2 * self._capacity:
            self._flush()

    def merge(self, other: _Sample) -> None:
        other._flush()
        self._flush()
        if other._limit is not None:
            self._limit = other._limit if self._limit is None else min(self._limit, other._limit)
        if other._carried is not None:
            self._join(other._keys, other._carried)

    def estimate(self, columns: tuple[int, ...]) -> Estimate:
        self._flush()
        rate = 1.0 if self._limit is None else float(self._limit) / _HASHES
        sampled, once = len(self._keys), self._once(self._carried, rate) if self._carried is not None else 0
        errors = [math.sqrt(max(count, 1) * (1 - rate)) / rate for count in (sampled, once)]
        return Estimate(columns, sampled / rate, once / rate, errors[0], errors[1], rate, sampled)

    def _once(self, carried: list[Array], rate: float) -> int:
        return int(np.count_nonzero(carried[0] == 1))

    def _counted(self, pending: list[Array]) -> tuple[Hashes, list[Array]]:
        keys = pending[0]
        keys.sort()
        starts = run_starts(keys)
        return keys.take(starts), [np.diff(starts, append=len(keys))]

    def _flush(self) -> None:
        """Count the waiting hashes."""
        if self._waiting:
            self._join(*self._counted([np.concatenate(parts) for parts in zip(*self._pending, strict=True)]))
        self._pending, self._waiting = [], 0

    def _join(self, keys: Hashes, carried: list[Array]) -> None:
        """Add counted hashes, ascending; then lower the threshold until the sample fits."""
        if self._carried is not None:
            keys = np.concatenate((self._keys, keys))
            carried = [np.concatenate(parts) for parts in zip(self._carried, carried, strict=True)]
        keys, carried = _reduced(keys, carried, self.reducers)
        if len(keys) > self._capacity:
            self._limit = keys[self._capacity] if self._limit is None else min(self._limit, keys[self._capacity])
        if self._limit is not None:
            fit = int(np.searchsorted(keys, self._limit))
            keys, carried = keys[:fit].copy(), [column[:fit].copy() for column in carried]
        self._keys, self._carried = keys, carried


class _PeopleSample(_Sample):
    """The same with the smallest and the largest person of each combination in place of its count."""

    reducers = (np.minimum, np.maximum)

    def _once(self, carried: list[Array], rate: float) -> int:
        lowest, highest = carried
        alone = lowest.compress(lowest == highest)
        return len(alone) if rate < 1 else len(np.unique(alone))

    def _counted(self, pending: list[Array]) -> tuple[Hashes, list[Array]]:
        return _reduced(pending[0], pending[1:], self.reducers)


def _reduced(keys: Hashes, carried: list[Array], reducers: Iterable[np.ufunc]) -> tuple[Hashes, list[Array]]:
    """Return the distinct keys, ascending, and what they carry, joined."""
    order = np.argsort(keys, kind="stable")  # merges two ascending runs in linear time
    keys = keys.take(order)
    starts = run_starts(keys)
    if not len(starts):
        return keys, carried
    joined = [join.reduceat(column.take(order), starts) for join, column in zip(reducers, carried, strict=True)]
    return keys.take(starts), joined


def _set_hashes(sets: Iterable[tuple[int, ...]], mixed: dict[int, Hashes]) -> Iterator[tuple[tuple[int, ...], Hashes]]:
    """Hash the rows of each set from the sum of its columns' hashes; sums of shared leading columns are computed once.

    The sums themselves would not do: over a grid of values they are only pairwise independent, which gives estimates of
    the right variance but with a heavy tail.
    """
    path: list[tuple[int, Hashes]] = []
    for columns in sets:
        shared = 0
        while shared < min(len(path), len(columns)) and path[shared][0] == columns[shared]:
            shared += 1
        del path[shared:]
        for column in columns[shared:]:
            path.append((column, path[-1][1] + mixed[column] if path else mixed[column]))
        yield columns, _mix(path[-1][1], np.uint64(0))


def _salt(seed: int, column: int) -> np.uint64:
    # Steps of 2**64 over the golden ratio lie far apart; seeds are 2**20 steps apart, more than a table has columns.
    return np.uint64(((seed << 20) + column + 1) * 0x9E3779B97F4A7C15 % 2**64)


def _mix(hashed: Hashes, salt: np.uint64) -> Hashes:
    """Scramble hashes with a salt; the leading bits of the result depend on all bits."""
    mixed = hashed + salt
    for _ in range(2):  # after once, evenly spaced sums may have evenly spaced hashes
        mixed ^= mixed >> np.uint64(32)
        mixed *= np.uint64(0xD6E8FEB86659FD93)  # odd, so that no two hashes fall together
    return mixed
