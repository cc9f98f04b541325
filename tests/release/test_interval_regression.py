"""Regression over boxes: against least squares on random tables, and against the exact slope."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from duckanon.intervals.regression import interval_regression
from duckanon.intervals.scaled import scaled_boxes
from duckanon.intervals.systems import least_deviation
from tests.profiles import seeds


def coefficients(x, w):
    """Least squares of the first column on the others: intercept, then slopes."""
    design = np.column_stack([np.ones(len(x)), x[:, 1:]])
    root = np.sqrt(w)[:, None]
    return np.linalg.lstsq(design * root, x[:, 0] * root[:, 0], rcond=None)[0]


def problem(seed, boxes=60, columns=3, width=0.05):
    rng = np.random.default_rng(seed)
    c = rng.normal(size=(boxes, columns))
    c[:, 0] += c[:, 1:] @ rng.normal(size=columns - 1)
    c[:, -1] += 0.5 * c[:, 1] * (columns > 2)
    d = rng.exponential(size=c.shape) * width
    scale, offset = 10.0 ** rng.integers(-2, 3, columns), rng.normal(size=columns) * 10
    return (c - d) * scale + offset, (c + d) * scale + offset, rng.integers(2, 9, boxes), rng


@pytest.mark.parametrize("columns", [2, 3, 4])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("seed", seeds(2, 40))
def test_encloses_random_tables(seed, columns, weighted):
    lo, hi, m, rng = problem(seed, columns=columns, width=rng_width(seed))
    weights = rng.choice([0.0, 0.5, 2.0], len(m)) if weighted else None
    rows = interval_regression(lo, hi, m, weights)
    assert [r.predictor for r in rows] == [None, *range(1, columns)]
    low, high, w = (
        np.repeat(lo, m, 0),
        np.repeat(hi, m, 0),
        np.repeat(np.ones(len(m)) if weights is None else weights, m),
    )
    middle = coefficients((low + high) / 2, w)
    assert [r.estimate for r in rows] == pytest.approx(middle, rel=1e-7, abs=1e-9 * np.abs(middle).max())
    lower, upper = np.array([r.lower for r in rows]), np.array([r.upper for r in rows])
    # Tables at random, and tables that pull one coefficient as far as corners can.
    directions = [rng.random(low.shape) for _ in range(10)] + [rng.integers(0, 2, low.shape) for _ in range(10)]
    gap = (low + high) / 2 - w @ (low + high) / 2 / w.sum()
    inverse = np.linalg.inv((gap[:, 1:] * w[:, None]).T @ gap[:, 1:] / w.sum())
    residual = gap[:, 0] - gap[:, 1:] @ middle[1:]
    for q in range(columns - 1):
        lever = gap[:, 1:] @ inverse[q]
        slope = np.column_stack([lever, np.outer(residual, inverse[q]) - np.outer(lever, middle[1:])])
        directions += [(slope > 0).astype(float), (slope < 0).astype(float)]
    for share in directions:
        found = coefficients(low + share * (high - low), w)
        noise = 1e-9 * np.abs(found).max()
        assert np.all(found >= lower - noise)
        assert np.all(found <= upper + noise)


def rng_width(seed):
    return [0.0, 0.01, 0.05, 0.1, 0.2, 0.4][seed % 6]


@pytest.mark.parametrize("seed", seeds(8, 200))
def test_slope_against_all_corners(seed):
    rng = np.random.default_rng(seed)
    boxes = 4
    lo = np.sort(rng.normal(size=(boxes, 2)), axis=0) * 2
    hi = lo + rng.random((boxes, 2)) * 0.3
    row = interval_regression(lo, hi, np.ones(boxes), target=1, predictors=(0,))[1]
    found = []
    # The slope is a ratio of quadratic functions: its extremes may lie inside an edge of x, so x runs over a grid.
    for share in product([0, 0.25, 0.5, 0.75, 1], repeat=boxes):
        x = lo[:, 0] + np.array(share) * (hi - lo)[:, 0]
        gap = x - x.mean()
        for y in (np.where(gap > 0, hi[:, 1], lo[:, 1]), np.where(gap > 0, lo[:, 1], hi[:, 1])):
            found.append(gap @ y / (gap @ gap))
    assert row.lower <= min(found)
    assert row.upper >= max(found)
    size = max(found) - min(found)
    assert row.upper - max(found) <= row.upper_looseness + 0.03 * size
    assert min(found) - row.lower <= row.lower_looseness + 0.03 * size
    assert row.upper_looseness + row.lower_looseness <= 0.02 * size


@pytest.mark.parametrize("seed", seeds(4, 100))
def test_narrow_boxes_give_nearly_the_linear_width(seed):
    lo, hi, m, _ = problem(seed, boxes=400, columns=3, width=0.01)
    for row in interval_regression(lo, hi, m)[1:]:
        assert row.upper - row.lower == pytest.approx(2 * row.linear_halfwidth, rel=0.1)
        assert row.upper_looseness + row.lower_looseness <= 0.1 * (row.upper - row.lower)


def test_dependent_predictors_have_infinite_ends():
    rng = np.random.default_rng(0)
    c = rng.normal(size=(50, 3))
    c[:, 2] = c[:, 1] + rng.normal(size=50) * 0.01
    rows = interval_regression(c - 0.1, c + 0.1, np.full(50, 3))
    assert all((r.lower, r.upper) == (-np.inf, np.inf) for r in rows)
    c[:, 2] = 7
    rows = interval_regression(c, c, np.full(50, 3))
    assert all((r.lower, r.upper) == (-np.inf, np.inf) for r in rows)
    assert np.isnan(rows[1].estimate)
    rows = interval_regression(c[:, [0, 2]], c[:, [0, 2]], np.full(50, 3))
    assert all((r.lower, r.upper) == (-np.inf, np.inf) for r in rows)


def test_coarse_boxes_have_finite_ends_where_no_table_is_singular():
    lo, hi, m, rng = problem(3, boxes=200, columns=4, width=0.25)
    rows = interval_regression(lo, hi, m)
    assert np.isfinite([(r.lower, r.upper) for r in rows]).all()
    low, high = np.repeat(lo, m, 0), np.repeat(hi, m, 0)
    for _ in range(50):
        found = coefficients(low + rng.integers(0, 2, low.shape) * (high - low), np.ones(len(low)))
        assert all(r.lower <= value <= r.upper for r, value in zip(rows, found, strict=True))


@pytest.mark.parametrize("seed", seeds(5, 100))
def test_least_deviation(seed):
    rng = np.random.default_rng(seed)
    c = rng.normal(size=(40, 3))
    half = 0.2 * rng.random((40, 3))
    boxes = scaled_boxes(c - half, c + half, np.ones(40))
    bound = least_deviation(boxes, np.eye(3))
    assert bound > 0
    for _ in range(200):
        x = boxes.lo + rng.integers(0, 2, boxes.lo.shape) * (boxes.hi - boxes.lo)
        assert np.linalg.eigvalsh(np.cov(x, bias=True))[0] >= bound**2
    wide = scaled_boxes(c - 9, c + 9, np.ones(40))
    assert least_deviation(wide, np.eye(3)) == 0


def test_exact_data_gives_points():
    x = np.random.default_rng(1).normal(size=(40, 3))
    truth = coefficients(x, np.ones(40))
    for row, value in zip(interval_regression(x, x, np.ones(40)), truth, strict=True):
        assert row.lower <= value * (1 + 1e-12 * np.sign(value))
        assert row.upper - row.lower <= 1e-9


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"target": 0, "predictors": (0, 1)}, "different columns"),
        ({"target": 0, "predictors": (1, 1)}, "different columns"),
        ({"target": 5}, "different columns"),
        ({"target": 0, "predictors": ()}, "at least one column"),
    ],
)
def test_errors(options, message):
    with pytest.raises(ValueError, match=message):
        interval_regression([[0, 0], [1, 2]], [[1, 1], [2, 3]], [1, 1], **options)
