"""Between which numbers a group of k people is drawn, and how: its ends, its median, and how many are below that."""

from __future__ import annotations

import numpy as np

from duckanon._core.common.arrays import Bools, Floats, Ints


def group_shapes(numbers: Floats, rows: Ints, people: Ints, is_grouped: Bools, heads: Ints) -> Floats:
    """Return between which numbers each group is drawn: the low end, the median, the high end; and the share below it.

    Groups that follow each other meet midway. Where a run ends, its outermost number is one person's: the group ends as
    far beyond its quartile as that is from its median, but not beyond a value that many hold. The outermost groups of a
    column end at the quartile.

    Args:
        numbers, rows: The values in ascending order, and how many rows have each.
        people: How many people have each, with their first row in the group.
        is_grouped, heads: Which values are in groups, and the first one of each group.
    """
    members = np.flatnonzero(is_grouped)
    group = np.searchsorted(heads, members, side="right") - 1
    tails = members[np.searchsorted(group, np.arange(len(heads)), side="right") - 1]
    up_to = np.cumsum(np.where(is_grouped, people, 0))
    first, last = up_to[heads] - people[heads] + 1, up_to[tails]
    quarter = (last - first + 1) // 4

    def between(one: Ints, other: Ints) -> Floats:
        """Return the number midway between those of two people of each group."""
        low, high = (numbers[np.searchsorted(up_to, np.clip(place, first, last))] for place in (one, other))
        return np.asarray(low / 2 + high / 2)

    middle = between((first + last) // 2, (first + last + 1) // 2)
    follows = np.concatenate([[False], heads[1:] == tails[:-1] + 1, [False]])
    ends = []
    for quartile, outermost, beyond, meets in (
        (between(first + quarter, first + quarter + 1), heads, heads - 1, follows[:-1]),
        (between(last - quarter, last - quarter - 1), tails, tails + 1, follows[1:]),
    ):
        is_last = (beyond < 0) | (beyond == len(numbers))
        other = numbers[np.where(is_last, outermost, beyond)]
        with np.errstate(over="ignore"):
            reach = quartile + (quartile - middle)
        inside = np.clip(reach, np.minimum(other, quartile), np.maximum(other, quartile))
        ends.append(np.where(meets, numbers[outermost] / 2 + other / 2, np.where(is_last, quartile, inside)))
    before = np.concatenate([[0], np.cumsum(rows)])
    at_middle = sum(before[np.searchsorted(numbers, middle, side)] for side in ("left", "right")) / 2
    below = (at_middle - before[heads]) / (before[tails + 1] - before[heads])
    return np.stack([ends[0], middle, ends[1], below])
