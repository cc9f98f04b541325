"""The equations that coefficients of a regression solve, for all tables within the boxes at once.

Let x be the predictors of a record and y its target.  A table's coefficients b make, for every linear form l of the
predictors, l g(b) = 0, where g(b) = cov(x, y - b x).  For fixed l the largest l g(b) over all tables is a convex
function of b, as it is a maximum of linear ones, and it is found box by box (`correlation`, `rectangles`).  Where it is
below 0 no table within the boxes has the coefficients b.  The intercept is bounded in the same way with a constant
among the predictors and means of products in place of covariances: one pass over the boxes, without a search for the
means.

These equations are also an interval linear system, whose entries lie within known ranges.  Where it is near the
identity its solutions are bounded by it alone; else by the least standard deviation that any combination of the
predictors has in any table.  For every direction d the least standard deviation of d z over all tables is known
exactly, and it changes by no more than the sum of |change of d_i| times the largest standard deviation of z_i, so
finitely many directions bound it for all.

References:
    REFERENCES.md, Boxes, "Regression with several predictors".
    A. Neumaier, "Interval Methods for Systems of Equations" (1990), Chapter 4.
"""

from __future__ import annotations

import heapq
from abc import ABC, abstractmethod
from dataclasses import replace

import numpy as np

from duckanon._core.common import progress
from duckanon._core.common.arrays import Floats
from duckanon._methods.intervals.correlation import maximize_covariance
from duckanon._methods.intervals.moments import Range, find_variance_range
from duckanon._methods.intervals.rectangles import find_best_points, make_forms
from duckanon._methods.intervals.scaled import EPS, Forms, ScaledBoxes

_ROUNDINGS = 64  # of half an ulp each at most, in the image of a point
_SUPPORTS = 3  # steps in which the means follow the table that is best for them
_ROUGH = 2e-2  # accuracy of a covariance of which only the sign is asked
_FLAT = 1e-3  # share of the residuals' standard deviation that counts as not small


class Equations(ABC):
    """The equations of one coefficient that is held at a value t, while the others are free.

    The free coefficients are b(u) = center(t) + steps u: u = 0 is the best fit of the midpoints with the coefficient
    held, and the steps make all directions alike.
    """

    free: int  # how many coefficients are free, the length of u
    white: Floats  # forms x forms: takes forms in coordinates in which all are alike to the coefficients of the forms
    estimate: float  # the coefficient of the midpoints
    deviation: float  # the standard deviation of the midpoints' residuals, not quite 0
    size: float  # how large the coefficient could be expected to be from the columns' spread
    _matrix: Floats  # of the midpoints' equations, matrix b = right side
    _solution: Floats  # the midpoints' coefficients

    def __init__(self, boxes: ScaledBoxes) -> None:
        self.boxes = boxes
        self._mean = boxes.middle @ boxes.share
        self._gaps = boxes.middle - self._mean[:, None]
        self._covariance = (self._gaps * boxes.share) @ self._gaps.T
        slopes = np.linalg.solve(self._covariance[1:, 1:], self._covariance[1:, 0])
        self._slopes = np.asarray(slopes, np.float64)
        explained = float(self._covariance[1:, 0] @ self._slopes)
        spread = float(self._covariance[0, 0])
        self.deviation = float(np.sqrt(max(spread - explained, 1e-12 * spread))) or 1e-300

    @abstractmethod
    def locate(self, t: float, u: Floats) -> tuple[Floats, float]:
        """Return the coefficients at u, and the sum of their rounding errors at most."""

    @abstractmethod
    def find_direction(self, u: Floats) -> tuple[Floats, float]:
        """Return how the coefficients move along u, and the sum of the rounding errors at most."""

    @abstractmethod
    def _maximize(self, form: Floats, point: Floats) -> float:
        """Bound l g(b) over all tables from above; where it can be positive, any positive number will do."""

    @abstractmethod
    def _minimize_growth(self, form: Floats, direction: Floats) -> float:
        """Bound from below how fast l g(b) falls along a direction, over all tables."""

    @abstractmethod
    def find_table(self, form: Floats, point: Floats, target: float = 1.0) -> Floats:
        """Return a table, columns x boxes, in which l g(b) is nearly largest; along a direction for `target` 0."""

    @abstractmethod
    def find_support(self, form: Floats, point: Floats, target: float = 1.0) -> Floats:
        """Return g(b) of that table; how it moves along a direction for `target` 0."""

    def guess_form(self, point: Floats) -> Floats:
        """Return a form, in the coordinates of `white`, for which l g(b) of the midpoints is below 0."""
        return np.asarray(self.white.T @ (self._matrix @ (point - self._solution)))

    def evaluate_middle(self, form: Floats, point: Floats) -> float:
        """Return l g(b) of the midpoints."""
        return float(form @ self._matrix @ (self._solution - point))

    def is_below(self, form: Floats, point: tuple[Floats, float]) -> bool:
        """Tell whether l g(b) is below 0 for every table, at the point without its rounding errors.

        All columns are within [-1, 1], so an error in a coefficient moves l g(b) by at most that error times the sum of
        the form's coefficients.
        """
        progress.check()
        return self._maximize(form, point[0]) < -point[1] * float(np.abs(form).sum()) * (1 + 16 * EPS)

    def is_falling(self, form: Floats, direction: tuple[Floats, float]) -> bool:
        """Tell whether l g(b) falls along the direction for every table, without the direction's rounding errors."""
        progress.check()
        return self._minimize_growth(form, direction[0]) > direction[1] * float(np.abs(form).sum()) * (1 + 16 * EPS)

    def _forms(self, first: Floats, slopes: Floats, target: float) -> Forms:
        """Return the form of the predictors and the residual, or -b x where the target does not count."""
        return make_forms(self.boxes, np.concatenate([[0.0], first]), np.concatenate([[target], -slopes]))


