"""The registry: every function that a package declares, as DuckDB is to register it.

The functions are made once for the process and are the same in every database, so that nothing has to be kept for one
that is closed. What a database's queries have on their way is told apart by the call (`parcels`).
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import pyarrow as pa

from duckanon._bridge import calls, generated, parcels, slots
from duckanon._bridge.generated import DECLARATIONS
from duckanon._bridge.waiting import WAITING
from duckanon._core.common.arrays import sql_type
from duckanon._core.common.declare import ColumnReport, Declaration, Release, Report, Scalar
from duckanon._core.common.imports import import_function

PARCELS = parcels.Parcels(WAITING)
"""The rows among it."""

TASKS = calls.Tasks(WAITING)
"""The algorithms at work."""


class Registered(NamedTuple):
    """A function, the DuckDB type of what it returns, and whether DuckDB may compute it while it binds a query."""

    function: calls.ArrowFunction
    sql_type: str
    is_constant: bool = False


@functools.cache
def functions() -> dict[str, Registered]:
    """Return all functions by the name under which macros call them."""
    registered = {
        "_anon_random": Registered(calls.random_numbers, "DOUBLE"),
        "_anon_open": Registered(PARCELS.open, "BIGINT"),
        "_anon_park": Registered(PARCELS.park(parcels.TableBuilder), "BIGINT"),
        "_anon_write": Registered(generated.write, "VARCHAR", is_constant=True),
        "_anon_choose": Registered(generated.choose, "VARCHAR[]", is_constant=True),
        "_anon_wait": Registered(TASKS.wait, "BOOLEAN"),
    }
    for declared in DECLARATIONS:
        if declared.algorithm:  # else a query of other functions
            registered |= _register(declared)
    return registered


def _register(declared: Declaration) -> dict[str, Registered]:
    name = f"_anon_{declared.name}"
    if isinstance(declared, Scalar):
        return {name: Registered(calls.scalar_function(declared), sql_type(declared.result))}
    if isinstance(declared, Release):
        begin, result = calls.release_function(declared, PARCELS, TASKS), slots.RELEASED_TYPE
    elif isinstance(declared, ColumnReport):
        begin, result = calls.column_report_function(declared, TASKS), rows_type(declared.schema)
    else:
        begin, result = calls.report_function(declared, PARCELS, TASKS), rows_type(declared.schema)
    both = {f"_anon_begin_{declared.name}": Registered(begin, "BIGINT"), name: Registered(TASKS.result, result)}
    if isinstance(declared, Report) and declared.collector is not None:
        park = calls.naming_errors(declared.caller or f"anon.{declared.name}", PARCELS.park(_maker(declared.collector)))
        both[f"_anon_park_{declared.name}"] = Registered(park, "BIGINT")
    return both


def _maker(path: str) -> Any:
    """Make accumulators of a class that is imported when the first one is needed."""
    return lambda *arguments: import_function(path)(*arguments)


def rows_type(schema: pa.Schema) -> str:
    """Write the type of a report's rows, a list of structs, as DuckDB does."""
    return sql_type(pa.list_(pa.struct(list(schema))))


def identity(table: pa.Table) -> pa.Table:
    """Return a table as it is: what the tests prove the bridge by."""
    return table
