"""One pass over a table: the encoding of its columns, and mean and covariance of the encoded matrix.

Whether a logarithm is taken, which categories there are and which mean fills NULLs is known only after the last row. So
the pass sums over a wide matrix of everything that may be needed, of which the encoded matrix is an affine function:
its covariance follows from that of the wide matrix. The cost is the product of each batch with itself. Columns that
identify people (numbers of persons and rows, names) are refused, since they are no data.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from duckanon._core.common import progress
from duckanon._core.common.arguments import refuse_unless, spell_columns
from duckanon._core.common.arrays import Bools, Floats, Ints, Reals, is_number, sql_type
from duckanon._core.common.names import match_columns
from duckanon._core.common.rules import OneOf
from duckanon._core.encoding.arrow import (
    arrow_kind,
    buffer_type,
    find_valid,
    is_moment,
    read_categories,
    read_codes,
    read_floats,
    zero_of,
)
from duckanon._core.encoding.column_codecs import (
    LARGEST_NUMBER,
    CategoryColumn,
    ChoiceCoordinates,
    CoordinateColumn,
    Encoding,
    NumberColumn,
    subtract_code,
)
from duckanon._core.encoding.sources import use_source


@dataclass
class WideMatrix:
    """Rows of numbers, given out to columns as they need them, for one batch of records at a time.

    Sums and products of the rows over all batches grow by zeros, for a new category was absent before.
    """

    size: int = 0
    totals: Floats = field(default_factory=lambda: np.zeros(0))
    products: Floats = field(default_factory=lambda: np.zeros((0, 0)))
    _cells: Floats = field(default_factory=lambda: np.zeros((0, 0)))
    _records: int = 0

    def next(self) -> int:
        """Give out one more row."""
        self.size += 1
        return self.size - 1

    def start(self, records: int) -> None:
        """Begin a batch: all zeros."""
        self._records = records
        if self._cells.shape[0] < self.size or self._cells.shape[1] < records:
            self._cells = np.zeros((self.size, records))
        self.rows().fill(0.0)  # rows that were not given out yet are zeros anyway

    def rows(self) -> Floats:
        """Return the rows of this batch, for the columns to write into; to be asked for again after `next`."""
        if self.size > len(self._cells):  # at least twice as many: categories come one by one
            self._cells = np.pad(self._cells, ((0, max(self.size, 2 * len(self._cells)) - len(self._cells)), (0, 0)))
        return self._cells[: self.size, : self._records]

    def finish(self) -> None:
        """End a batch: add it to the sums."""
        rows = self.rows()
        grown = self.size - len(self.totals)
        if grown:
            self.totals = np.pad(self.totals, (0, grown))
            self.products = np.pad(self.products, (0, grown))
        self.totals += rows.sum(axis=1)
        self.products += rows @ rows.T


@dataclass
class ShiftedRow:
    """A number moved and scaled by what the first batch says, so that sums of its powers lose nothing."""

    slot: int
    shift: float = 0.0
    scale: float = 0.0
    cubes: float = 0.0

    def write(self, numbers: Floats, valid: Bools | None, wide: WideMatrix, cubes: bool) -> None:
        """Write the moved and scaled numbers, which are those of the valid records, and add up their cubes if asked."""
        if self.scale == 0.0:
            self.shift = float(numbers.mean())
            deviation = float(np.abs(numbers - self.shift).mean())
            self.scale = deviation if deviation > 0 else max(abs(self.shift), 1e-200)
        row = wide.rows()[self.slot]
        moved = np.subtract(numbers, self.shift, out=row if valid is None else None)
        moved /= self.scale
        if valid is not None:
            row[valid] = moved
        if cubes:
            with np.errstate(over="ignore", invalid="ignore"):
                self.cubes += float(np.dot(moved * moved, moved))

    def moments(self, count: int, wide: WideMatrix) -> tuple[float, float, float]:
        """Return mean, standard deviation and skewness of the moved and scaled numbers."""
        squares = float(wide.products[self.slot, self.slot])
        mean = float(wide.totals[self.slot]) / count
        variance = squares / count - mean * mean
        if not variance > 0:
            return mean, 0.0, 0.0
        with np.errstate(over="ignore", invalid="ignore"):
            third = np.float64(self.cubes) / count - 3 * mean * squares / count + 2 * np.float64(mean) ** 3
            return mean, math.sqrt(variance), float(third / np.float64(variance) ** 1.5)


MOST_CATEGORIES = 1000
"""Each category is a column of the matrix, and the covariance grows with the square of their number."""
_NEARLY_ALL = 0.95  # the share of rows with a value of their own, from which on numbers may be those of people
_NAMED = re.compile(
    r"(^|[^a-z])(id|pid|uid|key|ssn|mrn|seqn|serial|serialno)$"
    r"|(person|patient|customer|user|household|row|case)[^a-z]?(id|no|nr|number)$"
)
_FEWEST_ROWS_OF_TEXTS = 100  # in shorter tables different values are no sign
_CRITICAL = 1.2  # of sqrt(rows) times the distance to even numbers: nine in ten columns of even numbers are below


def refuse_identifier(name: str, values: Floats, distinct: int) -> None:
    """Refuse whole numbers that look like an identifier's."""
    if looks_like_identifier(name, values, distinct):
        raise ValueError(
            f'column "{name}" has {distinct:,} different whole numbers in {len(values):,} rows, as an identifier has; '
            "leave it out of cols or generalize it first."
        )


