"""The registry: every function that a package declares, as DuckDB is to register it.

The functions are made once for the process and are the same in every database, so that nothing has to be kept for one
that is closed. What a database's queries have on their way is told apart by the call (`parcels`).
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import pyarrow as pa

import duckanon._measure.assess.declared
import duckanon._measure.declared
import duckanon._measure.risk.declared
import duckanon._methods.baselines.declared
import duckanon._methods.boxes.declared
import duckanon._methods.generalize.declared
import duckanon._methods.intervals.declared
import duckanon._methods.microaggregate.declared
import duckanon._methods.recode.declared
import duckanon._methods.suppress.declared
import duckanon._methods.swap.declared
import duckanon._methods.synthesize.declared
from duckanon._bridge import calls, parcels, slots, tasks, waiting
from duckanon._bridge.macros import MacroFile
from duckanon._core.common.declare import ColumnReport, Declaration, Release, Report, Scalar
from duckanon._core.common.imports import imported

DECLARATIONS: tuple[Declaration, ...] = (
    Release("identity", "duckanon._bridge.registry:identity"),
    *duckanon._measure.assess.declared.FUNCTIONS,
    *duckanon._measure.risk.declared.FUNCTIONS,
    *duckanon._methods.generalize.declared.FUNCTIONS,
    *duckanon._methods.boxes.declared.FUNCTIONS,
    *duckanon._methods.intervals.declared.FUNCTIONS,
    *duckanon._methods.recode.declared.FUNCTIONS,
    *duckanon._methods.swap.declared.FUNCTIONS,
    *duckanon._methods.synthesize.declared.FUNCTIONS,
    *duckanon._methods.baselines.declared.FUNCTIONS,
    *duckanon._methods.microaggregate.declared.FUNCTIONS,
    *duckanon._methods.suppress.declared.FUNCTIONS,
    *duckanon._measure.declared.FUNCTIONS,
)

WAITING = waiting.Waiting()
"""All that queries have on their way, in all databases."""

PARCELS = parcels.Parcels(WAITING)
"""The rows among it."""

TASKS = tasks.Tasks(WAITING)
"""The algorithms at work."""

SQL_TYPES = {
    pa.string(): "VARCHAR",
    pa.float64(): "DOUBLE",
    pa.int64(): "BIGINT",
    pa.uint64(): "UBIGINT",
    pa.bool_(): "BOOLEAN",
}


class Registered(NamedTuple):
    """A function, and the DuckDB type of what it returns."""

    function: calls.ArrowFunction
    sql_type: str


@functools.cache
def functions() -> dict[str, Registered]:
    """Return all functions by the name under which macros call them."""
    registered = {
        "_anon_random": Registered(calls.random_numbers, "DOUBLE"),
        "_anon_open": Registered(PARCELS.open, "BIGINT"),
        "_anon_park": Registered(PARCELS.park(parcels.TableBuilder), "BIGINT"),
        "_anon_wait": Registered(TASKS.wait, "BOOLEAN"),
    }
    for declared in DECLARATIONS:
        registered |= _registered(declared)
    return registered


def _registered(declared: Declaration) -> dict[str, Registered]:
    name, begin = f"_anon_{declared.name}", f"_anon_begin_{declared.name}"
    if isinstance(declared, Release):
        return {
            begin: Registered(calls.release_function(declared, PARCELS, TASKS), "BIGINT"),
            name: Registered(TASKS.result, slots.RELEASED_TYPE),
        }
    if isinstance(declared, ColumnReport):
        return {
            begin: Registered(calls.column_report_function(declared, TASKS), "BIGINT"),
            name: Registered(TASKS.result, rows_type(declared.schema)),
        }
    if isinstance(declared, Report):
        report = {
            begin: Registered(calls.report_function(declared, PARCELS, TASKS), "BIGINT"),
            name: Registered(TASKS.result, rows_type(declared.schema)),
        }
        if declared.collector is not None:
            park = PARCELS.park(_maker(declared.collector))
            park = calls.naming_errors(declared.caller or f"anon.{declared.name}", park)
            report[f"_anon_park_{declared.name}"] = Registered(park, "BIGINT")
        return report
    return {name: Registered(calls.scalar_function(declared), sql_type(declared.result))}


def run_macros() -> tuple[MacroFile, ...]:
    """Write the macro ``anon._run_<name>`` of every algorithm: it begins a task, waits for it, takes its result."""
    return tuple(_run_macro(declared) for declared in DECLARATIONS if not isinstance(declared, Scalar))


def _run_macro(declared: Release | Report | ColumnReport) -> MacroFile:
    name = declared.name
    tables = ("values_list",) if isinstance(declared, ColumnReport) else declared.tables
    parameters = ", ".join([*(f"{table}_taken" for table in tables), "options"])
    sql = (
        f"CREATE OR REPLACE MACRO anon._run_{name}({parameters}) AS\n"
        f"    _anon_{name}(anon._awaited(_anon_begin_{name}(anon._owner(), {parameters})));\n"
    )
    return MacroFile(f"_run_{name}", "bridge", parameters, needs_python=True, is_table=False, sql=sql)


def _maker(path: str) -> Any:
    """Make accumulators of a class that is imported when the first one is needed."""
    return lambda *arguments: imported(path)(*arguments)


def sql_type(arrow_type: pa.DataType) -> str:
    """Write an Arrow type as DuckDB does."""
    if pa.types.is_list(arrow_type):
        return f"{sql_type(arrow_type.value_type)}[]"
    if pa.types.is_struct(arrow_type):
        fields = ", ".join(f'"{field.name}" {sql_type(field.type)}' for field in arrow_type)
        return f"STRUCT({fields})"
    return SQL_TYPES[arrow_type]


def rows_type(schema: pa.Schema) -> str:
    """Write the type of a report's rows, a list of structs, as DuckDB does."""
    return sql_type(pa.list_(pa.struct(list(schema))))


def identity(table: pa.Table) -> pa.Table:
    """Return a table as it is: what the tests prove the bridge by."""
    return table
