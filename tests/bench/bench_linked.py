"""Linked tables of events: the check against a plain count of pairs of rows, the release against the check.

Rows are people here, of a generated hospital with 6.4 events each in three tables.
"""

from __future__ import annotations

from functools import partial

import duckanon
from duckanon._bridge.sql import Connection
from tests import hospital
from tests.bench.harness import Task

QUARTERS = [f"{table}_by_quarter" for table in hospital.TABLES]


def prepared(people: int) -> Connection:
    """Make a hospital, and its tables with quarters in place of days for the check."""
    con = duckanon.connect()
    hospital.fill(con, people)
    for table, by_quarter in zip(hospital.TABLES, QUARTERS, strict=True):
        con.execute(f"CREATE TABLE {by_quarter} AS SELECT * REPLACE (quarter(day) AS day) FROM {table}").fetchall()
    return con


def checked(con: Connection, known: int) -> None:
    con.execute(
        f"FROM anon.known_events({QUARTERS}, 'patient', {hospital.COLS}, known := {known}, class := ['sex', 'age'], "
        "people := 'patients', k := 10)"
    ).fetchall()


def pairs(con: Connection) -> None:
    """Count the people of every pair of labels of one person, which is the least that a check of two has to do."""
    union = " UNION ALL BY NAME ".join(f"SELECT '{table}' AS part, * FROM {table}" for table in QUARTERS)
    con.execute(
        f"""WITH e AS (SELECT patient, sex, age, row(part, day, ward, code, test, value) AS label,
                              row_number() OVER () AS n FROM ({union}) JOIN patients USING (patient))
            SELECT min(c) FROM (SELECT count(DISTINCT a.patient) AS c FROM e AS a JOIN e AS b
                                ON a.patient = b.patient AND a.n < b.n GROUP BY a.sex, a.age, a.label, b.label)"""
    ).fetchall()


def released(con: Connection, known: int) -> None:
    """Release with a k that leaves as much room in a class whatever its size: 10 for 100,000 people."""
    k = con.execute("SELECT count(*) // 10_000 FROM patients").fetchall()[0][0]
    con.execute(
        f"CREATE OR REPLACE TABLE released AS FROM anon.release_linked({hospital.TABLES}, 'patient', {hospital.COLS}, "
        f"{k}, known := {known}, class := ['sex', 'age'], seed := 1, {hospital.OPTIONS})"
    ).fetchall()


TASKS = [
    *(
        Task(
            f"known_events, {known} of them", [20_000, 100_000], prepared, partial(checked, known=known), pairs, "pairs"
        )
        for known in (2, 3)
    ),
    *(
        Task(
            f"release_linked, {known} known",
            [20_000, 100_000],
            prepared,
            partial(released, known=known),
            partial(checked, known=known),
            "check",
            1,
        )
        for known in (1, 2)
    ),
]
