"""What it takes until the first query is answered: in Python, on the command line, in the stock shell."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from pathlib import Path

import duckdb

import duckanon
from tests.bench.harness import Task
from tests.extension.shells import extension_file, stock_shell

FIRST_QUERY = "con.execute('SELECT 1').fetchall()"


def run(*command: str) -> int:
    """Run a program and return its peak memory in KB: wait4 would tell at least that of this process, which forks."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    peak = 0
    while process.poll() is None:
        status = Path(f"/proc/{process.pid}/status").read_text()
        found = re.search(r"VmHWM:\s+(\d+) kB", status)
        peak = max(peak, int(found[1])) if found else peak
        time.sleep(0.002)
    assert process.returncode == 0, command
    return peak


def prepare(_: int) -> Path:
    """Write what the first start of all writes: compiled modules, the prepared catalogs, the extension."""
    duckanon.connect().close()
    run(str(stock_shell()), "-unsigned", "-c", f"LOAD '{extension_file()}'")
    return extension_file()


def client(_: object) -> int:
    return run(sys.executable, "-c", f"import duckdb; con = duckdb.connect(); {FIRST_QUERY}; con.close()")


def package(_: object) -> int:
    return run(sys.executable, "-c", f"import duckanon; con = duckanon.connect(); {FIRST_QUERY}; con.close()")


def command(_: object) -> int:
    return run(sys.executable, "-m", "duckanon.cli", "-c", "SELECT 1")


def shell_with_extension(extension: Path) -> int:
    return run(str(stock_shell()), "-unsigned", "-c", f"LOAD '{extension}'; SELECT 1")


def connect_again(_: object) -> None:
    duckanon.connect().execute("SELECT 1").fetchall()


def connect_client_again(_: object) -> None:
    duckdb.connect().execute("SELECT 1").fetchall()


CLIENT = "DuckDB's Python client"
TASKS = [
    Task("start: duckanon.connect()", [1], prepare, package, client, CLIENT, 5, of_child=True),
    Task("start: duckanon -c", [1], prepare, command, client, CLIENT, 5, of_child=True),
    Task("start: LOAD in the stock shell", [1], prepare, shell_with_extension, client, CLIENT, 5, of_child=True),
    Task("start: a further connect()", [1], prepare, connect_again, connect_client_again, "duckdb.connect()", 5),
]
