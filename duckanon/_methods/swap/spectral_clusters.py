"""Spectral clustering: Laplacian eigenvectors and k-means (Thesis, Equations 5.1 to 5.4).

It costs rows squared in memory and more in time, for at most 6,000 rows, so that its libraries are loaded only when it
is chosen.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import eigh
from scipy.sparse.linalg import ArpackError, eigsh
from scipy.spatial.distance import pdist, squareform
from sklearn.cluster import KMeans

from duckanon._core.common.arrays import Floats, Ints32, Reals


def spectral_clusters(matrix: Reals, count: int, random: np.random.Generator) -> tuple[Floats, Ints32]:
    """Return the coordinates of rows and their clusters, of any size: those of k-means among the coordinates."""
    coordinates = spectral_coordinates(matrix, count, random)
    means = KMeans(count, n_init=3, random_state=int(random.integers(2**31))).fit(coordinates)
    return coordinates, means.labels_


def spectral_coordinates(matrix: Reals, count: int, random: np.random.Generator) -> Floats:
    """Map rows to as many unit vectors as clusters are looked for, whose directions tell clusters apart.

    Thesis, Equations 5.1 to 5.4. The scale is the median distance, on which the results hardly depend. A row that is
    infinitely far from all others is zero.
    """
    rows = len(matrix)
    between = pdist(np.asarray(matrix, dtype=np.float64), "sqeuclidean")
    scale = float(np.median(between)) or float(between.max()) or 1.0  # where most rows are equal, the others decide
    between /= -2 * scale
    affinity = squareform(np.exp(between, out=between))  # with a diagonal of zeros
    del between
    degree = affinity.sum(axis=1)
    root = np.divide(1, np.sqrt(degree), out=np.zeros(rows), where=degree > 0)
    affinity *= root[:, None]
    affinity *= root
    vectors = _largest_eigenvectors(affinity, count, random)
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(np.divide(vectors, norms, out=np.zeros_like(vectors), where=norms > 0))


def _largest_eigenvectors(symmetric: Floats, count: int, random: np.random.Generator) -> Floats:
    rows = len(symmetric)
    if rows > 500 and count < rows / 10:
        # One more in the diagonal leaves the vectors as they are, and makes the tolerance absolute: smooth affinities
        # have a crowd of eigenvalues next to 0, which no relative one would ever tell apart.
        shifted = symmetric + np.eye(rows)
        try:
            start = random.normal(size=rows)
            return np.asarray(eigsh(shifted, count, which="LA", v0=start, tol=1e-6, maxiter=300)[1])
        except ArpackError:  # the direct method is slower and minds nothing
            pass
    # All of them, by divide and conquer: the method for a few fails now and then where many eigenvalues are equal.
    return np.asarray(eigh(symmetric, driver="evd")[1][:, rows - count :])