def refuse_distinct_texts(name: str, distinct: int, rows: int) -> None:
    """Refuse texts that are different for most people."""
    if distinct == rows or (rows > 100 and 2 * distinct > rows):
        raise ValueError(
            f'column "{name}" has {distinct:,} different values in {rows:,} rows, as an identifier has; '
            "leave it out of cols or generalize it first."
        )


def refuse_many_categories(name: str, distinct: int) -> None:
    """Refuse more categories than a release can tell apart."""
    if distinct > MOST_CATEGORIES:
        raise ValueError(
            f'column "{name}" has more than {MOST_CATEGORIES:,} different values; '
            "leave it out of cols or generalize it first."
        )


def looks_like_identifier(name: str, values: Floats, distinct: int) -> bool:
    """Tell whether whole numbers, different for nearly everybody, are named or shaped like an identifier's.

    Numbers of rows, and of people drawn from a register, are spread evenly from the smallest to the largest; amounts
    are not. Values are those of all rows, without NULLs, so many of them distinct.

    Examples:
        >>> numbers = np.arange(1000.0)
        >>> looks_like_identifier("SEQN", numbers, 1000), looks_like_identifier("x", numbers**2, 1000)
        (True, False)
    """
    rows = len(values)
    if rows < _FEWEST_ROWS_OF_TEXTS or distinct < _NEARLY_ALL * rows or not bool((values == np.rint(values)).all()):
        return False
    if _NAMED.search(name.lower()):
        return True
    ordered = np.sort(values)
    width = ordered[-1] - ordered[0]
    expected = (ordered - ordered[0]) / width
    away = np.abs(expected - (np.arange(rows) + 0.5) / rows).max()
    return bool(away * np.sqrt(rows) < _CRITICAL)


AffineRows: TypeAlias = list[dict[int, float]]  # one matrix column each: coefficients by row of the wide matrix

MOST_DECIMALS = 6
"""Numbers with more decimals count as unrounded."""
_HEAVY_SKEWNESS = 2.0  # that of an exponential distribution: beyond it a logarithm is worth trying
FEWEST_DECIMALS = -6
"""Numbers rounded to millions."""
_SAMPLE = 1024  # rows looked at first: most columns turn out there to have no step or decimals of their own


