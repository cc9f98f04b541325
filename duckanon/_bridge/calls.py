"""Calls: makes functions that DuckDB can call of the algorithms that packages declare.

DuckDB's Python client has no table functions, and an Arrow function sees at most 2,048 rows a call. So a macro that
stands for a Python algorithm works in three steps (``sql/bridge/``):

1. ``anon._pack`` scans the table through ``_anon_park``, which collects the blocks of rows in Python (`parcels`) and
   gives a ticket for them. Only that travels on: no list of all rows is built in the database.
2. ``anon._run_<name>`` begins the algorithm as a task (`tasks`), with a ticket for each table and one struct of
   options, and waits for it. The task redeems the tickets for Arrow tables, computes, and returns every column as a
   list, in the slot that can hold its type (`slots`).
3. ``anon._unpack`` turns those lists into rows under the source's names and types.

Tasks: algorithms at work on threads of their own, while their queries wait for them in small turns.

A Python function that DuckDB calls is not told when the query is interrupted: DuckDB looks at its own flag between two
blocks of rows, and nowhere else. So no algorithm runs inside such a call. ``_anon_begin_<name>`` starts it on a thread
and returns the number of the task; ``anon._awaited`` scans an endless range and asks ``_anon_wait``, block after block,
whether the task is done, so that DuckDB can look at its flag ten times a second; ``_anon_<name>`` returns the result.
The query thus ends at once, whatever the algorithm is busy with. The algorithm notices at its next
`common.progress.check` that nobody asks for it any more: it pauses, and stops when its query is known to be
over.
"""

from __future__ import annotations

import atexit
import decimal
import inspect
import math
import threading
import time
import traceback
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from duckanon._bridge.parcels import Parcels, TableBuilder, plain
from duckanon._bridge.slots import list_array, pack, refuse_types_that_cannot_travel
from duckanon._bridge.sql_text import read_options
from duckanon._bridge.waiting import FOR_EVERY_ROW, Owner, Query, Waiting
from duckanon._core.common import progress
from duckanon._core.common.arguments import sentence_of
from duckanon._core.common.declare import ColumnReport, Release, Report, Scalar
from duckanon._core.common.imports import import_function
from duckanon._core.common.resources import free_memory, limit_threads
from duckanon._core.common.rules import IN_SQL

TURN = 0.1
"""Seconds that a query waits for its task before DuckDB may look whether it was interrupted."""

_SILENCE = 1.0  # seconds without a turn, after which a task pauses
_FAREWELL = 2.0  # seconds that tasks have to stop when the program ends

_MOST_TIMES_TOLD = 8  # that a task is done: blocks that DuckDB may have begun before it has what it asked for


class Task:
    """An algorithm at work for a query, and then its result or its error."""

    def __init__(self, query: Query, caller: str, compute: Callable[[], pa.Array]) -> None:
        self.query, self.caller = query, caller
        self.times_told = 0
        self._is_done = threading.Event()
        self._compute: Callable[[], pa.Array] | None = compute
        self._result: pa.Array | None = None
        self._error: BaseException | None = None
        self.thread = threading.Thread(target=self._run, name=caller, daemon=True)
        self.thread.start()

    def wait(self, seconds: float) -> bool:
        """Wait for its end at most so long, and tell whether it has come."""
        self.query.hear()
        return self._is_done.wait(seconds)

    def result(self) -> pa.Array:
        """Return what was computed, or raise what went wrong; afterwards the task has neither."""
        result, error, self._result, self._error = self._result, self._error, None, None
        if error is not None:
            raise error
        return result

    def check(self) -> None:
        """Pause while the query is not heard of, and stop where it is over: asked by the algorithm itself."""
        while not self.query.is_over:
            if self.query.silence < _SILENCE:
                return
            time.sleep(TURN)  # also lets the query's thread have Python's lock, which may be all that kept it silent
        raise progress.StoppedError

    def _run(self) -> None:
        query, compute, self._compute = self.query, self._compute, None
        try:
            if compute is not None:
                shown = progress.show(self.caller, silence=lambda: math.inf if query.is_over else query.silence)
                with shown as tell, progress.watch(self.check, tell):
                    self._result = compute()
        except BaseException as error:  # to be raised where it is waited for
            traceback.clear_frames(error.__traceback__)  # which hold people's rows
            self._error = error
        self._is_done.set()


