"""`duckanon release` from and to a PostgreSQL server: what psql finds there was counted before anybody saw it."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import duckdb
import pytest

from duckanon.cli import main as cli
from duckanon.job import FileProblem, PolicyError, PromiseBroken, places, release
from duckanon.job.warehouse import Warehouse
from tests.job import test_kill
from tests.job.conftest import changed
from tests.rendered.servers import Postgres

pytestmark = pytest.mark.engines

jobs = test_kill.jobs

PASSWORD = "open-sesame"


def policy(folder: Path, server: Postgres, *more: tuple[str, str], name: str = "policy.toml") -> Path:
    """Write the policy of a job from a table of the server to another."""
    address = server.address(password=PASSWORD)
    return changed(
        folder,
        ('path = "people.parquet"', f'path = "{address}"\ntable = "clinic.people"'),
        ('path = "release.parquet"', f'path = "{address}"\ntable = "clinic.released"\nreplace = true'),
        *more,
        name=name,
    )


def smallest(server: Postgres) -> list[dict[str, int]]:
    return server.rows("""
        SELECT sum(people) AS people, min(people) AS k FROM
            (SELECT count(*) AS people FROM clinic.released GROUP BY age, sex) AS classes""")


def test_from_a_table_to_a_table(folder: Path, clinic: Postgres, capsys: pytest.CaptureFixture[str]) -> None:
    address = clinic.address(password=PASSWORD)
    draft = ["policy", "init", "--from", address, "--table", "clinic.people", "--to", "draft.toml"]
    assert cli.main(draft) == 0
    assert PASSWORD not in (folder / "draft.toml").read_text(encoding="utf-8")
    (folder / "draft.toml").unlink()
    path = policy(folder, clinic)
    assert cli.main(["policy", "check", str(path)]) == 0
    record = release(path)
    assert smallest(clinic) == [{"people": 240, "k": 30}]
    assert record["tables"][0]["source"] == "postgresql"
    assert record["tables"][0]["output"]["path"] == "clinic.released"
    assert record["tables"][0]["output"]["format"] == "postgresql"
    types = clinic.rows("""
        SELECT string_agg(attname || ' ' || format_type(atttypid, atttypmod), ', ' ORDER BY attnum) AS t
        FROM pg_attribute WHERE attrelid = 'clinic.released'::regclass AND attnum > 0""")
    assert types == [{"t": "age integer, sex text, diagnosis character varying(12)"}]
    # the second run compares with the first, and replaces it
    clinic.run("DELETE FROM clinic.people WHERE id = 0")
    again = release(path)
    assert again["tables"][0]["changes"]["previous_sha256"] == record["tables"][0]["output"]["sha256"]
    assert again["tables"][0]["changes"]["small_changes"] == 1
    assert smallest(clinic) == [{"people": 239, "k": 29}]
    with pytest.raises(PromiseBroken):
        release(policy(folder, clinic, ("k = 10", "k = 10\nl = 9")), report="report.html")
    # nothing that is written down tells the password
    written = [file.read_text(encoding="utf-8") for file in folder.iterdir() if file.suffix in (".json", ".html")]
    assert len(written) == 2
    assert PASSWORD not in "".join([*written, capsys.readouterr().out])
    assert sorted(os.listdir(folder)) == [
        "clinic.released.record.json",
        "people.parquet",
        "policy.toml",
        "report.not-released.html",
    ]


def test_identifiers_are_not_even_asked_for(folder: Path, clinic: Postgres) -> None:
    """Who may not read them can release the rest, and an array among them is in nobody's way."""
    clinic.run("""
        DROP VIEW clinic.everybody;
        ALTER TABLE clinic.people ALTER name TYPE text[] USING ARRAY[name];
        DROP ROLE IF EXISTS releaser; CREATE ROLE releaser LOGIN; GRANT USAGE, CREATE ON SCHEMA clinic TO releaser;
        GRANT SELECT (patient, age, sex, diagnosis) ON clinic.people TO releaser""")
    address = clinic.address("releaser")
    targeted = ('path = "release.parquet"', f'path = "{address}"\ntable = "clinic.released"')
    record = release(changed(folder, targeted), source=address, table="clinic.people")
    assert record["tables"][0]["rows"] == 240
    assert smallest(clinic) == [{"people": 240, "k": 30}]
    named = changed(folder, targeted, ('name = "identifier"', 'name = "free"'), ("clinic.released", "clinic.named"))
    with pytest.raises(FileProblem, match=r"^postgresql: column name has arrays or records"):
        release(named, source=clinic.address(), table="clinic.people")
    with pytest.raises(FileProblem, match=r"^postgresql: this user may not \(SQLSTATE 42501\)\.$"):
        release(named, source=address, table="clinic.people")
    clinic.run("DROP OWNED BY releaser; DROP ROLE releaser")


