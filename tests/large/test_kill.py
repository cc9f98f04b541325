"""Releases that are killed leave what was there before, and the next one removes their parts."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from duckanon import large
from duckanon._core.common import progress
from duckanon.large import boxes_release, workspace

_RELEASE = """
import sys, time
from duckanon import large
from duckanon.large import pipeline, workspace
from duckanon.large.workspace import Budget
workspace.budget = lambda memory: Budget(300 * 10**6, 200_000)
read = pipeline._read
def slow(paths):
    print("part", flush=True)
    time.sleep(0.05)
    return read(paths)
pipeline._read = slow
large.boxes(*sys.argv[1:3], ["age", "pay"], 5, temporary=sys.argv[3], replace=True)
print("done", flush=True)
"""


@pytest.mark.thorough
@pytest.mark.parametrize("kills", [1, 10])
def test_killed_releases_leave_the_last_one(kills: int, people: pa.Table, tmp_path: Path, spill: Path) -> None:
    source, target = tmp_path / "people.parquet", tmp_path / "release.parquet"
    pq.write_table(people, source)
    target.write_bytes(b"the last release")
    for number in range(kills):
        process = subprocess.Popen(
            [sys.executable, "-c", _RELEASE, str(source), str(target), str(spill)], stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        assert process.stdout.readline() == "part\n"  # the parts are on the disk
        time.sleep(0.1 * number)
        os.kill(process.pid, signal.SIGKILL)
        rest = process.communicate()[0]
        if "done" not in rest:
            assert target.read_bytes() == b"the last release"
            assert list(spill.iterdir())
        else:
            target.write_bytes(b"the last release")
    large.boxes(source, target, ["age", "pay"], 5, temporary=spill, replace=True)
    assert pq.read_metadata(target).num_rows == people.num_rows
    assert not list(spill.iterdir())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["people.parquet", "release.parquet", "spill"]


def test_an_interrupt_ends_the_making_of_a_part(
    people: pa.Table, tmp_path: Path, spill: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Algorithms run beside DuckDB, whose interrupts they do not hear: they ask whether they should go on."""
    target = tmp_path / "release.parquet"
    target.write_bytes(b"the last release")
    begun = threading.Event()
    ended: list[BaseException] = []

    def endless(*_: object, **__: object) -> None:
        begun.set()
        while True:
            progress.check()
            time.sleep(0.01)

    def run() -> None:
        try:
            large.boxes(people, target, ["age", "pay"], 5, temporary=spill, replace=True)
        except BaseException as error:
            ended.append(error)

    monkeypatch.setattr(boxes_release.boxed_table, "boxes", endless)
    thread = threading.Thread(target=run)
    thread.start()
    assert begun.wait(900)
    workspace.interrupt_all()
    thread.join(900)
    assert [type(error) for error in ended] == [progress.StoppedError]
    assert target.read_bytes() == b"the last release"
    assert not list(spill.iterdir())
