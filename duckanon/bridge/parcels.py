"""Parcels: rows on their way from a query's scan to the Python function that will be called with them.

A scan hands its rows over in blocks of at most 2,048, from several threads. Each call of a macro collects its blocks in
accumulators of its own, one a thread; what travels on through the query is the call's number, its ticket.
"""

from __future__ import annotations

import collections
import itertools
import threading
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from duckanon.bridge import column_builders
from duckanon.bridge.plain import plain


class Accumulator(Protocol):
    """What blocks of rows are added to."""

    def add(self, rows: pa.Array, *others: pa.Array) -> None:
        """Take in a block: a struct array with the rows, and whatever else the macro passes along."""

    def merge(self, other: Any) -> None:
        """Take in what another accumulator of the same call has collected."""


MOST_CALLS = 1_000
"""So many calls are remembered: far more than run at the same time, and a call that is forgotten is refused."""

_ENDED = "the query ended before all its rows were read; run it again."


class Owner(NamedTuple):
    """Whose call it is: the database, its connection, and the connection's query."""

    database: int
    connection: int
    query: int


class Parcels:
    """The accumulators that wait for their function, of all calls in all databases.

    Notes
    -----
    A query that fails before its function is called leaves its accumulators behind. A connection runs one query at a
    time, so whatever it collected for an earlier one is dropped when it opens a call again, and at the latest when the
    connection itself goes.
    """

    def __init__(self) -> None:
        self.forget_all()

    def forget_all(self) -> None:
        """Begin with nothing on its way: at first, and in a forked process, where no thread would bring it further."""
        self._lock = threading.Lock()
        self._numbers = itertools.count(1)
        self._gone: collections.deque[tuple[int, int]] = collections.deque()  # databases and their connections
        self._owners: dict[int, Owner] = {}  # by call
        self._waiting: dict[int, dict[int, Accumulator]] = {}  # by call and thread

    def open(self, *arguments: pa.Array) -> pa.Array:
        """Begin a call, for ``anon._call``: takes database, connection and query, and returns the call's number."""
        owner = Owner(*(argument[0].as_py() for argument in arguments))
        with self._lock:
            self._drop_gone()
            self._drop(lambda other: other[:2] == owner[:2] and other.query != owner.query)
            self._forget_without_rows()
            call = next(self._numbers)
            self._owners[call] = owner
        return pa.array([call], pa.int64())

    def park(self, make: Callable[..., Accumulator]) -> Callable[..., pa.Array]:
        """Return the function that takes a block of rows.

        Its arguments are the rows, the call's number, and what else the accumulator wants. It returns the number where
        a thread's first block began, the ticket, and NULL everywhere else.

        Parameters
        ----------
        make
            Makes an accumulator from the arguments of its first block.
        """

        def parked(*arguments: pa.Array) -> pa.Array:
            rows, calls, *others = arguments
            rows = pa.chunked_array(map(plain, rows.chunks)) if isinstance(rows, pa.ChunkedArray) else plain(rows)
            call, thread = calls[0].as_py(), threading.get_ident()
            with self._lock:
                if call not in self._owners:
                    raise ValueError(_ENDED)
                accumulators = self._waiting.setdefault(call, {})
            is_first = thread not in accumulators
            if is_first:
                accumulators[thread] = make(rows, *others)
            accumulators[thread].add(rows, *others)  # nobody else touches this one: threads need not wait here
            return _first_is(call, len(rows)) if is_first else pa.nulls(len(rows), pa.int64())

        return parked

    def redeem(self, tickets: list[int] | None) -> Any:
        """Take the accumulator of a call, what all its threads have collected; None where no row came."""
        if not tickets:
            return None
        with self._lock:
            if self._owners.pop(tickets[0], None) is None:
                raise ValueError(_ENDED)
            first, *rest = self._waiting.pop(tickets[0]).values()
        for other in rest:
            first.merge(other)
        return first

    def drop_connection(self, database: int, connection: int) -> None:
        """Drop what a connection that is gone has left behind: now, or when the next call begins.

        Python may collect the connection while this very thread holds the lock, so it cannot be waited for.
        """
        self._gone.append((database, connection))
        if self._lock.acquire(blocking=False):
            try:
                self._drop_gone()
            finally:
                self._lock.release()

    def __len__(self) -> int:
        """Count the calls that wait."""
        return len(self._waiting)

    def _forget_without_rows(self) -> None:
        """Forget the oldest calls that no row has come for, once there are very many: of empty tables, mostly."""
        if len(self._owners) >= MOST_CALLS:
            for call in [call for call in self._owners if call not in self._waiting][: MOST_CALLS // 2]:
                del self._owners[call]

    def _drop_gone(self) -> None:
        gone = {self._gone.popleft() for _ in range(len(self._gone))}
        if gone:
            self._drop(lambda owner: owner[:2] in gone)

    def _drop(self, is_over: Callable[[Owner], bool]) -> None:
        for call in [call for call, owner in self._owners.items() if is_over(owner)]:
            del self._owners[call]
            self._waiting.pop(call, None)


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
        if len(self._blocks) >= 16 or self._block_bytes > column_builders.MOST_BYTES // 16:
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
        table = pa.table([column.finish() for column in self._columns], names=self._names)
        if self._keys is None:
            return table
        return table.take(pa.array(np.argsort(self._keys.finish().to_numpy(), kind="stable")))

    def _sort_into_columns(self) -> None:
        """Hand several blocks at once to the columns: one by one, the calls would cost more than the copying."""
        if self._blocks:
            if (
                self._block_bytes > column_builders.MOST_BYTES // 16
            ):  # one by one: together they may be too long for Arrow
                blocks = self._blocks
            else:
                blocks = [pa.concat_arrays(self._blocks)]
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


def _first_is(number: int, length: int) -> pa.Array:
    """Return an array with a number in its first place and NULL in all others."""
    return pa.array([number] + [None] * (length - 1), pa.int64())
