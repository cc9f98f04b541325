"""Noise on every record, with the mean and the covariance corrected for it."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from duckanon._core.common.arguments import checked, generator
from duckanon._core.common.arrays import Matrix
from duckanon._core.common.rules import Flag, Number
from duckanon._core.encoding.whole_sources import read_whole, reader_of, refuse_identifiers, shuffled
from duckanon._methods.swap.components import spectrum


def additive_noise(
    source: object,
    cols: Sequence[str] | None = None,
    *,
    noise_fraction: float = 0.1,
    correlated: bool = True,
    key: str | None = None,
    log: Sequence[str] | None = None,
    nulls: str = "error",
    seed: int | None = None,
) -> pa.RecordBatchReader:
    """Add noise to every record and correct mean and covariance for it: for comparison only.

    Parameters
    ----------
    source, cols, key, log, nulls, seed
        As for `spectral_rhs`.
    noise_fraction
        The variance of the noise as a fraction of the data's.
    correlated
        Whether the noise has the correlations of the data.

    Returns
    -------
    pyarrow.RecordBatchReader
        As many rows, of the same columns and types.

    Raises
    ------
    ValueError
        For a fraction that is not above 0, and for what cannot be encoded: see `fit.fit`.

    Notes
    -----
    See `additive_noise.additive_noise`: the released row that is nearest to a record is nearly always its own.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from duckanon import spectral
    >>> people = pa.table({"height": [150 + i % 50 for i in range(400)], "weight": [50 + i % 41 for i in range(400)]})
    >>> released = spectral.additive_noise(people, noise_fraction=0.2, seed=1).read_all()
    >>> released.num_rows, released.column_names
    (400, ['height', 'weight'])
    """
    random = generator(seed)
    table, encoding, keys, _ = read_whole(source, cols, key, log, nulls)
    refuse_identifiers(table)
    noisy = with_noise(encoding.matrix(table), random, noise_fraction, correlated)
    return reader_of(shuffled(encoding.table(noisy), keys, random))


@checked(noise_fraction=Number(above=0), correlated=Flag())
def with_noise(
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
