"""What it costs to register, and to carry a table through Python: the floor of every Python function."""

from __future__ import annotations

import duckdb

import duckanon
from tests.bench.harness import Task

DOUBLES = [f"x{number}" for number in range(10)]
MIXED = {
    "i": "(random() * 1e9)::INTEGER",
    "u": "(random() * 100)::UTINYINT",
    "b": "(random() * 1e15)::BIGINT",
    "x": "random()",
    "y": "random()::FLOAT",
    "d": "(random() * 1e6)::DECIMAL(10,2)",
    "flag": "random() < 0.5",
    "city": "'city ' || (random() * 1000)::INTEGER",
    "born": "DATE '1950-01-01' + (random() * 20000)::INTEGER",
    "seen": "TIMESTAMP '2000-01-01' + to_seconds((random() * 1e8)::INTEGER)",
}


def table(columns: dict[str, str], rows: int) -> duckdb.DuckDBPyConnection:
    con = duckanon.connect()
    made = ", ".join(f"{expression} AS {name}" for name, expression in columns.items())
    con.execute(f"CREATE TABLE t AS SELECT {made} FROM range({rows})").fetchall()
    return con


def doubles(rows: int) -> duckdb.DuckDBPyConnection:
    return table(dict.fromkeys(DOUBLES, "random()"), rows)


def mixed(rows: int) -> duckdb.DuckDBPyConnection:
    return table(MIXED, rows)


def columns_of(con: duckdb.DuckDBPyConnection) -> list[str]:
    return [row[0] for row in con.execute("DESCRIBE t").fetchall()]


def identity(con: duckdb.DuckDBPyConnection) -> None:
    con.execute(f"CREATE OR REPLACE TABLE o AS FROM anon._identity('t', {columns_of(con)})").fetchall()


def swap(con: duckdb.DuckDBPyConnection) -> None:
    con.execute(f"CREATE OR REPLACE TABLE o AS FROM anon.swap('t', {columns_of(con)})").fetchall()


def fetch_and_write(con: duckdb.DuckDBPyConnection) -> None:
    fetched = con.execute("FROM t").fetchnumpy()
    con.register("fetched", fetched)
    con.execute("CREATE OR REPLACE TABLE o AS FROM fetched").fetchall()


def fetch_permute_and_write(con: duckdb.DuckDBPyConnection) -> None:
    import numpy as np

    random = np.random.default_rng()
    fetched = con.execute("FROM t").fetchnumpy()
    permuted = {name: values[random.permutation(len(values))] for name, values in fetched.items()}
    con.register("permuted", permuted)
    con.execute("CREATE OR REPLACE TABLE o AS FROM permuted").fetchall()


def attach_only(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("ATTACH ':memory:' AS anon").fetchall()


SIZES = (10**5, 10**6, 10**7)
FLOOR = "fetch to numpy, write back"
TASKS = [
    Task(
        "register a connection",
        [1],
        lambda _: duckdb.connect(),
        duckanon.register,
        attach_only,
        "ATTACH ':memory:'",
        5,
        once=True,
    ),
    Task("bridge, 10 doubles", SIZES, doubles, identity, fetch_and_write, FLOOR),
    Task("bridge, 10 mixed columns", SIZES, mixed, identity, fetch_and_write, FLOOR),
    Task("swap, 10 doubles", SIZES, doubles, swap, fetch_permute_and_write, "fetch, permute, write back"),
]
