"""Jobs in cohorts: records of others are kept, people wait, and the record says so; no value is in the account."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import duckdb
import pytest

from duckanon.job import FileProblem, PolicyError, release
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


@pytest.mark.rotating
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


@pytest.mark.rotating
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
        (("release.parquet", "release.csv"), "target.path must be a Parquet or DuckDB file for cohorts"),
        (('plan = "plan.parquet"', ""), "cohorts need a plan"),
        (("joint_k = 10\n", ""), "promises.joint_k must say how many"),
        ((ACCOUNT, ""), "promises.joint_k counts the releases of an account"),
    ]:
        with pytest.raises(PolicyError, match=message):
            release(write_policy(policy.parent, other))
