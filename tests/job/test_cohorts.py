"""Jobs in cohorts: records of others are kept, people wait, and the record says so; no value is in the account."""

from __future__ import annotations

import sqlite3
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import duckdb
import numpy as np
import pytest

from duckanon._core.account.entries import Entry, TableRelease
from duckanon._core.account.joint import ABSENT
from duckanon._core.account.storage import HASH_SIZE
from duckanon.job import FileProblem, PolicyError, release, warehouse
from duckanon.job.account import CohortState, _with_state
from duckanon.job.cohorts import _on_server
from duckanon.job.policy import Table
from tests.job.conftest import changed
from tests.job.test_account import ACCOUNT, KEY

PEOPLE = """
    SELECT i AS id, i AS patient, 'Person ' || i AS name, 20 + i % 3 AS age, 'f' AS sex,
           ['influenza', 'asthma', 'cold'][1 + i // 3 % 3] AS diagnosis FROM range({}) AS t(i) WHERE i NOT IN ({})
"""
PROMISES = "k = 10\njoint_k = 10\njoint_l = 2\nmax_suppressed_fraction = 0.5"


@pytest.fixture
def policy(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ACCOUNT_KEY", KEY)
    (folder / "erase.csv").write_text("id\n")
    return write_policy(folder)


def write_policy(folder: Path, *others: tuple[str, str]) -> Path:
    return changed(
        folder,
        ("[source]", 'plan = "plan.parquet"\n\n[source]'),
        ('"suppress_cells"', '"generalize"\nnarrowing = ["diagnosis"]'),
        ("k = 10\n", f'{PROMISES}\n{ACCOUNT}\n[cohorts]\nclass_size = 20\nsize = 12\nerase = "erase.csv"\n'),
        *others,
    )


def write(database: duckdb.DuckDBPyConnection, count: int, without: list[int]) -> None:
    rows = PEOPLE.format(count, ", ".join(map(str, [-1, *without])))
    database.execute(f"COPY ({rows}) TO 'people.parquet'").fetchall()


def sizes(path: str = "'release.parquet'") -> Counter[str | None]:
    return Counter(dict(duckdb.sql(f"SELECT age, count(*) FROM {path} GROUP BY age").fetchall()))


@pytest.mark.thorough
def test_people_leave_and_enter_together(policy: Path, database: duckdb.DuckDBPyConnection) -> None:
    write(database, 90, [])
    record = release(policy)
    assert record["tables"][0]["cohorts"]["waiting"] == 0
    first = sizes()
    assert sorted(first.values()) == [30, 30, 30]
    write(database, 99, [0, 3, 6])  # three of a class are gone, nine are new
    told = release(policy)["tables"][0]["cohorts"]
    assert sizes() == first
    assert (told["people"], told["waiting"], told["stale"], told["pooled"]) == (96, 9, 3, 0)
    assert 0 < told["count_error"] < 0.2
    write(database, 126, list(range(0, 30, 3)))  # ten are gone, and leave; twelve newcomers of each class enter
    record = release(policy)
    told = record["tables"][0]["cohorts"]
    assert sorted(sizes().values()) == [32, 42, 42]
    assert (told["waiting"], told["stale"], told["mean_wait"], told["longest_stale"]) == (0, 0, 0.0, 0)
    assert record["account"]["joint_k"] == 10
    assert record["tables"][0]["suppressed"]["people"] == 0
    Path("erase.csv").write_text("id\n31\n")  # of a class that has lost nobody yet
    told = release(policy)["tables"][0]["cohorts"]
    assert (told["erased"], told["waiting"]) == (1, 9)
    assert sorted(sizes().values()) == [32, 32, 42]
    stored = Path("account.sqlite").read_bytes()
    assert not any(value in stored for value in (b"influenza", b"Person", b"asthma"))


@pytest.mark.thorough
def test_cohorts_continue_the_last_release_and_no_other(policy: Path, database: duckdb.DuckDBPyConnection) -> None:
    duckdb_policy = write_policy(policy.parent, ("release.parquet", "release.duckdb"))
    write(database, 90, [])
    release(duckdb_policy)
    write(database, 90, [0, 3, 6])
    told = release(duckdb_policy)["tables"][0]["cohorts"]
    assert (told["stale"], told["longest_stale"]) == (3, 1)
    Path("moved.duckdb").write_bytes(Path("release.duckdb").read_bytes())
    Path("release.duckdb").unlink()
    with pytest.raises(FileProblem, match="cohorts continue release 2 of the account, and this is not its file"):
        release(duckdb_policy)
    told = release(duckdb_policy, previous="moved.duckdb")["tables"][0]["cohorts"]
    assert (told["stale"], told["longest_stale"]) == (3, 2)
    for other, message in [
        (('plan = "plan.parquet"', ""), "cohorts need a plan"),
        (("joint_k = 10\n", ""), "promises.joint_k must say how many"),
        ((ACCOUNT, ""), "promises.joint_k counts the releases of an account"),
    ]:
        with pytest.raises(PolicyError, match=message):
            release(write_policy(policy.parent, other))


@pytest.mark.thorough
def test_policies_of_one_name_in_two_folders_are_two(policy: Path, database: duckdb.DuckDBPyConnection) -> None:
    """The cohorts of each continue its own release, whatever the other has released meanwhile."""
    write(database, 90, [])
    text = policy.read_text().replace('"account.sqlite"', '"../account.sqlite"').replace('"people.', '"../people.')
    found = []
    for folder in ("wards", "homes", "wards"):
        path = policy.with_name(folder) / "policy.toml"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text.replace('"erase.csv"', '"../erase.csv"'))
        found.append(release(path)["tables"][0]["cohorts"])
    assert [(one["people"], one["waiting"], one["stale"]) for one in found] == [(90, 0, 0)] * 3
    with sqlite3.connect("account.sqlite") as con:
        rows = con.execute("SELECT policy, folder FROM releases ORDER BY number").fetchall()
        assert rows == [("policy.toml", "wards"), ("policy.toml", "homes"), ("policy.toml", "wards")]
        con.execute("UPDATE releases SET folder = NULL WHERE folder = 'wards'")  # as an earlier version entered them
    found = release(policy.with_name("wards") / "policy.toml")["tables"][0]["cohorts"]
    assert (found["waiting"], found["stale"]) == (0, 0)
    policy.with_name("homes").rename(policy.with_name("moved"))  # its release, which is there, tells which one it is
    write(database, 90, [0, 3, 6])
    found = release(policy.with_name("moved") / "policy.toml")["tables"][0]["cohorts"]
    assert (found["waiting"], found["stale"]) == (0, 3)
    with sqlite3.connect("account.sqlite") as con:
        assert con.execute("SELECT folder FROM releases ORDER BY number DESC LIMIT 1").fetchall() == [("homes",)]


