"""Swapping of components inside clusters: new rows with the means, covariances and shape of each cluster."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor, as_completed
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from duckanon._core.common import progress
from duckanon._core.common.arrays import Floats, Reals
from duckanon._core.common.progress import Tell, silent
from duckanon._core.common.threads import one_thread

_ROUNDS = 40  # the rotation stays orthogonal all the way, so that stopping early costs some fidelity at most
_CONVERGED = 1e-4  # 1 - cos of the angle that a component turned by in the last round
_PARCEL_ROWS = 16_384  # clusters handed to a thread at a time


def swap_in_clusters(
    matrix: Reals,
    labels: npt.NDArray[np.integer[Any]],
    basis: str,
    random: np.random.Generator,
    tell: Tell = silent,
    threads: int | None = None,
) -> Reals:
    """Permute the components of the rows of each cluster, and shuffle the rows that come out.

    Thesis, Figure 5-1, lines 7 to 11, corrected (REFERENCES.md, Thesis, points 1, 3 and 4): clusters are centred,
    components without variance are dropped before they are whitened (groups of categories make every table rank
    deficient, and independent components of such a table collapse), and rows are shuffled at the end, because their
    order would link them to the original. A cluster of one row, which would be released as it is, is refused.

    Each cluster has a random generator of its own, so that the result does not depend on the number of threads.

    Args:
        basis: ``'pca'``: principal components, which keep the covariances of each cluster up to chance; ``'ica'``:
            independent components, which keep more of its shape and cost some ten times as much.
    """
    counts = np.bincount(labels)
    numbers = np.flatnonzero(counts)
    if (counts[numbers] == 1).any():
        alone = int((counts == 1).sum())
        raise ValueError(f"every cluster needs at least 2 rows; got {alone} of one row, use a larger cluster_size.")
    order = np.argsort(labels, kind="stable")
    ends = np.cumsum(counts[numbers])
    positions = random.permutation(len(matrix))
    generators = random.spawn(len(numbers))
    released = np.empty_like(matrix)

    def work(first: int, last: int) -> int:
        start, stop = int(ends[first] - counts[numbers[first]]), int(ends[last - 1])
        rows = matrix.take(order[start:stop], axis=0)
        parts = np.split(rows, ends[first : last - 1] - start)
        swapped = _swapped(parts, basis, generators[first:last])
        released[positions[start:stop]] = np.concatenate(swapped)
        return stop - start

    # A parcel is as many whole clusters as fit, at least one.
    parcels = np.unique(np.append(np.flatnonzero(np.diff(ends // _PARCEL_ROWS, prepend=-1)), len(ends)))
    done = 0
    # Matrices this small gain nothing from threads inside of the linear algebra, which would get into each other's way.
    watched = progress.shared(work)
    with one_thread(), ThreadPoolExecutor(threads or os.cpu_count()) as pool:
        jobs = [pool.submit(watched, int(a), int(b)) for a, b in pairwise(parcels)]
        for job in as_completed(jobs):
            done += job.result()
            tell(done / len(matrix))
    return released


def _swapped(parts: list[Reals], basis: str, generators: list[np.random.Generator]) -> list[Floats]:
    means = [part.mean(axis=0, dtype=np.float64) for part in parts]
    centred = [part - mean for part, mean in zip(parts, means, strict=True)]
    bases = _principal(centred, float(np.finfo(parts[0].dtype).eps))
    swapped = []
    for rows, mean, (directions, spread), random in zip(centred, means, bases, generators, strict=True):
        back = directions
        scores = rows @ directions.T
        if basis == "ica" and len(spread) > 1:
            scale = spread / np.sqrt(len(rows))
            scores /= scale
            rotation = independent_rotation(scores, random)
            scores = scores @ rotation.T
            back = (rotation * scale) @ directions
        random.permuted(scores, axis=0, out=scores)
        swapped.append(scores @ back + mean)
    return swapped


def _principal(centred: list[Floats], eps: float) -> list[tuple[Floats, Floats]]:
    """Give the principal directions, as rows, and the singular values of each cluster, without the null ones.

    A singular value counts from ``largest * max(shape) * eps`` on. The eigenvalues of the products of columns, in
    64 bits, resolve that for data of 32 bits, at a quarter of the cost of a decomposition of the rows; the products of
    64-bit data lose half of the digits, so that these are decomposed as they are. So are clusters wider than long.
    """
    if eps > 1e-9 and all(len(rows) >= rows.shape[1] for rows in centred):
        values, vectors = np.linalg.eigh(np.stack([rows.T @ rows for rows in centred]))
        decomposed = [
            (np.sqrt(np.maximum(value[::-1], 0)), vector.T[::-1]) for value, vector in zip(values, vectors, strict=True)
        ]
    else:
        decomposed = [np.linalg.svd(rows, full_matrices=False)[1:] for rows in centred]
    kept = []
    for rows, (spread, directions) in zip(centred, decomposed, strict=True):
        rank = int((spread > spread.max(initial=0) * max(rows.shape) * eps).sum())
        kept.append((directions[:rank], spread[:rank]))
    return kept


def independent_rotation(white: Floats, random: np.random.Generator) -> Floats:
    """Return the orthogonal matrix with which ``white @ rotation.T`` has components as independent as they get.

    Symmetric FastICA with the log cosh contrast (Thesis, Section 5.2.1), for at most 40 rounds. It is done in 32 bits,
    and only the result is made orthogonal to the last digit. Whitened rows have uncorrelated columns of mean 0 and
    variance 1.
    """
    width = white.shape[1]
    rows = white.astype(np.float32)
    share = np.float32(1 / len(rows))
    rotation = _orthogonal(random.standard_normal((width, width), dtype=np.float32))
    for _ in range(_ROUNDS):
        bent = rows @ rotation.T
        np.tanh(bent, out=bent)
        slope = 1 - np.einsum("ij,ij->j", bent, bent) * share
        turned = _orthogonal(bent.T @ rows * share - slope[:, None] * rotation)
        moved = np.abs(1 - np.abs(np.einsum("ij,ij->i", turned, rotation))).max()
        rotation = turned
        if moved < _CONVERGED:
            break
    left, _, right = np.linalg.svd(rotation.astype(np.float64))
    return np.asarray(left @ right)


def _orthogonal(square: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Find the orthogonal matrix nearest to ``square``, up to rounding that the next rounds undo."""
    values, vectors = np.linalg.eigh(square @ square.T)
    floor = values[-1] * np.float32(1e-10) + np.finfo(np.float32).tiny
    return np.asarray((vectors / np.sqrt(np.maximum(values, floor))) @ vectors.T @ square)
