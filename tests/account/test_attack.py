"""An attacker with twelve releases who knows who was where: intersects candidates, subtracts values and totals."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations

import numpy as np
import pytest

from duckanon._core.account.cohorts import CohortRules
from duckanon._core.account.joint import ABSENT
from duckanon._core.common.arrays import Bools, Ints
from tests.account.population import InCohorts, Population, by_fixed_plan, coarser_classes, independently

K, L, VALUES = 10, 2, 10


class Attacker:
    """Has the releases (classes with their values) and knows in which class, or whether, everybody was in each."""

    def __init__(self, releases: list[tuple[Ints, Ints]]) -> None:
        self.lists = np.array([classes for classes, _ in releases]).T
        self.is_seen = (self.lists != ABSENT).any(axis=1)
        self.values = [value for _, value in releases]
        # what is published: the people of each class by their value; a release has no column of people
        self.published = [
            {int(c): np.bincount(value[classes == c], minlength=VALUES) for c in np.unique(classes[classes != ABSENT])}
            for classes, value in releases
        ]

    def candidates(self, releases: list[int]) -> Ints:
        """Return how many people have the list that each person has in these releases."""
        lists = self.lists[self.is_seen][:, releases]
        _, group, sizes = np.unique(lists, axis=0, return_inverse=True, return_counts=True)
        return sizes[group.ravel()][(lists != ABSENT).any(axis=1)]

    def values_by_intersection(self, releases: list[int]) -> Ints:
        """Return how many values are in all classes of each list."""
        results = []
        for classes in self._lists(releases):
            present = [
                self.published[place][int(c)] > 0 for place, c in zip(releases, classes, strict=True) if c != ABSENT
            ]
            results.append(np.logical_and.reduce(present).sum())
        return np.array(results)

    def values_by_subtraction(self, releases: list[int]) -> Ints:
        """Return how many values each group of people with one list has, where the published counts determine it."""
        groups = self._lists(releases)
        rows, sums = [], []
        for number, place in enumerate(releases):
            for c, counts in self.published[place].items():
                rows.append(groups[:, number] == c)
                sums.append(counts)
        system = np.array(rows, float)
        _, strengths, basis = np.linalg.svd(system, full_matrices=True)
        free = basis[(strengths > 1e-9).sum() :]
        determined = (np.abs(free) < 1e-9).all(axis=0)
        solution = np.linalg.lstsq(system, np.array(sums, float), rcond=None)[0]
        return (solution[determined] > 0.5).sum(axis=1)

    def values_by_pseudonym(self, releases: list[int]) -> Ints:
        """Return the fewest values that each group showed in a release, if pseudonyms tell whose record is whose."""
        lists = self.lists[self.is_seen][:, releases]
        groups, numbers = np.unique(lists, axis=0, return_inverse=True)
        fewest = np.full(len(groups), VALUES)
        for number, place in enumerate(releases):
            pairs = np.unique(numbers.ravel() * VALUES + self.values[place][self.is_seen]) // VALUES
            counts = np.bincount(pairs, minlength=len(groups))
            fewest = np.where(groups[:, number] != ABSENT, np.minimum(fewest, counts), fewest)
        return fewest[(groups != ABSENT).any(axis=1)]

    def _lists(self, releases: list[int]) -> Ints:
        """Return the different lists of people who were in one of these releases."""
        lists = np.unique(self.lists[:, releases], axis=0)
        return lists[(lists != ABSENT).any(axis=1)]

    def count_by_totals(self, is_here: list[Bools]) -> int:
        """Count the people who were suppressed in one release and not in the next, in groups of fewer than K.

        The attacker knows who is in the table, so the difference of the totals tells how many of them were suppressed.
        """
        suppressed = np.array([here & (self.lists[:, place] == ABSENT) for place, here in enumerate(is_here)]).T
        changed = suppressed.any(axis=1) & self.is_seen
        _, group, sizes = np.unique(self.lists, axis=0, return_inverse=True, return_counts=True)
        return int((changed & (sizes[group.ravel()] < K)).sum())


def attack(
    people: int, shape: tuple[int, int], way: str, moving: float = 0.01, changing: float = 0
) -> tuple[Attacker, list[Bools]]:
    """Make twelve releases; a share of those who are there may have another value every month."""
    classes = shape[0] * shape[1]
    population = Population(people, classes, 12, VALUES, moving=moving, shape=shape)
    random = np.random.default_rng(5)
    rules, is_followed = CohortRules(K, L, size=30), way == "cohorts with pseudonyms"
    cohorts = InCohorts(len(population.now), VALUES, rules, coarser_classes(shape), is_followed=is_followed)
    releases, is_here = [], []
    value = population.value
    for now in population.pass_by():
        value = np.where(random.random(len(value)) < changing, random.integers(0, VALUES, len(value)), value)
        if way.startswith("cohorts"):
            cohorts.release(now, value)
            releases.append((cohorts.classes, cohorts.shown_value))
        else:
            output: Callable[[], Ints] = {
                "independent": lambda now=now: independently(now, people // 12, random),
                "fixed plan": lambda now=now: by_fixed_plan(now, K),
            }[way]
            releases.append((output(), value))
        is_here.append(now != ABSENT)
    return Attacker(releases), is_here


@pytest.mark.thorough
def test_cohorts_leave_nobody_below_k_nor_l() -> None:
    attacker, is_here = attack(2400, (2, 4), "cohorts", moving=0.03)
    exact = coarser_classes((2, 4))[:, 0]
    assert not np.isin(attacker.lists[:, -1], [*exact, ABSENT]).all()  # coarser labels are there to be attacked
    series = [list(range(count)) for count in range(1, 13)]
    for releases in [*series, *map(list, combinations(range(0, 12, 3), 2))]:
        assert attacker.candidates(releases).min() >= K
        assert attacker.values_by_intersection(releases).min() >= L
        by_subtraction = attacker.values_by_subtraction(releases)
        assert len(by_subtraction) == 0 or by_subtraction.min() >= L
    assert len(attacker.values_by_subtraction(series[-1])) > 20  # it does find out what groups have
    assert attacker.count_by_totals(is_here) == 0


@pytest.mark.thorough
def test_cohorts_with_pseudonyms_leave_l_values_to_who_follows_them() -> None:
    attacker, _ = attack(2400, (2, 4), "cohorts with pseudonyms", moving=0.03, changing=0.2)
    for count in range(1, 13):
        assert attacker.candidates(list(range(count))).min() >= K
        assert attacker.values_by_pseudonym(list(range(count))).min() >= L


@pytest.mark.thorough
def test_the_same_attacker_breaks_independent_releases_and_a_fixed_plan() -> None:
    attacker, _ = attack(600, (2, 4), "independent")
    every = list(range(12))
    assert (attacker.candidates([0]) >= K).all()  # each release by itself keeps k
    assert (attacker.candidates([0, 1]) < K).mean() > 0.5
    assert (attacker.candidates(every) == 1).mean() > 0.9
    assert (attacker.values_by_intersection(every) == 1).mean() > 0.15
    assert (attacker.values_by_pseudonym(every) == 1).mean() > 0.9
    attacker, is_here = attack(600, (5, 9), "fixed plan", moving=0.05)
    assert (attacker.candidates(every) < K).mean() > 0.5
    assert (attacker.values_by_subtraction(every) == 1).sum() > 10
    assert attacker.count_by_totals(is_here) > 10
