"""Generalization: cuts of one column against ntile, plans on real tables against the published peer."""

from __future__ import annotations

from collections.abc import Callable

import duckdb
import numpy as np

import duckanon
from tests.bench.harness import Task
from tests.sqltest import find_data

Connection = duckdb.DuckDBPyConnection
SIZES = [10**5, 10**6, 10**7]
BUCKETS = 500


def ask(*queries: str) -> Callable[[Connection], None]:
    def run(con: Connection) -> None:
        for query in queries:
            con.execute(query).fetchall()

    return run


def numbers(rows: int, columns: int = 1, buckets: int = BUCKETS) -> Connection:
    """Normal numbers, and a stored partition of each column."""
    con = duckanon.connect()
    generator = np.random.default_rng(1)
    table = {f"x{place}": generator.normal(50, 12, rows) for place in range(columns)}
    con.register("source", table)
    con.execute("CREATE TABLE t AS FROM source").fetchall()
    con.execute(f"CREATE TABLE p AS FROM anon.quantile_partition('t', 'x0', buckets := {buckets})").fetchall()
    con.execute(plan_of(columns)).fetchall()
    return con


def plan_of(columns: int) -> str:
    """The partition of the first column as a plan for so many columns."""
    names = [f"x{place}" for place in range(columns)]
    released = ", ".join(f"{name} VARCHAR" for name in names)
    return f"""
        CREATE TABLE plan AS
        SELECT column_name, 'number' AS covers, lower::VARCHAR AS lower, upper::VARCHAR AS upper, label, "rows",
               NULL::STRUCT({released}) AS released
        FROM p, (SELECT unnest({names}) AS column_name)"""


NTILE = f"CREATE OR REPLACE TABLE o AS SELECT ntile({BUCKETS}) OVER (ORDER BY x0) AS x0 FROM t"
EXACT = f"CREATE OR REPLACE TABLE q AS FROM anon.quantile_partition('t', 'x0', buckets := {BUCKETS})"
SAMPLED = f"CREATE OR REPLACE TABLE q AS FROM anon.sampled_partition('t', 'x0', {BUCKETS})"
APPLY = "CREATE OR REPLACE TABLE o AS FROM anon.apply_partition('t', 'x0', 'q')"
RENDERED = "CREATE OR REPLACE TABLE o AS {}"
APPLY_PLAN = "CREATE OR REPLACE TABLE o AS FROM anon.apply_plan('t', 'plan')"


def run_rendered(con: Connection) -> None:
    """Render the stored plan and run it; the types are said, since the table is at hand."""
    plan, types = con.sql("FROM plan").to_arrow_table(), con.sql("FROM t LIMIT 0").to_arrow_table().schema
    con.execute(RENDERED.format(duckanon.render(plan, "duckdb", "t", types=types))).fetchall()


def distinct_numbers(rows: int) -> Connection:
    con = duckanon.connect()
    con.register("source", {"x": np.random.default_rng(1).normal(size=rows)})
    con.execute("CREATE TABLE t AS FROM source").fetchall()
    return con


def sort_in_numpy(con: Connection) -> None:
    np.sort(con.sql("FROM t").fetchnumpy()["x"])


ADULT = {
    "sex": "sex", "age": "age", "race": "race", "marital_status": "marital-status", "education": "education",
    "native_country": "native-country", "workclass": "workclass", "occupation": "occupation",
}  # fmt: skip


def adult(_: int) -> Connection:
    con = duckanon.connect()
    complete = "workclass <> '?' AND occupation <> '?' AND native_country <> '?'"
    con.execute(f"CREATE TABLE t AS FROM '{find_data('adult.csv')}' WHERE {complete}").fetchall()
    for name, file in ADULT.items():
        path = find_data(f"adult_hierarchies/adult_hierarchy_{file}.csv")
        read = f"read_csv('{path}', delim = ';', header = false, all_varchar = true)"
        con.execute(f"CREATE TABLE h_{name} AS FROM {read}").fetchall()
    return con


def trees(*without: str) -> str:
    return "MAP {" + ", ".join(f"'{name}': 'h_{name}'" for name in ADULT if name not in without) + "}"


def adult_query(k: int, hierarchies: str) -> str:
    call = f"anon.generalize('t', {list(ADULT)}, {k}, hierarchies := {hierarchies}, max_suppressed_fraction := 0.05)"
    return f"CREATE OR REPLACE TABLE o AS FROM {call}"


ACS = ["STATE", "AGEP", "SEX", "RAC1P", "MAR", "SCHL", "OCCP", "CIT", "WKHP"]
ACS_METHODS = "MAP {'STATE': 'top', 'SEX': 'top', 'RAC1P': 'top', 'MAR': 'top', 'OCCP': 'prefix', 'CIT': 'top'}"


