"""Rounds that improve classes: neighbours are dissolved and rebuilt, and the result is kept if it loses less."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from duckanon._core.common import progress
from duckanon._core.common.arrays import Array, Bools, Floats, Ints, run_lengths
from duckanon._methods.recode.column_joins import Joins, joins_of
from duckanon._methods.recode.column_losses import Column, Losses, Numbers, class_losses
from duckanon._methods.recode.growth import Grown, Pools
from duckanon._methods.recode.pools import nearest_groups

WINDOW = 64
"""Classes among which the nearest are searched."""
_WINDOWS = 256
"""Windows that are searched at once."""
_POOL_PLACES = 40_000
"""Places of pools that are worked on at once: their arrays stay in the processor's cache."""
_WORTH_IT = 1e-5
"""Loss that a pool must save at least: less is the noise of single precision."""
_BINS = (2, 7)
"""Numbers enter the order of classes in so many bins: from, and up to but without."""
_PAIRS = 2000
"""Pairs of rows whose losses tell which columns matter."""
_CHANCE = 0.5
"""How much chance changes the order of columns: 150,000 workers lose as little after 12 rounds as after 30 with columns
in any order, and with 1 instead of 0.5 after 13."""


class Members(NamedTuple):
    """Rows that may change their class."""

    columns: Sequence[Column]
    codes: Sequence[Array]
    groups: Ints | None
    home: Ints  # the class that a row may always go back to, numbered below all others; -1 where it has none
    people: Ints | None = None
    sensitive: Ints | None = None  # its sensitive value; None where that does not matter


Regrow = Callable[[Joins, Pools, np.random.Generator], Grown]
"""Builds the classes of pools anew."""


class Round(NamedTuple):
    """A round: how many classes a pool has, how many rows at most, and how classes are built."""

    classes: int
    most_rows: int
    regrow: Regrow
    only_whole: bool = False  # whether pools must have exactly so many classes


