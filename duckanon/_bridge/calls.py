"""Calls: makes functions that DuckDB can call of the algorithms that packages declare.

DuckDB's Python client has no table functions, and an Arrow function sees at most 2,048 rows a call. So a macro that
stands for a Python algorithm works in three steps (``sql/bridge/``):

1. ``anon._pack`` scans the table through ``_anon_park``, which collects the blocks of rows in Python (`parcels`) and
   gives a ticket for them. Only that travels on: no list of all rows is built in the database.
2. ``anon._run_<name>`` begins the algorithm as a task (`tasks`), with a ticket for each table and one struct of
   options, and waits for it. The task redeems the tickets for Arrow tables, computes, and returns every column as a
   list, in the slot that can hold its type (`slots`).
3. ``anon._unpack`` turns those lists into rows under the source's names and types.
"""

from __future__ import annotations

import decimal
import inspect
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from duckanon._bridge.column_builders import plain
from duckanon._bridge.parcels import Parcels, TableBuilder
from duckanon._bridge.slots import list_array, pack, refuse_types_that_cannot_travel
from duckanon._bridge.sql_text import known_options
from duckanon._bridge.tasks import Tasks
from duckanon._bridge.waiting import FOR_EVERY_ROW, Owner
from duckanon._core.common import progress
from duckanon._core.common.declare import ColumnReport, Release, Report, Scalar
from duckanon._core.common.imports import imported
from duckanon._core.common.memory import give_back
from duckanon._core.common.refusals import sentence_of
from duckanon._core.common.rules import IN_SQL
from duckanon._core.common.threads import for_cells

_MANY_CELLS = 1_000_000  # of tables: what was freed of fewer is not worth the milliseconds that giving it back takes

ArrowFunction: TypeAlias = Callable[..., pa.Array]
"""A function that DuckDB calls: Arrow arrays in, one out, of as many rows."""


def release_function(declared: Release, parcels: Parcels, tasks: Tasks) -> ArrowFunction:
    """Make the function that begins a release: tickets and options in, lists out once it is done.

    A ValueError that the algorithm raises is one sentence about the argument that was wrong.
    """

    def release(tickets: list[list[int] | None], options: dict[str, Any]) -> pa.Array:
        collected = parcels.redeem(tickets[0])
        others = [_redeemed(parcels, ticket) for ticket in tickets[1:]]
        if collected is None:
            return pack([pa.table({})])
        on_the_way = [collected.table()]
        refuse_types_that_cannot_travel(on_the_way[0].schema)
        algorithm = imported(declared.algorithm)
        options = _taken(algorithm, declared, options) | dict(zip(declared.tables[1:], others, strict=True))
        with for_cells(_cells(on_the_way + others)):
            released = algorithm(on_the_way if declared.hands_over else on_the_way.pop(), **options)
            tables = [released.read_all() if isinstance(released, pa.RecordBatchReader) else released]
        del released
        if declared.hands_over:
            give_back()  # before the lists and then the query's own copies of them are made
        return pack(tables, declared.coded)

    return _begun_once(tasks, f"anon.{declared.name}", len(declared.tables), release)


def report_function(declared: Report, parcels: Parcels, tasks: Tasks) -> ArrowFunction:
    """Make the function that begins a report: tickets and options in, rows out once it is done.

    The rows come as one list of structs, which the macro unnests: their columns are always the same. The algorithm
    takes whatever was collected, a table if that was a `TableBuilder`, and None where no row came.
    """

    def report(tickets: list[list[int] | None], options: dict[str, Any]) -> pa.Array:
        collected = [_redeemed(parcels, ticket) for ticket in tickets]
        algorithm = imported(declared.algorithm)
        tables = {"tables": collected} if declared.hands_over else dict(zip(declared.tables, collected, strict=True))
        options = _taken(algorithm, declared, options) | tables
        cells = _cells(collected)
        with for_cells(cells):
            rows = algorithm(**options)
        del collected, options, tables
        if cells > _MANY_CELLS:
            give_back()  # before the query makes its own copies of the rows
        return _rows_as_list(rows)

    return _begun_once(tasks, declared.caller or f"anon.{declared.name}", len(declared.tables), report)


