"""New scores in clusters: each cluster keeps its mean and covariance, and nothing else of its rows.

The orthogonal variant of spectral anonymization (Perkonoja and Virta 2024): the left singular vectors of a cluster are
replaced by random orthonormal ones. Permuting scores, as the thesis does, keeps the values of a small cluster's
outliers. The cost is one product of the cluster's rows and columns squared.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor, as_completed

import numpy as np

from duckanon._core.common import progress
from duckanon._core.common.arrays import Floats, Ints, Ints32, Reals
from duckanon._core.common.resources import use_one_thread

_LARGE = 65_536  # rows from which on numbers are drawn in 32 bits, whose errors average out


def apportion(counts: Ints, total: int) -> Ints:
    """Divide a total in proportion to counts, by largest remainders.

    Examples:
        >>> apportion(np.array([3, 3, 4]), 5).tolist()
        [2, 1, 2]
    """
    quotas = counts * (total / counts.sum())
    parts: Ints = np.floor(quotas).astype(np.int64)
    missing = total - int(parts.sum())
    parts[np.argsort(-(quotas - parts), kind="stable")[:missing]] += 1
    return parts


def draw_in_clusters(matrix: Reals, labels: Ints32, rows: int, random: np.random.Generator) -> Reals:
    """Draw new rows in clusters, to which each gives its share, and return them in random order.

    Perkonoja and Virta 2024: the left singular vectors of the centred cluster are replaced by random orthonormal ones,
    orthogonal to the constant. Means and covariances stay exactly, whereas a permutation of the scores of a small
    cluster keeps the values of its outliers. Random columns G become orthonormal by the Cholesky factor of G'G, so that
    all that is computed for the rows is one product. Where fewer rows are drawn than there are components, they have
    the covariance on average only. Each cluster has a random generator of its own.
    """
    counts = np.bincount(labels)
    drawn = apportion(counts, rows)
    order = np.argsort(labels, kind="stable")
    starts = np.cumsum(counts) - counts
    ends = np.cumsum(drawn)
    positions = random.permutation(rows)
    released = np.empty((rows, matrix.shape[1]), matrix.dtype)
    generators = random.spawn(len(counts))

    def work(cluster: int) -> int:
        members = matrix[order[starts[cluster] : starts[cluster] + counts[cluster]]]
        end = int(ends[cluster])
        into = positions[end - int(drawn[cluster]) : end]
        _draw_cluster(members, released, into, generators[cluster])
        return len(into)

    done = 0
    watched = progress.share_watch(work)
    with use_one_thread(), ThreadPoolExecutor(os.cpu_count()) as pool:
        for job in as_completed([pool.submit(watched, cluster) for cluster in range(len(counts))]):
            done += job.result()
            progress.advance(done / max(rows, 1))
    return released


def _draw_cluster(members: Reals, released: Reals, into: Ints, random: np.random.Generator) -> None:
    """Draw new rows of a cluster into places of the release; its members, a copy, are centred in place."""
    rows = len(into)
    mean = members.mean(axis=0, dtype=np.float64)
    members -= mean.astype(members.dtype)
    spread, directions = _find_components(members)
    rank = len(spread)
    if rank == 0 or rows == 0:
        released[into] = mean
        return
    scale = spread[:, None] * directions  # a row for each component, of the length that a deviation has
    noise = random.standard_normal((rows, rank), np.float64 if rows < _LARGE else np.float32)
    if rows > rank + 1:
        noise -= noise.mean(axis=0, dtype=np.float64).astype(noise.dtype)
        factor = np.linalg.cholesky((noise.T @ noise).astype(np.float64))
        scale = np.sqrt(rows - 1) * np.linalg.solve(factor.T, scale)
    scale, centre = scale.astype(noise.dtype), mean.astype(noise.dtype)
    for start in range(0, rows, _LARGE):  # in blocks, which bounds what is held beside the release
        released[into[start : start + _LARGE]] = noise[start : start + _LARGE] @ scale + centre


def _find_components(centred: Reals) -> tuple[Floats, Floats]:
    """Return standard deviations and directions, as rows, of the components that are not null."""
    products = (centred.T @ centred).astype(np.float64) / max(len(centred) - 1, 1)
    values, vectors = np.linalg.eigh(products)
    kept = values > max(float(values[-1]), 0.0) * 1e-7
    return np.sqrt(values[kept]), vectors[:, kept].T
