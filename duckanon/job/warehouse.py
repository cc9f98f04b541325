"""Tables of PostgreSQL servers: sources of a job, and targets.

Each server is written in one transaction, committed when every promise was counted.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

import numpy as np

from duckanon._bridge import sql
from duckanon._core.common.arrays import Ints
from duckanon.job.errors import FileProblem
from duckanon.job.policy import Source, Target
from duckanon.postgresql.server import Relation, Server, ServerProblem
from duckanon.postgresql.source import fetch, outgoing
from duckanon.postgresql.target import Delivery

FETCHED = "server_rows"
"""The temporary table of what was fetched."""


@dataclass(frozen=True)
class Opened:
    """A source that can be asked for its rows."""

    query: str  # gives the rows; columns that were not read are NULL
    declared: dict[str, str] = field(default_factory=dict)  # the types of its columns on a server
    relations: set[Relation] = field(default_factory=set)  # the tables of a server that the rows come from


def fetch_source(con: sql.Connection, source: Source, unread: Collection[str] = (), limit: int | None = None) -> Opened:
    """Fetch a table or a query.

    Errors tell neither the address, in which a password may stand, nor what the server says, which may quote values.
    """
    assert source.path is not None
    with problems():
        table = fetch(con, source.path, source.table, source.query, FETCHED, unread=unread, limit=limit)
    empty = "".join(f", NULL AS {sql.quote(column)}" for column in table.unread)
    return Opened(f"SELECT *{empty} FROM {FETCHED}", table.declared, table.relations)


@contextmanager
def problems() -> Iterator[None]:
    """Turn what a server refuses into the job's errors."""
    try:
        yield
    except ServerProblem as problem:
        raise FileProblem(f"postgresql: {problem}") from None


class Warehouse:
    """The tables of one run; leaving it without a commit leaves the servers as they were."""

    def __init__(self, targets: Mapping[str, Target]) -> None:
        self._targets = targets
        self._servers: dict[str, Server] = {}
        self._deliveries: dict[str, Delivery] = {}
        self._open = ExitStack()

    def __enter__(self) -> Warehouse:
        """Connect, and see to it that no other run writes the same tables."""
        with problems(), self._open as opened:
            for name, target in self._targets.items():
                if target.path not in self._servers:
                    self._servers[target.path] = opened.enter_context(Server(target.path, is_reader=False))
                delivery = Delivery(self._servers[target.path], target.table or "")
                if delivery.place in [other.place for other in self._deliveries.values()]:
                    raise FileProblem(f"{delivery.table}: two tables of the job would have this name.")
                self._deliveries[name] = delivery
            self._open = opened.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        """Close the sessions."""
        self._open.close()

    def __contains__(self, name: str) -> bool:
        """Tell whether a table of the job goes to a server."""
        return name in self._deliveries

    def check(self) -> None:
        """Refuse places that are taken."""
        with problems():
            for name, delivery in self._deliveries.items():
                delivery.check(is_replacing=self._targets[name].replace)

    def has(self, mark: str) -> bool:
        """Tell whether a run that was killed had committed: its mark stands at a table."""
        with problems():
            return any(delivery.mark() == mark for delivery in self._deliveries.values())

    def refuse_sources(self, relations: Collection[Relation]) -> None:
        """Refuse to replace a table that rows come from."""
        with problems():
            for delivery in self._deliveries.values():
                delivery.refuse_sources(relations)

    def write(self, con: sql.Connection, name: str, query: str, declared: Mapping[str, str], into: str) -> str:
        """Write the rows of a query, and return the query of what the server has of them, fetched into a table."""
        described = [(row[0], str(row[1])) for row in con.execute(f"DESCRIBE {query}").fetchall()]
        with problems():
            delivery = self._deliveries[name]
            delivery.write(con, query, [outgoing(column, kind, declared.get(column)) for column, kind in described])
            delivery.read_back(con, into)
        return f"SELECT * FROM {into}"

    def previous(self, con: sql.Connection, name: str, into: str) -> str | None:
        """Fetch the table that is to be replaced, and return the query of its rows."""
        if not self._deliveries[name].existing:
            return None
        with problems():
            fetch(con, self._targets[name].path, self._deliveries[name].table, None, into)
        return f"SELECT * FROM {into}"

    def commit(self, mark: str) -> None:
        """Give all tables their names, and make them visible."""
        with problems():
            for delivery in self._deliveries.values():
                delivery.put_in_place(mark)
            for server in self._servers.values():
                server.commit()


def fetch_table(con: sql.Connection, target: Target, into: str) -> str:
    """Fetch the table at a target, and return the query of its rows."""
    with problems():
        fetch(con, target.path, target.table, None, into)
    return f"SELECT * FROM {into}"


def in_order(con: sql.Connection, rows: str) -> str:
    """Return the query of rows in an order that they have themselves: a server's tables have none.

    Rows that are equal in every column are in any order.
    """
    return f"SELECT * FROM ({rows}) ORDER BY {_order(con, rows)}"


def places_in_order(con: sql.Connection, rows: str) -> Ints:
    """Return the places of rows, from 0, in the order of `in_order`."""
    numbered = f"SELECT row_number() OVER () - 1 AS _duckanon_place, * FROM ({rows})"
    table = con.sql(f"SELECT _duckanon_place FROM ({numbered}) ORDER BY {_order(con, rows)}").to_arrow_table()
    return np.asarray(table["_duckanon_place"].to_numpy(), dtype=np.int64)


def _order(con: sql.Connection, rows: str) -> str:
    names = [sql.quote(row[0]) for row in con.execute(f"DESCRIBE {rows}").fetchall()]
    return ", ".join(f"{one}::VARCHAR ASC NULLS LAST" for one in names)


def fingerprint(con: sql.Connection, rows: str) -> str:
    """Return a quick hash of a query's rows, in whatever order they are read; other versions of DuckDB have others."""
    names = sql.quote_all(row[0] for row in con.execute(f"DESCRIBE {rows}").fetchall())
    numbers = sql.fetch_row(con, f"SELECT count(*), sum(hash({names})), bit_xor(hash({names})) FROM ({rows})")
    return hashlib.sha256(" ".join(map(str, numbers)).encode()).hexdigest()


def digest(con: sql.Connection, rows: str) -> str:
    """Return the hash of a query's rows by which a release is recognized years later, in whatever order they are read.

    Each row's texts have a SHA-256, and the four quarters of these are added up.
    """
    columns = [str(row[0]) for row in con.execute(f"DESCRIBE {rows}").fetchall()]
    texts = ", ".join(f"{sql.quote(column)}::VARCHAR" for column in columns)
    sums = ", ".join(f"sum(('0x' || whole[{start}:{start + 15}])::UBIGINT)" for start in (1, 17, 33, 49))
    hashed = f"SELECT sha256(to_json([{texts}])::VARCHAR) AS whole FROM ({rows})"
    numbers = sql.fetch_row(con, f"SELECT count(*), {sums} FROM ({hashed})")
    return hashlib.sha256(repr((columns, *map(str, numbers))).encode()).hexdigest()
