"""Growing classes: in many pools at once, one class after the other takes the row that adds least."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from duckanon.common.arrays import Array, Bools, Floats, Ints
from duckanon.common.people import NOBODY
from duckanon.recode.columns import Losses
from duckanon.recode.joins import Join, State

NEVER = np.float32(np.inf)
_LAST_RESORT = np.float32(1e3)
"""More than any class loses: a row with this added is taken where there is no other."""


class Pools(NamedTuple):
    """Rows of pools, padded to the longest.

    Attributes
    ----------
    rows
        Pools by places: the row at each.
    is_row
        Which places hold a row, and not padding.
    is_free
        Which rows have a class to go back to where nobody needs them; None: none.
    home_losses
        What a row loses there.
    people
        Whose the row at each place is, where people have several; None: each is another person.
    sensitive
        The sensitive value at each place; None where none matters.
    first_sizes
        How many rows the first class of each pool has; its rows come first.
    """

    rows: Ints
    is_row: Bools
    is_free: Bools | None = None
    home_losses: Losses | None = None
    people: Ints | None = None
    sensitive: Ints | None = None
    first_sizes: Ints | None = None


class Guide(NamedTuple):
    """What the sensitive values of classes that grow should become.

    Attributes
    ----------
    distinct
        How many different values each class has at least.
    shares, t
        The shares of the values in the table, and how far those of a class may be from them; None: as far as they like.
    """

    distinct: int
    shares: Floats
    t: float | None = None

    def spoils(self, counts: Ints, sensitive: Ints, step: int, size: int) -> Bools:
        """Tell which rows would keep a class of which ``step`` of ``size`` rows are taken from what it should become.

        Parameters
        ----------
        counts
            Pools by values: how often the class has each.
        sensitive
            Pools by places: the value of each row.
        """
        own = np.take_along_axis(counts, sensitive, axis=1)
        is_short = self.distinct - (counts > 0).sum(axis=1) >= size - step
        spoils: Bools = (own > 0) & is_short[:, None]
        if self.t is not None:
            over = np.maximum(counts / size - self.shares, 0)
            with_one_more = np.maximum((counts + 1) / size - self.shares, 0) - over
            excess = over.sum(axis=1)[:, None] + np.take_along_axis(with_one_more, sensitive, axis=1)
            spoils |= excess > self.t + 1e-9
        return spoils

    def parts(self, counts: Ints, value: Ints) -> Bools:
        """Tell which classes, pools by classes by values, are too far from the table once a row has joined them."""
        if self.t is None:
            return np.zeros(counts.shape[:2], np.bool_)
        joined = counts.copy()
        joined[np.arange(len(value)), :, value] += 1
        shares = joined / np.maximum(joined.sum(axis=2), 1)[:, :, None]
        return np.asarray(np.abs(shares - self.shares).sum(axis=2) / 2 > self.t + 1e-9)


class Grown(NamedTuple):
    """Classes of pools.

    Attributes
    ----------
    labels
        Pools by places: the class within the pool, -1 where the row is in none.
    losses
        What the rows of each pool lose together; infinite where no classes were found.
    """

    labels: Ints
    losses: Floats


class Growth:
    """Classes that grow, one in each pool at a time."""

    def __init__(self, joins: Sequence[Join], pools: Pools, generator: np.random.Generator) -> None:
        self._joins, self._pools = joins, pools
        self._values = [join.values(pools.rows) for join in joins]
        self._pool = np.arange(len(pools.rows))
        # a random number below any loss that matters breaks ties; what cannot be taken any more is infinite
        chance = generator.random(pools.rows.shape, dtype=np.float32) * np.float32(1e-4)
        self._open = np.where(pools.is_row, chance, NEVER)
        if pools.people is not None:
            self._open[pools.people == NOBODY] = NEVER
        self._left = pools.is_row.copy()
        self.labels = np.full(pools.rows.shape, -1, np.int64)
        self._states: list[list[State]] = []
        self._grows: list[Bools] = []
        self._kinds: list[Ints] = []
        self._failed = np.zeros(len(pools.rows), np.bool_)

    def begin(self, k: int, is_barred: Bools | None = None) -> bool:
        """Begin the next class in every pool that has enough rows; False where none has."""
        pools = self._pools
        seeds = self._open if pools.is_free is None else self._open + pools.is_free
        if is_barred is not None:
            seeds = np.where(is_barred, NEVER, seeds)
        taken = seeds.argmin(axis=1)
        least = seeds[self._pool, taken]
        # where only free rows are left there is nobody to serve: they go back to their own classes
        self._is_on: Bools = (self._left.sum(axis=1) >= k) & (least < 0.5)
        if not self._is_on.any():
            return False
        self._open_now = self._open.copy()
        self.kinds_seen: Array | None = None
        if pools.sensitive is not None:
            self.kinds_seen = np.zeros((len(pools.rows), int(pools.sensitive.max()) + 1), np.int64)
        self._state: list[State] = []
        self._take(taken)
        return True

    def scores(self, guide: Guide | None = None, step: int = 0, size: int = 0) -> Losses:
        """Return for every row what its pool's class would lose with it; infinite where it cannot be taken."""
        scores = self._open_now.copy()
        for join, state, values in zip(self._joins, self._state, self._values, strict=True):
            scores += join.added(tuple(part[:, None] for part in state), values)
        if guide is not None and self.kinds_seen is not None and self._pools.sensitive is not None:
            scores[guide.spoils(self.kinds_seen, self._pools.sensitive, step, size)] += _LAST_RESORT
        return scores

    def take(self, scores: Losses, grows: Bools | None = None) -> None:
        """Take the row with the least score into every class that grows, or into some of them."""
        if grows is not None:
            self._is_on = self._is_on & grows
        self._take(scores.argmin(axis=1))

    def _take(self, taken: Ints) -> None:
        pools, pool = self._pools, self._pool
        place = pool * pools.rows.shape[1] + taken  # in the flat arrays: several times quicker than two indices
        self._failed |= self._is_on & np.isinf(self._open_now.take(place))
        on = place[self._is_on]
        chosen = [tuple(part.take(place) for part in values) for values in self._values]
        if self._state:
            self._state = [
                join.joined(state, values) for join, state, values in zip(self._joins, self._state, chosen, strict=True)
            ]
        else:
            self._state = [join.single(values) for join, values in zip(self._joins, chosen, strict=True)]
        for flags, after in ((self._open, NEVER), (self._open_now, NEVER), (self._left, False)):
            flags.ravel()[on] = after
        self.labels.ravel()[on] = len(self._states)
        if pools.people is not None:
            self._open_now[pools.people == pools.people[pool, taken][:, None]] = NEVER
        if pools.sensitive is not None and self.kinds_seen is not None:
            self.kinds_seen[pool, pools.sensitive[pool, taken]] += 1

    def end(self, k: int) -> None:
        """Finish the classes that grew."""
        self._states.append(self._state)
        self._grows.append(self._is_on)
        if self.kinds_seen is not None:
            self._kinds.append(self.kinds_seen * self._is_on[:, None])
        self._size = k

    def finished(self, guide: Guide | None = None) -> Grown:
        """Let every row that is left join the class to which it adds least, and sum up the losses."""
        pools = self._pools
        if not self._states:
            return Grown(self.labels, np.full(len(pools.rows), np.inf))
        states: list[State] = [
            tuple(np.stack(parts, axis=1) for parts in zip(*of_join, strict=True))
            for of_join in zip(*self._states, strict=True)
        ]
        exists = np.stack(self._grows, axis=1)
        sizes = exists * self._size
        losses = self._losses_of(states)
        left = self._left if pools.is_free is None else self._left & ~pools.is_free
        counts = left.sum(axis=1)
        failed = self._failed | ((counts > 0) & ~exists.any(axis=1))
        kinds = np.stack(self._kinds, axis=1) if guide is not None else None
        for _ in range(int(counts.max(initial=0))):
            pool = np.flatnonzero(counts > 0)
            row = left[pool].argmax(axis=1)
            own = [tuple(part[pool] for part in state) for state in states]
            values = [tuple(part[pool, row][:, None] for part in of_join) for of_join in self._values]
            joined = [join.joined(*pair) for join, *pair in zip(self._joins, own, values, strict=True)]
            joined_losses = self._losses_of(joined)
            added = (sizes[pool] + 1) * joined_losses - sizes[pool] * losses[pool]
            if guide is not None and kinds is not None and pools.sensitive is not None:
                added += guide.parts(kinds[pool], pools.sensitive[pool, row]) * _LAST_RESORT
            added[~exists[pool]] = np.inf
            best, each = added.argmin(axis=1), np.arange(len(pool))
            for state, after in zip(states, joined, strict=True):
                for part, part_after in zip(state, after, strict=True):
                    part[pool, best] = part_after[each, best]
            losses[pool, best] = joined_losses[each, best]
            sizes[pool, best] += 1
            if kinds is not None and pools.sensitive is not None:
                kinds[pool, best, pools.sensitive[pool, row]] += 1
            self.labels[pool, row] = best
            left[pool, row] = False
            counts[pool] -= 1
        total = (sizes * losses).sum(axis=1)
        if pools.is_free is not None and pools.home_losses is not None:
            total += np.where(pools.is_free & (self.labels < 0), pools.home_losses, 0).sum(axis=1)
        total[failed] = np.inf
        return Grown(self.labels, total)

    def _losses_of(self, states: list[State]) -> Floats:
        total: Floats = np.zeros(states[0][0].shape)
        for join, state in zip(self._joins, states, strict=True):
            total += join.losses(state)
        return total
