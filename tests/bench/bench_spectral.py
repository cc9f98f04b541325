"""Spectral releases: against the plain numpy that does the same arithmetic, and against each other."""

from __future__ import annotations

from collections.abc import Callable

import duckdb
import numpy as np
import pyarrow as pa

import duckanon
from duckanon import spectral
from tests.bench.harness import Task

Connection = duckdb.DuckDBPyConnection
PEOPLE = [f"x{place}" for place in range(8)]
COLS = [f"x{place}" for place in range(28)]


def columns(rows: int) -> dict[str, np.ndarray]:
    """28 correlated columns, some of them far from normal."""
    random = np.random.default_rng(1)
    common = random.normal(size=(4, rows))
    made = {}
    for place, name in enumerate(COLS):
        values = random.normal(size=rows) + common[place % 4]
        made[name] = np.abs(values) ** 1.5 if place % 5 == 0 else values
    return made


def arrow(rows: int) -> pa.Table:
    return pa.table(columns(rows))


def matrix(rows: int) -> np.ndarray:
    return np.stack(list(columns(rows).values()), axis=1)


def table(rows: int) -> Connection:
    con = duckanon.connect()
    con.register("source", columns(rows))
    con.execute("CREATE TABLE t AS FROM source").fetchall()
    con.unregister("source")
    return con


def people(rows: int) -> Connection:
    """Eight numbers of people of 900 districts, which differ in three of them."""
    random = np.random.default_rng(2)
    district = random.choice(900, rows, p=random.dirichlet(np.full(900, 4.0)))
    common = random.normal(size=(3, rows))
    made = {f"x{place}": random.normal(size=rows) + common[place % 3] for place in range(8)}
    for place, effect in enumerate(random.normal(size=(3, 900))):
        made[f"x{place}"] += effect[district]
    con = duckanon.connect()
    con.register("source", {**made, "number": district})
    con.execute("CREATE TABLE t AS SELECT * EXCLUDE number, 'd' || number AS district FROM source").fetchall()
    con.unregister("source")
    return con


def ask(query: str) -> Callable[[Connection], object]:
    return lambda con: con.execute(query).fetchall()


def stream(source: pa.Table | np.ndarray) -> None:
    for _ in spectral.svd_swap(source, k=1, special="off", categories=[], derived="off"):
        pass


def swapped(rows: np.ndarray) -> np.ndarray:
    """SVD swapping as anyone would write it: centre, eigenvectors of the Gram matrix, permute, multiply back."""
    random = np.random.default_rng()
    mean = rows.mean(axis=0)
    centred = rows - mean
    _, directions = np.linalg.eigh(centred.T @ centred)
    scores = centred @ directions
    for component in scores.T:
        component[:] = component[random.permutation(len(component))]
    return scores @ directions.T + mean


def bare(source: pa.Table) -> None:
    swapped(np.stack([column.to_numpy() for column in source.columns], axis=1))


def fetch_swap_and_write(con: Connection) -> None:
    fetched = con.execute("FROM t").fetchnumpy()
    released = swapped(np.stack(list(fetched.values()), axis=1))
    con.register("released", dict(zip(fetched, released.T, strict=True)))
    con.execute("CREATE OR REPLACE TABLE o AS FROM released").fetchall()


def release(call: str) -> Callable[[Connection], object]:
    return ask(f"CREATE OR REPLACE TABLE o AS FROM anon.{call}")


THESIS = "k := 1, special := 'off', categories := [], derived := 'off'"
"""The settings with which swaps are those of the thesis, which look at columns as numbers and nothing else."""
SWAP = f"svd_swap('t', {COLS}, {THESIS})"
TASKS = [
    Task(
        "svd_swap from Arrow to Arrow, 28 doubles",
        [10**5, 10**6, 10**7],
        arrow,
        stream,
        bare,
        "bare numpy in memory",
        2,
    ),
    Task(
        "svd_swap, 28 doubles",
        [10**5, 10**6],
        table,
        release(SWAP),
        fetch_swap_and_write,
        "fetch, bare numpy, write back",
        2,
    ),
    Task(
        "pica with pca, 28 doubles, clusters of 350",
        [10**5, 10**6],
        table,
        release(f"pica('t', {COLS}, cluster_size := 350, basis := 'pca', checks := 'repair', {THESIS})"),
        release(SWAP),
        "svd_swap",
        2,
    ),
    Task(
        "pica with ica, 28 doubles, clusters of 350",
        [10**5, 10**6],
        table,
        release(f"pica('t', {COLS}, cluster_size := 350, checks := 'off', {THESIS})"),
        release(SWAP),
        "svd_swap",
        1,
    ),
    Task(
        "svd_swap that knows columns of people, 28 doubles",
        [10**5, 10**6],
        table,
        release(f"svd_swap('t', {COLS})"),
        release(SWAP),
        "svd_swap as in the thesis",
        1,
    ),
    Task(
        "spectral_release, 28 doubles, clusters of 350",
        [10**4, 10**5],
        table,
        release(f"spectral_release('t', {COLS}, cluster_size := 350)"),
        release(SWAP),
        "svd_swap as in the thesis",
        1,
    ),
    Task(
        "spectral_release, 28 doubles, with the search",
        [10**4, 10**5],
        table,
        release(f"spectral_release('t', {COLS})"),
        release(SWAP),
        "svd_swap as in the thesis",
        1,
    ),
    Task(
        "synthesize, 28 doubles",
        [10**4, 10**5],
        table,
        release(f"synthesize('t', {COLS})"),
        release(f"spectral_release('t', {COLS}, cluster_size := 350)"),
        "spectral_release, clusters of 350",
        1,
    ),
    *(
        Task(
            f"{called}, 8 doubles and 900 districts",
            [10**4, 10**5],
            people,
            release(f"{called}('t', {[*PEOPLE, 'district']}{options})"),
            release(f"{called}('t', {PEOPLE}{options})"),
            "without the districts",
            1,
        )
        for called, options in (
            ("spectral_release", ", cluster_size := 350"),
            ("synthesize", ""),
            ("svd_swap", ""),
            ("pica", ", cluster_size := 350, basis := 'pca', checks := 'repair'"),
        )
    ),
    Task(
        "spectral_rhs, 28 doubles, k = 5",
        [10**5, 10**6],
        table,
        release(f"spectral_rhs('t', {COLS}, 5)"),
        release(SWAP),
        "svd_swap",
        1,
    ),
    Task(
        "copula_synthesize, 28 doubles",
        [10**5, 10**6],
        table,
        release(f"copula_synthesize('t', {COLS})"),
        release(SWAP),
        "svd_swap",
        1,
    ),
]
