"""The assessments against the plain SQL that does the least."""

from __future__ import annotations

import duckdb

from tests.bench.bench_bridge import MIXED, columns_of, mixed
from tests.bench.harness import Task


def column_profile(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("FROM anon.column_profile('t')").fetchall()


def group_by_each_column(con: duckdb.DuckDBPyConnection) -> None:
    for name in columns_of(con):
        con.execute(
            f"SELECT sum(n), count(*), max(n) FROM (SELECT {name}, count(*) AS n FROM t GROUP BY {name})"
        ).fetchall()


TASKS = [
    Task(
        f"column_profile, {len(MIXED)} columns",
        (10**5, 10**6, 10**7),
        mixed,
        column_profile,
        group_by_each_column,
        "a GROUP BY a column",
    ),
]
