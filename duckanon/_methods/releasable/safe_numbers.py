"""Releasable numbers of a column by their rank: shared by at least k people, or by nobody."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pyarrow.compute as pc

from duckanon._core.common.arrays import Bools, Floats, Ints, distinct
from duckanon._core.common.imports import imported
from duckanon._core.common.people import people_in
from duckanon._core.encoding.arrow import valid_of
from duckanon._core.encoding.parts import ColumnParts
from duckanon._methods.releasable import marginals
from duckanon._methods.releasable.bounds import released_range
from duckanon._methods.releasable.grids import Grid, finer, grid_of, has_digits, off_taken, places_of, with_shared
from duckanon._methods.releasable.moved_places import are_apart, moved_share, piled

_FEWEST = 3  # people who share a released number, at least, where k would change the column too much; never one or two
_MARGIN = 3  # people more that must share a number, at most, where it is three
_SLIGHT, NOTICEABLE, TOO_MUCH = 0.01, 0.05, 0.25
"""The share of the rows moved past a number: noticeable, floats get one more decimal; too much, a column would lose its
shape, as the whole numbers of a small table, each of a few people."""

_PILED = 3.0
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
        share each number (`_unsure`); None: none.
        """
        assert column.regular is not None
        grid = with_shared(grid_of(column.regular), column, people, k, chance)
        numbers = _learnt(grid, column, people, k)
        if numbers.least < k and numbers.shift > NOTICEABLE and (more_places := finer(grid)) is not None:
            numbers = _learnt(with_shared(more_places, column, people, k, chance), column, people, k)
        if numbers.shift > TOO_MUCH:
            raise too_few_numbers(column.name, k)
        return numbers if chance is None else _unsure(numbers, people, chance)

    def for_rows(self, column: ColumnParts) -> SafeNumbers:
        """Return what was learnt of a whole table for some of its rows."""
        return replace(self, places=places_of(self.grid, column.array), is_regular=column.is_regular)

    @cached_property
    def shift(self) -> float:
        """Return the largest share of the rows that is moved past some number, where none that is rare comes out."""
        return moved_share(self.ordered, self.rare, self.grid.step)

    def normal_scores(self, places: Ints) -> Floats:
        """Return the normal scores of places: what a normal variable has at the same rank among the rows."""
        count = len(self.ordered)
        values, ends = self._ranks()
        order = np.argsort(places)
        asked = places[order]  # ascending ones are found in a fifth of the time
        index = np.searchsorted(values, asked)
        is_held = values[np.minimum(index, len(values) - 1)] == asked
        ranks = np.empty(len(places))
        ranks[order] = (ends[index] + ends[np.minimum(index + is_held, len(values))]) / 2
        quantiles = imported("duckanon._core.numbers.normal:normal_quantiles")
        return np.asarray(quantiles(np.clip(ranks / count, 0.5 / count, 1 - 0.5 / count)))

    def _ranks(self) -> tuple[Ints, Ints]:
        """Return the places that there are, and how many rows are below each of them, and in all."""
        starts = np.flatnonzero(np.concatenate([[True], self.ordered[1:] != self.ordered[:-1]]))
        return self.ordered[starts], np.append(starts, len(self.ordered))

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
        whose = None if people is None else people[rows]
        if people_in(np.zeros(len(rows), np.int64), whose, 1)[0] < self.k:  # of a group: the whole table's instead
            if self.usual is not None:
                return self._usual_at
            rows = np.flatnonzero(self.is_regular)
            whose = None if people is None else people[rows]
        found, lowest, highest = _distribution(self.grid, self.places[rows], whose, self.k, self.held, self.grouped)

        def at(levels: Floats) -> Ints:
            places = found.drawn(*found.pieces.at(levels))
            moved = off_taken(places, self.rare, self.grid.step, lowest, highest)
            if moved is None:  # nothing inside of the range may be released
                moved = off_taken(places, self.rare, self.grid.step, int(self.ordered[0]), int(self.ordered[-1]))
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


def _at_levels(
    grid: Grid, places: Ints, whose: Ints | None, k: int, levels: Floats, known: Ints | None = None
) -> tuple[Ints, int, int]:
    """Return the places at levels of the distribution of some, rare ones too, and the range of what may be released."""
    found, lowest, highest = _distribution(grid, places, whose, k, known)
    return found.drawn(*found.pieces.at(levels)), lowest, highest


