"""The commands of the job, as a user would type them: exit codes and sentences."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from pathlib import Path

import duckdb
import pytest

from duckanon.cli import main as cli
from duckanon.job import release
from tests.job.conftest import changed


def output(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    try:
        code = cli.main(arguments)
    except SystemExit as stopped:
        code = int(stopped.code or 0)
    printed = capsys.readouterr()
    return code, printed.out, printed.err


def test_exit_codes_tell_the_cases_apart(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert output(capsys, "release", "policy.toml") == (0, "", "")
    code, _, err = output(capsys, "release", "--policy", str(changed(folder, ("k = 10", "k = 10\nl = 4"))))
    assert (code, err.count("\n")) == (1, 1)
    code, _, err = output(capsys, "release", str(changed(folder, ("k = 10", "k = 1"))))
    assert (code, err) == (2, f"{folder}/policy.toml, line 19: promises.k must be at least 2; got 1.\n")
    changed(folder)
    assert output(capsys, "release", "policy.toml", "--from", "nothing.csv")[0] == 3
    assert output(capsys, "release", "no.toml")[0] == 3
    assert output(capsys, "release")[0] == 2
    assert output(capsys, "release", "policy.toml", "--nonsense")[0] == 2
    code, out, err = output(capsys, "release", "policy.toml", "--dry-run", "--progress")
    assert code == 0
    assert "dry run: table, 240 rows" in out
    assert "reading table ..." in err


def test_a_fault_of_ours_is_no_broken_promise(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from duckanon.job import readback

    def failing(*_: object) -> None:
        raise RuntimeError("Person 7")

    monkeypatch.setattr(readback, "shape", failing)
    code, _, err = output(capsys, "release", str(folder / "policy.toml"))
    assert (code, err) == (3, "duckanon release: it failed unexpectedly (RuntimeError).\n")


@pytest.mark.thorough
def test_a_draft_can_be_checked_and_released(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with duckdb.connect("clinic.duckdb") as con:
        con.execute("""CREATE TABLE patients AS SELECT i AS id, 'p' || i || '@example.org' AS email, 20 + i % 4 AS age,
            ['f', 'm'][1 + i % 2] AS sex, ['flu', 'cold'][1 + i // 8 % 2] AS diagnosis, i AS "odd ""name"" # 1"
            FROM range(240) AS t(i)""").fetchall()
    arguments = ("policy", "init", "--from", "clinic.duckdb", "--table", "patients", "--to", "draft.toml")
    assert output(capsys, *arguments) == (0, "", "")
    draft = tomllib.loads((folder / "draft.toml").read_text())
    assert draft["columns"]["email"] == "identifier"
    assert draft["columns"]["age"] == draft["columns"]["sex"] == "quasi_identifier"
    assert draft["columns"]["diagnosis"] == "sensitive"
    assert 'odd "name" # 1' in draft["columns"]
    assert output(capsys, *arguments)[0] == 3  # it is not overwritten
    code, out, _ = output(capsys, "policy", "check", "draft.toml")
    assert (code, out.partition(";")[0]) == (0, "patients: generalize to patients_release.parquet")
    assert output(capsys, "policy", "check", str(changed(folder, ('"sensitive"', '"secret"'))))[0] == 2
    assert release("draft.toml", dry_run=True)["outcome"] == "dry run"


@pytest.mark.thorough
@pytest.mark.usefixtures("folder")
def test_a_draft_with_several_sensitive_columns_promises_no_diversity(capsys: pytest.CaptureFixture[str]) -> None:
    """Classes are shaped for one of them: the first release of a draft failed, as smokers were among themselves."""
    with duckdb.connect() as con:
        con.execute("""COPY (SELECT 20 + i % 4 AS age, 90 + i % 40 AS glucose, 20 + i % 4 < 22 AS smoker
                             FROM range(240) AS t(i)) TO 'health.parquet'""").fetchall()
    code, text, _ = output(capsys, "policy", "init", "--from", "health.parquet")
    assert code == 0
    assert "# l = 2 " in text
    assert "l" not in tomllib.loads(text)["promises"]


def test_history(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    release(folder / "policy.toml")
    name = "release.parquet.record.json"
    code, out, _ = output(capsys, "history", name, name)
    assert code == 0
    assert "released again" in out
    (folder / "other.json").write_text(json.dumps([]))
    assert output(capsys, "history", name, "other.json")[0] == 3


def test_the_job_is_loaded_only_when_it_is_asked_for() -> None:
    """`import duckanon` and the parser are quick: pydantic is not loaded by them."""
    code = (
        "import sys, duckanon, duckanon.cli.arguments; sys.exit('pydantic' in sys.modules or 'duckdb' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
