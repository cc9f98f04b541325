"""Roots of functions of one number."""

from __future__ import annotations

from collections.abc import Callable

from scipy.optimize import brentq


def root_of(function: Callable[[float], float], steps: int) -> float:
    """Return where a function vanishes that has different signs at -1 and 1, in at most so many steps."""
    return float(brentq(function, -1.0, 1.0, xtol=1e-12, rtol=1e-12, maxiter=steps, disp=False))
