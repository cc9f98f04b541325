"""The assessments against the plain SQL that does the least."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import duckdb

import duckanon
from tests.bench.bench_bridge import MIXED, columns_of, mixed
from tests.bench.harness import Task
from tests.sqltest import find_data

ADULT = ["age", "workclass", "education", "marital_status", "occupation"]
ADULT += ["relationship", "race", "sex", "hours_per_week", "native_country"]
ACS = ["STATE", "PUMA", "AGEP", "SEX", "RAC1P", "MAR", "SCHL", "OCCP", "CIT", "WKHP"]
Connection = duckdb.DuckDBPyConnection


def load(file: str) -> Callable[[int], Connection]:
    def prepare(_: int) -> Connection:
        con = duckanon.connect()
        con.execute(f"CREATE TABLE t AS FROM '{find_data(file)}'").fetchall()
        return con

    return prepare


def streamed(rows: int) -> Connection:
    """Ten columns that are computed while they are read: nothing is stored that would hide what the search needs."""
    con = duckanon.connect()
    widths = (2, 7, 40, 90, 365, 1_000, 5_000, 20_000, 100_000, 1_000_000)
    columns = ", ".join(f"(i * {2654435761 + 2 * place}) % {width} AS x{place}" for place, width in enumerate(widths))
    con.execute(f"CREATE VIEW t AS SELECT {columns} FROM range({rows}) AS r(i)").fetchall()
    return con


def ask(query: str) -> Callable[[Connection], object]:
    return lambda con: con.execute(query).fetchall()


def classes(cols: list[str]) -> str:
    return f"(SELECT {', '.join(cols)}, count(*) AS n FROM t GROUP BY {', '.join(cols)})"


def cells(cols: list[str], sensitive: str) -> str:
    return f"(SELECT {', '.join(cols)}, {sensitive}, count(*) AS n FROM t GROUP BY ALL)"


def group_by_each_column(con: Connection) -> None:
    for name in columns_of(con):
        grouped = f"(SELECT {name}, count(*) AS n FROM t GROUP BY {name})"
        con.execute(f"SELECT sum(n), count(*), max(n) FROM {grouped}").fetchall()


def group_by_each_set(cols: list[str], largest: int) -> Callable[[Connection], None]:
    def run(con: Connection) -> None:
        for size in range(1, largest + 1):
            for members in itertools.combinations(cols, size):
                grouped = classes(list(members))
                con.execute(f"SELECT count(*), count(*) FILTER (n = 1), min(n) FROM {grouped}").fetchall()

    return run


def risks(cols: list[str], population: float, threshold: float = 0.2) -> str:
    """What anon.reidentification_risk returns for a sample of a population, written by hand and without a check."""
    return f"""
        WITH sizes AS (SELECT n AS size, sum(n)::BIGINT AS people FROM {classes(cols)} GROUP BY n),
        risks AS (
            SELECT people, 1 / size AS prosecutor,
                   CASE WHEN p < 0.5 AND size < 6
                        THEN pow(p / (p - 1), size - 1) * p / (1 - p) * -ln(p)
                             - coalesce(list_sum(list_transform(range(1, size), lambda step:
                                   pow(p / (p - 1), size - step) / step)), 0)
                        ELSE p / size * list_sum(list_transform(
                            range(least(400, greatest(24, (2400 / size)::BIGINT))), lambda unseen:
                                pow(1 - p, unseen) * exp(lgamma(unseen + 1) + lgamma(size + 1)
                                                         - lgamma(size + unseen + 1)))) END AS journalist
            FROM (SELECT people, size, sum(people) OVER () / {population} AS p FROM sizes)),
        totals AS (
            SELECT sum(people) AS everybody, max(prosecutor) AS highest, max(journalist) AS highest_expected,
                   sum(prosecutor * people) AS risk, sum(journalist * people) AS expected,
                   coalesce(sum(people) FILTER (prosecutor > {threshold}), 0)::BIGINT AS at_risk,
                   coalesce(sum(people) FILTER (journalist > {threshold}), 0)::BIGINT AS expected_at_risk
            FROM risks)
        SELECT unnest(['prosecutor', 'journalist', 'marketer']) AS attacker,
               unnest([highest, highest_expected, NULL]) AS maximum_risk,
               unnest([risk, expected, expected]) / everybody AS average_risk,
               unnest([at_risk, expected_at_risk, NULL]) AS rows_at_risk,
               unnest([at_risk, expected_at_risk, NULL]) / everybody AS fraction_at_risk,
               unnest([at_risk, expected_at_risk, NULL]) AS people_at_risk
        FROM totals"""


def checks(name: str, rows: int, prepare: Callable[[int], Connection], cols: list[str], sensitive: str) -> list[Task]:
    """The checks of one column set, each against the least that has to be computed for it, written by hand."""
    by_hand = f"SELECT min(n), count(*), count(*) FILTER (n = 1) FROM {classes(cols)}"
    both = f"""SELECT min(l), min(e), max(c[1] / list_sum(c[2:]))
               FROM (SELECT count(*) AS l, ln(sum(n)) - sum(n * ln(n)) / sum(n) AS e, list(n ORDER BY n DESC) AS c
                     FROM {cells(cols, sensitive)} GROUP BY {", ".join(cols)})"""
    return [
        Task(
            f"k_anonymity, {name}",
            [rows],
            prepare,
            ask(f"FROM anon.k_anonymity('t', {cols})"),
            ask(by_hand),
            "GROUP BY",
        ),
        Task(
            f"reidentification_risk, {name}",
            [rows],
            prepare,
            ask(f"FROM anon.reidentification_risk('t', {cols}, population := 3e8)"),
            ask(by_hand),
            "GROUP BY",
        ),
        Task(
            f"reidentification_risk of a sample, {name}",
            [rows],
            prepare,
            ask(f"FROM anon.reidentification_risk('t', {cols}, population := 3e8)"),
            ask(risks(cols, 3e8)),
            "the same numbers by hand",
        ),
        Task(
            f"class_sizes, {name}",
            [rows],
            prepare,
            ask(f"FROM anon.class_sizes('t', {cols})"),
            ask(f"SELECT n, count(*) FROM {classes(cols)} GROUP BY n ORDER BY n"),
            "GROUP BY",
        ),
        Task(
            f"l_diversity, {name}",
            [rows],
            prepare,
            ask(f"FROM anon.l_diversity('t', {cols}, '{sensitive}')"),
            ask(both),
            "two GROUP BYs",
        ),
    ]


def visits(rows: int) -> Connection:
    """Five visits a person, of which each is to another place and has one of twenty diagnoses."""
    con = duckanon.connect()
    con.execute(f"""
        CREATE TABLE t AS SELECT (hash(i // 5) % 2)::VARCHAR AS sex, (hash(i // 5 + 7) % 80)::INTEGER AS age,
               (10000 + hash(i + 9) % 500)::VARCHAR AS zip, 'P' || lpad((i // 5)::VARCHAR, 8, '0') AS patient,
               'D' || (hash(i + 11) % 20)::VARCHAR AS diagnosis, (hash(i + 12) % 20)::INTEGER AS cost
        FROM range({rows}) AS r(i)""").fetchall()
    return con


def count_people(cols: list[str]) -> str:
    grouped = f"SELECT {', '.join(cols)}, count(DISTINCT patient) AS n FROM t GROUP BY ALL"
    return f"SELECT min(n), count(*) FROM ({grouped})"


def people_checks() -> list[Task]:
    """The checks that count different people, against the plain count(DISTINCT)."""
    cols = ["sex", "age", "zip"]
    return [
        *(
            Task(
                f"{name}, person",
                (10**6, 10**7),
                visits,
                ask(f"FROM anon.{name}('t', {cols}, person := 'patient')"),
                ask(count_people(cols)),
                "count(DISTINCT)",
            )
            for name in ("k_anonymity", "class_sizes", "reidentification_risk", "quasi_identifier")
        ),
        *(
            Task(
                f"{name} of {sensitive}, {len(chosen)} columns, person",
                (10**5, 10**6),
                visits,
                ask(f"FROM anon.{name}('t', {chosen}, '{sensitive}', person := 'patient')"),
                ask(count_people([*chosen, sensitive])),
                "count(DISTINCT)",
            )
            for name, sensitive in (
                ("l_diversity", "diagnosis"),
                ("t_closeness", "diagnosis"),
                ("t_closeness", "cost"),
            )
            for chosen in (cols[:2], cols)
        ),
    ]


def coded_survey(rows: int) -> Connection:
    """Thirty columns with names that say nothing: households, categories, numbers, texts."""
    con = duckanon.connect()
    widths = (2, 5, 9, 40, 90, 300, 5000)
    columns = [f"hash(i * {place}) % {widths[place % 7]} AS v{place}" for place in range(1, 20)]
    columns += [f"'c' || hash(i + {place}) % {3**place} AS t{place}" for place in range(1, 9)]
    columns += ["i * 7 AS k1", "i // 3 * 11 AS k2", "(hash(i) % 1000000) / 100 AS x"]
    con.execute(f"CREATE TABLE t AS SELECT {', '.join(columns)} FROM range({rows}) AS r(i)").fetchall()
    return con


TASKS = [
    *people_checks(),
    Task(
        "assess, 30 columns",
        (15_000, 10**5, 10**6),
        coded_survey,
        ask("FROM anon.assess('t')"),
        group_by_each_column,
        "a GROUP BY a column",
        1,
    ),
    Task(
        f"column_profile, {len(MIXED)} columns",
        (10**5, 10**6, 10**7),
        mixed,
        ask("FROM anon.column_profile('t')"),
        group_by_each_column,
        "a GROUP BY a column",
    ),
    Task(
        "quasi_identifiers, approximate, up to 3 of 10",
        (10**5, 10**6, 10**7),
        streamed,
        ask("FROM anon.quasi_identifiers('t', approximate := true)"),
        ask("FROM anon.quasi_identifiers('t')"),
        "the exact search",
        1,
    ),
]
if find_data("adult.csv"):
    TASKS += checks("Adult", 32_561, load("adult.csv"), ["age", "education", "sex", "race"], "occupation")
    TASKS += [
        Task(
            "quasi_identifiers, all 1,023 sets, Adult",
            [32_561],
            load("adult.csv"),
            ask(f"FROM anon.quasi_identifiers('t', {ADULT}, max_size := 10)"),
            group_by_each_set(ADULT, 10),
            "a GROUP BY a set",
        )
    ]
if find_data("acs_pums_2024_workers.parquet"):
    acs = load("acs_pums_2024_workers.parquet")
    TASKS += checks("ACS", 1_366_293, acs, ["STATE", "AGEP", "SEX", "RAC1P", "MAR"], "SCHL")
    TASKS += [
        Task(
            "quasi_identifiers, up to 3 of 10, ACS",
            [1_366_293],
            acs,
            ask(f"FROM anon.quasi_identifiers('t', {ACS})"),
            group_by_each_set(ACS, 3),
            "a GROUP BY a set",
        )
    ]
