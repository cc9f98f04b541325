"""Data shuffling and copulas: multisets, rank correlations, latent correlations against simulation and closed forms."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import multivariate_normal, norm, spearmanr

from duckanon import spectral
from duckanon._methods.baselines.copulas import (
    draw_levels,
    find_latent_correlation,
    order_categories,
    shuffle_by_copula,
)

columns = st.integers(1, 4).flatmap(
    lambda width: st.integers(1, 60).flatmap(
        lambda rows: st.lists(
            arrays(
                np.float64, rows, elements=st.one_of(st.integers(0, 2).map(float), st.floats(-4, 4), st.just(np.nan))
            ),
            min_size=width,
            max_size=width,
        )
    )
)


@given(columns)
def test_shuffling_keeps_every_value(codes: list[np.ndarray]) -> None:
    for index in shuffle_by_copula(codes, np.random.default_rng(0)):
        np.testing.assert_array_equal(np.sort(index), np.arange(len(codes[0])))


@given(columns, st.integers(1, 80))
def test_levels_are_shares(codes: list[np.ndarray], rows: int) -> None:
    for levels in draw_levels(codes, rows, np.random.default_rng(1)):
        assert len(levels) == rows
        assert ((levels >= 0) & (levels <= 1)).all()


@pytest.mark.thorough
@given(columns)
def test_latent_correlation_is_possible(codes: list[np.ndarray]) -> None:
    found = find_latent_correlation(codes)
    np.testing.assert_allclose(np.diag(found), 1)
    np.testing.assert_array_equal(found, found.T)
    assert np.linalg.eigvalsh(found).min() >= -1e-9


def test_without_ties_it_is_equation_2_15() -> None:
    codes = np.random.default_rng(2).normal(size=(3000, 4)) @ np.triu(np.full((4, 4), 0.8))
    expected = 2 * np.sin(np.pi * spearmanr(codes).statistic / 6)
    np.testing.assert_allclose(find_latent_correlation(list(codes.T)), expected, atol=2e-3)


@pytest.mark.thorough
@pytest.mark.parametrize("correlation", [-0.9, -0.3, 0.0, 0.5, 0.85])
@pytest.mark.parametrize("shares", [(0.5, 0.5), (0.1, 0.7)])
def test_two_valued_columns_against_the_normal_orthant(correlation: float, shares: tuple[float, float]) -> None:
    """Counts of a two by two table that a normal pair of this correlation has: the tetrachoric correlation."""
    rows = 10**6
    cuts = norm.ppf(shares)
    both = multivariate_normal(cov=[[1, correlation], [correlation, 1]]).cdf(cuts)
    counts = np.round(np.array([both, shares[0] - both, shares[1] - both, 1 - sum(shares) + both]) * rows).astype(int)
    first, second = np.repeat([0.0, 0, 1, 1], counts), np.repeat([0.0, 1, 0, 1], counts)
    assert find_latent_correlation([first, second])[0, 1] == pytest.approx(correlation, abs=0.01)


def cut_normals(rows: int) -> tuple[list[np.ndarray], np.ndarray]:
    """Normal data, some columns of which are cut into few values."""
    random = np.random.default_rng(3)
    root = random.normal(size=(6, 3))
    covariance = root @ root.T + 0.3 * np.eye(6)
    covariance /= np.sqrt(np.outer(np.diag(covariance), np.diag(covariance)))
    scores = random.multivariate_normal(np.zeros(6), covariance, rows)
    cuts = [[0.0], [1.2], [-1, 0, 0.5], [0.3]]
    codes = [np.searchsorted(cut, scores[:, j]).astype(float) for j, cut in enumerate(cuts)]
    return [*codes, np.maximum(scores[:, 4], 0.2), np.exp(scores[:, 5])], covariance


def test_ties_do_not_weaken_rank_correlations() -> None:
    codes, covariance = cut_normals(40_000)
    np.testing.assert_allclose(find_latent_correlation(codes), covariance, atol=0.04)
    original = spearmanr(np.stack(codes, axis=1)).statistic
    random = np.random.default_rng(4)
    indices = shuffle_by_copula(codes, random)
    shuffled = np.stack([column[index] for column, index in zip(codes, indices, strict=True)], axis=1)
    drawn = np.stack(
        [
            np.sort(column)[(levels * 40_000).astype(int)]
            for column, levels in zip(codes, draw_levels(codes, 40_000, random), strict=True)
        ],
        axis=1,
    )
    # Five standard errors of 1 / sqrt(n) each; equation 2.15 alone misses by more than .1 here.
    for released in (shuffled, drawn):
        np.testing.assert_allclose(spearmanr(released).statistic, original, atol=5 / np.sqrt(40_000))
    plain = 2 * np.sin(np.pi * original / 6)
    assert np.abs(plain - covariance).max() > 0.1
    assert not any(np.array_equal(index, np.arange(40_000)) for index in indices)


def test_missing_is_one_value_above_all_others() -> None:
    codes, _ = cut_normals(500)
    codes[5][codes[5] > 2] = np.inf
    expected = find_latent_correlation(codes)
    codes[5][codes[5] > 2] = np.nan
    np.testing.assert_array_equal(find_latent_correlation(codes), expected)


def test_row_order_links_nothing() -> None:
    codes = [np.arange(5000.0), np.arange(5000.0) ** 2]
    first, second = shuffle_by_copula(codes, np.random.default_rng(5))
    assert abs(np.corrcoef(first, np.arange(5000))[0, 1]) < 5 / np.sqrt(5000)
    assert np.corrcoef(first, second)[0, 1] > 0.99


def test_repeatable() -> None:
    codes, _ = cut_normals(300)
    for method in (shuffle_by_copula, lambda c, r: draw_levels(c, 50, r)):
        first, again, other = (np.stack(method(codes, np.random.default_rng(seed))) for seed in (1, 1, 2))
        np.testing.assert_array_equal(first, again)
        assert not np.array_equal(first, other)


def test_order_of_categories() -> None:
    """Categories that stand for bands of a number come out in the order of the bands, whatever they are called."""
    random = np.random.default_rng(7)
    number = random.normal(size=4000)
    name = np.array([3, 0, 4, 1])
    band = np.searchsorted([-1, 0, 1], number)
    others = np.column_stack((number + random.normal(size=4000), random.normal(size=4000)))
    place = order_categories(name[band], others)
    assert abs(spearmanr(place, number).statistic) > 0.9
    assert len(np.unique(place)) == 4
    by_count = order_categories(np.array([2, 2, 2, 0, 0, 1]), np.empty((6, 0)))
    assert by_count.tolist() == [2, 2, 2, 1, 1, 0]


def test_wrong_input() -> None:
    for rows in (0, -1, 2.0, True):
        with pytest.raises(ValueError, match=f"rows must be None or a whole number of at least 1; got {rows}."):
            spectral.copula_synthesize(pa.table({"a": range(3), "b": [1, 0, 0]}), rows=rows)
    random = np.random.default_rng(0)
    for wrong in ([], [np.zeros(3), np.zeros(4)], [np.zeros(0)]):
        with pytest.raises(ValueError, match="one code for each of at least 1 row; got lengths"):
            shuffle_by_copula(wrong, random)
