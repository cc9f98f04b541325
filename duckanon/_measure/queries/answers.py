"""Errors of a release in counting queries: random ranges and sets over a few columns.

One column of both tables, with the predicates asked of it: which part of each cell a predicate covers.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from duckanon._core.common.arguments import check_arguments, check_by
from duckanon._core.common.arrays import Array, Bools, Floats, Ints
from duckanon._core.common.declare import report_columns
from duckanon._core.common.labels import MICROSECONDS_PER_DAY
from duckanon._core.common.rules import Number, Whole
from duckanon._core.encoding.pairs import (
    CategoryPair,
    NumberPair,
    pair_columns,
    pair_kind,
    read_column_numbers,
    refuse_unpaired_tables,
    step_of,
)
from duckanon._measure.declared import QUERY_UTILITY
from duckanon._measure.queries import labels
from duckanon._measure.queries.labels import Meanings


class Cells(Protocol):
    """The cells of a column in one of the tables."""

    def share(self, number: int, rows: slice) -> Array:
        """Return the part of each row's cell that the predicate covers; booleans where it is all or nothing."""


@dataclass(frozen=True)
class RangeCells:
    """Values and ranges, both as positions among the ends of all ranges: few different codes, quick to compare."""

    codes: npt.NDArray[np.unsignedinteger[Any]]
    low: Ints
    high: Ints

    def share(self, number: int, rows: slice) -> Bools:
        """Tell which values lie in the range."""
        kind = self.codes.dtype.type
        above = self.codes[rows] - kind(self.low[number])  # what is below becomes huge
        return np.asarray(above <= kind(self.high[number] - self.low[number]))


@dataclass(frozen=True)
class TableCells:
    """Codes, and for every predicate the part of each code's cell that it covers."""

    codes: Ints
    shares: Array

    def share(self, number: int, rows: slice) -> Array:
        """Look the parts up."""
        return np.take(self.shares[number], self.codes[rows])


class IntervalCells:
    """Intervals with both ends inside, NaN for none; values are whole numbers (step 1) or any numbers (step 0)."""

    def __init__(self, low: Floats, high: Floats, step: float, ranges: Floats) -> None:
        self._low, self._high, self._ranges = low, high + step, ranges
        length = self._high - low
        self._points = length == 0
        self._any_point = bool(self._points.any())
        with np.errstate(divide="ignore"):
            self._density = np.where(self._points, 0.0, 1 / length)
        self._step = step

    def share(self, number: int, rows: slice) -> Floats:
        """Return the part of each interval that lies in the range."""
        start, end = self._ranges[number]
        low = self._low[rows]
        share = np.minimum(self._high[rows], end + self._step)
        share -= np.maximum(low, start)
        with np.errstate(invalid="ignore"):
            share *= self._density[rows]
        np.fmax(share, 0.0, out=share)  # NULL is in no range
        if self._any_point:
            share += self._points[rows] & (start <= low) & (low <= end)
        return np.asarray(share)


@dataclass(frozen=True)
class LabelCells:
    """Cells that may be labels: each label has a share of its own for every predicate."""

    rest: Cells  # the cells, as if there were no labels
    codes: Ints  # of each row the number of its label, -1 where it has none
    shares: Floats  # for every predicate the part of each label that it covers

    def share(self, number: int, rows: slice) -> Floats:
        """Look the parts up."""
        shares = np.asarray(self.rest.share(number, rows), np.float64)
        codes = self.codes[rows]
        labelled = np.flatnonzero(codes >= 0)
        shares[labelled] = self.shares[number][codes[labelled]]
        return shares


@dataclass(frozen=True)
class QueryColumn:
    """A column in both tables."""

    original: Cells
    released: Cells


def query_column(
    name: str,
    original: pa.ChunkedArray,
    released: pa.ChunkedArray,
    predicates: int,
    meanings: Meanings,
    random: np.random.Generator,
) -> QueryColumn:
    """Draw predicates on a column, and make both tables' cells ready for them.

    Released cells may be intervals ``STRUCT(lo, hi)``, lists of categories, or texts with `meanings`.
    """
    if pa.types.is_null(original.type) and pair_kind(released.type) in ("number", "time"):
        original = original.cast(released.type)  # NULL throughout fits every type
    if pair_kind(original.type) in ("number", "time"):
        return _numbers(name, original, released, predicates, meanings, random)
    if pa.types.is_list(released.type) or pa.types.is_large_list(released.type):
        return _sets(name, original, released, predicates, random)
    if pa.types.is_boolean(original.type) and labels.is_text_column(released.type):
        original = original.cast(pa.string())
    both = pair_columns(name, original, released)
    assert isinstance(both, CategoryPair)
    chosen = _draw_sets(both, predicates, random)
    cells: Cells = TableCells(both.released, chosen)
    if meanings:
        present = np.flatnonzero(np.bincount(both.original, minlength=len(both.texts)))
        codes, shares = labels.shares_of_sets(both.texts, meanings, chosen, present)
        cells = LabelCells(cells, codes[both.released], shares)
    return QueryColumn(TableCells(both.original, chosen), cells)


