"""Kernel principal components against scikit-learn, landmarks against exact ones, distances against scipy."""

import numpy as np
import pytest
from scipy import stats
from sklearn.decomposition import KernelPCA

from duckanon._measure.utility.kernels import (
    ComponentOptions,
    compare_components,
    exact_components,
    kernel_for,
    kernel_projections,
    landmark_components,
)


def data(rows: int, seed: int, width: int = 6) -> np.ndarray:
    random = np.random.default_rng(seed)
    values = random.normal(size=(rows, width)) @ np.random.default_rng(99).normal(size=(width, width)) / 2
    values[:, 0] = np.sign(values[:, 0])
    values[:, 1] += values[:, 2] ** 2 / 3
    return values


@pytest.mark.thorough
@pytest.mark.parametrize("rows", [300, 700])  # dense eigenvectors, and Lanczos
@pytest.mark.parametrize("name", ["polynomial", "gaussian", "exponential"])
def test_exact_against_scikit_learn(name, rows):
    first, second, third = data(rows, 1), data(250, 2) * 1.1, data(280, 3)
    random = np.random.default_rng(1)
    kernel = kernel_for(name, 4, None if name != "exponential" else 3.0, first, random)
    options = {
        "polynomial": {"kernel": "poly", "degree": 4, "gamma": 1, "coef0": 1},
        "gaussian": {"kernel": "rbf", "gamma": 1 / (2 * kernel.width**2)},
        "exponential": {"kernel": "precomputed"},
    }[name]

    def given(x: np.ndarray) -> np.ndarray:
        return np.exp((x - first.mean(axis=0)) @ (first - first.mean(axis=0)).T / 9) if name == "exponential" else x

    expected = KernelPCA(8, eigen_solver="dense", **options).fit(given(first))
    found = exact_components(kernel, first, 8, random)
    np.testing.assert_allclose(found.eigenvalues, expected.eigenvalues_ / rows, rtol=1e-8)
    ours, theirs = found.project(second) * found.grid[:, None], expected.transform(given(second)).T
    signs = np.sign((ours * theirs).sum(axis=1))[:, None]
    np.testing.assert_allclose(ours * signs, theirs, atol=1e-6 * np.abs(theirs).max())
    table = compare_components(
        first, second, third, random=random, options=ComponentOptions(name, width=kernel.width, components=8)
    )  # the same in the report
    on = expected.transform(given(first)).T
    others = expected.transform(given(third)).T
    for j, row in enumerate(table.to_pylist()):
        for prefix, projected in (("", theirs), ("reference_", others)):
            test = stats.ks_2samp(np.round(on[j], 6), np.round(projected[j], 6), method="asymp")
            assert row[f"{prefix}ks"] == pytest.approx(test.statistic, abs=2 / rows)
            assert row[f"{prefix}p_value"] == pytest.approx(test.pvalue, rel=0.2, abs=1e-3)
    matrix = {"polynomial": (first @ first.T + 1) ** 4, "gaussian": kernel(first, first)}.get(name, given(first))
    centring = np.eye(rows) - 1 / rows
    centred = np.linalg.eigvalsh(centring @ matrix @ centring)[::-1]
    shares = np.cumsum(centred)[:8] / centred.sum()
    np.testing.assert_allclose(table["cumulative"].to_numpy(), shares, rtol=1e-6)


@pytest.mark.thorough
@pytest.mark.parametrize(("name", "limit"), [("polynomial", 0.004), ("gaussian", 0.004), ("exponential", 0.004)])
def test_landmarks_against_exact(name, limit):
    first, second = data(2500, 1), data(2500, 2) * 1.05
    exact, near = (
        compare_components(first, second, random=np.random.default_rng(1), options=options)
        for options in (ComponentOptions(name, components=6, exact_rows=rows) for rows in (3000, 0))
    )
    np.testing.assert_allclose(near["eigenvalue"], exact["eigenvalue"], rtol=0.01)
    np.testing.assert_allclose(near["cumulative"], exact["cumulative"], rtol=0.01)
    np.testing.assert_allclose(near["ks"], exact["ks"], atol=limit)


def test_unstandardised_logs():
    """Far from the origin the top components are almost linear, and landmarks find them almost exactly."""
    first, second = data(2000, 1) / 3 + 4, data(2000, 2) / 3 + 4.02
    exact, near = (
        compare_components(first, second, random=np.random.default_rng(1), options=options)["ks"].to_numpy()
        for options in (ComponentOptions(components=5, exact_rows=rows) for rows in (3000, 0))
    )
    np.testing.assert_allclose(near, exact, atol=0.00051)


@pytest.mark.parametrize("name", ["polynomial", "gaussian", "exponential"])
def test_kernels_by_their_formulas(name):
    """One pair of rows at a time, as the reference writes them; the diagonal is the kernel of a row with itself."""
    first, second = data(40, 1), data(30, 2)
    kernel = kernel_for(name, 3, None, first, np.random.default_rng(1))
    distances = [np.linalg.norm(x - y) for at, x in enumerate(first) for y in first[:at]]
    sigma, mean = np.median(distances), first.mean(axis=0)
    formula = {
        "polynomial": lambda x, y: (x @ y + 1) ** 3,
        "gaussian": lambda x, y: np.exp(-np.sum((x - y) ** 2) / (2 * sigma**2)),
        "exponential": lambda x, y: np.exp((x - mean) @ (y - mean) / sigma**2),
    }[name]
    np.testing.assert_allclose(kernel(first, second), [[formula(x, y) for y in second] for x in first], 1e-5)
    np.testing.assert_allclose(kernel.diagonal(first), [formula(x, x) for x in first], 1e-5)


