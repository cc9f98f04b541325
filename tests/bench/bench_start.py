"""What it takes until the first query is answered: in Python, on the command line, in the stock shell."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import duckdb

import duckanon
from tests.bench.harness import Task
from tests.extension.shells import extension_file, stock_shell

FIRST_QUERY = "con.execute('SELECT 1').fetchall()"

PEOPLE = """SELECT i, 20 + (hash(i) % 60)::INT AS age, (hash(i, 1) % 2)::INT AS sex,
    (hash(i, 2) % 1000)::DOUBLE AS income, round(hash(i, 3) % 3000 / 7.0, 2) AS bmi, 'c' || hash(i, 4) % 9 AS city"""

FIRST_CALLS = {
    "k_anonymity": "anon.k_anonymity('t', ['age', 'sex', 'city'])",
    "generalize": "anon.generalize('t', ['age', 'sex', 'city'], 5)",
    "svd_swap": "anon.svd_swap('t', ['age', 'income', 'bmi'], seed := 1)",
    "synthesize": "anon.synthesize('t', ['age', 'sex', 'income', 'bmi', 'city'], seed := 1)",
    "privacy_test": "anon.privacy_test('t', 'r', ['age', 'income', 'bmi'], seed := 1)",
    "utility": "anon.utility('t', 'r', ['age', 'sex', 'income', 'bmi'], seed := 1)",
}
"""What a user may ask first of a table of 300 people: most of what it takes is the import of libraries."""


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


def first_call(query: str | None) -> Callable[[object], int]:
    """Return what runs a program that asks one query of two small tables, or makes these and asks nothing."""
    tables = f"""CREATE TABLE t AS {PEOPLE} FROM range(300) AS r(i);
        CREATE TABLE r AS {PEOPLE} FROM range(1000, 1300) AS r(i)"""
    asked = "SELECT 1" if query is None else f"FROM {query}"
    code = f"import duckanon; con = duckanon.connect(); con.execute({tables!r}); con.execute({asked!r}).fetchall()"
    return lambda _: run(sys.executable, "-c", f"{code}; con.close()")


def command(_: object) -> int:
    return run(sys.executable, "-m", "duckanon.cli", "-c", "SELECT 1")


def shell_with_extension(extension: Path) -> int:
    return run(str(stock_shell()), "-unsigned", "-c", f"LOAD '{extension}'; SELECT 1")


def connect_again(_: object) -> None:
    duckanon.connect().execute("SELECT 1").fetchall()


def connect_client_again(_: object) -> None:
    duckdb.connect().execute("SELECT 1").fetchall()


CLIENT = "DuckDB's Python client"
TABLES = "connect, two tables"
TASKS = [
    Task("start: duckanon.connect()", [1], prepare, package, client, CLIENT, 5, of_child=True),
    Task("start: duckanon -c", [1], prepare, command, client, CLIENT, 5, of_child=True),
    Task("start: LOAD in the stock shell", [1], prepare, shell_with_extension, client, CLIENT, 5, of_child=True),
    Task("start: a further connect()", [1], prepare, connect_again, connect_client_again, "duckdb.connect()", 5),
    *(
        Task(f"first call: {name}", [300], prepare, first_call(query), first_call(None), TABLES, 5, of_child=True)
        for name, query in FIRST_CALLS.items()
    ),
]