class SlopeEquations(Equations):
    """The coefficient of one predictor, by covariances."""

    def __init__(self, boxes: ScaledBoxes, coefficient: int) -> None:
        super().__init__(boxes)
        self._held = coefficient
        self._others = [i for i in range(len(self._slopes)) if i != coefficient]
        self.free = len(self._others)
        self._matrix, self._solution = self._covariance[1:, 1:], self._slopes
        self.white = _invert_root(self._matrix)
        self.estimate = float(self._slopes[coefficient])
        alone = float(np.linalg.inv(self._matrix)[coefficient, coefficient])
        self.size = abs(self.estimate) + float(np.sqrt(self._covariance[0, 0] * alone))
        among = self._matrix[np.ix_(self._others, self._others)]
        self._lean = -np.linalg.solve(among, self._matrix[self._others, coefficient])
        self._steps = _invert_root(among) * self.deviation

    def locate(self, t: float, u: Floats) -> tuple[Floats, float]:
        """Return the coefficients at u, and the sum of their rounding errors at most."""
        terms = [self._slopes[self._others], self._lean * (t - self.estimate), self._steps @ u]
        sizes = np.abs(terms[:2]).sum() + np.abs(self._steps).sum(axis=0) @ np.abs(u) + np.abs(self._lean * t).sum()
        return np.insert(sum(terms), self._held, t), float(_ROUNDINGS * EPS * sizes)

    def find_direction(self, u: Floats) -> tuple[Floats, float]:
        """Return how the coefficients move along u, and the sum of the rounding errors at most."""
        size = np.abs(self._steps).sum(axis=0) @ np.abs(u)
        return np.insert(self._steps @ u, self._held, 0.0), float(_ROUNDINGS * EPS * size)

    def _maximize(self, form: Floats, point: Floats) -> float:
        forms = self._forms(form, point, 1.0)
        middle = forms.center_a - forms.center_r
        s, t = forms.center_a + forms.center_r, middle
        reach = forms.reach_t + 8 * forms.slack * float(np.sqrt(forms.size_a) + np.sqrt(forms.size_r))
        # Two passes decide nearly always; see `correlation` for the inequality.
        for _ in range(2):
            peak = forms.peak(0.5 * (s + t), 0.5 * (s - t))
            upper = peak.value + (reach + abs(t - middle)) ** 2 / 4 * (1 + 8 * EPS)
            to_s, to_t = peak.mean_a + peak.mean_r, peak.mean_a - peak.mean_r
            reached = peak.exact - ((to_s - s) ** 2 - (to_t - t) ** 2) / 4 - 2 * (peak.value - peak.exact)
            if upper < 0 or reached > 0:
                return upper
            s = to_s
        return maximize_covariance(forms, _ROUGH, _FLAT * self.deviation, only_sign=True).upper

    def _minimize_growth(self, form: Floats, direction: Floats) -> float:
        forms = self._forms(form, direction, 0.0)
        size = abs(float(form @ self._matrix @ direction))
        return -maximize_covariance(forms, _ROUGH, _FLAT * size, only_sign=True).upper

    def find_table(self, form: Floats, point: Floats, target: float = 1.0) -> Floats:
        """Return a table, columns x boxes, in which l g(b) is nearly largest; along a direction for `target` 0."""
        first, second = np.concatenate([[0.0], form]), np.concatenate([[target], -point])
        mean, best, points = self._mean, -np.inf, self.boxes.middle
        for _ in range(_SUPPORTS):
            at = find_best_points(self.boxes, first, second, mean)
            mean = at @ self.boxes.share
            gaps = at - mean[:, None]
            reached = float((first @ gaps * self.boxes.share) @ (second @ gaps))
            if reached <= best + 1e-9 * abs(best):
                break
            best, points = reached, at
        return points

    def find_support(self, form: Floats, point: Floats, target: float = 1.0) -> Floats:
        """Return g(b) of that table; how it moves along a direction for `target` 0."""
        at = self.find_table(form, point, target)
        gaps = at - (at @ self.boxes.share)[:, None]
        return np.asarray((gaps[1:] * self.boxes.share) @ (target * gaps[0] - point @ gaps[1:]))


