"""People who join, leave and move, and the releases that three ways of publishing make of them every month."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from duckanon._core.account.cohorts import POOL, Decision, People, Rules, decide
from duckanon._core.account.joint import ABSENT, JointCounts, PeopleOfRelease
from duckanon._core.common.arrays import Bools, Ints


@dataclass
class Population:
    """People of a number of classes (from 1), each with a sensitive value; month by month some join, leave and move."""

    people: int
    classes: int
    months: int
    values: int = 10
    joining: float = 0.02
    leaving: float = 0.02
    moving: float = 0.01
    seed: int = 1
    now: Ints = field(init=False)
    value: Ints = field(init=False)

    def __post_init__(self) -> None:
        self._random = np.random.default_rng(self.seed)
        total = int(self.people * (1 + 1.5 * self.joining * self.months)) + 1
        self.now = np.full(total, ABSENT)
        self.now[: self.people] = self._random.integers(1, self.classes + 1, self.people)
        weights = 1 / np.arange(1, self.values + 1)
        self.value = self._random.choice(self.values, total, p=weights / weights.sum())

    def pass_by(self) -> Iterator[Ints]:
        """Yield the class of each person, month by month."""
        last = self.people
        for month in range(self.months):
            if month:
                here = self.now != ABSENT
                self.now[here & (self._random.random(len(here)) < self.leaving)] = ABSENT
                moves = np.flatnonzero((self.now != ABSENT) & (self._random.random(len(here)) < self.moving))
                self.now[moves] = self._random.integers(1, self.classes + 1, len(moves))
                joins = min(self._random.poisson(self.people * self.joining), len(here) - last)
                self.now[last : last + joins] = self._random.integers(1, self.classes + 1, joins)
                last += joins
            yield self.now.copy()


@dataclass
class InCohorts:
    """Releases in cohorts; people keep the value with which they entered."""

    total: int
    values: int
    rules: Rules
    counts: JointCounts = field(init=False)

    def __post_init__(self) -> None:
        self.counts = JointCounts.of_nobody(self.total)
        self.classes = np.full(self.total, ABSENT)
        self.waited = np.zeros(self.total, np.int64)
        self.shown_value = np.zeros(self.total, np.int64)
        self.is_first = True

    def release(self, now: Ints, value: Ints, must_go: Bools | None = None) -> Decision:
        """Make the next release."""
        numbers, is_in, is_here = np.arange(self.total), self.classes != ABSENT, now != ABSENT
        people = People(
            groups=self.counts.groups,
            before=self.classes,
            now=now,
            is_seen=self.counts.is_seen,
            must_go=np.zeros(self.total, np.bool_) if must_go is None else must_go,
            waited=self.waited,
            shown={"value": (numbers * self.values + self.shown_value)[is_in]},
            new={"value": (numbers * self.values + value)[is_here]},
            left=self.counts.left,
            widths={"value": self.values},
        )
        decided = decide(people, replace(self.rules, size=self.rules.k) if self.is_first else self.rules)
        self.is_first = False
        self.classes = decided.classes
        self.shown_value = np.where(decided.is_old, self.shown_value, value)
        self.waited = np.where((self.classes == ABSENT) & is_here, self.waited + 1, 0)
        self.counts = self.counts.after(released(self.classes, self.shown_value, self.values), {"value": self.values})
        return decided


def released(classes: Ints, value: Ints, values: int) -> PeopleOfRelease:
    is_in = classes != ABSENT
    return PeopleOfRelease(classes, {"value": np.unique(classes[is_in] * values + value[is_in])})


def by_fixed_plan(now: Ints, k: int) -> Ints:
    """Release everybody in the class that they are in, without classes of fewer than k."""
    sizes = np.bincount(now[now != ABSENT], minlength=int(now.max()) + 1)
    return np.where((now != ABSENT) & (sizes[np.maximum(now, 0)] >= k), now, ABSENT)


def independently(now: Ints, count: int, random: np.random.Generator) -> Ints:
    """Cut the people, in order of their class and a little noise, into classes of equal size, anew every month."""
    here = np.flatnonzero(now != ABSENT)
    order = here[np.argsort(now[here] + random.normal(0, 0.5, len(here)), kind="stable")]
    found = np.full(len(now), ABSENT)
    found[order] = 1 + np.arange(len(order)) * count // len(order)
    return found


__all__ = ["POOL", "InCohorts", "Population", "by_fixed_plan", "independently", "released"]
