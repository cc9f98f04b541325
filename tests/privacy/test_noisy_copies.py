"""Noisy copies and columns that are released whole: what chance explains, by brute force, and what it does not."""

from itertools import product

import numpy as np
import pytest
from scipy import stats

from duckanon._core.privacy.noisy_copies import Coded, labelled_rate, noisy_copies
from duckanon._core.privacy.rare_values import ColumnCodes, rare_values
from tests.privacy import false_alarm_study
from tests.profiles import sample_of_today


def hit_by_hand(release, pool, factor):
    hit = set()
    for row in release:
        distances = np.sqrt(np.square(pool - row).mean(axis=1))
        order = np.argsort(distances, kind="stable")
        if 0 < factor * distances[order[0]] < distances[order[1]]:
            hit.add(int(order[0]))
    return hit


def test_counts_by_hand():
    random = np.random.default_rng(1)
    rows, others, release = random.normal(size=(3, 80, 3))
    release[:12] = rows[:12] + random.normal(0, 0.01, (12, 3))
    release[12:15] = rows[12:15]  # equal rows are no noisy ones
    found = noisy_copies([Coded(rows, release, others)], random, 0.99)
    counts = [hit_by_hand(release, np.concatenate([rows, others]), factor) for factor in (3, 8, 20)]
    members = [sum(place < 80 for place in hit) for hit in counts]
    assert found.count in members
    assert found.value == found.count / 80
    assert not found.passed
    without = noisy_copies([Coded(rows, release, None)], random, 0.99)
    assert without.count in [len(hit_by_hand(release, rows, factor)) for factor in (3, 8, 20)]
    assert not without.passed


@pytest.mark.parametrize(("inside", "outside"), [(0, 0), (3, 0), (9, 0), (14, 9), (40, 9), (60, 60)])
def test_limit_is_that_of_draws_without_replacement(inside, outside):
    hit = np.zeros(200, bool)
    hit[:inside] = True
    hit[120 : 120 + outside] = True
    found = labelled_rate(hit, 120, 0.99)
    p_value = stats.hypergeom.sf(inside - 1, 200, 120, inside + outside)
    assert found.passed == (p_value >= 0.01)
    assert (found.value, found.reference) == (inside / 120, outside / 80)


def test_a_column_in_other_order():
    random = np.random.default_rng(2)
    people = random.permutation(4000)  # codes: incomes that single people have
    rows, fresh, others = people[:500], people[500:1000], people[1000:1500]
    ages = random.integers(0, 60, (3, 500))
    for release, passed in ((fresh, True), (random.permutation(rows), False)):
        for known in (others, None):
            columns = [ColumnCodes(ages[0], ages[1], None if known is None else ages[2])]
            columns.append(ColumnCodes(rows, release, known))
            assert rare_values(columns, random, 0.99).passed == passed
    assert rare_values([], random, 0.99).passed


def test_values_on_a_grid_repeat_by_chance():
    random = np.random.default_rng(3)
    alarms = 0
    for _ in range(60):
        rows, fresh, others = np.round(random.lognormal(5, 1, (3, 300))).astype(np.int64)
        known = others if random.random() < 0.5 else None
        alarms += not rare_values([ColumnCodes(rows, fresh, known)], random, 0.95).passed
    assert alarms <= stats.binom.ppf(0.99, 60, 0.05)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("survey", "size"), sample_of_today(list(product(false_alarm_study.SURVEYS, [300, 1000])), part=4)
)
def test_fresh_people_pass_and_leaks_fail(survey, size):
    """A small part of `python -m tests.privacy.false_alarm_study`, with other seeds."""
    table = false_alarm_study.people(survey)
    found = {}
    for name, compared, failed in false_alarm_study.draws(table, size, 90_000, 4, leaks=True):
        found.setdefault(name, []).append(bool(failed))
        if name == "a column" and compared:
            assert "rare_values" in failed
        if size == 1000 and compared and name.startswith("5 %") and survey in ("Adult", "NHANES"):
            assert "noisy_copies" in failed
    assert sum(found["fresh"]) <= 1
