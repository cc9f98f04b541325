"""How well a release answers counting queries: random ranges and sets over a few columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from duckanon.common.arrays import Floats
from duckanon.common.reports import report
from duckanon.matrix.pairs import check_rows
from duckanon.measure.declared import QUERY_UTILITY
from duckanon.measure.queries.columns import QueryColumn, query_column
from duckanon.measure.queries.labels import Meanings

_CHUNK = 32_768  # rows of a few columns of codes and one mask stay in the processor's cache

Predicate: TypeAlias = tuple[int, int]


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

    Parameters
    ----------
    original
        The rows before the release.
    released
        Columns of the same names. A cell may be a value, an interval ``STRUCT(lo, hi)`` with both ends inside, a list
        of categories, or the label of an interval or of some values.
    random
        Draws the queries.
    queries
        How many queries to ask.
    max_predicates
        A query restricts 1 to so many columns (3, or as many as there are), equally often each.
    sanity_fraction
        Errors are relative to the count, or to this part of the original's rows where the count is smaller.
    labels
        For columns that are released as texts, what they hold (`query_labels.Meaning`) where that is not simply a value
        of the original: ``{"age": {"[20, 30)": Meaning("interval", 20, 29)}}``.

    Returns
    -------
    pyarrow.Table
        Rows of `QUERY_UTILITY`: the relative errors of all queries (``predicates`` NULL), and of those with
        1, 2, ... restricted columns.

    Notes
    -----
    A predicate on numbers or dates is a closed range between the values of two random original rows; one on
    categories a random set of them, NULL being one. NULL is in no range. Counts on the release are scaled by the
    numbers of rows, so that suppressed rows are taken to be like the others. A row whose cell is an interval or a set
    counts with the part of the cell that the query covers, as if values were spread evenly in the cell and
    independently across columns: the usual rule. Whole numbers and dates are spread over the whole numbers of their
    interval. An interval without an end reaches to the original's smallest or largest value, a label for everything
    from one to the other, or over all categories of the original; a NULL is in no range.
    """
    for name, value in (("queries", queries), ("max_predicates", max_predicates)):
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
            raise ValueError(f"{name} must be an integer of at least 1; got {value}.")
    if not 0 < sanity_fraction <= 1:
        raise ValueError(f"sanity_fraction must lie above 0 and be at most 1; got {sanity_fraction}.")
    check_rows(original, released)
    most = min(int(max_predicates), original.num_columns)
    sizes = random.integers(1, most + 1, int(queries))
    asked = [random.choice(original.num_columns, size, replace=False) for size in sizes]
    uses = np.bincount(np.concatenate(asked), minlength=original.num_columns)
    columns = [
        query_column(
            name, original.column(name), released.column(name), int(uses[at]), (labels or {}).get(name, {}), random
        )
        if uses[at]
        else None
        for at, name in enumerate(original.column_names)
    ]
    seen = np.zeros(original.num_columns, np.int64)
    plan: list[list[Predicate]] = []
    for places in asked:
        plan.append([(int(place), int(seen[place])) for place in places])
        seen[places] += 1
    truth = _counts(plan, columns, original.num_rows, released=False)
    found = _counts(plan, columns, released.num_rows, released=True) * (original.num_rows / released.num_rows)
    errors = np.abs(found - truth) / np.maximum(truth, sanity_fraction * original.num_rows)
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
        QUERY_UTILITY,
    )


def _counts(
    plan: Sequence[Sequence[Predicate]], columns: Sequence[QueryColumn | None], rows: int, *, released: bool
) -> Floats:
    counts = np.zeros(len(plan))
    for start in range(0, rows, _CHUNK):
        part = slice(start, start + _CHUNK)
        for query, predicates in enumerate(plan):
            weight: npt.NDArray[Any] | None = None
            for place, number in predicates:
                column = columns[place]
                assert column is not None
                share = (column.released if released else column.original).share(number, part)
                weight = share if weight is None else weight * share
            assert weight is not None
            counts[query] += np.count_nonzero(weight) if weight.dtype == np.bool_ else weight.sum(dtype=np.float64)
    return counts
