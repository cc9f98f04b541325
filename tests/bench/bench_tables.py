"""Aggregate tables with margins, protected and audited, against the query that only computes them."""

from __future__ import annotations

from functools import partial

import duckanon
from duckanon._bridge.sql import Connection
from tests.bench.harness import Task
from tests.sqltest import find_data

SURVEY = find_data("acs_pums_2024_workers.parquet")

COLUMNS = {
    4_594: "state, occupation, sex",
    18_287: "state, age3, occupation, sex",
    541_068: "puma, age3, occupation, sex",
    1_707_245: "puma, age5, occupation, sex",
}
"""Columns of tables by the number of their cells, with states in divisions, areas in states, ages in groups."""

LEVELS = {"state": ["division"], "puma": ["state", "division"], "age5": ["age3"]}


def workers(cells: int) -> tuple[Connection, list[str]]:
    con = duckanon.connect()
    con.execute(
        f"""CREATE TABLE t AS
        SELECT STATE AS state, 'd' || STATE::INT % 9 AS division, STATE || PUMA AS puma, SEX AS sex, WAGP AS wage,
               'o' || OCCP // 400 AS occupation, least(AGEP, 84) // 5 * 5 AS age5,
               CASE WHEN AGEP < 30 THEN 'young' WHEN AGEP < 55 THEN 'middle' ELSE 'old' END AS age3
        FROM '{SURVEY}'"""
    ).fetchall()
    by = COLUMNS[cells].split(", ")
    for name in set(by) & LEVELS.keys():
        columns = ", ".join([name, *(f"'{level} ' || {level}" for level in LEVELS[name][: 1 if cells < 10**6 else 2])])
        con.execute(f"CREATE TABLE {name}_levels AS SELECT DISTINCT {columns} FROM t").fetchall()
    return con, by


def protect(given: tuple[Connection, list[str]], options: str) -> None:
    con, by = given
    levels = ", ".join(f"'{name}': '{name}_levels'" for name in by if name in LEVELS)
    con.execute(
        f"CREATE OR REPLACE TABLE o AS FROM anon.protect_table('t', {by}, {options}, hierarchies := MAP {{{levels}}})"
    ).fetchall()


def tabulate(given: tuple[Connection, list[str]], measure: str) -> None:
    con, by = given
    total = "count(*)" if measure == "NULL" else "sum(wage)"
    sets = [f"ROLLUP ({', '.join([*reversed(LEVELS.get(name, [])), name])})" for name in by]
    con.execute(f"CREATE OR REPLACE TABLE o AS SELECT {total} AS total FROM t GROUP BY {', '.join(sets)}").fetchall()


def visits(rows: int) -> Connection:
    con = duckanon.connect()
    con.execute(
        f"""CREATE TABLE v AS SELECT hash(i) % {rows // 5} AS patient, 'r' || hash(i * 7) % 1000 AS region,
        hash(i * 3) % 100 AS age, hash(i * 11) % 1000 / 10 AS cost FROM range({rows}) AS t(i)"""
    ).fetchall()
    return con


def draw(con: Connection) -> None:
    con.execute(
        """CREATE OR REPLACE TABLE o AS FROM anon.dp_table('v', ['region'], 1,
        ['count', 'sum(cost)', 'mean(age)', 'quantile(age, 0.5)'], delta := 1e-6, person := 'patient', max_groups := 3,
        bounds := MAP {'cost': [0, 100], 'age': [0, 120]}, unaccounted := true)"""
    ).fetchall()


def by_person(con: Connection) -> None:
    con.execute(
        """CREATE OR REPLACE TABLE o AS SELECT region, count(*), sum(cost), avg(age), median(age)
        FROM (SELECT region, patient, sum(cost) AS cost, avg(age) AS age FROM v GROUP BY ALL) GROUP BY ALL"""
    ).fetchall()


TASKS = [
    Task(
        "dp_table, 4 aggregates of 1,000 groups, 3 a person",
        [1_000_000, 10_000_000],
        visits,
        draw,
        by_person,
        "GROUP BY person and group",
        1,
    )
]

TASKS += (
    [
        Task(
            f"protect_table, {what}, k = 10",
            sizes,
            workers,
            partial(protect, options=f"measure := {measure}, max_suppressed_fraction := 1"),
            partial(tabulate, measure=measure),
            "GROUPING SETS",
            1,
        )
        for what, measure, sizes in (
            ("counts of workers", "NULL", [4_594, 541_068]),
            ("sums of wages", "'wage'", [18_287]),
        )
    ]
    + [
        Task(
            "protect_table, rounded counts of workers, k = 10",
            [4_594, 541_068],
            workers,
            partial(protect, options="method := 'round', key := 'the key of the benchmark'"),
            partial(tabulate, measure="NULL"),
            "GROUPING SETS",
            1,
        )
    ]
    if SURVEY
    else []
)
