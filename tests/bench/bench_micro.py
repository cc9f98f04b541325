"""Microaggregation, the fast method against MDAV, and cell suppression against counting the classes."""

from __future__ import annotations

import duckdb
import numpy as np

import duckanon
from duckanon._methods.microaggregate.fast import fast
from duckanon._methods.microaggregate.mdav import mdav
from tests.bench.harness import Task

Connection = duckdb.DuckDBPyConnection
KEYS = ["a", "b", "c", "d", "e", "f"]


def normal(rows: int) -> np.ndarray:
    return np.random.default_rng(0).normal(size=(rows, 8))


def categories(rows: int) -> Connection:
    con = duckanon.connect()
    codes = np.random.default_rng(0).zipf(1.7, size=(rows, len(KEYS))) % 12
    con.register("source", {name: codes[:, place] for place, name in enumerate(KEYS)})
    con.execute("CREATE TABLE t AS FROM source").fetchall()
    return con


def suppress(con: Connection) -> None:
    con.execute(f"CREATE OR REPLACE TABLE o AS FROM anon.suppress_cells('t', {KEYS}, 5)").fetchall()


def count_classes(con: Connection) -> None:
    con.execute("CREATE OR REPLACE TABLE o AS SELECT *, count(*) AS n FROM t GROUP BY ALL").fetchall()


TASKS = [
    Task(
        "microaggregate fast in Python, 8 columns, k = 3",
        [10**4, 3 * 10**4],
        normal,
        lambda points: fast(points, 3),
        lambda points: mdav(points, 3),
        "MDAV",
        1,
    ),
    Task(
        "microaggregate fast in Python, 8 columns, k = 10",
        [3 * 10**4, 10**5],
        normal,
        lambda points: fast(points, 10),
        lambda points: mdav(points, 10),
        "MDAV",
        1,
    ),
    Task("suppress_cells, 6 columns, k = 5", [10**5, 10**6], categories, suppress, count_classes, "GROUP BY", 1),
]
