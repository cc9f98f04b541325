"""Dense numbers for equal keys: never hashes, since two that meet would hide a violation."""

from __future__ import annotations

import numpy as np

from duckanon._core.common.arrays import Ints


def ranked(numbers: Ints) -> Ints:
    """Return dense numbers, equal for equal ones, in the order of the numbers, which are not negative.

    A key and its place are sorted as one number where both fit: that takes a third of the time of an order.
    """
    bits = len(numbers).bit_length()
    if len(numbers) and int(numbers.max()) >> (62 - bits) == 0:
        packed = numbers << bits
        packed |= np.arange(len(numbers))
        packed.sort()
        order = packed & ((1 << bits) - 1)
        packed >>= bits
    else:
        order = np.argsort(numbers, kind="stable")
        packed = numbers[order]
    steps = np.empty(len(packed), np.int64)
    steps[:1] = 0
    np.cumsum(packed[1:] != packed[:-1], out=steps[1:])
    dense = np.empty(len(numbers), np.int64)
    dense[order] = steps
    return dense


def held_by(choices: Ints) -> Ints:
    """Return for each choice how many times it is there; every person has it once."""
    dense = ranked(choices)
    return np.bincount(dense)[dense] if len(dense) else dense
