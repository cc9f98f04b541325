"""Tables that a policy names beside the one to release: reference samples and hierarchies."""

from __future__ import annotations

import duckdb

from duckanon.job import sources, sql
from duckanon.job.errors import FileProblem
from duckanon.job.policy import Table
from duckanon.job.policy_file import PolicyFile


def reference(con: duckdb.DuckDBPyConnection, file: PolicyFile, table: Table, number: int) -> str | None:
    """Read the sample of other people, and return the name of its table."""
    if table.reference is None:
        return None
    _load(con, f"reference_{number}", sources.relation(file.place(table.reference)), table.reference)
    return f"reference_{number}"


def hierarchies(con: duckdb.DuckDBPyConnection, file: PolicyFile, table: Table, number: int) -> dict[str, str]:
    """Read the hierarchies, as texts, and return the names of their tables."""
    found = {}
    for place, (column, path) in enumerate(table.hierarchies.items(), 1):
        name = f"hierarchy_{number}_{place}"
        literal = sql.literal(str(file.place(path)))
        is_parquet = path.lower().endswith(".parquet")
        rows = f"read_parquet({literal})" if is_parquet else f"read_csv({literal}, all_varchar = true, header = true)"
        _load(con, name, f"SELECT * FROM {rows}", path)
        found[column] = name
    return found


def _load(con: duckdb.DuckDBPyConnection, name: str, query: str, path: str) -> None:
    try:
        con.execute(f"CREATE TABLE {name} AS {query}").fetchall()
    except duckdb.Error as error:
        raise FileProblem(f"{path}: the table cannot be read ({sql.why(error)}).") from None
