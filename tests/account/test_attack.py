"""An attacker with twelve releases who knows who was where: intersects candidates, subtracts values and totals."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations

import numpy as np
import pytest

from duckanon._core.account.cohorts import Rules
from duckanon._core.account.joint import ABSENT
from duckanon._core.common.arrays import Bools, Ints
from tests.account.population import InCohorts, Population, by_fixed_plan, independently

K, L, VALUES = 10, 2, 10


class Attacker:
    """Has the releases (classes with their values) and knows in which class, or whether, everybody was in each."""

    def __init__(self, releases: list[tuple[Ints, Ints]]) -> None:
        self.lists = np.array([classes for classes, _ in releases]).T
        self.is_seen = (self.lists != ABSENT).any(axis=1)
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

    def values_by_intersection(self) -> Ints:
        """Return how many values are in all classes of each person."""
        found = []
        for classes in np.unique(self.lists[self.is_seen], axis=0):
            present = [self.published[place][int(c)] > 0 for place, c in enumerate(classes) if c != ABSENT]
            found.append(np.logical_and.reduce(present).sum())
        return np.array(found)

    def values_by_subtraction(self) -> Ints:
        """Return how many values each group of people with one list has, where the published counts determine it."""
        groups = np.unique(self.lists[self.is_seen], axis=0)
        rows, sums = [], []
        for place, of_classes in enumerate(self.published):
            for c, counts in of_classes.items():
                rows.append(groups[:, place] == c)
                sums.append(counts)
        system = np.array(rows, float)
        _, strengths, basis = np.linalg.svd(system, full_matrices=True)
        free = basis[(strengths > 1e-9).sum() :]
        determined = (np.abs(free) < 1e-9).all(axis=0)
        solution = np.linalg.lstsq(system, np.array(sums, float), rcond=None)[0]
        return (solution[determined] > 0.5).sum(axis=1)

    def found_by_totals(self, is_here: list[Bools]) -> int:
        """Count the people who were suppressed in one release and not in the next, in groups of fewer than K.

        The attacker knows who is in the table, so the difference of the totals tells how many of them were suppressed.
        """
        suppressed = np.array([here & (self.lists[:, place] == ABSENT) for place, here in enumerate(is_here)]).T
        changed = suppressed.any(axis=1) & self.is_seen
        _, group, sizes = np.unique(self.lists, axis=0, return_inverse=True, return_counts=True)
        return int((changed & (sizes[group.ravel()] < K)).sum())


def attacked(people: int, classes: int, way: str, moving: float = 0.01) -> tuple[Attacker, list[Bools]]:
    population = Population(people, classes, 12, VALUES, moving=moving)
    random = np.random.default_rng(5)
    cohorts = InCohorts(len(population.now), VALUES, Rules(K, L, size=30))
    releases, is_here = [], []
    for now in population.pass_by():
        if way == "cohorts":
            cohorts.release(now, population.value)
            releases.append((cohorts.classes, cohorts.shown_value))
        else:
            made: Callable[[], Ints] = {
                "independent": lambda now=now: independently(now, people // 12, random),
                "fixed plan": lambda now=now: by_fixed_plan(now, K),
            }[way]
            releases.append((made(), population.value))
        is_here.append(now != ABSENT)
    return Attacker(releases), is_here


@pytest.mark.rotating
def test_cohorts_leave_nobody_below_k_nor_l() -> None:
    attacker, is_here = attacked(2400, 8, "cohorts")
    for count in range(1, 13):
        assert attacker.candidates(list(range(count))).min() >= K
    for pair in combinations(range(0, 12, 3), 2):
        assert attacker.candidates(list(pair)).min() >= K
    assert attacker.values_by_intersection().min() >= L
    by_subtraction = attacker.values_by_subtraction()
    assert len(by_subtraction) > 20  # it does find out what groups have, and each has several values
    assert by_subtraction.min() >= L
    assert attacker.found_by_totals(is_here) == 0


@pytest.mark.rotating
def test_the_same_attacker_breaks_independent_releases_and_a_fixed_plan() -> None:
    attacker, _ = attacked(600, 8, "independent")
    assert (attacker.candidates([0]) >= K).all()  # each release by itself keeps k
    assert (attacker.candidates([0, 1]) < K).mean() > 0.5
    assert (attacker.candidates(list(range(12))) == 1).mean() > 0.9
    assert (attacker.values_by_intersection() == 1).mean() > 0.15
    attacker, is_here = attacked(600, 45, "fixed plan", moving=0.05)
    assert (attacker.candidates(list(range(12))) < K).mean() > 0.5
    assert (attacker.values_by_subtraction() == 1).sum() > 10
    assert attacker.found_by_totals(is_here) > 10
