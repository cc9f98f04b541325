"""Derivatives of the logarithm of the gamma function, without scipy: importing it takes longer than all estimates."""

from __future__ import annotations

import numpy as np

from duckanon._core.common.arrays import Floats

_ASYMPTOTIC_FROM = 12  # where seven terms of the asymptotic series have sixteen digits
_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6)


def digamma(values: Floats | float) -> Floats:
    """Return the first derivative at positive values: the asymptotic series, after the recurrence for small ones."""
    large, sums = _shifted(values, 1)
    series = sum(number / (2 * k * large ** (2 * k)) for k, number in enumerate(_BERNOULLI, start=1))
    return np.asarray(np.log(large) - 0.5 / large - series - sums)


def trigamma(values: Floats | float) -> Floats:
    """Return the second derivative at positive values."""
    large, sums = _shifted(values, 2)
    series = sum(number / large ** (2 * k + 1) for k, number in enumerate(_BERNOULLI, start=1))
    return np.asarray(1 / large + 0.5 / large**2 + series + sums)


def _shifted(values: Floats | float, power: int) -> tuple[Floats, Floats]:
    """Return values that are large enough, and the sums of 1 / x^power over the steps to them."""
    large = np.array(values, np.float64)
    sums = np.zeros_like(large)
    for _ in range(_ASYMPTOTIC_FROM):
        small = large < _ASYMPTOTIC_FROM
        sums += np.where(small, 1 / large**power, 0)
        large = large + small
    return large, sums
