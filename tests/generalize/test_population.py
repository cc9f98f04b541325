"""The population promise, measured: ACS as the population, random tenths of it as the tables."""

from __future__ import annotations

from typing import Any

import duckdb
import numpy as np
import pytest

from tests.conftest import data_file

Connection = duckdb.DuckDBPyConnection

BETAS = [0.1, 0.01, 0.001]
SETS = {
    "few": ["AGEP", "SEX", "RAC1P", "SCHL"],
    "many": ["STATE", "AGEP", "SEX", "RAC1P", "MAR", "SCHL", "CIT"],
    "rare": ["PUMA", "AGEP", "OCCP", "SEX"],
}
PEOPLE, K, SAMPLES = 60_000, 10, 8


def shares(con: Connection, cols: list[str], beta: float, samples: int, **options: Any) -> list[float]:
    """The share of the released people with fewer than k equals in the population, for each of several samples."""
    values = "".join(f", {name} := {value}" for name, value in options.items())
    result = []
    for seed in range(samples):
        # Equal people have equal labels: each combination is looked up once, for the sample and for the population.
        con.execute(f"""
            CREATE OR REPLACE TABLE combinations AS
            SELECT {", ".join(cols)}, count(*) AS population, count(*) FILTER (hash(number, {seed}) % 10 = 0) AS sampled
            FROM everybody GROUP BY ALL""").fetchall()
        con.execute(f"""
            CREATE OR REPLACE TABLE tenth AS
            SELECT {", ".join(cols)} FROM everybody WHERE hash(number, {seed}) % 10 = 0""").fetchall()
        people = con.execute("SELECT count(*) FROM tenth").fetchone()
        assert people is not None
        call = f"anon.plan('tenth', {cols}, {K}, beta := {beta}{values})"
        con.execute(f"CREATE OR REPLACE TABLE plan AS FROM {call}").fetchall()
        share = con.execute(f"""
            SELECT sum(size) FILTER (equals < {K}) / sum(size)
            FROM (SELECT sum(sampled) AS size, sum(population) AS equals
                  FROM anon.apply_plan('combinations', 'plan', keep := ['sampled', 'population'])
                  GROUP BY {", ".join(cols)})
            WHERE size >= anon.sample_class_size({K}, {beta} * 0.99, {PEOPLE}, {people[0]})""").fetchone()
        result.append(share[0] or 0.0 if share else 0.0)
    return result


@pytest.fixture(scope="module")
def everybody(shared: Connection) -> Connection:
    shared.execute(f"""
        CREATE TABLE everybody AS
        SELECT *, row_number() OVER () AS number
        FROM (FROM '{data_file("acs_pums_2024_workers.parquet")}' USING SAMPLE {PEOPLE} ROWS (reservoir, 7))
        """).fetchall()
    return shared


@pytest.mark.thorough
@pytest.mark.usefixtures("short_search")
@pytest.mark.parametrize(("cols", "beta"), [(SETS[n], b) for n in SETS for b in BETAS])
def test_the_share_of_people_with_fewer_than_k_equals(everybody: Connection, cols: list[str], beta: float) -> None:
    result = shares(everybody, cols, beta, SAMPLES, population=PEOPLE)
    # three standard errors of the mean of the samples, and one person in ten thousand where none was seen
    assert np.mean(result) <= beta + 3 * np.std(result) / np.sqrt(SAMPLES) + 1e-4


def test_the_rule_is_exact_for_the_worst_classes(con: Connection) -> None:
    """Where every class of the population has k - 1 people, the share is what the binomial distribution says."""
    con.execute("CREATE TABLE everybody AS SELECT i AS number, (i // 9)::INTEGER AS family FROM range(90_000) AS r(i)")
    people, kept, bad = 0, 0, 0
    least = con.execute("SELECT anon.sample_class_size(10, 0.1, 90_000, 9_000)").fetchone()
    assert least is not None
    for seed in range(20):
        rows = con.execute(f"""
            SELECT count(*) AS size FROM everybody WHERE hash(number, {seed}) % 10 = 0 GROUP BY family""").fetchall()
        sizes = np.array([size for (size,) in rows])
        people += sizes.sum()
        kept += sizes[sizes >= least[0]].sum()
        bad = kept  # all of them have fewer than ten equals
    # of all who were drawn, at most the share beta are in classes that the rule lets pass
    assert bad / people <= 0.1
    assert kept > 0


@pytest.mark.thorough
@pytest.mark.parametrize("beta", BETAS)
def test_two_people_fewer_would_not_do(con: Connection, beta: float) -> None:
    """All of ACS as the population, and its classes as they are: the rule holds, a laxer one would not."""
    con.execute(f"""
        CREATE TABLE everybody AS
        SELECT STATE, AGEP, OCCP, row_number() OVER () AS number
        FROM '{data_file("acs_pums_2024_workers.parquet")}'""").fetchall()
    ((least, people),) = con.execute(f"""
        SELECT anon.sample_class_size({K}, {beta}, count(*), count(*) // 10), count(*) FROM everybody""").fetchall()
    kept = {least: 0, least - 2: 0}
    for seed in range(2):
        for size in kept:
            ((share,),) = con.execute(f"""
                SELECT coalesce(sum(own) FILTER (people < {K} AND own >= {size}), 0) / sum(own)
                FROM (SELECT count(*) AS people, count(*) FILTER (hash(number, {seed}) % 10 = 0) AS own
                      FROM everybody GROUP BY STATE, AGEP, OCCP)""").fetchall()
            kept[size] += share / 2
    assert people > 1_000_000
    assert kept[least] <= beta
    assert kept[least - 2] > beta
