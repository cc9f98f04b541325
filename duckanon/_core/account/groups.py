"""Numbers of people, classes and groups: how a group splits by one more release."""

from __future__ import annotations

import numpy as np

from duckanon._core.common.arrays import Ints

ABSENT = -1
"""The class of people who are not in a release."""


def least(counts: Ints) -> int | None:
    """Return the smallest count above 0: groups of nobody do not count."""
    counts = counts[counts > 0]
    return int(counts.min()) if len(counts) else None


def refined(groups: Ints, classes: Ints) -> tuple[Ints, Ints, Ints]:
    """Split groups of people by their classes in one more release.

    Return the group of each person, and of each group the one that it was part of, and its class in the release.
    """
    width = int(classes.max(initial=ABSENT)) + 2
    keys, found = np.unique(groups * width + classes + 1, return_inverse=True)
    return found, keys // width, keys % width - 1


def unique(numbers: Ints) -> Ints:
    """Return the different numbers, ascending, several times faster than numpy's unique."""
    ordered = np.sort(numbers)
    return ordered[np.diff(ordered, prepend=-1) > 0]