def test_numbers_of_people_stay_with_them_in_any_order() -> None:
    """The release has its people in an order of its own; who waits is not among them."""
    anna, bertha, carla, doris = (letter * HASH_SIZE for letter in (b"a", b"b", b"c", b"d"))
    entry = Entry(
        policy="policy.toml",
        name="people",
        sha256=None,
        naming=b"as it is",
        people=carla + anna + bertha,
        classes=np.array([0, 1, 1]),
        sets={"diagnosis": np.array([5, 6, 7])},
    )
    state = CohortState({}, anna + bertha + carla + doris, {"stale": np.array([1, 2, 3, 0]), "waited": np.arange(4)})
    entered = _with_state(entry, state, np.array([2, 0, 1]))
    assert entered.people == carla + anna + bertha + doris
    assert entered.classes.tolist() == [0, 1, 1, ABSENT]
    assert entered.sets["diagnosis"].tolist() == [5, 6, 7, ABSENT]
    assert {name: numbers.tolist() for name, numbers in entered.state.items()} == {
        "stale": [3, 1, 2, 0],
        "waited": [2, 0, 1, 3],
    }


PSEUDONYMS = (
    ('patient = "person"', 'patient = { role = "person", pseudonym = true }'),
    ("[source]", '[key]\nenvironment = "PSEUDONYM_KEY"\n\n[source]'),
)


