"""The bridge: carries a table from a query to a Python function and its result back into the query.

DuckDB's Python client has no table functions, and an Arrow function sees at most 2,048 rows a call. So a macro that
stands for a Python algorithm works in three steps (``sql/bridge/``):

1. ``anon._pack`` scans the table through ``_anon_park``, which collects the blocks of rows in Python
   (`parcels`) and gives a ticket for them. Only that travels on: no list of all rows is built in the database.
2. The algorithm's function is called once with the ticket. It redeems it for one Arrow table, computes, and returns
   every column as a list, in the list of the struct that can hold its type.
3. ``anon._unpack`` turns those lists into rows under the source's names and types.
"""

from __future__ import annotations

import decimal
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from duckanon.bridge.parcels import Parcels, TableBuilder
from duckanon.common.threads import for_cells

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
    """Tell which slot carries values of an Arrow type (``anon._unpack`` has the same rule on SQL types).

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


def table_function(
    caller: str, algorithm: Algorithm, tables: Parcels[TableBuilder], others: int = 0
) -> Callable[..., pa.Array]:
    """Make an algorithm that releases a table a function that DuckDB can call: tickets and options in, lists out.

    Parameters
    ----------
    caller
        The macro's name, put before the sentence of an error: ``anon.swap``.
    algorithm
        Takes the table and the options in the order in which the macro passes them; a ValueError that it raises is
        one sentence about the argument that was wrong.
    tables
        Where the macro's scan parked the rows.
    others
        How many more tables the algorithm takes after the first, each None where no row of it came.
    """

    def release(tickets: list[int] | None, *arguments: Any) -> pa.Array:
        collected = tables.redeem(tickets)
        more = [_redeemed(tables, one) for one in arguments[:others]]
        if collected is None:
            return pack([pa.table({})])
        tables_on_the_way = [collected.table()]
        refuse_types_that_cannot_travel(tables_on_the_way[0].schema)
        with for_cells(_cells(tables_on_the_way + more)):
            released = [algorithm(tables_on_the_way.pop(), *more, *arguments[others:])]
        return pack(released)

    return _called_by_duckdb(caller, release)


def report_function(
    caller: str | None, algorithm: Algorithm, parcels: Parcels[Any], tables: int = 1
) -> Callable[..., pa.Array]:
    """Make an algorithm that reports on a table a function that DuckDB can call: tickets and options in, rows out.

    The rows come as one list of structs, which the macro unnests: their columns are always the same. The parameters
    are those of `table_function`, but the algorithm takes whatever was collected, None where no row came; a table if
    that was a `TableBuilder`. The first ``tables`` arguments are tickets. Where several macros share an algorithm,
    ``caller`` is None and the first argument names it.
    """

    def report(*arguments: Any) -> pa.Array:
        collected = [_redeemed(parcels, tickets) for tickets in arguments[:tables]]
        with for_cells(_cells(collected)):
            return _rows_as_list(algorithm(*collected, *arguments[tables:]))

    if caller is not None:
        return _called_by_duckdb(caller, report)
    return lambda *arguments: _called_by_duckdb(arguments[0][0].as_py(), report)(*arguments[1:])


def column_report_function(caller: str, algorithm: Algorithm) -> Callable[..., pa.Array]:
    """Make an algorithm that reports on one column a function that DuckDB can call: the column comes as one list.

    A list of plain values costs DuckDB a fraction of what it takes to park rows; only structs are dear. The algorithm
    takes the column as an Arrow array, None where no row came, then the options.
    """

    def report(column: pa.Array, *arguments: pa.Array) -> pa.Array:
        values = column[0].values
        return _rows_as_list(algorithm(values, *(_option(argument[0].as_py()) for argument in arguments)))

    return naming_errors(caller, report)


def scalar_function(caller: str, algorithm: Callable[..., Any], arrow_type: pa.DataType) -> Callable[..., pa.Array]:
    """Make a function of single values one that DuckDB can call on columns; NULL where any required value is NULL."""

    def column(*arguments: pa.Array) -> pa.Array:
        rows = zip(*(argument.to_pylist() for argument in arguments), strict=True)
        return pa.array([algorithm(*(_option(value) for value in row)) for row in rows], arrow_type)

    return naming_errors(caller, column)


def _cells(tables: list[Any]) -> int:
    return sum(table.num_rows * table.num_columns for table in tables if isinstance(table, pa.Table))


def _redeemed(parcels: Parcels[Any], tickets: list[int] | None) -> Any:
    """Take what a call has collected, as a table where it is one; an empty list: a table was named, and has no rows."""
    if tickets == []:
        raise ValueError("the table to compare with has no rows; give one that has, or leave it out.")
    collected = parcels.redeem(tickets)
    return collected.table() if isinstance(collected, TableBuilder) else collected


def _rows_as_list(rows: pa.Table) -> pa.Array:
    columns = [column.combine_chunks() for column in rows.columns]
    return _list_array(np.array([0, rows.num_rows]), pa.StructArray.from_arrays(columns, fields=list(rows.schema)))


def _called_by_duckdb(caller: str, function: Callable[..., pa.Array]) -> Callable[..., pa.Array]:
    """Hand on the one value of each argument."""

    def called(*arguments: pa.Array) -> pa.Array:
        if any(len(argument) > 1 for argument in arguments):
            raise ValueError("it works on whole tables and cannot be called for every row of another one.")
        return function(*(_option(argument[0].as_py()) for argument in arguments))

    return naming_errors(caller, called)


def _option(value: Any) -> Any:
    """Turn decimals into floats: 0.1 is a DECIMAL to DuckDB, and nobody who writes it means to compute in decimals."""
    if isinstance(value, decimal.Decimal):
        return float(value)
    if isinstance(value, list):
        return [_option(one) for one in value]
    if isinstance(value, tuple):
        return tuple(_option(one) for one in value)
    return {key: _option(one) for key, one in value.items()} if isinstance(value, dict) else value


def naming_errors(caller: str, function: Callable[..., pa.Array]) -> Callable[..., pa.Array]:
    """Put the caller's name before the sentence of an error."""

    def called(*arguments: pa.Array) -> pa.Array:  # one star: DuckDB reads the signature
        try:
            return function(*arguments)
        except ValueError as error:
            raise ValueError(f"{caller}: {error}") from error
        except MemoryError as error:
            raise ValueError(f"{caller}: there is not enough memory; {error}.") from error

    return called


