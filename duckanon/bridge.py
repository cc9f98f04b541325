"""The bridge: carries a table from a query to a Python function and its result back into the query.

DuckDB's Python client has no table functions, and an Arrow function sees at most 2,048 rows a call. So a macro that
stands for a Python algorithm works in three steps (``sql/bridge/``):

1. ``anon._pack`` scans the table through ``_anon_park``, which keeps each block of rows here, in `Parcels`, and gives a
   ticket for it. Only the tickets travel on: no list of all rows is built in the database.
2. The algorithm's function is called once with the tickets. It redeems them for one Arrow table, computes, and returns
   every column as a list, in the list of the struct that can hold its type.
3. ``anon._unpack`` turns those lists into rows under the source's names and types.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

Algorithm = Callable[..., pa.Table]
"""A function that takes an Arrow table, then its options, and returns the table to release."""

SLOTS: dict[str, tuple[str, pa.DataType]] = {
    "i": ("BIGINT", pa.int64()),
    "f": ("DOUBLE", pa.float64()),
    "d": ("DATE", pa.date32()),
    "t": ("TIMESTAMP", pa.timestamp("us")),
    "z": ("TIMESTAMPTZ", pa.timestamp("us", "UTC")),
    "s": ("VARCHAR", pa.string()),
}
"""The lists that a released column can travel in: their DuckDB and their Arrow type. One of them is filled."""

RELEASED_TYPE = (
    "STRUCT(names VARCHAR[], columns STRUCT("
    + ", ".join(f"{slot} {sql}[]" for slot, (sql, _) in SLOTS.items())
    + ")[])"
)
"""What every algorithm's function returns to DuckDB, whatever the table looks like."""

_EXACT_DECIMAL_DIGITS = 15  # a double holds every decimal number of so many digits


def slot_of(arrow_type: pa.DataType) -> str | None:
    """Tell which slot carries values of an Arrow type (``anon._slot`` is the same rule on SQL types).

    Returns
    -------
    str or None
        None where the type cannot travel: nested values, binary strings, intervals.
    """
    is_ = pa.types
    if is_.is_boolean(arrow_type) or (is_.is_integer(arrow_type) and not is_.is_uint64(arrow_type)):
        return "i"
    if is_.is_floating(arrow_type) or (is_.is_decimal(arrow_type) and arrow_type.precision <= _EXACT_DECIMAL_DIGITS):
        return "f"
    if is_.is_date32(arrow_type):
        return "d"
    if is_.is_timestamp(arrow_type) and arrow_type.unit == "us":
        return "t" if arrow_type.tz is None else "z"
    if is_.is_dictionary(arrow_type):
        return "s" if _is_text(arrow_type.value_type) else None
    if _is_text(arrow_type) or any(
        test(arrow_type) for test in (is_.is_uint64, is_.is_decimal, is_.is_timestamp, is_.is_time, is_.is_null)
    ):
        return "s"
    return None


def _is_text(arrow_type: pa.DataType) -> bool:
    is_ = pa.types
    return bool(is_.is_string(arrow_type) or is_.is_large_string(arrow_type) or is_.is_string_view(arrow_type))


