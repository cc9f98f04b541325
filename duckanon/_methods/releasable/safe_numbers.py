"""Releasable numbers of a column by their rank: shared by at least k people, or by nobody.

`find_range` gives the ends that a column may be released with, behind each of which stand k people. `SafeNumbers` says
which places are rare, and draws places at ranks: all that is drawn lies between ends of groups of k people, and rare
places are left for the nearest free ones. Of whole numbers nearly every one is somebody's: where leaving out those of
fewer than k people would move the column too much, those of one or two people are left out. Limits are raised by
chance, since a fixed one would tell whether one of three people is there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from duckanon._core.common.arrays import Bools, Floats, Ints, find_run_starts, measure_runs, sort_distinct
from duckanon._core.common.imports import import_function
from duckanon._core.common.people import NOBODY, count_people
from duckanon._core.encoding.arrow import find_valid
from duckanon._core.encoding.parts import ColumnParts
from duckanon._methods.releasable import marginals
from duckanon._methods.releasable.grids import (
    Grid,
    find_free_places,
    grid_of,
    has_digits,
    keep_shared_values,
    places_of,
    refine_grid,
)


class Bounds(NamedTuple):
    """The numbers that a column may be released with: those between two places that k people stand behind."""

    grid: Grid
    lowest: int
    highest: int

    @classmethod
    def of(cls, column: ColumnParts, rows: int, k: int) -> Bounds:
        """Learn them from the first rows of a column, the table's: others are only compared with them."""
        assert column.regular is not None
        grid = grid_of(column.regular)
        regular = places_of(grid, column.array.slice(0, rows))[column.is_regular[:rows]]
        values, counts = np.unique(regular, return_counts=True)
        return cls(grid, *find_range(grid, regular, None, k, values[counts >= k]))

    def array(self, column: ColumnParts, rows: int, random: np.random.Generator) -> pa.Array:
        """Return the regular numbers of a column, none of them out of bounds.

        The first `rows` are the table's: where a row has no regular number, one among these is drawn.
        """
        places = places_of(self.grid, column.array).copy()  # they may be the column's own memory
        regular = places[:rows][column.is_regular[:rows]]
        missing = np.flatnonzero(~column.is_regular)
        places[missing] = random.choice(regular, len(missing)) if len(regular) else self.lowest
        return self.grid.array(np.clip(places, self.lowest, self.highest), None)


def find_range(grid: Grid, places: Ints, person_of_row: Ints | None, k: int, held: Ints) -> tuple[int, int]:
    """Return the ends of the numbers that may be released; they never cut off places shared by k people."""
    ordered, person_in_order = marginals.sort_places(places, person_of_row)
    numbers = grid.numbers(ordered)
    low = _find_end(numbers, person_in_order, k, grid.origin)
    high = _find_end(numbers[::-1], None if person_in_order is None else person_in_order[::-1], k, grid.origin)
    ends = np.clip(grid.nearest(np.array([low, high])), ordered[0], ordered[-1])
    return int(min([ends[0], *held[:1]])), int(max([ends[1], *held[-1:]]))


def _find_end(outermost_first: Floats, person_in_order: Ints | None, k: int, origin: float) -> float:
    """Return the median of the k outermost numbers, one of each person, rounded towards the k-th.

    It depends on ranks: one person's fortune moves it by a rank, whatever it is. A mean of k numbers would give the
    outermost away to those who know the others. Numbers are counted from an origin that is one person's.
    """
    numbers = outermost_first
    if person_in_order is not None:
        firsts = np.sort(np.unique(person_in_order, return_index=True)[1])
        firsts = firsts[person_in_order[firsts] != NOBODY]
        numbers = numbers[firsts] if len(firsts) else numbers
    numbers = numbers[:k]
    end, inwards = float(np.median(numbers)), float(numbers[-1])
    if end == inwards:
        return end
    most = abs(inwards - end) / 5  # about one person is moved more: five are in between
    unit = 10.0 ** math.floor(math.log10(most))
    unit *= 5 if 5 * unit <= most else 2 if 2 * unit <= most else 1
    rounded = math.ceil if inwards > end else math.floor
    return rounded((end + origin) / unit) * unit - origin


