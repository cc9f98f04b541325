"""How likely a unique record is another person's: densities by force, pairs of equal people, and copies that fail."""

import math

import numpy as np
import pytest

from duckanon._core.common.row_keys import number_known_rows, number_rows
from duckanon._core.privacy.copies import count_unique_copies
from duckanon._core.privacy.densities import _DensityColumn, _fit_shares, estimate_log_densities, estimate_rarity
from duckanon._core.privacy.rarity import measure_rarity

GROUPS = [slice(0, 1), slice(1, 4), slice(4, 5)]


def people(random, count):
    """A number of forty values, a category of three as indicators that follows it, and a switch."""
    numbers = random.binomial(39, random.choice([0.2, 0.7], count))
    categories = np.where(random.random(count) < 0.7, numbers // 14, random.integers(0, 3, count))
    return np.column_stack([numbers, categories[:, None] == np.arange(3), random.random(count) < 0.3]).astype(float)


def chance_by_force(column, pool, person, other, shares):
    """The chance of a person's value, given another's: that value, one near to it, or any."""
    values = [tuple(row) for row in pool[:, column]]
    different = len(set(values))
    frequency = (values.count(values[person]) - 0.5) / (len(values) - 1 + 0.5 * different)
    chance = shares[2] * frequency + shares[0] * (values[person] == values[other])
    if column == GROUPS[0]:
        numbers, reach = sorted(pool[:, 0]), int(0.05 * len(pool))
        first = max(0, sum(number < pool[other, 0] for number in numbers) - reach)
        last = min(len(pool), sum(number <= pool[other, 0] for number in numbers) + reach) - 1
        near = [number for number in numbers if numbers[first] <= number <= numbers[last]]
        chance += shares[1] * frequency * (pool[person, 0] in near) / (len(near) / len(pool))
    return chance


@pytest.mark.thorough
@pytest.mark.parametrize("seed", [1, 2])
def test_densities_by_force(seed):
    """The mean, over all other people, of the product of the chances in each column."""
    rows, outsiders = np.split(people(np.random.default_rng(seed), 90), [60])
    pool = np.concatenate([rows, outsiders])
    results = estimate_log_densities(rows, GROUPS, outsiders, np.random.default_rng(0), 1000)
    order = np.random.default_rng(0).permutation(len(pool))
    columns = [_DensityColumn.of(pool[:, group]) for group in GROUPS]
    _fit_shares(columns, order, order)
    for person in range(0, 60, 7):
        products = [
            math.prod(
                chance_by_force(group, pool, person, other, column.shares)
                for group, column in zip(GROUPS, columns, strict=True)
            )
            for other in range(len(pool))
            if other != person
        ]
        assert results[person] == pytest.approx(math.log(np.mean(products)), abs=1e-4)


def test_shares_are_likelier_than_those_it_began_with(monkeypatch):
    rows, fresh = np.split(people(np.random.default_rng(3), 1200), 2)
    likelihood = {}
    for steps in (0, 1, 12):
        monkeypatch.setattr("duckanon._core.privacy.densities._STEPS", steps)
        both = estimate_log_densities(np.concatenate([fresh, rows]), GROUPS, None, np.random.default_rng(0), 1200)
        likelihood[steps] = both.mean()
    assert likelihood[0] < likelihood[1] < likelihood[12]


def test_large_tables_are_told_by_near_misses(monkeypatch):
    rows = people(np.random.default_rng(4), 300)
    monkeypatch.setattr("duckanon._core.privacy.densities._PAIRS", 300 * 1999)
    results = estimate_rarity(rows, GROUPS, None, np.random.default_rng(0))
    assert results.scores.tolist() == measure_rarity(rows, GROUPS).scores.tolist()


def test_pairs_of_equal_people_are_counted():
    rows, outsiders = np.array([[1], [1], [2], [2], [2], [3], [4], [4]], float), np.array([[1], [5], [5], [6]], float)
    assert (measure_rarity(rows).twins, measure_rarity(rows).twin_pairs) == (2, 28)
    results = measure_rarity(rows, None, outsiders)
    assert (results.twins, results.twin_pairs) == (3, 28 + 6)


@pytest.mark.thorough
@pytest.mark.parametrize("with_reference", [True, False])
def test_chance_is_expected_and_copies_are_not(with_reference):
    """Of people of few values: as many are expected as are repeated, and copies of the rare fail."""
    random = np.random.default_rng(6)

    def sample():
        rare = random.random(400) < 0.5
        return np.where(rare[:, None], random.integers(0, 30, (400, 4)), random.integers(0, 5, (400, 4))).astype(float)

    repeated, expected, alarms, caught = [], [], 0, 0
    for _ in range(12):
        rows, fresh, other = sample(), sample(), sample()
        reference = other if with_reference else None
        rarity = estimate_rarity(rows, None, reference, random)
        leaky = fresh.copy()
        unique = np.bincount(number_rows(rows)[0])[number_rows(rows)[0]] == 1
        leaky[:4] = rows[unique & (rows.max(axis=1) > 15)][:4]
        for release in (fresh, leaky):
            indexes, released, *outsiders = number_known_rows(rows, release, *([other] if with_reference else []))
            results = count_unique_copies(indexes, released, outsiders[0] if outsiders else None, rarity, random, 0.99)
            if release is leaky:
                caught += not results.is_within_limit
            else:
                alarms += not results.is_within_limit
                repeated.append(results.value)
                expected.append(results.reference)
    assert alarms <= 1
    assert caught >= 10
    assert np.mean(expected) == pytest.approx(np.mean(repeated), rel=0.5)