def column_report_function(declared: ColumnReport, tasks: Tasks) -> ArrowFunction:
    """Make the function that begins a report on one column, which comes as one list.

    A list of plain values costs DuckDB a fraction of what it takes to park rows; only lists of structs are expensive.
    """
    caller = f"anon.{declared.name}"

    def begin(*arguments: pa.Array) -> pa.Array:
        _for_one_row(caller, arguments)
        owner, column, options = arguments
        values, named = column[0].values, known_options(_plain(options[0].as_py()))

        def report() -> pa.Array:
            # no values: the table is empty, and the algorithm says so
            return _rows_as_list(imported(declared.algorithm)(None if values is None else plain(values), **named))

        return tasks.begin(Owner(*owner[0].as_py()), caller, naming_errors(caller, report))

    return begin


def scalar_function(declared: Scalar) -> ArrowFunction:
    """Make the function of single values, which come as one struct a row."""

    def value(given: dict[str, Any]) -> Any:
        if faults := declared.faults(given, IN_SQL):
            raise ValueError(" ".join(faults))
        return imported(declared.algorithm)(**declared.arguments(given))

    def column(*arguments: pa.Array) -> pa.Array:
        return pa.array([value(_plain(row)) for row in arguments[0].to_pylist()], declared.result)

    return naming_errors(f"anon.{declared.name}", column)


def random_numbers(*arguments: pa.Array) -> pa.Array:
    """Draw a number from 0 to 1 for each row, from the operating system: DuckDB's own follow ``setseed``."""
    return pa.array(np.random.default_rng().random(len(arguments[0])))


def naming_errors(caller: str, function: ArrowFunction) -> ArrowFunction:
    """Put the caller's name before the sentence of an error."""

    def called(*arguments: pa.Array) -> pa.Array:  # one star: DuckDB reads the signature
        try:
            return function(*arguments)
        except MemoryError as error:
            raise ValueError(f"{caller}: there is not enough memory; {error}.") from error
        except Exception as error:
            raise ValueError(f"{caller}: {sentence_of(error)}") from error

    return called


def _begun_once(
    tasks: Tasks, caller: str, tables: int, function: Callable[[list[list[int] | None], dict[str, Any]], pa.Array]
) -> ArrowFunction:
    """Begin a task with the one value of each argument: the owner, a ticket for each table, then the options.

    Where several macros share an algorithm, the option ``caller`` says which of them an error should name.
    """

    def begin(*arguments: pa.Array) -> pa.Array:
        owner, *values = (_plain(argument[0].as_py()) for argument in arguments)
        options = known_options(values[tables] or {})
        named = options.pop("caller", caller)
        refused = options.pop("refused", None)
        _for_one_row(named, arguments)
        if refused:
            raise ValueError(f"{named}: {refused}")
        compute = naming_errors(named, lambda: function(values[:tables], options))
        return tasks.begin(Owner(*owner), named, compute)

    return begin


def _for_one_row(caller: str, arguments: tuple[pa.Array, ...]) -> None:
    """Refuse to be called for several rows: there is one table to work on."""
    if any(len(argument) > 1 for argument in arguments):
        raise ValueError(f"{caller}: {FOR_EVERY_ROW}")


def _plain(value: Any) -> Any:
    """Turn decimals into floats: 0.1 is a DECIMAL to DuckDB, and nobody who writes it means to compute in decimals."""
    if isinstance(value, decimal.Decimal):
        return float(value)
    if isinstance(value, list):
        return [_plain(member) for member in value]
    if isinstance(value, tuple):
        return tuple(_plain(member) for member in value)
    return {key: _plain(member) for key, member in value.items()} if isinstance(value, dict) else value


def _redeemed(parcels: Parcels, tickets: list[int] | None) -> Any:
    """Take what a call has collected, as a table where it is one; an empty list: a table was named, and has no rows."""
    if tickets == []:
        raise ValueError("the table to compare with has no rows; give one that has, or leave it out.")
    collected = parcels.redeem(tickets)
    return collected.table() if isinstance(collected, TableBuilder) else collected


def _taken(algorithm: Callable[..., Any], declared: Release | Report, options: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of an algorithm; columns and ``tell`` only where it has a parameter for them.

    The query has chosen the columns by then. Any other option that it forgets is an error.
    """
    own = inspect.signature(algorithm).parameters
    optional = {*declared.columns, "tell"}
    given = declared.arguments(options) | {"tell": progress.at}
    return {name: value for name, value in given.items() if name in own or name not in optional}


def _cells(tables: list[Any]) -> int:
    return sum(table.num_rows * table.num_columns for table in tables if isinstance(table, pa.Table))


def _rows_as_list(rows: pa.Table) -> pa.Array:
    columns = [column.chunk(0) if column.num_chunks == 1 else column.combine_chunks() for column in rows.columns]
    return list_array(np.array([0, rows.num_rows]), pa.StructArray.from_arrays(columns, fields=list(rows.schema)))
