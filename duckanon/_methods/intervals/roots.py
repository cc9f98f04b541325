"""Roots of functions of one number, by scipy, which takes a second to import."""

from __future__ import annotations

from collections.abc import Callable

from scipy.optimize import brentq


def root_of(function: Callable[[float], float], steps: int) -> float:
    """Find the root of a function that has different signs at -1 and 1, in at most `steps` steps."""
    return float(brentq(function, -1.0, 1.0, xtol=1e-12, rtol=1e-12, maxiter=steps, disp=False))
