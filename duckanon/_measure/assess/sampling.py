"""Approximate class statistics of many column sets in one pass and fixed memory, by distinct sampling.

For each set of columns the sampler keeps the combinations of values whose hash is below a threshold, with their counts
(Gibbons, VLDB 2001). A combination is sampled with all its rows or not at all, so its count is exact. Where Gibbons
halves the sampling rate when the sample overflows, here the threshold falls to the hash of the first combination that
no longer fits (a bottom-k sample: Cohen and Kaplan, PODC 2007), so the sample stays full.

Where a person has several rows, a combination keeps the smallest and the largest hash of its people in place of a
count: it has one person where they are the same.

Only whether a combination occurs once is asked in the end. So rows of combinations that are known to occur more than
once are dropped as soon as they are recognised, before anything is sorted.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from duckanon._core.common.arguments import check_arguments
from duckanon._core.common.arrays import Bools, find_run_starts
from duckanon._core.common.row_keys import order_keys
from duckanon._core.common.rules import Whole

Hashes: TypeAlias = "NDArray[np.uint64]"
Columns: TypeAlias = "tuple[Hashes, ...]"

BYTES_PER_COMBINATION = 48  # at most: a hash and a count, and waiting hashes and their copies while they join
BLOCK_ROWS = 2**15  # rows hashed at a time: the hashes of a block, 128 kB a column, stay in the cache
PEOPLE_CAPACITY = 2**16  # people who are sampled to estimate their number: a standard error of 0.4 percent
_ONE = np.uint64(1)
_LEAST_BITS, _MOST_LOOKUPS = 10, 3  # slots and tables; after three tables 5 percent of the hashes are left
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

    @check_arguments(capacity=Whole(1))
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
            carried: Columns = ()
            if people is not None and is_named is not None:
                persons, named = _mix(people[block], _salt(self._seed, len(hashes))), is_named[block]
                self._people.add(persons.compress(named))
                carried = (np.where(named, persons, _NOBODY_LOW), np.where(named, persons, _NOBODY_HIGH))
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
    """Combinations of one column set with a hash below a threshold, and which of them occur once."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._limit: np.uint64 | None = None  # None as long as every combination is in the sample
        self._held: Columns | None = None  # what `_reduced` returns, below the limit
        self._pending: list[Columns] = []  # hashes, and what comes with them
        self._waiting = 0
        self._settled: list[_Lookup] = []  # combinations that remain no singletons whatever follows

    def add(self, *columns: Hashes) -> None:
        if self._limit is not None:
            columns = _choose_hashes(columns[0] < self._limit, columns)
        for table in self._settled:
            columns = _choose_hashes(table.is_missing(columns[0]), columns)
        self._pending.append(columns)
        self._waiting += len(columns[0])
        if self._waiting >= 2 * self._capacity:
            self._flush()

    def merge(self, other: _Sample) -> None:
        other._flush()
        if other._limit is not None:
            self._limit = other._limit if self._limit is None else min(self._limit, other._limit)
        if other._held is not None:
            self._pending.append(other._held)
            self._waiting += len(other._held[0])
        self._flush()

    def estimate(self, columns: tuple[int, ...]) -> Estimate:
        self._flush()
        rate = 1.0 if self._limit is None else float(self._limit) / _HASHES
        sampled, once = (0, 0) if self._held is None else (len(self._held[0]), self._once(self._held, rate))
        errors = [math.sqrt(max(count, 1) * (1 - rate)) / rate for count in (sampled, once)]
        return Estimate(columns, sampled / rate, once / rate, errors[0], errors[1], rate, sampled)

    def _flush(self) -> None:
        """Join the waiting hashes with those held; then lower the threshold until the sample fits."""
        if not self._waiting:
            return
        parts = self._pending if self._held is None else [self._held, *self._pending]
        self._pending, self._waiting = [], 0
        held = self._distinct_hashes(tuple(np.concatenate(columns) for columns in zip(*parts, strict=True)))
        if len(held[0]) > self._capacity:
            limit = held[0][self._capacity] | _ONE
            self._limit = limit if self._limit is None else min(self._limit, limit)
        if self._limit is not None:
            fit = int(np.searchsorted(held[0], self._limit))
            held = tuple(column[:fit].copy() for column in held)
        self._held = held
        settled = self._count_settled_keys(held)
        has_many = 2 * len(settled) > len(held[0])  # otherwise they are not worth a look at every row
        self._settled = _lookups(settled, self._limit) if has_many else []

    def _distinct_hashes(self, columns: Columns) -> Columns:
        """Return the distinct hashes, ascending, their last bit cleared where they occur more than once."""
        [keys] = columns
        keys.sort()
        hashes = keys | _ONE
        is_first = np.ones(len(keys) + 1, np.bool_)
        np.not_equal(hashes[1:], hashes[:-1], out=is_first[1:-1])
        first = keys.compress(is_first[:-1])
        first -= first & ~is_first[1:].compress(is_first[:-1])
        return (first,)

    def _count_settled_keys(self, held: Columns) -> Hashes:
        [keys] = held
        return keys.compress(keys & _ONE == 0) | _ONE

    def _once(self, held: Columns, rate: float) -> int:
        return int(np.count_nonzero(held[0] & _ONE))