def refuse_types_that_cannot_travel(schema: pa.Schema) -> None:
    """Raise a ValueError that names the first column whose type cannot travel."""
    for field in schema:
        if slot_of(field.type) is None:
            raise ValueError(
                f'column "{field.name}" holds values of a type that cannot be released ({field.type}); '
                f"leave it out, or cast it to VARCHAR or a number first."
            )


def pack(table: list[pa.Table]) -> pa.Array:
    """Turn a table into the one value that ``anon._unpack`` expects: the names, and each column as a list.

    Parameters
    ----------
    table
        The table, in a list that is emptied: where nobody else holds the table, its memory goes piece by piece as the
        lists are filled, and there is never a second copy of it.
    """
    names, columns, rows = table[0].column_names, table[0].columns, table.pop().num_rows
    slots = [slot_of(column.type) for column in columns]
    lists = []
    for slot, (_, arrow_type) in SLOTS.items():
        here = np.array([own == slot for own in slots], dtype=bool)
        chosen = [columns[place] for place in np.flatnonzero(here)]
        for place in np.flatnonzero(here):
            columns[place] = None
        ends = np.cumsum(np.concatenate([[0], here * rows]))
        lists.append(_list_array(ends, _joined(chosen, arrow_type), ~here))
    columns_list = pa.StructArray.from_arrays(lists, names=list(SLOTS))
    ends = np.array([0, len(names)])
    return pa.StructArray.from_arrays(
        [_list_array(ends, pa.array(names, pa.string())), _list_array(ends, columns_list)], names=["names", "columns"]
    )


def _joined(columns: list[pa.ChunkedArray], arrow_type: pa.DataType) -> pa.Array:
    """Put columns behind each other as one array of a type; the list is emptied, so that they can go meanwhile."""
    if arrow_type == pa.string():
        texts = [_as(column, arrow_type) for column in columns]
        if sum(column.nbytes for column in texts) >= 2**31:  # more than 32-bit offsets can tell
            arrow_type = pa.large_string()
        chunks = [chunk for column in texts for chunk in _as(column, arrow_type).chunks]
        return pa.concat_arrays(chunks) if chunks else pa.array([], arrow_type)
    length, start = sum(map(len, columns)), 0
    raw = np.dtype(f"u{arrow_type.bit_width // 8}")
    values = np.empty(length, raw)
    valid = np.ones(length, bool) if any(column.null_count for column in columns) else None
    columns.reverse()
    while columns:
        chunks = _as(columns.pop(), arrow_type).chunks[::-1]
        while chunks:
            chunk = chunks.pop()
            here = slice(start, start := start + len(chunk))
            values[here] = np.frombuffer(chunk.buffers()[1], raw, chunk.offset + len(chunk))[chunk.offset :]
            if valid is not None:
                valid[here] = chunk.is_valid().to_numpy(zero_copy_only=False)
    bitmap = None if valid is None else pa.py_buffer(np.packbits(valid, bitorder="little"))
    return pa.Array.from_buffers(arrow_type, length, [bitmap, pa.py_buffer(values)])


def _list_array(offsets: Any, values: pa.Array, missing: Any = None) -> pa.Array:
    mask = None if missing is None else pa.array(missing)
    if offsets[-1] < np.iinfo(np.int32).max:
        return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), values, mask=mask)
    return pa.LargeListArray.from_arrays(pa.array(offsets, pa.int64()), values, mask=mask)


def _as(column: pa.ChunkedArray, arrow_type: pa.DataType) -> pa.ChunkedArray:
    return column if column.type == arrow_type else column.cast(arrow_type)
