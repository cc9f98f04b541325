"""Jobs that are given memory: by parts beyond it, with all that others promise, and refused where that is not made."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from duckanon import large
from duckanon.cli import main
from duckanon.cli.release_command import summary
from duckanon.job import FileProblem, PolicyError, PromiseBroken, backends, release
from duckanon.job.record import differences
from duckanon.large import workspace
from duckanon.large.workspace import Budget
from tests.job.conftest import changed, leave_release

K = 10
ROWS = 3_000
PEOPLE = f"""
    SELECT i AS id, i // 2 AS patient, 'Person ' || i AS name, 18 + (hash(i, 1) % 60)::INTEGER AS age,
           (hash(i, 2) % 900)::INTEGER AS sex, ['flu', 'asthma', 'cold'][1 + (hash(i, 3) % 3)::INTEGER] AS diagnosis
    FROM range({ROWS}) AS t(i)
"""
BUDGET = workspace.budget
QUICK = ("boxes", "release.csv")
METHODS = {
    "boxes": "",
    "recode": 'effort = "quick"',
    "microaggregate": 'method = "fast"\nlabel = "interval"',
    "generalize": "",
}


@pytest.fixture
def people(folder: Path, monkeypatch: pytest.MonkeyPatch, database: duckdb.DuckDBPyConnection) -> Path:
    """Make a folder in which every release would take a terabyte, and parts have a few hundred rows."""
    database.execute(f"COPY ({PEOPLE}) TO '{folder}/people.parquet'").fetchall()
    temporary = folder / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    monkeypatch.setattr(backends, "COSTS", dict.fromkeys(backends.COSTS, backends.Cost(10**12, 0, 0)))
    monkeypatch.setattr(workspace, "budget", lambda memory: Budget(300 * 10**6, 400_000))
    return folder


def policy(folder: Path, method: str, *more: tuple[str, str]) -> Path:
    return changed(folder, ('name = "suppress_cells"', f'name = "{method}"\n{METHODS.get(method, "")}'), *more)


@pytest.mark.parametrize(
    ("method", "target"),
    [
        pytest.param(method, target, marks=() if (method, target) == QUICK else pytest.mark.thorough)
        for method in METHODS
        for target in ("release.parquet", "release.csv", "release.duckdb")
    ],
)
def test_by_parts_the_file_has_what_the_record_tells(method: str, target: str, people: Path) -> None:
    """Plain SQL counts classes and rows on the file; people, who are not in it, are counted by the job."""
    if method == "generalize":
        pytest.importorskip("sqlglot")
        more = [("release.parquet", target), ('patient = "person"', 'patient = "identifier"')]
    else:
        more = [("release.parquet", target)]
    record = release(policy(people, method, *more), memory="100GB")
    (table,) = record["tables"]
    assert table["memory"]["by_parts"]
    assert table["memory"]["parts"] > 1
    assert f"  processed in {table['memory']['parts']} partitions, within 100GB\n" in summary(record)
    rows = {"parquet": f"'{target}'", "csv": f"read_csv('{target}', all_varchar = true)", "duckdb": 'made.main."table"'}
    with duckdb.connect() as con:
        if target.endswith("duckdb"):
            con.execute(f"ATTACH '{target}' AS made (READ_ONLY)").fetchall()
        smallest, count = con.execute(
            "SELECT min(n), sum(n) FROM (SELECT * EXCLUDE (diagnosis), count(*) AS n "
            f"FROM {rows[target.split('.')[1]]} GROUP BY ALL)"
        ).fetchone()
        columns = [row[0] for row in con.execute(f"DESCRIBE FROM {rows[target.split('.')[1]]}").fetchall()]
    measured = {promise["name"]: promise["measured"] for promise in table["promises"]}
    assert K <= measured["k"] <= smallest
    assert table["output"]["rows"] == count
    assert not {"id", "patient", "name"} & set(columns)
    assert json.loads((people / f"{target}.record.json").read_text()) == record
    assert not list(people.glob(".*"))
    assert not list((people / "temporary").iterdir())


@pytest.mark.thorough
def test_the_report_says_it_and_no_more(people: Path) -> None:
    """It leaves with the release: neither the number of parts nor what steps lose of a column's range is in it."""
    pytest.importorskip("sqlglot")
    path = policy(people, "generalize", ('patient = "person"', 'patient = "identifier"'))
    record = release(path, memory="100GB", report="report.html")
    (note, *_) = record["tables"][0]["memory"]["notes"]
    assert "lose" in note
    page = (people / "report.html").read_text()
    assert "processed in partitions" in page
    assert "in steps of" not in page
    assert "100GB" not in page


