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


def query(given: Options) -> str:
    """Write the query of a call whose options are right."""
    if importlib.util.find_spec("opendp") is None:
        raise ValueError(
            f"{_CALLER}: it needs OpenDP, from which its noise comes; pip install 'duckanon[dp]' brings it."
        )
    asked = parse_aggregates(given["aggregates"], given["bounds"], given["max_rows"])
    steps = [
        _choose_columns(given, asked),
        *_public(given),
        _rows(given, asked),
        *_people(given, asked),
        _sums(given, asked),
    ]
    steps += [_inner(given), _shape(given, asked)]
    options = {name: value for name, value in given.items() if name != "tbl"}
    tickets = "anon._tickets('\"_duckanon_inner\"', '', NULL, true, caller := 'anon.dp_table')"
    run = f"anon._run_dp_table({tickets}, {_options(options)})"
    return f"WITH {', '.join(steps)} FROM anon._unpack({run}, '\"_duckanon_shape\"', '')"


def _options(options: Options) -> str:
    return f"{{'_written': {sql.literal(sql.options_text(options))}}}"


def _choose_columns(given: Options, asked: list[Aggregate]) -> str:
    """Write the step that finds the columns, or refuses one."""
    columns = list({one.column.lower(): one.column for one in asked if one.column}.values())
    chosen = ["1 AS _duckanon_one"]
    if given["by"] or columns or given["person"]:
        chosen.append(_choice(given["tbl"], {"by": given["by"], "cols": columns, "person": given["person"]}))
    return f"_duckanon_chosen AS (SELECT {', '.join(chosen)} FROM query_table({sql.literal(given['tbl'])}))"


def _choice(table: str, named: Options) -> str:
    return f"COLUMNS(_anon_choose(*, '{_CALLER}', {sql.literal(table)}, {sql.structure(named)}))"


def _public(given: Options) -> list[str]:
    """Write the steps that read the public groups, in the types and under the names of the table's columns."""
    if given["groups"] is None:
        return []
    named = f"SELECT {_choice(given['groups'], {'by': given['by']})} FROM query_table({sql.literal(given['groups'])})"
    cast = ", ".join(f"cast_to_type(given.{one}, wanted.{one})" for one in map(sql.quote, given["by"]))
    like = f"SELECT {sql.quote_all(given['by'])} FROM _duckanon_chosen LIMIT 0"
    public = f"SELECT DISTINCT {cast} FROM _duckanon_named AS given LEFT JOIN ({like}) AS wanted ON true"
    return [f"_duckanon_named AS ({named})", f"_duckanon_public AS (({like}) UNION ALL ({public}))"]


def _rows(given: Options, asked: list[Aggregate]) -> str:
    """Write the step with the values of each row in units; rows without a person or in no public group are left out."""
    columns = [f"data.{one}" for one in map(sql.quote, given["by"])]
    who = "NULL" if given["person"] is None else f"data.{sql.quote(given['person'])}"
    columns.append(f"{who} AS _duckanon_person")
    columns += [f"{_units(one)} AS {name_part(place, 'units')}" for place, one in enumerate(asked) if one.column]
    semi = (
        "" if given["groups"] is None else f"SEMI JOIN _duckanon_public AS public ON {_same(given, 'data', 'public')}"
    )
    checks = [f"anon._uncollated('{_CALLER}', data.{sql.quote(one)})" for one in given["by"]]
    checks += [] if given["person"] is None else [f"anon._uncollated('{_CALLER}', {who})", f"{who} IS NOT NULL"]
    checks += [_is_number(one) for one in asked if one.column]
    where = f"WHERE {' AND '.join(checks)}" if checks else ""
    return f"_duckanon_rows AS (SELECT {', '.join(columns)} FROM _duckanon_chosen AS data {semi} {where})"


def _same(given: Options, left: str, right: str) -> str:
    names = map(sql.quote, given["by"])
    return " AND ".join(f"{left}.{one} IS NOT DISTINCT FROM {right}.{one}" for one in names)


def _is_number(one: Aggregate) -> str:
    """Write the check of a column's type, which is known before a row is read."""
    refusal = f"{_CALLER}: aggregates must be of columns of numbers; got '{one.text}'."
    is_number = f"regexp_matches(typeof(data.{sql.quote(one.column or '')}), {_NUMBERS})"
    return f"CASE WHEN {is_number} THEN true ELSE error({sql.literal(refusal)}) END"


def _units(one: Aggregate) -> str:
    """Write the value of a row in units; NULL where it is missing or not a number.

    A value is moved to the bounds; of a sum, the person's sum is.
    """
    number = f"CAST(data.{sql.quote(one.column or '')} AS DOUBLE)"
    if one.kind == "sum":
        largest = _LARGEST * one.unit
        units = f"least(greatest({number}, {-largest!r}), {largest!r}) / {one.unit!r}"
    else:
        share = f"(least(greatest({number}, {one.lower!r}), {one.upper!r}) - {one.lower!r}) / {one.upper - one.lower!r}"
        units = f"least(greatest({share}, 0.0), 1.0) * {float(UNITS)!r}"
    return f"CASE WHEN {number} IS NULL OR isnan({number}) THEN NULL ELSE CAST(round({units}) AS BIGINT) END"


