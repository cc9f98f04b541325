"""Errors of a release in counting queries: random ranges and sets over a few columns."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from duckanon._core.common.arguments import checked, checked_by
from duckanon._core.common.arrays import Floats, Ints
from duckanon._core.common.declare import report
from duckanon._core.common.rules import Number, Whole
from duckanon._core.encoding.pairs import check_rows
from duckanon._measure.declared import QUERY_UTILITY
from duckanon._measure.queries.labels import Meanings
from duckanon._measure.queries.query_columns import QueryColumn, query_column

_CHUNK = 32_768  # rows of a few columns of codes and one mask stay in the processor's cache

Plan: TypeAlias = Sequence[Sequence[tuple[int, int]]]
"""For every query its predicates: the index of a column, and the number of the predicate among those of the column."""


@checked_by(QUERY_UTILITY)
@checked(max_predicates=Whole(1), sanity_fraction=Number(above=0, most=1))
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
    check_rows(original, released)
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
    return report(
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
