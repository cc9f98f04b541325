"""The registry: every declaration can be called, and DuckDB is told what it returns."""

from __future__ import annotations

import inspect
import re

import duckdb
import pyarrow as pa
import pytest

from duckanon._bridge import macros, registry
from duckanon._core.common.declare import ColumnReport, Declaration, Group, Release, Report, Scalar
from duckanon._core.common.imports import import_function

NAMES = [declared.name for declared in registry.DECLARATIONS if declared.algorithm]


def by_name(name: str) -> Declaration:
    return next(declared for declared in registry.DECLARATIONS if declared.name == name)


def test_names_are_declared_once() -> None:
    assert len(set(NAMES)) == len(NAMES)


def call_of(name: str) -> tuple[str, set[str]]:
    """Return the call of an algorithm in the macro that runs it, and the names of its options.

    These stand in the call, or in a step of the macro that it takes them from: ``{...} AS options``.
    """
    paths = sorted(macros.sql_folder().glob("*/*.sql"))
    codes = [re.sub(r"--[^\n]*", "", path.read_text(encoding="utf-8")) for path in paths]
    calls = (re.search(rf"(?:_anon_|_run_){name}\(", code) for code in codes)
    found = next((match for match in calls if match), None)
    assert found, f"no macro runs {name}"
    call = found.string[found.end() : closing(found.string, found.end() - 1)]
    within, in_step = r"(?:AS )?\{'", r"\{'(?=[^;]*\} AS options\b)"
    struct = re.search(within, call) or next(iter([*re.finditer(in_step, found.string)][::-1]), None)
    if struct is None:
        return call, set()
    text, start = struct.string, struct.end() - 2
    inner = text[start + 1 : closing(text, start)]
    while re.search(r"\{[^{}]*\}", inner):
        inner = re.sub(r"\{[^{}]*\}", "", inner)
    return call, set(re.findall(r"'(\w+)':", inner)) - {"caller"}


def closing(code: str, start: int) -> int:
    """Return the place of the bracket that closes the one at ``start``."""
    depth = 0
    for place in range(start, len(code)):
        depth += (code[place] in "({") - (code[place] in ")}")
        if depth == 0:
            return place
    raise AssertionError(code[start : start + 100])


@pytest.mark.parametrize("name", NAMES)
def test_the_algorithm_takes_what_its_macro_passes(name: str) -> None:
    """Tables and options travel by name, so that a wrong one would show only when somebody calls it."""
    declared = by_name(name)
    if not declared.algorithm:
        return  # a query of other functions
    parameters = inspect.signature(import_function(declared.algorithm)).parameters
    tables = getattr(declared, "tables", ("column",) if isinstance(declared, ColumnReport) else ())
    is_in_list = getattr(declared, "hands_over", False)  # all tables in a list, from which they are taken
    assert {*(["tables"] if is_in_list else tables)} <= parameters.keys()
    if ":" in (declared.body or ""):  # a function writes the query, and hands all options on
        options = {one.name for one in declared.flat[1:]}
    elif declared.is_public and declared.body is None:  # the query is written from the declaration
        options = {one.name for one in declared.parameters if getattr(one, "kind", "group") != "table"}
        if isinstance(declared, Release | Report):
            assert len([one for one in declared.flat if one.kind == "table"]) == len({*tables} - {"stacked"})
    else:
        passed, given = call_of(name)
        groups = [
            one
            for one in declared.parameters
            if isinstance(one, Group) and given & {one.name, *(part.name for part in one.parameters)}
        ]
        options = given - {"refused"} - {part.name for one in groups for part in one.parameters}
        options |= {one.name for one in groups}
        if isinstance(declared, Release | Report):
            steps = re.findall(r"THEN '_duckanon_others'", passed)  # a table that is taken in a step of its own
            assert len(re.findall(r"anon\._(?:pack|tickets)|_anon_park", passed) + steps[:1]) == len(tables)
    if any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters.values()):
        return  # the fields of a search, which names them itself
    told = {*getattr(declared, "columns", ())}  # what the query has used, and not every algorithm asks for
    told |= {"draws", "releases"} if "stacked" in tables else set()
    assert options - told <= parameters.keys(), f"{name} does not take {options - parameters.keys()}"
    needed = {one.name for one in parameters.values() if one.default is inspect.Parameter.empty}
    assert needed - {*tables, "tables"} <= options


@pytest.mark.parametrize("name", NAMES)
def test_duckdb_reads_the_type_as_it_was_declared(name: str, con: duckdb.DuckDBPyConnection) -> None:
    declared = by_name(name)
    if not declared.algorithm:
        return
    sql_type = registry.functions()[f"_anon_{name}"].sql_type
    if isinstance(declared, Report | ColumnReport):
        empty = con.sql(f"SELECT unnest(NULL::{sql_type}, max_depth := 2) LIMIT 0").to_arrow_table()
        assert empty.schema.names == declared.schema.names
        assert [plain(kind) for kind in empty.schema.types] == [plain(kind) for kind in declared.schema.types]
    if isinstance(declared, Scalar):
        empty = con.sql(f"SELECT NULL::{sql_type} AS x LIMIT 0").to_arrow_table()
        assert plain(empty.schema.types[0]) == plain(declared.result)


def plain(kind: pa.DataType) -> str:
    """A type without the names that Arrow and DuckDB give to the members of a list."""
    return re.sub(r"list<\w+: ", "list<", str(kind)).replace(" not null", "")


def test_macros_call_only_what_is_registered() -> None:
    for file in macros.macro_files():
        code = re.sub(r"--[^\n]*", "", file.sql)
        assert set(re.findall(r"\b_anon_\w+(?=\()", code)) <= registry.functions().keys(), file.name
