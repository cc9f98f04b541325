"""The columns of a table as rows of a matrix, features x records, and back.

Numbers are standardised, or their logarithms are, with an indicator for NULL; categories are one +-1 row per value
(Thesis, Section 4.1), and come back by the largest row of their group. Choices between many values, such as 900
districts, get a few coordinates each: the principal directions of the means of all other features (a correspondence
analysis where there are none). Indicators would cost the square of their number. Decoding coordinates cuts choices and
rows in two across the same direction until one choice is left, at the cost of sorting the rows.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from duckanon._core.common import progress
from duckanon._core.common.arrays import Array, Bools, Floats, Ints, Reals, sql_type
from duckanon._core.common.imports import import_function
from duckanon._core.common.names import unknown_column
from duckanon._core.encoding import arrow

WIDE = 40
"""Choices of more values are given coordinates: indicators cost the square of their number."""
_MOST = 8  # coordinates of a value
_BEYOND_NOISE = 1.2  # times the largest singular value that two unrelated choices have


def find_coordinates(counts: Floats, sums: Floats) -> Reals:
    """Return coordinates of choices, of so many rows each, by which they differ most in other features.

    All that is linear between a choice and the other features are the means of these for each value, of which the
    principal directions are taken; given are choices by features, the sums of features of mean 0 over the rows of a
    choice. Without any other features, the order of the choices is all there is. Coordinates are of mean 0 over the
    rows; the first has a variance of 1, the others the smaller the less they say about the other features.
    """
    weights = np.sqrt(counts / counts.sum())[:, None]
    means = sums / np.maximum(counts, 1)[:, None]
    _, spread, directions = np.linalg.svd(weights * means, full_matrices=False)
    kept = min(_MOST, int((spread > 1e-6 * max(spread.max(initial=0.0), 1e-300)).sum()))
    if not kept:
        means = np.arange(len(counts))[:, None] - np.average(np.arange(len(counts)), weights=counts)
        directions, kept = np.ones((1, 1)), 1
        spread = np.array([np.sqrt(np.average(means[:, 0] ** 2, weights=counts)) or 1.0])
    return np.asarray((means @ directions[:kept].T / spread[0]).astype(np.float32))


def sum_features(codes: Sequence[Ints], choices: Sequence[int], blocks: Iterable[Reals]) -> list[Floats]:
    """Sum features, given in blocks of rows that follow each other, less their means, over the rows of each choice.

    Of each column the choice of every row is given, and how many there are; its sums are choices by features.
    """
    sums: list[Any] = [0.0] * len(codes)
    start = 0
    for block in blocks:
        progress.check()
        features = np.ascontiguousarray(block.T, np.float64)
        for index, (column, count) in enumerate(zip(codes, choices, strict=True)):
            here = column[start : start + len(block)]
            sums[index] = sums[index] + np.stack([np.bincount(here, feature, count) for feature in features], axis=1)
        start += len(block)
    shares = [np.bincount(column, minlength=count) / len(column) for column, count in zip(codes, choices, strict=True)]
    return [total - share[:, None] * total.sum(axis=0) for total, share in zip(sums, shares, strict=True)]


def count_choice_pairs(codes: Ints, choices: int, other_codes: Ints, other_choices: int) -> Floats:
    """Count the rows of each pair of choices."""
    cells = np.bincount(codes * other_choices + other_codes, minlength=choices * other_choices)
    return cells.reshape(choices, other_choices).astype(np.float64)


def find_correspondences(cells: Floats, people: int) -> tuple[Floats, Floats] | None:
    """Return coordinates of two wide choices in which they go along; None where they do not beyond chance.

    Principal coordinates of a correspondence analysis, as far as its singular values stand out of what chance gives,
    which depends on how many people have these rows: most of the cells of such a table are of a few rows.
    """
    rows = float(cells.sum())
    shares = [cells.sum(axis=1) / rows, cells.sum(axis=0) / rows]
    scale = np.sqrt(np.outer(*shares))
    standardised = np.divide(cells / rows, scale, out=np.zeros_like(scale), where=scale > 0) - scale
    spread, left, right = _find_singular_vectors(standardised, _MOST)
    noise = sum(np.sqrt(count / max(people, 1)) for count in cells.shape)
    kept = int((spread > _BEYOND_NOISE * noise).sum())
    if not kept:
        return None
    lengths = [np.sqrt(np.where(share > 0, share, 1.0))[:, None] for share in shares]
    return left[:, :kept] * spread[:kept] / lengths[0], right[:, :kept] * spread[:kept] / lengths[1]


def _find_singular_vectors(matrix: Floats, most: int) -> tuple[Floats, Floats, Floats]:
    """Return the largest singular values, at most so many, and their vectors, as columns.

    This takes a tenth of the time of all of them.
    """
    if matrix.shape[0] > matrix.shape[1]:
        spread, right, left = _find_singular_vectors(matrix.T, most)
        return spread, left, right
    count = len(matrix)
    eigh = import_function("scipy.linalg:eigh")
    squares, left = eigh(matrix @ matrix.T, subset_by_index=[max(count - most, 0), count - 1])
    spread, left = np.sqrt(np.maximum(squares[::-1], 0.0)), left[:, ::-1]
    return spread, left, matrix.T @ left / np.maximum(spread, 1e-12)


def locate_choices(codes: Sequence[Ints], choices: Sequence[int], sums: Sequence[Floats]) -> list[ChoiceCoordinates]:
    """Place several wide choices, given the choice of every row, how many there are, and sums of other features.

    What two wide choices have to do with each other counts only where there is no other feature
    (`sum_features`): it needs as many coordinates as there are values, and a few of them would spoil what the others
    say about the rest.
    """
    located = []
    for index, (column, count, features) in enumerate(zip(codes, choices, sums, strict=True)):
        if not features.shape[1]:
            for other in (number for number in range(len(codes)) if number != index):
                cells = count_choice_pairs(column, count, codes[other], choices[other])
                correspondences = find_correspondences(cells, len(column))
                if correspondences is not None:
                    features = np.hstack([features, cells.sum(axis=1)[:, None] * correspondences[0]])
        counts = np.bincount(column, minlength=count)
        located.append(ChoiceCoordinates(find_coordinates(counts.astype(np.float64), features), counts))
    return located


def apportion(counts: Ints, total: int) -> Ints:
    """Divide a total in proportion to counts; none is more than one off, and small ones come as often as they should.

    Examples:
        >>> apportion(np.array([3, 3, 4]), 5).tolist()
        [2, 1, 2]
    """
    ends = np.floor(np.cumsum(counts) * (total / counts.sum()) + 0.5).astype(np.int64)
    return np.asarray(np.diff(ends, prepend=0))


@dataclass(frozen=True)
class ChoiceCoordinates:
    """The coordinates of choices, and a tree, balanced by counts of rows, that cuts them in two until one is left."""

    coordinates: Reals
    counts: Ints

    def assign_choices(self, scores: Reals, wanted: Ints) -> Ints:
        """Choose for every row a value near its coordinates, such that each is chosen as often as it is wanted.

        Choices are cut in two across the direction in which they are widest, and rows across the same one, as many to
        each side as its choices want; over and over, until one choice is left. The cost is that of sorting the rows.

        Examples:
            >>> places = ChoiceCoordinates(np.array([[0.0], [5.0]]), np.array([20, 10]))
            >>> places.assign_choices(np.array([[3.0], [1.0], [2.0]]), np.array([2, 1])).tolist()
            [1, 0, 0]
        """
        leaves, cuts = self._tree
        before = np.concatenate([[0], np.cumsum(wanted[leaves])])
        rows = np.arange(len(scores))
        for number, (first, cut, last, direction) in enumerate(cuts):
            if number % 64 == 0:
                progress.check()
            start, middle, end = before[first], before[cut], before[last]
            if start < middle < end:
                here = rows[start:end]
                along = np.argpartition(scores[here] @ direction, middle - start)
                rows[start:end] = here[along]
        codes = np.empty(len(scores), np.int64)
        codes[rows] = np.repeat(leaves, wanted[leaves])
        return codes

    def groups(self, least: float) -> Ints:
        """Put choices into groups of neighbours: branches of the tree, cut as long as they have twice so many rows.

        Examples:
            >>> ChoiceCoordinates(np.array([[0.0], [5.0], [1.0]]), np.array([20, 10, 20])).groups(25).tolist()
            [0, 1, 0]
        """
        leaves, cuts = self._tree
        before = np.concatenate([[0], np.cumsum(self.counts[leaves])])
        is_first = np.zeros(len(leaves), np.int64)
        for first, cut, last, _ in cuts:
            is_first[cut] = before[last] - before[first] >= 2 * least
        groups = np.empty_like(leaves)
        groups[leaves] = np.cumsum(is_first)
        return groups

    @cached_property
    def _tree(self) -> tuple[Ints, list[tuple[int, int, int, Reals]]]:
        """Return the choices in the order of the leaves, and the cuts: first leaf, first one beyond the cut, end."""
        leaves = np.arange(len(self.counts))
        cuts = []
        nodes = [(0, len(leaves))]
        while nodes:
            first, last = nodes.pop()
            if last - first < 2:
                continue
            choices = leaves[first:last]
            direction = _find_widest_direction(self.coordinates[choices], self.counts[choices])
            choices = choices[np.argsort(self.coordinates[choices] @ direction, kind="stable")]
            leaves[first:last] = choices
            ends = np.cumsum(self.counts[choices])
            cut = first + 1 + min(int(np.searchsorted(ends, ends[-1] / 2)), last - first - 2)
            cuts.append((first, cut, last, direction))
            nodes += [(first, cut), (cut, last)]
        return leaves, cuts


def _find_widest_direction(coordinates: Reals, weights: Ints) -> Reals:
    """Return the direction in which coordinates, so many rows at each, are widest."""
    known = np.maximum(weights, 1)
    centred = (coordinates - np.average(coordinates, axis=0, weights=known)).astype(np.float64)
    return np.asarray(np.linalg.eigh((centred * known[:, None]).T @ centred)[1][:, -1].astype(coordinates.dtype))


LARGEST_NUMBER = 1e150  # squares of larger numbers, summed, come near the largest double


def subtract_code(codes: Ints, low: int) -> Floats:
    """Subtract a code from codes, exactly even where the difference does not fit a signed 64-bit integer."""
    if len(codes) == 0:
        return np.zeros(0)
    if int(codes.min()) - low >= -(2**63) and int(codes.max()) - low < 2**63:
        return np.subtract(codes, low, dtype=np.int64).astype(np.float64)
    unsigned, base = codes.view(np.uint64), np.uint64(low % 2**64)
    return np.where(codes >= low, (unsigned - base).astype(np.float64), -(base - unsigned).astype(np.float64))


@dataclass(frozen=True)
class NumberColumn:
    """A number, date or time: one standardised row, and a +-1 row that says where it was NULL if it ever was.

    Attributes:
        low, high: Its range: codes (see `arrow.read_codes`) for whole steps, floats otherwise.
        step: For codes: all are `low` plus a multiple of it.
        decimals: For floats: the decimals that they are rounded to (negative: powers of ten); None where no six
            suffice.
        logged: Whether the logarithm is standardised instead of the number.
        mean, deviation: Of what is standardised, codes counted from `low`, over the rows that are not NULL.
        nullable: Whether there is a second row.
    """

    name: str
    type: pa.DataType
    low: int | float
    high: int | float
    step: int
    decimals: int | None
    logged: bool
    mean: float
    deviation: float
    nullable: bool

    @property
    def width(self) -> int:
        """The number of matrix columns."""
        return 2 if self.nullable else 1

    def fill(self, array: pa.Array, out: Reals) -> None:
        """Write the rows of the matrix for these records; NULL is filled with the mean."""
        valid = arrow.find_valid(array)
        numbers = self._numbers(array)
        with np.errstate(over="ignore", invalid="ignore"):
            if self.logged:
                lowest = self._from_zero
                shifted = numbers + lowest if self._exact else numbers
                numbers = np.log(np.maximum(shifted, lowest))  # a number that is not positive: as the smallest one
            row = np.subtract(numbers, self.mean, dtype=np.float64)
            row /= self.deviation
        if valid is not None:
            row[~valid] = 0.0
        if not math.isfinite(float(row.sum())):
            raise ValueError(f'column "{self.name}" holds NaN or infinity; remove these rows or set them to NULL.')
        out[0] = row
        if self.nullable:
            out[1] = -1.0
            if valid is not None:
                out[1][~valid] = 1.0

    def back(self, rows: Reals) -> pa.Array:
        """Return the numbers of these records: rounded to the column's own steps, inside its range."""
        values = np.multiply(rows[0], self.deviation, dtype=np.float64)
        values += self.mean
        if self.logged:
            top = float(self.high - self.low) + self._from_zero if self._exact else float(self.high)
            np.clip(values, math.log(self._from_zero), math.log(top), out=values)
            np.exp(values, out=values)
            if self._exact:
                values -= self._from_zero
        valid = rows[1] <= 0 if self.nullable else None
        return arrow.make_array(self.codes(values) if self._exact else self._round(values), self.type, valid)

    @property
    def _exact(self) -> bool:
        return isinstance(self.low, int)

    @property
    def _from_zero(self) -> float:
        """The smallest number, in code steps for codes."""
        return float(self.low - arrow.zero_of(self.type)) if isinstance(self.low, int) else self.low

    def _numbers(self, array: pa.Array) -> Reals:
        if array.type != self.type:
            if arrow.is_moment(self.type):
                array = array.cast(self.type, safe=False)
            elif arrow.arrow_kind(self.name, array.type) == "category":
                raise ValueError(
                    f'column "{self.name}" must hold numbers ({sql_type(self.type)}); got {sql_type(array.type)}.'
                )
            else:
                values = arrow.read_reals(array)
                return values * 10.0 ** arrow.scale_of(self.type) - self._from_zero if self._exact else values
        return (
            subtract_code(arrow.read_codes(self.name, array), int(self.low))
            if self._exact
            else arrow.read_floats(array)
        )

    def codes(self, values: Floats) -> Ints:
        """Return the codes of numbers counted from `low`, on the column's steps and inside its range; `values` goes."""
        steps = (int(self.high) - int(self.low)) // self.step
        highest = float(steps)
        if int(highest) > steps:  # rounded up: past 2^53 steps not every count is a double
            highest = math.nextafter(highest, 0.0)
        values /= self.step
        counts = np.clip(np.rint(values, out=values), 0.0, highest, out=values).astype(np.uint64)
        counts *= np.uint64(self.step)
        counts += np.uint64(int(self.low) % 2**64)  # wraps around, as two's complement does
        return counts.view(np.int64)

    def _round(self, values: Floats) -> Floats:
        if self.decimals is not None:
            np.round(values, self.decimals, out=values)
            values += 0.0  # -0.0, which a small negative number is rounded to, becomes 0.0
        return np.clip(values, self.low, self.high, out=values)


