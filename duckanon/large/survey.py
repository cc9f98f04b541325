"""Moments and a sample of a whole table, from one reading of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from duckanon._core.common.arguments import refuse_unless
from duckanon._core.common.arrays import Floats, Ints
from duckanon._core.common.rules import Whole
from duckanon._methods.boxes.typed import column_numbers


@dataclass(frozen=True)
class Survey:
    """A table in a few numbers.

    Attributes:
        rows: How many rows it has.
        means, covariances: The moments of its columns, with the number of rows as divisor.
        least, largest: The ends of its columns.
        sample: Rows that were drawn, column by column.
    """

    rows: int
    means: Floats
    covariances: Floats
    least: Floats
    largest: Floats
    sample: dict[str, Floats]


def surveyed(batches: Iterable[pa.Table], names: Sequence[str], rows: int, wanted: int, seed: int | None) -> Survey:
    """Read a table once.

    Args:
        batches: The table, some rows at a time; without NULL.
        names: The columns: numbers, dates and timestamps.
        rows: How many rows there are.
        wanted: How many rows the sample should have.
        seed: Decides which: the same rows of a table that comes in the same order. None draws from the operating
            system.
    """
    random = Drawing(rows, wanted, seed)
    done, means = 0, np.zeros(len(names))
    products = np.zeros((len(names), len(names)))
    least, largest = np.full(len(names), np.inf), np.full(len(names), -np.inf)
    drawn: list[Floats] = []
    for batch in batches:
        if not batch.num_rows:
            continue
        numbers = column_numbers(batch, names)
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
    return Survey(
        done,
        means,
        products / max(done, 1),
        least,
        largest,
        {name: np.ascontiguousarray(sample[place]) for place, name in enumerate(names)},
    )


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
