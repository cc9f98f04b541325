"""Sets of columns that pick people out: distinct combinations and unique rows of every set, exactly or from a sample.

The test by distinct counts is that of Probabilistic Anonymity, Section 2. The exact search is
`duckanon._measure.assess.lattice`, the approximate one `duckanon._measure.assess.sampling`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa

from duckanon._core.common import codes
from duckanon._core.common.arrays import Array
from duckanon._measure.assess import lattice, sampling
from duckanon._measure.assess.declared import QUASI_IDENTIFIERS_ROWS
from duckanon._measure.assess.lattice import count_sets

MOST_SETS = 1_000_000
"""More sets are refused: at the pace of the Adult table (1,940 sets of up to 4 of its 15 columns in 0.46 s) so many
would take four minutes, and nobody reads them."""

PERSON = "_duckanon_person"
"""The column that comes with those asked for: whose the row is, as a hash; NULL where it does not say so, or where
every row is a person."""

SAMPLE_BYTES = 2**28  # memory of all samples of one approximate search together, at most
MOST_COMBINATIONS, LEAST_COMBINATIONS = 8192, 256  # sampled for a set: standard errors of 1 and 6 percent
MOST_SAMPLED_SETS = 20_000  # with more sets, samples of `LEAST_COMBINATIONS` each would not fit into `SAMPLE_BYTES`
MOST_CELLS = 2**21  # of a table that is searched exactly, which is quicker then: 16 MB of hashes
_WAITING_BLOCKS = 32  # DuckDB hands rows over in blocks of 2,048: so many are worth the sampler's work

SetCounts: TypeAlias = tuple[tuple[int, ...], int, int, int | None, int | None, float, float]
"""The columns of a set, distinct combinations, singletons, smallest class, sum of the sizes of the classes, standard
errors of the first two counts."""


class Search(NamedTuple):
    """Options of the search, as the macro passes them.

    A set is a quasi-identifier in the table if at least the fraction `alpha` of the people is unique in it. In a larger
    population it is one if so large a fraction can be unique in as many values as its distinct counts multiply to.
    """

    max_size: int  # of the largest sets
    minimal: bool  # report only the sets that are quasi-identifiers, and none of whose subsets is one
    alpha: float
    population: float | None  # people; None: the table itself
    person: str | None = None  # the name of the column that identifies people; None: every row is a person

    def check(self, names: Sequence[str], row_count: int, people_count: float) -> None:
        """Raise a ValueError, one sentence, where the search does not fit the table."""
        if row_count == 0:
            raise ValueError("the table has no rows to look at.")
        if people_count == 0:
            raise ValueError(
                f"person must name a column that says whose rows they are; got {self.person}, "
                "which is NULL in every row."
            )
        if self.population is not None and not self.population >= people_count:
            counted = "rows" if self.person is None else "people"
            raise ValueError(
                f"population must be NULL or at least the number of {counted}, {people_count:.0f}; "
                f"got {self.population:.0f}."
            )
        refuse_too_many_sets(len(names), self.max_size, MOST_SETS)

    def qualifies(self, singletons: float, product: float, people_count: float) -> bool:
        """Tell whether a set is a quasi-identifier, in the table or in the population.

        Where the table holds everybody, the count of its unique people decides, and no bound.
        """
        if singletons / people_count >= self.alpha:
            return True
        if self.population is None or self.population <= people_count:
            return False
        return _max_unique_fraction(product, self.population) >= self.alpha


def _max_unique_fraction(distinct: float, population: float) -> float:
    """Return what the macro `anon.max_unique_fraction` does, to the last digit."""
    return distinct / (math.e * population) if distinct <= population else math.exp(-population / distinct)


def refuse_too_many_sets(columns: int, max_size: int, most: int) -> None:
    """Raise a ValueError where so many columns make more sets than can be looked at."""
    sets = count_sets(columns, max_size)
    if sets > most:
        raise ValueError(
            f"up to {max_size} of {columns} columns make {sets:,} sets, more than {most:,}; "
            "lower max_size, or name fewer columns in cols."
        )


def exact(table: pa.Table | None, **options: Any) -> pa.Table:
    """Report on every set of up to `max_size` columns; the options are the fields of a `Search`.

    The table has the columns to combine and one called `PERSON`; None where it has no rows.
    """
    search = Search(**options)
    people = None
    if table is not None and search.person is not None:
        [(person_codes, _)] = codes.encode_columns(table.select([PERSON]))
        people = lattice.number_people(person_codes, table[PERSON].is_valid().to_numpy())
    table = pa.table({}) if table is None else table.drop_columns([PERSON])
    people_count = table.num_rows if people is None else people.people_count
    search.check(table.column_names, table.num_rows, people_count)
    columns = codes.encode_columns(table)

    def product(members: Iterable[int]) -> float:
        return math.prod(float(columns[member][1]) for member in members)

    def qualifies(members: tuple[int, ...], singletons: int) -> bool:
        return search.qualifies(singletons, product(members), people_count)

    sets = [
        (stats.columns, stats.distinct, stats.singletons, stats.smallest, stats.members, 0.0, 0.0)
        for stats in lattice.walk(columns, search.max_size, qualifies if search.minimal else None, people)
        if stats.stopped or not search.minimal
    ]
    return _report(sets, table.column_names, table.num_rows, people_count, product)


class SetSampler:
    """Samples every set of columns while the rows go by; see `duckanon._measure.assess.sampling`.

    The first rows are only held: where no more than `MOST_CELLS` values follow, they are searched exactly.

    It begins with the first rows, a struct array with the 64-bit hashes of the columns' values; `max_size`, the size of
    the largest sets, and `has_people`, whether `PERSON` says which person a row belongs to, are the same with every
    row.
    """

    def __init__(self, rows: pa.Array, max_size: pa.Array, has_people: pa.Array) -> None:
        self.names = [field.name for field in rows.type if field.name != PERSON]
        self.has_people = has_people[0].as_py()
        largest = min(max_size[0].as_py(), len(self.names))
        refuse_too_many_sets(len(self.names), largest, MOST_SAMPLED_SETS)
        places = range(len(self.names))
        sets = [members for size in range(1, largest + 1) for members in itertools.combinations(places, size)]
        affordable = SAMPLE_BYTES // (sampling.BYTES_PER_COMBINATION * max(len(sets), 1))
        capacity = min(MOST_COMBINATIONS, max(LEAST_COMBINATIONS, affordable))
        self.sampler = sampling.DistinctSampler(sets, capacity, has_people=self.has_people)
        self._waiting: list[list[Array]] = []
        self._held = 0  # rows that wait

    def add(self, rows: pa.Array, *extras: pa.Array) -> None:
        """Take in a block of rows; small blocks wait until there are enough to be worth the work."""
        self._held += len(rows)
        for chunk in rows.chunks if isinstance(rows, pa.ChunkedArray) else [rows]:
            columns = [chunk.field(name).to_numpy() for name in self.names]
            if self.has_people:
                persons = chunk.field(PERSON)
                columns += [persons.fill_null(0).to_numpy(), persons.is_valid().to_numpy(zero_copy_only=False)]
            self._waiting.append(columns)
        if len(self._waiting) >= _WAITING_BLOCKS and not self.is_small():
            self.flush()

    def merge(self, other: SetSampler) -> None:
        """Take in what another thread has sampled."""
        self._waiting += other._waiting
        self._held += other._held
        self.sampler.merge(other.sampler)

    def is_small(self) -> bool:
        """Tell whether all rows so far are held, and are few enough for the exact search."""
        return not self.sampler.rows and self._held * len(self._waiting[0]) <= MOST_CELLS

    def rows_to_search(self) -> pa.Table:
        """Return the rows that are held, as the exact search takes them."""
        columns = [np.concatenate(parts) for parts in zip(*self._waiting, strict=True)]
        persons = pa.array(columns[-2], mask=~columns[-1]) if self.has_people else pa.nulls(self._held, pa.uint64())
        return pa.table([*columns[: len(self.names)], persons], names=[*self.names, PERSON])

    def flush(self) -> None:
        """Sample the rows that wait."""
        for start in range(0, len(self._waiting), _WAITING_BLOCKS):
            parts = zip(*self._waiting[start : start + _WAITING_BLOCKS], strict=True)
            columns = [np.concatenate(part) for part in parts]
            self.sampler.update(columns[: len(self.names)], *columns[len(self.names) :])
        self._waiting, self._held = [], 0


def approximate(sampler: SetSampler | None, **options: Any) -> pa.Table:
    """Report on every set of up to `max_size` columns from samples; the options are the fields of a `Search`.

    Small tables are searched exactly.
    """
    search = Search(**options)
    if sampler is None:
        raise ValueError("the table has no rows to look at.")
    if sampler.is_small():
        return exact(sampler.rows_to_search(), **options)
    sampler.flush()
    row_count = sampler.sampler.rows
    counted = sampler.sampler.people()
    people_count = round(counted.distinct) if sampler.has_people else row_count
    if sampler.has_people and search.population and counted.distinct - 3 * counted.distinct_error <= search.population:
        people_count = min(people_count, int(search.population))  # an estimate that may be right refuses no population
    search.check(sampler.names, row_count, people_count)
    estimates = {estimate.columns: estimate for estimate in sampler.sampler.estimates()}

    def product(members: Iterable[int]) -> float:
        return math.prod(max(1.0, estimates[member,].distinct) for member in members)

    sets: list[SetCounts] = []
    qualified: list[set[int]] = []
    for estimate in sorted(estimates.values(), key=lambda estimate: len(estimate.columns)):
        if search.minimal and any(smaller <= set(estimate.columns) for smaller in qualified):
            continue
        singletons, smallest = min(round(estimate.singletons), people_count), 1 if estimate.singletons else None
        if search.qualifies(singletons, product(estimate.columns), people_count):
            qualified.append(set(estimate.columns))
        elif search.minimal:
            continue
        distinct = min(round(estimate.distinct), row_count)
        members = None if sampler.has_people else row_count
        errors = estimate.distinct_error, estimate.singletons_error
        sets.append((estimate.columns, distinct, singletons, smallest, members, *errors))
    return _report(sets, sampler.names, row_count, people_count, product)


def _report(
    sets: Iterable[SetCounts],
    names: Sequence[str],
    row_count: int,
    people_count: int,
    product: Callable[[Iterable[int]], float],
) -> pa.Table:
    rows = [
        {
            "columns": [names[member] for member in members],
            "rows": row_count,
            "people": people_count,
            "distinct_observed": distinct,
            "singletons": singletons,
            "smallest_class": smallest,
            "members": class_members,
            "distinct_product": product(members),
            "distinct_error": distinct_error,
            "singletons_error": singletons_error,
        }
        for members, distinct, singletons, smallest, class_members, distinct_error, singletons_error in sets
    ]
    return pa.Table.from_pylist(rows, schema=QUASI_IDENTIFIERS_ROWS)
