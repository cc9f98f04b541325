"""Microaggregation by halving, and additive noise: sizes, a recursive oracle, moments, re-identification on NHANES."""

import itertools

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from duckanon import spectral
from duckanon._methods.baselines.additive_noise import add_noise
from duckanon._methods.swap.components import principal_coordinates, spectrum
from duckanon._methods.swap.halving import count_rows_in_small_groups, halve_rows, mask_rows, rhs, spectral_rhs

PEOPLE = pa.table({"age": range(9), "weight": [i * i for i in range(9)]})

# Few distinct values: ties at every median, equal rows, constant columns.
tied = st.integers(1, 4).flatmap(
    lambda width: st.integers(2, 90).flatmap(
        lambda rows: arrays(
            np.float64,
            (rows, width),
            elements=st.one_of(st.integers(0, 2).map(float), st.floats(-4, 4, width=16), st.just(1.0)),
        )
    )
)


def partition(labels: np.ndarray) -> set[frozenset[int]]:
    return {frozenset(np.flatnonzero(labels == label).tolist()) for label in np.unique(labels)}


def recursive(points: np.ndarray, rows: list[int], k: int) -> set[frozenset[int]]:
    """Figure 4-2, word for word: one part at a time, rows sorted by value and then by their place."""
    if len(rows) <= 2 * k:
        return {frozenset(rows)}
    column = max(range(points.shape[1]), key=lambda j: np.ptp(points[rows, j]))
    ranked = sorted(rows, key=lambda row: (points[row, column], row))
    low, high = sorted(ranked[: len(rows) // 2]), sorted(ranked[len(rows) // 2 :])
    return recursive(points, low, k) | recursive(points, high, k)


def recursive_rhs(points: np.ndarray, rows: list[int], k: int) -> set[frozenset[int]]:
    part = points[rows]
    if len(rows) <= 2 * k or (part == part[0]).all():
        return {frozenset(rows)}
    cells: dict[tuple[bool, ...], list[int]] = {}
    median, top = np.median(part, axis=0), part.max(axis=0)
    for row in rows:
        above = tuple(bool(x > m or (m == t and x == t)) for x, m, t in zip(points[row], median, top, strict=True))
        cells.setdefault(above, []).append(row)
    return set(itertools.chain.from_iterable(recursive_rhs(points, cell, k) for cell in cells.values()))


@given(tied, st.integers(2, 9))
def test_groups_have_k_to_2k_rows(matrix: np.ndarray, k: int) -> None:
    if len(matrix) < k:
        with pytest.raises(ValueError, match=f"k must be at most the number of rows, {len(matrix)}; got {k}"):
            spectral_rhs(matrix, k)
        return
    sizes = np.bincount(spectral_rhs(matrix, k))
    assert sizes.min() >= k
    assert sizes.max() <= 2 * k


@given(tied, st.integers(2, 5))
def test_same_groups_as_one_at_a_time(matrix: np.ndarray, k: int) -> None:
    if len(matrix) >= k:
        assert partition(halve_rows(matrix, k)) == recursive(matrix, list(range(len(matrix))), k)
        assert partition(rhs(matrix, k)) == recursive_rhs(matrix, list(range(len(matrix))), k)


@pytest.mark.thorough
def test_same_groups_in_a_larger_table() -> None:
    points = np.random.default_rng(1).normal(size=(3001, 6)) * [3, 2, 2, 1, 1, 0.5]
    assert partition(halve_rows(points, 4)) == recursive(points, list(range(3001)), 4)
    assert partition(rhs(points[:, :2], 4)) == recursive_rhs(points[:, :2], list(range(3001)), 4)


def test_sizes_of_the_thesis() -> None:
    labels = spectral_rhs(np.random.default_rng(2).normal(size=(2000, 28)), 5)
    sizes, counts = np.unique(np.bincount(labels), return_counts=True)
    assert sizes.tolist() == [7, 8]
    assert counts.sum() == 256


def test_more_than_63_columns() -> None:
    """The cells of nonspectral groups are numbered with one bit per column, and 64 bits must not run over."""
    matrix = np.zeros((120, 150))
    matrix[:, 0] = np.repeat(np.random.default_rng(3).permutation(40), 3)
    assert partition(rhs(matrix, 2)) == recursive_rhs(matrix, list(range(120)), 2)
    assert count_rows_in_small_groups(rhs(matrix, 2), 3) == 0
    assert count_rows_in_small_groups(rhs(matrix, 2), 4) == 120


def test_principal_coordinates_are_u_d() -> None:
    random = np.random.default_rng(4)
    matrix = random.normal(size=(300, 5)) @ random.normal(size=(5, 5)) + 1e3
    matrix = np.column_stack((matrix, matrix[:, 0] - matrix[:, 1], np.full(300, 7.0)))
    u, d, _ = np.linalg.svd(matrix - matrix.mean(axis=0), full_matrices=False)
    found = principal_coordinates(matrix)
    assert found.shape == (300, 5)
    np.testing.assert_allclose(np.abs(found), np.abs(u * d)[:, :5], atol=1e-7)
    assert principal_coordinates(np.ones((10, 3))).shape == (10, 1)


@pytest.mark.thorough
@given(tied)
def test_representatives(matrix: np.ndarray) -> None:
    random = np.random.default_rng(0)
    labels = spectral_rhs(matrix, 2)
    mean, member = mask_rows(matrix, labels, random), mask_rows(matrix, labels, random, "member")
    np.testing.assert_allclose(mean.mean(axis=0), matrix.mean(axis=0), atol=1e-12)
    for group in range(labels.max() + 1):
        rows = matrix[labels == group]
        np.testing.assert_allclose(mean[labels == group], np.tile(rows.mean(axis=0), (len(rows), 1)), atol=1e-12)
        chosen = member[labels == group]
        assert (chosen == chosen[0]).all()
        assert (rows == chosen[0]).all(axis=1).any()
        distances = ((rows - rows.mean(axis=0)) ** 2).sum(axis=1)
        assert ((chosen[0] - rows.mean(axis=0)) ** 2).sum() <= distances.min() + 1e-12


def test_equally_near_members_are_chosen_at_random() -> None:
    matrix, labels = np.repeat([[0.0], [1.0]], 200, axis=0), np.tile(np.arange(200), 2)
    ones = mask_rows(matrix, labels, np.random.default_rng(5), "member")[:200].sum()
    assert 60 < ones < 140


@pytest.mark.parametrize(("k", "said"), [(1, "1"), (0, "0"), (True, "True"), (2.0, "2.0"), (None, "None")])
def test_wrong_k(k: object, said: str) -> None:
    for method in (spectral.spectral_rhs, spectral.rhs):
        with pytest.raises(ValueError, match=f"k must be a whole number of at least 2; got {said}."):
            method(PEOPLE, k=k)


def test_wrong_label() -> None:
    for method in (spectral.spectral_rhs, spectral.rhs):
        with pytest.raises(ValueError, match="label must be one of 'mean', 'member'; got 'median'"):
            method(PEOPLE, k=2, label="median")


def dependent(rows: int) -> np.ndarray:
    """Correlated columns on different scales, one group of indicators (their sum is constant), a constant column."""
    random = np.random.default_rng(6)
    matrix = random.normal(size=(rows, 3)) @ [[1, 2, 0], [0, 1, 5], [0, 0, 9]] + [5, -3, 100]
    group = random.integers(3, size=rows)
    return np.column_stack((matrix, np.where(np.arange(3) == group[:, np.newaxis], 1.0, -1.0), np.full(rows, 2.0)))


@pytest.mark.thorough
@pytest.mark.parametrize("correlated", [True, False])
@pytest.mark.parametrize("fraction", [0.1, 1.5])
def test_noise_keeps_moments_in_expectation(correlated: bool, fraction: float) -> None:
    matrix = dependent(400)
    expected = np.cov(matrix, rowvar=False)
    if not correlated:
        variances = np.diag(np.diag(expected))
        expected = (expected + fraction * variances) / (1 + fraction)
    random = np.random.default_rng(7)
    releases = [add_noise(matrix, random, fraction, correlated) for _ in range(200)]
    for found, wanted in (
        (np.stack([release.mean(axis=0) for release in releases]), matrix.mean(axis=0)),
        (np.stack([np.cov(release, rowvar=False) for release in releases]), expected),
    ):
        error = found.std(axis=0, ddof=1) / np.sqrt(200)
        assert (np.abs(found.mean(axis=0) - wanted) <= 5 * error + 1e-9).all()
    # A draw's own covariance is not forced: it varies between draws.
    assert np.std([np.var(release[:, 0]) for release in releases]) > 1e-4 * np.var(matrix[:, 0])


def test_noise_has_the_covariance_asked_for() -> None:
    matrix = dependent(50_000)
    covariance = np.cov(matrix, rowvar=False)
    for correlated in (True, False):
        released = add_noise(matrix, np.random.default_rng(8), 0.3, correlated)
        noise = released * np.sqrt(1.3) - matrix - (np.sqrt(1.3) - 1) * matrix.mean(axis=0)
        wanted = 0.3 * (covariance if correlated else np.diag(np.diag(covariance)))
        scale = np.sqrt(np.outer(np.diag(wanted), np.diag(wanted)))
        # The standard error of a covariance is at most sqrt(2 / n) times the product of the deviations.
        assert (np.abs(np.cov(noise, rowvar=False) - wanted) <= 5 * np.sqrt(2 / 50_000) * scale + 1e-9).all()
        if correlated:  # indicators of one group still add up to 2 - q
            np.testing.assert_allclose(released[:, 3:6].sum(axis=1), -1, atol=1e-6)


def test_noise_is_repeatable() -> None:
    matrix = dependent(60)
    first, again, other = (add_noise(matrix, np.random.default_rng(seed)) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert not np.allclose(first, other)


@pytest.mark.parametrize("fraction", [0, -0.1, float("nan"), float("inf"), None, True])
def test_wrong_noise_fraction(fraction: object) -> None:
    with pytest.raises(ValueError, match="noise_fraction must be a finite number above 0; got"):
        spectral.additive_noise(PEOPLE, noise_fraction=fraction)


def test_spectrum_over_several_blocks() -> None:
    matrix = np.random.default_rng(9).normal(size=(70_000, 3)) @ np.triu(np.ones((3, 3))) + 50
    mean, values, vectors = spectrum(matrix)
    np.testing.assert_allclose(mean, matrix.mean(axis=0))
    np.testing.assert_allclose(vectors * values @ vectors.T, np.cov(matrix, rowvar=False), atol=1e-10)
    assert (np.diff(values) <= 0).all()
    assert (vectors[np.abs(vectors).argmax(axis=0), range(3)] > 0).all()
