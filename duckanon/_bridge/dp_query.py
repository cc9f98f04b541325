"""The query of ``anon.dp_table``: it bounds what each person contributes, and sends one row a group to Python.

Values become whole numbers of units (`duckanon._methods.dp.aggregates`) before they are added up. No value of the data
makes the query fail: what is too large, infinite or not a number is moved to the bounds or left out.
"""

from __future__ import annotations

import importlib.util
import secrets

from duckanon._bridge import sql_text as sql
from duckanon._core.common.declare import Options
from duckanon._methods.dp.aggregates import PEOPLE, UNITS, Aggregate, name_part, parse_aggregates

_CALLER = "anon.dp_table"
_LARGEST = 2**60  # units of a single row: the sum of any number of rows fits into 128 bits

_NUMBERS = "'^(U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?|U?INTEGER|DOUBLE|FLOAT|BOOLEAN|DECIMAL.*)$'"


def query(options: Options) -> str:
    """Write the query of a call whose options are right."""
    if importlib.util.find_spec("opendp") is None:
        raise ValueError(
            f"{_CALLER}: it needs OpenDP, from which its noise comes; pip install 'duckanon[dp]' brings it."
        )
    asked = parse_aggregates(options["aggregates"], options["bounds"], options["max_rows"])
    steps = [
        _choose_columns(options, asked),
        *_public(options),
        _rows(options, asked),
        *_people(options, asked),
        _sums(options, asked),
    ]
    steps += [_inner(options), _shape(options, asked)]
    remaining = {name: value for name, value in options.items() if name != "tbl"}
    tickets = "anon._tickets('\"_duckanon_inner\"', '', NULL, true, caller := 'anon.dp_table')"
    run = f"anon._run_dp_table({tickets}, {_options(remaining)})"
    return f"WITH {', '.join(steps)} FROM anon._unpack({run}, '\"_duckanon_shape\"', '')"


def _options(options: Options) -> str:
    return f"{{'_written': {sql.literal(sql.options_text(options))}}}"


def _choose_columns(options: Options, asked: list[Aggregate]) -> str:
    """Write the step that finds the columns, or refuses one."""
    columns = list({agg.column.lower(): agg.column for agg in asked if agg.column}.values())
    chosen = ["1 AS _duckanon_one"]
    if options["by"] or columns or options["person"]:
        chosen.append(_choice(options["tbl"], {"by": options["by"], "cols": columns, "person": options["person"]}))
    return f"_duckanon_chosen AS (SELECT {', '.join(chosen)} FROM query_table({sql.literal(options['tbl'])}))"


def _choice(table: str, named: Options) -> str:
    return f"COLUMNS(_anon_choose(*, '{_CALLER}', {sql.literal(table)}, {sql.structure(named)}))"


def _public(options: Options) -> list[str]:
    """Write the steps that read the public groups, in the types and under the names of the table's columns."""
    if options["groups"] is None:
        return []
    named = (
        f"SELECT {_choice(options['groups'], {'by': options['by']})} FROM query_table({sql.literal(options['groups'])})"
    )
    cast = ", ".join(f"cast_to_type(given.{name}, wanted.{name})" for name in map(sql.quote, options["by"]))
    like = f"SELECT {sql.quote_all(options['by'])} FROM _duckanon_chosen LIMIT 0"
    public = f"SELECT DISTINCT {cast} FROM _duckanon_named AS given LEFT JOIN ({like}) AS wanted ON true"
    return [f"_duckanon_named AS ({named})", f"_duckanon_public AS (({like}) UNION ALL ({public}))"]


def _rows(options: Options, asked: list[Aggregate]) -> str:
    """Write the step with the values of each row in units; rows without a person or in no public group are left out."""
    columns = [f"data.{name}" for name in map(sql.quote, options["by"])]
    who = "NULL" if options["person"] is None else f"data.{sql.quote(options['person'])}"
    columns.append(f"{who} AS _duckanon_person")
    columns += [f"{_units(agg)} AS {name_part(place, 'units')}" for place, agg in enumerate(asked) if agg.column]
    semi = (
        ""
        if options["groups"] is None
        else f"SEMI JOIN _duckanon_public AS public ON {_same(options, 'data', 'public')}"
    )
    checks = [f"anon._uncollated('{_CALLER}', data.{sql.quote(name)})" for name in options["by"]]
    checks += [] if options["person"] is None else [f"anon._uncollated('{_CALLER}', {who})", f"{who} IS NOT NULL"]
    checks += [_is_number(agg) for agg in asked if agg.column]
    where = f"WHERE {' AND '.join(checks)}" if checks else ""
    return f"_duckanon_rows AS (SELECT {', '.join(columns)} FROM _duckanon_chosen AS data {semi} {where})"


def _same(options: Options, left: str, right: str) -> str:
    names = map(sql.quote, options["by"])
    return " AND ".join(f"{left}.{name} IS NOT DISTINCT FROM {right}.{name}" for name in names)


def _is_number(agg: Aggregate) -> str:
    """Write the check of a column's type, which is known before a row is read."""
    refusal = f"{_CALLER}: aggregates must be of columns of numbers; got '{agg.text}'."
    is_number = f"regexp_matches(typeof(data.{sql.quote(agg.column or '')}), {_NUMBERS})"
    return f"CASE WHEN {is_number} THEN true ELSE error({sql.literal(refusal)}) END"


