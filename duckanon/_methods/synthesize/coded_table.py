"""A table's parts as a matrix: normal scores of numbers, indicators and coordinates of choices."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from duckanon._core.common.arrays import Bools, Ints, Reals
from duckanon._core.encoding.coordinates import Places
from duckanon._core.encoding.parts import ColumnParts
from duckanon._methods.releasable.grids import Grid, grid_of
from duckanon._methods.releasable.safe_numbers import SafeNumbers
from duckanon._methods.synthesize.equal_numbers import EqualNumbers

_LEARNT_FROM = 20_000  # rows from which the numbers of those who have none are learnt
_RIDGE = 1e-3  # of the rows: keeps groups of indicators, which add up to a constant, apart


@dataclass(frozen=True)
class Parts:
    """Parts of rows, by column.

    Attributes:
        places: The places of numbers; arbitrary where another choice is made.
        is_equal: Where a number is that of another column, for those columns of which that is drawn.
    """

    codes: dict[int, Ints]
    places: dict[int, Ints]
    is_equal: dict[int, Bools]

    def move(self, columns: Collection[int], taken_from: Ints) -> None:
        """Give each row the numbers of these columns that another row has."""
        for index in columns:
            self.places[index][:] = self.places[index][taken_from]
            if index in self.is_equal:
                self.is_equal[index][:] = self.is_equal[index][taken_from]


@dataclass(frozen=True, kw_only=True)
class CodedTable:
    """A table, split into the parts of its columns.

    Attributes:
        people: Whose each row is; None where every row is another person.
        numbers, choices: The numbers that are drawn, by column, and the columns whose choices are drawn.
        equal: The numbers that are those of another column in many rows.
        k: The least number of people who share a released value.
        wide: The coordinates of choices between many values, by column.
    """

    columns: Sequence[ColumnParts]
    people: Ints | None
    numbers: dict[int, SafeNumbers]
    choices: Sequence[int]
    equal: Sequence[EqualNumbers]
    k: int
    wide: Mapping[int, Places] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        """The number of rows."""
        return len(self.columns[0].codes)

    @property
    def rank(self) -> int:
        """The number of independent components."""
        narrow = [index for index in self.choices if index not in self.wide]
        wide = sum(int(places.coordinates.shape[1]) for places in self.wide.values())
        choices = sum(self.columns[index].choices - 1 for index in narrow)
        return len(self.numbers) + len(self.equal) + wide + choices

    @property
    def grids(self) -> list[Grid | None]:
        """The grids that numbers are released with, by column; None for choices."""
        computed = [None if column.regular is None else grid_of(column.regular) for column in self.columns]
        return [self.numbers[index].grid if index in self.numbers else grid for index, grid in enumerate(computed)]

    @property
    def widths(self) -> list[int]:
        """The number of columns of the matrix that each choice, pair of equal numbers, and number takes."""
        return [self.choice_width(index) for index in self.choices] + [1] * (len(self.equal) + len(self.numbers))

    def original(self, rows: Ints) -> Parts:
        """Return the parts of rows of the table."""
        return Parts(
            {index: self.columns[index].codes[rows] for index in range(len(self.columns))},
            {index: numbers.places[rows] for index, numbers in self.numbers.items()},
            {equal.column: equal.is_equal[rows] for equal in self.equal},
        )

    def matrix(self, parts: Parts, random: np.random.Generator | None) -> Reals:
        """Encode parts: -1 or 1 for choices and for numbers that are another's, and normal scores.

        ``random`` draws donors of numbers where there are none of their own (`_fill`); None: the mean where there are
        none at all, for comparing rows with each other.
        """
        count = len(next(iter(parts.codes.values())))
        widths = [self.choice_width(index) for index in self.choices]
        matrix = np.empty((count, sum(self.widths)), np.float32)
        ends = np.cumsum([0, *widths]).tolist()
        for index, start, end in zip(self.choices, ends[:-1], ends[1:], strict=True):
            self._write_choice(index, parts.codes[index], matrix[:, start:end])
        for place, equal in enumerate(self.equal, ends[-1]):
            matrix[:, place] = 2.0 * parts.is_equal[equal.column] - 1.0
        start = ends[-1] + len(self.equal)
        own = []
        for number, (index, numbers) in enumerate(self.numbers.items()):
            scores = numbers.normal_scores(parts.places[index])
            is_own = parts.codes[index] == len(self.columns[index].outcomes)
            if random is not None and index in parts.is_equal:
                is_own = is_own & ~parts.is_equal[index]
            others = np.flatnonzero(~is_own)
            if len(others):
                donors = None if random is None or not is_own.any() else random.choice(scores[is_own], len(others))
                scores[others] = 0.0 if donors is None else donors
            own.append(is_own)
            matrix[:, start + number] = scores
        if random is not None:
            for number, is_own in enumerate(own):
                _fill(matrix, start + number, is_own, random)
        return matrix

    def coded_choice(self, index: int, codes: Ints) -> Reals:
        """Encode the choices of one column."""
        coded = np.empty((len(codes), self.choice_width(index)), np.float32)
        self._write_choice(index, codes, coded)
        return coded

    def _write_choice(self, index: int, codes: Ints, out: Reals) -> None:
        """Write coordinates, or -1 and 1: one column for two choices, else one for each."""
        if index in self.wide:
            out[:] = self.wide[index].coordinates[codes]
        elif out.shape[1] == 1:
            out[:, 0] = 2 * codes - 1
        else:
            out[:] = -1.0
            out[np.arange(len(codes)), codes] = 1.0

    def choice_width(self, index: int) -> int:
        """Return how many columns of the matrix a choice takes."""
        if index in self.wide:
            return int(self.wide[index].coordinates.shape[1])
        choices = self.columns[index].choices
        return 1 if choices == 2 else choices


def _fill(matrix: Reals, column: int, is_regular: Bools, random: np.random.Generator) -> None:
    """Fill a column where it is not regular, in place: a regression's answer, and what a random donor has beyond it.

    Donors drawn at random for the whole number would weaken its relations by the share of those who have none, and the
    mean would give them a value of their own.
    """
    known, others = np.flatnonzero(is_regular), np.flatnonzero(~is_regular)
    if not len(others) or not len(known):
        return
    if len(known) > _LEARNT_FROM:
        known = random.choice(known, _LEARNT_FROM, replace=False)
    features = np.delete(matrix[known], column, axis=1).astype(np.float64)
    target = matrix[known, column].astype(np.float64)
    mean = features.mean(axis=0)
    features -= mean
    centre = float(target.mean())
    products = features.T @ features + _RIDGE * len(known) * np.eye(features.shape[1])
    factors = np.linalg.solve(products, features.T @ (target - centre))
    beyond = target - centre - features @ factors
    answers = (np.delete(matrix[others], column, axis=1) - mean) @ factors + centre
    matrix[others, column] = answers + random.choice(beyond, len(others))