class _PeopleSample(_Sample):
    """The same with the smallest and the largest person of each combination in place of a bit of its hash."""

    def _distinct_hashes(self, columns: Columns) -> Columns:
        keys, lowest, highest = columns
        order, keys = order_keys(keys)
        starts = find_run_starts(keys)
        lowest, highest = lowest.take(order), highest.take(order)
        return keys.take(starts), np.minimum.reduceat(lowest, starts), np.maximum.reduceat(highest, starts)

    def _count_settled_keys(self, held: Columns) -> Hashes:
        keys, lowest, highest = held
        return keys.compress(lowest < highest)

    def _once(self, held: Columns, rate: float) -> int:
        _, lowest, highest = held
        alone = lowest.compress(lowest == highest)
        return len(alone) if rate < 1 else len(np.unique(alone))


class _Lookup(NamedTuple):
    """Hashes by some of their bits; of several with the same bits there is one."""

    shift: np.uint64
    mask: np.uint64
    table: Hashes

    def is_missing(self, hashes: Hashes) -> Bools:
        slots = hashes >> self.shift
        slots &= self.mask
        missing: Bools = self.table.take(slots.view(np.int64), mode="clip") != hashes
        return missing


def _lookups(hashes: Hashes, limit: np.uint64 | None) -> list[_Lookup]:
    """Return tables that have nearly all of the hashes below a limit: each by the bits that follow the last one's."""
    lookups: list[_Lookup] = []
    shift = 64 if limit is None else int(limit).bit_length()
    while len(hashes) and len(lookups) < _MOST_LOOKUPS:
        bits = max(_LEAST_BITS, len(hashes).bit_length())
        shift = max(shift - bits, 0)
        lookup = _Lookup(np.uint64(shift), np.uint64(2**bits - 1), np.zeros(2**bits, np.uint64))
        lookup.table[hashes >> lookup.shift & lookup.mask] = hashes
        lookups.append(lookup)
        hashes = hashes.compress(lookup.is_missing(hashes))
    return lookups


def _choose_hashes(is_chosen: Bools, columns: Columns) -> Columns:
    rows = is_chosen.nonzero()[0]
    return tuple(column.take(rows) for column in columns)


def _set_hashes(sets: Iterable[tuple[int, ...]], mixed: dict[int, Hashes]) -> Iterator[tuple[tuple[int, ...], Hashes]]:
    """Hash the rows of each set to the product of its columns' odd hashes; that of leading columns is computed once.

    Sums would not do: over a grid of values they are only pairwise independent, which gives estimates of the right
    variance but with a heavy tail. The fourth corner of a rectangle has the hash a + b - c, which is small where the
    others are; of products it is a b / c modulo 2**64, which says nothing about its leading bits.
    """
    path: list[tuple[int, Hashes]] = []
    for columns in sets:
        shared = 0
        while shared < min(len(path), len(columns)) and path[shared][0] == columns[shared]:
            shared += 1
        del path[shared:]
        for column in columns[shared:]:
            path.append((column, path[-1][1] * mixed[column] if path else mixed[column]))
        yield columns, path[-1][1]


def _salt(seed: int, column: int) -> np.uint64:
    # Steps of 2**64 over the golden ratio lie far apart; seeds are 2**20 steps apart, more than a table has columns.
    return np.uint64(((seed << 20) + column + 1) * 0x9E3779B97F4A7C15 % 2**64)


def _mix(hashed: Hashes, salt: np.uint64) -> Hashes:
    """Scramble hashes with a salt, to odd ones; the leading bits of the result depend on all bits."""
    mixed = hashed + salt
    for _ in range(2):  # after once, evenly spaced sums may have evenly spaced hashes
        mixed ^= mixed >> np.uint64(32)
        mixed *= np.uint64(0xD6E8FEB86659FD93)  # odd, so that no two hashes fall together
    return mixed | _ONE
