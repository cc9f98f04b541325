"""Numbers that repeat another column: equal in many rows, or apart by a constant in all.

Wages are the whole income of most people. Drawn from a tree, the two columns would be near each other and never equal;
so it is drawn first where they are equal, then the common number there, and each column by itself elsewhere. Numbers
are then exchanged until no pair is equal by chance or in the wrong order. A column that is another plus a constant (a
year of birth and an age) is computed from it, and neither may have a number that is rare in the other.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from duckanon._core.common import progress
from duckanon._core.common.arrays import Bools, Floats, Ints, Reals
from duckanon._core.common.people import count_people
from duckanon._core.encoding.formulas import Formula
from duckanon._core.encoding.parts import ColumnParts, read_doubles, round_numbers
from duckanon._methods.releasable.grids import Grid, Rounded, Steps, Unrounded
from duckanon._methods.releasable.safe_numbers import TOO_MUCH, SafeNumbers

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

    def draw(self, scores: Reals, can_be: Bools, rows: Ints, people: Ints | None, k: int) -> Bools:
        """Choose the new rows that are equal: those of the largest scores, as many as in the released rows.

        New rows can be equal where both columns have a regular number. Numbers that fewer than k people have equal, or
        different, nobody has so in the release.
        """
        rows = rows[self.can_be[rows]]
        kind = self.is_equal[rows].astype(np.int64)
        different, equal = (count_people(kind, None if people is None else people[rows], 2) >= k).tolist()
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

    def exchange(self, source: Floats, column: Floats, random: np.random.Generator) -> Ints:
        """Exchange numbers of the column between new rows until none is equal to the source, in the usual order.

        Partners are rows of near ranks first, farther away in each round. Return the row whose number each row gets.
        """
        holder = np.argsort(column, kind="stable")  # of each number, in ascending order
        rows, ordered = holder.copy(), column[holder]
        rank = np.empty_like(holder)
        rank[holder] = np.arange(len(holder))
        limits = np.searchsorted(ordered, source, "right" if self.sign < 0 else "left")
        for number in range(1, _ROUNDS + 1):
            progress.check()
            bad = np.flatnonzero(self._is_wrong(source, ordered[rank]))
            if not len(bad):
                break
            near = random.integers(1, max(2, len(rank) * number // _ROUNDS), len(bad))
            wanted = limits[bad] - near if self.sign > 0 else limits[bad] + near - 1
            if self.sign == 0:
                wanted = rank[bad] + near * random.choice([-1, 1], len(bad))
            partners, first = np.unique(holder[np.clip(wanted, 0, len(holder) - 1)], return_index=True)
            apart = ~np.isin(partners, bad)
            bad, partners = bad[first][apart], partners[apart]
            right = ~self._is_wrong(source[bad], ordered[rank[partners]])
            right &= ~self._is_wrong(source[partners], ordered[rank[bad]])
            bad, partners = bad[right], partners[right]
            rank[bad], rank[partners] = rank[partners], rank[bad].copy()
            holder[rank[bad]], holder[rank[partners]] = bad, partners
        return np.asarray(rows[rank])

    def _is_wrong(self, source: Floats, column: Floats) -> Bools:
        return np.asarray(source == column if self.sign == 0 else self.sign * (source - column) <= 0)


def find_moving_columns(pairs: Sequence[EqualNumbers], columns: Sequence[int]) -> dict[int, set[int]]:
    """Return for each column those whose numbers move with it; leave a column out that would move another of them."""
    together = {index: {index} for index in columns}
    for equal in pairs:
        pair = {equal.source, equal.column}
        together |= dict.fromkeys(pair & together.keys(), pair)
    return {index: moved for index, moved in together.items() if len(moved & together.keys()) == 1}


def find_equal_numbers(
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
    values = {index: read_doubles(columns[index].array) for index in candidates}
    shares = {}
    for first, second in combinations(candidates, 2):
        if columns[first].type == columns[second].type:
            regular = [numbers[first].is_regular, numbers[second].is_regular]
            share = float(((values[first] == values[second]) & regular[0] & regular[1]).mean())
            if share >= _SHARE:
                chance = _expect_by_chance(values[first][regular[0]], values[second][regular[1]], len(regular[0]))
                if share >= _BEYOND_CHANCE * chance:
                    shares[first, second] = share
    pairs: list[EqualNumbers] = []
    used: set[int] = set()
    for pair in sorted(shares, key=lambda pair: (-shares[pair], pair)):
        if not used.intersection(pair):
            equal = _learn_pair(pair, values, numbers, people, k)
            if equal is not None:
                pairs.append(equal)
                used.update(pair)
    return pairs


def _expect_by_chance(first: Floats, second: Floats, rows: int) -> float:
    """Return the share of rows that would be equal if the regular numbers of two columns were independent."""
    (values, first_counts), (second_values, second_counts) = (
        np.unique(column, return_counts=True) for column in (first, second)
    )
    _, index, second_index = np.intersect1d(values, second_values, assume_unique=True, return_indices=True)
    return float((first_counts[index] / rows) @ (second_counts[second_index] / rows))


def _learn_pair(
    pair: tuple[int, int], values: Mapping[int, Floats], numbers: Mapping[int, SafeNumbers], people: Ints | None, k: int
) -> EqualNumbers | None:
    """Learn what two columns share; None where too few people do, or their numbers are rare in one of the two."""
    first, second = pair
    can_be = numbers[first].is_regular & numbers[second].is_regular
    is_equal = can_be & (values[first] == values[second])
    if count_people(is_equal.astype(np.int64), people, 2)[1] < k:
        return None
    counts = [int(np.count_nonzero(numbers[index].is_regular)) for index in pair]
    source, column = (first, second) if counts[0] >= counts[1] else (second, first)
    coarse = _choose_coarser(numbers[source], numbers[column])
    if coarse is None:
        return None
    rare = np.unique(np.concatenate([_place_rare(numbers[index], coarse.grid) for index in pair]))
    ordered = np.sort(coarse.places[is_equal])
    least = min(numbers[first].least, numbers[second].least)
    shared = replace(coarse, is_regular=is_equal, rare=rare, ordered=ordered, least=least)
    if shared.shift > _MOST_MOVED:
        return None
    different = can_be & ~is_equal
    above = values[source][different] > values[column][different]
    usual = float(above.mean()) if count_people(different.astype(np.int64), people, 2)[1] >= k else 0.5
    sign = 1 if usual >= _ORDERED else -1 if usual <= 1 - _ORDERED else 0
    return EqualNumbers(source, column, is_equal, can_be, shared, sign)


def _choose_coarser(first: SafeNumbers, second: SafeNumbers) -> SafeNumbers | None:
    """Return the numbers of the grid whose values the other grid has, too; None where there is none."""
    for coarse, fine in ((first, second), (second, first)):
        if _contains(fine.grid, coarse.grid):
            low, high = _find_common_range(fine.grid, coarse.grid)
            return replace(coarse, places=np.clip(coarse.places, low, high)) if low <= high else None
    return None


def _find_common_range(fine: Grid, coarse: Grid) -> tuple[int, int]:
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


def _place_rare(numbers: SafeNumbers, grid: Grid) -> Ints:
    """Return the places of rare numbers in another grid; numbers that it lacks are never drawn."""
    values = numbers.grid.array(numbers.rare, None)
    places = grid.places(values)
    return np.asarray(places[read_doubles(grid.array(places, None)) == read_doubles(values)])


def add_offsets(offsets: Sequence[Formula], index: int, numbers: Mapping[int, Floats], is_regular: Bools) -> Floats:
    """Return the numbers of a column that are those of another one plus a constant, NaN elsewhere.

    Args:
        offsets: The columns that are a constant apart.
        index: The column.
        numbers: The regular numbers that are known, NaN where there is none.
        is_regular: Where the column has a regular number.
    """
    values = np.full(len(is_regular), np.nan)
    for source, constant in _list_offsets(offsets, index, numbers):
        values = np.where(np.isnan(values) & is_regular, numbers[source] + constant, values)
    return values


def find_rows_apart(
    offsets: Sequence[Formula],
    index: int,
    numbers: Mapping[int, SafeNumbers],
    drawn: Collection[int],
    rows: Ints,
) -> Ints:
    """Return the rows of which a number does not follow from a column that is drawn."""
    for source, _ in _list_offsets(offsets, index, drawn):
        rows = rows[~numbers[source].is_regular[rows]]
    return rows


def place_values(numbers: SafeNumbers, column: ColumnParts, values: Floats) -> tuple[Ints, Bools]:
    """Return the places of values, and which have none: their column has no such number, or only a rare one."""
    places = numbers.grid.places(round_numbers(column, values))
    return places, ~_is_exact(numbers, places, values) | np.isin(places, numbers.rare)


def _list_offsets(offsets: Sequence[Formula], index: int, known: Collection[int]) -> Iterator[tuple[int, float]]:
    """Give the known columns that a column is a constant apart from, and the constants."""
    for offset in offsets:
        (source,), constant = offset.sources, offset.constant
        if index == offset.column and source in known:
            yield source, constant
        elif index == source and offset.column in known:
            yield offset.column, -constant


def _is_exact(numbers: SafeNumbers, places: Ints, values: Floats) -> Bools:
    """Tell which places have the values that they were found for."""
    return np.isclose(read_doubles(numbers.grid.array(places, None)), values, rtol=1e-9, atol=0.0)


def share_rare_places(
    numbers: Mapping[int, SafeNumbers], columns: Sequence[ColumnParts], offsets: Sequence[Formula]
) -> dict[int, SafeNumbers]:
    """Let neither of two columns that are a constant apart have a number that is rare in the other.

    A column of which too little would be left keeps its own: then rows are replaced in which it would be rare.
    """
    numbers_of = dict(numbers)
    for offset in (*offsets, *offsets):  # once to the source of all, once back
        (source,), constant = offset.sources, offset.constant
        for index, other, apart in ((source, offset.column, -constant), (offset.column, source, constant)):
            values = read_doubles(numbers_of[other].grid.array(numbers_of[other].rare, None)) + apart
            places = numbers_of[index].grid.places(round_numbers(columns[index], values))
            places = places[_is_exact(numbers_of[index], places, values)]
            with_more = replace(numbers_of[index], rare=np.union1d(numbers_of[index].rare, places))
            if with_more.shift <= max(TOO_MUCH, numbers_of[index].shift):
                numbers_of[index] = with_more
    return numbers_of