@dataclass
class NumberReader:
    """A number, date or time: its range, its steps, and the rows number, logarithm and NULL of the wide matrix."""

    name: str
    type: pa.DataType
    exact: bool
    log: bool | None
    wide: WideMatrix
    count: int = 0
    null_count: int = 0
    low: Any = None
    high: Any = None
    origin: int = 0
    step: int = 0
    decimals: int | None = FEWEST_DECIMALS
    raw: ShiftedRow = field(init=False)
    logs: ShiftedRow | None = None
    null_slot: int | None = None

    def __post_init__(self) -> None:
        self.raw = ShiftedRow(self.wide.next())
        if is_moment(self.type) and self.log is None:
            self.log = False

    def read(self, array: pa.Array) -> None:
        """Look at the next records and write them into the wide matrix: NULL is 0, and 1 in a row of its own."""
        valid = find_valid(array)
        numbers: Any = read_codes(self.name, array) if self.exact else read_floats(array)
        if valid is not None:
            self.null_count += array.null_count
            if self.null_slot is None:
                self.null_slot = self.wide.next()
            self.wide.rows()[self.null_slot] = ~valid
            numbers = numbers[valid]
        if len(numbers) == 0:
            return
        self.count += len(numbers)
        low, high = numbers.min(), numbers.max()
        read = self._read_codes if self.exact else self._read_floats
        shifted = read(numbers, low.item(), high.item())
        if self.log is not False:
            self._read_logs(numbers, valid)
        self.raw.write(shifted, valid, self.wide, self.log is None)

    def finish(self, rows: int, lenient: bool = False) -> tuple[NumberColumn, AffineRows, Floats]:
        """Fit the column; return it with its rows of the affine map from the wide matrix to the encoded one."""
        if self.count == 0:
            raise ValueError(f'column "{self.name}" holds nothing but NULL; leave it out of cols.')
        if self.low == self.high and not self.null_count and not lenient:
            raise ValueError(f'column "{self.name}" has the same value in every row; leave it out of cols.')
        used, logged = self.raw, False
        mean, deviation, skewness = self.raw.moments(self.count, self.wide)
        if self.logs is not None:
            moments_of_logs = self.logs.moments(self.count, self.wide)
            if self.log or (skewness > _HEAVY_SKEWNESS and abs(moments_of_logs[2]) < skewness):
                used, logged = self.logs, True
                mean, deviation, skewness = moments_of_logs
        deviation = deviation or 1.0
        centre = used.shift + used.scale * mean
        from_origin = self.low - self.origin if self.exact and not logged else 0
        centre -= from_origin
        mean = (centre + from_origin - used.shift) / used.scale  # of the centre as it was rounded
        column = NumberColumn(
            name=self.name,
            type=self.type,
            low=self.low,
            high=self.high,
            step=max(self.step, 1),
            decimals=self.decimals,
            logged=logged,
            mean=centre,
            deviation=1.0 if self.low == self.high else used.scale * deviation,
            nullable=self.null_slot is not None,
        )
        map_rows = [{used.slot: 1.0 / deviation}]
        constants = [-mean / deviation]
        if self.null_slot is not None:
            map_rows[0][self.null_slot] = mean / deviation
            map_rows.append({self.null_slot: 2.0})
            constants.append(-1.0)
        return column, map_rows, np.array(constants)

    def _read_logs(self, numbers: Any, valid: Bools | None) -> None:
        zero = zero_of(self.type) if self.exact else 0
        if self.low <= zero:
            if self.log:
                raise ValueError(
                    f'column "{self.name}" has no logarithms: it must hold positive numbers; leave it out of log.'
                )
            self.log, self.logs = False, None
            return
        if self.logs is None:
            self.logs = ShiftedRow(self.wide.next())
        from_zero = subtract_code(numbers, zero) if self.exact else numbers.astype(np.float64, copy=False)
        self.logs.write(np.log(from_zero), valid, self.wide, self.log is None)

    def _read_codes(self, codes: Ints, low: int, high: int) -> Floats:
        if is_moment(self.type) and max(-low, high) >= 2 ** (31 if self.type.bit_width == 32 else 63) - 1:
            raise ValueError(f'column "{self.name}" holds NaN or infinity; remove these rows or set them to NULL.')
        if self.low is None:
            self.origin = int(codes[0])
        self.low = low if self.low is None else min(low, self.low)
        self.high = high if self.high is None else max(high, self.high)
        if self.step != 1:
            self._read_steps(codes)
        return subtract_code(codes, self.origin)

    def _read_steps(self, codes: Ints) -> None:
        if self.high - self.low >= 2**63:
            self.step = 1
            return
        apart = codes - self.origin
        for part in (apart[:_SAMPLE], apart[_SAMPLE:]):
            if self.step != 1 and (self.step == 0 or (part % self.step).any()):
                self.step = math.gcd(self.step, int(np.gcd.reduce(part)))

    def _read_floats(self, floats: Reals, low: float, high: float) -> Floats:
        if not (math.isfinite(low) and math.isfinite(high)):
            raise ValueError(f'column "{self.name}" holds NaN or infinity; remove these rows or set them to NULL.')
        if max(-low, high) > LARGEST_NUMBER:
            raise ValueError(
                f'column "{self.name}" holds numbers beyond {LARGEST_NUMBER:g}; set them to NULL, or divide the column '
                "first."
            )
        self.low = low if self.low is None else min(low, self.low)
        self.high = high if self.high is None else max(high, self.high)
        doubles = floats.astype(np.float64, copy=False)
        for part in (slice(None, _SAMPLE), slice(_SAMPLE, None)):
            while self.decimals is not None and not _have_decimals(floats[part], doubles[part], self.decimals):
                self.decimals = self.decimals + 1 if self.decimals < MOST_DECIMALS else None
        return doubles