class Parcels:
    """Blocks of rows on their way from a scan to the function that will redeem them; one instance per database.

    A query that fails between the two leaves its blocks behind. A connection runs one query at a time, so whatever it
    parked for an earlier one is dropped when it parks again.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._tickets = itertools.count(1)
        self._blocks: dict[int, tuple[pa.Array, pa.Array]] = {}
        self._open: dict[int, tuple[int, set[int]]] = {}  # connection: its latest query, the tickets not yet redeemed

    def park(self, rows: pa.Array, keys: pa.Array, owner: pa.Array) -> pa.Array:
        """Keep a block of rows; return its ticket in the first row's place, NULL in all others.

        Parameters
        ----------
        rows
            A struct array.
        keys
            What to order the rows by when they are redeemed; NULL where their order does not matter.
        owner
            The connection (upper 16 bits) and the query (lower 16 bits) that the rows belong to.
        """
        connection_id, query_id = divmod(owner[0].as_py(), 1 << 16)
        with self._lock:
            ticket = next(self._tickets)
            last_query, tickets = self._open.get(connection_id, (query_id, set()))
            if last_query != query_id:
                self._drop(tickets)
                tickets = set()
            tickets.add(ticket)
            self._open[connection_id] = (query_id, tickets)
            self._blocks[ticket] = (rows, keys)
        first = np.zeros(len(rows), dtype=bool)
        first[0] = True
        return pa.array(np.full(len(rows), ticket), mask=~first)

    def redeem(self, tickets: list[int] | None) -> pa.Table:
        """Take the blocks of these tickets as one table; the empty table without columns where there are none.

        Rows that came with keys are put in the order of the keys.
        """
        with self._lock:
            blocks = [self._blocks.pop(ticket) for ticket in tickets or []]
            for _, waiting in self._open.values():
                waiting.difference_update(tickets or [])
        if not blocks:
            return pa.table({})
        rows = pa.chunked_array([chunk for block, _ in blocks for chunk in _chunks(block)])
        table = pa.table(rows.flatten(), names=[field.name for field in rows.type])
        keys = pa.chunked_array([chunk for _, key in blocks for chunk in _chunks(key)])
        if keys.null_count < len(keys):
            table = table.take(pa.array(np.argsort(keys.to_numpy(), kind="stable")))
        return table

    def __len__(self) -> int:
        """Count the blocks that wait."""
        return len(self._blocks)

    def _drop(self, tickets: set[int]) -> None:
        for ticket in tickets:
            self._blocks.pop(ticket, None)


class Folds:
    """Accumulators that rows go into while they are scanned, for functions whose memory must not grow with the table.

    Parameters
    ----------
    make
        Makes the accumulator of one call from the call's first block of rows and its options.
    """

    def __init__(self, make: Callable[..., Accumulator]) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._open: dict[int, tuple[int, Accumulator]] = {}  # call: its owner, its accumulator

    def fold(self, *arguments: pa.Array) -> pa.Array:
        """Add a block of rows to its call's accumulator; return the call's number where it began, NULL in all others.

        The arguments are the rows, their owner (as for `Parcels.park`), the call's number, and its options.
        """
        rows, owners, calls, *options = arguments
        owner, call = owners[0].as_py(), calls[0].as_py()
        with self._lock:
            is_first = call not in self._open
            if is_first:
                for other, (other_owner, _) in list(self._open.items()):
                    if other_owner >> 16 == owner >> 16 and other_owner != owner:  # the same connection's failed query
                        del self._open[other]
                self._open[call] = (owner, self._make(rows, *(option[0].as_py() for option in options)))
            self._open[call][1].add(rows)
        tickets = np.zeros(len(rows), dtype=bool)
        tickets[0] = is_first
        return pa.array(np.full(len(rows), call), mask=~tickets)

    def redeem(self, tickets: list[int] | None) -> Accumulator | None:
        """Take the accumulator of a call; None where no row came."""
        with self._lock:
            return self._open.pop(tickets[0])[1] if tickets else None


class Accumulator(Protocol):
    """What `Folds` adds blocks of rows to."""

    def add(self, rows: pa.Array) -> None:
        """Take in a block of rows, a struct array."""


def table_function(caller: str, algorithm: Algorithm, parcels: Parcels) -> Callable[..., pa.Array]:
    """Make an algorithm that releases a table a function that DuckDB can call: tickets and options in, lists out.

    Parameters
    ----------
    caller
        The macro's name, put before the sentence of an error: ``anon.swap``.
    algorithm
        Takes the table and the options in the order in which the macro passes them; a ValueError that it raises is
        one sentence about the argument that was wrong.
    parcels
        Where the macro's scan parked the rows.
    """

    def release(tickets: list[int] | None, *options: Any) -> pa.Array:
        table = parcels.redeem(tickets)
        refuse_types_that_cannot_travel(table.schema)
        return pack(algorithm(table, *options) if table.num_columns else table)

    return _called_by_duckdb(caller, release)


def report_function(caller: str, algorithm: Algorithm, source: Parcels | Folds) -> Callable[..., pa.Array]:
    """Make an algorithm that reports on a table a function that DuckDB can call: tickets and options in, rows out.

    The rows come as one list of structs, which the macro unnests: their columns are always the same. The parameters
    are those of `table_function`, but the algorithm may also take what a `Folds` accumulated.
    """

    def report(tickets: list[int] | None, *options: Any) -> pa.Array:
        rows = algorithm(source.redeem(tickets), *options)
        return _list_array(np.array([0, rows.num_rows]), pa.concat_arrays(rows.to_struct_array().chunks))

    return _called_by_duckdb(caller, report)


def _called_by_duckdb(caller: str, function: Callable[..., pa.Array]) -> Callable[..., pa.Array]:
    """Hand on the one value of each argument, and put the caller's name before the sentence of an error."""

    def called(*arguments: pa.Array) -> pa.Array:  # one star: DuckDB reads the signature
        try:
            return function(*(argument[0].as_py() for argument in arguments))
        except ValueError as error:
            raise ValueError(f"{caller}: {error}") from error

    return called


def refuse_types_that_cannot_travel(schema: pa.Schema) -> None:
    """Raise a ValueError that names the first column whose type cannot travel."""
    for field in schema:
        if slot_of(field.type) is None:
            raise ValueError(
                f'column "{field.name}" holds values of a type that cannot be released ({field.type}); '
                f"leave it out, or cast it to VARCHAR or a number first."
            )


def pack(table: pa.Table) -> pa.Array:
    """Turn a table into the one value that ``anon._unpack`` expects: the names, and each column as a list."""
    slots = [slot_of(field.type) for field in table.schema]
    lists = []
    for slot, (_, arrow_type) in SLOTS.items():
        here = [own == slot for own in slots]
        chunks = [
            chunk
            for column, mine in zip(table.columns, here, strict=True)
            if mine
            for chunk in _as(column, arrow_type).chunks
        ]
        values = pa.concat_arrays(chunks) if chunks else pa.array([], arrow_type)
        ends = np.cumsum([0] + [table.num_rows if mine else 0 for mine in here])
        lists.append(_list_array(ends, values, ~np.array(here, dtype=bool)))
    columns = pa.StructArray.from_arrays(lists, names=list(SLOTS))
    return pa.StructArray.from_arrays(
        [
            _list_array(np.array([0, table.num_columns]), pa.array(table.column_names, pa.string())),
            _list_array(np.array([0, table.num_columns]), columns),
        ],
        names=["names", "columns"],
    )


def _list_array(offsets: Any, values: pa.Array, missing: Any = None) -> pa.Array:
    mask = None if missing is None else pa.array(missing)
    if offsets[-1] < np.iinfo(np.int32).max:
        return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), values, mask=mask)
    return pa.LargeListArray.from_arrays(pa.array(offsets, pa.int64()), values, mask=mask)


def _as(column: pa.ChunkedArray, arrow_type: pa.DataType) -> pa.ChunkedArray:
    return column if column.type == arrow_type else column.cast(arrow_type)


def _chunks(array: pa.Array | pa.ChunkedArray) -> list[pa.Array]:
    return array.chunks if isinstance(array, pa.ChunkedArray) else [array]
