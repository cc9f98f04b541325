"""Statistics over boxes: the golden cases, brute force on small tables, enclosure on thousands of random ones."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations_with_replacement, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from duckanon._methods.intervals.correlation import _fix_record
from duckanon._methods.intervals.scaled import scale_boxes
from duckanon._methods.intervals.statistics import MAIN_STATISTICS, IntervalStatistic, enclose_statistics
from tests.profiles import dear, seeds

CORNERS = [[0, 0], [1, 1.5], [2.5, 1], [4, 3]], [[1, 1.5], [2.5, 3], [4, 3], [6, 5]], [3] * 4


def check_exactly(rows: list[IntervalStatistic], x, w) -> None:
    """Compare the ranges with a table's statistics in exact arithmetic: not one ulp outside."""
    w = [Fraction(float(v)) for v in w]
    total = sum(w)
    columns = [[Fraction(float(v)) for v in column] for column in x.T]
    means = [sum(a * b for a, b in zip(w, column, strict=True)) / total for column in columns]
    gaps = [[v - mean for v in column] for column, mean in zip(columns, means, strict=True)]

    def spread(i, j):
        return sum(a * b * c for a, b, c in zip(w, gaps[i], gaps[j], strict=True)) / total

    for row in rows:
        low, high, i, j = Fraction(row.lower), Fraction(row.upper), row.columns[0], row.columns[-1]
        if row.statistic == "mean":
            value = means[i]
        elif row.statistic == "standard_deviation":
            value, low, high = spread(i, i), low * low, high * high
        elif row.statistic == "correlation":
            value, both = spread(i, j), spread(i, i) * spread(j, j)
            value, low, high = value * abs(value), low * abs(low) * both, high * abs(high) * both
        else:
            value = spread(i, j)
        assert low <= value <= high, (row, float(value), float(value - low), float(high - value))


def one(rows: list[IntervalStatistic], statistic: str) -> IntervalStatistic:
    return next(r for r in rows if r.statistic == statistic)


def random_boxes(rng, boxes=None, columns=None, most=4):
    boxes, columns = boxes or rng.integers(1, 9), columns or rng.integers(1, 4)
    center = rng.normal(size=(boxes, columns)) * rng.choice([0.3, 1, 3])
    center[:, -1] += center[:, 0] * rng.choice([0, 1, -2])
    half = rng.exponential(size=(boxes, columns)) * rng.choice([0, 0.05, 0.5, 2]) * (rng.random((boxes, columns)) < 0.8)
    scale, offset = 10.0 ** rng.integers(-3, 4, columns), rng.choice([0, 0, 5, -1000], columns)
    return (center - half) * scale + offset, (center + half) * scale + offset, rng.integers(1, most, boxes)


def test_golden_variance():
    row = one(enclose_statistics([0, 1, 3], [1, 2, 5], [2, 2, 1]), "variance")
    assert (row.lower, row.upper) == pytest.approx((0.533333, 3.44), abs=1e-6)
    assert (row.estimate, row.linear_halfwidth) == pytest.approx((1.64, 1.44), abs=1e-6)
    row = one(enclose_statistics([0, 1, 0], [4, 3, 1], [1, 1, 1]), "variance")
    assert (row.lower, row.upper) == pytest.approx((0, 2.888889), abs=1e-6)


def test_golden_covariance():
    row = one(enclose_statistics(*CORNERS, relative_accuracy=1e-7), "covariance")
    assert (row.lower, row.upper) == pytest.approx((-0.1875, 4.34375), abs=2e-6)
    assert (row.estimate, row.linear_halfwidth) == pytest.approx((1.796875, 1.984375), abs=1e-6)
    assert row.records == 12


def test_unbiased():
    plain, unbiased = enclose_statistics(*CORNERS), enclose_statistics(*CORNERS, unbiased=True)
    for a, b in zip(plain, unbiased, strict=True):
        factor = {"variance": 12 / 11, "covariance": 12 / 11, "standard_deviation": np.sqrt(12 / 11)}.get(
            a.statistic, 1
        )
        assert (b.estimate, b.lower, b.upper) == pytest.approx(
            (a.estimate * factor, a.lower * factor, a.upper * factor)
        )


