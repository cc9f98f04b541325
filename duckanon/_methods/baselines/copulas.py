"""Normal copulas: releases that keep each column's distribution and the rank correlations, and nothing else."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import ndtr, ndtri

from duckanon._core.common.arrays import Floats, Ints, Matrix

_TERMS = 60
"""Terms of the series in `latent_correlation`. Of two halved columns, the worst case, it misses the rank correlation by
.0004 at a latent correlation of .95 and by .011 at .99; of continuous columns by 1e-5 everywhere."""
_STEPS = 400  # steps that a column's distribution is reduced to there; they are where that 1e-5 comes from
_BISECTIONS = 40  # halvings of an interval of length 2, of which they leave 2e-12


def data_shuffle(codes: Sequence[Floats], random: np.random.Generator) -> list[Ints]:
    """Rearrange each column by the ranks of normal data with the same rank correlations.

    Data shuffling (Muralidhar and Sarathy 2006; Thesis, Section 2.3.3) without variables that stay as they are. Each
    column keeps exactly the values that it has; rank correlations are kept asymptotically. Released rows are in the
    order of independent draws, which links nothing to the original rows.

    A column has one code per row, equal for equal values and in their order, which values without one get from
    `category_codes`; NaN is one more value, above all others. Return for each column the original row whose value each
    released row gets.
    """
    rows = _rows(codes)
    orders = [np.argsort(column, kind="stable") for column in codes]
    latent = _normal(latent_correlation(codes, orders), rows, random)
    sources = []
    for column, order in zip(latent.T, orders, strict=True):
        source = np.empty(rows, dtype=np.int64)
        source[np.argsort(column)] = order
        sources.append(source)
    return sources


def copula_levels(codes: Sequence[Floats], rows: int, random: np.random.Generator) -> list[Floats]:
    """Draw new rows from the normal copula with the data's rank correlations, as levels from 0 to 1 of each column.

    Thesis, Equations 2.14 to 2.17. The last one is corrected: going back takes the inverse of the distribution
    function, a = P^-1(Phi(b)), which `marginals` does. Normal scores (2.14) have mean 0 by construction, and ranks are
    all that is used of them.
    """
    _rows(codes)
    return [ndtr(scores) for scores in _normal(latent_correlation(codes), rows, random).T]


def latent_correlation(codes: Sequence[Floats], orders: Sequence[Ints] | None = None) -> Matrix:
    """Find the correlations of normal data that have the columns' rank correlations once they are cut into values.

    Thesis, Equation 2.15, 2 sin(pi R / 6), holds for continuous columns only. Cutting normal data into few values
    weakens its rank correlations, so that a table with two-valued columns would come back with correlations that are
    too small. Here the rank g(z) that the normal score z ends with is expanded in Hermite polynomials: with normalized
    coefficients c, scores of correlation q have ranks of covariance sum_m c_im c_jm q^m, which is solved for q. Without
    ties it is equation 2.15 again.

    Solving pair by pair need not give a possible correlation matrix: eigenvalues below 0 are raised to 0, and the
    diagonal rescaled to 1. `orders` has the rows of each column in ascending order, where the caller has them.
    """
    if orders is None:
        orders = [np.argsort(column, kind="stable") for column in codes]
    rows = len(codes[0])
    ranks = np.empty((rows, len(codes)))
    series = np.zeros((len(codes), _TERMS))
    deviation = np.zeros(len(codes))
    for j, (column, order) in enumerate(zip(codes, orders, strict=True)):
        ordered = column[order]
        # NaN differs from itself, and is one value here.
        change = (ordered[1:] != ordered[:-1]) & ~np.isnan(ordered[:-1])
        ends = np.append(np.flatnonzero(change) + 1, rows)
        counts = np.diff(ends, prepend=0)
        ranks[order, j] = np.repeat((ends - counts / 2) / rows - 0.5, counts)
        series[j], deviation[j] = _hermite(ends / rows)
    covariance = ranks.T @ ranks / rows
    # A column of one value has no rank correlation, and its series is 0 already: independent of all others.
    scale = np.where(deviation > 0, deviation, 1.0)
    series /= scale[:, np.newaxis]
    return _repaired(_solved(series, covariance / np.outer(scale, scale)))


def _hermite(levels: Floats) -> tuple[Floats, float]:
    """Expand the ranks of a column whose values end at these levels; and give the ranks' standard deviation."""
    steps = np.diff(levels, prepend=0.0)
    deviation = np.sqrt(max(0.0, 1.0 - np.sum(steps**3)) / 12)
    coefficients = np.zeros(_TERMS)
    inner = levels[:-1]
    if len(inner) > _STEPS:
        # Steps next to each other are joined; a value that many rows share keeps both its ends.
        grid = np.arange(1, _STEPS) / _STEPS
        after = np.searchsorted(inner, grid)
        inner = inner[np.unique(np.clip(np.concatenate((after - 1, after)), 0, len(inner) - 1))]
    if not inner.size:
        return coefficients, 0.0
    ends = np.concatenate(([0.0], inner, [1.0]))
    jumps = (ends[2:] - ends[:-2]) / 2
    cut = ndtri(inner)
    weight = jumps * np.exp(-(cut**2) / 2) / np.sqrt(2 * np.pi)
    before, current = np.zeros_like(cut), np.ones_like(cut)
    for m in range(_TERMS):
        coefficients[m] = np.sum(weight * current) / np.sqrt(m + 1)
        before, current = current, (cut * current - np.sqrt(m) * before) / np.sqrt(m + 1)
    return coefficients, float(deviation)


