"""Clusters of similar rows of bounded size, and the swapping of components inside them.

Thesis, Chapter 5 (Figure 5-1): spectral clustering or, for any number of rows, 2-means over and over, which cuts a node
at right angles to the line between its two means. Clusters are centred, their principal or independent components
permuted, and the rows shuffled; clusters of one row, which would come out as they are, cannot arise (REFERENCES.md,
Thesis, points 1 to 5). Bisecting costs rows times log(rows / size), swapping rows times columns squared.
"""

from __future__ import annotations

import math
import os
from concurrent.futures import ThreadPoolExecutor, as_completed
from itertools import pairwise, repeat
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from duckanon._core.common import progress
from duckanon._core.common.arrays import Bools, Floats, Ints, Ints32, Reals
from duckanon._core.common.imports import import_function
from duckanon._core.common.resources import use_one_thread

Node: TypeAlias = tuple[Ints, npt.NDArray[np.float32]]

SPECTRAL_ROWS = 6_000  # an affinity matrix of this many rows takes 288 MB
_AUTO_ROWS = 3_000  # below, spectral clustering is a matter of a few seconds
_SAMPLE = 1_024  # rows that the direction of a cut is learnt from
_ROUNDS = 12  # of 2-means on the sample; the cut hardly moves after the first few
_LEAST_SHARE = 0.1  # no cut takes less than this of a node, so that the tree stays shallow


def size_bounds(size: float, rows: int) -> tuple[int, int]:
    """Return the fewest and the most rows of a cluster: half of ``size``, at least 2, and 1.5 times it, or all rows."""
    if rows <= 1.5 * size:
        return rows, rows
    least = max(2, math.ceil(size / 2))
    # Whatever is larger than the most must divide into two parts of at least the least.
    return least, max(math.floor(1.5 * size), 2 * least - 1)


def find_clusters(matrix: Reals, size: float, method: str, random: np.random.Generator) -> Ints32:
    """Put similar rows into clusters of about the same number of rows, numbered from 0.

    Spectral clustering is that of Thesis, Section 5.1, Equations 5.1 to 5.4, with the median distance as the scale. The
    number of clusters is only a target there, and k-means then leaves clusters of a single row, which swapping would
    release verbatim: small clusters are merged with the nearest one, large clusters are split by 2-means
    (REFERENCES.md, Thesis, point 5).

    Args:
        size: The rows that a cluster should have, at least 2. Every cluster has between half and one and a half times
            as many; a table of at most ``1.5 * size`` rows is one cluster.
        method: ``'spectral'``: Laplacian eigenvectors and k-means, at a cost of rows squared and more, for at most
            6,000 rows; ``'bisect'``: 2-means over and over, at a cost of ``rows * log(rows / size)``; ``'auto'``:
            spectral for up to 3,000 rows, bisect above.
    """
    rows = len(matrix)
    if rows == 0:
        raise ValueError("clusters need at least one row; got an empty table.")
    if method == "spectral" and rows > SPECTRAL_ROWS:
        raise ValueError(
            f"clustering := 'spectral' takes at most {SPECTRAL_ROWS} rows; got {rows}, use clustering := 'bisect'."
        )
    least, most = size_bounds(size, rows)
    if rows <= most:
        return np.zeros(rows, dtype=np.int32)
    # One thread each: the order in which threads add up would decide near ties, and the same seed must give the same.
    with use_one_thread():
        if method == "spectral" or (method == "auto" and rows <= _AUTO_ROWS):
            return _cluster_spectrally(matrix, size, least, most, random)
        return _number_parts(_bisect(matrix, least, most, random), rows)


def _number_parts(parts: list[Ints], rows: int) -> Ints32:
    labels = np.empty(rows, dtype=np.int32)
    for number, part in enumerate(parts):
        labels[part] = number
    return labels


def _cluster_spectrally(matrix: Reals, size: float, least: int, most: int, random: np.random.Generator) -> Ints32:
    count = max(2, round(len(matrix) / size))
    coordinates, labels = import_function("duckanon._methods.swap.spectral_clusters:spectral_clusters")(
        matrix, count, random
    )
    parts: list[Ints] = []
    for part in _merge_small(coordinates, labels, least):
        if len(part) > most:
            parts += [part[inner] for inner in _bisect(coordinates[part], least, most, random)]
        else:
            parts.append(part)
    return _number_parts(parts, len(matrix))


