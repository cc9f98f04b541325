"""Growing classes: in many pools at once, one class after the other takes the row that adds least.

A pool has the rows of a few neighbouring classes. A class begins with a random row and takes, again and again, the row
with which it loses least, until it has k; rows that are left join the class to which they add least. Arrays are places
by pools: what a class has is one number a pool, and is compared with all places of its pool along the longer axis,
which numpy does several times quicker than along the shorter one. A pool of n rows takes k n comparisons a class.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from duckanon._core.common.arrays import Array, Bools, Floats, Ints
from duckanon._core.common.people import NOBODY
from duckanon._methods.recode.column_losses import Losses
from duckanon._methods.recode.joins import ClassState, HeldBits, Joins

NEVER = np.float32(np.inf)
_LAST_RESORT = np.float32(1e3)
"""More than any class loses: a row with this added is taken where there is no other."""

_PLACE_BITS = 10
"""The last bits of a score, of 24 that matter, that may tell a place instead."""


class Pools(NamedTuple):
    """Rows of pools, padded to the longest: places by pools."""

    rows: Ints
    is_row: Bools  # which places hold a row, and not padding
    is_free: Bools | None = None  # which rows have a class to go back to where nobody needs them; None: none
    home_losses: Losses | None = None  # what a row loses there
    people: Ints | None = None  # where people have several rows
    sensitive: Ints | None = None  # the sensitive value at each place; None where none matters
    first_sizes: Ints | None = None  # how many rows the first class of each pool has; its rows come first


class Guide(NamedTuple):
    """Targets for the sensitive values of growing classes."""

    distinct: int  # how many different values each class has at least
    shares: Floats  # of the values in the table
    t: float | None = None  # how far the shares in a class may be from them; None: as far as they like

    def spoils(self, counts: Ints, sensitive: Ints, step: int, size: int) -> Bools:
        """Tell which rows would keep a class of which `step` of `size` rows are taken from what it should become.

        `counts` are pools by values, how often the class has each; `sensitive` places by pools, the value of each row.
        """
        pool = np.arange(len(counts))
        is_short = self.distinct - (counts > 0).sum(axis=1) >= size - step
        spoils: Bools = (counts[pool, sensitive] > 0) & is_short
        if self.t is not None:
            over = np.maximum(counts / size - self.shares, 0)
            with_one_more = np.maximum((counts + 1) / size - self.shares, 0) - over
            excess = over.sum(axis=1) + with_one_more[pool, sensitive]
            spoils |= excess > self.t + 1e-9
        return spoils

    def is_far(self, counts: Ints, value: Ints) -> Bools:
        """Tell which classes, classes by pools by values, are too far from the table once a row has joined them."""
        if self.t is None:
            return np.zeros(counts.shape[:2], np.bool_)
        joined = counts.copy()
        joined[:, np.arange(len(value)), value] += 1
        shares = joined / np.maximum(joined.sum(axis=2), 1)[:, :, None]
        return np.asarray(np.abs(shares - self.shares).sum(axis=2) / 2 > self.t + 1e-9)


class GrownClasses(NamedTuple):
    """Classes of pools."""

    labels: Ints  # places by pools: the class within the pool, -1 where the row is in none
    losses: Floats  # what the rows of each pool lose together; infinite where no classes were found


class Growth:
    """Classes that grow, one in each pool at a time; `kinds` is the number of sensitive values in the whole table."""

    def __init__(self, joins: Joins, pools: Pools, generator: np.random.Generator, kinds: int = 0) -> None:
        self._joins, self._every, self._pools = joins, joins.every, pools
        self._values = [join.values(pools.rows) for join in joins.ordered]
        self._codes = [join.codes(pools.rows) for join in joins.sets]
        places, count = pools.rows.shape
        self._pool = np.arange(count)
        # a random number below any loss that matters breaks ties; what cannot be taken any more is infinite
        chance = generator.random((places, count), dtype=np.float32) * np.float32(1e-4)
        self._open = np.where(pools.is_row, chance, NEVER)
        self._place_bits = bits = (places - 1).bit_length()
        self._last_bits, self._first_bits = np.int32((1 << bits) - 1), np.int32(-(1 << bits))
        self._places = np.arange(places, dtype=np.int32)[:, None]
        if pools.people is not None:
            self._open[pools.people == NOBODY] = NEVER
        counts = (join.counts(codes) for join, codes in zip(joins.sets, self._codes, strict=True))
        self._counts = sum(counts, np.float32(0))
        self._left_count = pools.is_row.sum(axis=0)
        self.labels = np.full((places, count), -1, np.int64)
        self._states: list[list[ClassState]] = []
        self._members: list[list[Ints]] = []
        self._grows: list[Bools] = []
        self._kinds: list[Ints] = []
        if pools.sensitive is not None:
            kinds = max(kinds, int(pools.sensitive.max()) + 1)
        self._kind_count = kinds
        self._failed = np.zeros(count, np.bool_)
        self._may_fail = pools.people is not None  # a pool may have rows enough, and too few people
        self._classes = 0

    def begin(self, k: int, is_barred: Bools | None = None) -> bool:
        """Begin the next class in every pool that has enough rows; False where none has."""
        pools = self._pools
        self._is_on: Bools = self._left_count >= k
        if not self._is_on.any():
            return False
        seeds = self._open if pools.is_free is None else self._open + pools.is_free
        if is_barred is not None:
            seeds = np.where(is_barred, NEVER, seeds)
        taken = self._find_least(seeds)
        if self._may_fail or seeds is not self._open:
            # where only free rows are left there is nobody to serve: they go back to their own classes
            self._is_on &= seeds[taken, self._pool] < 0.5
            if not self._is_on.any():
                return False
        # columns of sets add their counts, and the rows of a person leave together: else both are the same
        self._open_now = self._open + self._counts if self._codes or self._may_fail else self._open
        self.kinds_seen: Array | None = None
        if pools.sensitive is not None:
            self.kinds_seen = np.zeros((len(self._pool), self._kind_count), np.int64)
        self._state: list[ClassState] = []
        self._held: list[HeldBits | None] = [None] * len(self._codes)
        self._taken: list[Ints] = []
        self._growing: list[Ints] = []
        self._take(taken)
        return True

    def score_rows(self, guide: Guide | None = None, step: int = 0, size: int = 0) -> Losses:
        """Return for every row what its pool's class would lose with it; infinite where it cannot be taken.

        Up to a number that is the class's own: what it loses already in columns of sets.
        """
        self._join_last()
        scores = self._open_now
        for join, state, values in zip(self._joins.ordered, self._state, self._values, strict=True):
            scores = _add_losses(scores, join.score(state, values))
        for number, (sets, codes) in enumerate(zip(self._joins.sets, self._codes, strict=True)):
            self._held[number] = held = sets.hold_values(self._held[number], codes, self._place)
            scores = _add_losses(scores, sets.sum_savings(held))
        if guide is not None and self.kinds_seen is not None and self._pools.sensitive is not None:
            scores[guide.spoils(self.kinds_seen, self._pools.sensitive, step, size)] += _LAST_RESORT
        return scores

    def take(self, scores: Losses, grows: Bools | None = None) -> None:
        """Take the row with the least score into every class that grows, or into some of them."""
        if grows is not None:
            self._is_on = self._is_on & grows
        self._take(self._find_least(scores))

    def _take(self, taken: Ints) -> None:
        pools, pool = self._pools, self._pool
        self._place = place = taken * len(pool) + pool  # in the flat arrays: several times quicker than two indices
        on = place.compress(self._is_on)
        self._taken.append(place)
        self._growing.append(on)
        if self._may_fail:
            self._failed |= self._is_on & np.isinf(self._open_now.take(place))
        self._open.put(on, NEVER)
        if self._open_now is not self._open:
            self._open_now.put(on, NEVER)
        if pools.people is not None:
            self._open_now[pools.people == pools.people.take(place)] = NEVER
        if pools.sensitive is not None and self.kinds_seen is not None:
            self.kinds_seen[pool, pools.sensitive.take(place)] += 1

    def _join_last(self) -> None:
        """Let the rows that were taken last join the states of their classes."""
        place, states = self._place, self._state
        chosen = [tuple([part.take(place) for part in values]) for values in self._values]
        ordered = self._joins.ordered
        if states:
            self._state = [join.add(*pair) for join, *pair in zip(ordered, states, chosen, strict=True)]
        else:
            self._state = [join.start(values) for join, values in zip(ordered, chosen, strict=True)]

    def label(self) -> None:
        """Give the rows of the classes that grew their number, and count what is left."""
        self.labels.put(np.concatenate(self._growing), self._classes)
        self._classes += 1
        self._left_count = self._left_count - self._is_on * len(self._taken)

    def end(self, k: int) -> None:
        """Finish the classes that grew."""
        self.label()
        self._join_last()
        self._states.append(self._state)
        self._members.append(self._taken)
        self._grows.append(self._is_on)
        if self.kinds_seen is not None:
            self._kinds.append(self.kinds_seen * self._is_on[:, None])
        self._size = k

    def _find_least(self, scores: Losses) -> Ints:
        """Return the place of the least score of each pool, of nearly equal ones any.

        Numbers of single precision that are not negative are in the order of their bits. With the place in the last of
        them the least number tells its own place, in a fifth of the time that looking for it takes.
        """
        if self._place_bits > _PLACE_BITS:
            return np.asarray(scores.argmin(axis=0), np.int64)
        keys = scores.view(np.int32) & self._first_bits
        keys |= self._places
        return np.asarray(np.minimum.reduce(keys, axis=0) & self._last_bits, np.int64)

    def finish(self, guide: Guide | None = None) -> GrownClasses:
        """Let every row that is left join the class to which it adds least, and sum up the losses."""
        pools = self._pools
        if not self._states:
            return GrownClasses(self.labels, np.full(len(self._pool), np.inf))
        states: list[ClassState] = [
            tuple(np.stack(parts) for parts in zip(*of_join, strict=True))
            for of_join in zip(*self._states, strict=True)
        ]
        members = pools.rows.take(np.array(self._members).swapaxes(0, 1))
        states += [join.fold(join.values(members)) for join in self._joins.sets]
        exists = np.stack(self._grows)
        sizes = exists * self._size
        losses = self._sum_losses(states)
        left = pools.is_row & (self.labels < 0)
        if pools.is_free is not None:
            left &= ~pools.is_free
        failed = self._failed | (left.any(axis=0) & ~exists.any(axis=0))
        kinds = np.stack(self._kinds) if guide is not None else None
        for place, pool in _take_turns(left):
            before = [tuple(part[:, pool] for part in state) for state in states]
            values = [join.values(pools.rows[place, pool]) for join in self._every]
            joined = [join.add(*pair) for join, *pair in zip(self._every, before, values, strict=True)]
            joined_losses = self._sum_losses(joined)
            added = (sizes[:, pool] + 1) * joined_losses - sizes[:, pool] * losses[:, pool]
            if guide is not None and kinds is not None and pools.sensitive is not None:
                added += guide.is_far(kinds[:, pool], pools.sensitive[place, pool]) * _LAST_RESORT
            added[~exists[:, pool]] = np.inf
            best, each = added.argmin(axis=0), np.arange(len(pool))
            for state, after in zip(states, joined, strict=True):
                for part, part_after in zip(state, after, strict=True):
                    part[best, pool] = part_after[best, each]
            losses[best, pool] = joined_losses[best, each]
            sizes[best, pool] += 1
            if kinds is not None and pools.sensitive is not None:
                kinds[best, pool, pools.sensitive[place, pool]] += 1
            self.labels[place, pool] = best
        total = (sizes * losses).sum(axis=0)
        if pools.is_free is not None and pools.home_losses is not None:
            total += np.where(pools.is_free & (self.labels < 0), pools.home_losses, 0).sum(axis=0)
        total[failed] = np.inf
        return GrownClasses(self.labels, total)

    def _sum_losses(self, states: list[ClassState]) -> Floats:
        total: Floats = np.zeros(states[0][0].shape)
        for join, state in zip(self._every, states, strict=True):
            total += join.losses(state)
        return total


def _add_losses(scores: Losses, added: Losses) -> Losses:
    """Return the sum, in the memory of `added`, which is not used again."""
    added += scores
    return added


def _take_turns(left: Bools) -> Iterator[tuple[Ints, Ints]]:
    """Yield the first place that is left in each pool and its pool, then the second, and so on."""
    pool, place = np.nonzero(left.T)
    starts = np.searchsorted(pool, np.arange(left.shape[1]))
    turn = np.arange(len(pool)) - starts[pool]
    for number in range(int(turn.max(initial=-1)) + 1):
        chosen = turn == number
        yield place[chosen], pool[chosen]


def grow(
    joins: Joins, pools: Pools, k: int, generator: np.random.Generator, guide: Guide | None = None
) -> GrownClasses:
    """Build classes of k people: a random row, then again and again the one that adds least; the rest then joins."""
    growth = Growth(joins, pools, generator, 0 if guide is None else len(guide.shares))
    while growth.begin(k):
        for step in range(1, k):
            growth.take(growth.score_rows(guide, step, k))
        growth.end(k)
    return growth.finish(guide)


def group_nearest(joins: Joins, rows: Ints, is_row: Bools, size: int, generator: np.random.Generator) -> Ints:
    """Group rows of windows, places by windows, by `size` that are near each other; -1 where a row is left over."""
    growth = Growth(joins, Pools(rows, is_row), generator)
    while growth.begin(size):
        for _ in range(1, size):
            growth.take(growth.score_rows())
        growth.label()
    return growth.labels


def exchange_rows(joins: Joins, pools: Pools, generator: np.random.Generator) -> GrownClasses:
    """Build the first of two classes anew from a random row, with as many rows of each sensitive value as before."""
    sensitive, sizes = pools.sensitive, pools.first_sizes
    assert sensitive is not None
    assert sizes is not None
    growth = Growth(joins, pools._replace(people=None, is_free=None), generator)
    pool = np.arange(len(sizes))
    is_first = np.arange(len(pools.rows))[:, None] < sizes
    kinds = int(sensitive.max()) + 1  # of these pools: others may have more
    keys = pool * kinds + sensitive
    wanted = np.bincount(keys[is_first], minlength=len(sizes) * kinds).reshape(-1, kinds)
    growth.begin(1, wanted[pool, sensitive] == 0)
    for step in range(1, int(sizes.max())):
        assert growth.kinds_seen is not None
        is_full = (growth.kinds_seen >= wanted)[pool, sensitive]
        growth.take(np.where(is_full, NEVER, growth.score_rows()), sizes > step)
    growth.label()
    labels = np.where(growth.labels == 0, 0, np.where(pools.is_row, 1, -1))
    losses = sum(
        (labels == label).sum(axis=0) * _sum_class_losses(joins, pools.rows, labels == label) for label in (0, 1)
    )
    return GrownClasses(labels, np.asarray(losses, np.float64))


def _sum_class_losses(joins: Joins, rows: Ints, is_member: Bools) -> Floats:
    """Return what one class of each pool loses, given its members."""
    order = np.argsort(~is_member, axis=0, kind="stable")
    members = np.take_along_axis(rows, order, axis=0)
    counts = is_member.sum(axis=0)
    total: Floats = np.zeros(rows.shape[1])
    for join in joins.every:
        state = join.start(join.values(members[0]))
        for place in range(1, int(counts.max())):
            joined = join.add(state, join.values(members[place]))
            is_on = place < counts
            state = tuple(np.where(is_on, after, before) for after, before in zip(joined, state, strict=True))
        total += join.losses(state)
    return total
