"""A job tells what it does, and stops when another thread wants it to."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

import duckanon
from duckanon._core.common import progress
from duckanon.job import Cancelled
from tests.job.conftest import leave_release


def test_a_job_tells_its_steps(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told: list[str] = []
    record = duckanon.release(folder / "policy.toml", say=told.append)
    assert record["outcome"] == "released"
    assert [text.partition(" ")[0] for text in told] == ["reading", "suppress_cells", "writing", "counting"]
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("step", ["reading", "counting"])
def test_a_cancelled_job_leaves_the_last_release(folder: Path, step: str) -> None:
    leave_release(folder / "release.parquet", "the last release")
    before = sorted(path.name for path in folder.iterdir())
    cancel = threading.Event()

    def say(text: str) -> None:
        if text.startswith(step):
            cancel.set()

    with pytest.raises(Cancelled, match=r"^the job was cancelled; a file at the target, if any, passed all checks"):
        duckanon.release("policy.toml", say=say, cancel=cancel)
    assert (folder / "release.parquet").read_bytes() == b"the last release"
    assert sorted(path.name for path in folder.iterdir()) == before


def test_an_event_that_nobody_sets_changes_nothing(folder: Path) -> None:
    watching = threading.active_count()
    assert duckanon.release("policy.toml", cancel=threading.Event(), dry_run=True)["outcome"] == "dry run"
    assert threading.active_count() == watching
    assert progress.get_watcher() is None


def test_other_failures_are_not_called_cancelled(folder: Path) -> None:
    (folder / "people.parquet").unlink()
    with pytest.raises(duckanon.job.FileProblem):
        duckanon.release("policy.toml", cancel=threading.Event())
