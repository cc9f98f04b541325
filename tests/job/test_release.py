"""A release from the policy to the file: what is counted, what is refused, what appears."""

from __future__ import annotations

import json
import os
import resource
import sys
from pathlib import Path
from types import ModuleType
from unittest.mock import MagicMock

import duckdb
import pytest

from duckanon._core.common import own_files
from duckanon.job import FileProblem, JobError, PolicyError, PromiseBroken, readback, release, run
from tests.job.conftest import changed, leave_release

FILES = {
    "release.parquet": "read_parquet('release.parquet')",
    "release.csv": "read_csv('release.csv', all_varchar = true)",
    "release.csv.gz": "read_csv('release.csv.gz', all_varchar = true)",
    "release.duckdb": 'release.main."table"',
}


@pytest.mark.thorough
@pytest.mark.parametrize("target", FILES)
def test_the_file_has_what_the_record_tells(target: str, folder: Path) -> None:
    record = release(changed(folder, ("release.parquet", target)))
    (table,) = record["tables"]
    with duckdb.connect() as con:
        if target.endswith("duckdb"):
            con.execute("ATTACH 'release.duckdb' AS release (READ_ONLY)").fetchall()
        rows = FILES[target]
        assert [row[0] for row in con.execute(f"DESCRIBE FROM {rows}").fetchall()] == ["age", "sex", "diagnosis"]
        smallest, count = con.execute(
            f"SELECT min(n), sum(n) FROM (SELECT count(*) AS n FROM {rows} GROUP BY age, sex)"
        ).fetchone()
    promises = {promise["name"]: promise for promise in table["promises"]}
    assert promises["k"]["measured"] == smallest == 30
    assert promises["k"]["passed"]
    assert (table["output"]["rows"], table["output"]["people"]) == (count, 120) == (240, 120)
    assert (table["rows"], table["people"]) == (240, 120)
    assert record["outcome"] == "released"
    assert json.loads((folder / f"{target}.record.json").read_text()) == record
    assert not list(folder.glob(".*"))


def test_k_counts_people_who_are_not_in_the_file(folder: Path) -> None:
    """Ten rows of one person are no class of ten people: the file has no person, and it is counted all the same."""
    query = "SELECT *, 1 AS n FROM source UNION ALL SELECT 999, 5, 'x', 70, 'f', 'flu', 1 FROM range(12)"
    policy = changed(
        folder,
        ('path = "people.parquet"', f'path = "people.parquet"\nquery = "{query}"'),
        ('diagnosis = "sensitive"', 'diagnosis = "sensitive"\nn = "free"'),
    )
    release(policy)
    assert duckdb.sql("SELECT count(*) FROM 'release.parquet' WHERE age = 70").fetchall() == [(0,)]
    policy.write_text(policy.read_text().replace('"person"', '"identifier"'))
    release(policy)
    assert duckdb.sql("SELECT count(*) FROM 'release.parquet' WHERE age = 70").fetchall() == [(12,)]


def test_a_column_that_travels_unnamed_stops_the_job(folder: Path) -> None:
    with pytest.raises(PolicyError, match=r"line 7: columns must give every column a role; without one: name\.$"):
        release(changed(folder, ('name = "identifier"\n', "")))
    with pytest.raises(PolicyError, match=r"line 14: columns\.income: the table has no such column\.$"):
        release(changed(folder, ('"sensitive"', '"sensitive"\nincome = "free"')))
    assert not (folder / "release.parquet").exists()


def test_missing_and_empty_are_one_value_to_readers_of_csv(folder: Path, database: duckdb.DuckDBPyConnection) -> None:
    """NULL and '' are two values of a table, and one of a CSV file: a class that has both has l = 1."""
    database.execute(
        "COPY (SELECT i AS id, i AS patient, 'x' AS name, i % 2 AS age, 'f' AS sex, CASE WHEN i % 4 < 2 THEN '' END AS "
        "diagnosis FROM range(80) AS t(i)) TO 'people.parquet'"
    ).fetchall()
    promise = ("k = 10", "k = 10\nl = 2")
    release(changed(folder, promise))
    with pytest.raises(PromiseBroken, match=r"l of diagnosis: promised 2, measured 1\."):
        release(changed(folder, promise, ("release.parquet", "release.csv")))
    assert not (folder / "release.csv").exists()


@pytest.mark.parametrize("how", ["same", "hard link", "symbolic link", "glob", "query", "policy"])
def test_originals_are_never_overwritten(how: str, folder: Path) -> None:
    original = (folder / "people.parquet").read_bytes()
    target, source = "other.parquet", "people.parquet"
    if how == "hard link":
        os.link("people.parquet", target)
    elif how == "symbolic link":
        os.symlink("people.parquet", target)
    elif how == "glob":
        source = "*.parquet"
    else:
        target = "people.parquet"
    read = f"query = \"FROM '{source}'\"" if how == "query" else f'path = "{source}"'
    policy = changed(folder, ('path = "people.parquet"', read), ("release.parquet", target))
    with pytest.raises(FileProblem, match=r"must not overwrite it|the job reads this file, now or in the next run"):
        release(policy, report=policy if how == "policy" else None, target="x.parquet" if how == "policy" else None)
    assert (folder / "people.parquet").read_bytes() == original


