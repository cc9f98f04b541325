"""The measures of risk against the GROUP BY and join that one would write by hand."""

from __future__ import annotations

from tests.bench.bench_assess import Connection, ask, load
from tests.bench.harness import Task
from tests.sqltest import find_data

ACS = ["STATE", "AGEP", "SEX", "RAC1P", "MAR", "SCHL", "CIT", "OCCP"]


def with_nulls(rows: int) -> Connection:
    """ACS with one percent of the values of each column gone."""
    con = load("acs_pums_2024_workers.parquet")(rows)
    holes = ", ".join(
        f"CASE WHEN hash(rowid * 31 + {place} * 7919) % 100 > 0 THEN {name} END AS {name}"
        for place, name in enumerate(ACS)
    )
    con.execute(f"CREATE TABLE holes AS SELECT {holes} FROM t").fetchall()
    return con


def by_hand(table: str) -> str:
    same = " AND ".join(f"t.{name} IS NOT DISTINCT FROM g.{name}" for name in ACS)
    classes = f"(SELECT {', '.join(ACS)}, count(*) AS n FROM {table} GROUP BY ALL)"
    figures = "n, n * 20.0 AS people, 1 / n AS risk"
    return f"CREATE TABLE o AS SELECT t.*, {figures} FROM {table} AS t JOIN {classes} AS g ON {same}"


TASKS = []
if find_data("acs_pums_2024_workers.parquet"):
    acs, rows = load("acs_pums_2024_workers.parquet"), 1_366_293
    TASKS += [
        Task(
            "individual_risk, ACS, 8 columns",
            [rows],
            acs,
            ask(f"CREATE TABLE o AS FROM anon.individual_risk('t', {ACS}, population := 3e7)"),
            ask(by_hand("t")),
            "GROUP BY and join",
        ),
        Task(
            "individual_risk, NULLs match, ACS, 8 columns",
            [rows],
            with_nulls,
            ask(f"CREATE TABLE o AS FROM anon.individual_risk('holes', {ACS}, population := 3e7, nulls := 'any')"),
            ask(by_hand("holes")),
            "GROUP BY and join",
            1,
        ),
        Task(
            "global_risk, ACS, 8 columns",
            [rows],
            acs,
            ask(f"FROM anon.global_risk('t', {ACS}, population := 3e7)"),
            ask(by_hand("t")),
            "GROUP BY and join",
        ),
    ]
