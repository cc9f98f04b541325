"""Classes of combinations: a number for each combination of groups, and what is counted of those that are equal."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from duckanon._core.common.arrays import Floats, Ints, run_lengths, run_starts

MOST_KEY = 2**61
"""Keys of combinations stay below this, so that int64 never overflows."""

_DENSE_SHARE = 6
"""Keys are counted one by one where there are at most so many possible ones for each entry; else they are sorted.
(Not measured.)"""


def combine(parts: list[Ints], sizes: list[int]) -> tuple[Ints, int]:
    """Combine group numbers into one number per row; return it and the number of possible values."""
    key = np.zeros(len(parts[0]), dtype=np.int64) if parts else np.zeros(0, dtype=np.int64)
    size = 1
    for part, n in zip(parts, sizes, strict=True):
        if n == 1:
            continue
        if size > MOST_KEY // max(n, 1):
            groups = Groups(key, size)
            key, size = groups.of_entry, len(groups.keys)
        if size > 1:
            key *= n
        key += part
        size *= n
    return key, size


def classes_of(key: Ints, size: int) -> tuple[Ints, int]:
    """Return the class of each combination, given the combinations' keys below ``size``, and the number of classes.

    Classes may be empty, as long as they are few.
    """
    if size > 4 * len(key) + 1000:  # too many possible keys to count them all
        groups = Groups(key, size)
        return groups.of_entry, len(groups.keys)
    return key, size


def is_dense(keys: int, entries: int) -> bool:
    """Tell whether there are so few possible keys that they are counted one by one."""
    return keys <= _DENSE_SHARE * entries + 1000


class Groups:
    """Entries grouped by keys.

    Args:
        key: The key of each entry, at least 0.
        size: More than the largest key.
        rows: A number above 0 for each entry, to be summed; None: they are just grouped.

    Attributes:
        keys: The different keys, ascending.
        rows: The sum of the numbers of each group.
    """

    keys: Ints
    rows: Ints | Floats

    def __init__(self, key: Ints, size: int, rows: Floats | None = None) -> None:
        self._key, self._size = key, size
        self._order: Ints | None = None
        if is_dense(size, len(key)):
            totals = np.bincount(key, rows, size)
            self.keys = (totals > 0).nonzero()[0]  # of truth values, which takes a third of the time
            self.rows = totals[self.keys]
            return
        # Sorting numbers is twice as fast as sorting where they are.
        bits = len(key).bit_length()
        if size < MOST_KEY >> bits:
            packed = (key << bits) | np.arange(len(key))
            packed.sort()
            self._order, ordered = packed & ((1 << bits) - 1), packed >> bits
        else:
            self._order = np.argsort(key, kind="stable")
            ordered = key[self._order]
        self._starts = run_starts(ordered)
        self.keys = ordered[self._starts]
        if rows is None:
            self.rows = run_lengths(self._starts, len(key))
        else:
            self.rows = np.add.reduceat(rows[self._order], self._starts)

    @cached_property
    def of_entry(self) -> Ints:
        """The group of each entry."""
        if self._order is None:
            number = np.empty(self._size, np.int64)
            number[self.keys] = np.arange(len(self.keys))
            return number[self._key]
        group = np.empty(len(self._key), np.int64)
        group[self._order] = np.repeat(np.arange(len(self.keys)), run_lengths(self._starts, len(self._key)))
        return group

    @cached_property
    def examples(self) -> Ints:
        """One entry of each group."""
        if self._order is not None:
            return self._order[self._starts]
        example = np.empty(self._size, np.int64)
        example[self._key] = np.arange(len(self._key))
        return example[self.keys]


@dataclass(frozen=True)
class Packed:
    """Group numbers of several columns in one key, from which they can be read again.

    Attributes:
        key, size: The key of each row, and a number above all keys.
        columns, bits: The columns; and how many bits of the key each has, or None where they do not fit.
    """

    key: Ints
    size: int
    columns: list[Ints]
    bits: list[int] | None

    @classmethod
    def of(cls, columns: list[Ints], sizes: list[int]) -> Packed:
        """Take the columns, and how many groups each may have."""
        bits = [(size - 1).bit_length() for size in sizes]
        if sum(bits) >= MOST_KEY.bit_length():
            return cls(*combine(columns, sizes), columns, None)
        key = np.zeros(len(columns[0]), np.int64)
        for column, width in zip(columns, bits, strict=True):
            key <<= width
            key |= column
        return cls(key, 1 << sum(bits), columns, bits)

    def parts(self, groups: Groups) -> list[Ints]:
        """Return the columns of rows that were grouped by the key, one entry a group."""
        if self.bits is None:
            return [column[groups.examples] for column in self.columns]
        parts, key = [], groups.keys
        for width in reversed(self.bits):
            parts.append(key & ((1 << width) - 1))
            key = key >> width
        return parts[::-1]


@dataclass(frozen=True)
class Classes:
    """The classes of a state of the table.

    Attributes:
        of_combination: The class of each combination.
        example: One combination of each class.
        rows, released: The rows of each class, and how many of them are released: all, or none where there are too few
            people.
    """

    of_combination: Ints
    example: Ints
    rows: Floats
    released: Floats
