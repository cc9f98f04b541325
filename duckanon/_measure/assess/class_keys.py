"""Classes of rows by integer keys, counted or sorted: how many there are, how large, and which row is in which."""

from __future__ import annotations

import math
from typing import TypeAlias

import numpy as np

from duckanon._core.common.arrays import Array, Floats, Ints, run_starts
from duckanon._core.common.codes import Codes

Weights: TypeAlias = Floats
ClassCounts: TypeAlias = tuple[int, int, int]
"""Distinct combinations of a set, rows whose combination occurs once, size of the smallest class."""

MAX_KEY = 2**62  # mixed-radix keys stay below this bound, so that int64 never overflows
DENSE = 2.0  # cells per row up to which classes are counted by bincount, which writes each cell, and not by sorting
_SAMPLED_ROWS = 2**15  # tables with more rows have their share of distinct rows estimated, from a part ...
_SAMPLE_BELOW = np.uint64(2**59)  # ... with hashes below this: one in 32, so that the estimate costs next to nothing
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # 2**64 over the golden ratio: a product with it spreads nearby keys


def count_sets(columns: int, max_size: int) -> int:
    """Return how many sets of 1 .. `max_size` of so many columns there are."""
    return sum(math.comb(columns, size) for size in range(1, min(max_size, columns) + 1))


def class_counts(key: Codes, cells: int, weights: Weights | None) -> ClassCounts:
    """Count the classes of keys that are not needed any more: they are sorted in place."""
    flagged = key
    if weights is not None:  # one bit tells a row of more weight than 1, so the sort need not carry the weights
        flagged = key.astype(np.int32 if cells < 2**30 else np.int64)
        flagged *= 2
        flagged += weights > 1
    flagged.sort()
    first = np.ones(len(key) + 1, np.bool_)
    first[1:-1] = (flagged[1:] ^ flagged[:-1]) > (weights is not None)
    single = first[1:] & first[:-1]
    if weights is not None:
        single &= (flagged & 1) == 0
    distinct, singletons = int(np.count_nonzero(first)) - 1, int(np.count_nonzero(single))
    if singletons:
        return distinct, singletons, 1
    if weights is None:
        return distinct, 0, int(np.diff(np.flatnonzero(first)).min())
    return distinct, 0, int(ranked(key, cells, weights)[1].min())


def distinct_share(key: Ints) -> float:
    """Estimate distinct keys over rows from the rows whose key has a hash in a small range: all copies or none."""
    if len(key) > _SAMPLED_ROWS:
        key = key.take(np.flatnonzero(key.view(np.uint64) * _GOLDEN < _SAMPLE_BELOW))
    return len(run_starts(np.sort(key))) / len(key) if len(key) else 1.0


def collapsed(key: Ints, cells: int, weights: Weights | None) -> tuple[Ints, Weights]:
    """Return the distinct keys and the weight of each."""
    if cells <= DENSE * len(key):
        sizes = np.bincount(key, weights)
        distinct = np.flatnonzero(sizes)
        return distinct, sizes.take(distinct).astype(np.float64)
    if weights is None:
        key = np.sort(key)
        starts = run_starts(key)
        return key.take(starts), np.diff(starts, append=len(key)).astype(np.float64)
    order = order_of_keys(key, cells)
    key = key.take(order)
    starts = run_starts(key)
    return key.take(starts), np.add.reduceat(weights.take(order), starts)


def ranked(key: Codes, cells: int, weights: Weights | None) -> tuple[Codes, Array]:
    """Return the dense code of every row by its key, and the size of each class."""
    order = order_of_keys(key, cells)
    starts = run_starts(key.take(order))
    runs = np.diff(starts, append=len(key))
    ranks = np.empty(len(key), np.int32)
    ranks[order] = np.repeat(np.arange(len(starts), dtype=np.int32), runs)
    return ranks, runs if weights is None else np.add.reduceat(weights.take(order), starts)


def order_of_keys(key: Codes, cells: int) -> Ints:
    """Return the order of the rows by key, from one sort of key and row number packed into 64 bits, if they fit."""
    bits = len(key).bit_length()
    if cells << bits > MAX_KEY:
        return np.argsort(key)
    packed = key.astype(np.int64)
    packed <<= bits
    packed |= np.arange(len(key))
    packed.sort()
    return packed & ((1 << bits) - 1)
