"""Exact ranges of mean and variance over boxes.

References:
    Accurate Boxes, Section II; REFERENCES.md, Boxes, "Exact ranges over boxes".
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from duckanon._core.common.arrays import Floats, Ints
from duckanon._methods.intervals.scaled import EPS, TINY, ScaledBoxes

_STEPS = 200  # Newton on a piecewise linear function ends after a few; bisection after about sixty
_TIE = 1e-13  # midpoints this near, in scaled units, are the same
_SUBSETS = 1 << 16  # tied records are split in every way if there are at most so many


@dataclass(frozen=True)
class Range:
    """A guaranteed range, in scaled units."""

    # lower, upper: no table within the boxes has a value outside
    lower: float
    upper: float
    # lower_looseness, upper_looseness: some table within the boxes comes this near to the end
    lower_looseness: float
    upper_looseness: float


def mean_range(boxes: ScaledBoxes, column: int) -> Range:
    """Find the range of a column's mean, exact up to rounding."""
    lower, upper = (_mean(boxes.amount * ends[column], boxes.weight) for ends in (boxes.lo, boxes.hi))
    return Range(lower[0] - lower[1], upper[0] + upper[1], 2 * lower[1], 2 * upper[1])


def variance_range(boxes: ScaledBoxes, column: int) -> Range:
    """Find the range of a column's variance (population form).

    The lower end is exact up to rounding: every record moves to the point of its box that is nearest to the common
    mean.  The upper end is the minimum over mu of the mean of the squared distances to the farther end of the box; it
    is exact unless mu falls on the midpoint of boxes whose records would have to be split between both ends.  Then the
    split that balances best is subtracted where that is proven to be right, and stated as looseness where not.
    """
    lo, hi, share = boxes.lo[column], boxes.hi[column], boxes.share
    if lo.min() == hi.max():
        return Range(0.0, 0.0, 0.0, 0.0)
    lower, reached = _lowest(boxes, lo, hi, share)
    most, loose = _highest(boxes, lo, hi, share)
    rounding = boxes.slack * 4 * most + TINY
    lower = max(lower - TINY, 0.0)
    return Range(lower, most + rounding, reached * (1 + boxes.slack) - lower, loose + 2 * rounding)


def _mean(products: Floats, total: float) -> tuple[float, float]:
    """Return a mean of weighted values and its rounding error: the sum is exact, what goes into it is not."""
    size = float(np.sum(np.abs(products))) / total
    return math.fsum(products) / total, 4 * EPS * size + (TINY if size > 0 else 0.0)


def _lowest(boxes: ScaledBoxes, lo: Floats, hi: Floats, share: Floats) -> tuple[float, float]:
    """Bound the least variance, and say which one is reached.

    Semi-smooth Newton on the increasing, piecewise linear function sum share (mu - clip(mu, lo, hi)).
    """
    least, most = low, high = float(lo.min()), float(hi.max())
    mu = 0.5 * float(np.sum(share * (lo + hi)))
    best = 0.0
    for _ in range(_STEPS):
        gap = mu - np.clip(mu, lo, hi)
        slope, value = float(np.sum(share * gap)), float(np.sum(share * gap * gap))
        if value == 0:
            return 0.0, 0.0
        # The function is convex: the tangent at any mu bounds it, and at the last mu the tangent is flat.
        tilt = 2 * (abs(slope) + boxes.slack * float(np.sum(share * np.abs(gap))))
        best = max(best, value * (1 - boxes.slack) - tilt * max(most - mu, mu - least))
        low, high = (low, min(high, mu)) if slope > 0 else (max(low, mu), high)
        step = mu - slope / float(np.sum(share[gap != 0]))
        following = step if low < step < high else 0.5 * (low + high)
        if following == mu or high - low <= 2 * EPS or slope == 0 or abs(step - mu) <= EPS:
            break
        mu = following
    return best, value


def _highest(boxes: ScaledBoxes, lo: Floats, hi: Floats, share: Floats) -> tuple[float, float]:
    """Bound the largest variance, and say how much that may be too large."""
    middle = 0.5 * (lo + hi)
    low, high = float(middle.min()), float(middle.max())
    mu = float(np.sum(share * middle))
    upper, width = float(np.sum(share * hi)), share * (hi - lo)
    for _ in range(_STEPS):
        # Records whose midpoint is below mu are best at their lower end, the others at their upper end.
        slope = mu - upper + float(np.sum(width * (middle < mu).astype(np.float64)))
        low, high = (low, min(high, mu)) if slope > 0 else (max(low, mu), high)
        following = mu - slope
        if not low < following < high:
            following = 0.5 * (low + high)
        if following == mu or high - low <= 2 * EPS:
            break
        mu = following
    # The minimum is where the slope changes its sign: inside a linear piece, or at a midpoint.
    near = middle[np.abs(middle - mu) <= _TIE]
    candidates = [mu, *np.unique(near)[:4].tolist()]
    values = [float(np.sum(share * np.maximum(hi - m, m - lo) ** 2)) for m in candidates]
    best = int(np.argmin(values))
    return _settled(boxes, lo, hi, middle, candidates[best], values[best])


def _settled(
    boxes: ScaledBoxes, lo: Floats, hi: Floats, middle: Floats, mu: float, bound: float
) -> tuple[float, float]:
    """Split tied records between the ends as evenly as can be: the bound falls by the square of what is left."""
    share = boxes.share
    tied = (np.abs(middle - mu) <= _TIE) & (hi > lo) & (share > 0)
    fixed = float(np.sum((share * (np.where(middle < mu, lo, hi) - mu))[~tied]))
    reach = (share * 0.5 * (hi - lo))[tied]
    counts = boxes.records[tied]
    rest, exact = _balance(fixed, reach, counts)
    removed = rest * rest
    # Moving another record to its other end costs 4 |mid - mu| D of its share; where that exceeds what it could gain,
    # no other arrangement is better.
    others = ~tied & (hi > lo) & (share > 0)
    cost = (2 * np.abs(middle - mu) * (hi - lo) * share / boxes.records)[others]
    if exact and (cost.size == 0 or float(cost.min()) > 2 * removed):
        return bound - removed, 8 * _TIE * float(reach.sum())
    return bound, removed + 8 * _TIE * float(reach.sum())


def _balance(fixed: float, reach: Floats, counts: Ints) -> tuple[float, bool]:
    """Find the smallest absolute value of `fixed` plus signed steps, and whether it is known to be the smallest."""
    if reach.size == 0:
        return fixed, True
    step = 2 * reach / counts  # one record going from its lower to its upper end
    start = fixed - float(reach.sum())
    if float(np.log1p(counts).sum()) <= math.log(_SUBSETS) + 1e-9:  # their product may overflow
        sums = np.array([start])
        for record_step, count in zip(step, counts, strict=True):
            sums = np.add.outer(sums, record_step * np.arange(count + 1)).ravel()
        return float(np.abs(sums).min()), True
    rest = start
    for i in np.argsort(-step):
        rest += step[i] * min(max(np.floor(-rest / step[i]), 0), counts[i])
    over = step[np.abs(rest + step) < abs(rest)]
    if over.size:
        rest = float((rest + over)[np.argmin(np.abs(rest + over))])
    return abs(rest), len(counts) == 1
