"""Classes of combinations: a number for each combination of groups, and what is counted of those that are equal."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from duckanon.common.arrays import Floats, Ints

MOST_KEY = 2**61
"""Keys of combinations stay below this, so that int64 never overflows."""


def combine(parts: list[Ints], sizes: list[int]) -> tuple[Ints, int]:
    """Combine group numbers into one number per row; return it and the number of possible values."""
    key = np.zeros(len(parts[0]), dtype=np.int64) if parts else np.zeros(0, dtype=np.int64)
    size = 1
    for part, n in zip(parts, sizes, strict=True):
        if n == 1:
            continue
        if size > MOST_KEY // max(n, 1):
            distinct, key = np.unique(key, return_inverse=True)
            size = len(distinct)
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
        distinct, key = np.unique(key, return_inverse=True)
        return key.reshape(-1), len(distinct)
    return key, size


@dataclass(frozen=True)
class Classes:
    """The classes of a state of the table.

    Attributes
    ----------
    of_combination
        The class of each combination.
    example
        One combination of each class.
    rows, released
        The rows of each class, and how many of them are released: all, or none where there are too few people.
    """

    of_combination: Ints
    example: Ints
    rows: Floats
    released: Floats