def _units(agg: Aggregate) -> str:
    """Write the value of a row in units; NULL where it is missing or not a number.

    A value is moved to the bounds; of a sum, the person's sum is.
    """
    number = f"CAST(data.{sql.quote(agg.column or '')} AS DOUBLE)"
    if agg.kind == "sum":
        largest = _LARGEST * agg.unit
        units = f"least(greatest({number}, {-largest!r}), {largest!r}) / {agg.unit!r}"
    else:
        share = f"(least(greatest({number}, {agg.lower!r}), {agg.upper!r}) - {agg.lower!r}) / {agg.upper - agg.lower!r}"
        units = f"least(greatest({share}, 0.0), 1.0) * {float(UNITS)!r}"
    return f"CASE WHEN {number} IS NULL OR isnan({number}) THEN NULL ELSE CAST(round({units}) AS BIGINT) END"


def _people(options: Options, asked: list[Aggregate]) -> list[str]:
    """Write the steps with one row a person and group, of each person at most `max_groups`.

    The groups are chosen by a keyed hash, so that the choice does not depend on the order of rows. Any choice keeps the
    promise that looks at the rows of one person only.
    """
    places = [place for place, agg in enumerate(asked) if agg.column]
    if options["person"] is None:
        each = [f"{name_part(place, 'units')} AS {name_part(place, 'total')}" for place in places]
        each += [f"1 AS {name_part(place, 'values')}" for place in places]
        columns = ", ".join([*_names(options), "1 AS _duckanon_count", *each])
        return [f"_duckanon_kept AS (SELECT {columns} FROM _duckanon_rows)"]
    each = [f"sum({name_part(place, 'units')}) AS {name_part(place, 'total')}" for place in places]
    each += [f"count({name_part(place, 'units')}) AS {name_part(place, 'values')}" for place in places]
    keys = ["_duckanon_person", *_names(options)]
    columns = ", ".join([*keys, "count(*) AS _duckanon_count", *each])
    cells = f"SELECT {columns} FROM _duckanon_rows GROUP BY {', '.join(keys)}"
    if not options["by"]:
        return [f"_duckanon_kept AS ({cells})"]
    drawn = f"sha256('{secrets.token_hex(16)}' || CAST(row({', '.join(keys)}) AS VARCHAR))"
    window = f"PARTITION BY _duckanon_person ORDER BY {', '.join([drawn, *keys[1:]])}"
    kept = f"SELECT * FROM _duckanon_cells QUALIFY row_number() OVER ({window}) <= {options['max_groups']}"
    return [f"_duckanon_cells AS ({cells})", f"_duckanon_kept AS ({kept})"]


def _sums(options: Options, asked: list[Aggregate]) -> str:
    """Write the step with one row a group: the bounded contributions of its people, added up."""
    columns = [*_names(options), f"count(*) AS {PEOPLE}"]
    for place, agg in enumerate(asked):
        total, values = name_part(place, "total"), name_part(place, "values")
        if agg.kind == "rows":
            columns.append(
                f"CAST(sum(least(_duckanon_count, {int(agg.upper)})) AS BIGINT) AS {name_part(place, 'sum')}"
            )
        elif agg.kind == "sum":
            lower, upper = agg.span
            bounded = f"CASE WHEN {total} IS NULL THEN 0 ELSE greatest({lower}, least({upper}, {total})) END"
            columns.append(f"CAST(sum({bounded}) AS BIGINT) AS {name_part(place, 'sum')}")
        elif agg.column:
            units = agg.steps if agg.kind == "quantile" else UNITS
            mean = f"round(CAST({total} AS DOUBLE) / {values} * {units / UNITS!r})"
            contribution = (
                f"CASE WHEN {total} IS NOT NULL THEN CAST(least(greatest({mean}, 0.0), {float(units)!r}) AS BIGINT) END"
            )
            if agg.kind == "mean":
                columns.append(f"CAST(sum({contribution}) AS BIGINT) AS {name_part(place, 'sum')}")
                columns.append(f"count({total}) AS {name_part(place, 'people')}")
            else:
                columns.append(f"CAST(histogram({contribution}) AS VARCHAR) AS {name_part(place, 'steps')}")
    grouped = f"GROUP BY {', '.join(_names(options))}" if options["by"] else ""
    return f"_duckanon_sums AS (SELECT {', '.join(columns)} FROM _duckanon_kept {grouped})"


def _inner(options: Options) -> str:
    """Write the step whose rows travel: all public groups; of other groups those of the data, and at least one row."""
    if not options["by"]:
        rows = "SELECT * FROM _duckanon_sums"
    elif options["groups"] is None:
        rows = "SELECT sums.* FROM (SELECT 1 AS _duckanon_one) AS always LEFT JOIN _duckanon_sums AS sums ON true"
    else:
        columns = f"sums.* EXCLUDE ({', '.join([*_names(options), PEOPLE])})"
        people = f"coalesce(sums.{PEOPLE}, 0) AS {PEOPLE}"
        joined = f"_duckanon_public AS public LEFT JOIN _duckanon_sums AS sums ON {_same(options, 'public', 'sums')}"
        rows = f"SELECT public.*, {people}, {columns} FROM {joined}"
    return f"_duckanon_inner AS ({rows})"


def _shape(options: Options, asked: list[Aggregate]) -> str:
    """Write the step without rows that has the names and types of the answer."""
    columns = _names(options)
    for agg in asked:
        kind = "BIGINT" if agg.kind in ("count", "rows") else "DOUBLE"
        columns += [f"NULL::{kind} AS {sql.quote(agg.name)}", f"NULL::DOUBLE AS {sql.quote(agg.error_name)}"]
    return f"_duckanon_shape AS (SELECT {', '.join(columns)} FROM _duckanon_chosen LIMIT 0)"


def _names(options: Options) -> list[str]:
    return [sql.quote(name) for name in options["by"]]