def _numbers(
    name: str,
    original: pa.ChunkedArray,
    released: pa.ChunkedArray,
    predicates: int,
    meanings: Meanings,
    random: np.random.Generator,
) -> QueryColumn:
    """Take released cells as numbers or dates, intervals of these, or labels."""
    is_labelled, is_boxed = labels.is_text_column(released.type), pa.types.is_struct(released.type)
    if is_labelled and pa.types.is_timestamp(original.type) and original.type.tz is not None:
        original = pc.local_timestamp(original)  # labels tell the time of the session's zone
    if not is_labelled and not is_boxed:
        numbers = pair_columns(name, original, released)
        assert isinstance(numbers, NumberPair)
        ranges = _ranges(numbers.original, predicates, random)
        return QueryColumn(_range_cells(numbers.original, ranges), _range_cells(numbers.released, ranges))
    ends = labels.interval_ends(name, original.type, released) if is_boxed else None
    values = read_column_numbers(name, original)
    ranges = _ranges(values, predicates, random)
    known = values[~np.isnan(values)]
    limits = (float(known.min()), float(known.max())) if len(known) else (np.nan, np.nan)
    cells: Cells
    if ends is not None:
        low = np.where(np.isinf(ends[0]), np.fmin(limits[0], ends[1]), ends[0])
        high = np.where(np.isinf(ends[1]), np.fmax(limits[1], low), ends[1])
        cells = IntervalCells(low, high, step_of(original.type), ranges)
    else:
        scale = MICROSECONDS_PER_DAY if pair_kind(original.type) == "time" else 1.0
        step = float(np.array_equal(known, np.floor(known)))  # what a label's ends are rounded by
        codes, texts = labels.different_labels(released)
        low, high = labels.intervals_of(name, texts, meanings, limits, scale)
        cells = IntervalCells(low[codes], high[codes], step, ranges)
        listed, shares = labels.shares_of_ranges(texts, meanings, ranges, scale)
        if shares.shape[1]:
            cells = LabelCells(cells, listed[codes], shares)
    return QueryColumn(_range_cells(values, ranges), cells)


def _ranges(values: Floats, predicates: int, random: np.random.Generator) -> Floats:
    """Draw pairs of known values, each pair in order; beyond all numbers where none is known."""
    known = values[~np.isnan(values)]
    if not len(known):
        return np.full((predicates, 2), np.inf)
    return np.sort(known[random.integers(0, len(known), (predicates, 2))], axis=1)


def _range_cells(values: Floats, ranges: Floats) -> RangeCells:
    ends, positions = np.unique(ranges, return_inverse=True)
    positions = positions.reshape(ranges.shape)
    codes = np.searchsorted(ends, values)  # NULL is beyond all
    equal = ends[np.minimum(codes, len(ends) - 1)] == values
    kind = np.uint16 if 2 * len(ends) < 2**16 else np.uint32
    return RangeCells((2 * codes + equal).astype(kind), 2 * positions[:, 0] + 1, 2 * positions[:, 1] + 1)


def _draw_sets(column: CategoryPair, predicates: int, random: np.random.Generator) -> Bools:
    """Draw sets of the original's categories: never all of them, unless there is only one."""
    present = np.flatnonzero(np.bincount(column.original, minlength=len(column.texts)))
    chosen = np.zeros((predicates, len(column.texts)), bool)
    for row in chosen:
        size = int(random.integers(1, max(len(present), 2)))
        row[random.choice(present, size, replace=False)] = True
    return chosen


def _sets(
    name: str, original: pa.ChunkedArray, released: pa.ChunkedArray, predicates: int, random: np.random.Generator
) -> QueryColumn:
    """Take released cells as sets of categories; a NULL or empty set is the set of NULL."""
    lists = pa.concat_arrays(released.chunks)
    sizes = pc.fill_null(pc.list_value_length(lists), 0).to_numpy(zero_copy_only=False).astype(np.int64)
    members = pair_columns(name, original, pa.chunked_array([lists.flatten(), pa.nulls(1, lists.type.value_type)]))
    assert isinstance(members, CategoryPair)
    chosen = _draw_sets(members, predicates, random)
    codes, null = members.released[:-1], int(members.released[-1])
    # Equal sets get equal sums of one random number per member: two different ones never do in practice.
    numbers = random.integers(0, 2**63, len(members.texts), dtype=np.uint64) * np.uint64(2) + np.uint64(1)
    sums = np.full(len(sizes), numbers[null])
    starts = np.cumsum(sizes) - sizes
    filled = sizes > 0
    if filled.any():
        sums[filled] = np.add.reduceat(numbers[codes], starts[filled])
    _, first, cells = np.unique(sums, return_index=True, return_inverse=True)
    shares = np.empty((predicates, len(first)))
    for cell, row in enumerate(first):
        inside = codes[starts[row] : starts[row] + sizes[row]] if sizes[row] else np.array([null])
        shares[:, cell] = chosen[:, inside].mean(axis=1)
    return QueryColumn(TableCells(members.original, chosen), TableCells(cells.reshape(-1), shares))


