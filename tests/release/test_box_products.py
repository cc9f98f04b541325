"""The largest product of two forms over boxes: rectangles against zonotopes, and against all points of a grid."""

from __future__ import annotations

import numpy as np
import pytest

from duckanon._methods.intervals.rectangles import Rectangles, Zonotopes, make_forms
from duckanon._methods.intervals.scaled import scale_boxes
from tests.profiles import seeds


def random_case(seed: int):
    """Return boxes of three columns, coefficients of two forms of the first two, and means of the forms."""
    rng = np.random.default_rng(seed)
    middle = rng.integers(-3, 4, (40, 3)) * rng.choice([0.5, 1.0]) + rng.normal(size=(40, 3)) * rng.choice([0, 1])
    half = rng.exponential(size=(40, 3)) * rng.choice([0.0, 0.2, 2.0], (40, 3))
    boxes = scale_boxes(middle - half, middle + half, rng.integers(1, 9, 40))
    p, q = rng.choice([0.0, 0.01, 0.2, 0.49], 2) * rng.choice([-1, 1])
    # (x + c y)(d x + e y) with c e = -q, d = -p and e + c d = 1.
    e = 0.5 * (1 + np.sqrt(1 - 4 * p * q))
    turn, stretch = rng.choice([-1, 1]), 10.0 ** rng.integers(-2, 3)
    a, r = np.array([1, -q / e * turn * stretch, 0]), np.array([-p, e * turn * stretch, 0])
    means = np.array([a, r]) @ (boxes.mean_middle + boxes.mean_half * rng.uniform(-1, 1, 3) * rng.choice([0, 1, 9]))
    return rng, boxes, a, r, means


@pytest.mark.parametrize("seed", seeds(60, 600))
def test_rectangles_are_zonotopes(seed):
    _, boxes, a, r, means = random_case(seed)
    rectangles, zonotopes = Rectangles(boxes, a, r), Zonotopes(boxes, a, r)
    u, v = means * [rectangles.ratio, 1 / rectangles.ratio]
    ours, theirs = rectangles.peak(u, v, moments=True), zonotopes.peak(u, v, moments=True)
    size = np.sqrt((rectangles.size_a + u * u) * (rectangles.size_r + v * v))
    assert ours.exact == pytest.approx(theirs.exact, abs=1e-12 * size)
    assert 0 < ours.value - ours.exact < 1e-10 * size
    # Of points of equal worth either may be taken: what they say together is the product all the same.
    for peak in (ours, theirs):
        assert peak.second[0, 1] == pytest.approx(peak.exact, abs=1e-12 * size)


@pytest.mark.parametrize("seed", seeds(30, 300))
def test_no_point_of_a_box_has_a_larger_product(seed):
    _, boxes, a, r, means = random_case(seed)
    forms = Rectangles(boxes, a, r)
    u, v = means * [forms.ratio, 1 / forms.ratio]
    places = np.linspace(-1, 1, 41)
    x, y = (boxes.middle[i][:, None, None] + boxes.half[i][:, None, None] * places for i in (0, 1))
    y = y.transpose(0, 2, 1)
    products = (forms.a[0] * x + forms.a[1] * y - u) * (forms.r[0] * x + forms.r[1] * y - v)
    found = float(products.max(axis=(1, 2)) @ boxes.share)
    assert found <= forms.peak(u, v).value


def test_other_forms_are_zonotopes():
    boxes = scale_boxes(np.zeros((3, 3)), np.ones((3, 3)), [1, 2, 3])
    assert isinstance(make_forms(boxes, np.array([1.0, 0, 0]), np.array([0, 1.0, 0])), Rectangles)
    for a, r in [
        ([1.0, 0, 0], [2.0, 0, 0]),  # one column
        ([1.0, 1, 0], [0, 1.0, 1]),  # three
        ([1.0, 1, 0], [2.0, 2, 0]),  # the same form twice
        ([1.0, 1, 0], [1.0, -1, 0]),  # no product of both columns
        ([1.0, 3, 0], [-1.0, 1, 0]),  # concave along one column and convex along the other
    ]:
        assert isinstance(make_forms(boxes, np.array(a), np.array(r)), Zonotopes)