_NEIGHBOURS = 0.001  # of rare places, such as those of unrounded numbers: how far they are moved need not be counted


def are_apart(rare: Ints, step: int) -> bool:
    """Tell whether hardly any two rare places are neighbours: then one moves by a step, and past no other number."""
    return bool(np.count_nonzero(rare[1:] == rare[:-1] + step) <= _NEIGHBOURS * len(rare))


def measure_shift(ordered: Ints, rare: Ints, step: int) -> float:
    """Return the largest share of rows that is moved past some number, where none that is rare comes out."""
    if are_apart(rare, step):
        return 0.0
    values, rows = _count_places(ordered)
    moved = find_free_places(values, rare, step, int(values[0]), int(values[-1]))
    return 1.0 if moved is None else marginals.measure_distance(values, moved, rows)


def measure_piling(ordered: Ints, rare: Ints, step: int) -> float:
    """Return how many times as often two rows have the same number, where none that is rare comes out."""
    values, rows = _count_places(ordered)
    moved = find_free_places(values, rare, step, int(values[0]), int(values[-1]))
    if moved is None:
        return np.inf
    together = np.add.reduceat(rows, find_run_starts(moved)).astype(np.float64)
    return float((together**2).sum() / (rows.astype(np.float64) ** 2).sum())


def _count_places(ordered: Ints) -> tuple[Ints, Ints]:
    starts = find_run_starts(ordered)
    return ordered[starts], measure_runs(starts, len(ordered))


_FEWEST = 3  # people who share a released number, at least, where k would change the column too much; never one or two
_MARGIN = 3  # people more that must share a number, at most, where it is three
_SLIGHT, NOTICEABLE, TOO_MUCH = 0.01, 0.05, 0.25
"""The share of the rows moved past a number: noticeable, floats get one more decimal; too much, a column would lose its
shape, as the whole numbers of a small table, each of a few people."""

_MOST_PILING = 3.0
"""Times as many pairs of rows with the same number: 15,000 dates in seven years, each of six people, were released as
200 of ten. Boosted trees told all columns from other people's with AUC .73, and with .53 if dates of three are, too."""


