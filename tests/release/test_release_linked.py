"""`anon.release_linked`: counted by `anon.known_events`, attacked by its labels, and compared class by class."""

from __future__ import annotations

import itertools
from collections import Counter

import duckdb
import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given

from duckanon._core.common.row_keys import number_keys
from duckanon._methods.linked import choices
from tests.profiles import dear, seeds

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


def release(
    con: duckdb.DuckDBPyConnection, k: int, known: int, options: str = "", drop: float = 0.2, keep: str = ""
) -> list[tuple]:
    """Release the clinic with its keys, and return the rows: table, patient, id, and the labels."""
    con.execute(
        f"CREATE OR REPLACE TABLE released AS FROM anon.release_linked({TABLES}, 'patient', {COLS}, {k}, "
        f"known := {known}, class := ['sex'], people := 'patients', keep := ['patient', 'id'{keep}], "
        f"narrowing := ['id'{keep}], "
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
    assert (number_keys(keys) == dense).all()
    assert (number_keys(keys.copy(), may_overwrite=True) == dense).all()


@pytest.mark.thorough
@pytest.mark.parametrize("known", [1, 2, 3])
def test_large_classes_show_the_same_rows(
    con: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch, known: int
) -> None:
    """The keys of a large class are looked for, in place of a table of them all."""
    clinic(con, 80, seed=known)
    rows = release(con, 3, known, ", seed := 1")
    monkeypatch.setattr(choices, "_MOST_NUMBERED", 0)
    assert release(con, 3, known, ", seed := 1") == rows
    assert len(set(rows)) > 50


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


LADDER = ", ladder := [MAP {'day': 'month', 'level': '10'}, MAP {'day': 'quarter', 'level': '20'}]"
"""Without a level at which every row can stay."""


@pytest.mark.thorough
@pytest.mark.parametrize("goes", ["released", "left out"])
def test_a_row_less_changes_labels_of_its_class_only(con: duckdb.DuckDBPyConnection, goes: str) -> None:
    """Where the ladder is given, whether the row would have been released or left out."""
    clinic(con, 200, 3)
    before = release(con, 5, 2, LADDER, drop=1)
    shown = {row[2] for row in before if row[0] == "visits"}
    own = con.execute("SELECT id FROM visits WHERE patient % 2 = 0 ORDER BY id").fetchall()
    gone = next(one for (one,) in own if (one in shown) == (goes == "released"))
    con.execute(f"DELETE FROM visits WHERE id = {gone}")
    after = release(con, 5, 2, LADDER, drop=1)
    assert {row for row in before if row[1] % 2} == {row for row in after if row[1] % 2}
    assert {row for row in before if row[1] % 2 == 0} != {row for row in after if row[1] % 2 == 0} or goes == "left out"


@pytest.mark.thorough
def test_bands_are_reached(con: duckdb.DuckDBPyConnection) -> None:
    """The number of events belongs to the class."""
    clinic(con, 300, 5)
    release(con, 4, 1, ", counts := 'bands'", drop=1)
    bands = counted(con, 1, 4, "['sex', 'row_count']")
    assert min(row[2] for row in bands) >= 4
    assert bands[0][1] > 4


def told(con: duckdb.DuckDBPyConnection) -> None:
    """Give lab results a sensitive value, of three, which some tests tell nearly."""
    con.execute("ALTER TABLE labs ADD COLUMN told VARCHAR")
    con.execute("UPDATE labs SET told = CASE WHEN id % 4 = 0 THEN 'abc'[1 + (id // 4) % 3] ELSE test[1] END")


def learned(con: duckdb.DuckDBPyConnection) -> tuple[float, int, float]:
    """Count, person by person, what those who hold any two released events of one of them tell about their values."""
    values: dict[int, set] = {one: set() for (one,) in con.execute("SELECT patient FROM patients").fetchall()}
    records: dict[int, list] = {one: [] for one in values}
    for table, patient, *cells, value in con.execute(
        "SELECT table_name, patient, ward, day, test, level, told FROM released WHERE table_name <> 'patients'"
    ).fetchall():
        records[patient].append((table, *cells))
        values[patient] |= {value} - {None}
    prior = Counter(value for own in values.values() for value in own or {None})
    holders: dict[tuple, set] = {}
    for one, record in records.items():
        for size in range(3):
            for chosen in itertools.combinations(sorted(record, key=str), size):
                holders.setdefault((one % 2, chosen), set()).add(one)
    share, fewest, distance = 0.0, len(prior), 0.0
    for people in holders.values():
        found = Counter(value for one in people for value in values[one] or {None})
        share = max([share, *(count / len(people) for value, count in found.items() if value)])
        fewest = min(fewest, len(found))
        differences = (abs(found[value] / found.total() - prior[value] / prior.total()) for value in prior)
        distance = max(distance, sum(differences) / 2)
    return share, fewest, distance


@pytest.mark.parametrize("seed", seeds(1, 4))
def test_known_events_tell_no_more_than_is_allowed(con: duckdb.DuckDBPyConnection, seed: int) -> None:
    """What somebody infers who knows two events of a person, counted by hand and by anon.known_events."""
    clinic(con, 120, seed)
    told(con)
    for limit, is_kept in (
        ("max_confidence := 0.85", lambda share, _, __: share <= 0.85 + 1e-9),
        ("l := 3", lambda _, values, __: values >= 3),
        ("t := 0.5", lambda _, __, distance: distance <= 0.5 + 1e-9),
    ):
        try:
            release(con, 3, 2, f", sensitive := 'told', {limit}", drop=1, keep=", 'told'")
        except duckdb.InvalidInputException as error:  # on so few people, chance may leave nothing to release
            if "leave classes of people that tell too much" not in str(error):
                raise
            continue
        found = learned(con)
        row = counted(con, 2, 3, more=", sensitive := 'told'")[-1]
        assert row[2] >= 3
        assert row[7:] == pytest.approx(found)
        assert is_kept(*found)


@pytest.mark.thorough
def test_a_release_without_limits_tells_more(con: duckdb.DuckDBPyConnection) -> None:
    """The same attack finds values of which the same labels are too sure, where nobody asked for less."""
    clinic(con, 120, 5)
    told(con)
    release(con, 3, 2, drop=1, keep=", 'told'")
    share, fewest, distance = learned(con)
    assert share > 0.85
    assert fewest < 3
    assert distance > 0.5


@pytest.mark.thorough
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
