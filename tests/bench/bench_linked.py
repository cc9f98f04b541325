"""Linked tables of events: the check against a plain count of pairs of rows, the release against the check."""

from __future__ import annotations

from functools import partial

import duckanon
from duckanon._bridge.sql import Connection
from duckanon.cli import demo_command, statements
from tests.bench.harness import Task

COLS = "['visited', 'department']"


def clinic(people: int) -> Connection:
    """Make the patients of the demo, 1.8 visits each, with months as labels for the check."""
    con = duckanon.connect()
    con.execute(f"SET VARIABLE people = {people}; SET enable_progress_bar = false").fetchall()
    for statement in statements.split(statements.script(demo_command.FILES / "population.sql")):
        con.execute(statement).fetchall()
    con.execute(
        """CREATE TABLE people AS
           SELECT patient_id, sex, date_diff('year', dob, DATE '2026-01-01') // 20 AS age FROM patients;
           CREATE TABLE months AS SELECT patient_id, strftime(visited, '%Y-%m') AS visited, department FROM visits"""
    ).fetchall()
    return con


def checked(con: Connection, known: int) -> None:
    con.execute(
        f"FROM anon.known_events(['months'], 'patient_id', {COLS}, known := {known}, class := ['sex', 'age'], "
        "people := 'people', k := 10)"
    ).fetchall()


def pairs(con: Connection) -> None:
    """Count the people of every pair of labels of one person, which is the least that a check of two has to do."""
    con.execute(
        """WITH e AS (SELECT *, row_number() OVER () AS n FROM months JOIN people USING (patient_id))
           SELECT min(c) FROM (SELECT count(DISTINCT a.patient_id) AS c FROM e AS a JOIN e AS b
                               ON a.patient_id = b.patient_id AND a.n < b.n
                               GROUP BY a.sex, a.age, a.visited, a.department, b.visited, b.department)"""
    ).fetchall()


def released(con: Connection, known: int) -> None:
    con.execute(
        f"CREATE OR REPLACE TABLE released AS FROM anon.release_linked(['visits'], 'patient_id', {COLS}, 10, "
        f"known := {known}, class := ['sex', 'age'], people := 'people', seed := 1)"
    ).fetchall()


TASKS = [
    *(
        Task(f"known_events, {known} of them", [20_000, 200_000], clinic, partial(checked, known=known), pairs, "pairs")
        for known in (2, 3)
    ),
    *(
        Task(
            f"release_linked, {known} known",
            [20_000, 200_000],
            clinic,
            partial(released, known=known),
            partial(checked, known=known),
            "check",
            1,
        )
        for known in (1, 2)
    ),
]