@dataclass(frozen=True)
class SafeNumbers:
    """The regular numbers of a column.

    Attributes:
        grid: The values that may be released.
        places: Where the value of each row stands; arbitrary where it is not regular.
        rare: The places shared by fewer than `least` people, ascending: they are never released.
        ordered: The places of the regular rows, ascending.
        least: k, or `_FEWEST` where the whole numbers of a column would lose their shape otherwise.
        usual: Where these are rows of a larger table: places at even levels of its distribution, none of them rare.
        held: Then also the places shared by k people of that table, ascending.
        grouped: Places shared by k people that are drawn as those of fewer are, ascending.
    """

    grid: Grid
    places: Ints
    is_regular: Bools
    rare: Ints
    ordered: Ints
    k: int
    least: int
    usual: Ints | None = None
    held: Ints | None = None
    grouped: Ints | None = None

    @classmethod
    def of(
        cls, column: ColumnParts, people: Ints | None, k: int, chance: np.random.Generator | None = None
    ) -> SafeNumbers:
        """Learn which numbers of a column may be released; refuse a column that would lose its shape.

        So would the whole numbers of a small table, each of a few people. `chance` draws how many people more must
        share each number (`_blur_limits`); None: none.
        """
        assert column.regular is not None
        grid = keep_shared_values(grid_of(column.regular), column, people, k, chance)
        numbers = _learn_numbers(grid, column, people, k)
        if numbers.least < k and numbers.shift > NOTICEABLE and (more_places := refine_grid(grid)) is not None:
            numbers = _learn_numbers(keep_shared_values(more_places, column, people, k, chance), column, people, k)
        if numbers.shift > TOO_MUCH:
            raise too_few_numbers(column.name, k)
        return numbers if chance is None else _blur_limits(numbers, people, chance)

    def for_rows(self, column: ColumnParts) -> SafeNumbers:
        """Return what was learnt of a whole table for some of its rows."""
        return replace(self, places=places_of(self.grid, column.array), is_regular=column.is_regular)

    @cached_property
    def shift(self) -> float:
        """Return the largest share of the rows that is moved past some number, where none that is rare comes out."""
        return measure_shift(self.ordered, self.rare, self.grid.step)

    def normal_scores(self, places: Ints) -> Floats:
        """Return the normal scores of places: what a normal variable has at the same rank among the rows."""
        count = len(self.ordered)
        starts = find_run_starts(self.ordered)
        values, ends = self.ordered[starts], np.append(starts, count)  # so many rows are below each value, and in all
        order = np.argsort(places)
        asked = places[order]  # ascending ones are found in a fifth of the time
        index = np.searchsorted(values, asked)
        is_held = values[np.minimum(index, len(values) - 1)] == asked
        ranks = np.empty(len(places))
        ranks[order] = (ends[index] + ends[np.minimum(index + is_held, len(values))]) / 2
        quantiles = import_function("scipy.special:ndtri")
        return np.asarray(quantiles(np.clip(ranks / count, 0.5 / count, 1 - 0.5 / count)))

    def at_ranks(self, scores: Floats, rows: Ints, people: Ints | None) -> Ints:
        """Return the places of numbers that have the ranks of scores, distributed like those of the released rows."""
        if len(scores) == 0:
            return np.zeros(0, np.int64)
        places: Ints = np.empty(len(scores), np.int64)
        at = self.quantiles(rows, people)
        places[np.argsort(scores, kind="stable")] = at((np.arange(len(scores)) + 0.5) / len(scores))
        return places

    def quantiles(self, rows: Ints, people: Ints | None) -> Callable[[Floats], Ints]:
        """Return the quantile function of the released rows: it takes levels from 0 to 1, and returns places."""
        rows = rows[self.is_regular[rows]]
        person_of_row = None if people is None else people[rows]
        if (
            count_people(np.zeros(len(rows), np.int64), person_of_row, 1)[0] < self.k
        ):  # of a group: the whole table's instead
            if self.usual is not None:
                return self._usual_at
            rows = np.flatnonzero(self.is_regular)
            person_of_row = None if people is None else people[rows]
        distribution, lowest, highest = _learn_distribution(
            self.grid, self.places[rows], person_of_row, self.k, self.held, self.grouped
        )

        def at(levels: Floats) -> Ints:
            places = distribution.draw(*distribution.pieces.at(levels))
            moved = find_free_places(places, self.rare, self.grid.step, lowest, highest)
            if moved is None:  # nothing inside of the range may be released
                moved = find_free_places(places, self.rare, self.grid.step, int(self.ordered[0]), int(self.ordered[-1]))
            assert moved is not None  # `of` has looked
            return moved

        return at

    def _usual_at(self, levels: Floats) -> Ints:
        assert self.usual is not None
        return self.usual[(levels * len(self.usual)).astype(np.int64)]


def too_few_numbers(name: str, k: int) -> ValueError:
    """Say that a column of its releasable numbers would lose its shape."""
    return ValueError(
        f'column "{name}" has too few numbers inside its range shared by {k} people or by nobody; make it coarser, '
        "lower k or leave it out of cols."
    )


def _learn_distribution(
    grid: Grid, places: Ints, person_of_row: Ints | None, k: int, known: Ints | None, grouped: Ints | None = None
) -> tuple[marginals.Numbers, int, int]:
    """Return the distribution of places, with rare ones, and the range of what may be released."""
    distribution = marginals.of_numbers(grid, places, person_of_row, k, known, grouped)
    held = distribution.pieces.value[np.isnan(distribution.pieces.low)]
    lowest, highest = find_range(grid, places, person_of_row, k, held)
    return distribution._replace(rare=distribution.rare[:0], lowest=lowest, highest=highest), lowest, highest


