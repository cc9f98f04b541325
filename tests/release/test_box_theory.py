"""Half-widths against the golden cases and a solver; the asymptotic optimum against analytic densities."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from duckanon._methods.boxes.shaping import Statistic
from duckanon._methods.boxes.theory import compute_halfwidths, estimate_optimum, measure_uncertainty
from tests.profiles import cheap


@pytest.mark.parametrize(
    ("a", "rho", "k", "l", "epsilon", "expected", "total"),
    [
        ((1, 2), 50, 8, 1, None, (0.282843, 0.141421), 0.565685),
        ((1, 2), 50, 8, 3, (0.1, 0.15), (0.177778, 0.225), 0.627778),
        ((1, 2), 50, 8, 3, (0.1, 0.2), (0.15, 0.3), 0.75),
        ((4, 1, 0.5), 100, 5, 2, (0.2, 0.1, 0.1), (0.2, 0.125, 0.25), 1.05),
    ],
)
def test_golden_cases(a, rho, k, l, epsilon, expected, total):  # noqa: E741
    got = compute_halfwidths(a, rho, k, l, epsilon)
    np.testing.assert_allclose(got, expected, atol=5e-7)
    assert float(got @ np.array(a)) == pytest.approx(total, abs=5e-7)


positive = st.floats(0.05, 20)


@cheap
@given(st.lists(st.tuples(positive, st.floats(0, 1)), min_size=1, max_size=4), positive, st.integers(2, 9))
def test_halfwidths_against_a_solver(columns, rho, k):
    a, epsilon = np.array(columns).T
    got = compute_halfwidths(a, rho, k, 2, epsilon)
    assert rho * np.prod(2 * got) >= k * (1 - 1e-9)
    assert (2 * got >= 2 * epsilon * (1 - 1e-9)).all()
    best = minimize(
        lambda z: (a * np.exp(z)).sum(),
        np.log(np.maximum(epsilon, (k / rho) ** (1 / len(a)))) + 0.1,
        jac=lambda z: a * np.exp(z),
        method="SLSQP",
        bounds=[(np.log(e) if e > 0 else -40, None) for e in epsilon],
        constraints={"type": "ineq", "fun": lambda z: (z + np.log(2)).sum() - np.log(k / rho), "jac": np.ones_like},
        options={"maxiter": 500, "ftol": 1e-12},
    )
    assert float(a @ got) <= best.fun * (1 + 1e-6)


def test_many_points_at_once():
    a = np.random.default_rng(0).uniform(0.1, 3, (50, 3))
    rho = np.linspace(1, 500, 50)
    epsilon = (0.1, 0.2, 0.0)
    together = compute_halfwidths(a, rho, 6, 2, epsilon)
    for row, density, expected in zip(a, rho, together, strict=True):
        np.testing.assert_allclose(compute_halfwidths(row, density, 6, 2, epsilon), expected)


# Of one normal column the optimum hangs on its few extremes.
@pytest.mark.thorough
@pytest.mark.parametrize(("shape", "n"), [("normal", 2), ("normal", 4), ("uniform", 1), ("uniform", 2), ("uniform", 4)])
def test_estimated_density(shape, n):
    size = 50_000
    random = np.random.default_rng(n)
    x = random.normal(size=(n, size)) if shape == "normal" else random.random(size=(n, size))
    columns = {f"c{j}": values for j, values in enumerate(x)}
    density = (
        size * (np.exp(-(x**2) / 2) / np.sqrt(2 * np.pi)).prod(axis=0) if shape == "normal" else np.full(size, size)
    )
    for statistics in (None, [Statistic("variance", (name,)) for name in columns]):
        exact = estimate_optimum(columns, 10, statistics, density)
        assert estimate_optimum(columns, 10, statistics) == pytest.approx(exact, rel=0.06)


def test_columns_without_a_say_are_dropped():
    random = np.random.default_rng(0)
    columns = {name: random.normal(size=20_000) for name in "abc"}
    one = [Statistic("mean", ("a",))]
    assert estimate_optimum(columns, 10, one) == estimate_optimum({"a": columns["a"]}, 10, one)
    np.testing.assert_allclose(measure_uncertainty([2.0, 0.0], np.array([4.0, 8.0]), 8), [2, 1])
    assert estimate_optimum({"a": np.ones(50)}, 10) == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            (((1, 0)), 50, 8),
            "sensitivities must be finite numbers above 0; got others, so leave out the columns without any.",
        ),
        ((((1, 2)), 0, 8), "density must be finite and above 0; got another."),
        ((((1, 2)), 50, 8, 9), "l must be at most k, 8; got 9."),
        ((((1, 2)), 50, 8, 2, (-1, 1)), "epsilon must be finite numbers of at least 0; got others."),
    ],
)
def test_wrong_input(arguments, message):
    with pytest.raises(ValueError) as raised:  # noqa: PT011 - the whole message is compared
        compute_halfwidths(*arguments)
    assert str(raised.value) == message
