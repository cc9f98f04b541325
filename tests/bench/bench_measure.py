"""Measures: against scikit-learn's neighbours and kernel approximation, and the plain numpy behind the statistics."""

from __future__ import annotations

from collections.abc import Callable

import duckdb
import numpy as np
from sklearn.decomposition import PCA
from sklearn.kernel_approximation import Nystroem
from sklearn.neighbors import NearestNeighbors

import duckanon
from tests.bench.bench_spectral import COLS, columns
from tests.bench.harness import Task

Connection = duckdb.DuckDBPyConnection
ORIGINALS = 2_000


def tables(rows: int, originals: int | None = ORIGINALS) -> Connection:
    con = duckanon.connect()
    con.register("source", columns(2 * rows if originals is None else rows + originals))
    size = rows if originals is None else originals
    con.execute(f"CREATE TABLE original AS FROM source LIMIT {size}").fetchall()
    con.execute(f"CREATE TABLE released AS FROM source OFFSET {size}").fetchall()
    return con


def equal_tables(rows: int) -> Connection:
    return tables(rows, None)


def ask(query: str) -> Callable[[Connection], object]:
    return lambda con: con.execute(query).fetchall()


def fetched(con: Connection) -> list[np.ndarray]:
    return [
        np.stack(list(con.execute(f"FROM {name}").fetchnumpy().values()), axis=1).astype(np.float32)
        for name in ("original", "released")
    ]


def brute_force_neighbours(con: Connection) -> None:
    original, released = fetched(con)
    NearestNeighbors(n_neighbors=5, algorithm="brute").fit(released).kneighbors(original)


def nystroem(con: Connection) -> None:
    original, released = fetched(con)
    kernel = Nystroem("poly", degree=4, gamma=1 / 28, coef0=1, n_components=500, random_state=0)
    components = PCA(20, svd_solver="covariance_eigh" if len(original) > 5_000 else "auto")
    components.fit(kernel.fit(original).transform(original))
    components.transform(kernel.transform(released))


def moments_and_ranks(con: Connection) -> None:
    for rows in fetched(con):
        np.corrcoef(rows.T)
        np.corrcoef(np.stack([np.argsort(np.argsort(column)) for column in rows.T]))


def twelve_months(people: int) -> Connection:
    """Twelve releases of 50 classes, of which a fiftieth of the people change each month."""
    con = duckanon.connect()
    for month in range(12):
        con.execute(
            f"CREATE TABLE month_{month} AS SELECT i AS id, hash(i, CASE WHEN i % 50 <= {month} THEN {month} END) % 50 "
            f"AS class, hash(i, 'value') % 20 AS value FROM range({people}) AS t(i) WHERE i % 50 != {month}"
        ).fetchall()
    return con


MONTHS = [f"month_{month}" for month in range(12)]


def lists_of_classes(con: Connection) -> None:
    """Group people by their twelve classes, and nothing else."""
    rows = " UNION ALL ".join(f"SELECT id, {place} AS month, class FROM {name}" for place, name in enumerate(MONTHS))
    con.execute(
        f"SELECT min(n) FROM (SELECT count(*) AS n FROM (SELECT list(class ORDER BY month) AS seen, "
        f"list(month ORDER BY month) AS months FROM ({rows}) GROUP BY id) GROUP BY ALL)"
    ).fetchall()


TASKS = [
    Task(
        "joint_releases, 12 months",
        [10**5, 10**6],
        twelve_months,
        ask(f"FROM anon.joint_releases({MONTHS}, ['class'], 'id', sensitive := 'value')"),
        lists_of_classes,
        "GROUP BY the list of classes",
        1,
    ),
    Task(
        "prediction_risk, 2,000 originals, 28 columns",
        [10**4, 10**5, 10**6],
        tables,
        ask(f"SELECT avg(distance) FROM anon.prediction_risk('original', 'released', {COLS}, log := [])"),
        brute_force_neighbours,
        "fetch, scikit-learn's brute force",
        2,
    ),
    Task(
        "privacy_test, 2,000 originals, 28 columns",
        [10**4, 10**5, 10**6],
        tables,
        ask(f"FROM anon.privacy_test('original', 'released', {COLS}, log := [])"),
        brute_force_neighbours,
        "fetch, scikit-learn's brute force",
        2,
    ),
    Task(
        "kernel_utility, 28 columns",
        [10**4, 10**5],
        equal_tables,
        ask(f"FROM anon.kernel_utility('original', 'released', {COLS}, log := [])"),
        nystroem,
        "fetch, Nystroem(500) and PCA",
        1,
    ),
    Task(
        "contradictions, 28 columns",
        [10**4, 10**5],
        equal_tables,
        ask(f"FROM anon.contradictions('original', 'released', {COLS})"),
        moments_and_ranks,
        "fetch, corrcoef and ranks",
        1,
    ),
    Task(
        "utility, 28 columns",
        [10**5, 10**6],
        equal_tables,
        ask(f"FROM anon.utility('original', 'released', {COLS})"),
        moments_and_ranks,
        "fetch, corrcoef and ranks",
        1,
    ),
]
