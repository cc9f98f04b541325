"""Regression over boxes: against least squares on random tables, and against the exact slope."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import duckdb
import numpy as np
import pytest
from scipy.optimize import minimize

from duckanon._core.common import progress
from duckanon._methods.boxes.make import BoxOptions, Statistic, make_boxes
from duckanon._methods.intervals.attained import CoefficientSearch
from duckanon._methods.intervals.equations import find_least_deviation, find_least_share
from duckanon._methods.intervals.regression import regress_boxes
from duckanon._methods.intervals.scaled import scale_boxes
from tests.profiles import seeds
from tests.sqltest import data_file


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


@pytest.mark.thorough
@pytest.mark.parametrize("columns", [2, 3, 4])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("seed", seeds(2, 5))
def test_encloses_random_tables(seed, columns, weighted):
    lo, hi, m, rng = problem(seed, columns=columns, width=rng_width(seed))
    weights = rng.choice([0.0, 0.5, 2.0], len(m)) if weighted else None
    # With three predictors that takes seconds; what is proven by then must hold whenever it stops.
    rows = regress_boxes(lo, hi, m, weights, seconds=0.5 if columns == 4 else None)
    assert [r.predictor for r in rows] == [None, *range(1, columns)]
    low, high, w = (
        np.repeat(lo, m, 0),
        np.repeat(hi, m, 0),
        np.repeat(np.ones(len(m)) if weights is None else weights, m),
    )
    middle = coefficients((low + high) / 2, w)
    assert [r.estimate for r in rows] == pytest.approx(middle, rel=1e-7, abs=1e-9 * np.abs(middle).max())
    lower, upper = np.array([r.lower for r in rows]), np.array([r.upper for r in rows])
    assert all(r.lower <= r.inner_lower <= r.inner_upper <= r.upper for r in rows)
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


@pytest.mark.thorough
@pytest.mark.parametrize("seed", seeds(8, 20))
def test_slope_against_all_corners(seed):
    rng = np.random.default_rng(seed)
    boxes = 4
    lo = np.sort(rng.normal(size=(boxes, 2)), axis=0) * 2
    hi = lo + rng.random((boxes, 2)) * 0.3
    row = regress_boxes(lo, hi, np.ones(boxes), target=1, predictors=(0,))[1]
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


@pytest.mark.thorough
@pytest.mark.parametrize("seed", seeds(4, 10))
def test_narrow_boxes_give_nearly_the_linear_width(seed):
    lo, hi, m, _ = problem(seed, boxes=400, columns=3, width=0.01)
    for row in regress_boxes(lo, hi, m)[1:]:
        assert row.upper - row.lower == pytest.approx(2 * row.linear_halfwidth, rel=0.1)
        assert row.upper_looseness + row.lower_looseness <= 0.1 * (row.upper - row.lower)


@pytest.mark.thorough
def test_dependent_predictors_have_infinite_ends():
    rng = np.random.default_rng(0)
    c = rng.normal(size=(50, 3))
    c[:, 2] = c[:, 1] + rng.normal(size=50) * 0.01
    rows = regress_boxes(c - 0.1, c + 0.1, np.full(50, 3))
    assert all((r.lower, r.upper) == (-np.inf, np.inf) for r in rows)
    c[:, 2] = 7
    rows = regress_boxes(c, c, np.full(50, 3))
    assert all((r.lower, r.upper) == (-np.inf, np.inf) for r in rows)
    assert np.isnan(rows[1].estimate)
    rows = regress_boxes(c[:, [0, 2]], c[:, [0, 2]], np.full(50, 3))
    assert all((r.lower, r.upper) == (-np.inf, np.inf) for r in rows)


@pytest.mark.thorough
def test_coarse_boxes_have_finite_ends_where_no_table_is_singular():
    lo, hi, m, rng = problem(3, boxes=200, columns=4, width=0.25)
    rows = regress_boxes(lo, hi, m, seconds=2)
    assert np.isfinite([(r.lower, r.upper) for r in rows]).all()
    low, high = np.repeat(lo, m, 0), np.repeat(hi, m, 0)
    for _ in range(50):
        found = coefficients(low + rng.integers(0, 2, low.shape) * (high - low), np.ones(len(low)))
        assert all(r.lower <= value <= r.upper for r, value in zip(rows, found, strict=True))


@pytest.mark.thorough
@pytest.mark.parametrize("seed", seeds(5, 10))
def test_least_deviation(seed):
    rng = np.random.default_rng(seed)
    c = rng.normal(size=(40, 3))
    half = 0.2 * rng.random((40, 3))
    boxes = scale_boxes(c - half, c + half, np.ones(40))
    bound = find_least_deviation(boxes, np.eye(3))
    assert bound > 0
    for _ in range(200):
        x = boxes.lo + rng.integers(0, 2, boxes.lo.shape) * (boxes.hi - boxes.lo)
        assert np.linalg.eigvalsh(np.cov(x, bias=True))[0] >= bound**2
    wide = scale_boxes(c - 9, c + 9, np.ones(40))
    assert find_least_deviation(wide, np.eye(3)) == 0


@pytest.mark.thorough
def test_exact_data_gives_points():
    x = np.random.default_rng(1).normal(size=(40, 3))
    truth = coefficients(x, np.ones(40))
    for row, value in zip(regress_boxes(x, x, np.ones(40)), truth, strict=True):
        assert row.lower <= value * (1 + 1e-12 * np.sign(value))
        assert row.upper - row.lower <= 1e-9


def small_problem(seed):
    """Some boxes, half of them with columns that are known, and one or two records in each."""
    rng = np.random.default_rng(seed)
    predictors = (1, 2, 1, 2, 3)[seed % 5]
    boxes = predictors + 2 + int(rng.integers(0, 2))
    c = rng.normal(size=(boxes, predictors + 1))
    c[:, 0] += c[:, 1:] @ rng.normal(size=predictors)
    half = rng.random(c.shape) * rng.choice([0.02, 0.1, 0.3]) * (rng.random(c.shape) < rng.choice([0.5, 1]))
    return c - half, c + half, rng.integers(1, 3, boxes), rng


def optimised(low, high, q, sign, start):
    """The coefficients of a table that has been moved towards a large sign * coefficient."""

    def cost(values):
        x = values.reshape(low.shape)
        design = np.column_stack([np.ones(len(x)), x[:, 1:]])
        inverse = np.linalg.inv(design.T @ design)
        beta = inverse @ design.T @ x[:, 0]
        rest, lever = x[:, 0] - design @ beta, design @ inverse[q]
        slope = np.column_stack([lever, np.outer(rest, inverse[q, 1:]) - np.outer(lever, beta[1:])])
        return -sign * beta[q], -sign * slope.ravel()

    bounds = list(zip(low.ravel(), high.ravel(), strict=True))
    try:
        found = minimize(cost, start.ravel(), jac=True, bounds=bounds, method="L-BFGS-B", options={"maxiter": 100}).x
    except np.linalg.LinAlgError:  # it has come to a table whose predictors are dependent, which has no coefficients
        found = start
    return coefficients(np.clip(found.reshape(low.shape), low, high), np.ones(len(low)))


@pytest.mark.thorough
@pytest.mark.parametrize("seed", seeds(4, 20))
def test_no_small_table_leaves_the_range(seed):
    """All corners, up to a thousand, and a climb from each of the best: none is outside, and some are near the ends."""
    lo, hi, m, rng = small_problem(seed)
    rows = regress_boxes(lo, hi, m)
    low, high = np.repeat(lo, m, 0), np.repeat(hi, m, 0)
    free = int((high > low).sum())
    corners = product((0, 1), repeat=free) if free <= 10 else rng.integers(0, 2, (1000, free))
    tables = []
    for corner in corners:
        x = low.copy()
        x[high > low] = np.where(np.array(corner, bool), high[high > low], low[high > low])
        tables.append(x)
    found = np.array([coefficients(x, np.ones(len(x))) for x in tables])
    ends = np.array([(r.lower, r.upper) for r in rows])
    noise = 1e-11 * (1 + np.abs(found).max())
    # Where some table's predictors are nearly dependent, the range may be `enclosure`'s, and no climb finds its ends.
    is_apart = find_least_share(scale_boxes(lo, hi, m)) >= 0.1
    assert np.isfinite(ends).all() or not is_apart
    for q, row in enumerate(rows):
        for side, sign in enumerate((-1.0, 1.0)):
            corners_first = [tables[i] for i in np.argsort(-sign * found[:, q])[:3]]
            starts = [*corners_first, *(low + rng.random(low.shape) * (high - low) for _ in range(9))]
            climbed = np.array([optimised(low, high, q, sign, start) for start in starts])
            assert (climbed >= ends[:, 0] - noise).all()
            assert (climbed <= ends[:, 1] + noise).all()
            most = sign * max((sign * climbed[:, q]).max(), (sign * found[:, q]).max())
            inner = (row.inner_lower, row.inner_upper)[side]
            # What is called attained is not beyond what the records can attain, though that may take many climbs.
            for _ in range(200):
                if sign * inner <= sign * most + 1e-6 * (1 + abs(most)):
                    break
                start = np.where(rng.integers(0, 2, low.shape), low, high)
                most = sign * max(sign * most, sign * optimised(low, high, q, sign, start)[q])
            assert sign * inner <= sign * most + 1e-6 * (1 + abs(most))
            if is_apart:
                assert sign * (most - inner) <= 0.05 * abs(most - row.estimate) + 1e-9
    assert (found >= ends[:, 0] - noise).all()
    assert (found <= ends[:, 1] + noise).all()
    if is_apart:
        widths = np.array([r.inner_upper - r.inner_lower for r in rows])
        # Within 1.05, and 1.09 of four coefficients, in hundreds of tables; 1.105 in one that a day drew.
        assert (np.ptp(ends, axis=1) <= (1.15 if len(rows) <= 3 else 1.3) * widths + 1e-9).all()


def exact_coefficients(x):
    """Least squares in fractions."""
    rows = [[Fraction(1), *map(Fraction, record[1:].tolist())] for record in x]
    target = [Fraction(value) for value in x[:, 0].tolist()]
    size = len(rows[0])
    system = [
        [sum(r[i] * r[j] for r in rows) for j in range(size)]
        + [sum(r[i] * t for r, t in zip(rows, target, strict=True))]
        for i in range(size)
    ]
    for i in range(size):
        system[i] = [value / system[i][i] for value in system[i]]
        for j in range(size):
            if j != i:
                system[j] = [a - system[j][i] * b for a, b in zip(system[j], system[i], strict=True)]
    return [row[-1] for row in system]


@pytest.mark.parametrize("predictors", [1, 2, pytest.param(3, marks=pytest.mark.thorough)])
@pytest.mark.parametrize("offset", [0.0, 1e6])
@pytest.mark.parametrize("seed", seeds(1, 5))
def test_rounding_does_not_push_out_the_coefficient_of_exact_data(seed, offset, predictors):
    rng = np.random.default_rng(seed)
    x = rng.integers(-30, 30, (12, predictors + 1)) / 8 + offset
    if predictors > 1:
        x[:, 2] = x[:, 1] + rng.integers(-3, 4, 12) / 64  # nearly dependent
    for row, exact in zip(regress_boxes(x, x, np.ones(12)), exact_coefficients(x), strict=True):
        assert Fraction(row.lower) <= exact <= Fraction(row.upper)
        assert row.upper - row.lower <= 1e-5 * max(offset, 1)


def normal_columns(predictors, records):
    rng = np.random.default_rng(3)
    x = rng.normal(size=(records, predictors))
    columns = {"y": x @ np.arange(1, predictors + 1) + rng.normal(size=records)}
    return columns | {f"x{i}": x[:, i] for i in range(predictors)}


def nhanes_columns(predictors):
    names = ["SBP", "age_years", "BMI", "CHOL"][: predictors + 1]
    path = data_file("nhanes.parquet")
    with duckdb.connect() as connection:
        known = " AND ".join(f"{name} IS NOT NULL" for name in names)
        query = f"SELECT {', '.join(f'{name}::DOUBLE AS {name}' for name in names)} FROM '{path}' WHERE {known}"
        return connection.execute(query).fetchnumpy()


def boxes_of(columns, k, kind):
    boxes = make_boxes(columns, k, [Statistic("regression", tuple(columns))], BoxOptions(kind=kind))
    return *boxes.intervals(kind), boxes.counts


def gaussian_boxes(predictors, records):
    return boxes_of(normal_columns(predictors, records), 5, "parts")


WIDEST = {1: 1.03, 2: 1.03, 3: 1.09}
"""What a range may be over what is attained, by the number of predictors."""


def assert_hardly_wider_than_attained(rows):
    for row in rows:
        assert row.upper - row.lower <= WIDEST[len(rows) - 1] * (row.inner_upper - row.inner_lower)
        assert row.lower < row.inner_lower < row.estimate < row.inner_upper < row.upper


@pytest.mark.thorough
def test_ranges_are_hardly_wider_than_what_is_attained():
    assert_hardly_wider_than_attained(regress_boxes(*gaussian_boxes(2, 500)))


@pytest.mark.thorough
@pytest.mark.parametrize(("predictors", "kind"), [(2, "parts"), (2, "cell"), (3, "parts")])
def test_ranges_of_normal_data_are_hardly_wider_than_what_is_attained(predictors, kind):
    assert_hardly_wider_than_attained(regress_boxes(*boxes_of(normal_columns(predictors, 2000), 5, kind)))


@pytest.mark.thorough
@pytest.mark.parametrize(("predictors", "k", "kind"), [(2, 3, "cell"), (2, 10, "parts"), (3, 10, "parts")])
def test_ranges_of_blood_pressure_are_hardly_wider_than_what_is_attained(predictors, k, kind):
    columns = nhanes_columns(predictors)
    rows = regress_boxes(*boxes_of(columns, k, kind))
    assert_hardly_wider_than_attained(rows)
    truth = coefficients(np.column_stack(list(columns.values())), np.ones(len(columns["SBP"])))
    assert all(row.lower <= value <= row.upper for row, value in zip(rows, truth, strict=True))


@pytest.mark.thorough
def test_a_climb_goes_on_where_a_mixture_of_tables_is_met():
    """A climb from the midpoints finds less: the search for what is excluded shows where there is more."""
    lo, hi, m, _ = small_problem(64)
    boxes = scale_boxes(lo, hi, m)
    row = regress_boxes(lo, hi, m)[1]
    unit = np.ldexp(1.0, int(boxes.exponent[0] - boxes.exponent[1]))
    first = CoefficientSearch(boxes, np.inf).find_end(0, -1.0) * unit
    assert row.inner_lower < first - 0.02 * (row.inner_upper - row.inner_lower)
    assert row.lower <= row.inner_lower


@pytest.mark.thorough
def test_the_order_of_boxes_does_not_matter():
    lo, hi, m, rng = small_problem(8)
    shuffled = rng.permutation(len(m))
    assert regress_boxes(lo, hi, m) == regress_boxes(lo[shuffled], hi[shuffled], m[shuffled])


@pytest.mark.thorough
def test_four_predictors_have_an_inner_range_beside_the_enclosure():
    lo, hi, m, _ = problem(5, boxes=80, columns=5, width=0.02)
    for row in regress_boxes(lo, hi, m):
        assert row.lower < row.inner_lower < row.estimate < row.inner_upper < row.upper


@pytest.mark.thorough
def test_no_time_leaves_guaranteed_ranges():
    boxes = gaussian_boxes(2, 400)
    for hurried, row in zip(regress_boxes(*boxes, seconds=0), regress_boxes(*boxes), strict=True):
        assert hurried.lower <= row.lower * (1 - 0.01 * np.sign(row.lower))
        assert hurried.lower <= row.inner_lower
        assert hurried.upper >= row.inner_upper
        assert hurried.upper - hurried.lower > row.upper - row.lower


@pytest.mark.thorough
def test_it_tells_how_far_it_is_and_stops():
    told = []
    with progress.watch(lambda: None, told.append):
        regress_boxes(*problem(0, boxes=12)[:3])
    assert told == sorted(told)
    assert told[-1] == 1
    asked = 0

    def stop():
        nonlocal asked
        asked += 1
        if asked > 50:
            raise progress.StoppedError

    with progress.watch(stop), pytest.raises(progress.StoppedError):
        regress_boxes(*problem(0, boxes=12, columns=4)[:3])


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
        regress_boxes([[0, 0], [1, 2]], [[1, 1], [2, 3]], [1, 1], **options)


def test_the_work_on_ranges_is_told_to_its_end() -> None:
    told: list[float] = []
    middle = np.random.default_rng(1).normal(size=(8, 3))
    with progress.watch(None, told.append):
        regress_boxes(middle - 0.1, middle + 0.1, np.full(8, 5))
    assert told == sorted(told)
    assert told[-1] == 1