@dataclass(frozen=True)
class CategoryColumn:
    """Texts or booleans: one +-1 row for two values, else one for each value, sorted, NULL being one more, the last."""

    name: str
    type: pa.DataType
    values: tuple[Any, ...]

    @property
    def width(self) -> int:
        """The number of matrix columns."""
        return 1 if len(self.values) == 2 else len(self.values)

    def fill(self, array: pa.Array, out: Reals) -> None:
        """Write the rows of the matrix for these records; a value that was never seen is 0 or -1 throughout."""
        if arrow.arrow_kind(self.name, array.type) != "category":
            raise ValueError(
                f'column "{self.name}" must hold categories ({sql_type(self.type)}); got {sql_type(array.type)}.'
            )
        indices, listed = arrow.read_categories(array)
        known = {value: code for code, value in enumerate(self.values)}
        unknown = len(self.values)
        codes = np.array([*(known.get(value, unknown) for value in listed), known.get(None, unknown)], np.intp)
        if self.width == 1:
            out[0] = np.array([-1.0, 1.0, 0.0], out.dtype)[codes].take(indices, mode="wrap")  # -1, NULL, is the last
            return
        out[:] = -1.0
        rows = codes.take(indices, mode="wrap")
        records = np.arange(len(rows))
        if (codes == unknown).any():
            records = np.flatnonzero(rows < unknown)
            rows = rows[records]
        out[rows, records] = 1.0

    def back(self, rows: Reals) -> pa.Array:
        """Return the category of every record: by sign, or the largest of its group."""
        if self.width == 1:
            return arrow.make_categories((rows[0] > 0).astype(np.int16), list(self.values), self.type)
        return arrow.make_categories(_find_largest_row(rows), list(self.values), self.type)


