"""Ctrl-C in the command: it ends the statement at once, with one sentence, and leaves the shell alive."""

from __future__ import annotations

import os
import pty
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


def read_until(process: subprocess.Popen[str], sign: str) -> None:
    assert process.stdout is not None
    while sign not in (line := process.stdout.readline()):
        assert line, process.communicate()


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
@pytest.mark.parametrize("how", ["run", pytest.param("-c", marks=pytest.mark.thorough)])
def test_ctrl_c_ends_a_script_at_once(how: str, tmp_path: Path) -> None:
    script = PEOPLE + TAKES_MINUTES
    (tmp_path / "long.sql").write_text(script, encoding="utf-8")
    process = started(tmp_path, *(("run", str(tmp_path / "long.sql")) if how == "run" else ("-c", script)))
    read_until(process, "ready")
    time.sleep(2)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=15)
    assert errors == "duckanon: interrupted.\n"
    assert process.returncode == 1


@pytest.mark.thorough
@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_ctrl_c_leaves_the_shell_and_its_tables(tmp_path: Path) -> None:
    keyboard, terminal = pty.openpty()
    process = started(tmp_path, "shell", stdin=terminal)
    os.write(keyboard, PEOPLE.encode())
    read_until(process, "ready")
    for _ in range(3):
        os.write(keyboard, b"SELECT 'begun' AS sign; " + TAKES_MINUTES.encode())
        read_until(process, "begun")
        time.sleep(1)
        process.send_signal(signal.SIGINT)
        asked = time.monotonic()
        read_until(process, "Interrupted.")
        assert time.monotonic() - asked < 10
    os.write(keyboard, b"SELECT count(*) AS still_there FROM people;\n.quit\n")
    out, errors = process.communicate(timeout=15)
    os.close(keyboard)
    os.close(terminal)
    assert "200000" in out
    assert errors == ""
    assert process.returncode == 0
