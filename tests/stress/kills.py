"""Kill -9 of `duckanon run` in the middle of CREATE TABLE AS: the database opens, with the old or the new table."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import duckdb

import duckanon

ROWS = 300_000
SCRIPT = "CREATE OR REPLACE TABLE released AS SELECT {version} AS version, * FROM anon.swap('people', ['a', 'b']);\n"


def run(folder: Path, kills: int, seed: int) -> Counter[str]:
    """Kill so many runs at random moments, and count what was found afterwards."""
    database, script, chance = folder / "people.duckdb", folder / "release.sql", random.Random(seed)
    con = duckanon.connect(database)
    con.execute(f"CREATE TABLE people AS SELECT i AS a, hash(i)::VARCHAR AS b FROM range({ROWS}) AS r(i)").fetchall()
    con.execute(SCRIPT.format(version=0)).fetchall()
    con.close()
    started = time.monotonic()
    _runs(database, script, 1).wait()
    whole, found, version = time.monotonic() - started, Counter[str](), 1
    assert _version(database) == 1
    for kill in range(2, kills + 2):
        process = _runs(database, script, kill)
        time.sleep(chance.uniform(0.3, 1.1) * whole)
        process.kill()
        process.wait()
        before, version = version, _version(database)
        assert version in (before, kill), f"neither the old nor the new table, but {version}"
        found["new table" if version == kill else "old table"] += 1
    return found


def _runs(database: Path, script: Path, version: int) -> subprocess.Popen[bytes]:
    script.write_text(SCRIPT.format(version=version), encoding="utf-8")
    return subprocess.Popen([sys.executable, "-m", "duckanon.cli", "run", str(script), "--db", str(database)])


def _version(database: Path) -> int:
    """Open the database as it was left, and see that its table is whole."""
    con = duckdb.connect(str(database))
    ((version, versions, rows, different),) = con.execute(
        "SELECT max(version), count(DISTINCT version), count(*), count(DISTINCT a) FROM released"
    ).fetchall()
    con.close()
    assert (versions, rows, different) == (1, ROWS, ROWS)
    return int(version)
