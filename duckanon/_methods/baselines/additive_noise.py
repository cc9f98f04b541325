"""Two baselines: noise on every record, corrected for mean and covariance, and independently permuted columns."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from duckanon._core.common.arguments import make_generator
from duckanon._core.common.arrays import Matrix
from duckanon._core.encoding.whole_sources import make_reader, read_whole, refuse_identifiers, shuffle_rows
from duckanon._methods.swap.components import spectrum


def additive_noise(
    source: object,
    *,
    noise_fraction: float,
    correlated: bool,
    key: str | None,
    log: Sequence[str] | None,
    nulls: str,
    seed: int | None,
) -> pa.RecordBatchReader:
    """Add noise to every record and correct mean and covariance for it: see `add_noise`."""
    random = make_generator(seed)
    table, encoding, keys, _, types = read_whole(source, key, log, nulls)
    refuse_identifiers(table)
    noisy = add_noise(encoding.matrix(table), random, noise_fraction, correlated)
    return make_reader(types.write(shuffle_rows(encoding.table(noisy), keys, random)))


def add_noise(
    matrix: Matrix, random: np.random.Generator, noise_fraction: float = 0.1, correlated: bool = True
) -> Matrix:
    """Add normal noise to every row, and correct the mean and the covariance for it.

    Thesis, Section 2.3.1: (A + R + d2 mean) / d1 with d1 = sqrt(1 + b) and d2 = d1 - 1, b being the variance of the
    noise as a fraction of the data's. Noise drawn from N(0, b S) (Equation 2.4) brings the covariance to (1 + b) S, and
    the division back to S; the means follow from (1 + d2) / d1 = 1. Both hold in expectation over the noise, not for
    each draw: forcing a draw's own moments to be exact would make the noise depend on the data. Uncorrelated noise
    (Equation 2.3) leaves covariances as they are, so that the same division restores the variances but shrinks
    covariances by 1 + b.

    It is here for comparison: the released row that is nearest to a record is nearly always its own. The caller
    shuffles the rows, each of which is beside its original.
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


def swap(table: pa.Table, seed: int | None) -> pa.Table:
    """Permute each column independently, the first one too, so that the order of the rows links nothing."""
    random = make_generator(seed)
    return pa.table(
        [column.combine_chunks().take(pa.array(random.permutation(table.num_rows))) for column in table.columns],
        schema=table.schema,
    )
