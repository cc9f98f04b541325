"""Exit codes and sentences hold where things are odd: full disks, deep brackets, long numbers, no locks."""

from __future__ import annotations

import os
import re
import resource
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

from duckanon._bridge import sql
from duckanon._core.common.resources import read_memory
from duckanon.cli import main as cli
from duckanon.cli.output import _defuse
from duckanon.job import FileProblem, JobError, PolicyError, keys, policy_file, release
from duckanon.job.places import Outbox
from tests.job.conftest import changed


class Full:
    """A stream on a full disk."""

    encoding = "utf-8"

    def write(self, text: str) -> int:
        raise OSError(28, "No space left on device")

    def flush(self) -> None:
        raise OSError(28, "No space left on device")

    def isatty(self) -> bool:
        return False

    def fileno(self) -> int:
        return self.descriptor

    def __init__(self) -> None:
        self.descriptor = os.open(os.devnull, os.O_WRONLY)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("code", "change"),
    [(0, ("k = 10", "k = 10")), (1, ("k = 10", "k = 10\nl = 4")), (2, ("k = 10", "k = 1")), (3, ("people.", "no."))],
)
def test_a_log_that_cannot_be_written_changes_no_exit_code(
    code: int, change: tuple[str, str], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy = str(changed(folder, change))
    for names in (["stderr"], ["stdout", "stderr"]):
        with monkeypatch.context() as patch:
            for name in names:
                patch.setattr(sys, name, Full())
            assert cli.main(["release", policy, "--progress"]) == code
    assert (folder / "release.parquet").exists() == (code == 0)


@pytest.mark.thorough
def test_a_draft_that_cannot_be_written(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is the output itself, and no broken promise."""
    monkeypatch.setattr(sys, "stdout", Full())
    assert cli.main(["policy", "init", "--from", str(folder / "people.parquet")]) == 3


@pytest.mark.thorough
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device of Linux")
@pytest.mark.parametrize(
    ("arguments", "code"), [(["release"], 2), pytest.param(["history", "a", "b"], 3, marks=pytest.mark.thorough)]
)
def test_a_full_disk_at_the_end_of_the_process(arguments: list[str], code: int) -> None:
    """Python writes what is left when it ends, and would leave with 120 where it cannot."""
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-m", "duckanon.cli", *arguments]
        assert subprocess.run(command, stdout=full, stderr=full, check=False).returncode == code


DEEP = {
    "array": ('name = "suppress_cells"', f'name = "boxes"\nstatistics = {"[" * 3000}{"]" * 3000}'),
    "table": ('name = "suppress_cells"', f'name = "boxes"\nstatistics = [{"{a=" * 3000}1{"}" * 3000}]'),
    "less deep": ('name = "suppress_cells"', f'name = "boxes"\nstatistics = [{"{a=" * 90}1{"}" * 90}]'),
    "query": ('path = "people.parquet"', f"query = \"SELECT {'[' * 3000}1{']' * 3000} FROM 'people.parquet'\""),
    "wide query": ('path = "people.parquet"', f"query = \"SELECT {'1 + ' * 3000}1 FROM 'people.parquet'\""),
    "query that is deep with what is around it": (
        'path = "people.parquet"',
        f"query = \"SELECT {'[' * 990}1{']' * 990} AS id FROM 'people.parquet'\"",
    ),
    "400 digits": ("k = 10", f"k = {'9' * 400}"),
    "5,000 digits": ("k = 10", f"k = {'9' * 5000}"),
    "400 digits and a fraction": ("k = 10", f"k = 10\nt = {'9' * 400}.5"),
    "5,000 digits and a fraction": ("k = 10", f"k = 10\nl = {'9' * 5000}.5"),
    "minus": ("k = 10", f"k = -{'9' * 400}"),
    "exponent": ("k = 10", "k = 10\nl = 1e999"),
    "nan": ("k = 10", "k = 10\nmax_correlation_difference = nan"),
    "64 bits": ("k = 10", f"k = {2**63}"),
    "memory": ("[source]", f'memory = "{"9" * 400}GB"\n[source]'),
    "memory of 5,000": ("[source]", f'memory = "{"9" * 5000}GB"\n[source]'),
    "days": ('"quasi_identifier"\nsex', f'{{ role = "free", shift_days = {"9" * 400} }}\nsex'),
    "column": ("[source]", "[source]\nnope = 1"),
    "unknown column in the query": ('path = "people.parquet"', "query = \"SELECT nope FROM 'people.parquet'\""),
}


@pytest.mark.thorough
@pytest.mark.parametrize("case", DEEP)
def test_deep_brackets_and_long_numbers_are_the_policys_fault(
    case: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    policy = str(changed(folder, DEEP[case]))
    assert cli.main(["release", policy]) == 2
    (sentence,) = capsys.readouterr().err.splitlines()
    assert sentence.endswith(".")
    assert len(sentence) < 300
    assert "{" not in sentence


def test_the_line_of_a_long_number(folder: Path) -> None:
    with pytest.raises(PolicyError, match=r"line 19: promises\.k must be a number of at most 64 bits\.$"):
        release(changed(folder, ("k = 10", f"k = {'9' * 400}")))


@pytest.mark.parametrize("digits", [18, 400, 5000])
def test_amounts_of_memory_that_no_machine_has(digits: int) -> None:
    with pytest.raises(ValueError, match=r"memory must be an amount"):
        read_memory(f"{'9' * digits}GB")
    with pytest.raises(SystemExit, match=r"^2$"):
        cli.main(["release", "policy.toml", "--memory", f"{'9' * digits}GB"])


def test_records_that_are_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 1 would say that a promise is broken."""
    for text in ("[" * 100_000, f'{{"tables": [{"9" * 5000}]}}', '{"tables": [1]}', '{"tables": [{"name": "x"}]}'):
        (tmp_path / "a.json").write_text(text)
        assert cli.main(["history", str(tmp_path / "a.json"), str(tmp_path / "a.json")]) == 3
        assert len(capsys.readouterr().err.splitlines()) == 1


_WITHOUT_FCNTL = """
import sys
sys.modules["fcntl"] = None
import os
from pathlib import Path
from duckanon._core.common.outbox import Outbox
path = Path(sys.argv[1])
if path.name == "killed.csv":
    Outbox([path], spill_in=path.parent).__enter__()
    os._exit(9)
with Outbox([path], spill_in=path.parent) as outbox:
    outbox.write(path, "new")
    try:
        Outbox([path], spill_in=path.parent).__enter__()
    except OSError as problem:
        print(problem)
    outbox.publish()
"""


def test_locks_where_the_system_has_none(tmp_path: Path) -> None:
    """Windows, and Python in a browser: no module fcntl. What a killed process left blocks nobody."""
    path = tmp_path / "release.csv"
    done = subprocess.run(
        [sys.executable, "-c", _WITHOUT_FCNTL, str(path)], capture_output=True, text=True, check=False
    )
    assert done.stdout.startswith(f"{path}: another run writes it at the moment")
    assert (path.read_text(), done.stderr) == ("new", "")
    killed = [sys.executable, "-c", _WITHOUT_FCNTL, str(tmp_path / "killed.csv")]
    assert subprocess.run(killed, check=False).returncode == 9
    assert subprocess.run(killed, check=False).returncode == 9  # the lock of the first was broken


def test_records_and_reports_are_locked_as_targets_are(folder: Path) -> None:
    policy = changed(folder, ("[source]", 'record = "record.json"\nreport = "report.html"\n[source]'))
    for name in ("record.json", "report.html", "release.parquet"):
        with Outbox([folder / name]), pytest.raises(FileProblem, match=rf"{name}: another run writes it at the moment"):
            release(policy)
    assert not list(folder.glob(".*"))


@pytest.mark.thorough
def test_two_policies_that_share_a_report_are_told_so(folder: Path) -> None:
    release(changed(folder, ("[source]", 'report = "report.html"\n[source]')))
    before = (folder / "report.html").read_bytes()
    change = ("[source]", 'report = "report.html"\n[source]'), ("release.parquet", "other.parquet")
    with pytest.raises(FileProblem, match=r"report\.html: it is the report of another policy, policy\.toml, which"):
        release(changed(folder, *change, name="other.toml"))
    assert (folder / "report.html").read_bytes() == before


def test_two_policies_that_share_a_record_are_told_so(folder: Path) -> None:
    shared = ("[source]", 'record = "record.json"\n[source]')
    release(changed(folder, shared))
    before = (folder / "record.json").read_bytes()
    other = changed(folder, shared, ("release.parquet", "other.parquet"), name="other.toml")
    with pytest.raises(FileProblem, match=r"record\.json: it is the record of another policy, policy\.toml, which"):
        release(other)
    assert (folder / "record.json").read_bytes() == before
    (folder / "record.json").rename(folder / "release.parquet.record.json")
    (warning,) = release(changed(folder, shared, name="third.toml"), dry_run=True)["warnings"][:1]
    assert warning.startswith(
        "release.parquet.record.json: it is the record of the replaced release, not of the new one"
    )
    (folder / "release.parquet.record.json").rename(folder / "record.json")
    renamed = changed(folder, shared, name="renamed.toml")
    assert release(renamed, dry_run=True)["warnings"][0] == (
        "record.json: the release that is replaced was made by another policy, policy.toml."
    )


def test_a_key_that_others_may_read_is_a_warning(folder: Path) -> None:
    key = folder / "key"
    key.write_text("0123456789abcdef-not-to-be-seen")
    person = ('"person"', '{ role = "person", pseudonym = true }')
    policy = changed(folder, person, ("k = 10", 'k = 10\n[key]\nfile = "key"'))
    for mode, is_warned in ((0o600, False), (0o640, True), (0o644, True)):
        key.chmod(mode)
        assert bool(keys.warnings(policy_file.read(policy))) == is_warned
    (warning,) = release(policy, dry_run=True)["warnings"]
    assert warning.startswith("the file of key.file may be read or written by others")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "is not set"),
        (" \n", "is not set"),
        ("fifteen letters", "must have a key of at least 16 characters"),
        ("sixteen letters!", None),
    ],
)
def test_a_key_that_is_missing_is_another_fault_than_a_short_one(folder: Path, text: str, says: str | None) -> None:
    (folder / "key").write_text(text)
    policy = policy_file.read(changed(folder, ("k = 10", 'k = 10\n[key]\nfile = "key"')))
    if says is None:
        assert keys.read(policy).reveal() == text  # type: ignore[union-attr]
        return
    with pytest.raises(FileProblem) as refusal:
        keys.read(policy)
    assert str(refusal.value).endswith(f": the file of key.file {says}.")


