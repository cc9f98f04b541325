"""Clusters of similar rows, of bounded size: exact spectral clustering, or bisecting 2-means for any number of rows."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from itertools import repeat
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from duckanon._core.common import progress
from duckanon._core.common.arrays import Bools, Floats, Ints, Ints32, Reals
from duckanon._core.common.imports import imported
from duckanon._core.common.threads import one_thread

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


def clusters(matrix: Reals, size: float, method: str, random: np.random.Generator) -> Ints32:
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
    with one_thread():
        if method == "spectral" or (method == "auto" and rows <= _AUTO_ROWS):
            return _spectral(matrix, size, least, most, random)
        return _numbered(_bisected(matrix, least, most, random), rows)


def _numbered(parts: list[Ints], rows: int) -> Ints32:
    labels = np.empty(rows, dtype=np.int32)
    for number, part in enumerate(parts):
        labels[part] = number
    return labels


def _spectral(matrix: Reals, size: float, least: int, most: int, random: np.random.Generator) -> Ints32:
    count = max(2, round(len(matrix) / size))
    coordinates, labels = imported("duckanon._methods.swap.spectral_clusters:spectral_clusters")(matrix, count, random)
    parts: list[Ints] = []
    for part in _merged(coordinates, labels, least):
        if len(part) > most:
            parts += [part[inner] for inner in _bisected(coordinates[part], least, most, random)]
        else:
            parts.append(part)
    return _numbered(parts, len(matrix))


def _merged(coordinates: Floats, labels: npt.NDArray[Any], least: int) -> list[Ints]:
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
        others = np.flatnonzero(alive)
        away = sums[others] / counts[others, None] - sums[smallest] / counts[smallest]
        nearest = int(others[np.argmin((away**2).sum(axis=1))])
        counts[nearest] += counts[smallest]
        sums[nearest] += sums[smallest]
        member[member == smallest] = nearest
    joined = member[labels]
    return [np.flatnonzero(joined == number) for number in np.flatnonzero(alive)]


def _bisected(matrix: Reals, least: int, most: int, random: np.random.Generator) -> list[Ints]:
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
            nodes += _halves(index, block, least)
        del index, block
    if len(ready) == 1:
        return _leaves(ready[0], least, most)
    with ThreadPoolExecutor() as pool:
        leaves = pool.map(progress.shared(_leaves), ready, repeat(least), repeat(most))
        return [part for parts in leaves for part in parts]


def _leaves(node: Node, least: int, most: int) -> list[Ints]:
    nodes, parts = [node], []
    while nodes:
        progress.check()
        index, block = nodes.pop()
        if len(index) <= most:
            parts.append(index)
        else:
            nodes += _halves(index, block, least)
    return parts


def _halves(index: Ints, block: npt.NDArray[np.float32], least: int) -> list[Node]:
    above = _above(block, max(least, int(len(block) * _LEAST_SHARE)))
    return [(index.take(side), block.take(side, axis=0)) for side in (np.flatnonzero(above), np.flatnonzero(~above))]


def _above(block: npt.NDArray[np.float32], least: int) -> Bools:
    """Cut a node at right angles to the line between the two means, with at least ``least`` rows on each side."""
    rows = len(block)
    direction, threshold = _two_means(block[:_SAMPLE])
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


def _two_means(sample: npt.NDArray[np.float32]) -> tuple[npt.NDArray[np.float32], float]:
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
