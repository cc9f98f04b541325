"""The largest product of two linear forms over every box: the pass over the data behind all statistics of two columns.

For two linear forms a(x) and r(x) of a record and any numbers u, v, every table has

    cov(a, r) = mean((a - u)(r - v)) - (mean(a) - u)(mean(r) - v),

and the first term is largest when every record is at the best point of its box, which is found box by box.  A box looks
like a zonotope in the plane of a and r, with edges in the same directions for all boxes, so its vertices are found
without sorting.  The largest product is at a vertex, or inside an edge that falls where a rises.

References:
    REFERENCES.md, Boxes, "Exact ranges over boxes": separable bounds.
"""

from __future__ import annotations

import numpy as np

from duckanon._core.common.arrays import Floats
from duckanon._methods.intervals.forms import Forms, Peak
from duckanon._methods.intervals.scaled import ScaledBoxes

_LEVEL = 1e-100  # an edge this flat is as good as its ends, and its slope would overflow
_CHUNK = 1 << 13  # boxes at a time, so that the temporary arrays stay in the cache


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
        held = set(falling) | {(i + 1) % len(used) for i in falling}
        self._corners = [(ca, cr, ca * cr) for i, (ca, cr) in enumerate(corners) if i not in held]
        self._edges = [
            (corners[i][0] + da * half, corners[i][1] + dr * half, half, float(da), float(dr))
            for i, da, dr, half in zip(range(len(used)), self._da, self._dr, self._half, strict=True)
            if i in falling
        ]

    def peak(self, u: float, v: float, moments: bool = False) -> Peak:
        starts = range(0, len(self._share), _CHUNK)
        parts = np.array([self._part(slice(at, at + _CHUNK), u, v, moments) for at in starts])
        value, total_a, total_r, aa, ar, rr = (float(np.sum(part.copy())) for part in parts.T)
        rounding = self.slack * 2 * float(np.sqrt((self.size_a + u * u) * (self.size_r + v * v)))
        second = np.array([[aa, ar], [ar, rr]]) if moments else None
        return Peak(value + rounding + _LEVEL, value, total_a + u, total_r + v, second)

    def _part(self, at: slice, u: float, v: float, moments: bool) -> Floats:
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


def best_points(
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