class Search:
    """Classes that get better round by round; of `classes`, the class of each row, the first `homes` are homes."""

    def __init__(self, members: Members, classes: Ints, homes: int, k: int) -> None:
        self._members, self.classes, self._homes, self._k = members, classes, homes, k
        self._generator = np.random.default_rng(0)  # the same table always gets the same classes
        self._joins = joins_of(members.columns, members.codes, members.groups)
        alone = np.arange(len(classes))
        single = class_losses(members.columns, members.codes, alone) if len(classes) else np.zeros(0, np.float32)
        self._own_losses = single if homes and single.any() else None  # parts of numbers lose something alone
        self._shares = [_shares(column, codes) for column, codes in zip(members.columns, members.codes, strict=True)]
        self._distances = self._mean_distances()

    def improve(self, rounds: int, make: Callable[[np.random.Generator, int], Round]) -> None:
        """Go through so many rounds, each of which is made when it begins."""
        if not len(self.classes):
            return
        for number in range(rounds):
            progress.at(number / rounds)
            self._improve_once(make(self._generator, number))
            self._renumber()

    def _renumber(self) -> None:
        """Give classes numbers without gaps; homes keep theirs."""
        is_used = np.zeros(int(self.classes.max()) + 1, np.bool_)
        is_used[self.classes] = True
        is_used[: self._homes] = True
        self.classes = (np.cumsum(is_used) - 1)[self.classes]

    def _improve_once(self, turn: Round) -> None:
        by_class, starts, sizes = _grouped(self.classes)
        representatives = by_class[starts + (self._generator.random(len(starts)) * sizes).astype(np.int64)]
        pool_of_class = self._pools_of(representatives, turn)
        class_order, firsts, counts = _grouped(pool_of_class)
        sizes = sizes[class_order]
        ends = np.concatenate([[0], np.cumsum(sizes)])
        rows = by_class[np.repeat(starts[class_order] - ends[:-1], sizes) + np.arange(ends[-1])]
        losses = class_losses(self._members.columns, [codes[rows] for codes in self._members.codes], ends[:-1])
        pool_starts = ends[firsts]
        pool_sizes = run_lengths(pool_starts, len(rows))
        before = np.add.reduceat(sizes * losses, firsts)
        chosen = (pool_sizes >= self._k) & (pool_sizes <= turn.most_rows) & (before > 1e-6)
        if turn.only_whole:
            chosen &= counts == turn.classes
        self._rebuild(turn, rows, pool_starts, pool_sizes, before, sizes[firsts], np.flatnonzero(chosen))

    def _pools_of(self, representatives: Ints, turn: Round) -> Ints:
        """Put classes into pools with their nearest, each given by one of its rows."""
        order = self._neighbours(representatives)
        count = len(order)
        windows = -(-count // WINDOW)
        padded = np.append(order, np.full(windows * WINDOW - count, order[-1])).reshape(windows, WINDOW)
        is_class = (np.arange(windows * WINDOW) < count).reshape(windows, WINDOW)
        pool_of_class = np.empty(count, np.int64)
        for begin in range(0, windows, _WINDOWS):
            some, is_some = padded[begin : begin + _WINDOWS], is_class[begin : begin + _WINDOWS]
            rows, is_row = np.ascontiguousarray(representatives[some].T), np.ascontiguousarray(is_some.T)
            labels = nearest_groups(self._joins, rows, is_row, turn.classes, self._generator).T
            window = np.arange(begin, begin + len(some))[:, None]
            pools = window * (WINDOW + 1) + np.where(labels < 0, WINDOW, labels)
            pool_of_class[some[is_some]] = pools[is_some]
        return pool_of_class

    def _mean_distances(self) -> Floats:
        """Return, by column, what two rows lose in one class on average."""
        pairs = self._generator.integers(0, max(len(self.classes), 1), 2 * _PAIRS if len(self.classes) else 0)
        starts = np.arange(0, len(pairs), 2)
        columns = zip(self._members.columns, self._members.codes, strict=True)
        losses = [class_losses([column], [codes[pairs]], starts) for column, codes in columns]
        return np.array([loss.mean() if len(loss) else 0.0 for loss in losses], np.float64)

    def _neighbours(self, rows: Ints) -> Ints:
        """Return rows in a lexicographic order; numbers count in a few random bins.

        Columns come in a random order, likely first those in which rows lose most if they differ: classes that agree
        there gain more by exchanging rows than classes that agree in a column whose sets may as well grow.
        """
        keys: list[Array] = []
        fine: list[Array] = []
        for column, codes, shares in zip(self._members.columns, self._members.codes, self._shares, strict=True):
            of_rows = codes[rows]
            if isinstance(column, Numbers):
                fine.append(of_rows)
                bins = np.floor(shares * self._generator.integers(*_BINS) + self._generator.random())
                keys.append(bins.astype(np.int32)[of_rows])
            else:
                keys.append(of_rows)
        chance = _CHANCE * self._generator.gumbel(size=len(keys))
        keys = [keys[place] for place in np.argsort(np.log(self._distances + 1e-9) + chance)]  # the last counts first
        if self._members.groups is not None:
            keys.append(self._members.groups[rows])
        return np.lexsort([*fine, *keys])

    def _rebuild(
        self, turn: Round, rows: Ints, starts: Ints, sizes: Ints, before: Losses, first_sizes: Ints, chosen: Ints
    ) -> None:
        """Build the chosen pools anew, those of about the same size at once, and keep what loses less."""
        members = self._members
        chosen = chosen[np.argsort(sizes[chosen], kind="stable")]
        next_class = int(self.classes.max()) + 1
        for some in _batches(chosen, sizes):
            progress.check()
            places = np.arange(int(sizes[some].max()))[:, None]
            is_row: Bools = places < sizes[some]
            at = rows[np.where(is_row, starts[some] + places, starts[some])]
            pools = Pools(
                at,
                is_row,
                (members.home[at] >= 0) & is_row if self._homes else None,
                None if self._own_losses is None else self._own_losses[at],
                None if members.people is None else members.people[at],
                None if members.sensitive is None else members.sensitive[at],
                first_sizes[some],
            )
            grown = turn.regrow(self._joins, pools, self._generator)
            better = np.flatnonzero(grown.losses < before[some] - _WORTH_IT)
            kept, width = is_row[:, better], len(places)
            moved, labels = at[:, better][kept], grown.labels[:, better]
            numbers = next_class + np.arange(len(better)) * width + labels
            self.classes[moved] = np.where(labels < 0, members.home[at[:, better]], numbers)[kept]
            next_class += len(better) * width


def _grouped(numbers: Ints) -> tuple[Ints, Ints, Ints]:
    """Return the places of numbers in their order, and where each run of equal ones begins, and how long it is.

    Numbers from 0 on are sorted by their low and then by their high 16 bits, which numpy does by counting: a tenth of
    the time of comparing them.
    """
    counts = np.bincount(numbers)  # which could not be held for numbers of more than 32 bits
    order = np.argsort(numbers.astype(np.uint16), kind="stable")
    if len(counts) > 2**16:
        order = order[np.argsort((numbers >> 16).astype(np.uint16)[order], kind="stable")]
    starts = np.cumsum(counts) - counts
    return order, starts[counts > 0], counts[counts > 0]


def _batches(pools: Ints, sizes: Ints) -> list[Ints]:
    """Part pools, sorted by their sizes, such that batches are of limited size and padded little."""
    if not len(pools):
        return []
    padded = np.cumsum(sizes[pools])
    parts = max(1, int(padded[-1]) // _POOL_PLACES, min(2, len(pools) // 200))
    cuts = np.searchsorted(padded, padded[-1] * np.arange(1, parts) / parts)
    return [some for some in np.split(pools, cuts) if len(some)]


def _shares(column: Column, codes: Array) -> Floats:
    """Return the share of the rows up to each code."""
    counts = np.bincount(codes, minlength=column.size)
    return np.asarray(np.cumsum(counts) / max(len(codes), 1), np.float64)
