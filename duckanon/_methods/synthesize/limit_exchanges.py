"""Numbers exchanged between new rows until they are within the limits of rules, so that their distribution stays."""

from __future__ import annotations

import numpy as np

from duckanon._core.common import progress
from duckanon._core.common.arrays import Bools, Floats, Ints

_ROUNDS = 40
_NEAR = 20  # numbers inside of a limit in the first round, more in each later one, one of which is exchanged


def exchanged_within(
    values: Floats, low: Floats, high: Floats, movable: Bools, random: np.random.Generator
) -> tuple[Ints, Bools]:
    """Exchange numbers beyond their row's limits for numbers of other rows, near the limit, that may have them.

    Args:
        values: The numbers of the rows.
        low, high: The lowest and the highest number that each row may have.
        movable: The rows whose numbers may be exchanged.
        random: Where chance comes from.

    Returns:
        The row whose number each row gets, and the movable rows that are beyond a limit still.
    """
    taken_from, holder = np.arange(len(values)), np.argsort(values, kind="stable")
    place = np.empty_like(holder)
    place[holder] = np.arange(len(holder))
    ordered = values[holder]
    start, end = np.searchsorted(ordered, low, "left"), np.searchsorted(ordered, high, "right")
    is_beyond = movable & ((place < start) | (place >= end))
    for number in range(1, _ROUNDS + 1):
        bad = np.flatnonzero(is_beyond & (start < end))
        if not len(bad):
            break
        progress.check()
        apart = random.integers(0, np.minimum(_NEAR * number, end[bad] - start[bad]))
        partners = holder[np.where(place[bad] < start[bad], start[bad] + apart, end[bad] - 1 - apart)]
        partners, first = np.unique(partners, return_index=True)
        bad = bad[first]
        may = movable[partners] & ~is_beyond[partners] & (place[bad] >= start[partners]) & (place[bad] < end[partners])
        bad, partners = bad[may], partners[may]
        for array in (place, taken_from):
            array[bad], array[partners] = array[partners], array[bad].copy()
        holder[place[bad]], holder[place[partners]] = bad, partners
        is_beyond[bad] = False
    return taken_from, is_beyond
