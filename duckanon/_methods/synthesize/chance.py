"""Relations between columns beyond chance: the rest says more about the people than about the columns."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from duckanon._core.common import progress
from duckanon._core.common.arrays import Floats, Ints32, Reals

_MARGIN = 2.326  # standard deviations above what is expected by chance: about 1 % of unrelated columns are beyond
_NULL = 1e-6  # of the largest variance of a column's features: a component that is none
_BLOCK = 16_384  # rows at a time


def covariance_within(matrix: Reals, labels: Ints32) -> Floats:
    """Return the covariance of rows less the means of their clusters.

    Examples:
        >>> covariance_within(np.array([[0.0, 1], [2, 3], [7, 9], [5, 5]]), np.array([0, 0, 1, 1], np.int32)).tolist()
        [[1.0, 1.5], [1.5, 2.5]]
    """
    counts = np.bincount(labels)
    sums = np.zeros((len(counts), matrix.shape[1]))
    products = np.zeros((matrix.shape[1], matrix.shape[1]))
    for start in range(0, len(matrix), _BLOCK):
        progress.check()
        block = matrix[start : start + _BLOCK]
        products += block.T @ block
        here = labels[start : start + _BLOCK]
        sums += np.stack([np.bincount(here, feature, len(counts)) for feature in block.T], axis=1)
    return np.asarray((products - (sums / counts[:, None]).T @ sums) / len(matrix))


def beyond_chance(covariance: Floats, widths: Sequence[int], people: int) -> Floats:
    """Shrink the covariances between columns, each of so many features, by what chance explains of them.

    The squared canonical correlations of two columns that have nothing to do with each other, times the people, add up
    to a chi-squared variable, with as many degrees of freedom as pairs of components. Shrinking by one minus what
    chance gives over what there is, is what James and Stein do. Between two columns nothing is left if there is no more
    than chance gives. What is shrunk may be no covariance any more: its negative components are left out.
    """
    starts = np.cumsum([0, *widths])
    scales, ranks = np.zeros_like(covariance), []
    for start, end in pairwise(starts.tolist()):
        values, vectors = np.linalg.eigh(covariance[start:end, start:end])
        is_kept = values > max(_NULL * float(values[-1]), 1e-12)
        scales[start:end, start:end] = np.where(is_kept, vectors / np.sqrt(np.where(is_kept, values, 1.0)), 0.0)
        ranks.append(np.count_nonzero(is_kept))
    squares = (scales.T @ covariance @ scales) ** 2
    found = people * np.add.reduceat(np.add.reduceat(squares, starts[:-1], axis=0), starts[:-1], axis=1)
    degrees = np.outer(ranks, ranks)
    chance = degrees + _MARGIN * np.sqrt(2 * degrees)
    shares = np.where(found > chance, 1 - chance / np.maximum(found, 1e-300), 0.0)
    np.fill_diagonal(shares, 1.0)
    values, vectors = np.linalg.eigh(covariance * np.repeat(np.repeat(shares, widths, axis=0), widths, axis=1))
    return np.asarray((vectors * np.maximum(values, 0.0)) @ vectors.T)