@dataclass(frozen=True)
class CoordinateColumn(CategoryColumn):
    """Texts of many values: a few rows for the coordinates of the values in place of one for each.

    Each value comes back as often, in proportion, as rows held it.
    """

    places: ChoiceCoordinates

    @property
    def width(self) -> int:
        """The number of matrix columns."""
        return int(self.places.coordinates.shape[1])

    def fill(self, array: pa.Array, out: Reals) -> None:
        """Write the rows of the matrix for these records; a value that was never seen is in the middle."""
        indices, listed = arrow.read_categories(array)
        known = {value: code for code, value in enumerate(self.values)}
        codes = [*(known.get(value, -1) for value in listed), known.get(None, -1)]
        coordinates = np.vstack([self.places.coordinates, np.zeros(self.width, np.float32)])[codes]
        out[:] = coordinates.T.take(indices, axis=1, mode="wrap")  # -1, NULL, is the last

    def back(self, rows: Reals) -> pa.Array:
        """Return the category of every record: a near one, each as often as it was."""
        wanted = apportion(self.places.counts, rows.shape[1])
        return arrow.make_categories(self.places.assign_choices(rows.T, wanted), list(self.values), self.type)


SpectralColumn = NumberColumn | CategoryColumn


def _find_largest_row(rows: Reals) -> NDArray[np.int16]:
    """Return the index of the largest row for every column, without the transposition of numpy's argmax."""
    best = rows[0].copy()
    winner = np.zeros(rows.shape[1], np.int16)
    above_best: Bools = np.empty(rows.shape[1], np.bool_)
    for index in range(1, len(rows)):
        np.greater(rows[index], best, out=above_best)
        np.copyto(winner, np.int16(index), where=above_best)
        np.maximum(best, rows[index], out=best)
    return winner


