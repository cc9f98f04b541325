"""Tables of a PostgreSQL server, fetched as Arrow through ADBC, which is an extra."""

from __future__ import annotations

import importlib

import duckdb

from duckanon.job import sql
from duckanon.job.errors import FileProblem
from duckanon.job.policy import Source


def opened(con: duckdb.DuckDBPyConnection, source: Source) -> str:
    """Fetch a table or a query, and return the query that gives its rows.

    Errors tell neither the address, in which a password may stand, nor what the server says, which may quote values.
    """
    try:
        dbapi = importlib.import_module("adbc_driver_postgresql.dbapi")
    except ImportError:
        raise FileProblem(
            "source.path: PostgreSQL is read through ADBC; install it with: pip install 'duckanon[postgresql]'."
        ) from None
    query = source.query or f"SELECT * FROM {'.'.join(map(sql.name, (source.table or '').split('.')))}"
    try:
        with dbapi.connect(source.path) as server, server.cursor() as cursor:
            cursor.execute(query)
            rows = cursor.fetch_arrow_table()
    except Exception as error:
        raise FileProblem(f"postgresql: the table cannot be read ({type(error).__name__}).") from None
    con.register("server_rows", rows)
    return "SELECT * FROM server_rows"