def _solved(series: Matrix, target: Matrix) -> Matrix:
    """Solve sum_m c_im c_jm q^m = target for q in [-1, 1] by bisection: the sum grows with q."""
    low, high = np.full(target.shape, -1.0), np.ones(target.shape)
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        value = np.zeros(target.shape)
        for coefficients in series.T[::-1]:
            value = (value + np.outer(coefficients, coefficients)) * middle
        above = value > target
        low, high = np.where(above, low, middle), np.where(above, middle, high)
    varied = np.abs(series).sum(axis=1) > 0
    solved: Matrix = np.where(np.outer(varied, varied), (low + high) / 2, 0.0)
    np.fill_diagonal(solved, 1.0)
    return solved


def _repaired(correlation: Matrix) -> Matrix:
    root = _root((correlation + correlation.T) / 2)
    root /= np.sqrt((root**2).sum(axis=1, keepdims=True))
    return np.asarray(root @ root.T)


def _normal(correlation: Matrix, rows: int, random: np.random.Generator) -> Matrix:
    """Draw normal rows of mean 0; the correlation may be singular."""
    return np.asarray(random.standard_normal((rows, len(correlation))) @ _root(correlation).T)


def _root(symmetric: Matrix) -> Matrix:
    """Return a matrix whose product with its transpose is the given one, eigenvalues below 0 taken for 0."""
    values, vectors = np.linalg.eigh(symmetric)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))


def category_codes(categories: Ints, others: Matrix) -> Floats:
    """Put values without an order into the order in which they differ most in the other columns; return ranks by row.

    A rank correlation needs an order, and most of what a category has to do with the other columns is lost if the order
    is arbitrary. The means of the other columns in each category, weighted by how many rows it has, are projected on
    their first principal axis: one order can carry no more than one such axis. Without other columns, categories are
    ordered by frequency.
    """
    counts = np.bincount(categories)
    present = np.maximum(counts, 1)
    if others.shape[1]:
        means = np.stack([np.bincount(categories, column) / present for column in others.T], axis=1)
        means = means - others.mean(axis=0)
        means[counts == 0] = 0.0
        _, _, axes = np.linalg.svd(means * np.sqrt(counts)[:, np.newaxis], full_matrices=False)
        scores = means @ (axes[0] * np.sign(axes[0][np.abs(axes[0]).argmax()]))
    else:
        scores = counts.astype(np.float64)
    rank = np.empty(len(counts))
    rank[np.argsort(scores, kind="stable")] = np.arange(len(counts))
    return np.asarray(rank[categories])


def _rows(codes: Sequence[Floats]) -> int:
    lengths = {len(column) for column in codes}
    if len(lengths) != 1 or 0 in lengths:
        raise ValueError(f"columns must have one code for each of at least 1 row; got lengths {sorted(lengths)}.")
    return lengths.pop()
