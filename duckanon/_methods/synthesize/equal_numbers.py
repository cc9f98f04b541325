"""Numbers that are those of another column in many rows, as wages are the whole income of most people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from duckanon._core.common import progress
from duckanon._core.common.arrays import Bools, Floats, Ints, Reals
from duckanon._core.common.people import people_in
from duckanon._core.encoding.parts import ColumnParts, doubles
from duckanon._methods.releasable.grids import Grid, Rounded, Steps, Unrounded
from duckanon._methods.releasable.safe_numbers import SafeNumbers

_SHARE = 0.05  # of the rows that are equal, at least
_BEYOND_CHANCE = 3  # times as many as two columns of these values have if they have nothing to do with each other
_ORDERED = 0.95  # of the rows that are not equal: the share that is larger, or smaller, where nearly all are
_ROUNDS = 60  # of exchanges
_MOST_MOVED = 0.05  # the share of the equal rows that is moved past a number, so that it is rare in neither column


@dataclass(frozen=True)
class EqualNumbers:
    """Two columns of numbers that are equal in many rows.

    Attributes:
        source, column: The two: where they are equal, the column takes the number of the source.
        is_equal, can_be: The rows of the table where they are, and those where both have a regular number.
        shared: The numbers of the equal rows, rare in none of the two columns.
        sign: 1 where nearly all numbers of the source that are not equal are larger, -1 where they are smaller, else 0.
    """

    source: int
    column: int
    is_equal: Bools
    can_be: Bools
    shared: SafeNumbers
    sign: int

    def drawn(self, scores: Reals, can_be: Bools, rows: Ints, people: Ints | None, k: int) -> Bools:
        """Choose the new rows that are equal: those of the largest scores, as many as in the released rows.

        New rows can be equal where both columns have a regular number. Numbers that fewer than k people have equal, or
        different, nobody has so in the release.
        """
        rows = rows[self.can_be[rows]]
        kind = self.is_equal[rows].astype(np.int64)
        different, equal = (people_in(kind, None if people is None else people[rows], 2) >= k).tolist()
        share = float(kind.mean()) if different and equal else float(equal)
        eligible = np.flatnonzero(can_be)
        chosen = np.zeros(len(can_be), np.bool_)
        count = round(share * len(eligible))
        chosen[eligible[np.argsort(-scores[eligible], kind="stable")[:count]]] = True
        return chosen

    def places(self, scores: Floats, rows: Ints, people: Ints | None, grids: Sequence[Grid]) -> list[Ints]:
        """Return the numbers of new rows that are equal, by their scores, as places of both columns' grids."""
        values = self.shared.grid.array(self.shared.at_ranks(scores, rows, people), None)
        return [grid.places(values) for grid in grids]

    def exchanged(self, source: Floats, column: Floats, random: np.random.Generator) -> Ints:
        """Exchange numbers of the column between new rows until none is equal to the source, in the usual order.

        Partners are rows of near ranks first, farther away in each round. Return the row whose number each row gets.
        """
        holder = np.argsort(column, kind="stable")  # of each number, in ascending order
        rows, ordered = holder.copy(), column[holder]
        place = np.empty_like(holder)
        place[holder] = np.arange(len(holder))
        limits = np.searchsorted(ordered, source, "right" if self.sign < 0 else "left")
        for number in range(1, _ROUNDS + 1):
            progress.check()
            bad = np.flatnonzero(self._is_wrong(source, ordered[place]))
            if not len(bad):
                break
            near = random.integers(1, max(2, len(place) * number // _ROUNDS), len(bad))
            wanted = limits[bad] - near if self.sign > 0 else limits[bad] + near - 1
            if self.sign == 0:
                wanted = place[bad] + near * random.choice([-1, 1], len(bad))
            partners, first = np.unique(holder[np.clip(wanted, 0, len(holder) - 1)], return_index=True)
            apart = ~np.isin(partners, bad)
            bad, partners = bad[first][apart], partners[apart]
            right = ~self._is_wrong(source[bad], ordered[place[partners]])
            right &= ~self._is_wrong(source[partners], ordered[place[bad]])
            bad, partners = bad[right], partners[right]
            place[bad], place[partners] = place[partners], place[bad].copy()
            holder[place[bad]], holder[place[partners]] = bad, partners
        return np.asarray(rows[place])

    def _is_wrong(self, source: Floats, column: Floats) -> Bools:
        return np.asarray(source == column if self.sign == 0 else self.sign * (source - column) <= 0)


def exchanged_with(found: Sequence[EqualNumbers], columns: Sequence[int]) -> dict[int, set[int]]:
    """Return the columns whose numbers move where one of these moves; without those that would move a second one."""
    together = {index: {index} for index in columns}
    for equal in found:
        pair = {equal.source, equal.column}
        together |= dict.fromkeys(pair & together.keys(), pair)
    return {index: moved for index, moved in together.items() if len(moved & together.keys()) == 1}


def found_equal(
    columns: Sequence[ColumnParts],
    numbers: Mapping[int, SafeNumbers],
    allowed: Sequence[int],
    people: Ints | None,
    k: int,
) -> list[EqualNumbers]:
    """Find pairs of columns that are equal in many rows, each column in one pair at most.

    Values that two columns share by chance, such as whole numbers of a short range, are no relation: there must be
    several times as many. The column that is computed is the one with fewer numbers of its own. At least k people are
    equal; where fewer than k are not, all are.
    """
    candidates = sorted(index for index in numbers if index in allowed)
    values = {index: doubles(columns[index].array) for index in candidates}
    shares = {}
    for one, other in combinations(candidates, 2):
        if columns[one].type == columns[other].type:
            regular = [numbers[one].is_regular, numbers[other].is_regular]
            share = float(((values[one] == values[other]) & regular[0] & regular[1]).mean())
            if share >= _SHARE:
                chance = _by_chance(values[one][regular[0]], values[other][regular[1]], len(regular[0]))
                if share >= _BEYOND_CHANCE * chance:
                    shares[one, other] = share
    found: list[EqualNumbers] = []
    used: set[int] = set()
    for pair in sorted(shares, key=lambda pair: (-shares[pair], pair)):
        if not used.intersection(pair):
            equal = _equal(pair, values, numbers, people, k)
            if equal is not None:
                found.append(equal)
                used.update(pair)
    return found


def _by_chance(one: Floats, other: Floats, rows: int) -> float:
    """Return the share of rows that would be equal if the regular numbers of two columns were independent."""
    (values, counts), (others, other_counts) = (np.unique(column, return_counts=True) for column in (one, other))
    _, place, other_place = np.intersect1d(values, others, assume_unique=True, return_indices=True)
    return float((counts[place] / rows) @ (other_counts[other_place] / rows))


def _equal(
    pair: tuple[int, int], values: Mapping[int, Floats], numbers: Mapping[int, SafeNumbers], people: Ints | None, k: int
) -> EqualNumbers | None:
    """Learn what two columns share; None where too few people do, or their numbers are rare in one of the two."""
    one, other = pair
    can_be = numbers[one].is_regular & numbers[other].is_regular
    is_equal = can_be & (values[one] == values[other])
    if people_in(is_equal.astype(np.int64), people, 2)[1] < k:
        return None
    own = [int(np.count_nonzero(numbers[index].is_regular)) for index in pair]
    source, column = (one, other) if own[0] >= own[1] else (other, one)
    coarse = _coarser(numbers[source], numbers[column])
    if coarse is None:
        return None
    rare = np.unique(np.concatenate([_placed(numbers[index], coarse.grid) for index in pair]))
    ordered = np.sort(coarse.places[is_equal])
    least = min(numbers[one].least, numbers[other].least)
    shared = replace(coarse, is_regular=is_equal, rare=rare, ordered=ordered, least=least)
    if shared.shift > _MOST_MOVED:
        return None
    different = can_be & ~is_equal
    above = values[source][different] > values[column][different]
    usual = float(above.mean()) if people_in(different.astype(np.int64), people, 2)[1] >= k else 0.5
    sign = 1 if usual >= _ORDERED else -1 if usual <= 1 - _ORDERED else 0
    return EqualNumbers(source, column, is_equal, can_be, shared, sign)


def _coarser(one: SafeNumbers, other: SafeNumbers) -> SafeNumbers | None:
    """Return the numbers of the grid whose values the other grid has, too; None where there is none."""
    for coarse, fine in ((one, other), (other, one)):
        if _contains(fine.grid, coarse.grid):
            low, high = _common_range(fine.grid, coarse.grid)
            return replace(coarse, places=np.clip(coarse.places, low, high)) if low <= high else None
    return None


def _common_range(fine: Grid, coarse: Grid) -> tuple[int, int]:
    """Return the coarse places that both grids have: values of more digits than most may be rounded beyond the ends."""
    ends = np.iinfo(np.int64)
    if not (isinstance(fine, Steps) and isinstance(coarse, Steps)):
        return int(ends.min), int(ends.max)  # floats have no ends
    origin, step = int(coarse.column.low), coarse.step
    low, high = (int(end) - origin for end in (fine.column.low, fine.column.high))
    return origin + max(0, -(-low // step) * step), min(int(coarse.column.high), origin + high // step * step)


def _contains(fine: Grid, coarse: Grid) -> bool:
    if isinstance(fine, Steps) and isinstance(coarse, Steps):
        apart = int(fine.column.low) - int(coarse.column.low)
        return coarse.step % fine.step == 0 and apart % fine.step == 0
    if isinstance(fine, Rounded) and isinstance(coarse, Rounded):
        return fine.decimals >= coarse.decimals
    return isinstance(fine, Unrounded)


def _placed(numbers: SafeNumbers, grid: Grid) -> Ints:
    """Return where rare numbers stand in another grid; those that it does not have are never drawn."""
    values = numbers.grid.array(numbers.rare, None)
    places = grid.places(values)
    return np.asarray(places[doubles(grid.array(places, None)) == doubles(values)])
