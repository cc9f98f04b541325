"""A table as parts and as a matrix: what is drawn of each column, and how regressions see it.

A column has choices (categories, special values, NULL) and, where the choice is "a number", the number's place on its
grid. The matrix has normal scores of numbers, indicators of choices, and coordinates of choices between many values.
Then come the two judgements on a column of numbers that decide how it is drawn: numbers of few values are categories,
and rows with a rare value among them are not learnt from. Counts by group and by tree node stand at the end.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from duckanon._core.common.arrays import Bools, Floats, Ints, Reals, is_number
from duckanon._core.common.people import NOBODY, count_people
from duckanon._core.encoding.column_codecs import ChoiceCoordinates
from duckanon._core.encoding.column_split import FEW_VALUES, clean_floats, join_chunks
from duckanon._core.encoding.parts import ColumnParts, read_doubles
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
        people: The person of each row; None where every row is another person.
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
    wide: Mapping[int, ChoiceCoordinates] = field(default_factory=dict)

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

        ``random`` draws donors of numbers where there are none of their own (`_fill_numbers`); None: the mean where
        there are none at all, for comparing rows with each other.
        """
        count = len(next(iter(parts.codes.values())))
        widths = [self.choice_width(index) for index in self.choices]
        matrix = np.empty((count, sum(self.widths)), np.float32)
        ends = np.cumsum([0, *widths]).tolist()
        for index, start, end in zip(self.choices, ends[:-1], ends[1:], strict=True):
            self._write_choice(index, parts.codes[index], matrix[:, start:end])
        for position, equal in enumerate(self.equal, ends[-1]):
            matrix[:, position] = 2.0 * parts.is_equal[equal.column] - 1.0
        start = ends[-1] + len(self.equal)
        regular_rows = []
        for number, (index, numbers) in enumerate(self.numbers.items()):
            scores = numbers.normal_scores(parts.places[index])
            is_number = parts.codes[index] == len(self.columns[index].outcomes)
            if random is not None and index in parts.is_equal:
                is_number = is_number & ~parts.is_equal[index]
            donees = np.flatnonzero(~is_number)
            if len(donees):
                donors = (
                    None if random is None or not is_number.any() else random.choice(scores[is_number], len(donees))
                )
                scores[donees] = 0.0 if donors is None else donors
            regular_rows.append(is_number)
            matrix[:, start + number] = scores
        if random is not None:
            for number, is_number in enumerate(regular_rows):
                _fill_numbers(matrix, start + number, is_number, random)
        return matrix

    def encode_choice(self, index: int, codes: Ints) -> Reals:
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


def _fill_numbers(matrix: Reals, column: int, is_regular: Bools, random: np.random.Generator) -> None:
    """Fill a column where it is not regular, in place: a regression's answer, and what a random donor has beyond it.

    Donors drawn at random for the whole number would weaken its relations by the share of those who have none, and the
    mean would give them a value of their own.
    """
    known, missing = np.flatnonzero(is_regular), np.flatnonzero(~is_regular)
    if not len(missing) or not len(known):
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
    answers = (np.delete(matrix[missing], column, axis=1) - mean) @ factors + centre
    matrix[missing, column] = answers + random.choice(beyond, len(missing))


_FEW_NUMBERS = 64  # values that are not whole: at most as many are categories, as equivalence scales are
_RARE, _RARE_BESIDE = 0.02, 0.05  # the share of rows with rarer values then, of all and of those without the commonest
_GAPS = 0.2  # of the places between the shared values of such a column, at least: measurements have nearly all of them
MOST_UNUSUAL = 0.03
"""The share of people whose few-valued number is rare: at most as many are not learnt from."""


def name_categories(table: pa.Table, people: Ints | None, k: int) -> list[str]:
    """Name the numbers that are categories: whole ones of few values, and others nearly all of which k people share."""
    names = []
    for name, column in zip(table.column_names, table.columns, strict=True):
        if not is_number(column.type) or column.null_count == len(column):
            continue
        values = read_doubles(clean_floats(join_chunks(column)))
        known = np.flatnonzero(~np.isnan(values))
        if people is None:
            distinct, counts = np.unique(values[known], return_counts=True)
            holders = counts
        else:
            distinct, index, counts = np.unique(values[known], return_inverse=True, return_counts=True)
            holders = count_people(index.astype(np.int64), people[known], len(distinct))
        if is_categorical(distinct, counts, holders, k):
            names.append(name)
    return names


def is_categorical(distinct: Floats, counts: Ints, holders: Ints, k: int) -> bool:
    """Tell whether numbers are categories, from the different ones with the rows and the people of each."""
    if not len(distinct) or (distinct == np.rint(distinct)).all():
        return 0 < len(distinct) <= FEW_VALUES
    rows, rare = int(counts.sum()), int(counts[holders < k].sum())
    is_few = 2 <= np.count_nonzero(holders >= k) <= _FEW_NUMBERS and _has_gaps(distinct[holders >= k])
    return bool(is_few and rare <= min(_RARE * rows, _RARE_BESIDE * (rows - int(counts.max()))))


def _has_gaps(values: Floats) -> bool:
    """Tell whether numbers are no even scale, as measurements in steps of a tenth are."""
    steps = np.diff(values)
    with np.errstate(over="ignore"):
        places = (values[-1] - values[0]) / steps.min() + 1
    return bool(len(values) < (1 - _GAPS) * places)


def is_usual(columns: Sequence[ColumnParts]) -> Bools:
    """Tell which rows have no rare number among few: merged with the next one, it would go with impossible others."""
    is_common = np.ones(len(columns[0].codes), np.bool_)
    for column in columns:
        if column.regular is None and is_number(column.type):
            values = read_doubles(column.array)
            outcomes = read_doubles(pa.array(column.outcomes, column.type))[column.codes]
            is_common &= (values == outcomes) | (np.isnan(values) & np.isnan(outcomes))
    return is_common


def drop_unusual(rows: Ints, usual: Bools) -> Ints:
    """Leave rows with a rare number among few out, where they are few: else too little is left to learn from."""
    is_common = usual[rows]
    return rows[is_common] if np.count_nonzero(~is_common) <= MOST_UNUSUAL * len(rows) else rows


def weigh_rows(people: Ints | None) -> Floats | None:
    """Weigh rows such that all rows of a person weigh one together; None where every row is another person.

    The weight of some rows is then at most the number of their people.
    """
    if people is None:
        return None
    _, index, rows = np.unique(people, return_inverse=True, return_counts=True)
    return np.where(people == NOBODY, 0.0, 1.0 / rows[index])


def sum_up_tree(of_leaves: Floats, parents: Ints) -> Floats:
    """Add what leaves have to all nodes above them; nodes come after their parents."""
    sums = of_leaves.copy()
    for node in range(len(parents) - 1, 0, -1):
        sums[parents[node]] += sums[node]
    return sums


def count_cells(groups: Ints, codes: Ints, shape: tuple[int, int], weights: Floats | None) -> Floats:
    """Count rows, or add up their weights, by group and code."""
    cells = np.bincount(groups * shape[1] + codes, weights, shape[0] * shape[1])
    return np.asarray(cells.reshape(shape), np.float64)
