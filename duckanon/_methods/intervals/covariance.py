"""The largest covariance of two linear forms over all tables within the boxes.

Write s and t for the sum and the difference of the means of the forms a and r.  For any s0, t0 with u = (s0 + t0) / 2,
v = (s0 - t0) / 2 and S(s0, t0) the mean over the boxes of the largest (a - u)(r - v), every table has

    cov(a, r) <= S(s0, t0) - (s - s0)^2 / 4 + (t - t0)^2 / 4.

So only t has to be searched.  h(t0), the minimum of S over s0, is the largest value of cov - (t - t0)^2 / 4 over all
tables: it never exceeds the largest covariance, and reaches it where t0 is the t of the best table.  As a maximum of
such parabolas, h(t) + t^2 / 4 is convex, whence values of h at two points bound everything between them.  That is
branch and bound on the means in one dimension in place of two.

References:
    REFERENCES.md, Boxes, "Exact ranges over boxes": covariance.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from duckanon._methods.intervals.forms import Forms
from duckanon._methods.intervals.rectangles import forms_of
from duckanon._methods.intervals.scaled import EPS, ScaledBoxes

_CLIMB = 12  # steps of the search for a good table; it usually settles after three
_CENTER = 12  # steps towards the minimum over s; each gains a digit
_INTERVALS = 200  # pieces of t at most, so that asking for more digits than rounding leaves comes to an end


@dataclass(frozen=True)
class Largest:
    """The largest covariance of two forms."""

    upper: float  # no table has a larger covariance
    reached: float  # some table has this covariance


class _Search:
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
        for _ in range(_CLIMB):
            before = self.best
            _, to_s, to_t = self.look(s, t)
            if self.best - before <= 0.1 * relative * max(abs(self.best), scale):
                break
            s, t = to_s, to_t

    def centered(self, t: float, s: float, tolerance: float) -> tuple[float, float]:
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


def largest_covariance(
    forms: Forms,
    relative: float,
    scale: float = 0.0,
    start: tuple[float, float] | None = None,
    *,
    only_sign: bool = False,
) -> Largest:
    """Bound the largest covariance of two forms over all tables within the boxes.

    The bound and what is reached differ by more than asked only where records of a box would have to be split between
    points of equal worth, which matters in tables of few records.

    Args:
        relative: Wanted accuracy, relative to the larger of the result and `scale`, a size that counts as not small.
        start: A guess of the means of the two forms in the best table.
        only_sign: Whether to stop as soon as it is known on which side of 0 the result is.
    """
    search = _Search(forms, start)
    if forms.reach_a == 0 or forms.reach_r == 0:
        search = _Search(forms, None)
        # One form is known exactly, so its mean is too, and the first pass is exact up to rounding of that mean.
        s, t = search.at
        value, _, _ = search.look(s, t)
        doubt = 8 * forms.slack * (np.sqrt(forms.size_a * forms.size_r))
        return Largest(float(value + doubt), float(search.best))
    search.climb(relative, scale)
    if only_sign and search.best > 0:
        return Largest(np.inf, float(search.best))
    tolerance = relative * max(abs(search.best), scale)
    s_best, t_best = search.at
    middle = forms.center_a - forms.center_r
    reach = forms.reach_t + 8 * forms.slack * float(np.sqrt(forms.size_a) + np.sqrt(forms.size_r))
    low, high = middle - reach, middle + reach
    starts = sorted({low, min(max(t_best, low), high), high})
    known = [(t, *search.centered(t, s_best, tolerance / 8)) for t in starts]
    for _ in range(_INTERVALS):
        bounds = [_between(known[i][0], known[i][1], known[i + 1][0], known[i + 1][1]) for i in range(len(known) - 1)]
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
        known.insert(worst + 1, (at, *search.centered(at, s_near, tolerance / 8)))
    upper = float(bound + 8 * EPS * (abs(bound) + reach * reach))
    return Largest(upper, float(search.best))


def covariance_forms(boxes: ScaledBoxes, first: int, second: int, sign: float = 1.0) -> Forms:
    """Return forms whose covariance is that of two columns, or its negative for sign -1."""
    a, r = np.zeros(len(boxes.lo)), np.zeros(len(boxes.lo))
    a[first], r[second] = 1.0, sign
    return forms_of(boxes, a, r)


def _between(t1: float, h1: float, t2: float, h2: float) -> tuple[float, float]:
    """Bound h between two points, and say where the bound is largest."""
    width2 = (t2 - t1) ** 2
    share = min(max(0.5 + 2 * (h2 - h1) / width2, 0.0), 1.0) if width2 > 0 else 0.0
    return (1 - share) * h1 + share * h2 + share * (1 - share) * width2 / 4, t1 + share * (t2 - t1)
