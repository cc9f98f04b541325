"""Tables that a policy names beside the one to release: reference samples and hierarchies."""

from __future__ import annotations

import duckdb

from duckanon._bridge import sql
from duckanon.job import sources
from duckanon.job.errors import FileProblem
from duckanon.job.policy import Table
from duckanon.job.policy_file import PolicyFile


def reference(con: duckdb.DuckDBPyConnection, file: PolicyFile, table: Table, number: int) -> str | None:
    """Read the sample of other people, and return the name of its table."""
    if table.reference is None:
        return None
    _load(con, f"reference_{number}", sources.relation(file.place(table.reference)), table.reference)
    return f"reference_{number}"


def hierarchies(
    con: duckdb.DuckDBPyConnection, file: PolicyFile, table_name: str, number: int, original: str
) -> dict[str, str]:
    """Read the hierarchies, as texts, and return the names of their tables.

    One without any value of its column is of another column, or has no header: it would make all values one.
    """
    found = {}
    table = file.policy.tables[table_name]
    for place, (column, path) in enumerate(table.hierarchies.items(), 1):
        name = f"hierarchy_{number}_{place}"
        literal = sql.literal(str(file.place(path)))
        is_parquet = path.lower().endswith(".parquet")
        rows = f"read_parquet({literal})" if is_parquet else f"read_csv({literal}, all_varchar = true, header = true)"
        _load(con, name, f"SELECT * FROM {rows}", path)
        if not _has_values(con, name, original, column):
            raise file.wrong(
                table_name,
                ("hierarchies", column),
                f"hierarchies.{column}: no value of the column stands in the first column of {path}, below its header.",
            )
        found[column] = name
    return found


def _has_values(con: duckdb.DuckDBPyConnection, hierarchy: str, original: str, column: str) -> bool:
    """Tell whether one value of a column is a leaf of a hierarchy; a column of NULLs has none to miss."""
    leaf = sql.name(next(iter(sql.columns(con, hierarchy))))
    leaves = f"SELECT CAST({leaf} AS VARCHAR) FROM {hierarchy}"
    values = f"SELECT CAST({sql.name(column)} AS VARCHAR) AS value FROM {original}"
    found, known = sql.one(con, f"SELECT count(*) FILTER (value IN ({leaves})), count(value) FROM ({values})")
    return bool(found or not known)


def _load(con: duckdb.DuckDBPyConnection, name: str, query: str, path: str) -> None:
    try:
        con.execute(f"CREATE TABLE {name} AS {query}").fetchall()
    except duckdb.Error as error:
        raise FileProblem(f"{path}: the table cannot be read ({sql.why(error)}).") from None
