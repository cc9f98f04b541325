"""`anon.release_linked`: counted by `anon.known_events`, attacked with true events, and compared class by class."""

from __future__ import annotations

import itertools
from collections import Counter

import duckdb
import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given

from tests.profiles import dear

COLS = ["ward", "day", "test", "level"]
TABLES = ["visits", "labs"]


def clinic(con: duckdb.DuckDBPyConnection, people: int, seed: int) -> dict[str, pa.Table]:
    """People with up to six visits and four lab results, who come again to the same ward."""
    random = np.random.default_rng(seed)
    visits = np.repeat(np.arange(people), random.integers(0, 7, people))
    labs = np.repeat(np.arange(people), random.integers(0, 5, people))
    ward = np.where(random.random(len(visits)) < 0.6, visits % 5, random.integers(0, 5, len(visits)))
    day = np.datetime64("2025-01-01") + random.integers(0, 365, len(visits))
    tables = {
        "visits": pa.table({"patient": visits, "ward": ward.astype(str), "day": day, "id": np.arange(len(visits))}),
        "labs": pa.table(
            {
                "patient": labs,
                "test": random.choice(["iron", "zinc", "salt"], len(labs)),
                "level": random.integers(0, 40, len(labs)),
                "id": np.arange(len(labs)),
            }
        ),
        "patients": pa.table({"patient": np.arange(people), "sex": np.arange(people) % 2}),
    }
    for name, table in tables.items():
        con.register(f"{name}_arrow", table)
        con.execute(f"CREATE OR REPLACE TABLE {name} AS FROM {name}_arrow")
    return tables


def release(con: duckdb.DuckDBPyConnection, k: int, known: int, options: str = "", drop: float = 0.2) -> list[tuple]:
    """Release the clinic with its keys, and return the rows: table, patient, id, and the labels."""
    con.execute(
        f"CREATE OR REPLACE TABLE released AS FROM anon.release_linked({TABLES}, 'patient', {COLS}, {k}, "
        f"known := {known}, class := ['sex'], people := 'patients', keep := ['patient', 'id'], narrowing := ['id'], "
        f"max_suppressed_fraction := {drop} {options})"
    )
    return con.execute(
        "SELECT table_name, patient, id, ward, day, test, level FROM released WHERE id IS NOT NULL"
    ).fetchall()


def counted(con: duckdb.DuckDBPyConnection, known: int, k: int, class_: str = "['sex']", more: str = "") -> list[tuple]:
    for table in ("visits", "labs", "patients"):
        con.execute(f"CREATE OR REPLACE VIEW r_{table} AS FROM released WHERE table_name = '{table}'")
    return con.execute(
        f"FROM anon.known_events(['r_visits', 'r_labs'], 'patient', {COLS}, known := {known}, class := {class_}, "
        f"people := 'r_patients', k := {k} {more})"
    ).fetchall()


@dear
@given(st.integers(30, 80), st.integers(0, 2**16), st.integers(2, 5), st.integers(1, 3))
def test_every_choice_is_held_by_k_people(
    con: duckdb.DuckDBPyConnection, people: int, seed: int, k: int, known: int
) -> None:
    """The check of SQL shares no code with the release; labels say the truth about their rows."""
    clinic(con, people, seed)
    rows = release(con, k, known, drop=1)
    assert min(row[2] for row in counted(con, known, k)) >= k
    truth = {("visits", row[0]): row[1:] for row in con.execute("SELECT id, patient, ward, day FROM visits").fetchall()}
    truth |= {("labs", row[0]): row[1:] for row in con.execute("SELECT id, patient, test, level FROM labs").fetchall()}
    for table, patient, row_id, ward, day, test, level in rows:
        assert truth[table, row_id][0] == patient
        if table == "visits":
            assert ward in (truth[table, row_id][1], "*")
            assert is_period_of(day, truth[table, row_id][2])
        else:
            assert test in (truth[table, row_id][1], "*")
            assert is_range_of(level, truth[table, row_id][2])


def is_period_of(label: str, day: object) -> bool:
    year, month, _ = str(day).split("-")
    periods = {
        str(day),
        f"{year}-{month}",
        f"{year}-Q{(int(month) + 2) // 3}",
        f"{year}-H{(int(month) + 5) // 6}",
        year,
        "*",
    }
    return label in periods


def is_range_of(label: str, value: int) -> bool:
    if label == "*" or label == str(value):
        return True
    low, high = label.strip("[)").split(", ")
    return int(low) <= value < int(high)


def candidates(rows: list[tuple], sex: dict[int, int], known: list[tuple], own: int) -> int:
    """Count the people of the class who have rows that may be the known events, each another one."""
    records: dict[int, list[tuple]] = {}
    for table, patient, _, *labels in rows:
        if sex[patient] == own:
            records.setdefault(patient, []).append((table, *labels))
    found = 0
    for record in records.values():
        fitting = [[place for place, label in enumerate(record) if may_be(label, event)] for event in known]
        found += any(len(set(chosen)) == len(known) for chosen in itertools.product(*fitting))
    return found


def may_be(label: tuple, event: tuple) -> bool:
    table, ward, day, test, level = label
    if table != event[0]:
        return False
    if table == "visits":
        return ward in (event[1], "*") and is_period_of(day, event[2])
    return test in (event[1], "*") and is_range_of(level, event[2])