def test_a_broken_promise_leaves_the_last_table(folder: Path, clinic: Postgres) -> None:
    release(policy(folder, clinic))
    before = clinic.rows("SELECT oid, relname FROM pg_class WHERE relnamespace = 'clinic'::regnamespace ORDER BY 1")
    with pytest.raises(PromiseBroken):
        release(policy(folder, clinic, ("k = 10", "k = 10\nl = 9")))
    after = clinic.rows("SELECT oid, relname FROM pg_class WHERE relnamespace = 'clinic'::regnamespace ORDER BY 1")
    assert after == before


def test_places_that_are_taken_are_refused(folder: Path, clinic: Postgres) -> None:
    clinic.run("CREATE TABLE clinic.released AS SELECT 1 AS precious")
    with pytest.raises(FileProblem, match=r"^postgresql: clinic\.released: it is there already; replace = true"):
        release(policy(folder, clinic, ("\nreplace = true", "")))
    for target in ("clinic.people", "clinic.everybody"):
        for source in ("clinic.people", "clinic.everybody"):
            path = policy(folder, clinic, ('table = "clinic.people"', f'table = "{source}"'))
            path.write_text(path.read_text().replace('"clinic.released"', f'"{target}"'))
            with pytest.raises(FileProblem, match=r"the rows come from this table|it is no plain table"):
                release(path)
    assert clinic.rows("SELECT count(*) AS n FROM clinic.people") == [{"n": 240}]
    for wrong, sentence in (
        ('table = "clinic.released"\n', "target.table must say which table"),
        ("\nreplace = true", "is for tables of a server"),
    ):
        path = policy(folder, clinic, (wrong, "")) if "table" in wrong else folder / "policy.toml"
        if "replace" in wrong:
            path = changed(folder, ('path = "release.parquet"', f'path = "release.parquet"{wrong}'))
        with pytest.raises(PolicyError, match=sentence):
            release(path)


