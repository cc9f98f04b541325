"""Interval linear systems: all solutions of all systems whose entries lie within given ranges.

References
----------
A. Neumaier, "Interval Methods for Systems of Equations" (1990), Chapter 4.
"""

from __future__ import annotations

import numpy as np

from duckanon.common.arrays import Floats
from duckanon.intervals.scaled import EPS

_SWEEPS = 50


def start_bound(matrix: Floats, right: Floats) -> Floats | None:
    """Bound the solutions of an interval linear system near the identity; None where it is too far from that."""
    size = len(right)
    most = np.abs(matrix - np.eye(size)[:, :, None]).max(axis=2)
    if np.abs(np.linalg.eigvals(most)).max() >= 1 - 1e-9:
        return None
    # |delta| <= |right| + most |delta|; any positive vector that satisfies it strictly is a bound.
    bound = np.linalg.solve(np.eye(size) - most, np.abs(right).max(axis=1) * (1 + 1e-9) + 1e-300)
    if (bound <= 0).any() or (np.abs(right).max(axis=1) + most @ bound > bound).any():
        return None
    return np.asarray(bound)


def narrowed(matrix: Floats, right: Floats, bound: Floats) -> Floats:
    """Narrow the solutions of an interval linear system equation by equation (Gauss-Seidel)."""
    size = len(right)
    delta = np.stack([-bound, bound], axis=1)
    for _ in range(_SWEEPS):
        before = delta.copy()
        for q in range(size):
            rest = right[q].copy()
            for i in range(size):
                if i != q:
                    products = np.outer(matrix[q, i], delta[i]).ravel()
                    rest += np.array([-products.max(), -products.min()])
            if matrix[q, q, 0] > 0:
                quotients = np.divide.outer(rest, matrix[q, q]).ravel()
                slack = 16 * EPS * np.abs(quotients).max()
                delta[q] = [max(delta[q, 0], quotients.min() - slack), min(delta[q, 1], quotients.max() + slack)]
        if np.abs(delta - before).max() <= 1e-9 * np.abs(delta).max():
            break
    return delta
