"""Parcels: rows on their way from a query's scan to the Python function that will be called with them.

A scan hands its rows over in blocks of at most 2,048, from several threads. Each call of a macro collects its blocks in
accumulators of its own, one a thread; what travels on through the query is the call's number, its ticket.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from duckanon._bridge import column_builders
from duckanon._bridge.column_builders import plain
from duckanon._bridge.waiting import FOR_EVERY_ROW, Owner, Waiting


class Accumulator(Protocol):
    """Collector of blocks of rows."""

    def add(self, rows: pa.Array, *others: pa.Array) -> None:
        """Take in a block: a struct array with the rows, and whatever else the macro passes along."""

    def merge(self, other: Any) -> None:
        """Take in what another accumulator of the same call has collected."""


class Parcels:
    """The accumulators that wait for their function, of all calls in all databases."""

    def __init__(self, waiting: Waiting | None = None) -> None:
        self._waiting = Waiting() if waiting is None else waiting

    def open(self, *arguments: pa.Array) -> pa.Array:
        """Begin a call, for ``anon._call``: takes its owner, and returns the call's number."""
        if len(arguments[0]) > 1:
            raise ValueError(f"anon: a function was called in a correlated subquery, but {FOR_EVERY_ROW}")
        return pa.array([self._waiting.open(Owner(*arguments[0][0].as_py()))], pa.int64())

    def park(self, make: Callable[..., Accumulator]) -> Callable[..., pa.Array]:
        """Return the function that takes a block of rows; `make` makes an accumulator from the first block's arguments.

        Its arguments are the rows, the call's number, and what else the accumulator wants. It returns the number where
        a thread's first block began, the ticket, and NULL everywhere else.
        """

        def parked(*arguments: pa.Array) -> pa.Array:
            rows, calls, *others = arguments
            rows = pa.chunked_array(map(plain, rows.chunks)) if isinstance(rows, pa.ChunkedArray) else plain(rows)
            call, thread = calls[0].as_py(), threading.get_ident()
            accumulators = self._waiting.thing(call, dict)  # by thread
            is_first = thread not in accumulators
            if is_first:
                accumulators[thread] = make(rows, *others)
            accumulators[thread].add(rows, *others)  # nobody else touches this one: threads need not wait here
            if not is_first:
                return pa.nulls(len(rows), pa.int64())
            return pa.array([call] + [None] * (len(rows) - 1), pa.int64())

        return parked

    def redeem(self, tickets: list[int] | None) -> Any:
        """Take the accumulator of a call, what all its threads have collected; None where no row came."""
        if not tickets:
            return None
        first, *rest = self._waiting.take(tickets[0]).values()
        for other in rest:
            first.merge(other)
        return first

    def __len__(self) -> int:
        """Count the calls that have rows on their way."""
        return sum(isinstance(thing, dict) for thing in self._waiting.things())


class TableBuilder:
    """Puts blocks of rows together to an Arrow table of few, large chunks, so that the small blocks can go at once."""

    def __init__(self, rows: pa.Array, keys: pa.Array | None = None) -> None:
        self._names = [field.name for field in rows.type]
        self._columns = [column_builders.column_builder(field.type) for field in rows.type]
        self._keys = None if keys is None else column_builders.column_builder(keys.type)
        self._blocks: list[pa.Array] = []
        self._block_bytes = 0

    def add(self, rows: pa.Array, *others: pa.Array) -> None:
        """Take in a block, and the keys to order its rows by where their order matters."""
        self._blocks += _chunks(rows)
        self._block_bytes += rows.nbytes
        if len(self._blocks) >= 16 or self._is_long():
            self._sort_into_columns()
        if self._keys is not None:
            for chunk in _chunks(others[0]):
                self._keys.append(chunk)

    def merge(self, other: TableBuilder) -> None:
        """Put the rows that another thread has collected behind these."""
        other._sort_into_columns()
        self._sort_into_columns()
        self._refuse_too_long(other)
        into, from_other = ([*builder._columns, builder._keys] for builder in (self, other))
        for column, more in zip(into, from_other, strict=True):
            if column is not None and more is not None:
                for chunk in more.finish().chunks:
                    column.append_whole(chunk)

    def table(self) -> pa.Table:
        """Return the table, in the order of the keys where there are any; afterwards the builder is empty."""
        self._sort_into_columns()
        columns = [column.finish() for column in self._columns]
        if self._keys is not None:
            order = pa.array(np.argsort(self._keys.finish().to_numpy(), kind="stable"))
            for place in range(len(columns)):  # one by one: there is never a second copy of all of them
                columns[place] = pc.take(columns[place], order, memory_pool=column_builders.POOL)
        return pa.table(columns, names=self._names)

    def _is_long(self) -> bool:
        return self._block_bytes > column_builders.MOST_BYTES // 16

    def _sort_into_columns(self) -> None:
        """Hand several blocks at once to the columns: one by one, the calls would cost more than the copying."""
        if self._blocks:
            # Long ones go one by one: together they may be too long for Arrow.
            blocks = self._blocks if self._is_long() else [pa.concat_arrays(self._blocks, column_builders.POOL)]
            self._blocks, self._block_bytes = [], 0
            for rows in blocks:
                for index, column in enumerate(self._columns):
                    column.append(rows.field(index))
            self._refuse_too_long()

    def _refuse_too_long(self, other: TableBuilder | None = None) -> None:
        """Refuse a column that is too long, alone or with what another thread has collected."""
        for place, column in enumerate(self._columns):
            if column.text_bytes + (other._columns[place].text_bytes if other else 0) > column_builders.MOST_BYTES:
                raise ValueError(
                    f'anon: column "{self._names[place]}" holds more than 2 GB of text; leave it out, or shorten it '
                    f"first: left({self._names[place]}, 1000)."
                )


def _chunks(array: pa.Array | pa.ChunkedArray) -> list[pa.Array]:
    return array.chunks if isinstance(array, pa.ChunkedArray) else [array]
