"""The principal components of a matrix, and their independent permutation.

Components come from the covariance, summed in blocks of rows, so that no copy of the matrix is held. Permuted at random
they correlate by chance, about 3.1 / sqrt(rows) at most; below 100,000 rows each permutation is drawn again, and mended
by the residuals of a regression, until its correlations are within a tolerance (Thesis, Figure 4-1, corrected in
REFERENCES.md, Thesis, point 2). Drawing all components anew at once, as the figure has it, never ends.
"""

from __future__ import annotations

import math
import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from duckanon._core.common import progress
from duckanon._core.common.arrays import Array, Floats, Matrix, Reals

_UNCHECKED_ROWS = 100_000  # from here on chance correlations, 3.1 / sqrt(rows), are too small to matter
_MOST_DRAWS = 50  # of one component's permutation; most are accepted after a few, once they are mended
_MOST_VALUES_DRAWN = 400_000  # in all draws of one component: bounds the time that it takes
_MOST_THREADS = 4  # shuffling waits for memory, not for processors
_BLOCK_ROWS = 65_536  # in which second moments are summed: bounds the copy that centring makes


def principal_components(covariance: Floats) -> tuple[Floats, Floats]:
    """Return the standard deviations and directions (columns) of the components that are not null, the largest first.

    The rule of Thesis, Section 4.1, for singular values, d > d0 max(rows, columns) eps, cannot be used on the
    eigenvalues of a Gram matrix: they are squares, and what rounding leaves of a null one is about eps times the
    largest, whatever the number of rows. The cut here is 4 eps max(columns, 16) of the largest eigenvalue: +-1 groups,
    which always sum to 2 - q, are found to be short of one dimension, and a component of a millionth of the largest
    deviation is kept.
    """
    values, vectors = np.linalg.eigh(covariance)
    values, vectors = values[::-1], vectors[:, ::-1]
    cut = 4 * np.finfo(np.float64).eps * max(len(values), 16) * values[0]
    rank = int(np.count_nonzero(values > cut))
    return np.sqrt(values[:rank]), np.ascontiguousarray(vectors[:, :rank])


def spectrum(matrix: Matrix) -> tuple[Matrix, Matrix, Matrix]:
    """Return the column means, and the eigenvalues (largest first) and eigenvectors of the sample covariance.

    Through the Gram matrix of the centred rows, summed block by block. Eigenvalues below zero are rounding errors and
    become 0. The sign of an eigenvector is arbitrary: its largest entry is made positive, so that the same rows give
    the same axes with every linear algebra library.
    """
    rows, width = matrix.shape
    mean = matrix.mean(axis=0)
    gram = np.zeros((width, width))
    for start in range(0, rows, _BLOCK_ROWS):
        block = matrix[start : start + _BLOCK_ROWS] - mean
        gram += block.T @ block
    values, vectors = np.linalg.eigh(gram / max(1, rows - 1))
    values, vectors = np.maximum(values[::-1], 0.0), vectors[:, ::-1]
    largest = np.abs(vectors).argmax(axis=0)
    return mean, values, vectors * np.sign(vectors[largest, np.arange(width)])


def principal_coordinates(matrix: Matrix) -> Matrix:
    """Project the centred rows on the eigenvectors of their covariance: U D, widest first, without null components."""
    mean, values, vectors = spectrum(matrix)
    kept = values > values[0] * max(matrix.shape) * np.finfo(np.float64).eps
    kept[0] = True  # rows that are all equal still need one column
    return np.asarray((matrix - mean) @ vectors[:, kept])


def permute_components(scores: Reals, tolerance: float, random: np.random.Generator) -> None:
    """Permute every row of a centred matrix, components x records, in place and independently.

    Thesis, Figure 4-1, whose `max(cov[U]) <= tol` is read as the largest correlation off the diagonal (REFERENCES.md,
    Thesis, point 2): below 100,000 records a permutation is drawn again until no correlation with the components
    permuted before it exceeds ``tolerance / sqrt(records - 1)``. Corrected: whole draws are hopeless (about 3.1 /
    sqrt(records) is what one gives, 2 the best of thousands), so that each component is drawn on its own. A draw that
    is rejected is mended first: its values are put in the order of the residuals of its regression on the components
    before it, which moves each value little, and the correlations nearly to 0. After 50 draws (400,000 / records, if
    that is less, but 2) the best one stays: components with few different values cannot be mended. All components are
    permuted, the first one too: row order would link records otherwise.
    """
    generators = random.spawn(len(scores))
    if scores.shape[1] < _UNCHECKED_ROWS:
        _permute_without_correlation(scores, tolerance / math.sqrt(max(scores.shape[1] - 1, 1)), generators)
        return
    threads = min(_MOST_THREADS, os.cpu_count() or 1)
    shuffle = progress.share_watch(lambda generator, row: generator.shuffle(row))
    with ThreadPoolExecutor(threads) as pool:  # shuffling a contiguous row lets other threads run
        for done, _ in enumerate(pool.map(shuffle, generators, scores), 1):
            progress.advance(done / len(scores))


def _permute_without_correlation(scores: Reals, limit: float, generators: list[np.random.Generator]) -> None:
    draws = max(2, min(_MOST_DRAWS, _MOST_VALUES_DRAWN // scores.shape[1]))
    accepted = np.empty_like(scores)  # of mean 0 and length 1
    for index, (row, random) in enumerate(zip(scores, generators, strict=True)):
        centred = row - row.mean(dtype=np.float64).astype(row.dtype)
        centred /= np.linalg.norm(centred)
        ascending = np.argsort(centred)
        before = accepted[:index]
        best, order = np.inf, np.arange(len(row))
        for _ in range(draws):
            progress.check()
            drawn = random.permutation(len(row))
            worst, correlations = _find_worst(before, centred[drawn])
            if worst > limit:
                residuals = centred[drawn] - correlations @ before
                drawn[np.argsort(residuals)] = ascending  # the values in the order of the residuals
                worst, _ = _find_worst(before, centred[drawn])
            if worst < best:
                best, order = worst, drawn
            if worst <= limit:
                break
        accepted[index] = centred[order]
        row[:] = row[order]
        progress.advance((index + 1) / len(scores))


def _find_worst(before: Array, row: Array) -> tuple[float, Array]:
    correlations = before @ row
    return float(np.abs(correlations).max(initial=0.0)), correlations