class InterceptEquations(Equations):
    """The intercept, by means of products; coefficients and forms begin with that of the constant.

    The constant's coefficient is the prediction at 0 of the scaled predictors, from which the intercept differs by
    their coefficients times the zero of the data's own units.
    """

    def __init__(self, boxes: ScaledBoxes) -> None:
        super().__init__(boxes)
        self.free = len(self._slopes)
        self._zero = -np.ldexp(boxes.center[1:], -boxes.exponent[1:])  # 0 of the data, in scaled units
        ones = np.vstack([np.ones(len(boxes.share)), boxes.middle[1:]])
        self._matrix = (ones * boxes.share) @ ones.T
        self.white = _invert_root(self._matrix)
        at_center = float(self._mean[0] - self._slopes @ self._mean[1:])
        self._solution = np.concatenate([[at_center], self._slopes])
        self.estimate = float(at_center + self._slopes @ self._zero)
        self.size = abs(at_center) + float(np.sqrt(self._covariance[0, 0]) + np.abs(self._slopes) @ np.abs(self._zero))
        # Held at t, a step of the slopes moves the constant's coefficient too.
        along = np.column_stack([-self._zero, np.eye(self.free)])
        among = along @ self._matrix @ along.T
        self._lean = -np.linalg.solve(among, along @ self._matrix[:, 0])
        self._steps = _invert_root(among) * self.deviation

    def locate(self, t: float, u: Floats) -> tuple[Floats, float]:
        """Return the coefficients at u, and the sum of their rounding errors at most."""
        slopes = self._slopes + self._lean * (t - self.estimate) + self._steps @ u
        sizes = np.abs(self._slopes) + np.abs(self._lean) * (abs(t) + abs(self.estimate))
        sizes += np.abs(self._steps) @ np.abs(u)
        error = sizes @ (1 + np.abs(self._zero)) + abs(t)
        return np.concatenate([[t - slopes @ self._zero], slopes]), float(_ROUNDINGS * EPS * error)

    def find_direction(self, u: Floats) -> tuple[Floats, float]:
        """Return how the coefficients move along u, and the sum of the rounding errors at most."""
        slopes = self._steps @ u
        error = (np.abs(self._steps) @ np.abs(u)) @ (1 + np.abs(self._zero))
        return np.concatenate([[-(slopes @ self._zero)], slopes]), float(_ROUNDINGS * EPS * error)

    def _maximize(self, form: Floats, point: Floats) -> float:
        return self._mean_product(form, point, 1.0)

    def _minimize_growth(self, form: Floats, direction: Floats) -> float:
        return -self._mean_product(form, direction, 0.0)

    def _mean_product(self, form: Floats, point: Floats, target: float) -> float:
        forms = self._forms(form[1:], point[1:], target)
        return forms.peak(-form[0] * forms.ratio, point[0] / forms.ratio).value

    def find_table(self, form: Floats, point: Floats, target: float = 1.0) -> Floats:
        """Return a table, columns x boxes, in which l g(b) is nearly largest; along a direction for `target` 0."""
        first, second = np.concatenate([[0.0], form[1:]]), np.concatenate([[target], -point[1:]])
        return find_best_points(self.boxes, first, second, None, -form[0], point[0])

    def find_support(self, form: Floats, point: Floats, target: float = 1.0) -> Floats:
        """Return g(b) of that table; how it moves along a direction for `target` 0."""
        at = self.find_table(form, point, target)
        rest = self.boxes.share * (target * at[0] - point[1:] @ at[1:] - point[0])
        return np.concatenate([[rest.sum()], at[1:] @ rest])


