"""Jobs that are killed at random moments leave what was there before, or a whole release that was checked."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from duckanon.cli.main import main
from duckanon.job import release, sources
from tests.job.conftest import LINKED_POLICY, changed

ROWS = 20_000


@pytest.fixture(scope="module")
def jobs() -> Iterator[subprocess.Popen[str]]:
    """Start the process that runs jobs to be killed."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.job.killed"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
    )
    yield process
    process.communicate()


def kill_after(jobs: subprocess.Popen[str], policy: Path, seconds: float) -> None:
    """Kill a job some time after it begins, if it has not ended by then."""
    assert jobs.stdin is not None
    assert jobs.stdout is not None
    jobs.stdin.write(f"{policy}\n")
    jobs.stdin.flush()
    ready, _, number = jobs.stdout.readline().partition(" ")
    assert ready == "ready"
    time.sleep(seconds)
    with contextlib.suppress(ProcessLookupError):
        os.kill(int(number), signal.SIGKILL)
    assert jobs.stdout.readline() == "ended\n"


def assert_whole(folder: Path) -> None:
    """Check what a reader finds: all rows, in classes that were promised, and a record."""
    rows, smallest = duckdb.sql(
        f"SELECT sum(n), min(n) FROM (SELECT count(*) AS n FROM '{folder}/release.csv' GROUP BY age, sex)"
    ).fetchall()[0]
    assert rows == ROWS
    assert smallest >= 10
    record = json.loads((folder / "release.csv.record.json").read_text())
    assert record["outcome"] == "released"


@pytest.mark.thorough
@pytest.mark.parametrize("kills", [1, 50])
def test_killed_jobs_leave_whole_releases(
    kills: int, folder: Path, database: duckdb.DuckDBPyConnection, jobs: subprocess.Popen[str]
) -> None:
    draw = random.Random(kills)
    database.execute(
        f"COPY (SELECT i AS id, i AS patient, 'x' AS name, i % 50 AS age, ['f', 'm'][1 + i % 2] AS sex, "
        f"'flu' || (i % 7) AS diagnosis FROM range({ROWS}) AS t(i)) TO 'people.parquet'"
    ).fetchall()
    policy = changed(folder, ("release.parquet", "release.csv"))
    begin = time.monotonic()
    first = release(policy)
    takes = time.monotonic() - begin
    # Every second job breaks a promise: nothing of it may ever be seen, wherever it is killed.
    broken = changed(folder, ("release.parquet", "release.csv"), ("k = 10", "k = 10\nl = 9"), name="broken.toml")
    for number in range(kills):
        before = [(folder / name).read_bytes() for name in ("release.csv", "release.csv.record.json")]
        kill_after(jobs, policy if number % 2 else broken, draw.uniform(0, 1.2 * takes))
        assert_whole(folder)
        after = [(folder / name).read_bytes() for name in ("release.csv", "release.csv.record.json")]
        assert number % 2 or after == before
    release(policy)
    assert_whole(folder)
    record = json.loads((folder / "release.csv.record.json").read_text())
    assert record["tables"][0]["output"]["sha256"] == sources.hash_of([folder / "release.csv"])
    assert record["tables"][0]["sha256"] == first["tables"][0]["sha256"]
    assert not list(folder.glob(".*"))


@pytest.mark.thorough
def test_killed_jobs_of_linked_tables_leave_all_files_of_one_run(
    hospital: Path, jobs: subprocess.Popen[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Where a record is, all three files are those that it names, and any two events are those of five people."""
    (hospital / "key").write_text("a key of at least sixteen characters")
    (hospital / "key").chmod(0o600)
    policy = hospital / "policy.toml"
    policy.write_text(LINKED_POLICY.replace('environment = "DUCKANON_TEST_KEY"', 'file = "key"'), encoding="utf-8")
    begin = time.monotonic()
    first = release(policy)
    takes = time.monotonic() - begin
    names = [table["output"]["path"] for table in first["tables"]]
    draw = random.Random(3)
    for _ in range(6):
        kill_after(jobs, policy, draw.uniform(0.3, 1.2) * takes)
        if (hospital / "patients_out.parquet.record.json").exists():
            assert main(["verify", *names]) == 0
            assert "visits: known_events: confirmed" in capsys.readouterr().out
    release(policy)
    assert main(["verify", *names]) == 0
    assert not list(hospital.glob(".*"))


@pytest.mark.thorough
@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_jobs_clean_up_when_they_are_asked_to_stop(number: signal.Signals, code: int, folder: Path) -> None:
    query = "SELECT s.* FROM source AS s, range(2_000_000) WHERE hash(s.id, range) % 3 = 0"
    policy = changed(folder, ('path = "people.parquet"', f'path = "people.parquet"\nquery = "{query}"'))
    process = subprocess.Popen(
        [sys.executable, "-m", "duckanon.cli", "release", str(policy), "--progress"],
        stderr=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
    )
    assert process.stderr is not None
    assert process.stderr.readline() == "reading table ...\n"
    time.sleep(1)
    process.send_signal(number)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == code
    assert errors.endswith("a file at the target, if any, passed all checks.\n")
    assert sorted(path.name for path in folder.iterdir()) == ["people.parquet", "policy.toml"]


@pytest.mark.thorough
def test_killed_aggregate_tables_are_whole(
    folder: Path, database: duckdb.DuckDBPyConnection, jobs: subprocess.Popen[str]
) -> None:
    """Which know the table that they replace: it is there, whenever the job dies."""
    database.execute(
        "COPY (SELECT i % 50 AS age, ['f', 'm'][1 + i % 2] AS sex FROM range(9_000) AS t(i)) TO 'people.parquet'"
    ).fetchall()
    policy = folder / "cells.toml"
    policy.write_text(
        'kind = "aggregate"\n[source]\npath = "people.parquet"\n[target]\npath = "cells.csv"\n'
        '[columns]\nage = "quasi_identifier"\nsex = "quasi_identifier"\n'
        '[method]\nname = "protect_table"\nprevious = "cells.csv"\n[promises]\nk = 5\n'
    )
    begin = time.monotonic()
    release(policy)
    takes = time.monotonic() - begin
    before = duckdb.sql(f"SELECT * FROM '{folder}/cells.csv' ORDER BY ALL").fetchall()
    for number in range(4):
        kill_after(jobs, policy, takes * number / 4)
        assert duckdb.sql(f"SELECT * FROM '{folder}/cells.csv' ORDER BY ALL").fetchall() == before
        record = json.loads((folder / "cells.csv.record.json").read_text())
        assert record["tables"][0]["output"]["sha256"] == sources.hash_of([folder / "cells.csv"])
