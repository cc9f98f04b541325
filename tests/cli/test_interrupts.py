"""Ctrl-C in the command: it ends the statement at once, with one sentence, and leaves the shell alive."""

from __future__ import annotations

import os
import pty
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

PEOPLE = """
    CREATE TEMP TABLE people AS SELECT hash(i) % 100_000 AS income, hash(i + 1) % 1_000_003 / 1_000_003 AS share
    FROM range(200_000) AS r(i);
    SELECT 'ready' AS sign;
"""
TAKES_MINUTES = "FROM anon.boxes('people', ['income', 'share'], 5, effort := 'thorough');\n"


def started(home: Path, *arguments: str, stdin: int = subprocess.DEVNULL) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-u", "-m", "duckanon.cli", *arguments],
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"HOME": str(home)},
    )


def processor_seconds(process: subprocess.Popen[str]) -> float:
    """Return what a process has taken of the processor: a busy machine makes everything take longer but that."""
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def let_work(process: subprocess.Popen[str], seconds: float) -> float:
    """Wait until a process has worked for some time, and return what it has taken so far."""
    begun = processor_seconds(process)
    while (taken := processor_seconds(process)) < begun + seconds:
        time.sleep(0.02)
    return taken


def read_until(process: subprocess.Popen[str], sign: str) -> None:
    assert process.stdout is not None
    while sign not in (line := process.stdout.readline()):
        assert line, process.communicate()


@pytest.mark.thorough
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="signals of POSIX, and what Linux tells of processes")
@pytest.mark.parametrize("how", ["run", pytest.param("-c", marks=pytest.mark.thorough)])
def test_ctrl_c_ends_a_script_at_once(how: str, tmp_path: Path) -> None:
    script = PEOPLE + TAKES_MINUTES
    (tmp_path / "long.sql").write_text(script, encoding="utf-8")
    process = started(tmp_path, *(("run", str(tmp_path / "long.sql")) if how == "run" else ("-c", script)))
    read_until(process, "ready")
    let_work(process, 1)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    taken = processor_seconds(process)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert after.ru_utime - before.ru_utime < taken + 10
    assert errors == "duckanon: interrupted.\n"
    assert process.returncode == 1


@pytest.mark.thorough
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="signals of POSIX, and what Linux tells of processes")
def test_ctrl_c_leaves_the_shell_and_its_tables(tmp_path: Path) -> None:
    keyboard, terminal = pty.openpty()
    process = started(tmp_path, "shell", stdin=terminal)
    os.write(keyboard, PEOPLE.encode())
    read_until(process, "ready")
    for _ in range(3):
        os.write(keyboard, b"SELECT 'begun' AS sign; " + TAKES_MINUTES.encode())
        read_until(process, "begun")
        taken = let_work(process, 0.5)
        process.send_signal(signal.SIGINT)
        read_until(process, "Interrupted.")
        assert processor_seconds(process) < taken + 10
    os.write(keyboard, b"SELECT count(*) AS still_there FROM people;\n.quit\n")
    out, errors = process.communicate()
    os.close(keyboard)
    os.close(terminal)
    assert "200000" in out
    assert errors == ""
    assert process.returncode == 0
