"""Linked events and people with several rows, against the GROUP BY of events and the same release of rows."""

from __future__ import annotations

import duckanon
from tests.bench.bench_assess import Connection, ask
from tests.bench.harness import Task

COLS = ["age", "sex", "place", "ward"]


def events(rows: int) -> Connection:
    """Three visits a person, each to one of eight wards in one of twelve months."""
    con = duckanon.connect()
    con.execute(f"""
        CREATE TABLE t AS SELECT i // 3 AS patient, 'ward ' || hash(i) % 8 AS ward,
               DATE '2025-01-15' + to_months((hash(i, 1) % 12)::INTEGER) AS day
        FROM range({rows}) AS r(i)""").fetchall()
    return con


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


PAIRS = """SELECT min(n) FROM (SELECT count(DISTINCT a.patient) AS n FROM t AS a JOIN t AS b USING (patient)
                               WHERE (a.ward, a.day) < (b.ward, b.day) GROUP BY a.ward, a.day, b.ward, b.day)"""
CALLS = {
    "generalize": (f"generalize('t', {COLS}, 10, ", [10**4, 10**5, 10**6]),
    "recode": (f"recode('t', {COLS}, 10, ", [10**4, 10**5]),
    "boxes": ("boxes('t', ['age', 'cost'], 10, ", [10**4, 10**5]),
    "synthesize": (f"synthesize('t', {COLS}, ", [10**4, 3 * 10**4]),
}
TASKS = [
    Task(
        "known_events, 3 visits a person",
        [10**5, 10**6],
        events,
        ask("FROM anon.known_events(['t'], 'patient', ['ward', 'day'], known := 2)"),
        ask(PAIRS),
        "GROUP BY pairs",
    ),
    Task(
        "release_linked, 3 visits a person, k = 5",
        [10**5],
        events,
        ask(released("release_linked(['t'], 'patient', ['ward', 'day'], 5, seed := 1)")),
        ask(PAIRS),
        "GROUP BY pairs",
        1,
    ),
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
