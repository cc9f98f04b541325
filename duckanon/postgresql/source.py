"""A table or a query of a server, copied into a table of DuckDB: Arrow's readers give their rows only once."""

from __future__ import annotations

import itertools
from collections.abc import Collection
from dataclasses import dataclass

import duckdb
import pyarrow as pa

from duckanon._bridge.sql import bare, literal, name
from duckanon.postgresql.server import Relation, Server, ServerProblem, table_name
from duckanon.postgresql.types import Incoming, incoming

_DIGITS = 15
"""Digits of a number that a DOUBLE gives back as it was."""

_numbers = itertools.count()


@dataclass(frozen=True)
class Fetched:
    """A table that was read."""

    unread: list[str]  # columns that are there and were not read
    declared: dict[str, str]  # the types of the columns as the server declares them, where a table was read
    relations: set[Relation]  # all tables that the rows come from


def fetch(
    con: duckdb.DuckDBPyConnection,
    address: str,
    table: str | None,
    query: str | None,
    into: str,
    *,
    unread: Collection[str] = (),
    limit: int | None = None,
) -> Fetched:
    """Copy at most `limit` rows of a server's table, or of a query, into a new temporary table, given in quotes.

    Columns that are `unread` stay where they are.
    """
    asked = bare(query) if query else f"SELECT * FROM {table_name(table or '')}"  # as it can stand in brackets
    with Server(address, is_reader=True) as server:
        declared = _declared(server, table) if table else {}
        if table and unread:  # who may not read some columns of a table cannot ask for all of them
            asked = f"SELECT {', '.join(name(c) for c in declared if c not in unread)} FROM {table_name(table)}"
        schema = server.schema(asked)
        columns = [incoming(field) for field in schema if field.name not in unread]
        if not columns:
            raise ServerProblem("no column of it is to be read.")
        selected = ", ".join(f"{column.asked} AS {name(column.name)}" for column in columns)
        limited = "" if limit is None else f" LIMIT {limit}"
        with server.reader(f"SELECT {selected} FROM ({asked}) AS rows_of_query{limited}") as reader:
            take(con, reader, into)
        relations = server.relations()
    for column in columns:
        _convert(con, into, column)
    return Fetched([column for column in declared or schema.names if column in unread], declared, relations)


def take(con: duckdb.DuckDBPyConnection, reader: pa.RecordBatchReader, into: str) -> None:
    """Make a temporary table of the rows of a reader."""
    view = f"_duckanon_reader_{next(_numbers)}"
    con.register(view, reader)
    try:
        con.execute(f"CREATE OR REPLACE TEMP TABLE {into} AS FROM {view}").fetchall()
    finally:
        con.unregister(view)


def _declared(server: Server, table: str) -> dict[str, str]:
    rows = server.rows(f"""
        SELECT attname::text, pg_catalog.format_type(atttypid, atttypmod) FROM pg_catalog.pg_attribute
        WHERE attrelid = {literal(table_name(table))}::regclass AND attnum > 0 AND NOT attisdropped""")
    return dict(rows)


def _convert(con: duckdb.DuckDBPyConnection, into: str, column: Incoming) -> None:
    """Make numbers of the texts of a numeric, none of them rounded."""
    quoted = name(column.name)
    if column.is_open:
        zeros = f"CASE WHEN contains({quoted}, '.') THEN '0' ELSE '' END"
        digits = f"ltrim(replace(replace(rtrim({quoted}, {zeros}), '.', ''), '-', ''), '0')"
        is_short = f"{quoted} IN ('NaN', 'Infinity', '-Infinity') OR length({digits}) <= {_DIGITS}"
        if con.execute(f"SELECT count(*) FROM {into} WHERE NOT ({is_short})").fetchall() != [(0,)]:
            raise ServerProblem(
                f"column {column.name} is a numeric without declared digits, and has numbers of more than {_DIGITS}; "
                "declare them, or cast it in a query."
            )
        con.execute(f"ALTER TABLE {into} ALTER {quoted} TYPE DOUBLE").fetchall()
    elif column.as_type:
        if con.execute(f"SELECT count(*) FROM {into} WHERE {quoted} = 'NaN'").fetchall() != [(0,)]:
            raise ServerProblem(f"column {column.name} is a numeric with NaN, which a DECIMAL does not have.")
        con.execute(f"ALTER TABLE {into} ALTER {quoted} TYPE {column.as_type}").fetchall()
