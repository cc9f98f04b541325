"""Cuts between many pairs of neighbouring values at once: a partition of a million rows may have 200,000."""

from __future__ import annotations

import numpy as np

from duckanon._core.common.arrays import Bools, Floats
from duckanon._core.common.labels import Numbers, Scale


def cuts(scale: Scale, lows: Floats, highs: Floats, is_shared: Bools) -> Floats:
    """Return for each pair of neighbouring values where the upper one's part begins, as `Scale.cut` finds it."""
    if not isinstance(scale, Numbers):
        triples = zip(lows.tolist(), highs.tolist(), is_shared.tolist(), strict=True)
        return np.array([scale.cut(low, high, shared) for low, high, shared in triples], np.float64)
    steps = np.ones_like(lows) if scale.is_whole else np.nextafter(lows, np.inf) - lows
    found = round_numbers(
        lows, np.where(is_shared, highs, np.minimum(highs - steps, np.nextafter(highs, -np.inf))), scale.is_whole
    )
    if scale.is_whole:
        found = np.where(~is_shared & (highs - lows < 1.5 * steps), lows + steps / 2, found)
    return np.where(is_shared | scale.has_room(lows, highs), found, np.nan)


def round_numbers(lows: Floats, highs: Floats, is_whole: bool) -> Floats:
    """Return for each pair the roundest number above the first and at most the second, as `labels.Numbers.readable`.

    Examples:
        >>> round_numbers(np.array([2.3456, 20400.0, -3.5]), np.array([3.4567, 20499.0, 4.0]), False).tolist()
        [3.0, 20450.0, 0.0]
    """
    found = np.array(highs)
    found[(lows < 0) & (highs >= 0)] = 0.0
    waiting = np.flatnonzero((lows >= 0) | (highs < 0))
    first = np.frexp(np.maximum(np.abs(lows), np.abs(highs)))[1] // 3 + 1  # the power of ten that each begins with
    for exponent in range(int(first.max(initial=0)), -301, -1):
        if not len(waiting) or (is_whole and exponent < 0):
            break
        asked = waiting[exponent <= first[waiting]]
        asked = asked[_may_have_multiple(lows[asked], highs[asked], exponent)]
        if len(asked):
            numbers = _multiples(lows[asked], highs[asked], exponent)
            is_found = ~np.isnan(numbers)
            found[asked[is_found]] = numbers[is_found]
            waiting = np.setdiff1d(waiting, asked[is_found], assume_unique=True)
    return found


def _scaled(ends: Floats, exponent: int) -> Floats:
    """Return numbers as multiples of a power of ten; those below one are divided by, as 10.0 ** -3 is inexact."""
    return ends / 10.0**exponent if exponent >= 0 else ends * 10.0**-exponent


def _may_have_multiple(lows: Floats, highs: Floats, exponent: int) -> Bools:
    """Tell quickly where a multiple of a power of ten may lie above the first number and at most at the second.

    Rounding never leads past a whole number, so that none is missed but for a first number that became a whole one.
    """
    low, high = _scaled(lows, exponent), _scaled(highs, exponent)
    whole = np.floor(low)
    return np.asarray((whole < np.floor(high)) | (whole == low))


def _multiples(lows: Floats, highs: Floats, exponent: int) -> Floats:
    """Return for each pair the best multiple of a power of ten above the first and at most the second, or NaN.

    The best ends in 5 or 0, else is even, and of several the nearest to the middle; of many the first twelve are seen.
    """
    power = 10.0 ** abs(exponent)
    scaled = [_scaled(ends, exponent) for ends in (lows, highs)]
    near = (np.abs(scaled[0]) < 2**53) & (np.abs(scaled[1]) < 2**53)
    first = np.floor(np.where(near, scaled[0], 0.0))
    digits = first[:, np.newaxis] + np.arange(12)
    numbers = digits * power if exponent >= 0 else digits / power
    inside = near[:, np.newaxis] & (lows[:, np.newaxis] < numbers) & (numbers <= highs[:, np.newaxis])
    inside &= digits <= np.floor(scaled[1])[:, np.newaxis]
    rank = np.where(digits % 5 == 0, 0, np.where(digits % 2 == 0, 1, 2))
    rank[~inside] = 3
    best = rank.min(axis=1)
    apart = np.abs(digits - ((scaled[0] + scaled[1]) / 2)[:, np.newaxis])
    apart[rank != best[:, np.newaxis]] = np.inf
    chosen = numbers[np.arange(len(numbers)), apart.argmin(axis=1)]
    return np.where(best < 3, chosen, np.nan)