def test_json_in_an_error_becomes_a_sentence(folder: Path) -> None:
    """DuckDB 2.0 writes in the background, and quotes what went wrong there as JSON."""
    inner = (
        '{"exception_type":"IO","exception_message":"Could not write file \\"x.csv\\": File too large","errno":"27"}'
    )
    error = duckdb.IOException(f"IO Error: Async write failed for range [offset=27, size=983093]: {inner}")
    assert sql.reason(error) == 'IO Error: Could not write file "x.csv": File too large'
    cut = duckdb.IOException(f"IO Error: Async write failed: {inner[:60]}")
    assert "{" not in sql.reason(cut)
    assert "exception" not in sql.reason(cut)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    for target in ("release.csv", "release.parquet"):
        policy = changed(folder, ("release.parquet", target))
        resource.setrlimit(resource.RLIMIT_FSIZE, (500, hard))
        try:
            with pytest.raises(JobError) as raised:
                release(policy)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        assert "exception_type" not in str(raised.value)
        assert re.search(r"too large", str(raised.value)), str(raised.value)


CELLS = ["=1+1", "+x", "-x", "@cmd", "\t=1", "\rx", "plain", "-5", "+5.5e3", "1;=2", '"=1', "＝1", "'=1", " =1", "a=b"]


@pytest.mark.parametrize("target", ["release.csv", pytest.param("release.csv.gz", marks=pytest.mark.thorough)])
def test_no_formulas_in_csv(target: str, folder: Path, database: duckdb.DuckDBPyConnection) -> None:
    values = sql.literal(CELLS)
    database.execute(
        f"""COPY (SELECT i AS id, i AS patient, 'x' AS name, -(i % 4) AS "=age", {values}[1 + i % {len(CELLS)}] AS sex,
            -(i % 2) / 2 AS diagnosis FROM range(600) AS t(i)) TO 'people.parquet'"""
    ).fetchall()
    policy = changed(
        folder,
        ("release.parquet", target),
        ("age =", '"=age" ='),
        ("[columns]", "no_formulas = true\n[columns]"),
    )
    record = release(policy)
    lines = duckdb.sql(f"FROM read_csv('{target}', header = false, all_varchar = true)").fetchall()
    assert lines[0] == ("'=age", "sex", "diagnosis")
    assert {row[0] for row in lines[1:]} == {"0", "-1", "-2", "-3"}
    expected = {_defuse(cell) if cell[0] not in "\t\r" else f"'{cell}" for cell in CELLS}
    assert {row[1] for row in lines[1:]} == expected
    assert {row[2] for row in lines[1:]} == {"0.0", "-0.5"}
    assert record["tables"][0]["promises"][0]["measured"] == 10
    release(policy)  # compared with the last one


def test_no_formulas_from_the_command(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    policy = str(changed(folder))
    assert cli.main(["release", policy, "--no-formulas"]) == 2
    assert "--no-formulas is for CSV files" in capsys.readouterr().err
    assert cli.main(["release", policy, "--no-formulas", "--to", "release.csv"]) == 0
    assert cli.main(["--no-formulas", "release", policy, "--to", "release.csv", "--dry-run"]) == 0
    with pytest.raises(PolicyError, match=r"line 7: target\.no_formulas is for CSV files"):
        release(changed(folder, ("[columns]", "no_formulas = true\n[columns]")))
