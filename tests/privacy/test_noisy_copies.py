"""Noisy copies and columns that are released whole: what chance explains, by brute force, and what it does not."""

from itertools import cycle, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from duckanon._core.privacy.copies import Amounts, CopyTables, count_close_copies, count_noisy_copies
from duckanon._core.privacy.copy_rates import compare_members, find_most_inside
from duckanon._core.privacy.rarity import ColumnCodes, count_rare_values
from tests.privacy import false_alarm_study
from tests.profiles import cheap


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
    rows, outsiders, release = random.normal(size=(3, 80, 3))
    release[:12] = rows[:12] + random.normal(0, 0.01, (12, 3))
    release[12:15] = rows[12:15]  # equal rows are no noisy ones
    results = count_noisy_copies([CopyTables(rows, release, outsiders)], random, 0.99)
    counts = [hit_by_hand(release, np.concatenate([rows, outsiders]), factor) for factor in (3, 8, 20)]
    members = [sum(place < 80 for place in hit) for hit in counts]
    assert results.count in members
    assert results.value == results.count / 80
    assert not results.is_within_limit
    without = count_noisy_copies([CopyTables(rows, release, None)], random, 0.99)
    assert without.count in [len(hit_by_hand(release, rows, factor)) for factor in (3, 8, 20)]
    assert not without.is_within_limit


def close_by_hand(queries, people, names, reach, chosen):
    """Return the people whom rows hit: the same text, every chosen number another, none farther than the reach."""
    hit = {}
    for row, (query, name) in enumerate(queries):
        apart = np.square(people - query).sum(axis=1)
        apart[[other != name for other in names]] = np.inf
        place = int(np.argmin(apart))
        if np.abs(people[place] - query).max() <= reach and all(
            people[place, entry] != query[entry] for entry in chosen
        ):
            hit[row] = place
    return hit


def test_close_copies_by_hand():
    """Two texts, a number of a few values and one of many: rows that differ in all numbers, or in that of many."""
    random = np.random.default_rng(7)
    size = 300

    def people():
        text = np.where(random.random(size) < 0.5, 1.0, -1.0)
        return np.column_stack([text, np.round(random.normal(size=size) * 2) / 2, random.normal(size=size) * 30])

    rows, release, outsiders = people(), people(), people()
    release[:20] = rows[:20] + np.column_stack([np.zeros(20), random.normal(0, 0.01, (20, 2))])
    numbers, nulls = np.array([1, 2]), np.array([-1, -1])
    for known in (outsiders, None):
        amounts = Amounts(rows, release, known, numbers, nulls)
        drawn = np.arange(size), np.arange(0 if known is None else size), np.arange(size)
        pool = rows if known is None else np.concatenate([rows, outsiders])
        queries = [(row[1:], row[0]) for row in release]
        results = count_close_copies(amounts, drawn, 0.998)
        for rate_, (chosen, reach) in zip(results, product(([0, 1], [1]), (0.03, 0.15)), strict=True):
            hit = set(close_by_hand(queries, pool[:, 1:], pool[:, 0], reach, chosen).values())
            assert rate_.count == sum(place < size for place in hit)
        assert not results[0].is_within_limit
    fresh = count_close_copies(Amounts(rows, people(), outsiders, numbers, nulls), (np.arange(size),) * 3, 0.998)
    assert all(entry.is_within_limit for entry in fresh)


def test_a_release_that_lost_its_digits_is_no_copy():
    """Ages in halves of a year differ from everybody's, and from those of the release's own rows."""
    random = np.random.default_rng(8)
    text = np.ones((400, 1))
    rows, fresh = (np.hstack([text, random.integers(0, 40, (400, 2)) / 10.0]) for _ in range(2))
    blurred = fresh + np.hstack([0 * text, random.uniform(0.01, 0.09, (400, 2))])
    for release, passed in ((blurred, True), (np.hstack([text, rows[:, 1:] + 1e-4]), False)):
        amounts = Amounts(rows, release, None, np.array([1, 2]), np.array([-1, -1]))
        results = count_close_copies(amounts, (np.arange(400), np.zeros(0, np.int64), np.arange(400)), 0.998)
        assert all(entry.is_within_limit for entry in results) == passed