@pytest.mark.thorough
def test_the_same_columns_come_out_as_in_memory(people: Path) -> None:
    release(policy(people, "boxes"), memory="100GB")
    by_parts = pq.read_schema(people / "release.parquet")
    record = release(policy(people, "boxes"), target="whole.parquet")
    assert "memory" not in record["tables"][0]
    assert pq.read_schema(people / "whole.parquet").names == by_parts.names
    assert pq.read_schema(people / "whole.parquet").types == by_parts.types


def test_what_fits_is_made_in_memory_and_said_so(folder: Path) -> None:
    """And the next run is compared with it, whichever way both were made."""
    record = release(policy(folder, "boxes", ('sex = "quasi_identifier"', 'sex = "free"')), memory="100GB")
    told = record["tables"][0]["memory"]
    assert (told["given"], told["by_parts"], told["parts"], told["notes"]) == ("100GB", False, None, [])
    assert 0 < told["estimated_bytes"] < 100 * 10**9
    other = json.loads(json.dumps(record))
    other["tables"][0]["memory"]["by_parts"] = True
    assert "table: processed in partitions: False -> True" in differences(record, other)


REFUSED: dict[str, tuple[str, str, Callable[[Path], Any]]] = {
    "svd_swap": ("svd_swap", "at all", lambda path: None),
    "mdav": ("microaggregate", 'without method = "fast"', lambda path: None),
    "by": ("boxes", "with by", lambda path: None),
    "l": ("recode", "with l or t", lambda path: None),
    "prediction": (
        "recode",
        "where prediction is promised, which is measured in memory",
        lambda p: None,
    ),
    "plan": ("generalize", "with a plan to save", lambda path: "plan.parquet"),
}
CHANGES: dict[str, list[tuple[str, str]]] = {
    "svd_swap": [("k = 10", "prediction = true"), ('"quasi_identifier"', '"numeric"'), ('"sensitive"', '"numeric"')],
    "mdav": [('method = "fast"', "")],
    "by": [('name = "boxes"', 'name = "boxes"\nby = ["sex"]')],
    "l": [("k = 10", "k = 10\nl = 2")],
    "prediction": [("k = 10", "k = 10\nprediction = true")],
    "plan": [],
}


@pytest.mark.thorough
def test_a_package_that_partitions_need_is_named_before_the_release(
    people: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "sqlglot", None)
    path = policy(people, "generalize")
    words = 'generalize needs sqlglot to process a table in partitions: pip install "duckanon[render]" brings it'
    with pytest.raises(PolicyError, match=re.escape(f"got 100GB, and {words}.")):
        release(path, memory="100GB")
    path.write_text(f'memory = "100GB"\n{path.read_text()}')
    assert main.main(["policy", "check", str(path)]) == 0
    assert capsys.readouterr().out.rstrip().endswith(words)


@pytest.mark.parametrize("case", REFUSED)
def test_memory_that_cannot_be_kept_is_refused(case: str, people: Path) -> None:
    method, sentence, plan = REFUSED[case]
    leave_release(people / "release.parquet", "the last release")
    path = policy(people, method)
    text = path.read_text()
    for before, after in CHANGES[case]:
        assert before in text
        text = text.replace(before, after)
    path.write_text(text)
    words = (
        rf"memory must be at least 1000\.\dGB for {method} of {ROWS} rows; got 100GB, "
        rf"and it cannot be processed in partitions {sentence}\.$"
    )
    with pytest.raises(PolicyError, match=words):
        release(path, memory="100GB", plan=plan(people))
    assert (people / "release.parquet").read_bytes() == b"the last release"
    assert not list((people / "temporary").iterdir())


@pytest.mark.thorough
def test_a_plan_that_is_there_is_applied_within_any_memory(people: Path) -> None:
    release(policy(people, "generalize"), plan="plan.parquet")
    record = release(policy(people, "generalize"), plan="plan.parquet", memory="100GB")
    assert record["tables"][0]["plan"]["reused"]
    assert not record["tables"][0]["memory"]["by_parts"]


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ("a lot", r"line 1: memory must be an amount of memory such as '800MB' or '2GB'\.$"),
        ("1MB", r"^memory must be at least \d+MB here; got 1MB\.$"),
    ],
)
def test_amounts_of_memory(given: str, sentence: str, people: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workspace, "budget", BUDGET)  # as it is, not of a terabyte
    path = policy(people, "boxes")
    path.write_text(f'memory = "{given}"\n' + path.read_text())
    with pytest.raises(PolicyError, match=sentence):
        release(path)
    assert not (people / "release.parquet").exists()