@pytest.mark.thorough
@pytest.mark.parametrize("seed", seeds(8, 50))
def test_variance_against_all_corners(seed):
    rng = np.random.default_rng(seed)
    lo, hi, m = random_boxes(rng, rng.integers(1, 6), 1)
    lo, hi = np.round(lo, 1), np.round(hi, 1)  # ties happen
    splits = [range(c + 1) for c in m]
    tables = [
        np.concatenate([[lo[i, 0]] * (m[i] - s) + [hi[i, 0]] * s for i, s in enumerate(ss)]) for ss in product(*splits)
    ]
    most = max(np.var(t) for t in tables)
    row = one(enclose_statistics(lo, hi, m), "variance")
    rounding = (np.finfo(float).eps * abs(np.stack([lo, hi])).max()) ** 2  # numpy's variance of equal numbers is not 0
    assert row.upper >= most * (1 - 1e-14) - rounding
    assert row.upper - row.upper_looseness <= most * (1 + 1e-14) + rounding
    # The least variance is where every record is as near to mu as it can be, for the best mu.
    mus = np.linspace(lo.min(), hi.max(), 20001)
    least = min(np.var(np.repeat(np.clip(mu, lo[:, 0], hi[:, 0]), m)) for mu in mus[:: max(1, 20001 // 4000)])
    assert row.lower <= least + rounding
    assert row.lower >= least - 1e-5 * (np.ptp(mus) ** 2) - rounding


@pytest.mark.thorough
@pytest.mark.parametrize("seed", seeds(10, 50))
def test_covariance_against_all_corners(seed):
    rng = np.random.default_rng(seed)
    lo, hi, m = random_boxes(rng, rng.integers(1, 4), 2, 3)
    per_box = []
    for i in range(len(m)):
        corners = list(product(*zip(lo[i], hi[i], strict=True)))
        per_box.append([list(c) for c in combinations_with_replacement(corners, int(m[i]))])
    found = [np.cov(np.concatenate(t).T, bias=True)[0, 1] if m.sum() > 1 else 0.0 for t in product(*per_box)]
    row = one(enclose_statistics(lo, hi, m), "covariance")
    size = 1e-13 * (np.ptp(lo, axis=0) + np.ptp(hi, axis=0) + (hi - lo).max(axis=0)).prod()
    assert row.upper >= max(found) - size
    assert row.lower <= min(found) + size
    assert row.upper - row.upper_looseness <= max(found) + size
    assert row.lower + row.lower_looseness >= min(found) - size


@pytest.mark.thorough
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("seed", seeds(10, 25))
def test_encloses_random_tables(seed, weighted):
    rng = np.random.default_rng(seed)
    lo, hi, m = random_boxes(rng)
    weights = rng.choice([0, 0.5, 1, 3], len(m)) + (np.arange(len(m)) == 0) if weighted else None
    rows = enclose_statistics(lo, hi, m, weights)
    assert [r.statistic for r in rows] == sorted((r.statistic for r in rows), key=MAIN_STATISTICS.index)
    low, high, w = np.repeat(lo, m, 0), np.repeat(hi, m, 0), np.repeat(weights if weighted else np.ones(len(m)), m)
    for draw in range(25):
        share = rng.random(low.shape) if draw % 3 else rng.integers(0, 2, low.shape)
        # Half of the tables go along with another column, so that extreme correlations are tried.
        share = share if draw % 2 else np.repeat(share[:, :1], share.shape[1], axis=1)
        check_exactly(rows, np.clip(low + share * (high - low), low, high), w)


def best_corners(x, lo, hi, w, sign):
    """Put every box at the corner with the largest product of distances from the means."""
    mean = w @ x
    corners = np.stack([np.where(pick, hi, lo) for pick in product([False, True], repeat=2)])
    gap = corners - mean
    return corners[np.argmax(sign * gap[:, :, 0] * gap[:, :, 1], axis=0), np.arange(len(lo))]


@pytest.mark.thorough
@pytest.mark.parametrize("seed", seeds(4, 25))
@pytest.mark.parametrize("boxes", [30, 300])
def test_reached_from_inside(seed, boxes):
    """A search over corners comes as near to every end as the looseness says, and the looseness is small."""
    rng = np.random.default_rng(seed)
    center = rng.normal(size=(boxes, 2)) @ np.array([[1, rng.normal()], [0, 1]])
    half = rng.exponential(size=(boxes, 2)) * 0.1
    lo, hi, m = center - half, center + half, rng.integers(5, 15, boxes)
    rows = enclose_statistics(lo, hi, m)
    w = m / m.sum()
    for statistic in ("covariance", "correlation", "variance", "standard_deviation"):
        row = one(rows, statistic)
        for sign, end, loose in ((1, row.upper, row.upper_looseness), (-1, row.lower, row.lower_looseness)):
            assert loose <= 1.5e-3 * max(abs(end), 0.1), (statistic, sign, loose)
            best = -np.inf
            x = best_corners(center, lo, hi, w, sign) if statistic == "covariance" else center
            for step in range(400):
                gap = x - w @ x
                spread = (gap * w[:, None]).T @ gap
                dev = np.sqrt(np.diag(spread))
                z = gap / dev
                rho = spread[0, 1] / dev.prod()
                value, slope = {
                    "covariance": (spread[0, 1], gap[:, ::-1]),
                    "correlation": (rho, (z[:, ::-1] - rho * z) / dev),
                    "variance": (spread[0, 0], gap * [1, 0]),
                    "standard_deviation": (dev[0], gap * [1, 0]),
                }[statistic]
                best = max(best, sign * value)
                if statistic == "covariance" and step < 10:
                    x = best_corners(x, lo, hi, w, sign)
                else:
                    x = np.clip(x + sign * (0.5 if step < 200 else 0.05) * slope, lo, hi)
            assert best <= sign * end + 1e-12
            # The search is local and moves the records of a box together: of 200 tables, two ended 1.5e-3 short.
            assert best >= sign * end - loose - 4e-3 * max(abs(end), 0.1), (statistic, sign, best, end, loose)


@pytest.mark.thorough
@dear
@given(st.data())
def test_any_boxes(data):
    columns = data.draw(st.integers(1, 3))
    boxes = data.draw(st.integers(1, 6))
    number = st.floats(allow_nan=False, allow_infinity=False, width=64) | st.integers(-5, 5).map(float)
    ends = np.array(data.draw(st.lists(number, min_size=2 * boxes * columns, max_size=2 * boxes * columns)))
    ends = np.sort(ends.reshape(2, boxes, columns), axis=0)
    m = data.draw(st.lists(st.integers(1, 1000), min_size=boxes, max_size=boxes))
    rows = enclose_statistics(ends[0], ends[1], m)
    for r in rows:
        assert r.lower <= r.upper
        assert np.isnan(r.estimate) or r.lower <= r.estimate <= r.upper
        if r.statistic == "correlation":
            assert r.lower >= -1
            assert r.upper <= 1
        if r.statistic in ("variance", "standard_deviation"):
            assert r.lower >= 0


def test_degenerate():
    rows = enclose_statistics([[2, 3], [2, 3]], [[2, 4], [2, 5]], [1, 2])
    assert [(r.lower, r.upper) for r in rows if r.columns == (0,)] == [(2, 2), (0, 0), (0, 0)]
    assert (one(rows, "covariance").lower, one(rows, "covariance").upper) == (0, 0)
    correlation = one(rows, "correlation")
    assert np.isnan(correlation.estimate)
    assert (correlation.lower, correlation.upper) == (-1, 1)
    row = one(enclose_statistics([[0.0]] * 3, [[1.0]] * 3, [4, 4, 4]), "variance")
    assert (row.lower, row.upper) == pytest.approx((0, 0.25))


def test_exact_tables_give_points():
    x = np.random.default_rng(3).normal(size=(50, 3)) + 100
    for r in enclose_statistics(x, x, np.ones(50)):
        assert r.lower <= r.estimate <= r.upper
        assert r.upper - r.lower <= 1e-10 * max(1.0, abs(r.estimate))


def test_translation_and_scale():
    rng = np.random.default_rng(0)
    c, d = rng.normal(size=(200, 2)), rng.random((200, 2)) * 0.1
    plain = enclose_statistics(c - d, c + d, np.full(200, 5))
    moved = enclose_statistics((c - d) * 1000 + 1e6, (c + d) * 1000 + 1e6, np.full(200, 5))
    for a, b in zip(plain, moved, strict=True):
        factor = {"mean": 1e3, "variance": 1e6, "standard_deviation": 1e3, "covariance": 1e6, "correlation": 1}[
            a.statistic
        ]
        offset = 1e6 if a.statistic == "mean" else 0
        assert (b.lower, b.upper) == pytest.approx(
            (a.lower * factor + offset, a.upper * factor + offset), rel=3e-4, abs=3e-4
        )


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (([[1]], [[0]], [1]), {}, "lo must not be above hi"),
        (([[np.nan]], [[0]], [1]), {}, "finite"),
        (([[-np.inf]], [[0]], [1]), {}, "finite"),
        (([[0]], [[1]], [0]), {}, "whole numbers"),
        (([[0]], [[1]], [1.5]), {}, "whole numbers"),
        (([[0]], [[1]], [1, 2]), {}, "one number for each"),
        (([[0, 1]], [[1]], [1]), {}, "hi must have the shape"),
        ((np.zeros((0, 2)), np.zeros((0, 2)), []), {}, "at least one box"),
        (([[0]], [[1]], [1], [-1]), {}, "weights must be"),
        (([[0]], [[1]], [1], [0]), {}, "weights must be"),
        (([[0]], [[1]], [1]), {"statistics": ("median",)}, "statistics must be one of"),
        (([[0]], [[1]], [1]), {"unbiased": True}, "fewer than two records"),
        (([[0]], [[1]], [1]), {"relative_accuracy": 2.0}, "relative_accuracy must be"),
        ((np.zeros((1, 1, 1)), [[1]], [1]), {}, "matrix"),
    ],
)
def test_errors(arguments, options, message):
    with pytest.raises(ValueError, match=message):
        enclose_statistics(*arguments, **options)


@pytest.mark.parametrize("seed", range(6))
def test_a_column_that_may_be_constant_has_the_correlations_of_all_other_tables(seed: int) -> None:
    """No table drawn within the boxes is outside, and the range is not all of [-1, 1] where one record may move."""
    random = np.random.default_rng(seed)
    size, moving = int(random.integers(3, 6)), 1 + seed % 2
    low, high = np.full((size, 2), 5.0), np.full((size, 2), 5.0)
    high[random.choice(size, moving, replace=False), 0] += random.integers(1, 4)
    low[:, 1] = high[:, 1] = random.permutation(size)
    times = random.integers(1, 3, size) if moving == 2 else np.ones(size, np.int64)
    (found,) = enclose_statistics(low, high, times, statistics=("correlation",))
    lows, highs = np.repeat(low, times, axis=0), np.repeat(high, times, axis=0)
    share = random.random((500, *lows.shape))
    tables = lows + np.where(random.random(share.shape) < 0.6, np.round(share), share) * (highs - lows)
    met = [np.corrcoef(table.T)[0, 1] for table in tables if table[:, 0].std() > 1e-6]
    assert found.lower - 1e-9 <= min(met)
    assert max(met) <= found.upper + 1e-9
    if moving == 1:
        assert found.upper - found.lower < 1e-3


@pytest.mark.parametrize("box", [0, 1, 2])
def test_one_record_of_a_box_is_set_apart_with_its_part_of_the_weight(box: int) -> None:
    records, weights = np.array([1, 4, 3]), np.array([2.0, 8.0, 1.5])
    middle = np.array([[0.0, 1.0], [2.0, -1.0], [5.0, 3.0]])
    boxes = scale_boxes(middle - 0.5, middle + 0.5, records, weights)
    apart = _fix_record(boxes, 0, box, 0.25)
    assert apart.records[box] == 1
    assert apart.records.sum() == boxes.records.sum()
    assert apart.lo[0, box] == apart.hi[0, box] == 0.25
    assert apart.share[box] == pytest.approx(boxes.share[box] / boxes.records[box])
    assert apart.share.sum() == pytest.approx(1)
    assert apart.amount.sum() == pytest.approx(boxes.amount.sum())
