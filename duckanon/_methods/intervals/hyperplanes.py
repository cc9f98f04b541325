"""Ends of a coefficient's range by excluding hyperplanes.

No table has the coefficient t if the hyperplane of all coefficients with that one at t can be covered with cells, each
of which is excluded: by one linear form l with l g(b) < 0 for every table at all vertices of the cell, and falling
along its rays (`equations`).  As the largest l g(b) is convex in b, it is then below 0 in the whole cell.

If one hyperplane is excluded, then all tables within the boxes have independent predictors: else some table would solve
its equations along a line, which either meets the hyperplane or is parallel to it and ends in a cell with rays, where
l g(b) falls.  So the coefficient is a continuous function of the table, tables are connected, and none has a
coefficient beyond t, as the midpoints' is before it.

Cells are simplices, and cones over simplices around 0; they are halved where they are not excluded.  Their vertices
are short binary fractions, so that halving is exact and the cover has no gaps; only the image of a vertex is rounded,
and by how much is counted (`Equations.is_below`).

References:
    REFERENCES.md, Boxes, "Regression with several predictors".
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations, product

import numpy as np

from duckanon._core.common import progress
from duckanon._core.common.arrays import Floats
from duckanon._methods.intervals.equations import Equations

_CELLS = {0: 16, 1: 100, 2: 300, 3: 1000}  # cells of a hyperplane at most, by the number of free coefficients
_HOPELESS = 50  # cells at most where some table's predictors are nearly dependent
_EFFORT = 2  # times as many cells are looked at for one end
_LOOKS = 12  # at tables, for one form
_WIDE_LOOKS = 6  # the same for a whole cell
_PLANES = 40  # at most for one end
_RADIUS = 2.0  # of the bounded cells at first, in standard deviations of the residuals
_SMALLEST = 2.0**-10  # an edge that is not halved any more
_FARTHEST = 2.0**10  # a cone that is not cut any more
_NARROWEST = 2.0**-6  # the widest angle of a cone that is not halved any more


@dataclass(frozen=True)
class _HyperplaneCell:
    """The simplex of some vertices; with rays everything behind it, seen from 0, as well."""

    vertices: Floats  # vertices x free coefficients: as many as there are free coefficients, and one more without rays
    rays: bool  # whether the cell goes on behind


@dataclass(frozen=True)
class _Hint:
    """A form that has excluded a cell, and may exclude its neighbours, which share vertices with it."""

    form: Floats  # the form
    is_below: dict[bytes, bool]  # whether l g(b) is below 0 for every table, by vertex of the hyperplane at hand


class Hyperplanes:
    """Excludes values of one coefficient, until a deadline by `time.monotonic`.

    `climb` finds a coefficient that is attained, as far out as it can, near a table; `hopeful` says whether the
    predictors are far enough from dependent for many cells to be worth their time.
    """

    def __init__(
        self, equations: Equations, deadline: float, climb: Callable[[Floats], float], *, hopeful: bool
    ) -> None:
        self._equations = equations
        self._deadline = deadline
        self._climb = climb
        self._cells = _CELLS[equations.free] if hopeful else min(_CELLS[equations.free], _HOPELESS)
        self._met: Floats | None = None  # a table that nearly has the coefficient that could not be excluded
        self._hint: _Hint | None = None
        self._looked = 0  # cells so far

    def find_end(self, inner: float, sign: float, width: float, accuracy: float) -> tuple[float, float]:
        """Return what is attained, and the value nearest to it that no table reaches: infinite where none was excluded.

        Where a hyperplane is not excluded since some mixture of tables is in it, a climb from there may find that more
        is attained than was known.

        Args:
            inner: What some table attains.
            sign: 1 for values above it, -1 for values below.
            width: A step that is worth taking, above 0.
            accuracy: The largest share of the distance from the estimate that may be lost.
        """
        estimate = self._equations.estimate
        step = max(0.7 * accuracy * abs(inner - estimate), width)
        limit = 64 * max(abs(inner - estimate), width)
        open_to, excluded = inner, sign * np.inf
        for _ in range(_PLANES):
            if not np.isfinite(excluded):
                t = open_to + sign * step
                step *= 2.5
            elif abs(excluded - open_to) > max(accuracy * abs(excluded - estimate), 2 * width):
                t = 0.5 * (open_to + excluded)
            else:
                break
            if abs(t - inner) > limit or self._is_over():
                break
            if self._has_no_table(t):
                excluded = t
                continue
            open_to = t
            attained = inner if self._met is None or self._is_over() else self._climb(self._met)
            if sign * (attained - inner) > width:
                inner = attained
                if sign * (inner - t) > 0:
                    open_to, step = inner, max(0.7 * accuracy * abs(inner - estimate), width)
        return inner, float(excluded)

    def _is_over(self) -> bool:
        """Tell whether the end has had its time."""
        return self._looked >= _EFFORT * self._cells or time.monotonic() >= self._deadline

    def _has_no_table(self, t: float) -> bool:
        """Tell whether no table has the coefficient t, proven; False says nothing."""
        size = self._equations.free
        work, first, self._met = _cover_space(size), self._looked, None
        self._hint = None if self._hint is None else _Hint(self._hint.form, {})
        while work:
            if self._looked - first >= self._cells or self._is_over():
                return False
            self._looked += 1
            cell = work.pop()
            progress.check()
            verdict = self._judge(t, cell)
            if verdict == "excluded":
                continue
            if verdict == "attained":
                return False
            parts = _split_cell(cell, verdict == "rising")
            if parts is None:
                return False
            work += parts
        return True

    def _judge(self, t: float, cell: _HyperplaneCell) -> str:
        """Say whether a cell is excluded, has to be parted, or has points that tables attain.

        'rising' means that the cell's angle is too wide for one form.
        """
        equations = self._equations
        rays = [equations.find_direction(u) for u in cell.vertices] if cell.rays else []

        def is_falling(form: Floats) -> bool:
            return all(equations.is_falling(form, ray) for ray in rays)

        hint = self._hint
        if hint is not None and self._is_below(t, cell, hint) and is_falling(hint.form):
            return "excluded"
        center = equations.locate(t, cell.vertices.mean(axis=0))[0]
        ends = [(equations.locate(t, u)[0], 1.0) for u in cell.vertices] + [(ray, 0.0) for ray, _ in rays]
        turned = self._separate(ends, equations.guess_form(center), _WIDE_LOOKS)
        if turned is not None:
            new_hint = _Hint(equations.white @ turned, {})
            if is_falling(new_hint.form) and self._is_below(t, cell, new_hint):
                self._hint = new_hint
                return "excluded"
        turned = self._separate([(center, 1.0)], equations.guess_form(center))
        if turned is None:
            return "attained"
        return "open" if is_falling(equations.white @ turned) else "rising"

    def _is_below(self, t: float, cell: _HyperplaneCell, hint: _Hint) -> bool:
        """Tell whether l g(b) is below 0 for every table at all vertices of a cell."""
        equations = self._equations
        known = hint.is_below
        unknown = []
        for u in cell.vertices:
            if (below := known.get(u.tobytes())) is None:
                unknown.append((u.tobytes(), equations.locate(t, u)))
            elif not below:
                return False
        # The vertex that the midpoints' table is nearest to is the likeliest to fail.
        for name, point in sorted(unknown, key=lambda item: -equations.evaluate_middle(hint.form, item[1][0])):
            known[name] = equations.is_below(hint.form, point)
            if not known[name]:
                return False
        return True

    def _separate(self, ends: list[tuple[Floats, float]], guess: Floats, looks: int = _LOOKS) -> Floats | None:
        """Look for a form with l g < 0 for all tables: the shortest vector of the hull of their g, turned around.

        l g shall be below 0 at all ends: points, with 1, and directions, with 0. The form has length 1, in the
        coordinates of `white`; None where there is none, as some mixture of tables solves the equations.
        """
        equations = self._equations
        white = equations.white
        turned = guess / (np.linalg.norm(guess) or 1.0)
        seen: list[Floats] = []
        for look in range(looks):
            seen += [white.T @ equations.find_support(white @ turned, end, target) for end, target in ends]
            shortest = _find_shortest(np.array(seen))
            length = float(np.linalg.norm(shortest))
            if length < 1e-7 * equations.deviation:
                break
            after = -shortest / length
            most = max(float(g @ turned) for g in seen)
            if most < 0 and (float(after @ turned) > 1 - 1e-4 or (look >= 2 and most < -0.7 * length)):
                break
            turned = after
        if max(float(g @ turned) for g in seen) < 0:
            return np.asarray(turned)
        if len(ends) == 1:
            self._met = equations.find_table(white @ turned, *ends[0])
        return None


def _find_shortest(vectors: Floats) -> Floats:
    """Return the shortest vector of the convex hull of a few, nearly (Wolfe's algorithm)."""
    squares = (vectors**2).sum(axis=1)
    used, shares = [int(np.argmin(squares))], np.ones(1)
    for _ in range(_LOOKS):
        shortest = shares @ vectors[used]
        ahead = vectors @ shortest
        nearest = int(np.argmin(ahead))
        if ahead[nearest] >= float(shortest @ shortest) - 1e-12 * squares.max() or nearest in used:
            break
        used, shares = [*used, nearest], np.append(shares, 0.0)
        while True:
            # The shortest vector of the flat through the used ones; the first that leaves the hull goes.
            system = np.ones((len(used) + 1, len(used) + 1))
            system[-1, -1] = 0.0
            system[:-1, :-1] = vectors[used] @ vectors[used].T
            wanted = np.linalg.lstsq(system, np.append(np.zeros(len(used)), 1.0), rcond=None)[0][:-1]
            outside = wanted <= 0
            if not outside.any():
                shares = wanted / wanted.sum()
                break
            step = float((shares / np.maximum(shares - wanted, 1e-300))[outside].min())
            shares = shares + min(step, 1.0) * (wanted - shares)
            kept = np.flatnonzero(shares > 1e-12)
            if len(kept) in (0, len(used)):
                return np.asarray(shortest)
            used, shares = [used[i] for i in kept], shares[kept] / shares[kept].sum()
    return np.asarray(shares @ vectors[used])


def _cover_space(size: int) -> list[_HyperplaneCell]:
    """Cover the space with the simplices of a cross-polytope around 0, and the cones behind them."""
    if size == 0:
        return [_HyperplaneCell(np.zeros((1, 0)), rays=False)]  # the only point
    cells = []
    for signs in product((-_RADIUS, _RADIUS), repeat=size):
        corner = np.diag(signs)
        cells += [_HyperplaneCell(corner, rays=True), _HyperplaneCell(np.vstack([np.zeros(size), corner]), rays=False)]
    return cells


def _split_cell(cell: _HyperplaneCell, wide: bool) -> list[_HyperplaneCell] | None:
    """Halve a cell at its longest edge, or cut a cone in a near part and a far one; None where it is small already."""
    vertices = cell.vertices
    if not vertices.size:
        return None
    lengths = {
        pair: float(np.linalg.norm(vertices[pair[0]] - vertices[pair[1]]))
        for pair in combinations(range(len(vertices)), 2)
    }
    far = float(np.linalg.norm(vertices, axis=1).max())
    if cell.rays and not (wide and lengths and far >= 4 * _RADIUS and max(lengths.values()) > _NARROWEST * far):
        if far > _FARTHEST:
            return None
        beyond = 2 * vertices
        near = [np.vstack([vertices[: i + 1], beyond[i:]]) for i in range(len(vertices))]
        return [_HyperplaneCell(beyond, rays=True), *(_HyperplaneCell(part, rays=False) for part in near)]
    longest = max(lengths, key=lengths.__getitem__)
    if lengths[longest] < _SMALLEST:
        return None
    halves = []
    for kept in longest:
        part = vertices.copy()
        part[kept] = 0.5 * (vertices[longest[0]] + vertices[longest[1]])
        halves.append(_HyperplaneCell(part, cell.rays))
    return halves
