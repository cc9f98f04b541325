"""A whole table before it is split: its moments, a sample and the values of its columns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from duckanon._bridge import sql
from duckanon._core.common.arguments import refuse_unless
from duckanon._core.common.arrays import Floats, Ints
from duckanon._core.common.rules import Whole
from duckanon._methods.boxes.boxed_table import read_numbers
from duckanon._methods.boxes.shaping import ColumnMoments
from duckanon.large.workspace import SOURCE, Workspace

BYTES_OF_COUNTED, BYTES_OF_VALUE = 100, 50
"""Memory of cutting a column into parts, for each record that is looked at and for each value."""


@dataclass(frozen=True)
class Survey:
    """A table in a few numbers."""

    rows: int
    moments: ColumnMoments
    sample: dict[str, Floats]  # rows that were drawn, column by column


def survey_table(batches: Iterable[pa.Table], names: Sequence[str], rows: int, wanted: int, seed: int | None) -> Survey:
    """Read a table without NULL, of numbers, dates and timestamps, once, some rows at a time.

    `seed` decides which `wanted` rows are drawn: the same of a table that comes in the same order.
    """
    random = Drawing(rows, wanted, seed)
    done, means = 0, np.zeros(len(names))
    products = np.zeros((len(names), len(names)))
    least, largest = np.full(len(names), np.inf), np.full(len(names), -np.inf)
    drawn: list[Floats] = []
    for batch in batches:
        if not batch.num_rows:
            continue
        numbers = read_numbers(batch, names)
        matrix = np.stack([numbers[name] for name in names])
        least, largest = np.minimum(least, matrix.min(axis=1)), np.maximum(largest, matrix.max(axis=1))
        drawn.append(matrix[:, random.rows(done, matrix.shape[1])])
        # Moments of two sets of rows together (Chan, Golub and LeVeque 1983).
        count = matrix.shape[1]
        of_batch = matrix.mean(axis=1)
        centred = matrix - of_batch[:, None]
        gap = of_batch - means
        products += centred @ centred.T + np.outer(gap, gap) * (done * count / (done + count))
        means, done = means + gap * (count / (done + count)), done + count
    is_constant = least == largest
    products[is_constant] = products[:, is_constant] = 0.0  # exactly, where a mean was rounded
    sample = np.concatenate(drawn, axis=1)
    columns = {name: np.ascontiguousarray(sample[place]) for place, name in enumerate(names)}
    return Survey(done, ColumnMoments.from_covariances(means, products / max(done, 1)), columns)


class Drawing:
    """Draws rows by a hash of their places in the table and of a key."""

    def __init__(self, rows: int, wanted: int, seed: int | None) -> None:
        refuse_unless(Whole(0, null=True), "seed", seed)
        self._key = np.random.default_rng(seed).integers(0, 2**63, dtype=np.uint64)
        self._below = np.uint64(min(wanted / max(rows, 1), 1.0) * float(2**53))

    def rows(self, first: int, count: int) -> Ints:
        """Return which of the rows from `first` on are drawn."""
        with np.errstate(over="ignore"):  # the finalizer of splitmix64, in arithmetic modulo 2^64
            mixed = (np.arange(first, first + count, dtype=np.uint64) + self._key) * np.uint64(0x9E3779B97F4A7C15)
            mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        mixed ^= mixed >> np.uint64(31)
        return np.flatnonzero((mixed >> np.uint64(11)) < self._below)


class Counted(NamedTuple):
    """The different values of a column, ascending, NULL last, and how many rows and people have each."""

    values: pa.ChunkedArray
    rows: Ints
    people: Ints


def count_values(work: Workspace, name: str, k: int, person: str | None = None) -> Counted | None:
    """Count the values of a column; None where they are too many to be cut into parts of k people within the memory."""
    quoted = sql.quote(name)
    values, looked_at = sql.fetch_row(
        work.con,
        f"SELECT count(*), sum(size)::BIGINT FROM (SELECT least(count(*), {k})::BIGINT AS size FROM {SOURCE} "
        f"GROUP BY {quoted})",
    )
    if looked_at * BYTES_OF_COUNTED + values * BYTES_OF_VALUE > work.memory.part:
        return None
    people = "count(*)" if person is None else f"count(DISTINCT {sql.quote(person)})"
    query = (
        f"SELECT {quoted}, count(*) AS _duckanon_rows, {people} AS _duckanon_people FROM {SOURCE} GROUP BY {quoted} "
        f"ORDER BY {quoted} ASC NULLS LAST"
    )
    path = work.folder / "values.parquet"  # values are then read as those of the parts are
    work.con.execute(f"COPY ({query}) TO {sql.literal(str(path))} (FORMAT parquet)").fetchall()
    table = pq.ParquetFile(path).read()
    path.unlink()
    return Counted(table.column(0), table.column(1).to_numpy(), table.column(2).to_numpy())
