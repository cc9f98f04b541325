"""The largest covariance, correlation and slope over all tables within the boxes.

Write s and t for the sum and the difference of the means of two linear forms a and r.  For any s0, t0 with
u = (s0 + t0) / 2, v = (s0 - t0) / 2 and S(s0, t0) the mean over the boxes of the largest (a - u)(r - v), every table
has

    cov(a, r) <= S(s0, t0) - (s - s0)^2 / 4 + (t - t0)^2 / 4.

So only t has to be searched.  h(t0), the minimum of S over s0, is the largest value of cov - (t - t0)^2 / 4 over all
tables: it never exceeds the largest covariance, and reaches it where t0 is the t of the best table.  As a maximum of
such parabolas, h(t) + t^2 / 4 is convex, whence values of h at two points bound everything between them.  That is
branch and bound on the means in one dimension in place of two; each value costs one pass over the boxes.

For the correlation, with k = exp(kappa) any guess of the ratio of the standard deviations, and K the true logarithm of
that ratio,

    cov - (r / 2) (k var_x + var_y / k) = sd_x sd_y (rho - r cosh(K - kappa)),

and the left side is the covariance of two linear forms, since x y - (r / 2) (k x^2 + y^2 / k) is a product of two of
them when |r| <= 1.  With M its largest value over all tables, every table has

    rho <= r cosh(K - kappa) + M / (sd_x sd_y).

Such bounds for several kappa hold together.  r is the best correlation met, so M is about 0 at the right kappa.

References:
    REFERENCES.md, Boxes, "Exact ranges over boxes": covariance, correlation and slope.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from duckanon._core.common.arrays import Floats
from duckanon._methods.intervals.moments import Range
from duckanon._methods.intervals.rectangles import make_forms
from duckanon._methods.intervals.scaled import EPS, Forms, ScaledBoxes

_COVARIANCE_CLIMB = 12  # steps of the search for a good table; it usually settles after three
_CENTER = 12  # steps towards the minimum over s; each gains a digit
_INTERVALS = 200  # pieces of t at most, so that asking for more digits than rounding leaves comes to an end


@dataclass(frozen=True)
class LargestCovariance:
    """The largest covariance of two forms."""

    upper: float  # no table has a larger covariance
    reached: float  # some table has this covariance


class _CovarianceSearch:
    """Values of S, and the best table met so far."""

    def __init__(self, forms: Forms, start: tuple[float, float] | None) -> None:
        self.forms = forms
        self.best = -np.inf
        a, r = (forms.center_a, forms.center_r)
        if start is not None:
            a, r = start[0] * forms.ratio, start[1] / forms.ratio
        self.at = (a + r, a - r)

    def look(self, s: float, t: float) -> tuple[float, float, float]:
        """Evaluate S(s, t), rounded up, and the s and t of the table that attains it."""
        peak = self.forms.peak(0.5 * (s + t), 0.5 * (s - t))
        to_s, to_t = peak.mean_a + peak.mean_r, peak.mean_a - peak.mean_r
        reached = peak.exact - ((to_s - s) ** 2 - (to_t - t) ** 2) / 4 - 2 * (peak.value - peak.exact)
        if reached > self.best:
            self.best, self.at = reached, (to_s, to_t)
        return peak.value, to_s, to_t

    def climb(self, relative: float, scale: float) -> None:
        """Let the means follow the best table until that gains little."""
        s, t = self.at
        for _ in range(_COVARIANCE_CLIMB):
            before = self.best
            _, to_s, to_t = self.look(s, t)
            if self.best - before <= 0.1 * relative * max(abs(self.best), scale):
                break
            s, t = to_s, to_t

    def minimize_over_s(self, t: float, s: float, tolerance: float) -> tuple[float, float]:
        """Minimise S over s to within the tolerance: the value, and the s."""
        low, high = -np.inf, np.inf
        best, best_s = np.inf, s
        for _ in range(_CENTER):
            value, to_s, _ = self.look(s, t)
            if value < best:
                best, best_s = value, s
            # S is strongly convex with slope (s - to_s) / 2: this is how far from the minimum it can be.
            if (s - to_s) ** 2 / 4 <= tolerance:
                break
            low, high = (s, high) if to_s > s else (low, s)
            s = to_s if low < to_s < high else 0.5 * (low + high)
        return best, best_s


def maximize_covariance(
    forms: Forms,
    relative: float,
    scale: float = 0.0,
    start: tuple[float, float] | None = None,
    *,
    only_sign: bool = False,
) -> LargestCovariance:
    """Bound the largest covariance of two forms over all tables within the boxes.

    The bound and what is reached differ by more than asked only where records of a box would have to be split between
    points of equal worth, which matters in tables of few records.

    Args:
        relative: Wanted accuracy, relative to the larger of the result and `scale`, a size that counts as not small.
        start: A guess of the means of the two forms in the best table.
        only_sign: Whether to stop as soon as it is known on which side of 0 the result is.
    """
    search = _CovarianceSearch(forms, start)
    if forms.reach_a == 0 or forms.reach_r == 0:
        search = _CovarianceSearch(forms, None)
        # One form is known exactly, so its mean is too, and the first pass is exact up to rounding of that mean.
        s, t = search.at
        value, _, _ = search.look(s, t)
        doubt = 8 * forms.slack * (np.sqrt(forms.size_a * forms.size_r))
        return LargestCovariance(float(value + doubt), float(search.best))
    search.climb(relative, scale)
    if only_sign and search.best > 0:
        return LargestCovariance(np.inf, float(search.best))
    tolerance = relative * max(abs(search.best), scale)
    s_best, t_best = search.at
    middle = forms.center_a - forms.center_r
    reach = forms.reach_t + 8 * forms.slack * float(np.sqrt(forms.size_a) + np.sqrt(forms.size_r))
    low, high = middle - reach, middle + reach
    starts = sorted({low, min(max(t_best, low), high), high})
    known = [(t, *search.minimize_over_s(t, s_best, tolerance / 8)) for t in starts]
    for _ in range(_INTERVALS):
        bounds = [_maximize_between(*before[:2], *after[:2]) for before, after in pairwise(known)]
        worst = int(np.argmax([b[0] for b in bounds]))
        bound, at = bounds[worst]
        width = known[worst + 1][0] - known[worst][0]
        if only_sign and (bound < -tolerance or search.best > 0):
            break
        if bound <= search.best + tolerance or width * width / 16 <= tolerance / 16 or width <= 1e-9 * reach:
            break
        edge = 0.1 * width
        at = min(max(at, known[worst][0] + edge), known[worst + 1][0] - edge)
        s_near = known[worst][2] if at - known[worst][0] < known[worst + 1][0] - at else known[worst + 1][2]
        known.insert(worst + 1, (at, *search.minimize_over_s(at, s_near, tolerance / 8)))
    upper = float(bound + 8 * EPS * (abs(bound) + reach * reach))
    return LargestCovariance(upper, float(search.best))


def make_covariance_forms(boxes: ScaledBoxes, first: int, second: int, sign: float = 1.0) -> Forms:
    """Return forms whose covariance is that of two columns, or its negative for sign -1."""
    a, r = np.zeros(len(boxes.lo)), np.zeros(len(boxes.lo))
    a[first], r[second] = 1.0, sign
    return make_forms(boxes, a, r)


def _maximize_between(t1: float, h1: float, t2: float, h2: float) -> tuple[float, float]:
    """Bound h between two points; return the bound, and where it is largest."""
    width2 = (t2 - t1) ** 2
    share = min(max(0.5 + 2 * (h2 - h1) / width2, 0.0), 1.0) if width2 > 0 else 0.0
    return (1 - share) * h1 + share * h2 + share * (1 - share) * width2 / 4, t1 + share * (t2 - t1)


_CLIMB = 20  # steps at most of the search for a good table; it stops when a step gains almost nothing
_RATIOS = 24  # guesses of the ratio of the standard deviations
_GRID = 4000  # cells over the possible ratios, in which the bounds are compared
_FAR = 0.1  # for ratios away from the right one, M may be off by this share of the slack
_ROUGH = 0.02  # accuracy of the bounds for ratios that are far from the right one
_ALMOST = 1e-7  # a correlation this near to 1 is called 1, as the two forms become equal at 1
_MOST_FACES = 8  # records and ends at which a column that may be constant is looked at, each as dear as a correlation
_WIDEST = 30.0  # ratios beyond exp of this are not searched


def maximize_correlation(
    boxes: ScaledBoxes, first: int, second: int, var: list[Range], sign: float, relative: float
) -> tuple[float, float]:
    """Bound the largest correlation, or that of x and -y for sign -1.

    No table has a larger correlation than the first number, some table has the second. The wanted accuracy is relative
    to the larger of the correlation and the width of its range.
    """
    best, best_ratio, means = _climb(boxes, first, second, sign)
    low_x, high_x, low_y, high_y = (float(np.sqrt(v)) for c in (first, second) for v in (var[c].lower, var[c].upper))
    if min(low_x, low_y) <= 0 or best >= 1 - _ALMOST:
        return 1.0, best
    least, most = low_x * low_y * (1 - 8 * EPS), high_x * high_y * (1 + 8 * EPS)
    low, high = np.log(low_y / high_x) - 16 * EPS, np.log(high_y / low_x) + 16 * EPS
    if high - low > _WIDEST:
        return 1.0, best
    edges = np.linspace(low, high, _GRID + 1)
    bounds = np.full(_GRID, 1.0)
    ratio, bend = min(max(best_ratio, low), high), 0.8
    for _ in range(_RATIOS):
        # The best r for this ratio makes M about 0, so that the unknown sd_x sd_y does not matter.  If the best table
        # were the best for all ratios, r would be best / cosh; `bend` is how much of that is seen.
        drop = best * (1 - 1 / float(np.cosh(ratio - best_ratio))) if best > 0 else 0.0
        r = best - bend * drop
        before = best
        tolerance = 0.25 * relative * max(abs(best), 0.02)
        rows = _factor_product(r, ratio)
        forms = _make_column_forms(boxes, first, second, sign, rows)
        largest = maximize_covariance(
            forms, _ROUGH, max(tolerance, _FAR * (best - r)) * least / _ROUGH, tuple(rows @ means)
        )
        doubt = 32 * EPS * (np.exp(ratio) * var[first].upper + var[second].upper * np.exp(-ratio) + most)
        excess = float(largest.upper + doubt)
        bounds = np.minimum(bounds, _maximize_cosh(edges, ratio, r) + excess / (least if excess > 0 else most))
        if drop > 4 * tolerance:
            bend = min(max((best - r - largest.reached / np.sqrt(least * most)) / drop, 0.0), 1.0)
        if r + largest.reached / most > best + tolerance:  # some table is better than the best so far
            climbed = _climb(boxes, first, second, sign, (r, ratio))
            best, best_ratio, means = climbed if climbed[0] > best else (best, best_ratio, means)
        worst = int(np.argmax(bounds))
        if bounds[worst] <= best + 4 * tolerance:
            break
        following = 0.5 * float(edges[worst] + edges[worst + 1])
        if abs(following - ratio) <= (high - low) / _GRID and best == before:
            break
        ratio = following
    return min(float(bounds.max()) + 8 * EPS, 1.0), best


def list_faces(boxes: ScaledBoxes, column: int) -> list[ScaledBoxes]:
    """Return boxes with one record at an end, which together have the correlations of a column that may be constant.

    Where one point alone is in all its intervals, every other table can be stretched away from that point until a
    record is at an end of its interval, and has the same correlations. None where it cannot be constant, or where many
    records would have to be looked at.
    """
    used = boxes.share > 0
    low, high = boxes.lo[column], boxes.hi[column]
    point = float(high[used].min())
    if point != float(low[used].max()):
        return []
    ends = [(int(box), float(end)) for box in np.flatnonzero(used) for end in (low[box], high[box]) if end != point]
    return [_fix_record(boxes, column, box, end) for box, end in ends] if len(ends) <= _MOST_FACES else []


def _fix_record(boxes: ScaledBoxes, column: int, box: int, value: float) -> ScaledBoxes:
    """Return the boxes with one record of a box at a value of a column."""
    rest = int(boxes.records[box]) - 1
    box_of_part = np.append(np.arange(len(boxes.records)), [box] * (rest > 0)).astype(np.int64)
    taken, part = boxes.take(box_of_part), np.ones(len(box_of_part))
    taken.records[box], part[box] = 1, 1 / (rest + 1)
    if rest:
        taken.records[-1], part[-1] = rest, rest / (rest + 1)
    taken.lo[column, box] = taken.hi[column, box] = value
    return replace(taken, amount=taken.amount * part, share=taken.share * part)


def maximize_slope(boxes: ScaledBoxes, x: int, y: int, var: Range, sign: float, relative: float) -> tuple[float, float]:
    """Bound the largest slope of y on x, or of -y on x for sign -1, given the range of the variance of x.

    With b the best slope met, cov(x, y) - b var_x is the covariance of x and y - b x; its largest value over the least
    variance is how much b can be exceeded. No table has a larger slope than the first number, some table has the
    second.
    """
    best = -np.inf
    a, r = np.zeros(len(boxes.lo)), np.zeros(len(boxes.lo))
    middle = boxes.middle
    mean_x, mean_y = float(boxes.share @ middle[x]), sign * float(boxes.share @ middle[y])
    slope = sign * float(
        np.sum(boxes.share * (middle[x] - mean_x) * middle[y])
        / (np.sum(boxes.share * (middle[x] - mean_x) ** 2) or 1.0)
    )
    for _ in range(_CLIMB):
        a[x], r[x], r[y] = 1.0, -slope, sign
        forms = make_forms(boxes, a, r)
        peak = forms.peak(mean_x * forms.ratio, (mean_y - slope * mean_x) / forms.ratio, moments=True)
        assert peak.second is not None
        to_x, to_r = peak.mean_a / forms.ratio, peak.mean_r * forms.ratio
        gap_x, gap_r = to_x - mean_x, to_r - (mean_y - slope * mean_x)
        variance = peak.second[0, 0] / forms.ratio**2 - gap_x**2
        if variance <= 0:
            break
        new = slope + (peak.second[0, 1] - gap_x * gap_r) / variance
        mean_x, mean_y, gained = to_x, to_r + slope * to_x, new - best
        best = max(best, new)
        slope = best
        if gained <= 1e-9 * abs(best):
            break
    if var.lower <= 0:
        return np.inf, best
    a[x], r[x], r[y] = 1.0, -slope, sign
    largest = maximize_covariance(make_forms(boxes, a, r), 1.0, 0.5 * relative * max(abs(slope), 0.01) * var.lower)
    excess = largest.upper + 16 * EPS * (abs(slope) * var.upper)
    upper = slope + excess / (var.lower if excess > 0 else var.upper)
    return float(upper + 4 * EPS * abs(upper)), float(best - 16 * EPS * abs(best))


def _factor_product(r: float, kappa: float) -> Floats:
    """Return the coefficients of two forms of x and y whose product is x y - (r / 2) (k x^2 + y^2 / k)."""
    root = np.exp(0.5 * kappa)
    c = 1 + np.sqrt(max(1 - r * r, 0.0))
    return np.array([[-0.5 * r * root, 0.5 * c / root], [root, -r / c / root]])


def _make_column_forms(boxes: ScaledBoxes, first: int, second: int, sign: float, rows: Floats) -> Forms:
    """Return forms of these two columns, the second of which is turned around for sign -1."""
    both = np.zeros((2, len(boxes.lo)))
    both[:, [first, second]] = rows * [1.0, sign]
    return make_forms(boxes, both[0], both[1])


def _maximize_cosh(edges: Floats, kappa: float, r: float) -> Floats:
    """Return the largest r cosh(K - kappa) within every cell."""
    if r >= 0:
        ends = r * np.cosh(edges - kappa)
        return np.maximum(ends[1:], ends[:-1])
    near = np.clip(kappa, edges[:-1], edges[1:])
    return np.asarray(r * np.cosh(near - kappa))


def _climb(
    boxes: ScaledBoxes, first: int, second: int, sign: float, start: tuple[float, float] | None = None
) -> tuple[float, float, Floats]:
    """Look for a table of large correlation: the correlation, the logarithm of its ratio of deviations, its means."""
    middle = boxes.middle[[first, second]]
    means = middle @ boxes.share
    spread = np.sqrt((middle - means[:, None]) ** 2 @ boxes.share)
    means[1] *= sign
    if start is not None:
        r, kappa = start
    elif spread.min() > 0:
        r = sign * float(np.sum(boxes.share * (middle[0] - means[0]) * (middle[1] - sign * means[1])) / spread.prod())
        kappa = float(np.log(spread[1] / spread[0]))
    else:
        r, kappa = 0.0, 0.0
    best, best_kappa, best_means = -1.0, kappa, means
    for _ in range(_CLIMB):
        r = min(max(r, -1 + _ALMOST), 1 - _ALMOST)
        rows = _factor_product(r, kappa)
        forms = _make_column_forms(boxes, first, second, sign, rows)
        rows = rows * [[forms.ratio], [1 / forms.ratio]]
        u, v = (rows @ means).tolist()
        peak = forms.peak(u, v, moments=True)
        assert peak.second is not None
        gap = np.array([peak.mean_a - u, peak.mean_r - v])
        back = np.linalg.inv(rows)
        spreads = back @ (peak.second - np.outer(gap, gap)) @ back.T
        means = means + back @ gap
        # A table of almost no variance says nothing: its correlation is all rounding.
        if not min(spreads[0, 0], spreads[1, 1]) > 1e-10:
            break
        r = float(spreads[0, 1] / np.sqrt(spreads[0, 0] * spreads[1, 1]))
        kappa = 0.5 * float(np.log(spreads[1, 1] / spreads[0, 0]))
        gained = r - best
        if gained > 0:
            best, best_kappa, best_means = r, kappa, means
        if gained <= 1e-8 or best >= 1 - _ALMOST:
            break
    return min(best, 1.0), best_kappa, best_means
