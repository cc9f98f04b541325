"""Growing boxes outward to readable numbers."""

from __future__ import annotations

import numpy as np

from duckanon._core.common.arrays import Floats


def rounded_outward(lower: Floats, upper: Floats) -> tuple[Floats, Floats]:
    """Grow intervals to multiples of 1, 2 or 5 times a power of ten.

    Parameters
    ----------
    lower, upper : array of float
        The ends of the intervals.

    Returns
    -------
    lower, upper : float64
        Ends that contain the given ones.

    Notes
    -----
    The step is the coarsest of 1, 2, 5 times a power of ten that is at most a tenth of the interval's width, so that
    rounding adds at most a fifth to it and no end has more digits than that needs.  The step of an interval without
    width is that of a tenth of its value's magnitude.  Where a double cannot carry the step the end stays as it is.

    Examples
    --------
    >>> low, high = rounded_outward(np.array([1234.5]), np.array([6789.1]))
    >>> low.tolist(), high.tolist()
    ([1000.0], [7000.0])
    """
    low, high = np.asarray(lower, dtype=np.float64), np.asarray(upper, dtype=np.float64)
    width = high / 10 - low / 10
    width = np.where(width > 0, width, np.maximum(abs(low), abs(high)) / 10)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        power = np.floor(np.log10(np.where(width > 0, width, 1.0)))
        unit = width / 10.0**power
        digit = np.where(unit >= 5, 5.0, np.where(unit >= 2, 2.0, 1.0))
        # Multiples of 0.05 are found as (n * 5) / 100: a division by a power of ten is rounded once, so prints short.
        down, up = _multiple(low, digit, power, np.floor), _multiple(high, digit, power, np.ceil)
    return np.where(np.isfinite(down) & (down <= low), down, low), np.where(np.isfinite(up) & (up >= high), up, high)


def _multiple(values: Floats, digit: Floats, power: Floats, towards: np.ufunc) -> Floats:
    """Return the multiple of digit * 10^power below or above each value."""
    tens = 10.0 ** abs(power)
    coarse = power >= 0
    steps = towards(np.where(coarse, values / (digit * tens), values * tens / digit)) * digit
    result = np.where(coarse, steps * tens, steps / tens)
    # The division may have been rounded to a whole number on the wrong side of the value.
    wrong, further = (result > values, -digit) if towards is np.floor else (result < values, digit)
    corrected: Floats = np.where(wrong, np.where(coarse, (steps + further) * tens, (steps + further) / tens), result)
    return corrected
