"""Releases without a target: read as Arrow batches, and nothing of them is left on the disk."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from duckanon import large

_KILLED = """
import sys
from duckanon import large
from duckanon.large import pipeline
read = pipeline._read
def wait(paths):
    print("part", flush=True)
    sys.stdin.read()
    return read(paths)
pipeline._read = wait
large.boxes(sys.argv[1], None, ["age", "pay"], 5, temporary=sys.argv[2])
"""


def opened_in(folder: Path) -> list[str]:
    """List the files below a folder that this process has open, those without a name too."""
    links = []
    for descriptor in Path("/proc/self/fd").iterdir():
        try:
            links.append(os.readlink(descriptor))
        except OSError:
            continue
    return [link for link in links if link.startswith(str(folder))]


@pytest.mark.thorough
@pytest.mark.skipif(sys.platform != "linux", reason="the list of open files is that of Linux")
def test_a_reader_gives_the_counted_release_and_leaves_nothing(people: pa.Table, spill: Path) -> None:
    done = large.boxes(people, None, ["age", "pay"], 5, temporary=spill)
    assert not list(spill.iterdir())
    assert len(opened_in(spill)) == 1
    assert done.reader is not None
    table = done.reader.read_all()
    sizes = table.group_by(["box"]).aggregate([([], "count_all")])["count_all"].to_pylist()
    assert (table.num_rows, min(sizes)) == (done.rows, done.smallest_class)
    assert not opened_in(spill)


@pytest.mark.thorough
@pytest.mark.skipif(sys.platform != "linux", reason="the list of open files is that of Linux")
@pytest.mark.parametrize("read", [0, 1])
def test_a_reader_that_is_dropped_takes_its_file_with_it(read: int, people: pa.Table, spill: Path) -> None:
    done = large.pica(people, None, ["age", "pay", "sex"], cluster_size=100, checks="off", temporary=spill)
    assert done.reader is not None
    for _ in range(read):
        done.reader.read_next_batch()
    assert opened_in(spill)
    del done
    assert not opened_in(spill)
    assert not list(spill.iterdir())


@pytest.mark.thorough
def test_a_release_with_a_target_has_no_reader(people: pa.Table, tmp_path: Path) -> None:
    assert large.microaggregate(people, tmp_path / "release.parquet", ["age", "pay"], 5).reader is None


@pytest.mark.thorough
def test_what_a_killed_release_left_is_removed_and_no_other_run_is_touched(
    people: pa.Table, tmp_path: Path, spill: Path
) -> None:
    """Two releases without a target run; one is killed. A third removes its parts, and leaves the other's alone."""
    source = tmp_path / "people.parquet"
    pq.write_table(people, source)
    command = [sys.executable, "-c", _KILLED, str(source), str(spill)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    folders: list[set[str]] = [set()]
    runs = []
    for _ in range(2):
        runs.append(subprocess.Popen(command, **pipes))  # type: ignore[call-overload]
        assert runs[-1].stdout.readline() == "part\n"
        folders.append({path.name for path in spill.iterdir() if path.is_dir()})
    os.kill(runs[0].pid, signal.SIGKILL)
    runs[0].communicate()
    assert large.boxes(source, None, ["age", "pay"], 5, temporary=spill).rows == people.num_rows
    assert {path.name for path in spill.iterdir() if path.is_dir()} == folders[2] - folders[1]
    runs[1].communicate("")
    assert runs[1].returncode == 0
    assert not list(spill.iterdir())