def records(path: str) -> dict[str, tuple[str, str]]:
    """Return what a release that was kept shows of each pseudonym."""
    query = f"SELECT patient, age, diagnosis FROM read_csv('{path}', all_varchar = true)"
    return {patient: (age, diagnosis) for patient, age, diagnosis in duckdb.sql(query).fetchall()}


@pytest.mark.thorough
@pytest.mark.parametrize("target", ["release.csv", "release.csv.gz"])
def test_a_nightly_csv_file_with_pseudonyms(
    target: str, policy: Path, database: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PSEUDONYM_KEY", "the key of the pseudonyms")
    formulas = ("'influenza', 'asthma', 'cold'", "'=1+1', '', '-'")  # which a file shows otherwise than the table
    no_formulas = ("[columns]", "no_formulas = true\n\n[columns]")
    nightly = write_policy(policy.parent, *PSEUDONYMS, no_formulas, ("release.parquet", target))
    kept = []
    for night, (count, without) in enumerate([(90, []), (99, [0, 3, 6]), (126, list(range(0, 30, 3))), (126, [])]):
        rows = PEOPLE.replace(*formulas).format(count, ", ".join(map(str, [-1, *without])))
        database.execute(f"COPY ({rows}) TO 'people.parquet'").fetchall()
        if night == 3:
            Path("erase.csv").write_text("id\n31\n")
        told = release(nightly)["tables"][0]["cohorts"]
        kept.append(f"night_{night}.{target}")
        Path(kept[-1]).write_bytes(Path(target).read_bytes())
        expected = [(0, 0, 0), (9, 3, 0), (0, 0, 0), (19, 0, 1)][night]
        assert (told["waiting"], told["stale"], told["erased"]) == expected
    nights = [records(path) for path in kept]
    assert nights[0] == nights[1]  # people who are gone keep pseudonym and record
    assert {value for _, value in nights[0].values()} == {"'=1+1", None, "'-"}
    # who follows pseudonyms from night to night finds ten people and two values for every list of classes
    lists: dict[tuple[str | None, ...], list[str]] = {}
    for one in sorted(set().union(*nights)):
        lists.setdefault(tuple(night[one][0] if one in night else None for night in nights), []).append(one)
    assert len(lists) >= 5
    for people in lists.values():
        assert len(people) >= 10
        shown = [{night[one][1] for one in people} for night in nights if people[0] in night]
        assert min(map(len, shown)) >= 2


TWO_TABLES = f"""
[source]
path = "people.parquet"

[method]
name = "generalize"
narrowing = ["diagnosis"]

[promises]
{PROMISES}
{ACCOUNT}
[cohorts]
class_size = 20
size = 12

[tables.people]
target = {{ path = "people_release.parquet" }}
plan = "people_plan.parquet"
columns = {{ id = "person", age = "quasi_identifier", sex = "drop", ward = "drop", diagnosis = "sensitive" }}

[tables.wards]
target = {{ path = "wards_release.csv" }}
plan = "wards_plan.parquet"
columns = {{ id = "person", age = "drop", sex = "drop", ward = "quasi_identifier", diagnosis = "sensitive" }}
"""


@pytest.mark.thorough
def test_several_tables_count_each_other(policy: Path, database: duckdb.DuckDBPyConnection) -> None:
    path = policy.with_name("two.toml")
    path.write_text(TWO_TABLES)
    rows = """SELECT i AS id, 20 + i % 2 AS age, 'f' AS sex, 'ward ' || (i // 2 % 2) AS ward,
                     ['influenza', 'asthma', 'cold'][1 + i // 4 % 3] AS diagnosis FROM range({}, {}) AS t(i)"""
    for first, last, expected in ((0, 160, (0, 0)), (12, 172, (12, 12)), (40, 240, (0, 0))):
        database.execute(f"COPY ({rows.format(first, last)}) TO 'people.parquet'").fetchall()
        record = release(path)
        assert record["account"]["joint_k"] >= 10
        for table in record["tables"]:
            assert (table["cohorts"]["waiting"], table["cohorts"]["stale"]) == expected
    assert record["account"]["releases"] == 3
    assert sizes("'people_release.parquet'").keys() == {"20", "21"}
    path.write_text(TWO_TABLES.replace("\n[source]", '\nplan = "plan.parquet"\n\n[source]', 1))
    with pytest.raises(PolicyError, match="give each table a plan of its own"):
        release(path)


@pytest.mark.thorough
def test_people_who_move_keep_labels_that_are_true(policy: Path, database: duckdb.DuckDBPyConnection) -> None:
    """Twelve people get another age each; sex stays, and is shown."""
    two_sexes = ("'f' AS sex", "['f', 'm'][1 + i % 2] AS sex")
    rows = PEOPLE.replace(*two_sexes).replace("20 + i % 3", "{age}")
    classes = "20 + i // 2 % 3"
    database.execute(f"COPY ({rows.format(240, -1, age=classes)}) TO 'people.parquet'").fetchall()
    release(policy)
    moved = f"CASE WHEN i < 132 AND i % 12 = 0 THEN [21, 22][1 + i % 24 // 12] ELSE {classes} END"
    database.execute(f"COPY ({rows.format(240, -1, age=moved)}) TO 'people.parquet'").fetchall()
    told = release(policy)["tables"][0]["cohorts"]
    assert (told["coarser"], told["pooled"], told["stale"]) == (11, 0, 0)
    query = "SELECT age, sex, count(*) FROM 'release.parquet' WHERE age IS NULL OR sex IS NULL GROUP BY ALL"
    assert duckdb.sql(query).fetchall() == [(None, "f", 11)]
    told = release(policy)["tables"][0]["cohorts"]  # they stay there, whatever their age is
    assert (told["coarser"], told["stale"], told["waiting"]) == (11, 0, 0)


MONTHS = 6
HALF_A_YEAR = f"""
plan = "plan.parquet"
[key]
environment = "PSEUDONYM_KEY"
[source]
path = "people.parquet"
[target]
path = "release.csv"
[columns]
patient = {{ role = "person", pseudonym = true }}
age = "quasi_identifier"
zip = "quasi_identifier"
diagnosis = "sensitive"
[method]
name = "generalize"
narrowing = ["diagnosis"]
[promises]
k = 5
joint_k = 5
joint_l = 2
max_suppressed_fraction = 0.3
{ACCOUNT}
[cohorts]
class_size = 60
patience = 1
"""


@pytest.mark.thorough
def test_half_a_year_of_files_attacked_by_who_has_all_of_them(
    folder: Path, database: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """People join, leave, move and fall ill; the attacker follows pseudonyms, the owner looks if labels are true."""
    monkeypatch.setenv("ACCOUNT_KEY", KEY)
    monkeypatch.setenv("PSEUDONYM_KEY", "the key of the pseudonyms")
    path = folder / "monthly.toml"
    path.write_text(HALF_A_YEAR)
    own = duckdb.connect()
    drawn = "(md5_number_lower(patient || ' {}') % {})::INTEGER"
    zips = f"(10000 + 1000 * {drawn})::VARCHAR"
    own.execute(f"""
        CREATE OR REPLACE TABLE population AS
        SELECT patient, 20 + {drawn.format("a", 40)} AS age, {zips.format("z", 24)} AS zip,
               'd' || {drawn.format("d", 4)} AS diagnosis, patient < 1500 AS is_here
        FROM range(2400) AS t(patient)""").fetchall()
    nights, told = [], []
    for month in range(MONTHS):
        chance = drawn.format(f"chance {month}", 100)
        if month:
            own.execute(f"""
                UPDATE population SET
                    zip = CASE WHEN {chance} < 6 THEN {zips.format(f"z {month}", 24)} ELSE zip END,
                    diagnosis = CASE WHEN {chance} IN (4, 5, 6) THEN 'd' || {drawn.format(f"d {month}", 4)}
                                ELSE diagnosis END,
                    is_here = CASE WHEN patient BETWEEN 1400 + 100 * {month} AND 1499 + 100 * {month} THEN true
                              WHEN {chance} BETWEEN 10 AND 14 THEN false ELSE is_here END""").fetchall()
        rows = "SELECT * EXCLUDE (is_here) FROM population WHERE is_here"
        own.execute(f"COPY ({rows}) TO 'people.parquet'").fetchall()
        told.append(release(path)["tables"][0]["cohorts"])
        shown = database.execute(
            """
            SELECT file.patient, file.age, file.zip, file.diagnosis, truth.age, truth.zip, truth.diagnosis
            FROM read_csv('release.csv', all_varchar = true) AS file
            LEFT JOIN 'people.parquet' AS truth ON file.patient = anon.pseudonym(truth.patient::VARCHAR, $key)""",
            {"key": "the key of the pseudonyms"},
        ).fetchall()
        nights.append({row[0]: row[1:4] for row in shown})
        wrong = sum(not (_is_of(*row[1:3], *row[4:6]) and row[3] == row[6]) for row in shown)
        assert wrong == told[-1]["stale"]
    assert told[-1]["coarser"] > 20
    assert told[-1]["waiting"] < 150
    lists: dict[tuple, list[str]] = {}
    for one in sorted(set().union(*nights)):
        lists.setdefault(tuple(night[one][:2] if one in night else None for night in nights), []).append(one)
    assert min(map(len, lists.values())) >= 5
    for people in lists.values():
        for night in nights:
            assert people[0] not in night or len({night[one][2] for one in people}) >= 2


def _is_of(age_label: str | None, zip_label: str | None, age: int | None, zip_code: str | None) -> bool:
    """Tell whether labels are true of a person."""
    if age is None or zip_code is None:
        return False
    if zip_label is not None and not zip_code.startswith(zip_label.rstrip("*")):
        return False
    if age_label is None:
        return True
    if age_label.startswith(("<", ">=")):
        return age < float(age_label[1:]) if age_label[0] == "<" else age >= float(age_label[2:])
    low, _, high = age_label.strip("[)").partition(", ")
    return float(low) <= age < float(high) if high else age == float(low)


def test_a_server_may_have_an_earlier_release_than_the_account(
    database: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its rows tell, whatever their order; a third release was entered, but never reached the server."""

    def fetch(con: duckdb.DuckDBPyConnection, path: str, table: str, query: None, into: str) -> None:
        con.execute(f"CREATE OR REPLACE TEMP TABLE {into} AS FROM released ORDER BY random()")

    monkeypatch.setattr(warehouse, "fetch", fetch)
    con = database.cursor()
    rows = "SELECT i % 3 AS age, i AS note FROM range(30) AS t(i)"
    con.execute(f"CREATE TEMP TABLE applied AS SELECT note AS patient, * FROM ({rows})")
    con.execute(f"CREATE TEMP TABLE released AS {rows}")
    hashes = [warehouse.digest(con, f"SELECT * FROM ({rows}) LIMIT {count}") for count in (28, 30, 29)]
    listed = [
        TableRelease(number, number + 1, "2026-01-01", "policy.toml", "table", one, 30, 3, None, "")
        for number, one in enumerate(hashes)
    ]
    table = Table.model_validate(
        {
            "source": {"path": "postgresql://server/db", "table": "people"},
            "target": {"path": "postgresql://server/db", "table": "released"},
            "columns": {"patient": "person", "age": "quasi_identifier", "note": "free"},
            "method": {"name": "generalize"},
            "promises": {"k": 10},
        }
    )
    owners = np.arange(30)
    ledger = SimpleNamespace(account=None, releases=SimpleNamespace(owners={1: owners}.__getitem__))
    for _ in range(2):
        last = _on_server(con, ledger, table, "table", listed, "applied")  # type: ignore[arg-type]
        assert (last.listed.release, last.owners is owners) == (2, True)
        assert con.execute(last.rows).fetchall() == sorted(
            con.execute("FROM released").fetchall(), key=lambda row: tuple(map(str, row))
        )
        con.execute("DROP TABLE last_cohorts_rows")
    con.execute("UPDATE released SET note = 99 WHERE note = 3")
    with pytest.raises(FileProblem, match=r"cohorts continue release 3 of the account, .* not its table"):
        _on_server(con, ledger, table, "table", listed, "applied")  # type: ignore[arg-type]
