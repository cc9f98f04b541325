"""Counts of the records of a boxed table that meet a condition: certain, possible, and by the share of their boxes.

The condition becomes regions, boxes of sets of values of each column (`regions`). A record possibly meets it where its
box has a point in a region, certainly where it has none in the regions of the negation; the estimate is the share of
its box in regions that do not overlap. Days and whole numbers are counted in steps, texts by their rank, so that a
boundary just before a value differs from one just after it. Each region costs a pass over the boxes.
"""

from __future__ import annotations

import bisect
import datetime
import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from duckanon._core.common import values
from duckanon._core.common.arrays import Bools, Floats, is_number, is_text, is_time, sql_type
from duckanon._core.common.declare import report_rows
from duckanon._core.common.labels import MICROSECONDS_PER_DAY
from duckanon._methods.intervals.declared import GROUP, INTERVAL_COUNTS
from duckanon._methods.intervals.regions import (
    FIRST,
    LAST,
    Boundary,
    ColumnEnds,
    ColumnTest,
    Region,
    Value,
    ValueSet,
    find_regions,
    parse_condition,
    separate_regions,
    unite_ranges,
)

_EPOCH = datetime.datetime(1970, 1, 1)
_MICROSECOND = datetime.timedelta(microseconds=1)


def interval_counts(table: pa.Table | None, *, condition: str) -> pa.Table:
    """Report how many records meet a condition, in each group of a table of boxes."""
    parsed = parse_condition(condition)
    if table is None:
        raise ValueError("the table has no rows to look at.")
    columns = _BoxColumns(table)
    sets: dict[ColumnTest, ValueSet] = {}

    def set_of(test: ColumnTest) -> ValueSet:
        if test not in sets:
            sets[test] = _find_values(test, columns.scale(test.column))
        return sets[test]

    where = find_regions(parsed, set_of, True)
    is_possible = columns.meets(where)
    is_certain = ~columns.meets(find_regions(parsed, set_of, False))
    # Rounding must not make an estimate of what is known.
    share = np.clip(columns.share(separate_regions(where)), is_certain.astype(np.float64), is_possible)
    group, records = (table.column(name).to_numpy() for name in (GROUP, "_duckanon_size"))
    sums = {"certain": is_certain, "estimate": share, "possible": is_possible, "records": np.ones(len(share))}
    counts = {name: np.bincount(group, records * counted) for name, counted in sums.items()}
    groups = np.flatnonzero(counts["records"])
    rows = []
    for number in groups.tolist():
        count = {name: float(count[number]) for name, count in counts.items()}
        fractions = {f"{name}_fraction": count[name] / count["records"] for name in ("certain", "estimate", "possible")}
        whole = {name: int(count[name]) for name in ("certain", "possible", "records")}
        rows.append({GROUP: number, **count, **whole, **fractions})
    return report_rows(rows, INTERVAL_COUNTS.schema)


class _ColumnScale(Protocol):
    """The meaning of a written value in a column."""

    def boundary(self, value: Value, side: int) -> Boundary:
        """Return the boundary just before a value (0), or just after it (1)."""


class _BoxColumns:
    """The columns of a table of boxes that a condition asks for."""

    def __init__(self, boxes: pa.Table) -> None:
        self._boxes = boxes
        self._spelling = {name.lower(): name for name in boxes.column_names if not name.startswith("_duckanon_")}
        self._known: dict[str, tuple[ColumnEnds, _ColumnScale]] = {}

    def scale(self, name: str) -> _ColumnScale:
        return self._column(name)[1]

    def meets(self, regions: list[Region]) -> Bools:
        """Tell which boxes have a point in any region."""
        met = np.zeros(self._boxes.num_rows, bool)
        for region in regions:
            inside = np.ones(len(met), bool)
            for name, wanted in region.items():
                inside &= self._column(name)[0].meets(wanted)
            met |= inside
        return met

    def share(self, regions: list[Region]) -> Floats:
        """Return which share of each box lies in regions that do not overlap."""
        shares = np.zeros(self._boxes.num_rows)
        for region in regions:
            share = np.ones(len(shares))
            for name, wanted in region.items():
                share *= self._column(name)[0].share(wanted)
            shares += share
        return shares

    def _column(self, name: str) -> tuple[ColumnEnds, _ColumnScale]:
        key = name.lower()
        if key not in self._known:
            if key not in self._spelling:
                raise ValueError(f'condition must name columns of the table; got "{name}".')
            spelled = self._spelling[key]
            self._known[key] = _read_column(spelled, self._boxes.column(spelled).combine_chunks())
        return self._known[key]


