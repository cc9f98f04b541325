"""Straight lines within the leaves of a tree: what numbers that were drawn before tell about the next one there."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from duckanon._core.common import progress
from duckanon._core.common.arrays import Bools, Floats, Ints, Reals
from duckanon._methods.synthesize.predictors import NO_NUMBER, Predictors

_ROUNDS = 2  # of numbers that a line is fitted to, the second to what the first leaves
_SAVED = 3.0  # deviance that a line saves for each of the two numbers it takes, and for the choice of its predictor
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
    names, place = np.unique(leaves, return_inverse=True)
    count = len(names)
    new_place = np.searchsorted(names, new_leaves)
    numbers = [one for one in predictors.columns if one.choices == 0]
    sizes = np.bincount(place, minlength=count).astype(np.float64)
    fits = Fits(_means(place, ranks, sizes)[place], _means(place, ranks, sizes)[new_place])
    for _ in range(_ROUNDS if numbers else 0):
        rest = ranks - fits.people
        spread = np.bincount(place, rest**2, count) / sizes + noise**2
        best: Floats = np.full(count, 2 * _SAVED + 2 * np.log(max(len(numbers), 1)))
        gains = Fits(np.zeros(len(rest)), np.zeros(len(new)))
        for one in numbers:
            progress.check()
            line = _line(one.original[rows], place, rest, sizes)
            saved = sizes * np.log(spread / np.maximum(spread - line.explained, noise**2))
            is_better = line.is_known & (saved > best)
            best = np.where(is_better, saved, best)
            for own, values, found in (
                (place, one.original[rows], gains.people),
                (new_place, one.new[new], gains.new),
            ):
                here = is_better[own]
                found[here] = line.at(values[here], own[here])
        fits = Fits(fits.people + gains.people, fits.new + gains.new)
    return fits


class _Line(NamedTuple):
    """The line of each leaf: its slope, the mean and deviation of the predictor, and the variance it explains."""

    slope: Floats
    mean: Floats
    deviation: Floats
    explained: Floats
    is_known: Bools

    def at(self, values: Reals, leaves: Ints) -> Floats:
        """Return what lines say at values, which count as the outermost usual ones where they lie beyond."""
        widest = _NARROW * self.deviation[leaves]
        apart = np.clip(values - self.mean[leaves], -widest, widest)
        return np.where(values == NO_NUMBER, 0.0, self.slope[leaves] * apart)


def _line(values: Reals, place: Ints, rest: Floats, sizes: Floats) -> _Line:
    """Fit what is left in each leaf, where all its people have a number."""
    count = len(sizes)
    is_known = np.bincount(place[values == NO_NUMBER], minlength=count) == 0
    mean = _means(place, values, sizes)
    apart = values - mean[place]
    variance = np.bincount(place, apart**2, count) / sizes
    covariance = np.bincount(place, apart * rest, count) / sizes
    slope = covariance / np.maximum(variance, 1e-12)
    return _Line(slope, mean, np.sqrt(variance), slope * covariance, is_known & (variance > 1e-12))


def _means(place: Ints, values: Reals, sizes: Floats) -> Floats:
    return np.asarray(np.bincount(place, values, len(sizes)) / sizes)