def _blur_limits(numbers: SafeNumbers, people: Ints | None, chance: np.random.Generator) -> SafeNumbers:
    """Raise, by chance for each number, how many people must share it to be released, and to keep its share.

    At a fixed limit, whether the number of three people comes out would tell whether one of them is there. It stays at
    the limit where a column would lose its shape.
    """
    person_of_row = None if people is None else people[numbers.is_regular]
    values, holders = _count_holders(numbers.places[numbers.is_regular], person_of_row)
    above_k = numbers.k // 4 + 1
    more = chance.integers(0, _MARGIN + 1 if numbers.least < numbers.k else above_k, len(values))
    raised = sort_distinct(
        np.concatenate([numbers.rare, values[holders < numbers.least + more]]), is_nearly_sorted=True
    )
    grouped = values[(holders >= numbers.k) & (holders < numbers.k + chance.integers(0, above_k, len(values)))]
    blurred = replace(numbers, rare=raised, grouped=grouped)
    lost = max(NOTICEABLE, 2 * numbers.shift)
    return blurred if blurred.shift <= lost else replace(numbers, grouped=grouped)


def _learn_numbers(grid: Grid, column: ColumnParts, people: Ints | None, k: int) -> SafeNumbers:
    places = places_of(grid, column.array)
    ordered = np.sort(places[column.is_regular])
    rare, least = find_rare_places(grid, column, people, k)
    return SafeNumbers(grid, places, column.is_regular, rare, ordered, k, least)


def find_rare_places(
    grid: Grid, column: ColumnParts, people: Ints | None, k: int, slight: float = _SLIGHT
) -> tuple[Ints, int]:
    """Return the places of values that must not be released, special ones too, and the `least` of `SafeNumbers`.

    All that is released is drawn between the ends of groups of at least k people. Amounts may be any number in between;
    of whole numbers such as ages nearly all are somebody's, and those of fewer than k people are left out only if that
    moves no more than a `slight` share of the rows, and does not pile dates up at the few that k people share.
    Otherwise those of one or two people are. What is moved is counted twice: to the nearest value that is left, and to
    what is drawn, whose ends are nearer.
    """
    places = places_of(grid, column.array)
    valid = find_valid(column.array)
    known = np.arange(len(places)) if valid is None else np.flatnonzero(valid)
    # A value of more digits than most is none that is released, and its holders do not hold the place beside it; unless
    # most have more, whose digits only say how they were computed.
    if has_digits(grid, column):
        is_held = pc.equal(grid.array(places[known], None), column.array.drop_null())
        known = known[is_held.to_numpy(zero_copy_only=False)]
    values, holders = _count_holders(places[known], None if people is None else people[known])
    rare = values[holders < k]
    ordered = np.sort(places[column.is_regular])
    few = values[holders < _FEWEST]
    if k <= _FEWEST or not len(rare) or are_apart(rare, grid.step):
        return rare, k
    if measure_shift(ordered, rare, grid.step) > slight or measure_piling(ordered, rare, grid.step) > _MOST_PILING:
        return few, _FEWEST
    person_of_row = None if people is None else people[column.is_regular]
    moved, still = _measure_shifts(grid, places[column.is_regular], person_of_row, k, (rare, few))
    return (few, _FEWEST) if moved > slight and still < moved else (rare, k)


def _count_holders(places: Ints, people: Ints | None) -> tuple[Ints, Ints]:
    """Return the different places, ascending, and how many people are at each."""
    if people is None:
        values, rows = np.unique(places, return_counts=True)
        return values, rows.astype(np.int64)
    values, codes = np.unique(places, return_inverse=True)
    return values, count_people(codes.astype(np.int64), people, len(values))


def _measure_shifts(
    grid: Grid, places: Ints, person_of_row: Ints | None, k: int, left_out: Sequence[Ints]
) -> list[float]:
    """Return the share of the rows that is moved past a number in what is drawn, by what is left out."""
    if count_people(np.zeros(len(places), np.int64), person_of_row, 1)[0] < k:
        return [0.0 for _ in left_out]
    distribution, lowest, highest = _learn_distribution(grid, places, person_of_row, k, None)
    drawn = distribution.draw(*distribution.pieces.at((np.arange(len(places)) + 0.5) / len(places)))
    values, rows = np.sort(places), np.ones(len(places), np.int64)
    free = [find_free_places(drawn, rare, grid.step, lowest, highest) for rare in left_out]
    return [1.0 if one is None else marginals.measure_distance(values, np.sort(one), rows) for one in free]