def _read_column(name: str, column: pa.Array) -> tuple[ColumnEnds, _ColumnScale]:
    """Take a column of intervals, or of exact values, as intervals of numbers."""
    kind = column.type
    if pa.types.is_struct(kind) and {field.name for field in kind} == {"lo", "hi"}:
        if column.null_count:
            raise ValueError(f'column "{name}" has {column.null_count} NULLs, which no interval contains; remove them.')
        low, high = column.field("lo"), column.field("hi")
        scale = _NumberScale.of(name, _find_common_type(low.type, high.type))
        ends = scale.count_steps(low, -np.inf), scale.count_steps(high, np.inf)
        if (inverted := ends[0] > ends[1]).any():
            raise ValueError(f'column "{name}" has {np.count_nonzero(inverted)} intervals whose lo is above hi.')
        return ColumnEnds(*ends, np.zeros(len(column), bool), scale.has_steps), scale
    is_null = np.asarray(column.is_null())
    if is_number(kind) or is_time(kind):
        scale = _NumberScale.of(name, kind)
        points = scale.count_steps(column, 0.0)
        return ColumnEnds(points, points, is_null, scale.has_steps), scale
    texts = _TextScale.of(name, column)
    codes = texts.codes(column)
    return ColumnEnds(codes, codes, is_null, True), texts


def _find_common_type(low: pa.DataType, high: pa.DataType) -> pa.DataType:
    """Return a type that both ends of intervals can be counted in; an end that is always open may have none."""
    if low == high or pa.types.is_null(high):
        return low
    if pa.types.is_null(low):
        return high
    if is_time(low) and is_time(high):
        return pa.timestamp("us", getattr(low, "tz", None))
    return pa.int64() if pa.types.is_integer(low) and pa.types.is_integer(high) else pa.float64()


