"""The regions where a condition holds: sets of values of one column, and boxes of such sets.

A set is a list of boundaries between values: a boundary lies just before a value, `(value, 0)`, or just after it,
`(value, 1)`, and the set reaches from each boundary with an even index to the next one.  NULL belongs to it or not,
beside all values.  A region maps columns to sets, and holds where all of them do.  A condition is a list of regions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from duckanon._core.common.arrays import Bools, Floats
from duckanon._methods.intervals.conditions import Condition, Joined, Not, Test

Boundary: TypeAlias = tuple[float, int]
FIRST: Boundary = (-np.inf, 0)
LAST: Boundary = (np.inf, 1)
_MOST = 1000  # regions of a condition at most: a few comparisons have a few, nested ORs may multiply


@dataclass(frozen=True)
class ValueSet:
    """A set of values of one column."""

    boundaries: tuple[Boundary, ...]  # ascending, an even number of them
    has_null: bool = False  # whether NULL belongs to it

    @property
    def is_empty(self) -> bool:
        """Whether nothing belongs to it."""
        return not self.boundaries and not self.has_null

    def complement(self, has_null: bool) -> ValueSet:
        """Return all other values; NULL as it is said."""
        ends = [FIRST, *self.boundaries, LAST]
        pairs = zip(ends[::2], ends[1::2], strict=True)
        return ValueSet(tuple(end for pair in pairs if pair[0] < pair[1] for end in pair), has_null)

    def within(self, other: ValueSet) -> ValueSet:
        """Return the values that belong to both."""
        common: list[Boundary] = []
        for start, stop in self.ranges():
            for other_start, other_stop in other.ranges():
                if max(start, other_start) < min(stop, other_stop):
                    common += [max(start, other_start), min(stop, other_stop)]
        return ValueSet(tuple(common), self.has_null and other.has_null)

    def ranges(self) -> list[tuple[Boundary, Boundary]]:
        """Return the ranges of which it consists."""
        return list(zip(self.boundaries[::2], self.boundaries[1::2], strict=True))


def union(ranges: list[tuple[Boundary, Boundary]]) -> ValueSet:
    """Return the values that belong to any of some ranges, some of which may be empty."""
    joined: list[Boundary] = []
    for start, stop in sorted(ranges):
        if start >= stop:
            continue
        if joined and start <= joined[-1]:
            joined[-1] = max(joined[-1], stop)
        else:
            joined += [start, stop]
    return ValueSet(tuple(joined))


Region: TypeAlias = Mapping[str, ValueSet]


def regions(
    condition: Condition, set_of: Callable[[Test], ValueSet], holds: bool, is_negated: bool = False
) -> list[Region]:
    """Find the regions, which may overlap, where a condition, or its negation, holds, or where it does not.

    As in SQL it does not hold where it is unknown, for NULL. NOT is moved inward: what is unknown stays unknown.
    """
    if isinstance(condition, Not):
        return regions(condition.part, set_of, holds, not is_negated)
    if isinstance(condition, Joined):
        parts = [regions(part, set_of, holds, is_negated) for part in condition.parts]
        # NOT turns AND into OR, and so does looking for where it does not hold.
        if condition.is_and == (is_negated == (not holds)):
            return _all_of(parts)
        return _limited([region for part in parts for region in part])
    values = set_of(condition)
    if is_negated:
        values = values.complement(has_null=False)
    if not holds:
        values = values.complement(has_null=not values.has_null)
    return [] if values.is_empty else [{condition.column.lower(): values}]


def _all_of(parts: list[list[Region]]) -> list[Region]:
    found: list[Region] = [{}]
    for part in parts:
        pairs = _limited([(region, other) for region in found for other in part])
        met = (_within(region, other) for region, other in pairs)
        found = [region for region in met if region is not None]
    return found


def _within(region: Region, other: Region) -> Region | None:
    """Return what two regions have in common, None for nothing."""
    common = dict(region)
    for column, values in other.items():
        common[column] = values.within(common[column]) if column in common else values
        if common[column].is_empty:
            return None
    return common


def apart(overlapping: list[Region]) -> list[Region]:
    """Cut regions into such that do not overlap and cover the same."""
    found: list[Region] = []
    for region in overlapping:
        pieces = [region]
        for taken in found:
            pieces = _limited([rest for piece in pieces for rest in _without(piece, taken)])
        found = _limited(found + pieces)
    return found


def _without(region: Region, other: Region) -> list[Region]:
    """Return what is left of a region outside another, in pieces that do not overlap."""
    pieces: list[Region] = []
    rest: Region | None = region
    for column, values in other.items():
        if rest is None:
            break
        outside = _within(rest, {column: values.complement(has_null=not values.has_null)})
        if outside is not None:
            pieces.append(outside)
        rest = _within(rest, {column: values})
    return pieces


def _limited(found: list) -> list:  # type: ignore[type-arg]
    if len(found) > _MOST:
        raise ValueError(f"condition must be simpler; it falls into more than {_MOST} regions.")
    return found


@dataclass(frozen=True)
class Ends:
    """The intervals of a column."""

    # low, high: one per box: their ends, infinite where they are open; in steps where the column has only whole steps
    low: Floats
    high: Floats
    is_null: Bools  # one per box: where there is no value, in an exact column
    is_stepped: bool  # whether there are no values between the steps

    def meets(self, values: ValueSet) -> Bools:
        """Tell which intervals have a value in a set."""
        found = self.is_null & values.has_null
        for start, stop in values.ranges():
            starts_before = (self.high > start[0]) | ((self.high == start[0]) & (start[1] == 0))
            stops_after = (self.low < stop[0]) | ((self.low == stop[0]) & (stop[1] == 1))
            found |= ~self.is_null & starts_before & stops_after
        return found

    def share(self, values: ValueSet) -> Floats:
        """Return which share of each interval lies in a set.

        An interval with one open end counts as that end, and one with two as half inside, unless all of it is.
        """
        step = 1.0 if self.is_stepped else 0.0
        low = np.where(np.isfinite(self.low), self.low, self.high)
        high = np.where(np.isfinite(self.high), self.high, self.low)
        is_known = np.isfinite(low) & ~self.is_null
        low, high = np.where(is_known, low, 0.0), np.where(is_known, high, 0.0)
        width = high - low + step
        inside = np.zeros(len(low))
        for start, stop in values.ranges():
            inside += np.clip(np.minimum(high + step, stop[0]) - np.maximum(low, start[0]), 0.0, None)
        points = Ends(low, high, np.zeros(len(low), bool), self.is_stepped).meets(values).astype(np.float64)
        known = np.where(width > 0, inside / np.where(width > 0, width, 1.0), points)
        is_all = values.boundaries == (FIRST, LAST)
        open_share = 1.0 if is_all else 0.5 if values.boundaries else 0.0
        unknown = np.where(self.is_null, float(values.has_null), open_share)
        return np.asarray(np.where(is_known, known, unknown))