def _people(given: Options, asked: list[Aggregate]) -> list[str]:
    """Write the steps with one row a person and group, of each person at most `max_groups`.

    The groups are chosen by a keyed hash, so that the choice does not depend on the order of rows. Any choice keeps the
    promise that looks at the rows of one person only.
    """
    places = [place for place, one in enumerate(asked) if one.column]
    if given["person"] is None:
        each = [f"{name_part(place, 'units')} AS {name_part(place, 'total')}" for place in places]
        each += [f"1 AS {name_part(place, 'values')}" for place in places]
        columns = ", ".join([*_names(given), "1 AS _duckanon_count", *each])
        return [f"_duckanon_kept AS (SELECT {columns} FROM _duckanon_rows)"]
    each = [f"sum({name_part(place, 'units')}) AS {name_part(place, 'total')}" for place in places]
    each += [f"count({name_part(place, 'units')}) AS {name_part(place, 'values')}" for place in places]
    whose = ["_duckanon_person", *_names(given)]
    columns = ", ".join([*whose, "count(*) AS _duckanon_count", *each])
    cells = f"SELECT {columns} FROM _duckanon_rows GROUP BY {', '.join(whose)}"
    if not given["by"]:
        return [f"_duckanon_kept AS ({cells})"]
    drawn = f"sha256('{secrets.token_hex(16)}' || CAST(row({', '.join(whose)}) AS VARCHAR))"
    window = f"PARTITION BY _duckanon_person ORDER BY {', '.join([drawn, *whose[1:]])}"
    kept = f"SELECT * FROM _duckanon_cells QUALIFY row_number() OVER ({window}) <= {given['max_groups']}"
    return [f"_duckanon_cells AS ({cells})", f"_duckanon_kept AS ({kept})"]


def _sums(given: Options, asked: list[Aggregate]) -> str:
    """Write the step with one row a group: the bounded contributions of its people, added up."""
    columns = [*_names(given), f"count(*) AS {PEOPLE}"]
    for place, one in enumerate(asked):
        total, values = name_part(place, "total"), name_part(place, "values")
        if one.kind == "rows":
            columns.append(
                f"CAST(sum(least(_duckanon_count, {int(one.upper)})) AS BIGINT) AS {name_part(place, 'sum')}"
            )
        elif one.kind == "sum":
            lower, upper = one.span
            bounded = f"CASE WHEN {total} IS NULL THEN 0 ELSE greatest({lower}, least({upper}, {total})) END"
            columns.append(f"CAST(sum({bounded}) AS BIGINT) AS {name_part(place, 'sum')}")
        elif one.column:
            units = one.steps if one.kind == "quantile" else UNITS
            mean = f"round(CAST({total} AS DOUBLE) / {values} * {units / UNITS!r})"
            own = (
                f"CASE WHEN {total} IS NOT NULL THEN CAST(least(greatest({mean}, 0.0), {float(units)!r}) AS BIGINT) END"
            )
            if one.kind == "mean":
                columns.append(f"CAST(sum({own}) AS BIGINT) AS {name_part(place, 'sum')}")
                columns.append(f"count({total}) AS {name_part(place, 'people')}")
            else:
                columns.append(f"CAST(histogram({own}) AS VARCHAR) AS {name_part(place, 'steps')}")
    grouped = f"GROUP BY {', '.join(_names(given))}" if given["by"] else ""
    return f"_duckanon_sums AS (SELECT {', '.join(columns)} FROM _duckanon_kept {grouped})"


def _inner(given: Options) -> str:
    """Write the step whose rows travel: all public groups; of other groups those of the data, and at least one row."""
    if not given["by"]:
        rows = "SELECT * FROM _duckanon_sums"
    elif given["groups"] is None:
        rows = "SELECT sums.* FROM (SELECT 1 AS _duckanon_one) AS always LEFT JOIN _duckanon_sums AS sums ON true"
    else:
        others = f"sums.* EXCLUDE ({', '.join([*_names(given), PEOPLE])})"
        people = f"coalesce(sums.{PEOPLE}, 0) AS {PEOPLE}"
        joined = f"_duckanon_public AS public LEFT JOIN _duckanon_sums AS sums ON {_same(given, 'public', 'sums')}"
        rows = f"SELECT public.*, {people}, {others} FROM {joined}"
    return f"_duckanon_inner AS ({rows})"


def _shape(given: Options, asked: list[Aggregate]) -> str:
    """Write the step without rows that has the names and types of the answer."""
    columns = _names(given)
    for one in asked:
        kind = "BIGINT" if one.kind in ("count", "rows") else "DOUBLE"
        columns += [f"NULL::{kind} AS {sql.quote(one.name)}", f"NULL::DOUBLE AS {sql.quote(one.error_name)}"]
    return f"_duckanon_shape AS (SELECT {', '.join(columns)} FROM _duckanon_chosen LIMIT 0)"


def _names(given: Options) -> list[str]:
    return [sql.quote(one) for one in given["by"]]
