"""A table or a query of a server, copied into a table of DuckDB: Arrow's readers give their rows only once.

Types of columns on the way between PostgreSQL and DuckDB: kept where both have them, refused in a sentence else.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection
from dataclasses import dataclass

import duckdb
import pyarrow as pa

from duckanon._bridge.sql import bare
from duckanon._bridge.sql_text import literal, quote
from duckanon.postgresql.server import Relation, Server, ServerProblem, table_name

LONGEST_NAME = 63
"""Bytes: PostgreSQL cuts off the rest of a name, without a word."""

_PLAIN = {
    "BOOLEAN": "boolean",
    "TINYINT": "smallint",
    "UTINYINT": "smallint",
    "SMALLINT": "smallint",
    "USMALLINT": "integer",
    "INTEGER": "integer",
    "UINTEGER": "bigint",
    "BIGINT": "bigint",
    "FLOAT": "real",
    "DOUBLE": "double precision",
    "VARCHAR": "text",
    "DATE": "date",
    "TIME": "time",
    "TIMESTAMP": "timestamp",
    "TIMESTAMP WITH TIME ZONE": "timestamp with time zone",
    "INTERVAL": "interval",
    "BLOB": "bytea",
}
"""Types whose values travel as they are."""

_AS_TEXT = {"UBIGINT": "numeric(20, 0)", "HUGEINT": "numeric(39, 0)", "UHUGEINT": "numeric(39, 0)", "UUID": "uuid"}
"""Types whose values travel as texts."""

_KEPT = re.compile(
    r"smallint|integer|bigint|real|double precision|numeric(\(\d+,-?\d+\))?|text|character( varying)?(\(\d+\))?|"
    r"boolean|date|timestamp(\(\d\))? with(out)? time zone|time(\(\d\))? without time zone|interval|uuid|bytea"
)
"""Declared types of the source that a column of the release has, too, if it has the same values."""

_PRECISION = 38
"""Digits of a DECIMAL, at most."""


@dataclass(frozen=True)
class Incoming:
    """A column that is read."""

    name: str
    asked: str  # of the server, in SQL
    as_type: str | None = None  # the DuckDB type that its texts become; None leaves it as it comes
    is_open: bool = False  # whether it is a numeric without digits declared, whose type its values decide


def incoming(field: pa.Field) -> Incoming:
    """Say how a column is read; what DuckDB cannot anonymize is refused."""
    metadata = {key.decode(): value.decode() for key, value in (field.metadata or {}).items()}
    kind, quoted = metadata.get("POSTGRESQL:type", ""), quote(field.name)
    if pa.types.is_nested(field.type) or kind.startswith("_"):
        raise ServerProblem(
            f"column {field.name} has arrays or records, which no function protects; give it the role identifier, or "
            "leave it out by a query."
        )
    if kind == "numeric":
        declared = _digits(int(metadata.get("POSTGRESQL:typmod", "-1")))
        return Incoming(field.name, f"{quoted}::text", f"DECIMAL{declared}" if declared else None, declared is None)
    is_padded = kind == "bpchar"  # the spaces behind a char(n) are no part of it
    if is_padded or (isinstance(field.type, pa.BaseExtensionType) and kind != "uuid"):
        return Incoming(field.name, f"{quoted}::text")
    return Incoming(field.name, quoted)


def _digits(modifier: int) -> tuple[int, int] | None:
    """Return the digits of a declared numeric, as PostgreSQL packs them; None where a DECIMAL has no such."""
    if modifier < 4:
        return None
    precision, scale = (modifier - 4) >> 16 & 0xFFFF, ((modifier - 4 & 0x7FF) ^ 0x400) - 0x400
    return (precision, scale) if 0 <= scale <= precision <= _PRECISION else None


@dataclass(frozen=True)
class Outgoing:
    """A column that is written."""

    name: str
    duckdb_type: str
    declared: str  # its type on the server

    @property
    def travels_as_text(self) -> bool:
        """Whether its values are sent as texts."""
        return self.duckdb_type not in _PLAIN

    @property
    def stored(self) -> str:
        """The expression that makes the column of what was sent; numbers by way of texts, which round nothing."""
        through = "::text" if self.declared.startswith("numeric") else ""
        return f"{quote(self.name)}{through}::{self.declared}"

    @property
    def asked(self) -> str:
        """The expression that is read back."""
        by_text = self.travels_as_text or self.declared.startswith(("numeric", "character("))
        return f"{quote(self.name)}::text AS {quote(self.name)}" if by_text else quote(self.name)


def outgoing(column: str, duckdb_type: str, declared: str | None = None) -> Outgoing:
    """Say how a column is written; `declared` is what the source says of the same values."""
    if len(column.encode()) > LONGEST_NAME:
        raise ServerProblem(f"column {column} has a name of more than {LONGEST_NAME} bytes, which PostgreSQL cuts off.")
    decimal = re.fullmatch(r"DECIMAL\((\d+),\s*(\d+)\)", duckdb_type)
    kind = f"numeric({decimal[1]}, {decimal[2]})" if decimal else _PLAIN.get(duckdb_type) or _AS_TEXT.get(duckdb_type)
    if kind is None:
        raise ServerProblem(f"column {column} is of type {duckdb_type}, which is not written to PostgreSQL.")
    return Outgoing(column, duckdb_type, declared if declared and _KEPT.fullmatch(declared) else kind)


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
        declared = _read_types(server, table) if table else {}
        if table and unread:  # who may not read some columns of a table cannot ask for all of them
            asked = f"SELECT {', '.join(quote(c) for c in declared if c not in unread)} FROM {table_name(table)}"
        schema = server.schema(asked)
        columns = [incoming(field) for field in schema if field.name not in unread]
        if not columns:
            raise ServerProblem("no column of it is to be read.")
        selected = ", ".join(f"{column.asked} AS {quote(column.name)}" for column in columns)
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


def _read_types(server: Server, table: str) -> dict[str, str]:
    rows = server.rows(f"""
        SELECT attname::text, pg_catalog.format_type(atttypid, atttypmod) FROM pg_catalog.pg_attribute
        WHERE attrelid = {literal(table_name(table))}::regclass AND attnum > 0 AND NOT attisdropped""")
    return dict(rows)


def _convert(con: duckdb.DuckDBPyConnection, into: str, column: Incoming) -> None:
    """Make numbers of the texts of a numeric, none of them rounded."""
    quoted = quote(column.name)
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
