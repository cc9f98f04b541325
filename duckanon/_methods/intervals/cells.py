"""Cells that cover a space: simplices and cones over simplices around 0, and how they are parted.

Their vertices are short binary fractions, so that halving is exact and a cover has no gaps.

References:
    REFERENCES.md, Boxes, "Regression with several predictors".
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations, product

import numpy as np

from duckanon._core.common.arrays import Floats

_RADIUS = 2.0  # of the bounded cells at first, in standard deviations of the residuals
_SMALLEST = 2.0**-10  # an edge that is not halved any more
_FARTHEST = 2.0**10  # a cone that is not cut any more
_NARROWEST = 2.0**-6  # the widest angle of a cone that is not halved any more


@dataclass(frozen=True)
class Cell:
    """The simplex of some vertices; with rays everything behind it, seen from 0, as well."""

    vertices: Floats  # vertices x free coefficients: as many as there are free coefficients, and one more without rays
    rays: bool  # whether the cell goes on behind


def cover(size: int) -> list[Cell]:
    """Cover the space with the simplices of a cross-polytope around 0, and the cones behind them."""
    if size == 0:
        return [Cell(np.zeros((1, 0)), rays=False)]  # the only point
    cells = []
    for signs in product((-_RADIUS, _RADIUS), repeat=size):
        corner = np.diag(signs)
        cells += [Cell(corner, rays=True), Cell(np.vstack([np.zeros(size), corner]), rays=False)]
    return cells


def parts_of(cell: Cell, wide: bool) -> list[Cell] | None:
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
        return [Cell(beyond, rays=True), *(Cell(part, rays=False) for part in near)]
    longest = max(lengths, key=lengths.__getitem__)
    if lengths[longest] < _SMALLEST:
        return None
    halves = []
    for kept in longest:
        part = vertices.copy()
        part[kept] = 0.5 * (vertices[longest[0]] + vertices[longest[1]])
        halves.append(Cell(part, cell.rays))
    return halves
