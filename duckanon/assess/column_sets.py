"""Which sets of columns pick people out: distinct combinations and unique rows of every set, exactly or from a sample.

Notes
-----
The test by distinct counts is that of Probabilistic Anonymity, Section 2. The exact search is
`duckanon.assess.lattice`, the approximate one `duckanon.assess.sampling`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa

from duckanon.assess import lattice, sampling
from duckanon.assess.declared import QUASI_IDENTIFIERS
from duckanon.common import codes

MOST_SETS = 1_000_000
"""More sets are refused: at the pace of the Adult table (1,940 sets of up to 4 of its 15 columns in 0.46 s) so many
would take four minutes, and nobody reads them."""

NONE = "_duckanon_none"
"""The column that comes with those asked for, so that there is always one (``anon._is_asked``)."""

SAMPLE_BYTES = 2**28
"""What all samples of one approximate search take together, at the most."""

MOST_COMBINATIONS, LEAST_COMBINATIONS = 8192, 256
"""How many combinations are sampled for a set: standard errors of 1 and 6 percent."""

MOST_SAMPLED_SETS = 20_000
"""With more sets, samples of `LEAST_COMBINATIONS` each would not fit into `SAMPLE_BYTES`."""

_WAITING_BLOCKS = 32
"""DuckDB hands rows over in blocks of 2,048: so many fill a block of the sampler."""

SetCounts: TypeAlias = tuple[tuple[int, ...], int, int, int | None, float, float]
"""The columns of a set, distinct combinations, singletons, smallest class, standard errors of the first two counts."""


class Search(NamedTuple):
    """What is searched for, as the macro passes it.

    Attributes
    ----------
    cols
        The names that were asked for, to be found in the table; None: all its columns.
    max_size
        Size of the largest sets.
    minimal
        Report only the sets that are quasi-identifiers, and none of whose subsets is one.
    alpha
        A set is a quasi-identifier in the table if at least this fraction of the rows is unique in it.
    product_fraction
        It is one in the population if the product of its distinct counts is at least this many times the population.
    population
        Size of the population; None: the table itself.
    """

    cols: Sequence[str] | None
    max_size: int
    minimal: bool
    alpha: float
    product_fraction: float
    population: float | None

    def check(self, names: Sequence[str], row_count: int) -> None:
        """Raise a ValueError, one sentence, where the search does not fit the table."""
        known = {name.lower() for name in names}
        for name in self.cols or []:
            if name.lower() not in known:
                raise ValueError(f'column "{name}" is not in the table.')
        if row_count == 0:
            raise ValueError("the table has no rows to look at.")
        if self.population is not None and not self.population >= row_count:
            raise ValueError(
                f"population must be NULL or at least the number of rows, {row_count}; got {self.population:.0f}."
            )
        refuse_too_many_sets(len(names), self.max_size, MOST_SETS)

    def qualifies(self, singletons: float, product: float, row_count: int) -> bool:
        """Tell whether a set is a quasi-identifier, in the table or in the population."""
        people = row_count if self.population is None else self.population
        return singletons >= self.alpha * row_count or product >= self.product_fraction * people


def refuse_too_many_sets(columns: int, max_size: int, most: int) -> None:
    """Raise a ValueError where so many columns make more sets than can be looked at."""
    sets = sum(math.comb(columns, size) for size in range(1, min(max_size, columns) + 1))
    if sets > most:
        raise ValueError(
            f"up to {max_size} of {columns} columns make {sets:,} sets, more than {most:,}; "
            "lower max_size, or name fewer columns in cols."
        )


def exact(table: pa.Table | None, **options: Any) -> pa.Table:
    """Report on every set of up to `max_size` columns.

    Parameters
    ----------
    table
        The columns to combine, and one called `NONE` that is left out; None where the table has no rows.
    options
        The fields of a `Search`.

    Returns
    -------
    pyarrow.Table
        One row for each set, with the names of its columns and its counts.
    """
    search = Search(**options)
    table = pa.table({}) if table is None else table.drop_columns([NONE])
    search.check(table.column_names, table.num_rows)
    columns = codes.encode(table)

    def product(members: Iterable[int]) -> float:
        return math.prod(float(columns[member][1]) for member in members)

    def qualifies(members: tuple[int, ...], singletons: int) -> bool:
        return search.qualifies(singletons, product(members), table.num_rows)

    sets = [
        (statistics.columns, statistics.distinct, statistics.singletons, statistics.smallest, 0.0, 0.0)
        for statistics in lattice.walk(columns, search.max_size, qualifies if search.minimal else None)
        if statistics.stopped or not search.minimal
    ]
    return _report(sets, table.column_names, table.num_rows, product)


class SetSampler:
    """Samples every set of columns while the rows go by; see `duckanon.assess.sampling`.

    Parameters
    ----------
    rows
        The first rows: a struct array with the 64-bit hashes of the columns' values.
    max_size
        Size of the largest sets, the same with every row.
    """

    def __init__(self, rows: pa.Array, max_size: pa.Array) -> None:
        self.names = [field.name for field in rows.type if field.name != NONE]
        largest = min(max_size[0].as_py(), len(self.names))
        refuse_too_many_sets(len(self.names), largest, MOST_SAMPLED_SETS)
        sets = [
            members
            for size in range(1, largest + 1)
            for members in itertools.combinations(range(len(self.names)), size)
        ]
        affordable = SAMPLE_BYTES // (sampling.BYTES_PER_COMBINATION * max(len(sets), 1))
        capacity = min(MOST_COMBINATIONS, max(LEAST_COMBINATIONS, affordable))
        self.sampler = sampling.DistinctSampler(sets, capacity)
        self._waiting: list[list[sampling.Hashes]] = []

    def add(self, rows: pa.Array, *others: pa.Array) -> None:
        """Take in a block of rows; small blocks wait until there are enough to be worth the work."""
        chunks = rows.chunks if isinstance(rows, pa.ChunkedArray) else [rows]
        self._waiting += [[chunk.field(name).to_numpy() for name in self.names] for chunk in chunks]
        if len(self._waiting) >= _WAITING_BLOCKS:
            self.flush()

    def merge(self, other: SetSampler) -> None:
        """Take in what another thread has sampled."""
        self.flush()
        other.flush()
        self.sampler.merge(other.sampler)

    def flush(self) -> None:
        """Sample the rows that wait."""
        if self._waiting:
            self.sampler.update([np.concatenate(parts) for parts in zip(*self._waiting, strict=True)])
            self._waiting = []


def approximate(sampler: SetSampler | None, **options: Any) -> pa.Table:
    """Report on every set of up to `max_size` columns from samples; the options are the fields of a `Search`."""
    search = Search(**options)
    if sampler is None:
        raise ValueError("the table has no rows to look at.")
    sampler.flush()
    row_count = sampler.sampler.rows
    search.check(sampler.names, row_count)
    estimates = {estimate.columns: estimate for estimate in sampler.sampler.estimates()}

    def product(members: Iterable[int]) -> float:
        return math.prod(max(1.0, estimates[member,].distinct) for member in members)

    chosen: list[sampling.Estimate] = []
    qualified: list[set[int]] = []
    for estimate in sorted(estimates.values(), key=lambda estimate: len(estimate.columns)):
        if search.minimal and any(smaller <= set(estimate.columns) for smaller in qualified):
            continue
        if search.qualifies(estimate.singletons, product(estimate.columns), row_count):
            qualified.append(set(estimate.columns))
        elif search.minimal:
            continue
        chosen.append(estimate)
    found = [
        (
            estimate.columns,
            min(round(estimate.distinct), row_count),
            min(round(estimate.singletons), row_count),
            1 if estimate.singletons else None,
            estimate.distinct_error,
            estimate.singletons_error,
        )
        for estimate in chosen
    ]
    return _report(found, sampler.names, row_count, product)


def _report(
    sets: Iterable[SetCounts], names: Sequence[str], row_count: int, product: Callable[[Iterable[int]], float]
) -> pa.Table:
    rows = [
        {
            "columns": [names[member] for member in members],
            "rows": row_count,
            "distinct_observed": distinct,
            "singletons": singletons,
            "smallest_class": smallest,
            "distinct_product": product(members),
            "distinct_error": distinct_error,
            "singletons_error": singletons_error,
        }
        for members, distinct, singletons, smallest, distinct_error, singletons_error in sets
    ]
    return pa.Table.from_pylist(rows, schema=QUASI_IDENTIFIERS)
