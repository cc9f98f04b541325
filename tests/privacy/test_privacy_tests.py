"""Tests and checks of a release: scipy, brute force, what must be accepted and what must not."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from duckanon._core.common import progress
from duckanon._core.common.row_keys import number_rows
from duckanon._core.privacy.copies import count_unique_copies
from duckanon._core.privacy.copy_rates import (
    compare_shares,
    count_exact_copies,
    count_near_copies,
    draw_parts,
    find_farthest,
    find_most_failures,
    measure_parts,
)
from duckanon._core.privacy.prediction import measure_queries
from duckanon._core.privacy.rarity import Rarity
from duckanon._core.privacy.reference_test import (
    PrivacySetting,
    compare_distributions,
    judge_measure,
    measure_shift,
    run_privacy_tests,
)
from duckanon._core.privacy.self_check import check_release, repair_release, screen_release
from tests.profiles import cheap


@given(st.sampled_from([0.9, 0.99, 0.999]), st.integers(0, 60), st.floats(1e-12, 1e-4) | st.floats(1e-4, 0.999))
def test_quantiles_of_the_negative_binomial_distribution_are_those_of_scipy(confidence, events, chance):
    result_rows = find_most_failures(confidence, events + 0.5, chance)
    at, below = stats.nbinom.cdf([result_rows, result_rows - 1], events + 0.5, chance)
    assert at >= confidence - 1e-12
    assert below < confidence + 1e-12


def people(random, rows):
    """Two groups, heavy tails, two yes-or-no columns, one decimal."""
    group = random.random((rows, 1)) < 0.4
    tail = np.sqrt(random.chisquare(4, (rows, 1)) / 4)
    mixing = np.random.default_rng(7).normal(size=(2, 8, 8)) / 2
    values = random.normal(size=(rows, 8)) / tail
    return finish(np.where(group, values @ mixing[0] + 1, values @ mixing[1]))


def finish(values):
    return np.hstack([np.where(values[:, :2] > 0, 1.0, -1.0), np.round(values[:, 2:], 2)])


def swap_cells(rows, random, shuffle=True):
    centre = rows.mean(axis=0)
    left, values, right = np.linalg.svd(rows - centre, full_matrices=False)
    if shuffle:
        left = np.stack([column[random.permutation(len(column))] for column in left.T], axis=1)
    return finish(left * values @ right + centre)


def with_copies(rows, release, random, share=0.02):
    count = int(share * len(release))
    release = release.copy()
    release[random.permutation(len(release))[:count]] = rows[random.permutation(len(rows))[:count]]
    return release


def noisy(rows, random):
    return finish(rows + random.multivariate_normal(np.zeros(8), 0.1 * np.cov(rows.T), len(rows)))


def tiny_clusters(rows, random, size=15):
    """Swap components inside clusters: halves along the first principal direction, and halves of these, and so on."""
    if len(rows) >= 2 * size:
        centred = rows - rows.mean(axis=0)
        order = np.argsort(centred @ np.linalg.svd(centred, full_matrices=False)[2][0])
        return np.concatenate([tiny_clusters(rows[half], random, size) for half in np.array_split(order, 2)])
    return swap_cells(rows, random)


values = st.lists(st.integers(0, 6).map(float), min_size=2, max_size=40)


@cheap
@given(values, st.randoms(use_true_random=False))
def test_shift_is_the_one_sided_statistic(reference, random):
    release = np.array([max(0.0, value - random.randint(0, 2)) for value in reference])
    largest, bound = measure_shift(release, np.array(reference), 50, np.random.default_rng(0))
    expected = stats.ks_2samp(release, reference, alternative="greater").statistic
    assert largest == pytest.approx(expected, abs=1e-12)
    assert bound >= largest


@pytest.mark.parametrize("rows", [1, 2, 50, 999, 10_000, 10_001])
@pytest.mark.parametrize("digits", [1, 15])
@pytest.mark.parametrize("moved", [-5, 0, 0.1, np.nan])
def test_kolmogorov_smirnov_is_that_of_scipy(rows, digits, moved):
    random = np.random.default_rng(rows)
    release, reference = random.normal(size=(2, rows)).round(digits)
    release[0] -= moved
    release[1:] -= 0 if np.isnan(moved) else moved
    expected = stats.ks_2samp(release, reference, alternative="greater")
    assert compare_distributions(release, reference) == pytest.approx(expected[:2], rel=1e-12, nan_ok=True)


def test_shift_bootstrap_by_force():
    random = np.random.default_rng(3)
    release, reference = random.normal(-0.2, 1, 60), random.normal(0, 1, 60)
    largest, bound = measure_shift(release, reference, 200, np.random.default_rng(5))
    picks = np.random.default_rng(5).integers(0, 60, (200, 60))
    again = [stats.ks_2samp(release[i], reference[i], alternative="greater").statistic for i in picks]
    assert bound == pytest.approx(max(largest, 2 * largest - np.quantile(again, 0.05)))


def test_bound_covers():
    """The true shift of two normals half a deviation apart lies below the bound in about 95 of 100 cases."""
    random = np.random.default_rng(0)
    true = 2 * stats.norm.cdf(0.25) - 1
    covered = []
    for _ in range(200):
        base = random.normal(size=400)
        release, reference = base - 0.5, random.normal(size=400)
        covered.append(measure_shift(release, reference, 100, random)[1] >= true)
    assert 0.90 <= np.mean(covered) <= 0.995


def results(tests):
    return {test.name: test for test in tests}


@pytest.mark.thorough
@pytest.mark.parametrize("with_reference", [True, False])
def test_accepted_and_refused(with_reference):
    random = np.random.default_rng(11)
    rows, other, fresh, holdout = (people(random, 2000) for _ in range(4))
    given_ = {"reference": other, "holdout": holdout} if with_reference else {}

    def tests(release):
        return results(
            run_privacy_tests(rows, release, np.random.default_rng(1), PrivacySetting(replicates=100, **given_))
        )

    for honest in (fresh, swap_cells(rows, random)):
        assert [name for name, test in tests(honest).items() if not test.is_within_limit] == []
    copies = tests(with_copies(rows, fresh, random))
    assert not copies["exact_copies"].is_within_limit
    assert not copies["unique_copies"].is_within_limit
    assert copies["exact_copies"].value == pytest.approx(0.02, abs=0.002)
    noise = tests(noisy(rows, random))
    assert not noise["distance"].is_within_limit
    assert not noise["near_copies"].is_within_limit
    assert not all(test.is_within_limit for test in tests(tiny_clusters(rows, random)).values())
    assert with_reference == ("membership" in noise)
    if with_reference:
        assert not noise["membership"].is_within_limit
        expected = stats.ks_2samp(
            measure_queries(rows, fresh).distance, measure_queries(rows, other).distance, alternative="greater"
        )
        assert tests(fresh)["distance"].p_value == pytest.approx(expected.pvalue)
        assert tests(fresh)["distance"].ks == pytest.approx(expected.statistic)
        area = (
            stats.mannwhitneyu(
                measure_queries(holdout, fresh).distance, measure_queries(rows, fresh).distance
            ).statistic
            / 4e6
        )
        assert tests(fresh)["membership"].value == pytest.approx(area)


@pytest.mark.thorough
@pytest.mark.parametrize(("released", "reference"), [(3000, 1000), (1000, 3000), (3000, None), (700, None)])
def test_sizes_that_differ(released, reference):
    random = np.random.default_rng(released)
    rows, fresh = people(random, 1500), people(random, released)
    other = None if reference is None else people(random, reference)
    honest = run_privacy_tests(rows, fresh, random, PrivacySetting(reference=other, replicates=100))
    assert [test.name for test in honest if not test.is_within_limit and test.name != "distance"] == []
    assert results(honest)["distance"].shift < 0.06  # at unequal sizes it would be beyond 0.15
    copies = run_privacy_tests(
        rows, with_copies(rows, fresh, random, 0.03), random, PrivacySetting(reference=other, replicates=100)
    )
    assert not results(copies)["exact_copies"].is_within_limit


def test_sample_and_refusals():
    random = np.random.default_rng(2)
    rows, fresh = people(random, 600), people(random, 600)
    shares = []
    with progress.watch(None, shares.append):
        assert len(run_privacy_tests(rows, fresh, random, PrivacySetting(sample=100, replicates=50))) == 7
    assert shares == sorted(shares)
    assert shares[-1] == 1
    with pytest.raises(ValueError, match="at least 20 original rows; got 5"):
        run_privacy_tests(rows[:5], fresh, random)
    with pytest.raises(ValueError, match="needs more than 5 released rows; got 0"):
        run_privacy_tests(rows, fresh[:0], random)
    with pytest.raises(ValueError, match="sample must be NULL or a whole number of at least 20; got 3"):
        run_privacy_tests(rows, fresh, random, PrivacySetting(sample=3))
    with pytest.raises(ValueError, match="at least 20 original rows and 1 released row; got 600 and 0"):
        check_release(rows, fresh[:0], random)


small = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2)), min_size=1, max_size=15)


@cheap
@given(small, small, small)
def test_copies_by_force(original, released, reference):
    codes = number_rows(*(np.array(rows, float) for rows in (original, released, reference)))
    result_rows = count_exact_copies(codes[0], [codes[1]], codes[2], len(released), 0.99)
    assert result_rows.value == pytest.approx(np.mean([row in released for row in original]))
    assert result_rows.reference == pytest.approx(np.mean([row in reference for row in original]))
    alone = count_exact_copies(codes[0], [codes[1]], None, len(original), 0.99)
    assert alone.reference == pytest.approx(np.mean([original.count(row) > 1 for row in original]))
    unique = [row for row in original if original.count(row) == 1]
    if unique and len(released) == len(reference):
        alike = Rarity(np.ones(len(original)), 0, 1.0)
        result_rows = count_unique_copies(codes[0], codes[1], codes[2], alike, np.random.default_rng(0), 0.99)
        assert result_rows.value == pytest.approx(np.mean([row in released for row in unique]))
        assert result_rows.reference == pytest.approx(np.mean([row in reference for row in unique]))


def test_rate_limits_hold_for_honest_counts():
    random = np.random.default_rng(0)
    for expected in (0.5, 5, 60, 900):
        pairs = random.binomial(1000, expected / 1000, (500, 2))
        passed = [compare_shares(a, 1000, b, 1000, 0.99).is_within_limit for a, b in pairs]
        assert np.mean(passed) > 0.97
    assert not compare_shares(20, 1000, 0, 1000, 0.99).is_within_limit
    assert compare_shares(0, 0, 0, 0, 0.99).is_within_limit
    all_of_them = 0.1 + 0.7 + 0.2  # more than 1 by rounding, as sums of weights are
    assert compare_shares(all_of_them, 1, all_of_them, 1, 0.99).is_within_limit


@cheap
@given(st.integers(1, 200), st.integers(1, 60))
def test_parts_cover_all_rows(rows, size):
    drawn = draw_parts(rows, size, np.random.default_rng(0))
    assert set(np.concatenate(drawn)) == set(range(rows))
    for part in drawn:
        assert len(set(part)) == len(part) <= max(size, 1.1 * size)


@given(st.integers(0, 2**32 - 1), st.integers(1, 40), st.integers(20, 200), st.integers(1, 5), st.booleans())
def test_distances_to_parts_are_those_of_a_search_in_each(seed, queries, rows, width, is_coarse):
    """As far as the radius; parts overlap, rows are equal to each other and to queries, or all near each other."""
    random = np.random.default_rng(seed)
    records, release = (random.normal(size=(count, width)) for count in (queries, rows))
    if is_coarse:
        records, release = np.round(records), np.round(release)
    radii = random.choice([0.0, 0.3, 1.0, 50.0], queries)
    chosen = draw_parts(rows, int(random.integers(1, rows + 1)), random)
    result_rows = measure_parts(records, release, chosen, radii)
    for part, distances in zip(chosen, result_rows, strict=True):
        expected = np.sqrt(np.square(records[:, None] - release[part]).mean(axis=2)).min(axis=1)
        near = expected < radii
        np.testing.assert_allclose(distances[near], expected[near], rtol=1e-12)
        assert (distances[~near] >= radii[~near]).all()


def test_isolated_and_near_copies():
    distances = np.array([0.0] * 30 + [1.0] * 9 + [5.0])
    assert np.flatnonzero(find_farthest(distances)).tolist() == list(range(30, 40))
    assert not find_farthest(np.zeros(40)).any()
    reference = np.arange(1.0, 101.0)
    result_rows = count_near_copies([np.where(reference > 98, 1.0, 90.0)], [(reference, reference)], 0.99)
    assert (result_rows.value, result_rows.reference) == (2 / 5, 0.0)


@pytest.mark.thorough
def test_checks_of_honest_releases():
    alarms = []
    for seed in range(6):
        random = np.random.default_rng(seed)
        rows = people(random, 1000)
        release = swap_cells(rows, random)[random.permutation(1000)]
        categories = np.where(random.random((1000, 4)) < 0.3, 1.0, -1.0)
        integers = random.poisson(1.5, (2, 1000, 4)).astype(float)
        alarms += [
            result_rows.sentence("wait")
            for result_rows in (
                check_release(rows, release, random),
                check_release(rows, people(random, 1000), random),
                check_release(categories, random.permutation(categories), random),
                check_release(integers[0], integers[1], random),
                check_release(np.ones((300, 2)), np.ones((300, 2)), random),
            )
        ]
    assert set(alarms) == {""}


@pytest.mark.thorough
def test_checks_and_repairs():
    random = np.random.default_rng(4)
    rows, fresh = people(random, 2000), people(random, 2000)
    bad = with_copies(rows, fresh, random)
    result_rows = check_release(rows, bad, random)
    assert not result_rows.is_within_limit
    assert result_rows["exact_copies"].count == 40
    assert result_rows.sentence("wait").startswith(
        "the release would give records away: 40 original rows come back unchanged"
    )
    assert result_rows.sentence("wait").endswith("; wait.")
    keep = repair_release(rows, bad, random)
    assert 0.96 <= keep.mean() < 1
    assert check_release(rows, bad[keep], random).is_within_limit
    noise = noisy(rows, random)[random.permutation(2000)]
    assert not check_release(rows, noise, random)["near_copies"].is_within_limit
    keep = repair_release(rows, noise, random)
    assert 0.9 <= keep.mean() < 1
    assert check_release(rows, noise[keep], random)["near_copies"].is_within_limit
    integers = random.poisson(1.5, (2, 2000, 5)).astype(float)
    assert check_release(integers[0], integers[0], random)["exact_copies"].value == 1
    half = np.concatenate([integers[0][:1000], integers[1][:1000]])[random.permutation(2000)]
    keep = repair_release(integers[0], half, random)
    assert 0.1 < keep.mean() < 1
    assert check_release(integers[0], half[keep], random).is_within_limit


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_repair_leaves_as_many_copies_as_chance_gives(seed: int) -> None:
    """A hundred unique records in the middle of a grid come back, where many would by chance."""
    random = np.random.default_rng(seed)
    rows, fresh = np.round(random.normal(0, 6, (2, 300, 2)))
    counts = Counter(map(tuple, rows.tolist()))
    repeated = [row for row in counts if counts[row] == 1 and max(map(abs, row)) < 9][:100]
    bad = np.concatenate([repeated, fresh[len(repeated) :]])
    is_copy, is_copy_by_chance = ([counts[tuple(row)] == 1 for row in table.tolist()] for table in (bad, fresh))
    assert np.mean(is_copy) > np.mean(is_copy_by_chance) + 0.15
    keep = repair_release(rows, bad, random)
    assert np.mean(np.array(is_copy)[keep]) == pytest.approx(np.mean(is_copy_by_chance), abs=0.15)


def test_row_order():
    random = np.random.default_rng(5)
    rows = people(random, 1000)
    linked = rows + random.normal(size=rows.shape) * 3
    result_rows = check_release(rows, linked, random)
    assert not result_rows["row_order"].is_within_limit
    assert "row order links released rows to originals" in result_rows.sentence("wait")
    assert check_release(rows, random.permutation(linked), random)["row_order"].is_within_limit


@pytest.mark.thorough
def test_large_table_is_looked_at_in_part():
    """Planted near copies of the farthest records are found though only some originals are looked at."""
    random = np.random.default_rng(6)
    rows, release = random.normal(size=(2, 21_000, 6))
    assert check_release(rows, release, random, budget=1).is_within_limit
    far = np.argsort(np.square(rows).sum(axis=1))[-40:]
    release[:40] = rows[far] + 0.001
    result_rows = check_release(rows, release, random, budget=1)
    assert not result_rows["near_copies"].is_within_limit
    keep = repair_release(rows, release, random, budget=1)
    assert keep[:40].sum() <= 4  # the farthest of all are not the most isolated ones every time
    assert keep.mean() > 0.99
    assert check_release(rows, release[keep], random, budget=1).is_within_limit


@pytest.mark.thorough
def test_a_repaired_release_is_checked_again() -> None:
    random = np.random.default_rng(5)
    rows, fresh = random.normal(size=(2, 600, 6))
    leaky = np.concatenate([fresh[:560], rows[:40]])
    with pytest.raises(ValueError, match=r"40 original rows come back unchanged .*; wait\.$"):
        screen_release(rows, leaky, "error", random, "wait")
    kept = screen_release(rows, leaky, "repair", random, "wait")
    assert kept[:560].sum() > 500
    assert check_release(rows, leaky[kept], random).is_within_limit
    with pytest.raises(ValueError, match=r"600 original rows come back unchanged"):
        screen_release(rows, rows, "repair", random, "wait")
    assert screen_release(rows, fresh, "error", random, "wait").all()


@pytest.mark.parametrize(
    ("rows", "shifted", "answer"),
    [(2000, 0.5, "fail"), (2000, 0.0, "pass"), (30, 0.0, "too few records to tell")],
)
def test_a_release_that_is_nearer_fails_and_few_rows_say_nothing(rows: int, shifted: float, answer: str) -> None:
    random = np.random.default_rng(1)
    release, reference = random.random((rows, 1)) * (1 - shifted), random.random((rows, 1))
    assert judge_measure("distance", release[:, 0], reference[:, 0], rows, 200, random).answer == answer
