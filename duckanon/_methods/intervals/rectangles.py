"""The largest product of two linear forms over every box: the pass over the data behind all statistics of two columns.

For two linear forms a(x) and r(x) of a record and any numbers u, v, every table has

    cov(a, r) = mean((a - u)(r - v)) - (mean(a) - u)(mean(r) - v),

and the first term is largest when every record is at the best point of its box, which is found box by box.  A box looks
like a zonotope in the plane of a and r, with edges in the same directions for all boxes, so its vertices are found
without sorting.  The largest product is at a vertex, or inside an edge that falls where a rises (`Zonotopes`).

Of two columns half of these points suffice (`Rectangles`).  With the point (x0, y0) where the forms are u and v as
origin, and up to a factor,

    (a - u)(r - v) = x y - p x^2 - q y^2    where 4 p q < 1.

For p, q >= 0 it is concave along both columns, and above 0 only where x and y have the same sign.  The best point with
x, y > 0 of a box from (x1, y1) to (x2, y2) is

    x = clip(y2 / 2 p, x1, x2), y = clip(x2 / 2 q, y1, y2),

that with x, y < 0 the same of y1 and x1, and a box that has neither is best in the corner nearest to the origin, which
both formulas give.  For p, q <= 0 it is convex along both columns, so that a corner is best, one of two at x1 or at x2.

References:
    REFERENCES.md, Boxes, "Exact ranges over boxes": separable bounds.
"""

from __future__ import annotations

import numpy as np

from duckanon._core.common.arrays import Floats
from duckanon._methods.intervals.scaled import EPS, TINY, Forms, Peak, ScaledBoxes

_LEVEL = 1e-100  # an edge this flat is as good as its ends, and its slope would overflow
_ZONOTOPE_CHUNK = 1 << 13  # boxes at a time, so that the temporary arrays stay in the cache


class Zonotopes(Forms):
    """Forms of any number of columns."""

    def __init__(self, boxes: ScaledBoxes, a: Floats, r: Floats) -> None:
        super().__init__(boxes, a, r)
        used = np.flatnonzero((self.a != 0) | (self.r != 0))
        middle, half = boxes.middle[used], boxes.half[used]
        a, r = self.a[used], self.r[used]
        self._share = boxes.share
        self._a, self._r = a @ middle, r @ middle
        flip = np.where((r < 0) | ((r == 0) & (a < 0)), -1.0, 1.0)
        order = np.argsort(np.arctan2(r * flip, a * flip), kind="stable")
        self._half = half[order]
        self._da, self._dr = (a * flip)[order], (r * flip)[order]
        corner_a, corner_r = -(self._da @ self._half), -(self._dr @ self._half)
        corners: list[tuple[Floats, Floats]] = []
        for i in range(len(used)):
            corners.append((corner_a, corner_r))
            corner_a = corner_a + 2 * self._da[i] * self._half[i]
            corner_r = corner_r + 2 * self._dr[i] * self._half[i]
        tilted = (self._da * self._dr < 0) & (np.minimum(np.abs(self._da), np.abs(self._dr)) > _LEVEL)
        falling = np.flatnonzero(tilted).tolist()
        # A falling edge includes its two corners (the last edge ends opposite to the first corner).
        of_edges = set(falling) | {(i + 1) % len(used) for i in falling}
        self._corners = [(ca, cr, ca * cr) for i, (ca, cr) in enumerate(corners) if i not in of_edges]
        self._edges = [
            (corners[i][0] + da * half, corners[i][1] + dr * half, half, float(da), float(dr))
            for i, da, dr, half in zip(range(len(used)), self._da, self._dr, self._half, strict=True)
            if i in falling
        ]

    def peak(self, u: float, v: float, moments: bool = False) -> Peak:
        starts = range(0, len(self._share), _ZONOTOPE_CHUNK)
        parts = np.array([self._sum_chunk(slice(at, at + _ZONOTOPE_CHUNK), u, v, moments) for at in starts])
        value, total_a, total_r, aa, ar, rr = (float(np.sum(part.copy())) for part in parts.T)
        rounding = self.slack * 2 * float(np.sqrt((self.size_a + u * u) * (self.size_r + v * v)))
        second = np.array([[aa, ar], [ar, rr]]) if moments else None
        return Peak(value + rounding + _LEVEL, value, total_a + u, total_r + v, second)

    def _sum_chunk(self, at: slice, u: float, v: float, moments: bool) -> Floats:
        share = self._share[at]
        a, r = self._a[at] - u, self._r[at] - v
        base = a * r
        best: Floats | None = None
        for corner_a, corner_r, product in self._corners:
            # Opposite corners c and -c: the better one has the sign of what is linear in c.
            ca, cr = corner_a[at], corner_r[at]
            tilt = a * cr
            tilt += r * ca
            value = np.abs(tilt)
            value += product[at]
            sign = np.copysign(1.0, tilt)
            if best is None:
                best, move_a, move_r = value, sign * ca, sign * cr
            else:
                better = (value > best).astype(np.float64)  # np.where takes ten times as long
                np.maximum(best, value, out=best)
                move_a += (sign * ca - move_a) * better
                move_r += (sign * cr - move_r) * better
        for edge_a, edge_r, half, da, dr in self._edges:
            # Along an edge the product is a parabola open below: its top, or the end nearest to it.
            ea, er, reach = edge_a[at], edge_r[at], half[at]
            center = (-0.5 / da) * a + (-0.5 / dr) * r
            shift = (-0.5 / da) * ea + (-0.5 / dr) * er
            for up in (True, False):
                along = center + shift if up else center - shift
                np.minimum(along, reach, out=along)
                np.maximum(along, -reach, out=along)
                to_a, to_r = along * da, along * dr
                to_a, to_r = (to_a + ea, to_r + er) if up else (to_a - ea, to_r - er)
                value = a * to_r
                value += r * to_a
                value += to_a * to_r
                if best is None:
                    best, move_a, move_r = value, to_a, to_r
                else:
                    better = (value > best).astype(np.float64)
                    np.maximum(best, value, out=best)
                    move_a += (to_a - move_a) * better
                    move_r += (to_r - move_r) * better
        if best is None:
            best, move_a, move_r = np.zeros_like(a), np.zeros_like(a), np.zeros_like(a)
        best += base
        a += move_a
        r += move_r
        weighted_a = share * a
        squares = (
            (np.sum(weighted_a * a), np.sum(weighted_a * r), np.sum(share * r * r)) if moments else (0.0, 0.0, 0.0)
        )
        return np.array([np.sum(share * best), np.sum(weighted_a), np.sum(share * r), *squares])