@dataclass
class CategoryReader:
    """Texts or booleans: the values so far, each with a row of its own in the wide matrix."""

    name: str
    type: pa.DataType
    wide: WideMatrix
    count: int = 0
    null_count: int = 0
    values: dict[Any, int] = field(default_factory=dict)

    def read(self, array: pa.Array) -> None:
        """Look at the next records and write them into the wide matrix."""
        indices, listed = read_categories(array)
        listed.append(None)
        present = np.bincount(np.where(indices < 0, len(listed) - 1, indices), minlength=len(listed))
        slots = np.zeros(len(listed), np.intp)
        for index in np.flatnonzero(present):
            value = listed[index]
            if value is None:
                self.null_count += int(present[index])
            if value not in self.values:
                if value is not None:
                    refuse_many_categories(self.name, len(self.values) - (None in self.values) + 1)
                self.values[value] = self.wide.next()
            slots[index] = self.values[value]
        self.count += len(indices)
        self.wide.rows()[slots.take(indices, mode="wrap"), np.arange(len(indices))] = 1.0  # -1, NULL, is the last

    def finish(self, rows: int, lenient: bool = False) -> tuple[CategoryColumn, AffineRows, Floats]:
        """Fit the column; return it with its rows of the affine map from the wide matrix to the encoded one."""
        known = sorted(value for value in self.values if value is not None)
        if len(self.values) == 1 and not lenient:
            content = "the same value in every row" if known else "nothing but NULL"
            raise ValueError(f'column "{self.name}" has {content}; leave it out of cols.')
        if not pa.types.is_boolean(self.type) and not lenient:
            refuse_distinct_texts(self.name, len(known), rows)
            if pa.types.is_dictionary(self.type) and len(known) - 1 > np.iinfo(buffer_type(self.type.index_type)).max:
                raise ValueError(
                    f'column "{self.name}" has {len(known)} values, too many for {sql_type(self.type)}; cast it to '
                    "text."
                )
        values = (*known, None) if self.null_count else tuple(known)
        column = CategoryColumn(self.name, self.type, values)
        shown = values[1:] if len(values) == 2 else values
        return column, [{self.values[value]: 2.0} for value in shown], np.full(len(shown), -1.0)


@dataclass
class CoordinateReader:
    """Texts that are whole numbers from 0 on, whose coordinates are given, in rows of their own in the wide matrix."""

    name: str
    type: pa.DataType
    wide: WideMatrix
    places: ChoiceCoordinates
    null_count: int = 0
    slots: list[int] = field(init=False)

    def __post_init__(self) -> None:
        self.slots = [self.wide.next() for _ in range(self.places.coordinates.shape[1])]

    def read(self, array: pa.Array) -> None:
        """Look at the next records and write them into the wide matrix."""
        indices, listed = read_categories(array)
        codes = np.array([int(value) for value in listed])
        self.wide.rows()[self.slots] = self.places.coordinates[codes].T.take(indices, axis=1)

    def finish(self, rows: int, lenient: bool = False) -> tuple[CoordinateColumn, AffineRows, Floats]:
        """Fit the column; return it with its rows of the affine map from the wide matrix to the encoded one."""
        values = tuple(str(code) for code in range(len(self.places.counts)))
        maps = [{slot: 1.0} for slot in self.slots]
        return CoordinateColumn(self.name, self.type, values, self.places), maps, np.zeros(len(self.slots))


def _have_decimals(floats: Reals, doubles: Floats, decimals: int) -> bool:
    rounded = np.round(doubles, decimals)
    return bool((rounded.astype(floats.dtype, copy=False) == floats).all())


_Reader: TypeAlias = NumberReader | CategoryReader | CoordinateReader

_WIDE_CELLS = 2**19  # of the matrix of one step: four megabytes, which the caches of most machines hold
_MOST_ROWS = 2**16  # of a step: bounds what a narrow table holds at once
_FEWEST_ROWS = 2**10  # of a step: with fewer, a wide table spends its time on starting products


@dataclass(frozen=True)
class Moments:
    """Rows, column means and covariance (divided by rows - 1) of an encoded matrix."""

    rows: int
    mean: Floats
    covariance: Floats


