"""Keys of rows: one number a row, equal where rows are equal, to group, number and sort rows by.

Codes of several columns are packed into one key in mixed radix, exactly (`pack_columns`), and renumbered where the
product of their counts no longer fits 62 bits. Rows of numbers are hashed (`hash_rows`) and compared in full with the
first row of their hash, in time linear in their number. Sorting keys costs most here: a key and its row are sorted as
one number where both fit, which takes a third of the time of an order (`order_keys`). NumPy's `unique` with an inverse
takes five times as long, and its `axis=0` sorts rows as bytes, twenty times as long.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from duckanon._core.common.arrays import Ints, Ints32, Matrix, find_run_starts, measure_runs
from duckanon._core.common.codes import CodedColumn

Whole = TypeVar("Whole", bound=np.integer[Any])

LARGEST_KEY = 1 << 62
"""Keys stay below it, so that the product of a key and a small factor is checked before it overflows."""
_BLOCK = 1 << 16  # rows at a time: a copy of them stays small


class RowGroups(NamedTuple):
    """Groups of equal rows: the first row of each group, the group of each row, and the rows of each group."""

    firsts: Ints
    codes: Ints
    counts: Ints


def order_keys(keys: NDArray[Whole]) -> tuple[Ints, NDArray[Whole]]:
    """Return a stable order of keys, which are not negative, and the keys in that order.

    Examples:
        >>> order, ordered = order_keys(np.array([5, 2, 5, 0]))
        >>> order.tolist(), ordered.tolist()
        ([3, 1, 0, 2], [0, 2, 5, 5])
    """
    bits = len(keys).bit_length()
    if not len(keys) or int(keys.max()) >= LARGEST_KEY >> bits:
        order = np.argsort(keys)  # where most keys differ, it takes less to put equal ones in order than a stable sort
        ordered = keys[order]
        is_new = np.diff(ordered, prepend=ordered[:1]) != 0
        if np.count_nonzero(is_new) < len(keys) - 1:
            order |= np.cumsum(is_new) << bits
            order.sort()
            order &= (1 << bits) - 1
        return order, ordered
    packed = np.left_shift(keys, bits, dtype=np.int64)
    packed |= np.arange(len(keys))
    packed.sort()
    order = packed & ((1 << bits) - 1)
    packed >>= bits
    return order, packed.astype(keys.dtype, copy=False)


def group_keys(keys: Ints) -> RowGroups:
    """Group rows by their keys, which are not negative; groups are in the order of the keys.

    Examples:
        >>> group_keys(np.array([5, 2, 5])).codes.tolist()
        [1, 0, 1]
    """
    order, ordered = order_keys(keys)
    starts = find_run_starts(ordered)
    counts = measure_runs(starts, len(keys))
    codes = np.empty(len(keys), np.int64)
    codes[order] = np.repeat(np.arange(len(starts)), counts)
    return RowGroups(order[starts], codes, counts)


def number_keys(keys: Ints, *, may_overwrite: bool = False) -> Ints32:
    """Return dense numbers, equal for equal keys, in the order of the keys, which are not negative.

    That takes 12 bytes a key, 4 where the keys may be overwritten.
    """
    bits, numbers = len(keys).bit_length(), np.empty(len(keys), np.int32)
    if len(keys) <= _BLOCK or int(keys.max()) >= LARGEST_KEY >> bits:
        order, ordered = order_keys(keys)
        numbers[order[:1]] = 0
        numbers[order[1:]] = np.cumsum(ordered[1:] != ordered[:-1])
        return numbers
    packed = np.left_shift(keys, bits, dtype=np.int64, out=keys if may_overwrite else None)
    for start in range(0, len(packed), _BLOCK):
        packed[start : start + _BLOCK] |= np.arange(start, min(start + _BLOCK, len(packed)))
    packed.sort()
    last_key, last_number = packed[0] >> bits, 0
    for start in range(0, len(packed), _BLOCK):
        block = packed[start : start + _BLOCK]
        ordered = block >> bits
        dense = last_number + np.cumsum(np.diff(ordered, prepend=last_key) != 0)
        numbers[block & ((1 << bits) - 1)] = dense
        last_key, last_number = ordered[-1], int(dense[-1])
    return numbers


def rank_keys(keys: Ints) -> Ints:
    """Return the same numbers such that they can be multiplied to make further keys.

    Examples:
        >>> rank_keys(np.array([5, 2, 5])).tolist()
        [1, 0, 1]
    """
    return number_keys(keys).astype(np.int64)


def pack_columns(columns: Iterable[CodedColumn], rows: int, keys: Ints | None = None) -> tuple[Ints, int]:
    """Pack the codes of columns into one key a row, after a first key if one is given; all keys are below the number.

    Keys sort as the rows do, column by column. Where the product of all counts is below `LARGEST_KEY`, codes can be
    divided out of them.

    Examples:
        >>> keys, most = pack_columns([(np.array([1, 0, 1]), 2), (np.array([2, 0, 2]), 3)], 3)
        >>> keys.tolist(), most
        ([5, 0, 5], 6)
    """
    most = 1 if keys is None else int(keys.max(initial=0)) + 1
    keys = np.zeros(rows, np.int64) if keys is None else keys.astype(np.int64)
    for codes, count in columns:
        if count == 1:
            continue
        if most * count >= LARGEST_KEY:
            keys = rank_keys(keys)
            most = int(keys.max(initial=0)) + 1
        if most > 1:
            keys *= count
        keys += codes
        most *= count
    return keys, most


def hash_rows(rows: Matrix) -> NDArray[np.uint64]:
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


def number_rows(*matrices: Matrix) -> list[Ints]:
    """Give equal rows of several matrices the same number, and return the numbers of each matrix."""
    _, inverse = np.unique(np.concatenate([hash_rows(rows) for rows in matrices]), return_inverse=True)
    return np.split(inverse.reshape(-1).astype(np.int64), np.cumsum([len(rows) for rows in matrices])[:-1])


def number_known_rows(rows: Matrix, *tables: Matrix) -> list[Ints]:
    """Give rows numbers as `number_rows` does, and all rows that the first matrix does not have the same one, the last.

    What is counted for every number then costs as much as the first matrix is long, and not the others.
    """
    known, codes = np.unique(hash_rows(rows), return_inverse=True)
    result = [codes.reshape(-1).astype(np.int64)]
    for table in tables:
        hashes = hash_rows(table)
        indexes = np.minimum(np.searchsorted(known, hashes), len(known) - 1)
        result.append(np.where(known[indexes] == hashes, indexes, len(known)).astype(np.int64))
    return result


def find_distinct_rows(matrix: Matrix) -> RowGroups:
    """Find the different rows of a matrix of finite numbers.

    Their hashes are told apart, which takes time linear in their number, and then every row is compared with the
    first one of its hash. Should two different rows ever share a hash, the rows are sorted instead.
    """
    codes = pa.array(hash_rows(matrix)).dictionary_encode().indices.to_numpy().astype(np.int64)
    groups = _count_codes(codes)
    firsts = matrix[groups.firsts]
    blocks = [slice(start, start + _BLOCK) for start in range(0, len(matrix), _BLOCK)]
    if all(np.array_equal(firsts[codes[block]], matrix[block]) for block in blocks):
        return groups
    _, first, inverse = np.unique(matrix + 0.0, axis=0, return_index=True, return_inverse=True)
    rank = np.empty(len(first), np.int64)
    rank[np.argsort(first, kind="stable")] = np.arange(len(first))
    return _count_codes(rank[inverse.reshape(-1)])


def _count_codes(codes: Ints) -> RowGroups:
    counts = np.bincount(codes).astype(np.int64)
    firsts = np.empty(len(counts), np.int64)
    firsts[codes[::-1]] = np.arange(len(codes) - 1, -1, -1)  # the first of equal rows is written last
    return RowGroups(firsts, codes, counts)
