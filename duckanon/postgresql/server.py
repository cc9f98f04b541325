"""A session with a PostgreSQL server; what goes wrong with it is told without an address, a password or a value."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa

from duckanon._bridge.sql_text import quote

INSTALL = "PostgreSQL is read through ADBC; install it with: pip install 'duckanon[postgresql]'"

_REASONS = {
    "08": "the server cannot be reached",
    "22": "it rejects a value",
    "23": "it rejects a row",
    "28": "it does not let this user in",
    "2B": "views or other objects depend on it",
    "3D": "there is no such database",
    "3F": "there is no such schema",
    "42501": "this user may not",
    "42601": "the query cannot be read as SQL",
    "42701": "a name stands for two columns, or is one of PostgreSQL's own",
    "42703": "there is no such column",
    "42P01": "there is no such table",
    "42P07": "there is a table of this name",
    "25006": "the query writes, and a source is only read",
    "53": "its disk is full",
    "55P03": "another session holds a lock on it",
    "57": "the server ended the session",
}
"""Reasons by SQLSTATE, or by its class, the first two letters. The server's own words may quote a person's value."""

Relation = tuple[str, int]
"""A table of a server, by whatever name it is reached: the server and database, and the table's number in it."""

_open: set[Server] = set()
"""The sessions that are open."""


class ServerProblem(Exception):  # noqa: N818 - it says what happened
    """A refusal of PostgreSQL, in one sentence without an address, a password or a value."""


def table_name(text: str) -> str:
    """Write the name of a table, which may have a schema before it."""
    return ".".join(map(quote, text.split(".")))


def cancel_all() -> None:
    """Stop what the sessions of this process are busy with."""
    for server in list(_open):
        server.cancel()


class Server(contextlib.AbstractContextManager["Server"]):
    """A session, and the transaction that is open in it.

    What the address, as libpq reads it, leaves out comes from the environment, ``PGPASSWORD`` included. The transaction
    of a reader only reads, and sees the tables as they are at its beginning.
    """

    def __init__(self, address: str, *, is_reader: bool) -> None:
        try:
            driver = importlib.import_module("adbc_driver_postgresql.dbapi")
        except ImportError:
            raise ServerProblem(f"{INSTALL}.") from None
        with translate_errors("the server cannot be reached"):
            self._connection = driver.connect(address)
        _open.add(self)
        try:
            if is_reader:
                self.run("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            self.run("SET LOCAL standard_conforming_strings = on")  # quotes are then all that a text needs
            # rows come in the order in which they were written, and a server notices soon that a job was killed
            self.rows("""
                SELECT set_config(name, CASE WHEN name LIKE 'client%' THEN '1000' ELSE '0' END, true)
                FROM pg_catalog.pg_settings
                WHERE name IN ('synchronize_seqscans', 'max_parallel_workers_per_gather', 'statement_timeout',
                               'idle_in_transaction_session_timeout', 'transaction_timeout')
                   OR name = 'client_connection_check_interval' AND pg_catalog.version() LIKE '%linux%'""")
            ((self.identity,),) = self.rows("""
                SELECT concat(extract(epoch FROM pg_catalog.pg_postmaster_start_time()), ' ',
                              (SELECT oid FROM pg_catalog.pg_database WHERE datname = current_database()))""")
        except BaseException:
            self.close()
            raise

    def __exit__(self, *raised: object) -> None:
        """End the session; what was not committed has never been."""
        self.close()

    def run(self, statement: str) -> None:
        """Run a statement that returns nothing."""
        with translate_errors(), self._connection.cursor() as cursor:
            cursor.execute(statement)

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """Return the rows of a query."""
        with translate_errors(), self._connection.cursor() as cursor:
            cursor.execute(query)
            return list(cursor.fetchall())

    def schema(self, query: str) -> pa.Schema:
        """Return the columns of a query."""
        with translate_errors(), self._connection.cursor() as cursor:
            cursor.execute(f"SELECT * FROM ({query}) AS rows_of_query LIMIT 0")
            return cursor.fetch_record_batch().schema

    @contextmanager
    def reader(self, query: str) -> Iterator[pa.RecordBatchReader]:
        """Give the rows of a query, once."""
        with translate_errors("the query failed while its rows were read"), self._connection.cursor() as cursor:
            cursor.execute(query)
            yield cursor.fetch_record_batch()

    def ingest(self, table: str, reader: pa.RecordBatchReader) -> None:
        """Make a temporary table, which only this session can read, of rows."""
        with translate_errors(), self._connection.cursor() as cursor:
            cursor.adbc_ingest(table, reader, mode="create", temporary=True)

    def relations(self) -> set[Relation]:
        """Return all tables that the transaction has read so far, through views, partitions and functions too.

        Whoever reads a table holds a lock on it until the end of the transaction, by whatever name it was reached.
        """
        rows = self.rows("""
            SELECT relation::bigint FROM pg_catalog.pg_locks
            WHERE pid = pg_catalog.pg_backend_pid() AND locktype = 'relation'""")
        return {(self.identity, number) for (number,) in rows}

    def commit(self) -> None:
        """Make all that was done visible to others, at once."""
        with translate_errors():
            self._connection.commit()

    def cancel(self) -> None:
        """Stop the statement that the session is busy with, from another thread."""
        with contextlib.suppress(Exception):  # it has ended meanwhile
            self._connection.adbc_cancel()

    def close(self) -> None:
        """End the session."""
        _open.discard(self)
        with translate_errors():
            self._connection.close()


@contextmanager
def translate_errors(otherwise: str | None = None) -> Iterator[None]:
    """Turn errors of the driver into sentences."""
    try:
        yield
    except ServerProblem:
        raise
    except Exception as error:
        state = getattr(error, "sqlstate", None) or ""
        reason = _REASONS.get(state) or _REASONS.get(state[:2]) or otherwise
        kind = f"SQLSTATE {state}" if state else type(error).__name__
        raise ServerProblem(f"{reason} ({kind})." if reason else f"the server refuses it ({kind}).") from None
