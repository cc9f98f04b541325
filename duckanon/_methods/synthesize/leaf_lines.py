"""Straight lines within the leaves of a tree: what numbers that were drawn before tell about the next one there."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from duckanon._core.common import progress
from duckanon._core.common.arrays import Bools, Floats, Ints, Reals
from duckanon._methods.synthesize.predictors import NO_NUMBER, Predictors

_ROUNDS = 2  # of numbers that a line is fitted to, the second to what the first leaves
_SAVED = 3.0  # deviance that a line saves for each of the two numbers it takes, and for the choice of its predictor
_LEAST_VARIANCE = 1e-12  # of ranks in a leaf: less is a rounding error
_NARROW = 2.0  # deviations from the mean of a leaf: beyond, a line says what few people of it do


class Fits(NamedTuple):
    """What lines say about the people who were learnt from, and about new rows."""

    people: Floats
    new: Floats


def leaf_lines(
    predictors: Predictors, rows: Ints, new: Ints, leaves: Ints, new_leaves: Ints, ranks: Floats, noise: float
) -> Fits:
    """Fit ranks in every leaf by a line on the number that explains most, if it explains more than chance would.

    Args:
        predictors: The columns drawn before.
        rows, new: The people who are learnt from, and the new rows.
        leaves, new_leaves: Theirs.
        ranks: Those of people's numbers.
        noise: The deviation of what is added to drawn ranks: no line explains less.
    """
    place, new_place, sizes = _numbered(leaves, new_leaves)
    numbers = [one for one in predictors.columns if one.choices == 0]
    moments = [_Moments.of(one.original[rows], place, sizes) for one in numbers]
    means = np.bincount(place, ranks) / sizes
    fits = Fits(means[place], means[new_place])
    for _ in range(_ROUNDS if numbers else 0):
        rest = ranks - fits.people
        products = (one.original[rows] * rest for one in numbers)
        lines = _best_lines(moments, products, place, rest, sizes, noise)
        gains = Fits(np.zeros(len(rest)), np.zeros(len(new)))
        for number, one in enumerate(numbers):
            progress.check()
            is_own = lines.predictor == number
            here, new_here = np.flatnonzero(is_own[place]), np.flatnonzero(is_own[new_place])
            gains.people[here] = lines.at(one.original[rows[here]], place[here])
            gains.new[new_here] = lines.at(one.new[new[new_here]], new_place[new_here])
        fits = Fits(fits.people + gains.people, fits.new + gains.new)
    return fits


def _numbered(leaves: Ints, new_leaves: Ints) -> tuple[Ints, Ints, Floats]:
    """Number the leaves that people have from 0; return people's, those of new rows, and how many people each has."""
    sizes = np.bincount(leaves)
    number = np.cumsum(sizes > 0) - 1
    return number[leaves], number[new_leaves], sizes[sizes > 0].astype(np.float64)


class _Moments(NamedTuple):
    """The mean and variance of a number in each leaf, and whether it is one that a line can be fitted to."""

    mean: Floats
    variance: Floats
    is_known: Bools

    @classmethod
    def of(cls, values: Reals, place: Ints, sizes: Floats) -> _Moments:
        """Take the moments of ranks, from 0 to 1, where all people of a leaf have one."""
        progress.check()
        count = len(sizes)
        has_all = np.bincount(place[values == NO_NUMBER], minlength=count) == 0
        mean = np.bincount(place, values, count) / sizes
        variance = np.bincount(place, values.astype(np.float64) ** 2, count) / sizes - mean**2
        return cls(mean, variance, has_all & (variance > _LEAST_VARIANCE))


class _Lines(NamedTuple):
    """The line of each leaf: the number that it is fitted to, -1 for none, and that one's slope, mean and deviation."""

    predictor: Ints
    slope: Floats
    mean: Floats
    deviation: Floats

    def at(self, values: Reals, leaves: Ints) -> Floats:
        """Return what lines say at values, which count as the outermost usual ones where they lie beyond."""
        widest = _NARROW * self.deviation[leaves]
        apart = np.clip(values - self.mean[leaves], -widest, widest)
        return np.where(values == NO_NUMBER, 0.0, self.slope[leaves] * apart)


def _best_lines(
    moments: list[_Moments], products: Iterable[Floats], place: Ints, rest: Floats, sizes: Floats, noise: float
) -> _Lines:
    """Fit what is left in each leaf to the number that explains most; `products` are those of numbers and the rest."""
    count = len(sizes)
    mean = np.bincount(place, rest, count) / sizes
    spread = np.bincount(place, rest**2, count) / sizes + noise**2
    best: Floats = np.full(count, 2 * _SAVED + 2 * np.log(len(moments)))
    lines = _Lines(np.full(count, -1), np.zeros(count), np.zeros(count), np.zeros(count))
    for number, (one, product) in enumerate(zip(moments, products, strict=True)):
        progress.check()
        covariance = np.bincount(place, product, count) / sizes - one.mean * mean
        slope = covariance / np.maximum(one.variance, _LEAST_VARIANCE)
        saved = sizes * np.log(spread / np.maximum(spread - slope * covariance, noise**2))
        is_better = one.is_known & (saved > best)
        best[is_better] = saved[is_better]
        lines.predictor[is_better] = number
        for kept, found in zip(lines[1:], (slope, one.mean, np.sqrt(np.maximum(one.variance, 0.0))), strict=True):
            kept[is_better] = found[is_better]
    return lines
