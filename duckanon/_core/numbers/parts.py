"""Parts of a column: round ends, and at least k records, or people, within each.

All nodes of a level of a binary tree are cut at once, each at the roundest number of the window in which no part of k
is lost. So an end says that k records lie on either side of a round number, and not which value is next to it. The cost
is one sort, and for each level a few passes; where people are counted, their first and last rows are counted instead.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from duckanon._core.common.arrays import Bools, Floats, Ints
from duckanon._core.common.people import NOBODY, find_cut_bounds
from duckanon._core.numbers.support import Grid, NumberSupport


class NumberParts(NamedTuple):
    """A column's parts, ascending, those of one stratum after those of another.

    Attributes:
        number: The part that each record lies in.
        lower, upper: The ends of each part, which belong to it.
        far_below, far_above: Whether a part ends at the column's own end, and that lies far beyond the rest.
    """

    number: Ints
    lower: Floats
    upper: Floats
    far_below: Bools
    far_above: Bools


class _Nodes(NamedTuple):
    """Runs of sorted records that may be cut: where they begin and end, and how many leaves they have."""

    starts: Ints
    ends: Ints
    leaves: Ints

    def keep(self, chosen: Bools) -> _Nodes:
        return _Nodes(self.starts[chosen], self.ends[chosen], self.leaves[chosen])


def cut_column(
    values: Floats, k: int, support: NumberSupport, people: Ints | None = None, strata: Ints | None = None
) -> NumberParts:
    """Cut a column into parts of at least k records or people, at round numbers.

    All nodes of a level are cut at once. A node of m >= 2k records has floor(m / k) leaves, and half of them go left:
    within a window of m mod k ranks no leaf is lost, so the cut is the roundest number there. Where all values of the
    window are the same, the nearest change that leaves k on both sides is taken. So an end says that k records lie on
    either side of a round number, and not whose value is next to it. The outermost parts of the column end where
    `support` says; those of a stratum, which holds at least k and is cut on its own, where the parts of the whole
    column do that they reach into, so that k people of the table decide these, too. Values beyond the support are
    coded.

    Examples:
        >>> from duckanon._core.numbers.support import find_support
        >>> ages = np.array([21.0, 25.0, 33.0, 38.0, 61.0, 70.0])
        >>> parts = cut_column(ages, 3, find_support(None, ages, 3))
        >>> parts.lower.tolist(), parts.upper.tolist()
        ([0.0, 35.0], [34.0, 119.0])
    """
    grid, whole = support.grid, support.whole(values)
    order = np.argsort(whole) if strata is None else np.lexsort((whole, strata))
    column, begins = whole.take(order), np.zeros(1, np.int64)
    if strata is not None:
        begins = np.flatnonzero(np.diff(strata.take(order), prepend=-1))
    changes = np.ones(len(column) + 1, np.bool_)
    np.not_equal(column[1:], column[:-1], out=changes[1:-1])
    changes[begins] = True
    right_starts, cuts = _cut_runs(
        column, begins, np.flatnonzero(changes), k, grid, None if people is None else people[order]
    )
    starts = np.concatenate([begins, right_starts])
    by_start = np.argsort(starts)
    starts = starts[by_start]
    ends = np.append(starts[1:], len(column))
    is_first = np.isin(starts, begins)
    is_last = np.append(is_first[1:], True)
    step = 1.0 if grid.has_unit else 0.0
    least, largest = column[starts], column[ends - 1]
    lower = np.concatenate([column[begins], cuts])[by_start]
    upper = np.append(lower[1:] - step, 0.0)
    low, high = grid.whole(np.array([support.low, support.high]))
    if strata is not None:
        everybody = cut_column(values, k, support, people)
        low = grid.whole(everybody.lower)[everybody.number[order[starts]]]
        high = grid.whole(everybody.upper)[everybody.number[order[ends - 1]]]
    lower, upper = np.where(is_first, low, lower), np.where(is_last, high, upper)
    is_single = least == largest
    lower, upper = np.where(is_single, least, lower), np.where(is_single, least, upper)
    number = np.empty(len(column), np.int64)
    number[order] = np.repeat(np.arange(len(starts)), ends - starts)
    lowest, highest = grid.values(lower), grid.values(upper)
    is_far = (lowest == support.low) & support.is_far[0], (highest == support.high) & support.is_far[1]
    return NumberParts(number, lowest, highest, is_far[0] & ~is_single, is_far[1] & ~is_single)


def _cut_runs(
    column: Floats, begins: Ints, changes: Ints, k: int, grid: Grid, people: Ints | None
) -> tuple[Ints, Floats]:
    """Cut sorted runs as often as they can be; return where right parts begin, and the numbers that they begin at."""
    ends = np.append(begins[1:], len(column))
    nodes = _Nodes(begins, ends, np.zeros(len(begins), np.int64))
    neighbours = None if people is None else _find_neighbours(people)
    starts: list[Ints] = []
    cuts: list[Floats] = []
    while len(nodes.starts):
        nodes, window, room = _find_windows(nodes, k, neighbours)
        if not len(nodes.starts):
            break
        first = np.searchsorted(changes, window[0])
        last = np.searchsorted(changes, window[1], side="right") - 1
        above, below = changes[first], changes[first - 1]
        fits_above, fits_below = above <= room[1], below >= room[0]
        nearest = np.where(fits_above & (~fits_below | (above - window[0] <= window[0] - below)), above, below)
        within = first <= last
        is_cut = within | fits_above | fits_below
        least, most = (np.where(within, start, nearest)[is_cut] for start in (above, changes[last]))
        cut = grid.roundest(column[least - 1], column[most])
        start = _find_first_at_least(column, cut, least, most)
        if not grid.has_unit:
            # Both parts end at the cut, which is therefore to be nobody's value.
            meets = np.flatnonzero(column[start] == cut)
            cut[meets] = grid.roundest(column[start[meets] - 1], column[start[meets]])
        starts.append(start)
        cuts.append(cut)
        nodes = nodes.keep(is_cut)
        nodes = _Nodes(
            np.concatenate([nodes.starts, start]), np.concatenate([start, nodes.ends]), np.tile(nodes.leaves, 2)
        )
    return np.concatenate([*starts, np.zeros(0, np.int64)]), np.concatenate([*cuts, np.zeros(0)])


def _find_neighbours(people: Ints) -> tuple[Ints, Ints]:
    """Return for every row the one before and the one after it of the same person.

    They lie before the first and after the last row where there is none, and the other way round for rows of nobody,
    which so are nobody's first or last row wherever people are counted.
    """
    rows = len(people)
    order = np.argsort(people, kind="stable")
    is_same = np.diff(people[order]) == 0
    before, after = np.full(rows, -1), np.full(rows, rows)
    before[order[1:][is_same]], after[order[:-1][is_same]] = order[:-1][is_same], order[1:][is_same]
    before[people == NOBODY], after[people == NOBODY] = rows, -1
    return before, after


def _find_windows(
    nodes: _Nodes, k: int, neighbours: tuple[Ints, Ints] | None
) -> tuple[_Nodes, tuple[Ints, Ints], tuple[Ints, Ints]]:
    """Return the nodes of at least two leaves, the places that cost no leaf, and those that leave k on both sides."""
    if neighbours is None:
        nodes = nodes._replace(leaves=(nodes.ends - nodes.starts) // k)
        nodes = nodes.keep(nodes.leaves >= 2)
        left = nodes.leaves // 2 * k
        right = nodes.leaves * k - left
        return nodes, (nodes.starts + left, nodes.ends - right), (nodes.starts + k, nodes.ends - k)
    by_start = np.argsort(nodes.starts)
    nodes = nodes._replace(starts=nodes.starts[by_start], ends=nodes.ends[by_start])
    sizes = nodes.ends - nodes.starts
    inside = np.repeat(nodes.starts - (np.cumsum(sizes) - sizes), sizes) + np.arange(int(sizes.sum()))
    before, after = neighbours
    is_first = before[inside] < np.repeat(nodes.starts, sizes)
    is_last = after[inside] >= np.repeat(nodes.ends, sizes)
    seen = inside[is_first], inside[is_last]
    counts = np.searchsorted(seen[0], nodes.ends) - np.searchsorted(seen[0], nodes.starts)
    nodes = nodes._replace(leaves=counts // k)
    nodes = nodes.keep(nodes.leaves >= 2)
    left = nodes.leaves // 2 * k
    window = find_cut_bounds(seen, nodes.starts, nodes.ends, left, nodes.leaves * k - left)
    return nodes, window, find_cut_bounds(seen, nodes.starts, nodes.ends, k, k)


def _find_first_at_least(column: Floats, cuts: Floats, least: Ints, most: Ints) -> Ints:
    """Find by bisection the first place from `least` to `most` whose value is not below the cut."""
    low, high = least.copy(), most.copy()
    while (low < high).any():
        middle = (low + high) // 2
        is_below = (column[middle] < cuts) & (low < high)
        low, high = np.where(is_below, middle + 1, low), np.where(is_below, high, middle)
    return low


def cut_counts(values: Floats, counts: Ints, k: int, support: NumberSupport) -> NumberParts:
    """Cut a column into parts, given how many people have each of its values.

    More than k people with the same value decide no cut, so that only so many are looked at.
    """
    repeated = np.repeat(values, np.minimum(counts, k))
    parts = cut_column(repeated, k, support)
    first = np.cumsum(np.minimum(counts, k)) - np.minimum(counts, k)
    parts = parts._replace(number=parts.number[first])
    if np.bincount(parts.number, weights=counts, minlength=len(parts.lower)).min() < k:
        raise AssertionError(f"a part of a column has fewer than {k} people.")
    return parts


def select_values(parts: NumberParts, values: Floats) -> NumberParts:
    """Return the parts of a column for some of its values, whose ends they contain."""
    return parts._replace(number=find_part_of_value(parts.lower, parts.upper, values))


def find_part_of_value(lower: Floats, upper: Floats, values: Floats) -> Ints:
    """Return the part that each value lies in, given the ends of all parts, ascending."""
    number = np.clip(np.searchsorted(lower, values, side="right") - 1, 0, None)
    # Where there is no unit, neighbours end at the same number, which is nobody's value.
    if (values < lower[number]).any() or (values > upper[number]).any():
        raise AssertionError("an end of a part lies inside its records.")
    return number
