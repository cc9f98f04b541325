"""Generated macros: what a declaration becomes in SQL.

A public macro does nothing but hand its arguments to Python while a query is bound::

    CREATE MACRO anon.recode(tbl, cols, k, effort := 'default', ...) AS TABLE
    FROM query(_anon_write('recode', {'tbl': tbl, 'cols': cols, 'k': k, 'effort': effort, ...}))

``_anon_write`` is a function without side effects, which DuckDB computes while it binds the query. It refuses what the
declaration refuses, all faults in one error, in less than a millisecond, and returns the query to run with every option
written into it: no macro has to look at an option again. That also means that arguments are constants, parameters of a
prepared statement or variables: DuckDB refuses a subquery there.

All declarations: every function that a package lets SQL call.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pyarrow as pa

from duckanon._bridge import sql_text as sql
from duckanon._bridge.qualified import MacroFile, qualify
from duckanon._core.common.declare import ColumnReport, Declaration, Options, Parameter, Release, Report, Scalar
from duckanon._core.common.imports import import_function
from duckanon._core.common.names import suggest_name
from duckanon._core.common.rules import IN_SQL
from duckanon._measure import declared as measure
from duckanon._measure.assess import declared as assess
from duckanon._measure.attacks import declared as attacks
from duckanon._measure.risk import declared as risk
from duckanon._measure.utility import declared as utility
from duckanon._methods.baselines import declared as baselines
from duckanon._methods.boxes import declared as boxes
from duckanon._methods.dp import declared as dp
from duckanon._methods.generalize import declared as generalize
from duckanon._methods.intervals import declared as intervals
from duckanon._methods.linked import declared as linked
from duckanon._methods.microaggregate import declared as microaggregate
from duckanon._methods.recode import declared as recode
from duckanon._methods.suppress import declared as suppress
from duckanon._methods.swap import declared as swap
from duckanon._methods.synthesize import declared as synthesize
from duckanon._methods.tables import declared as tables

_MODULES = (
    assess,
    risk,
    generalize,
    boxes,
    intervals,
    recode,
    linked,
    swap,
    synthesize,
    baselines,
    microaggregate,
    suppress,
    tables,
    dp,
    attacks,
    utility,
    measure,
)

DECLARED_IN: dict[str, str] = {declared.name: module.__name__ for module in _MODULES for declared in module.FUNCTIONS}
"""The module that declares each function."""

DECLARATIONS: tuple[Declaration, ...] = (
    Release(name="identity", algorithm="duckanon._bridge.registry:identity"),
    *(declared for module in _MODULES for declared in module.FUNCTIONS),
)

PUBLIC = {declared.name: declared for declared in DECLARATIONS if declared.is_public}
"""The functions that users call, by name."""


_BINARY_COLLATIONS = ("", "binary", "c", "posix")


def generate_macros() -> tuple[MacroFile, ...]:
    """Return the public macro of every declaration, and ``anon._run_<name>`` for those that other macros run."""
    public = [_public_macro(declared) for declared in PUBLIC.values()]
    run = [_run_macro(declared) for declared in DECLARATIONS if declared.algorithm and not isinstance(declared, Scalar)]
    return (*public, *run)


def signature(declared: Declaration) -> str:
    """Return the parameters of a function with their defaults, as SQL writes them."""
    return ", ".join(
        parameter.name if parameter.is_required else f"{parameter.name} := {sql.literal(parameter.default)}"
        for parameter in declared.flat
    )


def _public_macro(declared: Declaration) -> MacroFile:
    name, parameters, is_table = declared.name, signature(declared), not isinstance(declared, Scalar)
    pairs = ", ".join(f"{sql.literal(parameter.name)}: {sql.quote(parameter.name)}" for parameter in declared.flat)
    if is_table:
        body = f"TABLE\nFROM query(_anon_write({sql.literal(name)}, {{{pairs}}}, current_setting('default_collation')))"
    else:
        body = f"\n    _anon_{name}({{{pairs}}})"
    text = (
        f"CREATE OR REPLACE MACRO anon.{name}({parameters}) AS {body};\n"
        f"COMMENT ON MACRO {'TABLE ' * is_table}anon.{name} IS {sql.literal(declared.summary)};\n"
    )
    return MacroFile(name, declared.stage, parameters, needs_python=True, is_table=is_table, sql=text)


def _run_macro(declared: Release | Report | ColumnReport) -> MacroFile:
    """Write the macro that begins an algorithm, waits for it and takes its result."""
    tables = ("values_list",) if isinstance(declared, ColumnReport) else declared.tables
    taken = [f"{table}_taken" for table in tables]
    parameters = ", ".join([*taken, "options"])
    text = f"CREATE OR REPLACE MACRO anon._run_{declared.name}({parameters}) AS\n    {_run(declared, *taken)};\n"
    return MacroFile(f"_run_{declared.name}", "bridge", parameters, needs_python=True, is_table=False, sql=text)


def _run(declared: Declaration, *taken: str, options: str = "options") -> str:
    arguments = ", ".join(["anon._owner()", *taken, options])
    return f"_anon_{declared.name}(anon._awaited(_anon_begin_{declared.name}({arguments})))"


def write(*arguments: pa.Array) -> pa.Array:
    """Write the query of a call, for DuckDB: the function's name, its arguments, the collation that is set.

    A macro that is made of other functions says fourth which function errors should name, that of the user's call.
    """
    name, options, collation, *caller = (_value(argument[0]) for argument in arguments)
    declared = PUBLIC[name]
    if caller and isinstance(declared, Report):
        declared = replace(declared, caller=caller[0])
    return pa.array([write_query(declared, declared.defaults | options, collation)])


def write_query(declared: Declaration, options: Options, collation: str | None = None) -> str:
    """Return the query that answers a call, or refuse it.

    Where the session has a default collation, 'F' and 'f' are the same to GROUP BY, and yet a release tells them apart,
    so that a class of k people would be none.
    """
    faults = declared.faults(options, IN_SQL)
    if (collation or "").lower() not in _BINARY_COLLATIONS:
        faults.append(
            "default_collation must be empty, since people whose values differ would be counted as alike; got "
            f"{collation}: RESET default_collation."
        )
    if faults:
        raise ValueError(f"{_caller(declared)}: {' '.join(faults)}")
    if declared.body is not None and ":" in declared.body:
        return qualify(import_function(declared.body)(options))
    if declared.body is not None:
        return _immune(f"FROM {declared.body}({', '.join(sql.literal(options[one.name]) for one in declared.flat)})")
    if isinstance(declared, Report):
        return _immune(_report_query(declared, options))
    if isinstance(declared, ColumnReport):
        return _immune(_column_query(declared, options))
    assert isinstance(declared, Release)
    return _immune(_class_query(declared, options) if declared.parameter("keep") else _release_query(declared, options))


def _caller(declared: Declaration) -> str:
    """Return the function that an error names."""
    return (declared.caller if isinstance(declared, Report) else None) or f"anon.{declared.name}"


_immune = functools.lru_cache(maxsize=256)(qualify)


def _release_query(declared: Release, options: Options) -> str:
    """Write a release that changes every column it takes."""
    tables = _tables(declared)
    tickets = _tickets(declared, tables, options, is_release=True)
    run = _run(declared, *tickets, options=_options(declared, options, _hierarchies(declared, options)))
    unpack = f"anon.{declared.unpacked_by or '_unpack'}"
    steps, shape, columns = _steps(declared, tables, options), _step(tables[0]), _columns(options, declared.columns)
    if declared.numbered and options[declared.numbered]:
        key = options[declared.numbered]
        shape, columns = "'\"_duckanon_shape\"'", [key, *columns]
        number = (
            f"TRY_CAST(CAST(COLUMNS(lambda name: anon._is_among(name, {sql.literal([key])})) AS VARCHAR) AS BIGINT)"
        )
        rest = f"* EXCLUDE ({sql.quote(key)})"  # an alias would be spelled as in the call, not as in the table
        steps += f", _duckanon_shape AS (SELECT {number}, {rest} FROM _duckanon_tbl LIMIT 0)"
    return f"{steps} FROM {unpack}({run}, {shape}, {sql.literal(columns)})"


def _report_query(declared: Report, options: Options) -> str:
    """Write a report, whose rows come as one list of structs."""
    tables = _tables(declared)
    tickets = _tickets(declared, tables, options)
    run = _run(declared, *tickets, options=_options(declared, options, _hierarchies(declared, options)))
    return f"{_steps(declared, tables, options)} SELECT unnest({run}, max_depth := 2)"


def _column_query(declared: ColumnReport, options: Options) -> str:
    """Write a report on one column, which travels as a list."""
    caller, table, col = (sql.literal(text) for text in (f"anon.{declared.name}", options["tbl"], options["col"]))
    chosen = f"COLUMNS(_anon_choose(*, {caller}, {table}, {{'col': {col}}}))"
    values = f"(SELECT list(anon._told_apart({caller}, {col}, {chosen})) FROM query_table({table}))"
    run = _run(declared, values, options=_options(declared, options))
    return f"FROM anon.{declared.unpacked_by}({run}, {table}, {col})"


def _class_query(declared: Release, options: Options) -> str:
    """Write a release that puts people into classes: some columns are changed, others released as they are."""
    tables, more = [declared.flat[0]], _hierarchies(declared, options)
    cols, person = sql.literal(options["cols"]), sql.literal(options.get("person"))
    kept = _columns(options, ("keep", "by"))
    unpack = declared.unpacked_by(options) if callable(declared.unpacked_by) else declared.unpacked_by
    in_place = [] if unpack else options["cols"]  # columns of the table's types stand where the table has them
    chosen = sql.literal([*in_place, *kept, "_duckanon_none"])
    if "*" in (options.get("keep") or ()):
        is_kept = f"anon._is_kept(name, {cols}, {sql.literal(kept)}, {person})"
        chosen = f"lambda name: anon._is_among(name, {sql.literal(in_place)}) OR {is_kept}"
        refused = (
            f"anon._refused_keep(NULL, {sql.literal(options['tbl'])}, {cols}, {sql.literal(options['keep'])}, {person})"
        )
        more["refused"] = f"(SELECT sentence FROM {refused})"
        more["keep"] = "(SELECT list(column_name) FROM anon._columns('\"_duckanon_kept\"'))"
    is_ordered = declared.orders_rows and (kept or _columns(options, ("person", "sensitive")))
    tickets = _tickets(declared, tables, options, cols if is_ordered else None)
    run = _run(declared, *tickets, options=_options(declared, options, more))
    further = "".join(f", {sql.literal(options[name])}" for name in declared.unpack_options)
    unpacked = f"FROM anon.{unpack}({run}, {_step(tables[0])}, {cols}, '\"_duckanon_kept\"'{further})"
    if unpack is None:
        unpacked = f"SELECT * EXCLUDE (_duckanon_none) FROM anon._unpack({run}, '\"_duckanon_kept\"', '')"
    return (
        f"{_steps(declared, tables, options)}, _duckanon_kept AS (SELECT COLUMNS({chosen}) FROM (SELECT *, "
        f"NULL::VARCHAR AS _duckanon_none FROM anon._release_shape({_step(tables[0])}, ''))) {unpacked}"
    )


def _steps(declared: Release | Report, tables: Iterable[Parameter], options: Options) -> str:
    """Write the columns that travel as a step for each table that is given; an unknown column is refused there."""
    named = {
        parameter.name: _columns(options, (parameter.name,))
        for parameter in declared.flat
        if parameter.name in declared.columns
        or (parameter.name in ("person", "sensitive", "keep", "by") and options[parameter.name])
    }
    is_numbered = isinstance(declared, Report) and declared.row_key is not None and options[declared.row_key] is None
    number = ", row_number() OVER () AS _duckanon_number" * is_numbered

    def write_choice(table: str) -> str:
        known = f"_anon_choose(*, '{_caller(declared)}', {sql.literal(table)}, {sql.structure(named)})"
        if "*" not in named.get("keep", ()):
            return known
        cols, keep, person = (sql.literal(options.get(name)) for name in ("cols", "keep", "person"))
        is_kept = f"anon._is_kept(name, {cols}, {keep}, {person})"
        return f"list_filter(*, lambda name: list_contains({known}, name) OR {is_kept})"

    steps = []
    for parameter in tables:
        table = options[parameter.name]
        if isinstance(table, str) and isinstance(declared, Report) and declared.rows_by:
            columns = sql.literal(_columns(options, declared.columns))
            rows = f"FROM anon.{declared.rows_by}('{_caller(declared)}', {sql.literal(table)}, {columns})"
        elif isinstance(table, str):
            rows = f"SELECT COLUMNS({write_choice(table)}){number} FROM query_table({sql.literal(table)})"
        elif table is not None:
            rows = sql.stack_tables(table, write_choice, isinstance(declared, Report) and declared.stacks_columns)
        if table is not None:
            steps.append(f"_duckanon_{parameter.name} AS NOT MATERIALIZED ({rows})")
    return "WITH " + ", ".join(steps)


def _tables(declared: Declaration) -> list[Parameter]:
    return [one for one in declared.flat if one.kind in ("table", "tables")]


def _step(table: Parameter) -> str:
    return f"'\"_duckanon_{table.name}\"'"


def _tickets(
    declared: Declaration,
    tables: Iterable[Parameter],
    options: Options,
    coded: str | None = None,
    is_release: bool = False,
) -> list[str]:
    """Write how each table reaches Python; a table that is left out is NULL, and an empty list where it has no rows.

    Rows come in the order of all their values where there is a seed, and in that of all but those that are `coded`.
    `is_release`: the function releases all columns of its tables.
    """
    order = sql.literal(options.get("seed")) + ", true" if coded is None else f"0, true, coded := {coded}"
    more = f", caller := {sql.literal(_caller(declared))}" + ", is_release := true" * is_release
    tickets = []
    for parameter in tables:
        ticket = f"anon._tickets({_step(parameter)}, '', {order}{more})"
        ticket = ticket if parameter.is_required else f"coalesce({ticket}, [])"
        tickets.append("NULL::BIGINT[]" if options[parameter.name] is None else ticket)
    return tickets


def _columns(options: Options, parameters: Iterable[str]) -> list[str]:
    """Return the columns that some parameters name, each once: lists of names and single ones."""
    named = [options.get(parameter) or [] for parameter in parameters]
    return list({name.lower(): name for some in named for name in ([some] if isinstance(some, str) else some)}.values())


def _options(declared: Declaration, options: Options, more: dict[str, str] | None = None) -> str:
    """Write the options of a call: those that are known as one text, and what the query finds out."""
    names_tables = isinstance(declared, Report) and declared.stacks_columns
    tables = [] if names_tables else [table.name for table in _tables(declared)]
    known = {name: value for name, value in options.items() if name not in tables and name not in (more or {})}
    known |= {"caller": declared.caller} if isinstance(declared, Report) and declared.caller else {}
    fields = {"_written": sql.literal(sql.options_text(known)), **(more or {})}
    return "{" + ", ".join(f"{sql.literal(name)}: {text}" for name, text in fields.items()) + "}"


def _hierarchies(declared: Declaration, options: Options) -> dict[str, str]:
    """Write the rows of all hierarchies that are given as one list: column_name (lower case), leaf, level, label."""
    tables = options.get("hierarchies") or {}
    each = " UNION ALL ".join(
        f"FROM anon._hierarchy('anon.{declared.name}', {sql.literal(column.lower())}, {sql.literal(table)})"
        for column, table in tables.items()
    )
    rows = (
        "(SELECT list({'column_name': column_name, 'leaf': labels[1], 'level': place - 1, 'label': labels[place]}) "
        f"FROM (SELECT *, unnest(range(1, 1 + len(labels))) AS place FROM ({each})))"
    )
    return {"hierarchies": rows} if tables else {}


def _value(scalar: pa.Scalar) -> Any:
    """Return a value as Python writes it: maps as dictionaries, decimals as numbers."""
    if not scalar.is_valid:
        return None
    kind = scalar.type
    if pa.types.is_map(kind):
        return {_value(pair["key"]): _value(pair["value"]) for pair in scalar.values}
    if pa.types.is_struct(kind):
        return {field.name: _value(scalar[place]) for place, field in enumerate(kind)}
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return [_value(member) for member in scalar.values]
    if pa.types.is_decimal(kind):  # 0.1 is a DECIMAL to DuckDB, and nobody who writes it means to compute in decimals
        return int(scalar.as_py()) if kind.scale == 0 else float(scalar.as_py())
    return scalar.as_py()


def choose(*arguments: pa.Array) -> pa.Array:
    """Choose columns of a table while a query is bound, for ``COLUMNS(_anon_choose(*, ...))``, or refuse unknown ones.

    The arguments are the table's columns, the function, the table, and the names that were given by parameter; their
    case does not matter, and what is NULL is left out. Columns that are called as our own steps are would be taken for
    them, also those that only travel along.
    """
    columns, caller, table, options = (_value(argument[0]) for argument in arguments)
    spelled = {name.lower(): name for name in columns}
    clash = next((name for name in columns if name.lower().startswith("_duckanon_") and name != "_duckanon_none"), None)
    if clash is not None:  # but the empty column that macros add where one must be there
        raise ValueError(
            f"{caller}: the table must not have a column that begins with _duckanon_; got {clash}: rename it first."
        )
    names = _columns(options, options)
    for name in names:
        if name.lower() not in spelled and not (name == "*" and name in (options.get("keep") or ())):
            raise ValueError(f'{caller}: column "{name}" does not exist in {table}{suggest_name(name, columns)}')
    wanted = {name.lower() for name in names}
    chosen = [name for name in columns if name.lower() in wanted]
    for name in chosen:
        if spelled[name.lower()] != name:  # DuckDB tells "Ä" from "ä", Python's lower() does not
            raise ValueError(
                f"{caller}: the table must not have columns that are the same in lower case; "
                f'got "{name}" and "{spelled[name.lower()]}": rename one first.'
            )
    return pa.array([chosen], pa.list_(pa.string()))