FEWEST_ROWS = 200
"""The least that a spectral release takes: components of fewer records show single ones (REFERENCES.md, Thesis, point
10)."""
ROWS_PER_COMPONENT = 8
"""The same for tables of many components."""


@dataclass(frozen=True)
class Encoding:
    """Encoding of the columns of a table, whose schema is given, as those of a matrix, fitted by `fit.fit_columns`.

    Categories are coded as in Thesis, Section 4.1, one +-1 column per value, and come back by the largest of their
    group. Corrected: a threshold at 0 leaves rows with no category or several (REFERENCES.md, Thesis, point 6). Numbers
    come back with the decimals and inside the range that their column had; unrounded, a classifier tells a release from
    its original every time.
    """

    columns: tuple[SpectralColumn, ...]
    schema: pa.Schema

    @property
    def width(self) -> int:
        """The number of matrix columns."""
        return sum(column.width for column in self.columns)

    @property
    def groups(self) -> list[slice]:
        """The matrix columns of each source column."""
        return [slice(*ends) for ends in pairwise(accumulate((column.width for column in self.columns), initial=0))]

    def matrix(self, table: pa.Table | pa.RecordBatch, dtype: Any = np.float64) -> Array:
        """Encode rows, records x matrix columns, of this table or of another one with the same columns, found by name.

        A category that the encoding has not seen is -1 throughout its group (0 where the group has two values); NULL
        where it saw none is the mean of a number.
        """
        out = np.empty((table.num_rows, self.width), dtype)
        rows = max(1, 2**20 // self.width)
        batches = table.to_batches() if isinstance(table, pa.Table) else [table]
        start = 0
        for batch in batches:
            for first in range(0, batch.num_rows, rows):
                piece = batch.slice(first, rows)
                out[start : start + piece.num_rows] = self.features(piece, dtype).T
                start += piece.num_rows
        return out

    def features(self, batch: pa.RecordBatch, dtype: Any = np.float64, out: Array | None = None) -> Array:
        """Encode one batch the other way round, matrix columns x records, into `out` where it is given."""
        if out is None:
            out = np.empty((self.width, batch.num_rows), dtype)
        for column, group in zip(self.columns, self.groups, strict=True):
            index = batch.schema.get_field_index(column.name)
            if index < 0:
                raise ValueError(unknown_column(column.name, batch.schema.names))
            column.fill(batch.column(index), out[group])
        return out

    def table(self, matrix: Array) -> pa.Table:
        """Decode a matrix, records x matrix columns, into a table of the source's schema."""
        rows = max(1, 2**20 // self.width)
        batches = [
            self.batch(np.ascontiguousarray(matrix[first : first + rows].T)) for first in range(0, len(matrix), rows)
        ]
        return pa.Table.from_batches(batches, self.schema)

    def batch(self, features: Array) -> pa.RecordBatch:
        """Decode one batch the other way round, matrix columns x records."""
        arrays = [column.back(features[group]) for column, group in zip(self.columns, self.groups, strict=True)]
        return pa.record_batch(arrays, schema=self.schema)


def refuse_few_rows(rows: int, rank: int) -> None:
    """Refuse a table of fewer than 200 rows, or 8 per component: components of few records are single records."""
    needed = max(FEWEST_ROWS, ROWS_PER_COMPONENT * rank)
    if rows < needed:
        raise ValueError(f"at least {needed:,} rows are needed for {rank:,} independent components; got {rows:,}.")
