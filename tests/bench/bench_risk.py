"""The measures of risk against the GROUP BY and join that one would write by hand."""

from __future__ import annotations

import duckanon
from tests.bench.bench_assess import Connection, ask, group_by_each_set, load
from tests.bench.harness import Task
from tests.sqltest import find_data

ACS = ["STATE", "AGEP", "SEX", "RAC1P", "MAR", "SCHL", "CIT", "OCCP"]
NUMBERS = ["AGEP", "WKHP", "PINCP", "WAGP"]


def with_nulls(rows: int) -> Connection:
    """ACS with one percent of the values of each column gone."""
    con = load("acs_pums_2024_workers.parquet")(rows)
    holes = ", ".join(
        f"CASE WHEN hash(rowid * 31 + {place} * 7919) % 100 > 0 THEN {name} END AS {name}"
        for place, name in enumerate(ACS)
    )
    con.execute(f"CREATE TABLE holes AS SELECT {holes} FROM t").fetchall()
    return con


def with_sample(rows: int) -> Connection:
    """ACS, and a twentieth of it."""
    con = load("acs_pums_2024_workers.parquet")(rows)
    con.execute("CREATE TABLE sample AS FROM t WHERE hash(rowid) % 20 = 0").fetchall()
    return con


def with_noise(rows: int) -> Connection:
    """ACS, and the same rows with other numbers."""
    con = load("acs_pums_2024_workers.parquet")(rows)
    changed = ", ".join(f"{name} + sin(rowid + {place}) AS {name}" for place, name in enumerate(NUMBERS))
    con.execute(f"CREATE TABLE noisy AS SELECT {changed} FROM t").fetchall()
    return con


def both_counted() -> str:
    keys = ", ".join(ACS)
    counted = [f"(SELECT {keys}, count(*) AS {name}_size FROM {name} GROUP BY ALL)" for name in ("sample", "t")]
    return f"SELECT min(t_size), max(sample_size / t_size) FROM {counted[0]} JOIN {counted[1]} USING ({keys})"


def by_hand(table: str) -> str:
    same = " AND ".join(f"t.{name} IS NOT DISTINCT FROM g.{name}" for name in ACS)
    classes = f"(SELECT {', '.join(ACS)}, count(*) AS n FROM {table} GROUP BY ALL)"
    figures = "n, n * 20.0 AS people, 1 / n AS risk"
    return f"CREATE OR REPLACE TABLE o AS SELECT t.*, {figures} FROM {table} AS t JOIN {classes} AS g ON {same}"


def drawn(rows: int) -> Connection:
    """Eight columns with as many values as those of the survey, small ones more often than large ones."""
    con = duckanon.connect()
    widths = (49, 81, 2, 9, 5, 24, 5, 529)
    columns = ", ".join(
        f"least(hash(i * 17 + {place}) % {width}, hash(i * 19 - {place}) % {width}) AS {name}"
        for place, (name, width) in enumerate(zip(ACS, widths, strict=True))
    )
    con.execute(f"CREATE TABLE t AS SELECT {columns} FROM range({rows}) AS r(i)").fetchall()
    return con


def first_rows(rows: int) -> Connection:
    con = load("acs_pums_2024_workers.parquet")(rows)
    con.execute(f"CREATE OR REPLACE TABLE t AS FROM t LIMIT {rows}").fetchall()
    return con


special = ask(f"CREATE OR REPLACE TABLE o AS FROM anon.special_uniques('t', {ACS})")
every_set = group_by_each_set(ACS, len(ACS))
TASKS = [
    Task("special_uniques, 8 columns", [10_000, 100_000], drawn, special, every_set, "GROUP BY each set", 1),
    Task(
        "risk_summary, 8 columns",
        [100_000, 1_000_000],
        drawn,
        ask(f"FROM anon.risk_summary('t', {ACS}, population := 3e7)"),
        ask(by_hand("t")),
        "GROUP BY and join",
        1,
    ),
]
if find_data("acs_pums_2024_workers.parquet"):
    acs, rows = load("acs_pums_2024_workers.parquet"), 1_366_293
    TASKS += [
        Task(
            "individual_risk, ACS, 8 columns",
            [rows],
            acs,
            ask(f"CREATE OR REPLACE TABLE o AS FROM anon.individual_risk('t', {ACS}, population := 3e7)"),
            ask(by_hand("t")),
            "GROUP BY and join",
        ),
        Task(
            "individual_risk, NULLs match, ACS, 8 columns",
            [rows],
            with_nulls,
            ask(
                "CREATE OR REPLACE TABLE o AS "
                f"FROM anon.individual_risk('holes', {ACS}, population := 3e7, nulls := 'any')"
            ),
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
        Task(
            "special_uniques, ACS, 8 columns", [50_000, 200_000], first_rows, special, every_set, "GROUP BY each set", 1
        ),
        Task(
            "population_uniques, ACS, 8 columns",
            [rows],
            acs,
            ask(f"FROM anon.population_uniques('t', {ACS}, 3e7)"),
            ask(f"SELECT n, count(*) FROM (SELECT count(*) AS n FROM t GROUP BY {', '.join(ACS)}) GROUP BY n"),
            "GROUP BY, twice",
        ),
        Task(
            "k_map, a twentieth of ACS, 8 columns",
            [rows],
            with_sample,
            ask(f"FROM anon.k_map('sample', {ACS}, 't')"),
            ask(both_counted()),
            "GROUP BY both and join",
        ),
        Task(
            "delta_presence, a twentieth of ACS, 8 columns",
            [rows],
            with_sample,
            ask(f"FROM anon.delta_presence('sample', {ACS}, 't')"),
            ask(both_counted()),
            "GROUP BY both and join",
        ),
        Task(
            "sensitive_risk, ACS, 6 columns",
            [rows],
            acs,
            ask(f"FROM anon.sensitive_risk('t', {ACS[:6]}, 'OCCP')"),
            ask(f"SELECT max(n) FROM (SELECT {', '.join(ACS[:6])}, OCCP, count(*) AS n FROM t GROUP BY ALL)"),
            "GROUP BY",
        ),
        Task(
            "interval_disclosure, ACS, 4 columns",
            [rows],
            with_noise,
            ask(f"FROM anon.interval_disclosure('t', 'noisy', {NUMBERS})"),
            ask(
                "SELECT count(*) FROM t POSITIONAL JOIN noisy WHERE "
                + " AND ".join(f"abs(t.{name} - noisy.{name}) <= 1" for name in NUMBERS)
            ),
            "POSITIONAL JOIN",
        ),
    ]
