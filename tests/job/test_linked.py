"""What links rows and releases: pseudonyms in one table and in several, and the release before."""

from __future__ import annotations

import hashlib
import hmac
from datetime import date
from pathlib import Path

import duckdb
import pytest

from duckanon.job import PolicyError, PromiseBroken, record, release
from duckanon.job.record import differences
from tests.job.conftest import changed

KEY = "a key of at least sixteen characters"

TWO_TABLES = """\
[key]
environment = "DUCKANON_TEST_KEY"

[method]
name = "suppress_cells"

[promises]
k = 5

[tables.patients]
source = { path = "patients.parquet" }
target = { path = "patients_out.parquet" }
[tables.patients.columns]
patient = { role = "person", pseudonym = true }
sex = "quasi_identifier"

[tables.visits]
source = { path = "visits.csv" }
target = { path = "visits_out.csv" }
[tables.visits.columns]
patient = { role = "person", pseudonym = true }
ward = "quasi_identifier"
"""


def pseudonym(patient: int) -> str:
    return hmac.new(KEY.encode(), str(patient).encode(), hashlib.sha256).hexdigest()


@pytest.fixture
def key(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("DUCKANON_TEST_KEY", KEY)
    return KEY


@pytest.fixture
def clinic(folder: Path, database: duckdb.DuckDBPyConnection) -> Path:
    database.execute(
        "COPY (SELECT i AS patient, ['f', 'm'][1 + i % 2] AS sex FROM range(40) AS t(i)) TO 'patients.parquet'"
    ).fetchall()
    (folder / "policy.toml").write_text(TWO_TABLES)
    return folder


def write_visits(database: duckdb.DuckDBPyConnection, ward: str) -> None:
    database.execute(f"COPY (SELECT i AS patient, {ward} AS ward FROM range(40) AS t(i)) TO 'visits.csv'").fetchall()


@pytest.mark.thorough
@pytest.mark.usefixtures("key")
def test_tables_are_joined_by_pseudonyms(clinic: Path, database: duckdb.DuckDBPyConnection) -> None:
    """The same value has the same pseudonym, be it a number of Parquet or a text of CSV; HMAC-SHA-256 says which."""
    write_visits(database, "i % 4")
    run = release(clinic / "policy.toml")
    joined = duckdb.sql("FROM 'patients_out.parquet' JOIN 'visits_out.csv' USING (patient)").fetchall()
    assert len(joined) == 40
    assert {row[0] for row in joined} == {pseudonym(i) for i in range(40)}
    for table in run["tables"]:
        assert {p["name"]: p["measured"] for p in table["promises"]}["linked_k"] == 10
    assert KEY not in record.text(run)
    assert all(KEY.encode() not in path.read_bytes() for path in clinic.iterdir())


@pytest.mark.thorough
@pytest.mark.usefixtures("key")
def test_classes_of_two_tables_put_together_single_people_out(
    clinic: Path, database: duckdb.DuckDBPyConnection
) -> None:
    """Each table has classes of five; the one man of ward 0 is found by joining both, as the pseudonym allows."""
    write_visits(database, "CASE WHEN i IN (1, 2, 4, 6, 8) THEN 0 ELSE 1 END")
    with pytest.raises(PromiseBroken) as error:
        release(clinic / "policy.toml")
    assert "linked_k: promised 5, measured 1." in str(error.value)
    assert KEY not in str(error.value)
    assert not (clinic / "patients_out.parquet").exists()
    (clinic / "policy.toml").write_text(TWO_TABLES.replace("k = 5", "k = 5\nlinked_k = 1"))
    assert release(clinic / "policy.toml")["outcome"] == "released"


@pytest.mark.usefixtures("key")
def test_texts_that_look_alike_together_are_two_classes(folder: Path, database: duckdb.DuckDBPyConnection) -> None:
    """('a, b', 'c') and ('a', 'b, c') are written the same way when they are put together; NULL is no 'NULL' either."""
    values = "[['a, b', 'c'], ['a', 'b, c'], [NULL, 'c'], ['NULL', 'c']][1 + i % 4]"
    database.execute(
        f"COPY (SELECT i AS id, i AS patient, '' AS name, ({values})[1] AS age, ({values})[2] AS sex, 'x' AS diagnosis "
        "FROM range(40) AS t(i)) TO 'people.parquet'"
    ).fetchall()
    policy = changed(folder, ('patient = "person"', 'patient = { role = "person", pseudonym = true }'))
    policy.write_text(policy.read_text() + '[key]\nenvironment = "DUCKANON_TEST_KEY"\n')
    (table,) = release(policy)["tables"]
    assert {promise["name"]: promise["measured"] for promise in table["promises"]}["linked_k"] == 10


@pytest.mark.usefixtures("key")
def test_linked_k_is_that_of_the_assessment(folder: Path, database: duckdb.DuckDBPyConnection) -> None:
    policy = changed(folder, ('patient = "person"', 'patient = { role = "person", pseudonym = true }'))
    policy.write_text(policy.read_text() + '[key]\nenvironment = "DUCKANON_TEST_KEY"\n')
    (table,) = release(policy)["tables"]
    expected = database.execute(
        "SELECT k, linked_k FROM anon.k_anonymity('people.parquet', ['age', 'sex'], person := 'patient')"
    ).fetchone()
    measured = {promise["name"]: promise["measured"] for promise in table["promises"]}
    assert (measured["k"], measured["linked_k"]) == expected


@pytest.mark.thorough
def test_a_plan_is_used_again_and_new_small_classes_are_left_out(
    folder: Path, database: duckdb.DuckDBPyConnection
) -> None:
    policy = changed(folder, ('"suppress_cells"', '"generalize"'))
    first = release(policy, plan="plan.parquet")["tables"][0]
    assert first["plan"]["reused"] is False
    plan = (folder / "plan.parquet").read_bytes()
    database.execute(
        "COPY (FROM 'people.parquet' UNION ALL SELECT 1000, 1000, 'x', 50, 'unheard of', 'flu') TO 'next.parquet'"
    ).fetchall()
    run = release(policy, source="next.parquet", plan="plan.parquet")
    second = run["tables"][0]
    assert second["plan"]["reused"] is True
    assert (folder / "plan.parquet").read_bytes() == plan
    assert second["plan"]["small_classes_left_out"] == 1
    assert second["suppressed"]["people"] == 1
    assert {row["column_name"]: row["unseen"] for row in second["plan"]["coverage"]} == {"age": 0, "sex": 1}
    assert second["changes"]["small_changes"] == 0
    words = {promise["name"]: promise["words"] for promise in second["promises"]}
    assert words["max_suppressed_fraction"].startswith("1 person was suppressed (")
    assert [warning.split(";")[0] for warning in run["warnings"]] == [
        "the plan does not know 1 value of sex",
        "1 class of the plan has fewer than 10 people, or too few values of a sensitive column: their rows were "
        "suppressed.",
    ]
    with pytest.raises(PolicyError, match=r"the plan must have the policy's quasi-identifiers"):
        release(
            changed(folder, ('"suppress_cells"', '"generalize"'), ('sex = "quasi_identifier"', 'sex = "free"')),
            plan="plan.parquet",
        )


@pytest.mark.thorough
def test_who_came_between_two_releases_is_noticed(folder: Path, database: duckdb.DuckDBPyConnection) -> None:
    """The class of one who came has one more row, and the difference tells the diagnosis."""
    release(folder / "policy.toml")
    database.execute(
        "COPY (FROM 'people.parquet' UNION ALL SELECT 1000, 1000, 'x', 30, 'm', 'flu') TO 'next.parquet'"
    ).fetchall()
    strict = changed(folder, ("k = 10", "k = 10\nmax_small_changes = 0"), name="strict.toml")
    words = {promise["name"]: promise["words"] for promise in release(strict)["tables"][0]["promises"]}
    assert words["max_small_changes"] == "No class differs from the previous release by fewer than 10 rows."
    old = record.read("release.parquet.record.json")
    with pytest.raises(PromiseBroken, match=r"max_small_changes: promised 0, measured 1\."):
        release(strict, source="next.parquet")
    new = release(folder / "policy.toml", source="next.parquet")
    change = new["tables"][0]["changes"]
    assert (change["small_changes"], change["came_in_small_changes"], change["went_in_small_changes"]) == (1, 1, 0)
    assert change["previous_sha256"] == old["tables"][0]["output"]["sha256"]
    assert new["warnings"][-1].startswith("1 class differs from the previous release by fewer than 10 rows")
    lines = differences(old, new)
    assert "table: original rows: 240 -> 241" in lines
    assert "table: classes that differ by fewer than k rows: 1 (1 came, 0 went)" in lines
    assert any("two releases of one table" in line for line in differences(old, old))


@pytest.mark.usefixtures("key")
def test_dates_of_a_person_are_shifted_together(folder: Path, database: duckdb.DuckDBPyConnection) -> None:
    dated = "SELECT * EXCLUDE (name), DATE '2026-01-01' + id::INTEGER AS day FROM 'people.parquet'"
    database.execute(f"COPY ({dated}) TO 'dated.parquet'").fetchall()
    policy = changed(
        folder,
        ("people.parquet", "dated.parquet"),
        ('name = "identifier"', 'day = { role = "free", shift_days = 90 }'),
        ('patient = "person"', 'patient = { role = "person", pseudonym = true }'),
    )
    policy.write_text(policy.read_text() + '[key]\nenvironment = "DUCKANON_TEST_KEY"\n')
    (table,) = release(policy)["tables"]
    first_days = dict(duckdb.sql("SELECT patient, min(day) FROM 'release.parquet' GROUP BY patient").fetchall())
    shifts = {
        (first_days[pseudonym(patient)] - date(2026, 1, 1)).days - 2 * patient  # rows 2 i and 2 i + 1 are person i's
        for patient in range(120)
    }
    assert len(shifts) > 30
    assert 0 not in shifts
    assert max(map(abs, shifts)) <= 90
    assert duckdb.sql(
        "SELECT DISTINCT days FROM (SELECT max(day) - min(day) AS days FROM 'release.parquet' GROUP BY patient)"
    ).fetchall() == [(1,)]
    assert {c["name"]: c["treatment"] for c in table["columns"]}["day"] == "shifted per person"


def test_changes_are_counted_in_people_where_pseudonyms_tell_who_they_are(folder: Path) -> None:
    (folder / "key").write_text("a key of at least sixteen characters")
    shown = changed(
        folder,
        ('"person"', '{ role = "person", pseudonym = true }'),
        ("k = 10", 'k = 10\n[key]\nfile = "key"'),
        name="shown.toml",
    )
    assert [release(shown)["tables"][0].get("changes"), release(shown)["tables"][0]["changes"]["counted"]] == [
        None,
        "people",
    ]