def find_best_points(
    boxes: ScaledBoxes, a: Floats, r: Floats, mean: Floats | None, u: float = 0.0, v: float = 0.0
) -> Floats:
    """Find where in every box (a - u)(r - v) is largest; with a mean, u and v are the forms of that point."""
    middle, half = boxes.middle, boxes.half
    if mean is not None:
        u, v = float(a @ mean), float(r @ mean)
    at_a, at_r = a @ middle - u, r @ middle - v
    # A box's corners, in the plane of a and r, by the angle of its edges; opposite ones have opposite signs.
    flip = np.where((r < 0) | ((r == 0) & (a < 0)), -1.0, 1.0)
    order = np.argsort(np.arctan2(r * flip, a * flip), kind="stable")
    turned = np.where(np.arange(len(a))[:, None] > np.argsort(order)[None, :], -1.0, 1.0)
    corners = np.vstack([-flip * turned, flip * turned])
    falling = np.flatnonzero((a * r)[order] < 0)
    edges = np.concatenate([falling, falling + len(a)])
    free = np.tile(order, 2)[edges]  # the column that moves along the edge
    ends = np.concatenate([corners, corners[edges]])
    ends[np.arange(len(corners), len(ends)), free] = 0.0
    to_a, to_r = at_a + (ends * a) @ half, at_r + (ends * r) @ half
    along = np.zeros((len(edges), len(at_a)))
    if len(edges):
        step_a, step_r = a[free][:, None], r[free][:, None]
        part_a, part_r = to_a[len(corners) :], to_r[len(corners) :]
        along = np.clip(-(part_a * step_r + part_r * step_a) / (2 * step_a * step_r), -half[free], half[free])
        part_a += step_a * along
        part_r += step_r * along
    best = np.argmax(to_a * to_r, axis=0)
    points = middle + ends[best].T * half
    inside = np.flatnonzero(best >= len(corners))
    edge = best[inside] - len(corners)
    points[free[edge], inside] += along[edge, inside]
    return np.asarray(points)


_RECTANGLE_CHUNK = 1 << 14  # boxes at a time, so that the temporary arrays stay in the cache
_ALIKE = 1e-5  # share of its terms below which a determinant is rounding: the forms have no origin
_FAR = 1e300  # where a parabola that is a line has its top


def make_forms(boxes: ScaledBoxes, a: Floats, r: Floats) -> Forms:
    """Return the forms that have these coefficients of each column."""
    return Rectangles(boxes, a, r) if _has_two_columns(a, r) else Zonotopes(boxes, a, r)


def _has_two_columns(a: Floats, r: Floats) -> bool:
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
        starts = range(0, len(self._share), _RECTANGLE_CHUNK)
        parts = np.array([self._sum_chunk(slice(at, at + _RECTANGLE_CHUNK), origin, moments) for at in starts])
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

    def _sum_chunk(self, at: slice, origin: Floats, moments: bool) -> tuple[float, ...]:
        p, q, share = self._p, self._q, self._share[at]
        (x1, x2), (y1, y2) = (ends[at] - origin[0] for ends in self._x), (ends[at] - origin[1] for ends in self._y)
        if self._turn < 0:
            y1, y2 = -y2, -y1
        if max(p, q) > 0:
            # Where the edges that meet in a far corner have their tops: in the corner, or one of them before it.
            over_x, over_y = (min(0.5 / side, _FAR) if side > 0 else _FAR for side in (p, q))
            far_x, far_y = _clip(y2 * over_x, x1, x2), _clip(x2 * over_y, y1, y2)
            x, y = _clip(y1 * over_x, x1, x2), _clip(x1 * over_y, y1, y2)
        else:
            far_x, far_y, x, y = x2, self._choose_end(x2, y1, y2), x1, self._choose_end(x1, y1, y2)
        best, far = self._multiply(x, y), self._multiply(far_x, far_y)
        is_far = (far > best).astype(np.float64)
        np.maximum(best, far, out=best)
        x, y = x + (far_x - x) * is_far, y + (far_y - y) * is_far  # np.where takes ten times as long
        weighted = share * x
        squares = (np.sum(weighted * x), np.sum(weighted * y), np.sum(share * y * y)) if moments else ()
        return np.sum(share * best), np.sum(weighted), np.sum(share * y), *squares

    def _choose_end(self, x: Floats, low: Floats, high: Floats) -> Floats:
        """Return the better end of y for every x."""
        tilt = x - self._q * (low + high) if self._q else x
        return _clip(np.copysign(_FAR, tilt), low, high)

    def _multiply(self, x: Floats, y: Floats) -> Floats:
        if self._p == 0 == self._q:
            return x * y
        product = x - self._q * y
        product *= y
        x = x * x
        x *= self._p
        product -= x
        return product


def _clip(values: Floats, low: Floats, high: Floats) -> Floats:
    np.minimum(values, high, out=values)
    return np.maximum(values, low, out=values)