def test_a_broken_promise_leaves_the_last_release(folder: Path) -> None:
    leave_release(folder / "release.parquet", "the last release")
    before = sorted(os.listdir(folder))
    with pytest.raises(PromiseBroken, match=r"k must be at most the number of .* What may help: a smaller k"):
        release(changed(folder, ("k = 10", "k = 500")))
    with pytest.raises(PromiseBroken) as error:
        release(changed(folder, ("k = 10", "k = 10\nl = 4")))
    assert "measured 3" in str(error.value)
    assert "What may help" in str(error.value)
    assert error.value.record is not None
    assert error.value.record["outcome"] == "promise broken"
    assert sorted(os.listdir(folder)) == before
    assert (folder / "release.parquet").read_text() == "the last release"


def test_what_is_written_is_what_is_counted(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A writer that changes one value is found out."""
    write = readback.write

    def forged(con, form, released, path) -> None:
        assert path.parent.stat().st_mode & 0o077 == 0  # what is not checked yet is for nobody else's eyes
        con.execute(
            f"CREATE TABLE forged AS SELECT * REPLACE (if(rowid = 7, 99, age) AS age) FROM {released}"
        ).fetchall()
        write(con, form, "forged", path)

    monkeypatch.setattr(readback, "write", forged)
    with pytest.raises(FileProblem, match="the written file is not what was released"):
        release(folder / "policy.toml")
    assert sorted(os.listdir(folder)) == ["people.parquet", "policy.toml"]


def test_a_dry_run_writes_nothing(folder: Path) -> None:
    before = sorted(os.listdir(folder))
    record = release(folder / "policy.toml", dry_run=True)
    assert record["outcome"] == "dry run"
    assert record["tables"][0]["promises"][0]["measured"] == 30
    assert sorted(os.listdir(folder)) == before
    with pytest.raises(PromiseBroken):
        release(changed(folder, ("k = 10", "k = 10\nl = 4")), dry_run=True)


def test_errors_do_not_quote_values(folder: Path) -> None:
    """DuckDB's own sentence would be: Could not convert string 'Person 0' to INT32."""
    query = "SELECT * REPLACE (name::INTEGER AS id) FROM source"
    policy = changed(folder, ('path = "people.parquet"', f'path = "people.parquet"\nquery = "{query}"'))
    policy.write_text(policy.read_text().replace('id = "identifier"', 'id = "free"'))
    with pytest.raises(FileProblem) as error:
        release(policy)
    assert "Person" not in str(error.value)
    assert error.value.__cause__ is None
    assert error.value.__suppress_context__


def test_two_statements_are_no_query(folder: Path) -> None:
    query = "SELECT 1; DROP TABLE x"
    with pytest.raises(PolicyError, match=r"must be one SELECT"):
        release(changed(folder, ('path = "people.parquet"', f'path = "people.parquet"\nquery = "{query}"')))


def test_a_full_disk_leaves_the_last_release(folder: Path) -> None:
    leave_release(folder / "release.csv", "the last release")
    before = sorted(os.listdir(folder))
    policy = changed(folder, ("release.parquet", "release.csv"))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
    try:
        with pytest.raises(FileProblem, match=r"release\.csv: the release cannot be written"):
            release(policy)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert sorted(os.listdir(folder)) == before
    assert (folder / "release.csv").read_text() == "the last release"


@pytest.mark.parametrize(
    ("target", "sentence"),
    [
        ("/proc/release.parquet", r"it cannot be written"),
        ("nowhere/release.parquet", r"there is no folder"),
        ("folder.parquet", r"it is a folder"),
    ],
)
def test_a_target_that_cannot_be_written(target: str, sentence: str, folder: Path) -> None:
    (folder / "folder.parquet").mkdir()
    with pytest.raises(FileProblem, match=sentence):
        release(folder / "policy.toml", target=target)


def test_leftovers_go_and_another_run_waits_its_turn(folder: Path) -> None:
    leftover = folder / ".release.parquet.duckanon-0123"
    leftover.mkdir()
    own_files.mark_folder(leftover)
    (leftover / "release.parquet").write_text("half a release")
    other = folder / ".other.parquet.duckanon-0123"
    other.mkdir()
    own_files.mark_folder(other)
    with run.Outbox([folder / "release.parquet"]):
        assert not leftover.exists()
        with pytest.raises(FileProblem, match="another run writes it at the moment"):
            release(folder / "policy.toml")
    release(folder / "policy.toml")
    assert sorted(folder.glob(".*")) == [other]


def test_a_link_is_followed_to_the_release(folder: Path) -> None:
    (folder / "store").mkdir()
    os.symlink("store/real.parquet", folder / "release.parquet")
    release(folder / "policy.toml")
    assert (folder / "release.parquet").is_symlink()
    assert (folder / "store" / "real.parquet").stat().st_size > 0


@pytest.mark.thorough
def test_sources_of_all_kinds_give_the_same_release(folder: Path, database: duckdb.DuckDBPyConnection) -> None:
    people = "FROM 'people.parquet'"
    database.execute(f"COPY ({people} WHERE id % 2 = 0) TO 'part1.csv'").fetchall()
    database.execute(f"COPY ({people} WHERE id % 2 = 1) TO 'part2.csv'").fetchall()
    with duckdb.connect("clinic.duckdb") as con:
        con.execute(f"CREATE TABLE patients AS {people}").fetchall()
    hashes = set()
    for given in (
        {"source": "part*.csv"},
        {"source": "clinic.duckdb", "table": "patients"},
        {"source": "clinic.duckdb", "table": "main.patients"},
        {"source": "clinic.duckdb", "query": "SELECT * FROM patients WHERE id >= 0"},
        {"query": "FROM 'people.parquet'"},
    ):
        if "source" not in given:
            changed(folder, ('path = "people.parquet"', ""))
        record = release(folder / "policy.toml", target="out.parquet", dry_run=True, **given)
        hashes.add(record["tables"][0]["sha256"])
        assert record["tables"][0]["promises"][0]["measured"] == 30
    assert len(hashes) == 2  # of the files' bytes, and of the rows
    with pytest.raises(FileProblem, match=r"there is no such file"):
        release(folder / "policy.toml", source="nothing*.csv")


def test_postgresql_is_an_extra(folder: Path) -> None:
    source = "postgresql://me:my-password@server/clinic"
    with pytest.raises(FileProblem) as error:
        release(folder / "policy.toml", source=source, table="people")
    assert "pip install 'duckanon[postgresql]'" in str(error.value)
    assert "my-password" not in str(error.value)


@pytest.mark.parametrize(
    "address",
    ["postgresql://me:my-password@server/clinic", "postgresql://server/clinic?user=me&password=my-password"],
)
def test_errors_tell_no_address(folder: Path, monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    """A stand-in for the driver, whose errors quote all they know; tests/postgresql asks a real server."""
    driver = ModuleType("adbc_driver_postgresql.dbapi")
    driver.connect = MagicMock(side_effect=RuntimeError(address))  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "adbc_driver_postgresql", ModuleType("adbc_driver_postgresql"))
    monkeypatch.setitem(sys.modules, "adbc_driver_postgresql.dbapi", driver)
    expected = r"^postgresql: the server cannot be reached \(RuntimeError\)\.$"
    with pytest.raises(FileProblem, match=expected):
        release(folder / "policy.toml", source=address, table="people")
    target = f'path = "{address}"\ntable = "released"'
    with pytest.raises(FileProblem, match=expected):
        release(changed(folder, ('path = "release.parquet"', target)))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('path = "people.parquet"', 'path = "postgresql+psycopg://me:my-password@server/clinic"'),
        ('path = "people.parquet"', 'path = "host=server user=me password=my-password"'),
        ('path = "release.parquet"', 'path = "postgresql://me:my-password@server/clinic"'),
        ('path = "release.parquet"', 'path = "mysql://me:my-password@server/clinic"'),
        ('[target]\npath = "release.parquet"', '[target]\npath = 1\ntable = "postgresql://me:my-password@server"'),
        ('[target]\npath = "release.parquet"', 'target = "postgresql://me:my-password@server/clinic"'),
    ],
)
def test_no_error_tells_a_password(folder: Path, before: str, after: str) -> None:
    policy = changed(folder, (before, after))
    if after.startswith("target"):  # before the first table of the file
        text = policy.read_text().replace(after, "")
        policy.write_text(f"{after}\n{text}")
    with pytest.raises(JobError) as error:
        release(policy)
    assert "my-password" not in str(error.value)


@pytest.mark.thorough
def test_new_records_must_pass_the_privacy_test(folder: Path, database: duckdb.DuckDBPyConnection) -> None:
    database.execute(
        "COPY (SELECT i AS id, i AS patient, '' AS name, (hash(i) % 1000)::INTEGER AS age, (hash(i + 7) % 100) / 10.0 "
        "AS sex, (hash(i + 9) % 1000)::DOUBLE AS diagnosis FROM range(300) AS t(i)) TO 'people.parquet'"
    ).fetchall()
    numeric = [("quasi_identifier", "numeric"), ('"sensitive"', '"numeric"'), ("k = 10", "prediction = true")]
    policy = changed(folder, *numeric, ('"suppress_cells"', '"svd_swap"'), ("release.parquet", "release.csv"))
    try:
        record = release(policy)
    except PromiseBroken as error:
        record = error.record
    assert record is not None
    names = {promise["name"] for promise in record["tables"][0]["promises"]}
    assert {"prediction: distance", "prediction: ambiguity", "max_suppressed_fraction"} <= names
    assert (folder / "release.csv").exists() == (record["outcome"] == "released")
