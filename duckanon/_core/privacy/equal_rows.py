"""Equal rows of a matrix, and of several matrices."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from duckanon._core.common.arrays import Ints, Matrix

_BLOCK = 1 << 16  # rows at a time: a copy of them stays small


class DistinctRows(NamedTuple):
    """Where each different row of a matrix first occurs, which of these every row is, and how often each occurs."""

    firsts: Ints
    codes: Ints
    counts: Ints


def row_hashes(rows: Matrix) -> npt.NDArray[np.uint64]:
    """Return a number of 64 bits for every row: the same for equal rows, -0.0 being 0.0."""
    hashes = np.zeros(len(rows), np.uint64)
    multiplier, shift = np.uint64(0x9E3779B97F4A7C15), np.uint64(32)
    for start in range(0, len(rows), _BLOCK):
        part = hashes[start : start + _BLOCK]
        for column in (rows[start : start + _BLOCK] + 0.0).T:
            part ^= np.ascontiguousarray(column).view(np.uint64)
            part *= multiplier
            part ^= part >> shift
            part *= np.uint64(0xD6E8FEB86659FD93)
            part ^= part >> shift
    return hashes


def row_codes(*matrices: Matrix) -> list[Ints]:
    """Give equal rows of several matrices the same number, and return the numbers of each matrix."""
    _, inverse = np.unique(np.concatenate([row_hashes(rows) for rows in matrices]), return_inverse=True)
    return np.split(inverse.reshape(-1).astype(np.int64), np.cumsum([len(rows) for rows in matrices])[:-1])


def known_codes(rows: Matrix, *others: Matrix) -> list[Ints]:
    """Give rows numbers as `row_codes` does, and all rows that the first matrix does not have the same one, the last.

    What is counted for every number then costs as much as the first matrix is long, and not the others.
    """
    hashes = row_hashes(rows)
    known, codes = np.unique(hashes, return_inverse=True)
    result = [codes.reshape(-1).astype(np.int64)]
    for other in others:
        other_hashes = row_hashes(other)
        places = np.minimum(np.searchsorted(known, other_hashes), len(known) - 1)
        result.append(np.where(known[places] == other_hashes, places, len(known)).astype(np.int64))
    return result


def distinct_rows(matrix: Matrix) -> DistinctRows:
    """Find the different rows of a matrix of finite numbers.

    Their hashes are told apart, which takes time linear in their number, and then every row is compared with the
    first one of its hash. Should two different rows ever share a hash, the rows are sorted instead.
    """
    codes = pa.array(row_hashes(matrix)).dictionary_encode().indices.to_numpy().astype(np.int64)
    distinct = _distinct(codes)
    firsts = matrix[distinct.firsts]
    blocks = [slice(start, start + _BLOCK) for start in range(0, len(matrix), _BLOCK)]
    if all(np.array_equal(firsts[codes[block]], matrix[block]) for block in blocks):
        return distinct
    _, first, inverse = np.unique(matrix + 0.0, axis=0, return_index=True, return_inverse=True)
    rank = np.empty(len(first), np.int64)
    rank[np.argsort(first, kind="stable")] = np.arange(len(first))
    return _distinct(rank[inverse.reshape(-1)])


def _distinct(codes: Ints) -> DistinctRows:
    counts = np.bincount(codes).astype(np.int64)
    firsts = np.empty(len(counts), np.int64)
    firsts[codes[::-1]] = np.arange(len(codes) - 1, -1, -1)  # the first of equal rows is written last
    return DistinctRows(firsts, codes, counts)