def test_all_landmarks_are_exact():
    first = data(200, 1)
    random = np.random.default_rng(1)
    kernel = kernel_for("gaussian", 4, None, first, random)
    exact = exact_components(kernel, first, 5, random)
    near = landmark_components(kernel, first, 5, 200, 1000, random)
    np.testing.assert_allclose(near.eigenvalues, exact.eigenvalues, rtol=1e-8)
    assert near.total == pytest.approx(exact.total)


@pytest.mark.parametrize("exact_rows", [5000, 0])
@pytest.mark.parametrize("name", ["polynomial", "gaussian", "exponential"])
def test_equal_rows_stay_equal(name, exact_rows):
    random = np.random.default_rng(1)
    first = random.choice([-1.0, 1.0], (700, 5))  # 32 different rows: rounding errors would part them
    options = ComponentOptions(name, exact_rows=exact_rows)
    table = compare_components(first, random.permutation(first), random=random, options=options)
    assert table["ks"].to_numpy().max() == 0
    assert table["reference_ks"].null_count == table.num_rows


@pytest.mark.thorough
def test_nonlinear_loss_is_found():
    """A release with the same means, variances and correlations, and without the relation, is told from a sample."""
    random = np.random.default_rng(1)

    def ring(rows: int) -> np.ndarray:
        angle = random.uniform(0, 2 * np.pi, rows)
        return np.column_stack([np.cos(angle), np.sin(angle)]) * np.sqrt(2) + random.normal(0, 0.1, (rows, 2))

    first, reference = ring(1500), ring(1500)
    swapped = np.column_stack([random.permutation(column) for column in first.T])
    for name in ("polynomial", "gaussian", "exponential"):
        table = compare_components(
            first, swapped, reference, random=random, options=ComponentOptions(name, components=6)
        )
        assert table["p_value"].to_numpy().min() < 1e-6
        assert table["reference_p_value"].to_numpy().min() > 1e-3
    few = compare_components(
        first, swapped, reference, random=random, options=ComponentOptions(components=6), points=50
    )
    assert few["p_value"].to_numpy().min() > table["p_value"].to_numpy().min()


def test_components_without_variance_are_left_out():
    first = np.repeat([[0.0, 1.0], [1.0, 1.0]], 20, axis=0)
    for exact_rows in (100, 0):
        options = ComponentOptions(exact_rows=exact_rows)
        table = compare_components(first, first, random=np.random.default_rng(1), options=options)
        assert table.num_rows == 1
        assert table["cumulative"][0].as_py() == pytest.approx(1)
        with pytest.raises(ValueError, match="all constant"):
            compare_components(first * 0 + 0.1, first, random=np.random.default_rng(1), options=options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kernel": "cubic"}, "kernel must be one of 'polynomial', 'gaussian', 'exponential'; got 'cubic'."),
        ({"degree": 0}, "degree must be a whole number of at least 1; got 0."),
        ({"components": 0}, "components must be a whole number of at least 1; got 0."),
        ({"points": 1}, "points must be NULL or a whole number of at least 2; got 1."),
        ({"width": -1.0}, "width must be NULL or a finite number above 0; got -1.0."),
        ({"reference": np.ones((3, 2))}, "as many columns; got 6, 6, 2."),
        ({"degree": 400}, "the kernel of these numbers is too large"),
    ],
)
@pytest.mark.filterwarnings("ignore:overflow")
def test_wrong_input(options, message):
    first = data(50, 1) * 100
    others = {name: value for name, value in options.items() if name in ("points", "reference")}
    options = {name: value for name, value in options.items() if name not in others}
    with pytest.raises(ValueError, match=message):
        compare_components(first, first, random=np.random.default_rng(1), options=ComponentOptions(**options), **others)


def test_wrong_matrices():
    random = np.random.default_rng(1)
    with pytest.raises(ValueError, match="the released table must have at least 1 rows"):
        compare_components(data(50, 1), data(0, 1), random=random)
    with pytest.raises(ValueError, match="the original table holds NaN"):
        compare_components(data(50, 1) * np.nan, data(50, 1), random=random)


def test_projections_against_scikit_learn():
    first, second = data(300, 1), data(250, 2)
    options = ComponentOptions(degree=3, components=2)
    ours = kernel_projections(first, second, random=np.random.default_rng(1), options=options, points=1000)
    expected = KernelPCA(2, kernel="poly", degree=3, gamma=1, coef0=1, eigen_solver="dense").fit(first)
    for found, rows in zip(ours, (first, second), strict=True):
        theirs = expected.transform(rows)
        signs = np.sign((found * theirs).sum(axis=0))
        np.testing.assert_allclose(found * signs, theirs, atol=1e-6 * np.abs(theirs).max())
    tails = ours[0] - np.median(ours[0], axis=0)
    assert (tails.max(axis=0) >= -tails.min(axis=0)).all()  # the sign is that of the longer tail
    fewer = kernel_projections(first, second, random=np.random.default_rng(1), options=options, points=20)
    assert [len(rows) for rows in fewer] == [20, 20]