def acs(_: int) -> Connection:
    con = duckanon.connect()
    con.execute(f"CREATE TABLE t AS FROM '{find_data('acs_pums_2024_workers.parquet')}'").fetchall()
    con.execute("ALTER TABLE t ALTER OCCP TYPE VARCHAR USING lpad(OCCP::VARCHAR, 4, '0')").fetchall()
    return con


def classes(cols: list[str]) -> str:
    return f"SELECT min(n) FROM (SELECT count(*) AS n FROM t GROUP BY {', '.join(cols)})"


def visits(rows: int) -> Connection:
    """Three visits a person, of which the ward may change."""
    con = duckanon.connect()
    con.execute(f"""
        CREATE TABLE t AS
        SELECT i // 3 AS patient, 18 + (hash(i // 3) % 70)::INTEGER AS age, (hash(i // 3, 1) % 2)::INTEGER AS sex,
               (hash(i // 3, 2) % 400)::INTEGER AS place, (hash(i, 3) % 12)::INTEGER AS ward, hash(i, 4) % 1000 AS cost
        FROM range({rows}) AS r(i)""").fetchall()
    return con


def visits_query(options: str) -> str:
    call = f"anon.generalize('t', ['age', 'sex', 'place', 'ward'], 10, {options})"
    return f"CREATE OR REPLACE TABLE o AS FROM {call}"


TASKS = [
    *(
        Task(
            f"generalize visits, {name}",
            [10**5, 10**6],
            visits,
            ask(visits_query(options)),
            ask(visits_query("methods := NULL")),
            "generalize, rows",
            1,
        )
        for name, options in (
            ("one column kept", "keep := ['cost']"),
            ("population", "population := 10_000_000"),
        )
    ),
    Task(f"apply a stored plan, {BUCKETS} buckets", SIZES, numbers, ask(APPLY_PLAN), ask(NTILE), "ntile"),
    Task(f"quantile_partition and apply, {BUCKETS} buckets", SIZES, numbers, ask(EXACT, APPLY), ask(NTILE), "ntile"),
    Task(f"sampled_partition and apply, {BUCKETS} buckets", SIZES, numbers, ask(SAMPLED, APPLY), ask(NTILE), "ntile"),
    *(
        Task(
            f"apply a stored plan, {buckets} buckets",
            [10**7],
            lambda rows, buckets=buckets: numbers(rows, 1, buckets),
            ask(APPLY_PLAN),
            ask(NTILE),
            f"ntile({BUCKETS})",
        )
        for buckets in (10, 100, 1000)
    ),
    *(
        Task(
            f"apply a stored plan, {columns} columns",
            [10**6],
            lambda rows, columns=columns: numbers(rows, columns),
            ask(APPLY_PLAN),
            ask(NTILE),
            "ntile of one",
        )
        for columns in (1, 2, 5, 10)
    ),
    *(
        Task(
            f"a stored plan, rendered, {columns} columns, {buckets} buckets",
            [10**5, 10**6],
            lambda rows, columns=columns, buckets=buckets: numbers(rows, columns, buckets),
            run_rendered,
            ask(APPLY_PLAN),
            "apply_plan",
        )
        for columns, buckets in ((1, 500), (5, 20))
    ),
    *(
        Task(
            f"optimal_partition, k = {k}",
            [10**5, 10**6],
            distinct_numbers,
            ask(f"SELECT sum(cost) FROM anon.optimal_partition('t', 'x', {k})"),
            sort_in_numpy,
            "numpy sort",
        )
        for k in (5, 50, 1000)
    ),
]

if find_data("adult.csv") and find_data("adult_hierarchies/adult_hierarchy_age.csv"):
    TASKS += [
        Task(
            f"generalize Adult, k = {k}, {name}",
            [30_162],
            adult,
            ask(adult_query(k, hierarchies)),
            ask(classes(list(ADULT))),
            "GROUP BY",
        )
        for k in (5, 10)
        for name, hierarchies in (("hierarchies", trees()), ("hierarchies, age in intervals", trees("age")))
    ]
if find_data("acs_pums_2024_workers.parquet"):
    call = f"anon.generalize('t', {ACS}, 10, methods := {ACS_METHODS})"
    TASKS.append(
        Task(
            "generalize ACS, 9 columns, k = 10",
            [1_366_293],
            acs,
            ask(f"CREATE OR REPLACE TABLE o AS FROM {call}"),
            ask(classes(ACS)),
            "GROUP BY",
            1,
        )
    )