def test_missing_numbers_need_not_differ():
    """Rows that have one of two numbers, with noise in it."""
    random = np.random.default_rng(9)
    rows = np.column_stack([random.normal(size=(200, 2)) * 50, np.full(200, -1.0)])
    rows[:100, 1], rows[:100, 2] = 0.0, 1.0  # the second is NULL
    release = np.random.default_rng(10).permutation(rows) + 7.0 * np.array([1.0, 0.0, 0.0])
    release[:30] = rows[:30] + np.array([0.002, 0.0, 0.0])
    amounts = Amounts(rows, release, None, np.array([0, 1]), np.array([-1, 2]))
    results = count_close_copies(amounts, (np.arange(200), np.zeros(0, np.int64), np.arange(200)), 0.998)
    assert results[0].count == 30
    assert not results[0].is_within_limit
    nothing = np.zeros(0, np.int64)  # no number at all
    assert (
        count_close_copies(Amounts(rows, release, None, nothing, nothing), (np.arange(200), nothing, nothing), 0.998)
        == []
    )


@pytest.mark.parametrize(("inside", "outside"), [(0, 0), (3, 0), (9, 0), (14, 9), (40, 9), (60, 60)])
def test_limit_is_that_of_draws_without_replacement(inside, outside):
    hit = np.zeros(200, bool)
    hit[:inside] = True
    hit[120 : 120 + outside] = True
    results = compare_members(hit, 120, 0.99)
    p_value = stats.hypergeom.sf(inside - 1, 200, 120, inside + outside)
    assert results.is_within_limit == (p_value >= 0.01)
    assert (results.value, results.reference) == (inside / 120, outside / 80)


@cheap
@given(st.integers(0, 300), st.integers(1, 300), st.integers(1, 300), st.sampled_from([0.9, 0.99, 0.998]))
def test_most_inside_is_that_of_scipy(outside, members, others, confidence):
    outside = min(outside, others)
    results = find_most_inside(outside, members, others, confidence)
    limits = np.arange(members)
    too_many = stats.hypergeom.sf(limits, members + others, members, limits + 1 + outside) < 1 - confidence
    close = (
        abs(stats.hypergeom.sf(limits, members + others, members, limits + 1 + outside) / (1 - confidence) - 1) < 1e-9
    )
    expected = int(np.argmax(too_many)) if too_many.any() else members
    assert results == expected or close[min(results, expected)]


def test_a_column_in_other_order():
    random = np.random.default_rng(2)
    people = random.permutation(4000)  # codes: incomes that single people have
    rows, fresh, outsiders = people[:500], people[500:1000], people[1000:1500]
    ages = random.integers(0, 60, (3, 500))
    for release, passed in ((fresh, True), (random.permutation(rows), False)):
        for known in (outsiders, None):
            columns = [ColumnCodes(ages[0], ages[1], None if known is None else ages[2])]
            columns.append(ColumnCodes(rows, release, known))
            assert count_rare_values(columns, random, 0.99).is_within_limit == passed
    assert count_rare_values([], random, 0.99).is_within_limit


def test_values_on_a_grid_repeat_by_chance():
    random = np.random.default_rng(3)
    alarms = 0
    for _ in range(60):
        rows, fresh, outsiders = np.round(random.lognormal(5, 1, (3, 300))).astype(np.int64)
        known = outsiders if random.random() < 0.5 else None
        alarms += not count_rare_values([ColumnCodes(rows, fresh, known)], random, 0.95).is_within_limit
    assert alarms <= stats.binom.ppf(0.99, 60, 0.05)


@pytest.mark.thorough
@pytest.mark.parametrize(("survey", "size"), list(zip(false_alarm_study.SURVEYS, cycle([300, 1000]), strict=False)))
def test_fresh_people_pass_and_leaks_fail(survey, size):
    """A small part of `python -m tests.privacy.false_alarm_study`, with other seeds."""
    table = false_alarm_study.people(survey)
    results = {}
    for name, compared, failed in false_alarm_study.draws(table, size, 90_000, 4, leaks=True):
        results.setdefault(name, []).append(bool(failed))
        if name == "a column" and compared:
            assert "rare_values" in failed
        if size == 1000 and compared and "noise" in name:
            assert "noisy_copies" in failed
    assert sum(results["fresh"]) <= 1