@pytest.mark.rotating
def test_an_attacker_with_m_events_finds_nobody_or_k_people(con: duckdb.DuckDBPyConnection) -> None:
    """With more events the promise ends, and the raw tables give nearly everybody away."""
    k, known = 5, 2
    tables = clinic(con, 400, 7)
    rows = release(con, k, known)
    sex = dict(enumerate(np.arange(400) % 2))
    visits = [
        ("visits", *row)
        for row in zip(*(tables["visits"].column(name).to_pylist() for name in ("ward", "day")), strict=True)
    ]
    whose = tables["visits"].column("patient").to_pylist()
    events: dict[int, list[tuple]] = {}
    for patient, event in zip(whose, visits, strict=True):
        events.setdefault(patient, []).append(event)
    random = np.random.default_rng(0)
    shares = {}
    for size in (known, known + 1):
        targets = [patient for patient, own in events.items() if len(own) >= size]
        targets = random.permutation(targets)[:60].tolist()
        found = [
            candidates(
                rows, sex, [events[one][place] for place in random.permutation(len(events[one]))[:size]], sex[one]
            )
            for one in targets
        ]
        shares[size] = np.mean([0 < count < k for count in found])
    raw = Counter((sex[patient], pair) for patient, own in events.items() for pair in itertools.combinations(own, 2))
    assert shares[known] == 0
    assert shares[known + 1] > 0
    assert np.mean([count == 1 for count in raw.values()]) > 0.9


@pytest.mark.rotating
def test_a_class_is_released_without_a_look_at_the_others(con: duckdb.DuckDBPyConnection) -> None:
    """A row of one class less changes no label of the other one, where the ladder is given."""
    ladder = (
        ", ladder := [MAP {'day': 'month', 'level': '10'}, MAP {'day': 'quarter', 'level': '20'}, "
        "MAP {'day': 'year', 'level': '*'}, MAP {'ward': '*', 'test': '*'}]"
    )
    clinic(con, 200, 3)
    before = release(con, 5, 2, ladder)
    gone = con.execute("SELECT id, patient FROM visits WHERE patient % 2 = 0 ORDER BY id LIMIT 1").fetchall()[0]
    con.execute(f"DELETE FROM visits WHERE id = {gone[0]}")
    after = release(con, 5, 2, ladder)
    assert {row for row in before if row[1] % 2} == {row for row in after if row[1] % 2}


@pytest.mark.rotating
def test_bands_and_confidence_are_reached(con: duckdb.DuckDBPyConnection) -> None:
    """The number of events belongs to the class; nobody is sure of the sensitive value of a choice."""
    clinic(con, 300, 5)
    release(con, 4, 1, ", counts := 'bands'", drop=1)
    bands = counted(con, 1, 4, "['sex', 'row_count']")
    assert min(row[2] for row in bands) >= 4
    assert bands[0][1] > 4
    con.execute("ALTER TABLE labs ADD COLUMN told VARCHAR")
    con.execute("UPDATE labs SET told = test")
    sure = []
    for options in ("", ", sensitive := 'told', max_confidence := 0.75"):
        release(con, 4, 2, options, drop=1)
        con.execute("CREATE OR REPLACE TABLE r_told AS SELECT DISTINCT patient, told FROM labs")
        for table in ("visits", "labs", "patients"):
            con.execute(f"CREATE OR REPLACE VIEW r_{table} AS FROM released WHERE table_name = '{table}'")
        sure.append(
            con.execute(
                f"SELECT max(confidence) FROM anon.known_events(['r_visits', 'r_labs', 'r_told'], 'patient', {COLS}, "
                "known := MAP {'r_visits': 2, 'r_labs': 2, 'r_told': 0}, class := ['sex'], people := 'r_patients', "
                "sensitive := 'told')"
            ).fetchall()[0][0]
        )
    assert sure[0] > 0.75 >= sure[1]


@pytest.mark.rotating
def test_a_household_is_a_person_whose_members_are_rows(con: duckdb.DuckDBPyConnection) -> None:
    """Any two members are those of four households; as one row, the whole composition is."""
    con.execute(
        """CREATE OR REPLACE TABLE members AS
           SELECT i % 150 AS house, ['f', 'm'][1 + (i * 7 // 150) % 2] AS sex, 5 * ((i * 37 + i // 150) % 16) AS age
           FROM range(400) AS t(i)"""
    ).fetchall()
    con.execute(
        """CREATE OR REPLACE TABLE whole AS SELECT house, list_sort(list(sex || age), 'ASC', 'NULLS LAST')::VARCHAR AS
           members, count(*) AS size FROM members GROUP BY house"""
    ).fetchall()
    for table, cols, known in (("members", ["sex", "age"], 2), ("whole", ["members", "size"], 1)):
        con.execute(
            f"CREATE OR REPLACE TABLE released AS FROM anon.release_linked(['{table}'], 'house', {cols}, 4, "
            f"known := {known}, seed := 1)"
        ).fetchall()
        smallest, rows = con.execute(
            f"SELECT min(k), (SELECT count(*) FROM released) FROM anon.known_events(['released'], 'house', {cols}, "
            f"known := {known}, k := 4)"
        ).fetchall()[0]
        assert smallest >= 4
        assert rows == (400 if table == "members" else 150)
    assert con.execute("SELECT count(DISTINCT size) FROM released").fetchall() == [(2,)]