def _merge_small(coordinates: Floats, labels: npt.NDArray[Any], least: int) -> list[Ints]:
    """Join the smallest cluster to the one with the nearest mean until none is too small."""
    counts = np.bincount(labels).astype(np.float64)
    sums = np.zeros((len(counts), coordinates.shape[1]))
    np.add.at(sums, labels, coordinates)
    member = np.arange(len(counts))
    alive = counts > 0
    while alive.sum() > 1:
        smallest = int(np.argmin(np.where(alive, counts, np.inf)))
        if counts[smallest] >= least:
            break
        alive[smallest] = False
        rest = np.flatnonzero(alive)
        away = sums[rest] / counts[rest, None] - sums[smallest] / counts[smallest]
        nearest = int(rest[np.argmin((away**2).sum(axis=1))])
        counts[nearest] += counts[smallest]
        sums[nearest] += sums[smallest]
        member[member == smallest] = nearest
    joined = member[labels]
    return [np.flatnonzero(joined == number) for number in np.flatnonzero(alive)]


def _bisect(matrix: Reals, least: int, most: int, random: np.random.Generator) -> list[Ints]:
    """Cut rows in two over and over, until every part has at most ``most`` rows; none has fewer than ``least``.

    Rows are shuffled once and every cut keeps their order, so that the first rows of a node are a random sample of it.
    """
    index = random.permutation(len(matrix))
    block = matrix.take(index, axis=0)
    block -= block.mean(axis=0, dtype=np.float64).astype(block.dtype)
    block /= max(block.max(), -block.min()) or 1  # squares of anything larger might not fit 32 bits
    block = block.astype(np.float32, copy=False)
    # The first cuts are made one after the other, the trees below them side by side.
    nodes: list[Node] = [(index, block)]
    ready: list[Node] = []
    del index, block
    large = max(len(matrix) // 8, 50_000)
    while nodes:
        progress.check()
        index, block = nodes.pop()
        if len(index) <= large:
            ready.append((index, block))
        else:
            nodes += _halve(index, block, least)
        del index, block
    if len(ready) == 1:
        return _cut_to_leaves(ready[0], least, most)
    with ThreadPoolExecutor() as pool:
        leaves = pool.map(progress.share_watch(_cut_to_leaves), ready, repeat(least), repeat(most))
        return [part for parts in leaves for part in parts]


def _cut_to_leaves(node: Node, least: int, most: int) -> list[Ints]:
    nodes, parts = [node], []
    while nodes:
        progress.check()
        index, block = nodes.pop()
        if len(index) <= most:
            parts.append(index)
        else:
            nodes += _halve(index, block, least)
    return parts


def _halve(index: Ints, block: npt.NDArray[np.float32], least: int) -> list[Node]:
    above = _cut_node(block, max(least, int(len(block) * _LEAST_SHARE)))
    return [(index.take(side), block.take(side, axis=0)) for side in (np.flatnonzero(above), np.flatnonzero(~above))]


def _cut_node(block: npt.NDArray[np.float32], least: int) -> Bools:
    """Cut a node at right angles to the line between the two means, with at least ``least`` rows on each side."""
    rows = len(block)
    direction, threshold = _find_two_means(block[:_SAMPLE])
    along = block @ direction
    above: Bools = along > threshold
    count = int(np.count_nonzero(above))
    if least <= count <= rows - least:
        return above
    alike = along.min() == along.max()  # nothing to tell the rows apart by
    wanted = rows // 2 if alike else min(max(count, least), rows - least)
    above = np.zeros(rows, dtype=bool)
    above[np.argpartition(along, rows - wanted)[rows - wanted :]] = True
    return above


def _find_two_means(sample: npt.NDArray[np.float32]) -> tuple[npt.NDArray[np.float32], float]:
    """Find two means, starting from a cut across the principal direction; return their difference and the midpoint."""
    rows = np.float32(len(sample))
    centre = sample.mean(axis=0)
    centred = sample - centre
    direction = np.zeros_like(centre)
    direction[np.argmax(np.einsum("ij,ij->j", centred, centred))] = 1
    for _ in range(4):  # of the power method: a rough direction to start from will do
        direction = (centred @ direction) @ centred
        norm = np.sqrt(direction @ direction)
        if not 0 < norm < np.inf:
            return np.zeros_like(centre), 0.0
        direction /= norm
    threshold, before = np.float32(0), None
    for _ in range(_ROUNDS):
        above = centred @ direction > threshold
        count = np.float32(np.count_nonzero(above))
        if not 0 < count < rows or (before is not None and np.array_equal(above, before)):
            break
        before = above
        total = above.astype(np.float32) @ centred
        upper, lower = total / count, total / (count - rows)
        direction = upper - lower
        threshold = (upper @ upper - lower @ lower) / 2
    return direction, float(threshold + centre @ direction)


_SWAP_ROUNDS = 40  # the rotation stays orthogonal all the way, so that stopping early costs some fidelity at most
_CONVERGED = 1e-4  # 1 - cos of the angle that a component turned by in the last round
_PARCEL_ROWS = 16_384  # clusters handed to a thread at a time


def swap_in_clusters(
    matrix: Reals,
    labels: npt.NDArray[np.integer[Any]],
    basis: str,
    random: np.random.Generator,
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
        swapped = _swap_parts(parts, basis, generators[first:last])
        released[positions[start:stop]] = np.concatenate(swapped)
        return stop - start

    # A parcel is as many whole clusters as fit, at least one.
    parcels = np.unique(np.append(np.flatnonzero(np.diff(ends // _PARCEL_ROWS, prepend=-1)), len(ends)))
    done = 0
    # Matrices this small gain nothing from threads inside of the linear algebra, which would get into each other's way.
    watched = progress.share_watch(work)
    with use_one_thread(), ThreadPoolExecutor(threads or os.cpu_count()) as pool:
        jobs = [pool.submit(watched, int(a), int(b)) for a, b in pairwise(parcels)]
        for job in as_completed(jobs):
            done += job.result()
            progress.advance(done / len(matrix))
    return released


def _swap_parts(parts: list[Reals], basis: str, generators: list[np.random.Generator]) -> list[Floats]:
    means = [part.mean(axis=0, dtype=np.float64) for part in parts]
    centred = [part - mean for part, mean in zip(parts, means, strict=True)]
    bases = _find_components(centred, float(np.finfo(parts[0].dtype).eps))
    swapped = []
    for rows, mean, (directions, spread), random in zip(centred, means, bases, generators, strict=True):
        back = directions
        scores = rows @ directions.T
        if basis == "ica" and len(spread) > 1:
            scale = spread / np.sqrt(len(rows))
            scores /= scale
            rotation = find_independent_rotation(scores, random)
            scores = scores @ rotation.T
            back = (rotation * scale) @ directions
        random.permuted(scores, axis=0, out=scores)
        swapped.append(scores @ back + mean)
    return swapped


def _find_components(centred: list[Floats], eps: float) -> list[tuple[Floats, Floats]]:
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


def find_independent_rotation(white: Floats, random: np.random.Generator) -> Floats:
    """Return the orthogonal matrix with which ``white @ rotation.T`` has components as independent as they get.

    Symmetric FastICA with the log cosh contrast (Thesis, Section 5.2.1), for at most 40 rounds. It is done in 32 bits,
    and only the result is made orthogonal to the last digit. Whitened rows have uncorrelated columns of mean 0 and
    variance 1.
    """
    width = white.shape[1]
    rows = white.astype(np.float32)
    share = np.float32(1 / len(rows))
    rotation = _orthogonalize(random.standard_normal((width, width), dtype=np.float32))
    for _ in range(_SWAP_ROUNDS):
        bent = rows @ rotation.T
        np.tanh(bent, out=bent)
        slope = 1 - np.einsum("ij,ij->j", bent, bent) * share
        turned = _orthogonalize(bent.T @ rows * share - slope[:, None] * rotation)
        moved = np.abs(1 - np.abs(np.einsum("ij,ij->i", turned, rotation))).max()
        rotation = turned
        if moved < _CONVERGED:
            break
    left, _, right = np.linalg.svd(rotation.astype(np.float64))
    return np.asarray(left @ right)


def _orthogonalize(square: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Find the orthogonal matrix nearest to ``square``, up to rounding that the next rounds undo."""
    values, vectors = np.linalg.eigh(square @ square.T)
    floor = values[-1] * np.float32(1e-10) + np.finfo(np.float32).tiny
    return np.asarray((vectors / np.sqrt(np.maximum(values, floor))) @ vectors.T @ square)
