"""Tests of a release that see isolated people, few copies and microaggregates, and know when records are too few."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from duckanon._core.common.row_keys import number_known_rows, number_rows
from duckanon._core.privacy.audit import measure_isolation
from duckanon._core.privacy.copies import count_unique_copies
from duckanon._core.privacy.densities import compare_isolated_people, measure_area
from duckanon._core.privacy.rarity import measure_rarity
from duckanon._core.privacy.reference_test import FAIL, PASS, TOO_FEW, PrivacySetting, judge_measure, run_privacy_tests
from tests.profiles import cheap

rows_of_few_values = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2)), min_size=1, max_size=15)


def people(random, rows):
    """Heavy tails in six columns, and a yes-or-no column."""
    values = random.standard_t(4, (rows, 6)) @ np.random.default_rng(7).normal(size=(6, 6))
    return np.column_stack([values / values.std(axis=0), np.where(random.random(rows) < 0.3, 1.0, -1.0)])


def near_isolated(rows, fresh, random, way):
    """Replace one row in ten of a fresh sample by an isolated person, moved by a share of the way to the nearest."""
    release = fresh.copy()
    apart = measure_isolation(rows)
    isolated = np.argsort(-apart)[: len(rows) // 10]
    moved = random.normal(size=(len(isolated), rows.shape[1]))
    moved[:, -1] = 0
    moved *= (way * apart[isolated] / np.sqrt(np.square(moved).mean(axis=1)))[:, None]
    release[: len(isolated)] = rows[isolated] + moved
    return release[random.permutation(len(release))]


def list_failed(tests):
    return [test.name for test in tests if not test.is_within_limit]


@pytest.mark.thorough
def test_isolated_people_nearly_verbatim_fail():
    """Nine in ten rows are of other people, no isolated one comes back within half the way: only isolation shows."""
    others_failed = []
    for seed in range(6):
        random = np.random.default_rng(seed)
        rows, fresh, other = (people(random, 800) for _ in range(3))
        tests = list_failed(
            run_privacy_tests(rows, near_isolated(rows, fresh, random, 0.75), random, PrivacySetting(reference=other))
        )
        assert "isolated_membership" in tests
        others_failed.append(len(tests) > 1)
    assert others_failed.count(False) >= 3


@pytest.mark.thorough
def test_a_fresh_sample_passes():
    random = np.random.default_rng(5)
    results = []
    for _ in range(8):
        rows, fresh, other = (people(random, 400) for _ in range(3))
        results.append(
            list_failed(
                run_privacy_tests(rows, fresh, random, PrivacySetting(reference=other, holdout=other, replicates=100))
            )
        )
    assert results.count([]) >= 7


@pytest.mark.thorough
def test_several_releases_are_attacked_together():
    """What a single release hides in noise, five of the same people show."""
    random = np.random.default_rng(3)
    rows, other = people(random, 800), people(random, 800)
    draws = [near_isolated(rows, people(random, 800), random, 0.88) for _ in range(6)]
    areas = [compare_isolated_people(rows, other, draws[:count], random, 0.995) for count in (1, 6)]
    assert areas[0].is_within_limit
    assert not areas[1].is_within_limit
    more = [(draw, None) for draw in draws[1:]]
    tests = run_privacy_tests(rows, draws[0], random, PrivacySetting(holdout=other, draws=more, replicates=50))
    assert "isolated_membership" in list_failed(tests)
    fresh = [people(random, 800) for _ in range(6)]
    assert compare_isolated_people(rows, other, fresh, random, 0.995).is_within_limit


@pytest.mark.thorough
def test_sides_of_unequal_size_are_compared_at_the_same_size():
    """A large table leaves smaller distances between its own people; its members must not look farther off for it."""
    random = np.random.default_rng(4)
    areas = [
        compare_isolated_people(people(random, 1600), people(random, 400), [people(random, 800)], random, 0.995).value
        for _ in range(6)
    ]
    assert np.mean(areas) == pytest.approx(0.5, abs=0.06)


def test_the_limit_is_that_of_a_rank_sum():
    random = np.random.default_rng(6)
    results = compare_isolated_people(people(random, 500), people(random, 500), [people(random, 500)], random, 0.99)
    assert results.count == 50
    assert results.limit == pytest.approx(0.5 + 2.326 * np.sqrt(101 / (12 * 50**2)), abs=1e-4)
    members, outsiders = random.normal(size=40), random.normal(size=30)
    assert measure_area(members, outsiders) == pytest.approx(stats.mannwhitneyu(outsiders, members).statistic / 1200)


def test_nobody_is_isolated_among_equals():
    rows = np.repeat(people(np.random.default_rng(7), 60), 2, axis=0)
    results = compare_isolated_people(rows, rows, [rows], np.random.default_rng(0), 0.99)
    assert (results.count, results.is_within_limit) == (0, True)


@pytest.mark.thorough
@pytest.mark.parametrize("with_reference", [True, False])
def test_five_copies_in_a_thousand_fail(with_reference):
    random = np.random.default_rng(8)
    rows, fresh, other = (np.round(people(random, 1000), 3) for _ in range(3))
    leaky = fresh.copy()
    leaky[:5] = rows[random.permutation(1000)[:5]]
    reference = other if with_reference else None
    for release, expected in ((fresh, []), (leaky, ["unique_copies"])):
        tests = run_privacy_tests(rows, release, random, PrivacySetting(reference=reference, sample=100, replicates=50))
        assert [name for name in list_failed(tests) if name == "unique_copies"] == expected


@cheap
@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2), st.integers(0, 1)), min_size=4, max_size=25))
def test_rarity_by_force(records):
    """Who differs in one column and in two, counted pair by pair; a column may be several of the matrix."""
    rows = np.array(records, float)
    wide = np.column_stack([rows[:, 0], rows[:, 1] == 0, rows[:, 1] == 1, rows[:, 1] == 2, rows[:, 2]])
    results = measure_rarity(wide, [slice(0, 1), slice(1, 4), slice(4, 5)])
    differing = (rows[:, None] != rows[None]).sum(axis=2)
    equal, entry, two = (differing == 0).sum(axis=1) - 1, (differing == 1).sum(axis=1), (differing == 2).sum(axis=1)
    assert results.near_pairs == entry.sum() / 2
    score = (
        0.2 * equal / max(equal.sum(), 1) + entry / max(entry.sum(), 1) + (two + 0.5) / (two.sum() + 0.5 * len(rows))
    )
    assert results.scores == pytest.approx(score**1.1)
    half = len(rows) // 2
    by_others = measure_rarity(rows[:half], None, rows[half:])
    indexes = (differing[:half, :half] == 1).sum() / 2
    assert by_others.near_pairs == indexes
    equal, entry, two = equal[:half], entry[:half], two[:half]
    score = 0.2 * equal / max(equal.sum(), 1) + entry / max(entry.sum(), 1) + (two + 0.5) / (two.sum() + 0.5 * half)
    assert by_others.scores == pytest.approx(score**1.1)


def test_changes_of_two_categories_do_not_look_alike():
    """A matrix of indicators, column by column: who has another category differs in two of them."""
    values = np.random.default_rng(11).integers(0, 3, (60, 2))
    indicators = np.column_stack([values[:, column] == value for column in range(2) for value in range(3)]).astype(
        float
    )
    results = measure_rarity(indicators)
    two = ((values[:, None] != values[None]).sum(axis=2) == 1).sum(axis=1)
    equal = (values[:, None] == values[None]).all(axis=2).sum(axis=1) - 1
    assert results.near_pairs == 0
    score = 0.2 * equal / equal.sum() + (two + 0.5) / (two.sum() + 0.5 * len(values))
    assert results.scores == pytest.approx(score**1.1)


def test_copies_that_chance_explains_pass():
    """Of few values, many records have equals: these tell how many copies chance gives."""
    random = np.random.default_rng(9)
    rows, fresh = random.integers(0, 5, (2, 500, 5)).astype(float)
    codes, fresh_codes = number_rows(rows, fresh)
    results = count_unique_copies(codes, fresh_codes, None, measure_rarity(rows), random, 0.99)
    assert results.count > 20
    assert results.is_within_limit
    assert not count_unique_copies(codes, codes, None, measure_rarity(rows), random, 0.99).is_within_limit


def test_copies_of_the_rare_weigh_more():
    """Half of the people crowd a few values; ten copies of others are seen, ten of theirs are chance."""
    random = np.random.default_rng(10)

    def sample():
        crowd, rare = random.integers(0, 4, (500, 5)), random.integers(0, 40, (500, 5))
        return np.concatenate([crowd, rare]).astype(float)

    rows, fresh = sample(), sample()
    rarity = measure_rarity(rows)
    unique = np.bincount(number_rows(rows)[0])[number_rows(rows)[0]] == 1
    passed = []
    for people in (np.flatnonzero(unique & (np.arange(1000) < 500)), np.flatnonzero(unique & (np.arange(1000) >= 500))):
        leaky = fresh.copy()
        leaky[-10:] = rows[people[:10]]
        codes, leaky_codes = number_rows(rows, leaky)
        passed.append(count_unique_copies(codes, leaky_codes, None, rarity, random, 0.99).is_within_limit)
    assert passed == [True, False]


def test_a_crowd_that_the_release_makes_up_hides_no_copy():
    """Copies stay rare however many rows the release puts beside them; other people make them common."""
    random = np.random.default_rng(12)
    rows, fresh, other = random.integers(0, 30, (3, 400, 5)).astype(float)
    leaky = fresh.copy()
    leaky[:4] = rows[:4]
    leaky[4:164] = np.repeat(rows[:4], 40, axis=0)
    leaky[np.arange(4, 164), random.integers(0, 5, 160)] += 100
    assert "unique_copies" in list_failed(
        run_privacy_tests(rows, leaky, random, PrivacySetting(reference=other, replicates=50))
    )
    other[:160] = leaky[4:164]
    scores = [measure_rarity(rows, None, people).scores[:4].sum() for people in (None, other)]
    assert scores[1] > 10 * scores[0]


@pytest.mark.thorough
def test_microaggregates_are_judged_by_their_class():
    """Uncertainty is 0 for all of them; rows that stand for one person several times are no class."""
    random = np.random.default_rng(10)
    rows, other = people(random, 600), people(random, 600)
    order = np.argsort(rows[:, 0])
    means = np.repeat([rows[group].mean(axis=0) for group in np.split(order, 100)], 6, axis=0)
    for k, expected in ((5, True), (7, False)):
        tests = {
            test.name: test
            for test in run_privacy_tests(rows, means, random, PrivacySetting(reference=other, k=k, replicates=50))
        }
        assert "uncertainty" not in tests
        assert (tests["class_size"].value, tests["class_size"].is_within_limit) == (6, expected)
    repeated = np.repeat(rows + random.normal(size=rows.shape), 6, axis=0)
    tests = {test.name: test for test in run_privacy_tests(rows, repeated, random, PrivacySetting(replicates=50))}
    assert (tests["class_size"].value, tests["class_size"].is_within_limit) == (1, False)


def test_too_few_records_to_tell():
    """A fresh sample of a hundred is neither safe nor unsafe; a release that moves everybody is unsafe at any size."""
    random = np.random.default_rng(11)
    answers = set()
    for _ in range(20):
        release, reference = random.normal(size=(2, 100))
        test = judge_measure("distance", release, reference, 100, 100, random)
        assert test.is_within_limit == (test.answer == PASS)
        answers.add(test.answer)
        assert judge_measure("distance", release - 2, reference, 100, 100, random).answer == FAIL
        assert judge_measure("distance", release + 2, reference, 100, 100, random).answer == PASS
    assert answers <= {PASS, TOO_FEW}
    assert TOO_FEW in answers


def test_the_limit_of_a_small_table_is_what_chance_explains():
    random = np.random.default_rng(12)
    release, reference = random.normal(size=(2, 400))
    assert judge_measure("distance", release, reference, 400, 50, random).limit == pytest.approx(2.7 / 20)
    assert judge_measure("distance", release, reference, 225, 50, random).limit == pytest.approx(2.7 / 15)
    release, reference = random.normal(size=(2, 4000))
    assert judge_measure("distance", release, reference, 4000, 50, random).limit == 0.05


@cheap
@given(rows_of_few_values, rows_of_few_values)
def test_known_codes_tell_equal_rows(first, second):
    rows, outsiders = np.array(first, float), np.array(second, float)
    codes, other_codes = number_known_rows(rows, outsiders)
    for row, code in zip(second, other_codes, strict=True):
        assert [place for place, other in enumerate(first) if other == row] == np.flatnonzero(codes == code).tolist()
