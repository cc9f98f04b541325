"""Rare points and weights: golden cases, brute force over thresholds, a convex solver, derivatives."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from duckanon._methods.intervals.box_reports import (
    compute_contributions,
    dismiss_boxes,
    find_threshold,
    find_weights,
    solve_box_weights,
)
from duckanon._methods.intervals.moments import STATISTICS, compute_influence, compute_statistic, differentiate
from tests.profiles import cheap, seeds
from tests.release.bounded import bounded_boxes

D = [0.1, 0.2, 0.4, 1.0]
POINTS = np.array([(1, 2), (2, 1), (4, 5), (7, 6), (11, 13)], dtype=float)
COLUMNS = {"mean": 1, "variance": 1, "standard_deviation": 1, "covariance": 2, "correlation": 2, "regression": 3}


@pytest.mark.parametrize(("spread", "kept", "value"), [(0.5, 2, 0.503553), (0.1, 1, 0.2), (5.0, 4, 2.925)])
def test_golden_crisp(spread, kept, value):
    threshold, keep, objective = find_threshold(D, [1] * 4, spread)
    assert keep.sum() == kept
    assert threshold == D[kept - 1]
    assert objective == pytest.approx(value, abs=1e-6)


@pytest.mark.parametrize(
    ("d", "m", "spread", "limit", "weights"),
    [
        (D, [1] * 4, 0.5, 0.493675, (0.504049, 0.376012, 0.119939, 0)),
        (D, [1] * 4, 5.0, 2.900505, (0.282822, 0.272723, 0.252525, 0.191931)),
        ([0.1, 0.3], [10, 5], 0.5, 0.258114, (0.1, 0)),
    ],
)
def test_golden_weights(d, m, spread, limit, weights):
    found, weight, objective = find_weights(d, m, spread)
    assert found == pytest.approx(limit, abs=1e-6)
    assert objective == pytest.approx(limit, abs=1e-6)
    assert weight == pytest.approx(weights, abs=1e-6)


@pytest.mark.parametrize(
    ("statistic", "columns", "estimate", "spread"),
    [
        ("variance", [0], 13.2, 12.480385),
        ("covariance", [0, 1], 14.8, 16.400976),
        ("correlation", [0, 1], 0.964445, 0.055634),
        ("regression", [1, 0], 1.121212, 0.277787),
    ],
)
def test_golden_sensitivities(statistic, columns, estimate, spread):
    x = POINTS[:, columns]
    found, d, _, a = compute_contributions(statistic, x, np.ones(5), np.zeros_like(x))
    assert (found, a) == pytest.approx((estimate, spread), abs=1e-6)
    assert not d.any()


@pytest.mark.parametrize("statistic", STATISTICS)
def test_derivatives_against_finite_differences(statistic):
    rng = np.random.default_rng(0)
    x, share = rng.normal(size=(COLUMNS[statistic], 12)), rng.random(12)
    share /= share.sum()
    found = compute_influence(statistic, x, share)
    step = 1e-6
    for i in range(len(x)):
        for j in range(12):
            up, down = x.copy(), x.copy()
            up[i, j] += step
            down[i, j] -= step
            slope = (
                compute_influence(statistic, up, share).estimate - compute_influence(statistic, down, share).estimate
            ) / (2 * step)
            assert slope == pytest.approx(share[j] * found.slopes[i, j], abs=1e-7)
    for j in range(12):
        more = (1 - step) * share
        more[j] += step
        less = (1 + step) * share
        less[j] -= step
        slope = (compute_influence(statistic, x, more).estimate - compute_influence(statistic, x, less).estimate) / (
            2 * step
        )
        assert slope == pytest.approx(found.psi[j], rel=1e-5, abs=1e-6)
    assert np.sum(share * found.psi) == pytest.approx(0, abs=1e-12)


cases = st.lists(st.tuples(st.integers(0, 20).map(lambda v: v / 7), st.integers(1, 9)), min_size=1, max_size=12)


@cheap
@given(cases, st.floats(0, 10))
def test_crisp_against_all_subsets_by_threshold(boxes, spread):
    d, m = np.array([b[0] for b in boxes]), np.array([b[1] for b in boxes])
    _, keep, objective = find_threshold(d, m, spread)
    tried = [(m * d)[d <= t].sum() / m[d <= t].sum() + spread / np.sqrt(m[d <= t].sum()) for t in d]
    assert objective == pytest.approx(min(tried))
    assert (m * d)[keep].sum() / m[keep].sum() + spread / np.sqrt(m[keep].sum()) == pytest.approx(min(tried))


@cheap
@given(cases, st.floats(0, 10))
def test_weights_are_optimal(boxes, spread):
    d, m = np.array([b[0] for b in boxes]), np.array([b[1] for b in boxes])
    limit, w, objective = find_weights(d, m, spread)
    assert (w >= 0).all()
    assert np.sum(m * w) == pytest.approx(1)
    # The Lagrange conditions of a convex problem: equal to lambda where the weight is positive, at least it elsewhere.
    norm = np.sqrt(np.sum(m * w * w))
    slope = d + spread * w / norm
    assert slope[w > 0] == pytest.approx(limit, abs=1e-6)
    assert (slope >= limit - 1e-9).all()
    assert objective == pytest.approx(limit, abs=1e-6)


@pytest.mark.parametrize("seed", seeds(5, 25))
def test_weights_against_a_convex_solver(seed):
    rng = np.random.default_rng(seed)
    d, m, spread = rng.exponential(size=12), rng.integers(1, 6, 12), rng.random() * 3
    _, w, objective = find_weights(d, m, spread)
    solved = minimize(
        lambda v: v @ (m * d) + spread * np.sqrt(m @ v**2),
        np.full(12, 1 / m.sum()),
        jac=lambda v: m * d + spread * m * v / np.sqrt(m @ v**2),
        bounds=[(0, None)] * 12,
        constraints={"type": "eq", "fun": lambda v: m @ v - 1, "jac": lambda v: m.astype(float)},
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 1000},
    )
    assert objective <= solved.fun + 1e-9
    assert objective == pytest.approx(solved.fun, rel=1e-6)
    assert w == pytest.approx(solved.x, abs=1e-4)


def gaussian_boxes(statistic, seed=1, boxes=200):
    rng = np.random.default_rng(seed)
    c = rng.normal(size=(boxes, COLUMNS[statistic]))
    c[:, 0] += 0.5 * c[:, -1] * (c.shape[1] > 1)
    half = 0.05 * rng.exponential(size=c.shape) * (1 + np.abs(c)) ** 2
    return c - half, c + half, rng.integers(5, 15, boxes)


@pytest.mark.parametrize("statistic", STATISTICS)
def test_dismissal_against_all_thresholds(statistic):
    lo, hi, m = gaussian_boxes(statistic)
    found = dismiss_boxes(statistic, lo, hi, m)
    middle, half = (lo + hi) / 2, (hi - lo) / 2
    estimate, d, psi, spread = compute_contributions(statistic, middle, m, half)
    plain, counted = [], []
    for t in np.unique(d):
        keep = d <= t
        n = m[keep].sum()
        value = compute_influence(statistic, middle[keep].T, m[keep] / n).estimate
        cost = (m * d)[keep].sum() / n + spread / np.sqrt(n)
        plain.append(cost)
        counted.append(cost + abs(value - estimate) if np.isfinite(value) else np.inf)
    assert found.paper.objective == pytest.approx(min(plain))
    assert found.corrected.total == pytest.approx(min(counted), rel=1e-6)
    assert found.everything.total == pytest.approx(counted[-1])
    for choice in (found.paper, found.corrected, found.everything):
        assert choice.total == pytest.approx(choice.privacy + choice.statistical + choice.shift)
        assert np.sum(m * choice.weight) == pytest.approx(1)
        assert choice.kept_records == m[choice.weight > 0].sum()
        assert ((d <= choice.threshold) == (choice.weight > 0)).all()
    assert found.corrected.total <= min(found.paper.total, found.everything.total) * (1 + 1e-12)
    assert found.everything.standard_error == pytest.approx(np.sqrt(np.sum(m * psi**2)) / m.sum())


@pytest.mark.thorough
@pytest.mark.parametrize("statistic", STATISTICS)
def test_weights_count_the_shift(statistic):
    lo, hi, m = gaussian_boxes(statistic)
    found = solve_box_weights(statistic, lo, hi, m)
    assert found.corrected.total <= min(found.paper.total, found.everything.total) * (1 + 1e-12)
    assert found.paper.objective <= found.everything.objective
    assert found.paper.objective == pytest.approx(found.paper.threshold)
    for choice in (found.paper, found.corrected, found.everything):
        assert np.sum(m * choice.weight) == pytest.approx(1)
        assert choice.total == pytest.approx(choice.privacy + choice.statistical + choice.shift)


def test_corrected_weights_against_a_convex_solver():
    lo, hi, m = gaussian_boxes("mean", boxes=15)
    found = solve_box_weights("mean", lo, hi, m).corrected
    estimate, d, psi, spread = compute_contributions("mean", (lo + hi) / 2, m, (hi - lo) / 2)

    def objective(v):  # the last variable bounds the shift
        return v[:-1] @ (m * d) + spread * np.sqrt(m @ v[:-1] ** 2) + v[-1]

    solved = minimize(
        objective,
        np.append(np.full(15, 1 / m.sum()), 1.0),
        bounds=[(0, None)] * 16,
        constraints=[
            {"type": "eq", "fun": lambda v: m @ v[:-1] - 1},
            {"type": "ineq", "fun": lambda v: v[-1] - (m * psi) @ v[:-1]},
            {"type": "ineq", "fun": lambda v: v[-1] + (m * psi) @ v[:-1]},
        ],
        method="SLSQP",
        options={"ftol": 1e-13, "maxiter": 1000},
    )
    assert found.total <= solved.fun + 1e-8
    assert found.total == pytest.approx(solved.fun, rel=1e-5)
    assert abs(found.estimate - estimate) == pytest.approx(found.shift)


def skewed_boxes(statistic, seed):
    """Boxes of 300 records of which most are small and some large: where weights and crisp choices differ most."""
    rng = np.random.default_rng(seed)
    x = np.exp(rng.normal(size=300)) if seed % 2 else rng.normal(size=300)
    columns = {"x": x} | {f"y{i}": x + rng.normal(size=300) for i in range(1, COLUMNS[statistic])}
    boxes = bounded_boxes(columns, 5)
    return *boxes.intervals("cell"), boxes.counts


def polished(statistic, lo, hi, m, start):
    """The total after a search over all weights, w = u^2 / sum, from a start: an independent minimiser."""
    points = (lo + hi) / 2
    estimate, d, _, spread = compute_contributions(statistic, points, m, (hi - lo) / 2)

    def total(u):
        w = u * u / (m @ (u * u))
        effect = compute_influence(statistic, points.T, m * w)
        if not np.isfinite(effect.psi).all():
            return 1e9, np.zeros_like(u)
        shift, norm = np.hypot(effect.estimate - estimate, 1e-9), np.sqrt(m @ (w * w))
        slope = m * (d + spread * w / norm + (effect.estimate - estimate) / shift * effect.psi)
        through = 2 * u / (m @ (u * u)) * (slope - (slope @ w) * m)
        return m @ (w * d) + spread * norm + shift, through

    begin = np.sqrt(np.maximum(start, 1e-9 * start.max()))
    return minimize(total, begin / begin.max(), jac=True, method="L-BFGS-B", options={"maxiter": 300}).fun


@pytest.mark.thorough
@pytest.mark.parametrize("statistic", STATISTICS)
@pytest.mark.parametrize("seed", seeds(1, 2))
def test_corrected_weights_are_the_least(statistic, seed):
    lo, hi, m = skewed_boxes(statistic, seed)
    found = solve_box_weights(statistic, lo, hi, m)
    crisp = dismiss_boxes(statistic, lo, hi, m)
    # Leaving boxes out is a way of weighing them, and so are the papers' weights.
    least = min(crisp.corrected.total, crisp.paper.total, found.paper.total, found.everything.total)
    assert found.corrected.total <= least
    starts = [found.corrected.weight, found.everything.weight, crisp.corrected.weight]
    assert found.corrected.total <= min(polished(statistic, lo, hi, m, start) for start in starts) * 1.002


def test_the_papers_weights_shift_the_variance():
    """REFERENCES.md, Boxes, point 5: on a Gaussian the papers' optimum is far off, and the corrected one is not."""
    x = np.sort(np.random.default_rng(0).normal(size=10_000)).reshape(-1, 10)
    found = solve_box_weights("variance", x.min(axis=1), x.max(axis=1), np.full(1000, 10))
    assert found.paper.shift > 0.4
    assert found.corrected.shift < 0.01
    assert found.corrected.total < found.everything.total


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: find_threshold([], [], 1.0), "at least one number"),
        (lambda: find_threshold([np.nan], [1], 1.0), "finite"),
        (lambda: find_threshold([1.0], [0], 1.0), "whole numbers"),
        (lambda: find_weights([1.0], [1], -1.0), "A must be"),
        (lambda: dismiss_boxes("median", [[0]], [[1]], [1]), "statistic must be one of"),
        (lambda: dismiss_boxes("covariance", [[0]], [[1]], [1]), "must have 2 columns; got 1"),
        (lambda: dismiss_boxes("regression", [[0]], [[1]], [1]), "at least 2 columns"),
        (lambda: dismiss_boxes("correlation", [[0, 1], [0, 2]], [[0, 1], [0, 2]], [1, 1]), "must exist"),
        (lambda: solve_box_weights("mean", [[1]], [[0]], [1]), "lo must not be above hi"),
        (lambda: solve_box_weights("mean", [[1, 2]], [[0]], [1]), "hi must have the shape"),
        (lambda: compute_contributions("mean", [1.0], [1], [-1.0]), "halfwidths must be"),
    ],
)
def test_errors(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("statistic", STATISTICS)
@pytest.mark.parametrize("coefficient", [0, 1])
def test_gradients_by_moments_against_finite_differences(statistic: str, coefficient: int) -> None:
    """Slopes are by both places of a covariance, and twice as steep."""
    columns = 3 if statistic == "regression" else COLUMNS[statistic]
    if coefficient and statistic != "regression":
        return
    random = np.random.default_rng(1)
    mean, root = random.normal(size=columns), random.normal(size=(columns, columns))
    covariance, by_mean, by_root = root @ root.T, random.normal(size=columns), random.normal(size=(columns, columns))
    by_covariance, step = by_root + by_root.T, 1e-6
    up, down = (
        float(
            compute_statistic(
                statistic, mean + move * by_mean, covariance + move * by_covariance, coefficient=coefficient
            )
        )
        for move in (step, -step)
    )
    found = differentiate(statistic, mean, covariance, coefficient)
    assert found.constant @ by_mean + (found.slopes * by_covariance).sum() / 2 == pytest.approx(
        (up - down) / (2 * step), rel=1e-6
    )