def test_a_bad_release_by_parts_is_found_out(people: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The promise is counted on what the job wrote, whatever made it says: one row of a class of its own is enough."""

    def bad(source: Path, target: Path, cols: list[str], k: int, **given: Any) -> large.Released:
        rows = pq.read_table(source, columns=[*cols, *given["keep"]])
        ages = [99] * len(rows)
        ages[0] = 18
        rows = rows.set_column(0, cols[0], pa.array(ages)).set_column(1, cols[1], pa.array([1] * len(rows)))
        pq.write_table(rows, target)
        return large.Released(len(rows), 3, k)

    monkeypatch.setattr(large, "boxes", bad)
    leave_release(people / "release.parquet", "the last release")
    with pytest.raises(PromiseBroken, match=r"k: promised 10, measured 1\."):
        release(policy(people, "boxes"), memory="100GB")
    assert (people / "release.parquet").read_bytes() == b"the last release"
    assert not list((people / "temporary").iterdir())


def test_refusals_of_parts_are_the_job_s_own(people: Path) -> None:
    """A value that no interval holds, a k that no part has, a type that no Parquet file keeps."""
    with pytest.raises(PromiseBroken, match=r"anon\.boxes: k must be at most the number of records, 3000; got 5000"):
        release(policy(people, "boxes", ("k = 10", "k = 5000")), memory="100GB")
    huge = 'query = "SELECT * REPLACE (age::HUGEINT AS age) FROM source"'
    with pytest.raises(PolicyError, match=r"columns\.age has the type HUGEINT, which cannot be processed"):
        release(policy(people, "boxes", ('"people.parquet"', f'"people.parquet"\n{huge}')), memory="100GB")
    assert sorted(os.listdir(people)) == ["people.parquet", "policy.toml", "temporary"]


_JOB = """
import sys
from duckanon.job import release, backends
from duckanon.large import pipeline, workspace
from duckanon.large.workspace import Budget
backends.COSTS = dict.fromkeys(backends.COSTS, backends.Cost(10**12, 0, 0))
workspace.budget = lambda memory: Budget(300 * 10**6, 20_000)
read = pipeline._read
def slow(paths):
    print("part", flush=True)
    sys.stdin.readline()
    return read(paths)
pipeline._read = slow
release("policy.toml", memory="100GB")
print("done", flush=True)
"""


@pytest.mark.thorough
def test_a_job_by_parts_that_is_killed_leaves_the_last_release(people: Path) -> None:
    """What it left of the originals is gone after the next run."""
    policy(people, "boxes")
    leave_release(people / "release.parquet", "the last release")
    for parts in (0, 1, 2):
        environment = {**os.environ, "TMPDIR": str(people / "temporary")}
        command = [sys.executable, "-c", _JOB]
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment, bufsize=1
        )
        assert process.stdin is not None
        assert process.stdout is not None
        for _ in range(parts):
            assert process.stdout.readline() == "part\n"
            process.stdin.write("\n")
        assert process.stdout.readline() == "part\n"
        os.kill(process.pid, signal.SIGKILL)
        assert "done" not in process.communicate()[0]
        assert (people / "release.parquet").read_bytes() == b"the last release"
        assert list((people / "temporary").iterdir())
    release(people / "policy.toml", memory="100GB")
    assert pq.read_metadata(people / "release.parquet").num_rows == ROWS
    assert not list((people / "temporary").iterdir())
    assert not list(people.glob(".*"))


def test_a_target_that_cannot_be_written(people: Path) -> None:
    with pytest.raises(FileProblem, match=r"there is no folder"):
        release(policy(people, "boxes", ("release.parquet", "nowhere/release.parquet")), memory="100GB")


@pytest.mark.thorough
def test_the_command_takes_memory(people: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Notes go to standard error, not into the report."""
    policy(people, "svd_swap")
    with pytest.raises(SystemExit, match=r"^2$"):
        main.main(["release", "policy.toml", "--memory", "much"])
    assert "--memory: must be an amount of memory such as 800MB or 2GB; got much" in capsys.readouterr().err
    policy(people, "boxes")
    assert main.main(["release", "policy.toml", "--memory", "100GB", "--progress", "--dry-run"]) == 0
    printed = capsys.readouterr()
    assert re.search(r"in partitions: in memory it would take about 100\d\.", printed.err)  # and what the tests hold
    assert " partitions, within 100GB\n" in printed.out
    assert not (people / "release.parquet").exists()
