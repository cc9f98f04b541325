"""Releases of people with several rows, against the same release of rows."""

from __future__ import annotations

import duckanon
from tests.bench.bench_assess import Connection, ask
from tests.bench.harness import Task

COLS = ["age", "sex", "place", "ward"]


def visits(rows: int) -> Connection:
    """Three visits a person, of which the ward and the cost may change."""
    con = duckanon.connect()
    con.execute(f"""
        CREATE TABLE t AS
        SELECT i // 3 AS patient, 18 + (hash(i // 3) % 70)::INTEGER AS age, (hash(i // 3, 1) % 2)::INTEGER AS sex,
               (hash(i // 3, 2) % 400)::INTEGER AS place, (hash(i, 3) % 12)::INTEGER AS ward,
               (hash(i, 4) % 1000)::INTEGER AS cost
        FROM range({rows}) AS r(i)""").fetchall()
    return con


def released(call: str) -> str:
    return f"CREATE OR REPLACE TABLE o AS FROM anon.{call}"


CALLS = {
    "generalize": (f"generalize('t', {COLS}, 10, ", [10**4, 10**5, 10**6]),
    "recode": (f"recode('t', {COLS}, 10, ", [10**4, 10**5]),
    "boxes": ("boxes('t', ['age', 'cost'], 10, ", [10**4, 10**5]),
    "synthesize": (f"synthesize('t', {COLS}, ", [10**4, 3 * 10**4]),
}
TASKS = [
    *(
        Task(
            f"{name} visits, person",
            sizes,
            visits,
            ask(released(f"{call}person := 'patient')")),
            ask(released(f"{call}person := NULL)")),
            f"{name}, rows",
            1,
        )
        for name, (call, sizes) in CALLS.items()
    ),
]
