"""Which database is opened, and what else the command line takes."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest

import duckanon
from duckanon.cli import arguments, shell
from duckanon.cli.main import leaving_at_once, main
from tests.cli.test_cli import output, registered_once

__all__ = ["registered_once"]  # a fixture

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture
def clinic(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a database, in which the command is given; nothing is registered, which takes long."""
    monkeypatch.setattr(duckanon, "connect", lambda path, read_only: duckdb.connect(path, read_only=read_only))
    with duckdb.connect(str(tmp_path / "clinic.duckdb")) as con:
        con.execute("CREATE TABLE patients AS SELECT i AS id FROM range(3) AS t(i)").fetchall()
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def piped(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Give a text to standard input."""

    def pipe(text: str) -> None:
        monkeypatch.setattr(sys, "stdin", io.StringIO(text))

    return pipe


COUNT = "SELECT count(*) AS n FROM patients"


@pytest.mark.parametrize(
    "given",
    [["-c", COUNT, "--db", "clnic.duckdb"], ["clnic.duckdb", "-c", COUNT], ["shell", "--db", "clnic.duckdb"]],
)
def test_a_mistyped_database_is_not_made(clinic: Path, capsys: pytest.CaptureFixture[str], given: list[str]) -> None:
    code, out, err = output(capsys, *given)
    assert (code, out) == (1, "")
    assert err == "duckanon: there is no database file clnic.duckdb; name another, or add --create to create it.\n"
    assert [entry.name for entry in clinic.iterdir()] == ["clinic.duckdb"]


@pytest.mark.parametrize("given", [["--db", "new.duckdb"], ["new.duckdb"], ["new"]])
def test_a_database_is_made_where_asked_for(clinic: Path, capsys: pytest.CaptureFixture[str], given: list[str]) -> None:
    assert output(capsys, *given, "--create", "-c", "CREATE TABLE t AS SELECT 1 AS i")[0] == 0
    assert (clinic / given[-1]).exists()
    assert output(capsys, given[-1], "--create", "-c", "FROM t", "--format", "csv") == (0, "i\n1\n", "")


def test_a_database_alone_opens_the_shell(
    clinic: Path, capsys: pytest.CaptureFixture[str], piped: Callable[[str], None]
) -> None:
    piped(f"{COUNT};\n.tables\n")
    assert output(capsys, "clinic.duckdb", "--format", "csv") == (0, "n\n3\npatients\n", "")
    piped(f"{COUNT};\n.quit\nSELECT 2 AS b;\n")
    assert output(capsys, "--read-only", "--db", str(clinic / "clinic.duckdb"), "--format", "csv")[1] == "n\n3\n"


@pytest.mark.thorough
@pytest.mark.parametrize(
    "given",
    [
        ["--db", "clinic.duckdb", "run", "job.sql", "--format", "csv"],
        ["clinic.duckdb", "--format=csv", "run", "job.sql"],
        ["--format", "csv", "run", "job.sql", "--db", "clinic.duckdb"],
        ["clinic.duckdb", "--format", "csv", "-c", COUNT],
        ["-c", COUNT, "clinic.duckdb", "--format", "csv"],
    ],
)
def test_options_count_before_and_after_a_command(
    clinic: Path, capsys: pytest.CaptureFixture[str], given: list[str]
) -> None:
    (clinic / "job.sql").write_text(f"{COUNT};", encoding="utf-8")
    assert output(capsys, *given) == (0, "n\n3\n", "")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["a.duckdb", "--db", "b.duckdb"], "a.duckdb is not a command, and --db names a database already"),
        (["a.duckdb", "b.duckdb"], "invalid choice: 'b.duckdb'"),
        (["-c", "SELECT 1", "shell"], "-c cannot be used together with the command shell"),
        (["shel"], f"shel is neither a command ({', '.join(arguments.COMMANDS)}) nor a database file"),
        (["--form", "csv", "-c", "SELECT 1"], "csv is neither a command"),
    ],
)
def test_what_does_not_go_together(capsys: pytest.CaptureFixture[str], given: list[str], said: str) -> None:
    code, out, err = output(capsys, *given)
    assert (code, out) == (1, "")
    assert said in err
    assert len(err.splitlines()) == 1


@pytest.mark.parametrize("path", [":memory:", "", "md:clinic", "s3://bucket/clinic.duckdb"])
def test_what_is_no_local_file_is_left_to_duckdb(path: str) -> None:
    assert arguments.database(arguments.parse(["-c", "SELECT 1", "--db", path])) == (path or ":memory:")


@pytest.mark.usefixtures("clinic")
def test_no_formulas_on_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    query = "SELECT '=1+1' AS a, -1 AS b"
    assert output(capsys, "-c", query, "--format", "csv")[1] == "a,b\n=1+1,-1\n"
    assert output(capsys, "--no-formulas", "-c", query, "--format", "csv")[1] == "a,b\n'=1+1,-1\n"


@pytest.mark.usefixtures("registered_once")
@pytest.mark.parametrize("name", ["eusilc.csv", "people.json"])
def test_a_file_is_no_module_of_python(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).write_text('{"a": 1}\n' if name.endswith("json") else "a\n1\n", encoding="utf-8")
    query = f"FROM '{name}'; SELECT k FROM anon.k_anonymity('{name}', ['a'])"
    assert output(capsys, "-c", query, "--format", "csv") == (0, "a\n1\nk\n1\n", "")


@pytest.mark.usefixtures("registered_once")
def test_statements_end_where_duckdb_ends_them(capsys: pytest.CaptureFixture[str]) -> None:
    script = r"SELECT E'it\'s; x' AS a; SELECT 1 AS a$b$; SELECT $b$ ; $b$ AS c"
    assert output(capsys, "-c", script, "--format", "csv") == (0, "a\nit's; x\na$b$\n1\nc\n ; \n", "")


def test_an_interrupt_while_libraries_are_loaded(tmp_path: Path) -> None:
    """Some libraries catch whatever is raised while they are loaded: the command ends all the same, in a sentence."""
    (tmp_path / "duckdb.py").write_text(
        "import os, signal, time\n"
        "try:\n    os.kill(os.getpid(), signal.SIGINT)\n    time.sleep(20)\n"
        "except KeyboardInterrupt:\n    raise ImportError('half of it') from None\n",
        encoding="utf-8",
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)])}
    command = [sys.executable, "-m", "duckanon.cli", "-c", "SELECT 1"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "duckanon: interrupted.\n")


def test_interrupts_are_answered_as_before_afterwards() -> None:
    before = signal.getsignal(signal.SIGINT)
    with leaving_at_once():
        assert signal.getsignal(signal.SIGINT) is not before
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.usefixtures("registered_once")
def test_an_interrupt_at_work_is_one_sentence(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(shell, "run_shell", stopped)
    assert output(capsys, "shell") == (1, "", "duckanon: interrupted.\n")


def test_a_job_runs_with_its_streams_closed(clinic: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for stream in ("stdin", "stdout", "stderr"):
        monkeypatch.setattr(sys, stream, None)
    assert main(["clinic.duckdb", "-c", "COPY patients TO 'released.csv'; SELECT 1"]) == 0
    assert (clinic / "released.csv").read_text(encoding="utf-8") == "id\n0\n1\n2\n"
    assert main(["clinic.duckdb"]) == 0
    assert main(["clinic.duckdb", "-c", "FROM nope"]) == 1


@pytest.mark.parametrize(
    ("content", "outcome"),
    [
        (b"\xef\xbb\xbfSELECT 1 AS a;\r\n", (0, "a\n1\n", "")),
        ("SELECT 'ä';".encode("latin-1"), (1, "", "duckanon: job.sql: it is not UTF-8 text.\n")),
    ],
)
def test_files_of_other_systems(
    clinic: Path, capsys: pytest.CaptureFixture[str], content: bytes, outcome: tuple[int, str, str]
) -> None:
    (clinic / "job.sql").write_bytes(content)
    assert output(capsys, "run", "job.sql", "--format", "csv") == outcome