def _distribution(
    grid: Grid, places: Ints, whose: Ints | None, k: int, known: Ints | None, grouped: Ints | None = None
) -> tuple[marginals.Numbers, int, int]:
    """Return the distribution of places, with rare ones, and the range of what may be released."""
    found = marginals.of_numbers(grid, places, whose, k, known, grouped)
    held = found.pieces.value[np.isnan(found.pieces.low)]
    lowest, highest = released_range(grid, places, whose, k, held)
    return found._replace(rare=found.rare[:0], lowest=lowest, highest=highest), lowest, highest


def _unsure(numbers: SafeNumbers, people: Ints | None, chance: np.random.Generator) -> SafeNumbers:
    """Raise, by chance for each number, how many people must share it to be released, and to keep its share.

    At a fixed limit, whether the number of three people comes out would tell whether one of them is there. It stays at
    the limit where a column would lose its shape.
    """
    whose = None if people is None else people[numbers.is_regular]
    values, holders = _holders(numbers.places[numbers.is_regular], whose)
    above_k = numbers.k // 4 + 1
    more = chance.integers(0, _MARGIN + 1 if numbers.least < numbers.k else above_k, len(values))
    raised = distinct(np.concatenate([numbers.rare, values[holders < numbers.least + more]]), is_nearly_sorted=True)
    grouped = values[(holders >= numbers.k) & (holders < numbers.k + chance.integers(0, above_k, len(values)))]
    made = replace(numbers, rare=raised, grouped=grouped)
    lost = max(NOTICEABLE, 2 * numbers.shift)
    return made if made.shift <= lost else replace(numbers, grouped=grouped)


def _learnt(grid: Grid, column: ColumnParts, people: Ints | None, k: int) -> SafeNumbers:
    places = places_of(grid, column.array)
    ordered = np.sort(places[column.is_regular])
    rare, least = rare_places(grid, column, people, k)
    return SafeNumbers(grid, places, column.is_regular, rare, ordered, k, least)


def rare_places(
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
    valid = valid_of(column.array)
    known = np.arange(len(places)) if valid is None else np.flatnonzero(valid)
    # A value of more digits than most is none that is released, and its holders do not hold the place beside it; unless
    # most have more, whose digits only say how they were computed.
    if has_digits(grid, column):
        is_held = pc.equal(grid.array(places[known], None), column.array.drop_null())
        known = known[is_held.to_numpy(zero_copy_only=False)]
    values, holders = _holders(places[known], None if people is None else people[known])
    rare = values[holders < k]
    ordered = np.sort(places[column.is_regular])
    few = values[holders < _FEWEST]
    if k <= _FEWEST or not len(rare) or are_apart(rare, grid.step):
        return rare, k
    if moved_share(ordered, rare, grid.step) > slight or piled(ordered, rare, grid.step) > _PILED:
        return few, _FEWEST
    whose = None if people is None else people[column.is_regular]
    moved, still = _moved(grid, places[column.is_regular], whose, k, (rare, few))
    return (few, _FEWEST) if moved > slight and still < moved else (rare, k)


def _holders(places: Ints, people: Ints | None) -> tuple[Ints, Ints]:
    """Return the different places, ascending, and how many people are at each."""
    if people is None:
        values, rows = np.unique(places, return_counts=True)
        return values, rows.astype(np.int64)
    values, codes = np.unique(places, return_inverse=True)
    return values, people_in(codes.astype(np.int64), people, len(values))


def _moved(grid: Grid, places: Ints, whose: Ints | None, k: int, left_out: Sequence[Ints]) -> list[float]:
    """Return the share of the rows that is moved past a number in what is drawn, by what is left out."""
    if people_in(np.zeros(len(places), np.int64), whose, 1)[0] < k:
        return [0.0 for _ in left_out]
    drawn, lowest, highest = _at_levels(grid, places, whose, k, (np.arange(len(places)) + 0.5) / len(places))
    values, rows = np.sort(places), np.ones(len(places), np.int64)
    free = [off_taken(drawn, rare, grid.step, lowest, highest) for rare in left_out]
    return [1.0 if one is None else marginals.distance(values, np.sort(one), rows) for one in free]