@dataclass(frozen=True)
class _NumberScale:
    """Numbers and times: those of whole steps are counted in steps."""

    # name, kind: the column and its type
    name: str
    kind: pa.DataType
    per_step: Fraction | None  # by what a value is divided (times in microseconds), None where there are no steps

    @classmethod
    def of(cls, name: str, kind: pa.DataType) -> _NumberScale:
        if pa.types.is_date(kind):
            return cls(name, kind, Fraction(int(MICROSECONDS_PER_DAY)))
        if pa.types.is_decimal(kind):
            return cls(name, kind, Fraction(1, 10**kind.scale))
        if not (is_number(kind) or is_time(kind)):
            raise ValueError(f'column "{name}" must hold intervals of numbers or times; got {sql_type(kind)}.')
        return cls(name, kind, None if pa.types.is_floating(kind) else Fraction(1))

    @property
    def has_steps(self) -> bool:
        return self.per_step is not None

    def count_steps(self, column: pa.Array, missing: float) -> Floats:
        """Return the values of a column as numbers, with another for NULL."""
        steps = np.full(len(column), missing)
        if pa.types.is_null(column.type):
            return steps
        numbers, is_known, _ = values.take_exact_numbers(self.name, column)
        # A double holds the number of steps exactly, and what it is divided by rounds to it.
        steps[is_known] = numbers if self.per_step is None else np.round(numbers / float(self.per_step))
        return steps

    def boundary(self, value: Value, side: int) -> Boundary:
        number = self._read_moment(value) if is_time(self.kind) else value
        if not isinstance(number, Fraction):
            raise ValueError(f'condition must compare column "{self.name}" with numbers; got {_write_value(value)}.')
        if self.per_step is not None:
            steps = number / self.per_step
            return float(math.ceil(steps) if side == 0 else math.floor(steps) + 1), 0
        try:
            nearest = float(number)
        except OverflowError:
            return math.copysign(np.inf, number), int(number > 0)
        # As DuckDB does, what is compared with a FLOAT is one.
        return (nearest if pa.types.is_float64(self.kind) else float(np.float32(nearest))), side

    def _read_moment(self, value: Value) -> Fraction:
        """Read a day or a moment, in microseconds since 1970."""
        is_zoned = pa.types.is_timestamp(self.kind) and self.kind.tz is not None
        example = "'2020-01-31 12:00:00+00:00', with a time zone" if is_zoned else "'2020-01-31'"
        try:
            moment = datetime.datetime.fromisoformat(value) if isinstance(value, str) else None
        except ValueError:
            moment = None
        if moment is None or (moment.tzinfo is not None) != is_zoned:
            raise ValueError(
                f'condition must compare column "{self.name}" with times such as {example}; got {_write_value(value)}.'
            )
        if is_zoned:
            moment = moment.astimezone(datetime.UTC).replace(tzinfo=None)
        return Fraction((moment - _EPOCH) // _MICROSECOND)


@dataclass(frozen=True)
class _TextScale:
    """Texts and booleans, which only exact columns have: each counts as its rank among those that occur."""

    name: str
    is_boolean: bool
    ordered: tuple[Any, ...]

    @classmethod
    def of(cls, name: str, column: pa.Array) -> _TextScale:
        kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
        if not (is_text(kind) or pa.types.is_boolean(kind)):
            raise ValueError(
                f'column "{name}" must hold intervals, numbers, times, texts or booleans; got {sql_type(kind)}.'
            )
        return cls(name, bool(pa.types.is_boolean(kind)), tuple(sorted(column.unique().drop_null().to_pylist())))

    def codes(self, column: pa.Array) -> Floats:
        rank_of_value: Mapping[Any, int] = {value: index for index, value in enumerate(self.ordered)}
        encoded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
        code = np.array([rank_of_value.get(value, 0) for value in encoded.dictionary.to_pylist()] or [0], np.float64)
        return np.asarray(code[encoded.indices.fill_null(0).to_numpy(zero_copy_only=False)])

    def boundary(self, value: Value, side: int) -> Boundary:
        if isinstance(value, bool) != self.is_boolean or isinstance(value, Fraction):
            wanted = "TRUE or FALSE" if self.is_boolean else "texts in quotes"
            raise ValueError(f'condition must compare column "{self.name}" with {wanted}; got {_write_value(value)}.')
        rank = bisect.bisect_left(self.ordered, value) if side == 0 else bisect.bisect_right(self.ordered, value)
        return float(rank), 0


def _find_values(test: ColumnTest, scale: _ColumnScale) -> ValueSet:
    """Return the values for which a test holds."""
    if test.operator == "NULL":
        return ValueSet((), True)
    before = [scale.boundary(value, 0) for value in test.values]
    after = [scale.boundary(value, 1) for value in test.values]
    match test.operator:
        case "<":
            return unite_ranges([(FIRST, before[0])])
        case "<=":
            return unite_ranges([(FIRST, after[0])])
        case ">":
            return unite_ranges([(after[0], LAST)])
        case ">=":
            return unite_ranges([(before[0], LAST)])
        case "BETWEEN":
            return unite_ranges([(before[0], after[1])])
        case "<>":
            return unite_ranges([(FIRST, before[0]), (after[0], LAST)])
        case _:
            return unite_ranges(list(zip(before, after, strict=True)))


def _write_value(value: Value) -> str:
    return f"{float(value):g}" if isinstance(value, Fraction) else repr(value)