def choose_batch_rows(width: int) -> int:
    """Return how many rows are worked on at a time for a matrix of that many columns."""
    return min(_MOST_ROWS, max(_FEWEST_ROWS, _WIDE_CELLS // max(width, 1)))


def fit_columns(
    source: object,
    cols: Sequence[str] | None = None,
    *,
    log: Sequence[str] | None = None,
    nulls: str = "error",
    lenient: bool = False,
    is_watched: bool = False,
    places: Mapping[str, ChoiceCoordinates] | None = None,
) -> tuple[Encoding, Moments]:
    """Fit the encoding of a table and the moments of the encoded matrix in one pass.

    Whether a logarithm is taken, which categories there are and which mean fills NULLs is known only at the end. The
    pass therefore sums over a wide matrix of everything that may be needed (numbers and logarithms, both shifted by the
    first batch's mean against cancellation, 0/1 for NULL and for each category), of which the encoded matrix is an
    affine function: W -> W M' + c has covariance M C M'.

    Args:
        log: The columns whose logarithm is encoded. None: those with positive values only, a skewness above 2, and
            logarithms of a skewness closer to 0; never dates and times.
        nulls: ``'error'`` refuses NULLs, ``'category'`` encodes them, as a category, or as a number's mean with an
            indicator.
        lenient: For measuring, not for releasing: a single column, constant columns and identifiers of up to 1,000
            values are coded too, a constant number in its own unit.
        is_watched: Whether progress is told, where the number of rows is known.
        places: The coordinates of the values of columns that have many, which are the texts of 0, 1, and so on.
    """
    with use_source(source, cols) as opened:
        schema = opened.schema
        log = spell_columns("log", log, schema.names)
        refuse_unless(OneOf("error", "category"), "nulls", nulls)
        if len(schema) < (1 if lenient else 2):
            raise ValueError(f"cols must name at least two columns; got {len(schema)}.")
        match_columns("log", log or [], schema.names)
        wide = WideMatrix()
        seen = [_make_reader(column, log, wide, (places or {}).get(column.name)) for column in schema]
        rows = 0
        for batch in opened.batches(choose_batch_rows(2 * len(seen))):
            step = choose_batch_rows(wide.size)
            for start in range(0, batch.num_rows, step):
                piece = batch.slice(start, step)
                wide.start(piece.num_rows)
                for column, array in zip(seen, piece.columns, strict=True):
                    column.read(array)
                wide.finish()
                rows += piece.num_rows
            if is_watched and opened.rows:
                progress.advance(rows / opened.rows)
    if rows == 0:
        raise ValueError("the table has no rows; give one that has.")
    if nulls == "error":
        refuse_nulls({column.name: column.null_count for column in seen})
    return _finish_fit(schema, seen, wide, rows, lenient)


def _make_reader(
    column: pa.Field, log: Sequence[str] | None, wide: WideMatrix, places: ChoiceCoordinates | None
) -> _Reader:
    if places is not None:
        return CoordinateReader(column.name, column.type, wide, places)
    kind = arrow_kind(column.name, column.type)
    named = None if log is None else column.name in log
    if named and not is_number(column.type):
        raise ValueError(f'column "{column.name}" has no logarithms: it holds no numbers; got {sql_type(column.type)}.')
    if kind == "category":
        return CategoryReader(column.name, column.type, wide)
    return NumberReader(column.name, column.type, kind == "exact", named, wide)


def refuse_nulls(counts: Mapping[str, int]) -> None:
    """Refuse NULLs, those of all columns in one sentence."""
    listed = [f'column "{name}" has {count:,} NULLs' for name, count in counts.items() if count]
    if not listed:
        return
    raise ValueError(f"{', '.join(listed)}; remove these rows or say nulls := 'category'.")


def _finish_fit(
    schema: pa.Schema, seen: Sequence[_Reader], wide: WideMatrix, rows: int, lenient: bool
) -> tuple[Encoding, Moments]:
    mean = wide.totals / rows
    wide_covariance = (wide.products - rows * np.outer(mean, mean)) / max(rows - 1, 1)
    columns, maps, constants = [], [], []
    for column_seen in seen:
        column, map_rows, constant = column_seen.finish(rows, lenient)
        columns.append(column)
        maps += map_rows
        constants.append(constant)
    affine = np.zeros((len(maps), len(mean)))
    for row, entries in enumerate(maps):
        for slot, coefficient in entries.items():
            affine[row, slot] = coefficient
    covariance = affine @ wide_covariance @ affine.T
    return (
        Encoding(tuple(columns), schema),
        Moments(rows, affine @ mean + np.concatenate(constants), (covariance + covariance.T) / 2),
    )
