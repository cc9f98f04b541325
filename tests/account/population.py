"""People who join, leave and move, and the releases that three ways of publishing make of them every month."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from duckanon._core.account.cohorts import POOL, CohortPeople, CohortRules, Decision, decide_cohorts
from duckanon._core.account.joint import ABSENT, JointCounts, PeopleOfRelease
from duckanon._core.common.arrays import Bools, Ints
from duckanon.job.coarser_labels import CoarserLabels, Ladder, levels_of


@dataclass
class Population:
    """People of a number of classes (from 1), each with a sensitive value; month by month some join, leave and move.

    `shape` has the number of labels of each column: who moves then gets another label of one column, not another class.
    """

    people: int
    classes: int
    months: int
    values: int = 10
    shape: tuple[int, ...] | None = None
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
                self.now[moves] = self._move(self.now[moves])
                joins = min(self._random.poisson(self.people * self.joining), len(here) - last)
                self.now[last : last + joins] = self._random.integers(1, self.classes + 1, joins)
                last += joins
            yield self.now.copy()

    def _move(self, classes: Ints) -> Ints:
        if self.shape is None:
            return self._random.integers(1, self.classes + 1, len(classes))
        labels = np.array(np.unravel_index(classes - 1, self.shape))
        column = self._random.integers(0, len(self.shape), len(classes))
        width = np.array(self.shape)[column]
        places = column, np.arange(len(classes))
        labels[places] = (labels[places] + 1 + self._random.integers(0, width - 1)) % width
        return 1 + np.ravel_multi_index(tuple(labels), self.shape)


def coarser_classes(shape: Sequence[int]) -> Ints:
    """Return the classes (from 1) of columns with so many labels under ever coarser labels, as a plan has them."""
    ladders = []
    for count in shape:
        size = math.ceil(math.sqrt(count))
        merged = {str(label): f"from {label // size * size}" for label in range(count)}
        ladders.append(Ladder(count, (merged,) if count >= 4 else ()))
    labels = CoarserLabels([str(place) for place in range(len(shape))], ladders, list(levels_of(ladders)))
    numbers: dict[tuple[str | None, ...], int] = {(None,) * len(shape): POOL}
    exact = [tuple(map(str, entry)) for entry in itertools.product(*map(range, shape))]
    numbers |= {entry: number for number, entry in enumerate(exact, 1)}
    rows = [[POOL] * len(labels.levels)]
    for entry in exact:
        at = [labels.at(entry, level) for level in range(len(labels.levels))]
        rows.append([numbers.setdefault(coarse, len(numbers)) for coarse in at])
    return np.array(rows)


def only_the_pool(classes: int) -> Ints:
    """Return classes without coarser labels but unknown ones."""
    return np.column_stack([np.arange(classes + 1), np.full(classes + 1, POOL)])


@dataclass
class InCohorts:
    """Releases in cohorts; people keep the value with which they entered.

    `is_followed` says that pseudonyms are released; `coarser` has the classes under coarser labels.
    """

    total: int
    values: int
    rules: CohortRules
    coarser: Ints
    is_followed: bool = False
    counts: JointCounts = field(init=False)

    def __post_init__(self) -> None:
        self.counts = JointCounts.of_nobody(self.total)
        self.classes = np.full(self.total, ABSENT)
        self.was_in = np.zeros(self.total, np.bool_)
        self.waited = np.zeros(self.total, np.int64)
        self.stale = np.zeros(self.total, np.int64)
        self.shown_value = np.zeros(self.total, np.int64)
        self.is_first = True

    def release(self, now: Ints, value: Ints, must_go: Bools | None = None) -> Decision:
        """Make the next release."""
        numbers, is_in, is_here = np.arange(self.total), self.classes != ABSENT, now != ABSENT
        people = CohortPeople(
            groups=self.counts.groups,
            before=self.classes,
            now=now,
            is_seen=self.counts.is_seen,
            was_in=self.was_in,
            must_go=np.zeros(self.total, np.bool_) if must_go is None else must_go,
            waited=self.waited,
            stale=self.stale,
            coarser=self.coarser,
            shown={"value": (numbers * self.values + self.shown_value)[is_in]},
            new={"value": (numbers * self.values + value)[is_here]},
            left=self.counts.left,
            widths={"value": self.values},
            paths=self.counts.paths,
        )
        decided = decide_cohorts(people, replace(self.rules, size=self.rules.k) if self.is_first else self.rules)
        self.is_first = False
        self.classes = decided.classes
        self.was_in = self.was_in | (self.classes != ABSENT)
        self.shown_value = np.where(decided.is_old, self.shown_value, value)
        self.waited = np.where((self.classes == ABSENT) & is_here, self.waited + 1, 0)
        self.stale = np.where(decided.is_stale, self.stale + 1, 0)
        output = release_classes(self.classes, self.shown_value, self.values, is_followed=self.is_followed)
        self.counts = self.counts.after(output, {"value": self.values})
        return decided


def release_classes(classes: Ints, value: Ints, values: int, *, is_followed: bool = False) -> PeopleOfRelease:
    is_in = classes != ABSENT
    pairs, counts = np.unique(classes[is_in] * values + value[is_in], return_counts=True)
    sets = {"value": np.where(is_in, value, ABSENT)} if is_followed else {}
    return PeopleOfRelease(classes, {"value": pairs}, {"value": counts}, sets)


def by_fixed_plan(now: Ints, k: int) -> Ints:
    """Release everybody in the class that they are in, without classes of fewer than k."""
    sizes = np.bincount(now[now != ABSENT], minlength=int(now.max()) + 1)
    return np.where((now != ABSENT) & (sizes[np.maximum(now, 0)] >= k), now, ABSENT)


def independently(now: Ints, count: int, random: np.random.Generator) -> Ints:
    """Cut the people, in order of their class and a little noise, into classes of equal size, anew every month."""
    here = np.flatnonzero(now != ABSENT)
    order = here[np.argsort(now[here] + random.normal(0, 0.5, len(here)), kind="stable")]
    results = np.full(len(now), ABSENT)
    results[order] = 1 + np.arange(len(order)) * count // len(order)
    return results


__all__ = [
    "POOL",
    "InCohorts",
    "Population",
    "by_fixed_plan",
    "coarser_classes",
    "independently",
    "only_the_pool",
    "release_classes",
]
