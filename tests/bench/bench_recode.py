"""Local recoding against global recoding, on Adult, on a million rows grown from it, and on ACS."""

from __future__ import annotations

import duckdb

from tests.bench.bench_generalize import ACS, ACS_METHODS, ADULT, acs, adult, adult_query, ask, trees
from tests.bench.harness import Task
from tests.sqltest import find_data

Connection = duckdb.DuckDBPyConnection


def recode_query(k: int, options: str) -> str:
    return f"CREATE OR REPLACE TABLE o AS FROM anon.recode('t', {list(ADULT)}, {k}, {options})"


def million(_: int) -> Connection:
    """Adult grown to a million rows; its columns are called as the other ones are."""
    con = adult(0)
    path = find_data("adult_1m.parquet")
    names = [row[0] for row in con.execute(f"DESCRIBE FROM '{path}'").fetchall()]
    columns = ", ".join(f'"{name}" AS {name.replace("-", "_")}' for name in names)
    con.execute(f"CREATE OR REPLACE TABLE t AS SELECT {columns} FROM '{path}'").fetchall()
    return con


def categories_of_acs(rows: int) -> Connection:
    """The first so many rows; codes are categories, and no numbers."""
    con = acs(rows)
    codes = ", ".join(f"{name}::VARCHAR AS {name}" for name in ("STATE", "SEX", "RAC1P", "MAR", "CIT"))
    con.execute(f"CREATE OR REPLACE TABLE t AS SELECT * REPLACE ({codes}) FROM t LIMIT {rows}").fetchall()
    return con


TREES = f"hierarchies := {trees('age')}"
TASKS = [
    *(
        Task(
            f"recode Adult by {name}, k = {k}",
            [30_162],
            adult,
            ask(recode_query(k, options)),
            ask(adult_query(k, trees())),
            "generalize",
            1,
        )
        for name, options in (("ancestors", TREES), ("sets", "weights := NULL"))
        for k in (5, 10)
    ),
    Task(
        "recode a million rows by ancestors, k = 10",
        [10**6],
        million,
        ask(recode_query(10, TREES)),
        ask(adult_query(10, trees())),
        "generalize",
        1,
    ),
    Task(
        "recode ACS, nine columns, k = 10",
        [10**4, 10**5],
        categories_of_acs,
        ask(f"CREATE OR REPLACE TABLE o AS FROM anon.recode('t', {ACS}, 10)"),
        ask(f"CREATE OR REPLACE TABLE o AS FROM anon.generalize('t', {ACS}, 10, methods := {ACS_METHODS})"),
        "generalize",
        1,
    ),
]