class Tasks:
    """The three functions by which SQL begins a task, waits for it and takes its result."""

    def __init__(self, waiting: Waiting) -> None:
        self._waiting = waiting
        atexit.register(self.stop)

    def begin(self, owner: Owner, caller: str, compute: Callable[[], pa.Array]) -> pa.Array:
        """Start a task and return its number."""
        return pa.array([self._waiting.open(owner, lambda query: Task(query, caller, compute))], pa.int64())

    def wait(self, *arguments: pa.Array) -> pa.Array:
        """Wait a turn for a task, and tell whether it is done, for all rows of the block alike.

        (DuckDB holds few rows back until there are more.) Whoever asks on and on after that is a query that wants the
        result for every row of another table: one that wants it once stops asking.
        """
        numbers, turns = arguments
        task: Task = self._waiting.thing(numbers[0].as_py(), lambda: None)
        try:
            is_done = task.wait(TURN)
        except KeyboardInterrupt:
            task.query.is_over = True
            raise ValueError(f"{task.caller}: it was interrupted.") from None
        task.times_told += is_done
        if task.times_told > _MOST_TIMES_TOLD:
            raise ValueError(f"{task.caller}: {FOR_EVERY_ROW}")
        return pa.array(np.full(len(turns), is_done))

    def result(self, *arguments: pa.Array) -> pa.Array:
        """Return what a task has computed, or raise what went wrong."""
        return self._waiting.take(arguments[0][0].as_py()).result()

    def running(self) -> list[Task]:
        """List the tasks that have not ended."""
        return [thing for thing in self._waiting.things() if isinstance(thing, Task) and thing.thread.is_alive()]

    def stop(self) -> None:
        """Ask all tasks to stop, when the program ends, and give them a moment: C code is not to be cut off."""
        running = self.running()
        for task in running:
            task.query.is_over = True
        end = time.monotonic() + _FAREWELL
        for task in running:
            task.thread.join(max(0.0, end - time.monotonic()))


_MANY_CELLS = 1_000_000  # of tables: what was freed of fewer is not worth the milliseconds that giving it back takes

ArrowFunction: TypeAlias = Callable[..., pa.Array]
"""A function that DuckDB calls: Arrow arrays in, one out, of as many rows."""


def release_function(declared: Release, parcels: Parcels, tasks: Tasks) -> ArrowFunction:
    """Make the function that begins a release: tickets and options in, lists out once it is done.

    A ValueError that the algorithm raises is one sentence about the argument that was wrong.
    """

    def release(tickets: list[list[int] | None], options: dict[str, Any]) -> pa.Array:
        collected = parcels.redeem(tickets[0])
        rest = [_redeem_tickets(parcels, ticket) for ticket in tickets[1:]]
        if collected is None:
            return pack([pa.table({})])
        on_the_way = [collected.table()]
        refuse_types_that_cannot_travel(on_the_way[0].schema)
        algorithm = import_function(declared.algorithm)
        options = _select_arguments(algorithm, declared, options) | dict(zip(declared.tables[1:], rest, strict=True))
        with limit_threads(_cells(on_the_way + rest)):
            released = algorithm(on_the_way if declared.hands_over else on_the_way.pop(), **options)
            tables = [released.read_all() if isinstance(released, pa.RecordBatchReader) else released]
        del released
        if declared.hands_over:
            free_memory()  # before the lists and then the query's own copies of them are made
        return pack(tables, declared.coded)

    return _begin_once(tasks, f"anon.{declared.name}", len(declared.tables), release)


def report_function(declared: Report, parcels: Parcels, tasks: Tasks) -> ArrowFunction:
    """Make the function that begins a report: tickets and options in, rows out once it is done.

    The rows come as one list of structs, which the macro unnests: their columns are always the same. The algorithm
    takes whatever was collected, a table if that was a `TableBuilder`, and None where no row came.
    """

    def report(tickets: list[list[int] | None], options: dict[str, Any]) -> pa.Array:
        collected = [_redeem_tickets(parcels, ticket) for ticket in tickets]
        algorithm = import_function(declared.algorithm)
        tables = {"tables": collected} if declared.hands_over else dict(zip(declared.tables, collected, strict=True))
        options = _select_arguments(algorithm, declared, options) | tables
        cells = _cells(collected)
        with limit_threads(cells):
            rows = algorithm(**options)
        del collected, options, tables
        if cells > _MANY_CELLS:
            free_memory()  # before the query makes its own copies of the rows
        return _rows_as_list(rows)

    return _begin_once(tasks, declared.caller or f"anon.{declared.name}", len(declared.tables), report)


