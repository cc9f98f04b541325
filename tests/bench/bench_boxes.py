"""Boxes: making them against sorting every column, statistics over them against the sums that they are."""

from __future__ import annotations

from collections.abc import Callable

import duckdb
import numpy as np

import duckanon
from duckanon._methods.boxes.make import make_boxes
from tests.bench.harness import Task

Connection = duckdb.DuckDBPyConnection
COLS = ["a", "b", "c", "d"]
VARIANCES = "[" + ", ".join(f"{{'statistic': 'variance', 'columns': ['{name}']}}" for name in COLS) + "]"


def arrays(rows: int) -> dict[str, np.ndarray]:
    generator = np.random.default_rng(1)
    return {name: generator.normal(size=rows) for name in COLS}


def table(rows: int) -> Connection:
    con = duckanon.connect()
    con.register("source", arrays(rows))
    con.execute("CREATE TABLE t AS FROM source").fetchall()
    return con


def boxed(rows: int) -> Connection:
    con = table(rows)
    con.execute(f"CREATE TABLE boxed AS FROM anon.boxes('t', {COLS}, 10)").fetchall()
    return con


def ask(query: str) -> Callable[[Connection], object]:
    return lambda con: con.execute(query).fetchall()


def sort_every_column(con: Connection) -> None:
    for values in con.sql("FROM t").fetchnumpy().values():
        np.argsort(values)


def argsorts(columns: dict[str, np.ndarray]) -> None:
    for values in columns.values():
        np.argsort(values)


MIDPOINTS = (
    "SELECT " + ", ".join(f"avg(({a}.lo + {a}.hi) / 2), var_pop(({a}.lo + {a}.hi) / 2)" for a in COLS) + " FROM boxed"
)

QUARTILES = (
    "SELECT "
    + ", ".join(f"quantile_disc({a}.{end}, [0.25, 0.5, 0.75])" for a in COLS for end in ("lo", "hi"))
    + " FROM boxed"
)
CERTAIN_AND_POSSIBLE = """SELECT count(*) FILTER (a.lo >= 0 AND b.lo >= -1 AND b.hi <= 1),
                                 count(*) FILTER (a.hi >= 0 AND b.lo <= 1 AND b.hi >= -1) FROM boxed"""
LABELLED = f"SELECT count(box) FROM anon.label_boxes('t', 'known', {COLS})"


def known(rows: int) -> Connection:
    con = boxed(rows)
    con.execute(f"CREATE TABLE known AS FROM anon.box_table('boxed', {COLS})").fetchall()
    return con


def grouped(rows: int) -> Connection:
    con = table(rows)
    con.execute("CREATE TABLE g AS SELECT *, hash(a) % 2 AS sex, hash(b) % 80 AS region FROM t").fetchall()
    return con


TASKS = [
    Task(
        "make_boxes of parts in Python, 4 columns, k = 10",
        [10**5, 10**6],
        arrays,
        lambda columns: make_boxes(columns, 10),
        argsorts,
        "an argsort a column",
        2,
    ),
    Task(
        "boxes of parts, 4 columns, k = 10",
        [10**5, 10**6],
        table,
        ask(f"CREATE OR REPLACE TABLE o AS FROM anon.boxes('t', {COLS}, 10)"),
        sort_every_column,
        "fetch, argsort a column",
        2,
    ),
    Task(
        "boxes of cells, 4 columns, k = 10",
        [10**5, 10**6],
        table,
        ask(f"CREATE OR REPLACE TABLE o AS FROM anon.boxes('t', {COLS}, 10, box := 'cell')"),
        sort_every_column,
        "fetch, argsort a column",
        2,
    ),
    Task(
        "boxes within 160 strata, 4 columns, k = 10",
        [10**5, 10**6],
        grouped,
        ask(f"CREATE OR REPLACE TABLE o AS FROM anon.boxes('g', {COLS}, 10, by := ['sex', 'region'])"),
        sort_every_column,
        "fetch, argsort a column",
        2,
    ),
    Task(
        "label_boxes, 4 columns, k = 10",
        [10**5, 10**6],
        known,
        ask(LABELLED),
        sort_every_column,
        "fetch, argsort a column",
        2,
    ),
    Task(
        "boxes for variances, 4 columns, k = 10",
        [10**6],
        table,
        ask(f"CREATE OR REPLACE TABLE o AS FROM anon.boxes('t', {COLS}, 10, statistics := {VARIANCES})"),
        sort_every_column,
        "fetch, argsort a column",
        2,
    ),
    Task(
        "interval_statistics, 4 columns",
        [10**5, 10**6],
        boxed,
        ask(f"FROM anon.interval_statistics('boxed', {COLS})"),
        ask(MIDPOINTS),
        "of midpoints",
        2,
    ),
    Task(
        "interval_quantiles, 4 columns",
        [10**5, 10**6],
        boxed,
        ask(f"FROM anon.interval_quantiles('boxed', {COLS})"),
        ask(QUARTILES),
        "quantile_disc of all ends",
        2,
    ),
    Task(
        "interval_counts, 2 of 4 columns",
        [10**5, 10**6],
        boxed,
        ask("FROM anon.interval_counts('boxed', 'a >= 0 AND b BETWEEN -1 AND 1')"),
        ask(CERTAIN_AND_POSSIBLE),
        "two counts",
        2,
    ),
    Task(
        "interval_regression, 1 predictor",
        [10**4, 10**5, 10**6],
        boxed,
        ask("FROM anon.interval_regression('boxed', 'a', ['b'])"),
        ask("SELECT regr_slope((a.lo + a.hi) / 2, (b.lo + b.hi) / 2) FROM boxed"),
        "of midpoints",
        2,
    ),
    Task(
        "interval_regression, 2 predictors",
        [10**4, 10**5],
        boxed,
        ask("FROM anon.interval_regression('boxed', 'a', ['b', 'c'])"),
        ask("SELECT regr_slope((a.lo + a.hi) / 2, (b.lo + b.hi) / 2) FROM boxed"),
        "one slope of midpoints",
        1,
    ),
    Task(
        "interval_regression, 3 predictors",
        [10**3],
        boxed,
        ask("FROM anon.interval_regression('boxed', 'a', ['b', 'c', 'd'])"),
        ask("SELECT regr_slope((a.lo + a.hi) / 2, (b.lo + b.hi) / 2) FROM boxed"),
        "one slope of midpoints",
        1,
    ),
]
