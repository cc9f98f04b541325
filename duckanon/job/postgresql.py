"""Tables of a PostgreSQL server as sources of a job."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import duckdb

from duckanon._bridge import sql
from duckanon.job.errors import FileProblem
from duckanon.job.policy import Source
from duckanon.postgresql.server import Relation, ServerProblem
from duckanon.postgresql.source import fetch

FETCHED = "server_rows"
"""The temporary table of what was fetched."""


@dataclass(frozen=True)
class Fetched:
    """A table of a server, fetched.

    Attributes:
        query: The query that gives its rows; columns that were not read are NULL.
        declared: The types of its columns on the server.
        relations: The tables of the server that the rows come from.
    """

    query: str
    declared: dict[str, str] = field(default_factory=dict)
    relations: set[Relation] = field(default_factory=set)


def fetched(
    con: duckdb.DuckDBPyConnection, source: Source, unread: Collection[str] = (), limit: int | None = None
) -> Fetched:
    """Fetch a table or a query.

    Errors tell neither the address, in which a password may stand, nor what the server says, which may quote values.
    """
    assert source.path is not None
    with problems():
        found = fetch(con, source.path, source.table, source.query, FETCHED, unread=unread, limit=limit)
    empty = "".join(f", NULL AS {sql.name(column)}" for column in found.unread)
    return Fetched(f"SELECT *{empty} FROM {FETCHED}", found.declared, found.relations)


@contextmanager
def problems() -> Iterator[None]:
    """Turn what a server refuses into the job's errors."""
    try:
        yield
    except ServerProblem as problem:
        raise FileProblem(f"postgresql: {problem}") from None