def _invert_root(matrix: Floats) -> Floats:
    """Return a matrix R with R' M R = 1."""
    values, vectors = np.linalg.eigh(matrix)
    return np.asarray(vectors / np.sqrt(np.maximum(values, 1e-300)))


_SWEEPS = 50  # of Gauss-Seidel over all equations; what a sweep gains shrinks geometrically
_SETTLED = 1e-9  # relative change of the bounds at which the sweeps end
_ALIGNED = 8  # steps towards a table of dependent predictors, from each start
_DIRECTIONS = 600  # directions that are looked at, at most
_ENOUGH = 0.7  # share of the smallest value seen at which a bound is good enough


def enclose_start(matrix: Floats, right: Floats) -> Floats | None:
    """Bound the absolute values of the solutions of an interval linear system near the identity.

    The ends of the matrix are equations x unknowns x 2, those of the right sides equations x 2. None where the matrix
    is too far from the identity.
    """
    size = len(right)
    distance = np.abs(matrix - np.eye(size)[:, :, None]).max(axis=2)
    if np.abs(np.linalg.eigvals(distance)).max() >= 1 - 1e-9:  # the iteration below would hardly contract
        return None
    # |delta| <= |right| + distance |delta|; any positive vector that satisfies it strictly is a bound.  So the right
    # side is made a little larger, and above 0.
    bound = np.linalg.solve(np.eye(size) - distance, np.abs(right).max(axis=1) * (1 + 1e-9) + 1e-300)
    if (bound <= 0).any() or (np.abs(right).max(axis=1) + distance @ bound > bound).any():
        return None
    return np.asarray(bound)


def narrow_solutions(matrix: Floats, right: Floats, bound: Floats) -> Floats:
    """Narrow the solutions of an interval linear system, bounded before, equation by equation (Gauss-Seidel)."""
    size = len(right)
    delta = np.stack([-bound, bound], axis=1)
    for _ in range(_SWEEPS):
        before = delta.copy()
        for row in range(size):
            rest = right[row].copy()
            for column in range(size):
                if column != row:
                    products = np.outer(matrix[row, column], delta[column]).ravel()
                    rest += np.array([-products.max(), -products.min()])
            if matrix[row, row, 0] > 0:
                quotients = np.divide.outer(rest, matrix[row, row]).ravel()
                slack = 16 * EPS * np.abs(quotients).max()
                delta[row] = [max(delta[row, 0], quotients.min() - slack), min(delta[row, 1], quotients.max() + slack)]
        if np.abs(delta - before).max() <= _SETTLED * np.abs(delta).max():
            break
    return delta


