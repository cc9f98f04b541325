"""`anon.release_linked`: counted by `anon.known_events`, attacked with true events, and compared class by class."""

from __future__ import annotations

import functools
import itertools
from collections import Counter

import duckdb
import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given

from duckanon._methods.linked.dense_numbers import numbered
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


@pytest.mark.parametrize("size", [0, 1, 65_536, 65_537, 140_000])
@pytest.mark.parametrize("most", [3, 10**5, 2**61])
def test_keys_are_numbered_block_by_block_as_all_at_once(size: int, most: int) -> None:
    """Numbers go on from one block to the next, whether the keys fit beside their places or not."""
    keys = np.random.default_rng(size).integers(0, most, size)
    dense = np.unique(keys, return_inverse=True)[1]
    assert (numbered(keys) == dense).all()
    assert (numbered(keys.copy(), may_overwrite=True) == dense).all()


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
    if not label.startswith("["):
        return label in ("*", str(value))
    low, high = label.strip("[)").split(", ")
    return int(low) <= value < int(high)


@functools.cache
def may_be(label: tuple, event: tuple) -> bool:
    table, ward, day, test, level = label
    if table != event[0]:
        return False
    if table == "visits":
        return ward in (event[1], "*") and is_period_of(day, event[2])
    return test in (event[1], "*") and is_range_of(level, event[2])


def has_all(record: list[tuple], known: list[tuple]) -> bool:
    """Tell whether rows of a record may be the known events, each another one."""
    fitting = [[place for place, label in enumerate(record) if may_be(label, event)] for event in known]
    return all(fitting) and any(len(set(chosen)) == len(known) for chosen in itertools.product(*fitting))


class Attacker:
    """Somebody who has the release, and knows true events of the people of a clinic and their sex."""

    def __init__(self, tables: dict[str, pa.Table], rows: list[tuple]) -> None:
        self.events: dict[int, list[tuple]] = {}
        for name, columns in (("visits", ("ward", "day")), ("labs", ("test", "level"))):
            for patient, *values in zip(
                *(tables[name].column(one).to_pylist() for one in ("patient", *columns)), strict=True
            ):
                self.events.setdefault(patient, []).append((name, *values))
        self.records: dict[int, list[tuple]] = {}
        for table, patient, _, *labels in rows:
            self.records.setdefault(patient, []).append((table, *labels))
        self.random = np.random.default_rng(0)

    def found(self, size: int, *, counts: bool = False) -> list[int]:
        """Count the candidates for each person with so many events, of which these are known; also how many rows."""
        found = []
        for one, own in self.events.items():
            if len(own) < size:
                continue
            known = [own[place] for place in self.random.permutation(len(own))[:size]]
            shown = len(self.records.get(one, ()))
            found.append(
                sum(
                    has_all(record, known)
                    for other, record in self.records.items()
                    if other % 2 == one % 2 and (not counts or len(record) == shown)
                )
            )
        return found

    def unique_records(self) -> float:
        held = Counter((one % 2, *sorted(map(str, record))) for one, record in self.records.items())
        return sum(count == 1 for count in held.values()) / len(self.records)


@pytest.mark.thorough
@pytest.mark.parametrize("known", [1, 2])
def test_an_attacker_with_m_events_finds_nobody_or_k_people(con: duckdb.DuckDBPyConnection, known: int) -> None:
    """400 people are looked for, by true events; with more events, row counts or the record, the promise ends."""
    k = 5
    tables = clinic(con, 400, 7)
    attacker = Attacker(tables, release(con, k, known))
    found = attacker.found(known)
    assert len(found) > 300
    assert not [count for count in found if 0 < count < k]
    more = attacker.found(known + 2)
    assert np.mean([0 < count < k for count in more]) > 0
    with_counts = attacker.found(known, counts=True)
    assert np.mean([0 < count < k for count in with_counts]) > 0
    assert attacker.unique_records() > 0.3
    raw = Attacker(tables, [(own[0], one, 0, *_raw(own)) for one, events in attacker.events.items() for own in events])
    assert np.mean([count == 1 for count in raw.found(known)]) > 0.4


def _raw(event: tuple) -> tuple:
    table, what, value = event
    return (what, str(value), None, None) if table == "visits" else (None, None, what, str(value))


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
