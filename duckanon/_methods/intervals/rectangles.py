"""The largest product of two linear forms of two columns over every box.

With the point (x0, y0) where the forms are u and v as origin, and up to a factor,

    (a - u)(r - v) = x y - p x^2 - q y^2    where 4 p q < 1.

For p, q >= 0 it is concave along both columns, and above 0 only where x and y have the same sign.  The best point with
x, y > 0 of a box from (x1, y1) to (x2, y2) is

    x = clip(y2 / 2 p, x1, x2), y = clip(x2 / 2 q, y1, y2),

that with x, y < 0 the same of y1 and x1, and a box that has neither is best in the corner nearest to the origin, which
both formulas give.  For p, q <= 0 it is convex along both columns, so that a corner is best, one of two at x1 or at x2.
Two points of a box are half of what a zonotope has (`zonotopes`), and there is nothing to prepare for other forms.

References:
    REFERENCES.md, Boxes, "Exact ranges over boxes": separable bounds.
"""

from __future__ import annotations

import numpy as np

from duckanon._core.common.arrays import Floats
from duckanon._methods.intervals.forms import Forms, Peak
from duckanon._methods.intervals.scaled import EPS, TINY, ScaledBoxes
from duckanon._methods.intervals.zonotopes import Zonotopes

_CHUNK = 1 << 14  # boxes at a time, so that the temporary arrays stay in the cache
_ALIKE = 1e-5  # forms whose determinant is this small beside its terms have no origin that could be computed
_FAR = 1e300  # where a parabola that is a line has its top


def forms_of(boxes: ScaledBoxes, a: Floats, r: Floats) -> Forms:
    """Return the forms that have these coefficients of each column."""
    return Rectangles(boxes, a, r) if _of_two_columns(a, r) else Zonotopes(boxes, a, r)


def _of_two_columns(a: Floats, r: Floats) -> bool:
    """Return whether the product of two forms is that of `Rectangles`."""
    used = np.flatnonzero((a != 0) | (r != 0))
    if len(used) != 2:
        return False
    (ax, ay), (rx, ry) = a[used], r[used]
    terms = abs(ax * ry) + abs(ay * rx)
    cross, squares = ax * ry + ay * rx, (ax * rx, ay * ry)
    same = max(squares) <= 0 or min(squares) >= 0
    return bool(same and min(abs(ax * ry - ay * rx), abs(cross)) > _ALIKE * terms)


class Rectangles(Forms):
    """Two forms of two columns."""

    def __init__(self, boxes: ScaledBoxes, a: Floats, r: Floats) -> None:
        super().__init__(boxes, a, r)
        x, y = np.flatnonzero((self.a != 0) | (self.r != 0))
        self._forms = np.array([self.a[[x, y]], self.r[[x, y]]])
        self._sizes = boxes.sizes[[x, y], [x, y]]
        self._share = boxes.share
        self._x, self._y = (boxes.lo[x], boxes.hi[x]), (boxes.lo[y], boxes.hi[y])
        (ax, ay), (rx, ry) = self._forms
        cross = float(ax * ry + ay * rx)
        # Where the product of both columns counts below 0, the second is turned around.
        self._turn, self._factor = np.copysign(1.0, cross), abs(cross)
        self._p, self._q = -float(ax * rx) / self._factor, -float(ay * ry) / self._factor

    def peak(self, u: float, v: float, moments: bool = False) -> Peak:
        origin = np.linalg.solve(self._forms, [u, v])
        starts = range(0, len(self._share), _CHUNK)
        parts = np.array([self._part(slice(at, at + _CHUNK), origin, moments) for at in starts])
        best, *totals = (float(np.sum(part.copy())) for part in parts.T)
        mean = self._forms @ [totals[0], self._turn * totals[1]]
        second = None
        if moments:
            xx, xy, yy = totals[2], self._turn * totals[3], totals[4]
            second = self._forms @ [[xx, xy], [xy, yy]] @ self._forms.T
        value = self._factor * best
        return Peak(value + self._rounding(origin, u, v), value, mean[0] + u, mean[1] + v, second)

    def _rounding(self, origin: Floats, u: float, v: float) -> float:
        """Bound the error of a mean of largest products, and what it takes that u and v are not those of the origin."""
        x, y = np.sqrt(self._sizes) + np.abs(origin)
        terms = self._factor * (x * y + abs(self._p) * x * x + abs(self._q) * y * y)
        missed = np.abs(self._forms @ origin - [u, v]) + 4 * EPS * (np.abs(self._forms) @ np.abs(origin))
        size_a, size_r = np.sqrt([self.size_a, self.size_r]) + np.abs([u, v])
        return float(self.slack * terms + missed @ [size_r, size_a] + missed[0] * missed[1] + TINY)

    def _part(self, at: slice, origin: Floats, moments: bool) -> tuple[float, ...]:
        p, q, share = self._p, self._q, self._share[at]
        (x1, x2), (y1, y2) = (ends[at] - origin[0] for ends in self._x), (ends[at] - origin[1] for ends in self._y)
        if self._turn < 0:
            y1, y2 = -y2, -y1
        if max(p, q) > 0:
            # Where the edges that meet in a far corner have their tops: in the corner, or one of them before it.
            over_x, over_y = (min(0.5 / side, _FAR) if side > 0 else _FAR for side in (p, q))
            far_x, far_y = _clipped(y2 * over_x, x1, x2), _clipped(x2 * over_y, y1, y2)
            x, y = _clipped(y1 * over_x, x1, x2), _clipped(x1 * over_y, y1, y2)
        else:
            far_x, far_y, x, y = x2, self._end(x2, y1, y2), x1, self._end(x1, y1, y2)
        best, far = self._product(x, y), self._product(far_x, far_y)
        is_far = (far > best).astype(np.float64)
        np.maximum(best, far, out=best)
        x, y = x + (far_x - x) * is_far, y + (far_y - y) * is_far  # np.where takes ten times as long
        weighted = share * x
        squares = (np.sum(weighted * x), np.sum(weighted * y), np.sum(share * y * y)) if moments else ()
        return np.sum(share * best), np.sum(weighted), np.sum(share * y), *squares

    def _end(self, x: Floats, low: Floats, high: Floats) -> Floats:
        """Return the better end of y for every x."""
        tilt = x - self._q * (low + high) if self._q else x
        return _clipped(np.copysign(_FAR, tilt), low, high)

    def _product(self, x: Floats, y: Floats) -> Floats:
        if self._p == 0 == self._q:
            return x * y
        product = x - self._q * y
        product *= y
        x = x * x
        x *= self._p
        product -= x
        return product


def _clipped(values: Floats, low: Floats, high: Floats) -> Floats:
    np.minimum(values, high, out=values)
    return np.maximum(values, low, out=values)