def test_a_release_that_is_changed_on_the_way_is_noticed(
    folder: Path, clinic: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Attack: a trigger of the server's, as it were, changes a row between writing and reading back."""
    from duckanon.postgresql.target import Delivery

    write = Delivery.write

    def changing(self: Delivery, *arguments: object) -> None:
        write(self, *arguments)  # type: ignore[arg-type]
        self._server.run(f"UPDATE {self.hidden} SET age = 99 WHERE ctid = '(0,1)'")

    monkeypatch.setattr(Delivery, "write", changing)
    with pytest.raises(FileProblem, match="is not what was released"):
        release(policy(folder, clinic))
    assert clinic.rows("SELECT to_regclass('clinic.released') AS t") == [{"t": None}]


def test_files_of_a_run_that_was_killed_after_its_commit_are_completed(
    folder: Path, clinic: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed between the commit and the renames: the record of the table that is there appears with the next run."""
    path = policy(folder, clinic)
    for is_committed in (False, True):
        killed = _killed_at_publication(path, is_committed)
        assert killed == 9
        assert not (folder / "clinic.released.record.json").exists()
        there = clinic.rows("SELECT to_regclass('clinic.released') IS NOT NULL AS t") == [{"t": True}]
        assert there == is_committed
        with pytest.raises(PromiseBroken):
            release(policy(folder, clinic, ("k = 10", "k = 10\nl = 9"), name="broken.toml"))
        assert (folder / "clinic.released.record.json").exists() == is_committed
    assert not list(folder.glob(".*"))


def _killed_at_publication(path: Path, is_committed: bool) -> int:
    child = os.fork()
    if child == 0:
        publish = places.Outbox.publish

        def dying(self: places.Outbox, commit: object, **options: bool) -> None:
            def committed_or_not(mark: str) -> None:
                if is_committed:
                    commit(mark)  # type: ignore[operator]
                os._exit(9)

            publish(self, committed_or_not, **options)

        places.Outbox.publish = dying  # type: ignore[method-assign, assignment]
        try:
            release(path)
        finally:  # whatever is raised here, this process runs no further test
            os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


COHORTS = """k = 10
joint_k = 10
joint_l = 2
max_suppressed_fraction = 0.5

[account]
path = "account.sqlite"
key = { environment = "ACCOUNT_KEY" }

[cohorts]
class_size = 20
"""


@pytest.mark.parametrize("is_followed", [False, True])
def test_cohorts_continue_a_table_of_the_server(
    is_followed: bool, folder: Path, clinic: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows of a table have no order: what is kept is found by what is in it."""
    monkeypatch.setenv("ACCOUNT_KEY", "the key of this account")
    monkeypatch.setenv("PSEUDONYM_KEY", "the key of the pseudonyms")
    followed = [
        ('patient = "person"', 'patient = { role = "person", pseudonym = true }'),
        ("[source]", '[key]\nenvironment = "PSEUDONYM_KEY"\n\n[source]'),
    ]
    path = policy(
        folder,
        clinic,
        ("k = 10\n", COHORTS),
        ('"suppress_cells"', '"generalize"\nnarrowing = ["diagnosis"]'),
        ("[source]", 'plan = "plan.parquet"\n\n[source]'),
        *(followed if is_followed else []),
    )
    shown = "SELECT age, sex, diagnosis, count(*) AS n FROM clinic.released GROUP BY 1, 2, 3 ORDER BY 1, 2, 3"
    release(path)
    first = clinic.rows(shown)
    clinic.run("DELETE FROM clinic.people WHERE patient IN (0, 4, 8)")
    clinic.run("UPDATE clinic.released SET sex = sex WHERE diagnosis = 'asthma'")  # rows change their places
    told = release(path)["tables"][0]["cohorts"]
    assert (told["stale"], told["waiting"]) == (3, 0)
    assert clinic.rows(shown) == first
    clinic.run("DELETE FROM clinic.people WHERE patient % 4 = 0 AND patient < 48")
    with monkeypatch.context() as patched:  # entered, but not on the server

        def failing(self: Warehouse, mark: str) -> None:
            raise FileProblem("postgresql: gone")

        patched.setattr(Warehouse, "commit", failing)
        with pytest.raises(FileProblem, match="gone"):
            release(path)
    assert clinic.rows(shown) == first
    assert release(path, dry_run=True)["tables"][0]["cohorts"]["stale"] == 0
    record = release(path)
    assert (record["tables"][0]["cohorts"]["stale"], record["account"]["releases"]) == (0, 4)
    assert sum(row["n"] for row in clinic.rows(shown)) == 240 - 24
    clinic.run("UPDATE clinic.released SET age = 'x' WHERE ctid = (SELECT min(ctid) FROM clinic.released)")
    with pytest.raises(FileProblem, match="cohorts continue release 4 of the account, and this is not its table"):
        release(path)


def test_a_job_that_waits_for_the_server_stops_when_it_is_asked_to(folder: Path, clinic: Postgres) -> None:
    query = "SELECT p.* FROM clinic.people AS p, pg_sleep(100)"
    path = policy(folder, clinic, ('table = "clinic.people"', f'query = "{query}"'))
    command = [sys.executable, "-m", "duckanon.cli", "release", str(path), "--progress"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2])
    assert process.stderr is not None
    assert process.stderr.readline() == "reading table ...\n"
    for _ in range(100):
        if clinic.rows("SELECT 1 AS n FROM pg_stat_activity WHERE wait_event = 'PgSleep'"):
            break
        time.sleep(0.1)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    assert process.returncode == 143
    assert sorted(os.listdir(folder)) == ["people.parquet", "policy.toml"]


@pytest.mark.thorough
def test_killed_jobs_leave_whole_tables(
    folder: Path, clinic: Postgres, database: duckdb.DuckDBPyConnection, jobs: subprocess.Popen[str]
) -> None:
    clinic.run("""
        DROP TABLE clinic.people CASCADE;
        CREATE TABLE clinic.people AS SELECT i AS id, i AS patient, 'x' AS name, i % 50 AS age,
            (ARRAY['f', 'm'])[1 + i % 2] AS sex, 'flu' || (i % 7) AS diagnosis
        FROM generate_series(1, 20000) AS t(i)""")
    good = policy(folder, clinic)
    broken = policy(folder, clinic, ("k = 10", "k = 10\nl = 9"), name="broken.toml")
    begin = time.monotonic()
    release(good)
    takes = time.monotonic() - begin
    draw = random.Random(7)
    for number in range(8):
        before = clinic.rows("SELECT 'clinic.released'::regclass::oid AS n")
        test_kill.kill_after(jobs, good if number % 2 else broken, draw.uniform(0, 1.2 * takes))
        assert smallest(clinic) == [{"people": 20000, "k": 400}]
        assert number % 2 or clinic.rows("SELECT 'clinic.released'::regclass::oid AS n") == before
        record = json.loads((folder / "clinic.released.record.json").read_text())
        assert record["outcome"] == "released"
    release(good)
    assert smallest(clinic) == [{"people": 20000, "k": 400}]
    assert clinic.rows("SELECT relname FROM pg_class WHERE relname LIKE '%duckanon%'") == []
    assert not list(folder.glob(".*"))
