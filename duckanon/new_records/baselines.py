"""The baselines that other releases are compared with: independent columns, and noise on every row."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa

from duckanon.common.arguments import Flag, Number, checked, generator
from duckanon.common.arrays import Matrix
from duckanon.new_records.components import spectrum


def swap(table: pa.Table, seed: int | None) -> pa.Table:
    """Permute each column independently and uniformly.

    Parameters
    ----------
    table
        The rows to release.
    seed
        Makes the release repeatable; None draws from the operating system's entropy.

    Returns
    -------
    pyarrow.Table
        As many rows, the same columns: each holds exactly the values that it held, in an order of its own.

    Notes
    -----
    Every column is permuted, the first one too, so that the order of the rows links nothing.
    """
    random = generator(seed)
    return pa.table(
        [column.combine_chunks().take(pa.array(random.permutation(table.num_rows))) for column in table.columns],
        schema=table.schema,
    )


@checked(noise_fraction=Number(above=0), correlated=Flag())
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
        Whether the noise has the covariance of the data times b (Equation 2.4), or its variances only (2.3).

    Returns
    -------
    numpy.ndarray
        The rows in the same order, each beside its original: the caller shuffles them before they are released.

    Raises
    ------
    ValueError
        For a noise fraction that is not a finite number above 0.

    Notes
    -----
    Thesis, Section 2.3.1: (A + R + d2 mean) / d1 with d1 = sqrt(1 + b) and d2 = d1 - 1. Noise drawn from N(0, b S)
    brings the covariance to (1 + b) S, and the division back to S; the means follow from (1 + d2) / d1 = 1. Both hold
    in expectation over the noise, not for each draw: forcing a draw's own moments to be exact would make the noise
    depend on the data. Uncorrelated noise leaves covariances as they are, so that the same division restores the
    variances but shrinks covariances by 1 + b.

    It is here for comparison: the released row that is nearest to a record is nearly always its own.
    """
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