_CHUNK = 32_768  # rows of a few columns of codes and one mask stay in the processor's cache

Plan: TypeAlias = Sequence[Sequence[tuple[int, int]]]
"""For every query its predicates: the index of a column, and the number of the predicate among those of the column."""


@check_by(QUERY_UTILITY)
@check_arguments(max_predicates=Whole(1), sanity_fraction=Number(above=0, most=1))
def query_utility(
    original: pa.Table,
    released: pa.Table,
    *,
    random: np.random.Generator,
    queries: int = 1000,
    max_predicates: int = 3,
    sanity_fraction: float = 0.001,
    labels: Mapping[str, Meanings] | None = None,
) -> pa.Table:
    """Compare random range counts on a release with those on its original.

    A predicate on numbers or dates is a closed range between the values of two random original rows; one on categories
    a random set of them, NULL being one. NULL is in no range. Counts on the release are scaled by the numbers of rows,
    so that suppressed rows are taken to be like the others. A row whose cell is an interval or a set counts with the
    part of the cell that the query covers, as if values were spread evenly in the cell and independently across
    columns: the usual rule. Whole numbers and dates are spread over the whole numbers of their interval. An interval
    without an end reaches to the original's smallest or largest value, a label for everything from one to the other, or
    over all categories of the original; a NULL is in no range.

    A released cell may be a value, an interval ``STRUCT(lo, hi)`` with both ends inside, a list of categories, or a
    label with a meaning in `labels`: ``{"age": {"[20, 30)": Meaning("interval", 20, 29)}}``. Each number of restricted
    columns from 1 to `max_predicates` is drawn equally often. Errors are relative to the count, or to `sanity_fraction`
    of the original's rows where the count is smaller. The first row is about all queries (``predicates`` NULL), the
    next ones about those with 1, 2, ... restricted columns.
    """
    refuse_unpaired_tables(original, released)
    most = min(int(max_predicates), original.num_columns)
    sizes = random.integers(1, most + 1, int(queries))
    plan = _plan(sizes, original.num_columns, random)
    uses = Counter(index for predicates in plan for index, _ in predicates)
    columns = {
        index: query_column(
            name, original.column(name), released.column(name), uses[index], (labels or {}).get(name, {}), random
        )
        for index, name in enumerate(original.column_names)
        if uses[index]
    }
    truth = _counts(plan, columns, original.num_rows, released=False)
    answers = _counts(plan, columns, released.num_rows, released=True) * (original.num_rows / released.num_rows)
    errors = np.abs(answers - truth) / np.maximum(truth, sanity_fraction * original.num_rows)
    groups = [(None, errors), *((size, errors[sizes == size]) for size in range(1, most + 1))]
    groups = [(size, part) for size, part in groups if len(part)]
    return report_columns(
        {
            "predicates": [size for size, _ in groups],
            "queries": [len(part) for _, part in groups],
            "median_relative_error": [float(np.median(part)) for _, part in groups],
            "mean_relative_error": [float(part.mean()) for _, part in groups],
            "p90_relative_error": [float(np.quantile(part, 0.9)) for _, part in groups],
        },
        QUERY_UTILITY.schema,
    )


def _plan(sizes: Ints, columns: int, random: np.random.Generator) -> Plan:
    """Draw the columns of every query; the predicates of each column are numbered through all queries."""
    asked = [random.choice(columns, size, replace=False) for size in sizes]
    uses = np.zeros(columns, np.int64)
    plan = []
    for indices in asked:
        plan.append([(int(index), int(uses[index])) for index in indices])
        uses[indices] += 1
    return plan


def _counts(plan: Plan, columns: Mapping[int, QueryColumn], rows: int, *, released: bool) -> Floats:
    """Add up, for every query, the shares of the rows that it covers."""
    cells = {index: column.released if released else column.original for index, column in columns.items()}
    counts = np.zeros(len(plan))
    for start in range(0, rows, _CHUNK):
        part = slice(start, start + _CHUNK)
        for query, predicates in enumerate(plan):
            weight = functools.reduce(np.multiply, (cells[index].share(number, part) for index, number in predicates))
            counts[query] += np.count_nonzero(weight) if weight.dtype == np.bool_ else weight.sum(dtype=np.float64)
    return counts