def column_report_function(declared: ColumnReport, tasks: Tasks) -> ArrowFunction:
    """Make the function that begins a report on one column, which comes as one list.

    A list of plain values costs DuckDB a fraction of what it takes to park rows; only lists of structs are expensive.
    """
    caller = f"anon.{declared.name}"

    def begin(*arguments: pa.Array) -> pa.Array:
        _for_one_row(caller, arguments)
        owner, column, options = arguments
        values, named = column[0].values, read_options(_plain(options[0].as_py()))

        def report() -> pa.Array:
            # no values: the table is empty, and the algorithm says so
            return _rows_as_list(
                import_function(declared.algorithm)(None if values is None else plain(values), **named)
            )

        return tasks.begin(Owner(*owner[0].as_py()), caller, naming_errors(caller, report))

    return begin


def scalar_function(declared: Scalar) -> ArrowFunction:
    """Make the function of single values, which come as one struct a row."""

    def value(options: dict[str, Any]) -> Any:
        if faults := declared.faults(options, IN_SQL):
            raise ValueError(" ".join(faults))
        return import_function(declared.algorithm)(**declared.arguments(options))

    def column(*arguments: pa.Array) -> pa.Array:
        return pa.array([value(_plain(row)) for row in arguments[0].to_pylist()], declared.result)

    return naming_errors(f"anon.{declared.name}", column)


def random_numbers(*arguments: pa.Array) -> pa.Array:
    """Draw a number from 0 to 1 for each row, from the operating system: DuckDB's own follow ``setseed``."""
    return pa.array(np.random.default_rng().random(len(arguments[0])))


def naming_errors(caller: str, function: ArrowFunction) -> ArrowFunction:
    """Put the caller's name before the sentence of an error, and let numpy warn nobody of infinities."""

    def call(*arguments: pa.Array) -> pa.Array:  # one star: DuckDB reads the signature
        try:
            with np.errstate(all="ignore"):
                return function(*arguments)
        except MemoryError as error:
            raise ValueError(f"{caller}: there is not enough memory; {error}.") from error
        except Exception as error:
            raise ValueError(f"{caller}: {sentence_of(error)}") from error

    return call


def _begin_once(
    tasks: Tasks, caller: str, tables: int, function: Callable[[list[list[int] | None], dict[str, Any]], pa.Array]
) -> ArrowFunction:
    """Begin a task with the one value of each argument: the owner, a ticket for each table, then the options.

    Where several macros share an algorithm, the option ``caller`` says which of them an error should name.
    """

    def begin(*arguments: pa.Array) -> pa.Array:
        owner, *values = (_plain(argument[0].as_py()) for argument in arguments)
        options = read_options(values[tables] or {})
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


def _redeem_tickets(parcels: Parcels, tickets: list[int] | None) -> Any:
    """Take what a call has collected, as a table where it is one; an empty list: a table was named, and has no rows."""
    if tickets == []:
        raise ValueError("the table to compare with has no rows; give one that has, or leave it out.")
    collected = parcels.redeem(tickets)
    return collected.table() if isinstance(collected, TableBuilder) else collected


def _select_arguments(
    algorithm: Callable[..., Any], declared: Release | Report, options: dict[str, Any]
) -> dict[str, Any]:
    """Return the arguments of an algorithm; columns only where it has a parameter for them.

    The query has chosen the columns by then. Any other option that it forgets is an error.
    """
    parameters = inspect.signature(algorithm).parameters
    arguments = declared.arguments(options)
    return {name: value for name, value in arguments.items() if name in parameters or name not in declared.columns}


def _cells(tables: list[Any]) -> int:
    return sum(table.num_rows * table.num_columns for table in tables if isinstance(table, pa.Table))


def _rows_as_list(rows: pa.Table) -> pa.Array:
    columns = [column.chunk(0) if column.num_chunks == 1 else column.combine_chunks() for column in rows.columns]
    return list_array(np.array([0, rows.num_rows]), pa.StructArray.from_arrays(columns, fields=list(rows.schema)))
