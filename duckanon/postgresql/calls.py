"""Read a table of a server into DuckDB, and write a release back after counting it there."""

from __future__ import annotations

from collections.abc import Sequence

import duckdb

from duckanon._bridge.sql_text import quote
from duckanon._core.common.arguments import refuse_unless
from duckanon._core.common.names import refuse_unknown_options, unknown_column
from duckanon._core.common.rules import ColumnNames, Whole
from duckanon.postgresql.server import Relation, Server, ServerProblem
from duckanon.postgresql.source import Outgoing, fetch, outgoing
from duckanon.postgresql.target import Delivery

_public = refuse_unknown_options("duckanon.postgresql")

_read: set[Relation] = set()
"""The tables that this process has read: none of them is replaced by a release."""


@_public
def read(
    con: duckdb.DuckDBPyConnection,
    address: str,
    table: str | None = None,
    *,
    query: str | None = None,
    into: str | None = None,
) -> int:
    """Read a table or a query of a PostgreSQL server into a temporary table of a connection.

    A numeric with declared digits becomes a DECIMAL, one without a DOUBLE if none of its numbers has more than 15
    digits, and is refused else. Types that DuckDB does not have (enumerations, JSON, addresses) become texts.

    Args:
        con: A connection of DuckDB, as `duckanon.connect` opens it.
        address: ``postgresql://user@host/database``; what it leaves out, a password among it, comes from libpq's
            environment variables and password file.
        table: ``name`` or ``schema.name``.
        query: A query in PostgreSQL's SQL, in place of a table; it can only read.
        into: The temporary table, which is replaced if it is there; the name of the table if it is not given.

    Returns:
        Its rows.

    Raises:
        ServerProblem: What PostgreSQL refused, or what no function here can protect, such as arrays.
    """
    if (table is None) == (query is None):
        raise ValueError("duckanon.postgresql.read: either table or query must be given.")
    into = into or (table or "").split(".")[-1]
    if not into:
        raise ValueError("duckanon.postgresql.read: into must be the name of a table where a query is read.")
    fetched = fetch(con, address, table, query, f"temp.main.{quote(into)}")
    _read.update(fetched.relations)
    ((rows,),) = con.execute(f"SELECT count(*) FROM temp.main.{quote(into)}").fetchall()
    return int(rows)


@_public
def write(
    con: duckdb.DuckDBPyConnection,
    released: str,
    address: str,
    table: str,
    *,
    cols: Sequence[str],
    k: int,
    person: str | None = None,
    replace: bool = False,
) -> int:
    """Write a release into a new table of a PostgreSQL server, if every class of it has k rows there.

    Args:
        con: The connection that has the release.
        released: Its name: a table, or a view over what does not change from one look to the next.
        address, table: Where it goes, as in `read`.
        cols: The columns that make classes. An interval is written as two columns, ``age_lo`` and ``age_hi``, which
            count for it.
        k: Rows that every class must have, at least.
        person: A released column, such as a pseudonym, that identifies people: k different ones are counted then.
        replace: Replace a table of this name, and keep who may read it. Tables that this process has read are never
            replaced.

    Returns:
        The rows that were written.

    Raises:
        ServerProblem: What PostgreSQL refused.
        ValueError: A class is smaller than k; nothing was written then.
    """
    refuse_unless(Whole(2), "duckanon.postgresql.write: k", k)
    refuse_unless(ColumnNames(), "duckanon.postgresql.write: cols", cols)
    types = {row[0]: str(row[1]) for row in con.execute(f"DESCRIBE FROM {quote(released)}").fetchall()}
    for column in [*cols, *([person] if person else [])]:
        if column not in types:
            raise ValueError(f"duckanon.postgresql.write: {unknown_column(column, types)}")
    expressions = {column: _parts(column, column_type) for column, column_type in types.items()}
    selected = ", ".join(f"{value} AS {quote(part)}" for parts in expressions.values() for part, value in parts.items())
    query = f"SELECT {selected} FROM {quote(released)}"
    with Server(address, is_reader=False) as server:
        delivery = Delivery(server, table)
        delivery.check(is_replacing=replace)
        delivery.refuse_sources(_read)
        delivery.write(con, query, _outgoing(con, query))
        classes = [part for column in cols for part in expressions[column]]
        rows, smallest = delivery.smallest_class(classes, person)
        if smallest < k:
            who = "people" if person else "rows"
            raise ValueError(f"duckanon.postgresql.write: a class has {smallest} {who}; k = {k} was asked for.")
        delivery.put_in_place("A release of duckanon")
        server.commit()
    return rows


def _parts(column: str, column_type: str) -> dict[str, str]:
    quoted = quote(column)
    if column_type.startswith("STRUCT(lo ") and ", hi " in column_type:
        return {f"{column}_lo": f"{quoted}.lo", f"{column}_hi": f"{quoted}.hi"}
    return {column: f"{quoted}::VARCHAR" if column_type.startswith("ENUM") else quoted}


def _outgoing(con: duckdb.DuckDBPyConnection, query: str) -> list[Outgoing]:
    described = [(row[0], str(row[1])) for row in con.execute(f"DESCRIBE {query}").fetchall()]
    names = [column.lower() for column, _ in described]
    if len(set(names)) < len(names):
        raise ServerProblem("an interval needs the name of a column that is there already.")
    return [outgoing(column, column_type) for column, column_type in described]