def _find_form_variance(boxes: ScaledBoxes, form: Floats) -> Range:
    """Range of the variance of a linear form of the columns."""
    middle, reach = form @ boxes.middle, np.abs(form) @ boxes.half
    rounding = (8 + 4 * len(form)) * EPS * (np.abs(form) @ (np.abs(boxes.middle) + boxes.half))
    size = float((np.abs(middle) + reach + rounding).max()) or 1.0
    # The form is brought to scale as a column would be.
    lo, hi = (middle - reach - rounding) / size, (middle + reach + rounding) / size
    variance = find_variance_range(replace(boxes, lo=lo[None], hi=hi[None]), 0)
    slack = 1 + 16 * EPS
    return Range(variance.lower * size**2 / slack, variance.upper * size**2 * slack, np.nan, np.nan)


def find_least_share(boxes: ScaledBoxes) -> float:
    """Look for a table whose predictors are nearly dependent, although those of the midpoints are not.

    In turn a form's records come together as near as their boxes let them, and the form becomes the one that has lost
    most of its variance in that table. Return the least share of its variance among midpoints that some form of the
    predictors has in some table, of those that were met; 0 where the predictors of one are dependent.
    """
    middle, half, share = boxes.middle[1:], boxes.half[1:], boxes.share
    values, vectors = np.linalg.eigh(np.cov(middle, aweights=share, bias=True).reshape(len(middle), -1))
    white = vectors / np.sqrt(np.maximum(values, 1e-300))  # forms whose midpoints have the variance 1
    least = np.inf
    for start in white.T:
        form = start
        for _ in range(_ALIGNED):
            progress.check()
            least = min(least, _find_form_variance(boxes, np.concatenate([[0.0], form])).lower)
            if least <= 0:
                return 0.0
            # Every record goes as near to the form's mean as its box lets it.
            at, reach = form @ middle, np.abs(form) @ half
            moved = np.clip((at @ share - at) / np.where(reach > 0, reach, 1.0), -1.0, 1.0)
            points = middle + moved * np.sign(form)[:, None] * half
            gaps = white.T @ (points - (points @ share)[:, None])
            form = white @ np.linalg.eigh((gaps * share) @ gaps.T)[1][:, 0]
    return float(least)


def find_least_deviation(boxes: ScaledBoxes, rows: Floats) -> float:
    """Bound from below the standard deviation of d z over all tables and all unit vectors d.

    The rows are the forms z, forms x columns. 0 where some table may have linearly dependent forms, or that could not
    be ruled out in time.
    """
    size = len(rows)
    largest = np.sqrt([_find_form_variance(boxes, row).upper for row in rows])
    # Cells of directions on the surface of a cube, the one with the lowest bound first; numbers decide among equals.
    cells: list[tuple[float, int, Floats, Floats]] = []
    smallest, looked = np.inf, 0

    def add_cell(center: Floats, half: Floats) -> None:
        nonlocal smallest, looked
        looked += 1
        deviation = float(np.sqrt(_find_form_variance(boxes, center @ rows).lower))
        smallest = min(smallest, deviation / float(np.linalg.norm(center)))
        bound = (deviation - float(half @ largest)) / float(np.linalg.norm(np.abs(center) + half))
        heapq.heappush(cells, (bound, looked, center, half))

    for axis in range(size):
        # Opposite directions have the same variance: one face of each pair will do.
        add_cell(np.eye(size)[axis], np.ones(size) - np.eye(size)[axis])
    while cells[0][0] < _ENOUGH * smallest and looked < _DIRECTIONS and smallest > 0:
        _, _, center, half = heapq.heappop(cells)
        axis = int(np.argmax(half * largest))
        for side in (-0.5, 0.5):
            shift = np.eye(size)[axis] * half[axis]
            add_cell(center + side * shift, half - 0.5 * shift)
    return max(cells[0][0] * (1 - 64 * EPS), 0.0)
