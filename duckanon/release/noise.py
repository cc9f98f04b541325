"""Additive noise: every row moved a little, the benchmark that protects least."""

import math

import numpy as np

from duckanon.common.arrays import Matrix

# Rows per block in which second moments are summed: bounds the copy that centring makes.
BLOCK_ROWS = 65_536


def additive_noise(
    matrix: Matrix, random: np.random.Generator, noise_fraction: float = 0.1, correlated: bool = True
) -> Matrix:
    """Add normal noise to every row, and correct the mean and the covariance for it.

    Parameters
    ----------
    matrix
        One row per record, one column per encoded attribute.
    random
        Draws the noise.
    noise_fraction
        The variance of the noise as a fraction of the data's: b in the thesis.
    correlated
        Whether the noise has the covariance of the data times b (2.4), or its variances only (2.3).

    Returns
    -------
    numpy.ndarray
        The rows in the same order, each beside its original: the caller shuffles them before they are released.

    Raises
    ------
    ValueError
        When the noise fraction is not a finite number above 0.

    Notes
    -----
    Thesis, section 2.3.1: (A + R + d2 mean) / d1 with d1 = sqrt(1 + b) and d2 = d1 - 1. Noise drawn from N(0, b S)
    brings the covariance to (1 + b) S, and the division back to S; the means follow from (1 + d2) / d1 = 1. Both hold
    in expectation over the noise, not for each draw: forcing a draw's own moments to be exact would make the noise
    depend on the data. Uncorrelated noise leaves covariances as they are, so that the same division restores the
    variances but shrinks covariances by 1 + b.

    It is here for comparison: the nearest released row is nearly always the own one.
    """
    number = isinstance(noise_fraction, int | float) and not isinstance(noise_fraction, bool)
    if not (number and math.isfinite(noise_fraction) and noise_fraction > 0):
        raise ValueError(f"noise_fraction must be a finite number above 0; got {noise_fraction}.")
    if not isinstance(correlated, bool):
        raise ValueError(f"correlated must be true or false; got {correlated}.")
    mean, values, vectors = spectrum(matrix)
    if correlated:
        # Not a Cholesky factor: groups of indicators add up to a constant, and the covariance is singular.
        noise = random.standard_normal(matrix.shape)
        released: Matrix = noise @ (vectors * np.sqrt(noise_fraction * values)).T
    else:
        variances = (vectors**2) @ values
        released = random.standard_normal(matrix.shape) * np.sqrt(noise_fraction * variances)
    scale = math.sqrt(1 + noise_fraction)
    released += matrix
    released += (scale - 1) * mean
    released /= scale
    return released


def spectrum(matrix: Matrix) -> tuple[Matrix, Matrix, Matrix]:
    """Return the column means, and the eigenvalues (largest first) and eigenvectors of the sample covariance.

    Notes
    -----
    Through the Gram matrix of the centred rows, summed block by block. Eigenvalues below zero are rounding errors and
    become 0. The sign of an eigenvector is arbitrary: its largest entry is made positive, so that the same rows give
    the same axes with every linear algebra library.
    """
    rows, width = matrix.shape
    mean = matrix.mean(axis=0)
    gram = np.zeros((width, width))
    for start in range(0, rows, BLOCK_ROWS):
        block = matrix[start : start + BLOCK_ROWS] - mean
        gram += block.T @ block
    values, vectors = np.linalg.eigh(gram / max(1, rows - 1))
    values, vectors = np.maximum(values[::-1], 0.0), vectors[:, ::-1]
    largest = np.abs(vectors).argmax(axis=0)
    return mean, values, vectors * np.sign(vectors[largest, np.arange(width)])
