"""The choices that people of a class hold while rows go back from finer labels to coarser ones, round by round."""

from __future__ import annotations

import numpy as np

from duckanon._core.common.arrays import Bools, Ints, Ints32, run_lengths, run_starts
from duckanon._methods.linked.choices import Chains, Numbering, Rows, chains, choices
from duckanon._methods.linked.rows_out import scattered
from duckanon._methods.linked.sensitive_values import Told


class HeldChoices:
    """The number of the choice that each set of rows is, and how many people hold it; few of them change in a round."""

    def __init__(self, rows: Rows, base: Ints, fine: Ints, k: int) -> None:
        """Take the labels that rows may go back to, which are the start, and the finer ones that they may show."""
        self._rows, self._k = rows, k
        self._numbering = Numbering(rows.sets, base, fine)
        self._none = self._numbering.count  # the number of sets that are no choices
        self._whose = rows.person[rows.sets[:, 0]].astype(np.int32)
        self._start = self._numbers(np.arange(len(rows.sets)), np.zeros(rows.size, np.bool_), chains(rows.person, base))
        self._now = self._start.copy()
        self._supports = np.bincount(self._now, minlength=self._none + 1).astype(np.int32)
        self._is_low: Bools = self._supports < k

    def change(self, up: Bools, equal: Chains, changed: Bools) -> None:
        """Look up the choices of the people of changed rows, where the rows that are `up` show the finer label."""
        is_changed: Bools = np.zeros(int(self._rows.person.max(initial=-1)) + 1, np.bool_)
        is_changed[self._rows.person[changed]] = True
        some = np.flatnonzero(is_changed[self._whose])
        before, now = self._now[some], self._numbers(some, up, equal)
        moved = np.flatnonzero(before != now)
        some, before, now = some[moved], before[moved], now[moved]
        self._now[some] = now
        np.subtract.at(self._supports, before, 1)
        np.add.at(self._supports, now, 1)
        for numbers in (before, now):
            self._is_low[numbers] = self._supports[numbers] < self._k
        self._is_low[self._none] = False

    def _numbers(self, some: Ints, up: Bools, equal: Chains) -> Ints32:
        numbers = self._numbering.of(some, up)
        numbers[~choices(self._rows.sets[some], equal.before)] = self._none
        return numbers

    def violated(self, told: Told | None) -> Ints:
        """Return the sets of rows whose choices fewer than k people hold, or tell too much about these."""
        is_bad = self._is_low[self._now]
        if told is not None:
            held = np.flatnonzero(self._now < self._none)
            is_bad[held] |= told.is_violated(self._now[held], self._whose[held].astype(np.int64))
        return np.flatnonzero(is_bad)

    def at_start(self, asked: Ints) -> Ints:
        """Return the sets that were at the start what some sets are now."""
        marks: Bools = np.zeros(self._none + 1, np.bool_)
        marks[self._now[asked]] = True
        return np.flatnonzero(marks[self._start])

    def missing(self, asked: Ints, up: Bools) -> Ints:
        """Return sets that were at the start what some violated ones are now, of as many people as are missing there.

        Those with the fewest finer rows come first.
        """
        people = int(self._rows.person.max()) + 1
        mine = self.at_start(asked)
        choice, whose = self._start[mine].astype(np.int64), self._whose[mine].astype(np.int64)
        is_gone = ~np.isin(choice * people + whose, self._now[asked].astype(np.int64) * people + self._whose[asked])
        mine, choice = mine[is_gone], choice[is_gone]
        finer = np.append(up, False)[self._rows.sets[mine]].sum(axis=1)
        order = np.lexsort(
            (scattered(mine), finer, choice)
        )  # not by the numbers of choices, which other classes change
        mine, choice = mine[order], choice[order]
        starts = run_starts(choice)
        rank = np.arange(len(mine)) - np.repeat(starts, run_lengths(starts, len(mine)))
        return mine[rank < self._k - self._supports[choice]]
