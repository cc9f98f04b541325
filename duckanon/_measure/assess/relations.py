"""Columns that follow from others: exactly, by sums and products, or nearly, by rank."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from duckanon._core.common import progress
from duckanon._core.common.arrays import Array
from duckanon._measure.assess.profiles import Profile

_COMPARED = 300  # rows on which sums and products are tried
_PROBED = 12  # rows that decide most cases
_MOST_NUMBERS = 60  # numeric columns whose pairs are tried
_NEARLY = 0.8


def find_determined(codes: list[Array], may_determine: list[bool]) -> list[list[int]]:
    """Return which columns follow from each: those that are constant wherever it is.

    NULL is a value. Columns in which most people are unique determine nearly everything: `may_determine` leaves them
    out.
    """
    is_constant = [bool((column == column[:1]).all()) for column in codes]
    determined: list[list[int]] = []
    for place, column in enumerate(codes):
        progress.check()
        order = np.argsort(column, kind="stable")
        same = np.flatnonzero(np.diff(column[order]) == 0)
        if not may_determine[place] or not len(same):
            determined.append([])
            continue
        first, second = order[same], order[same + 1]
        probe = slice(0, 200)  # most columns differ in one of the first pairs
        determined.append(
            [
                other
                for other, values in enumerate(codes)
                if other != place
                and not is_constant[other]
                and (values[first[probe]] == values[second[probe]]).all()
                and (values[first] == values[second]).all()
            ]
        )
    return determined


def find_derived(
    profiles: list[Profile], asked: list[Profile], person: Profile | None, apart: list[Profile]
) -> Iterator[tuple[Profile, list[Profile]]]:
    """Yield those of the columns `asked` that follow from others, with these.

    Of two that follow from each other only the later does. Columns that are constant for a `person` are compared once
    for each; from keys and weights, which stand `apart`, nothing is said to follow.
    """
    sources: dict[str, list[str]] = {}
    computed, coarser = _Sums(profiles), _Levels(profiles, person, apart)
    for profile in asked:
        progress.check()
        for origins in (computed.sources(profile), coarser.sources(profile)):
            if origins and not any(profile.name in sources.get(source.name, ()) for source in origins):
                sources[profile.name] = [source.name for source in origins]
                yield profile, origins
                break


class _Sums:
    """Numbers that are the sum, difference or product of two others, or the days between two dates."""

    def __init__(self, profiles: list[Profile]) -> None:
        rows = np.random.default_rng(0).permutation(len(profiles[0].codes))[:_COMPARED]
        numbers = [one for one in profiles if one.kind == "numeric" and one.distinct > 8]
        self.groups = [
            (group, np.array([one.numbers[rows] for one in group if one.numbers is not None]))
            for group in (numbers[:_MOST_NUMBERS], [one for one in profiles if one.kind == "date"])
        ]
        self.rows = rows

    def sources(self, profile: Profile) -> list[Profile] | None:
        """Return the two that a number follows from."""
        if profile.kind != "numeric" or profile.distinct <= 8 or profile.numbers is None:
            return None
        target = profile.numbers[self.rows]
        for group, values in self.groups:
            if len(group) < 2:
                continue
            for operation in (np.add, np.subtract, np.multiply):
                few = operation(values[:, None, :_PROBED], values[None, :, :_PROBED])
                for first, second in np.argwhere(_is_near(target[:_PROBED], few).sum(axis=2) >= _PROBED - 1):
                    result = operation(values[first], values[second])
                    if first != second and profile not in (group[first], group[second]) and _equal(target, result):
                        return [group[first], group[second]]
        return None


def _is_near(target: Array, result: Array) -> Array:
    with np.errstate(invalid="ignore", over="ignore"):
        near: Array = ~(np.abs(target - result) > np.maximum(0.006, 1e-4 * np.abs(target)))
    return near


def _equal(target: Array, result: Array) -> bool:
    """Tell whether numbers are the same but for rounding."""
    known = np.isfinite(target) & np.isfinite(result)
    is_near = _is_near(target, result)[known]
    return bool(known.sum() >= 100 and is_near.mean() > 0.99 and len(np.unique(target[known])) >= 6)


class _Levels:
    """Columns that follow from one of at least as many values, on at least 200 pairs of people."""

    def __init__(self, profiles: list[Profile], person: Profile | None, apart: list[Profile]) -> None:
        self.profiles, self.apart = profiles, apart
        self.rows = np.arange(len(profiles[0].codes))
        if person is not None:
            self.rows = np.unique(person.codes, return_index=True)[1]
        self.pairs: dict[str, tuple[Array, Array]] = {}

    def sources(self, profile: Profile) -> list[Profile] | None:
        """Return the column that a column follows from; of two with as many values the earlier."""
        if profile.kind == "date" or profile.distinct < 2 or profile.agreement > 0.9:
            return None
        earlier = True
        for other in self.profiles:
            earlier = earlier and other is not profile
            is_finer = other.distinct > profile.distinct or (other.distinct == profile.distinct and earlier)
            if other is profile or not is_finer or other in self.apart or not 2 < other.distinct <= len(self.rows) / 10:
                continue
            if other.distinct > 60 * profile.distinct and profile.distinct < 4:
                continue
            if other.name not in self.pairs:
                self.pairs[other.name] = _neighbours(other, self.rows)
            if len(self.pairs[other.name][0]) <= 200 or not _agree(profile, self.pairs[other.name]):
                continue
            # the first rows of people may agree where later ones differ, as the first of their visits do
            if len(self.rows) == len(other.codes) or _agree(profile, _neighbours(other)):
                return [other]
        return None


def _neighbours(profile: Profile, rows: Array | None = None) -> tuple[Array, Array]:
    """Return pairs of rows, all or some, with the same value."""
    rows = np.arange(len(profile.codes)) if rows is None else rows
    codes = profile.codes[rows]
    order = np.argsort(codes, kind="stable")
    same = (np.diff(codes[order]) == 0) & (codes[order][1:] >= 0)
    return rows[order[:-1][same]], rows[order[1:][same]]


def _agree(profile: Profile, pairs: tuple[Array, Array]) -> bool:
    agree = profile.codes[pairs[0]] == profile.codes[pairs[1]]
    return bool(agree.mean() >= 1 - 0.0005 * (1 - profile.agreement))


def tells(profile: Profile, other: Profile) -> bool:
    """Tell whether a number nearly determines a column: neighbours by rank, or rows with the same number, agree."""
    assert profile.numbers is not None
    order = np.argsort(profile.numbers, kind="stable")
    agree = np.diff(other.codes[order]) == 0
    same = np.diff(profile.numbers[order]) == 0
    for pairs in (agree, agree[same]):
        if len(pairs) >= 20 and (pairs.mean() - other.agreement) / (1 - other.agreement) >= _NEARLY:
            return True
    return False
