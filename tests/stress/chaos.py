"""Random functions from many cursors of one database, with random interrupts, closes and failures."""

from __future__ import annotations

import collections
import faulthandler
import gc
import random
import threading
import time

import duckdb
import pytest

import duckanon
from duckanon._bridge import registry
from tests.stress.memory import resident

CURSORS = 16
SLOWEST_END = 2.0  # seconds from an interrupt to the end of its query
CALLS = (
    "anon.swap('people', ['age', 'income'])",
    "anon.generalize('people', ['age', 'zip', 'sex'], 10)",
    "anon.plan('people', ['age', 'zip'], 10)",
    "anon.boxes('people', ['age', 'income', 'share'], 10)",
    "anon.boxes('people', ['age', 'income'], 10, effort := 'thorough')",
    "anon.pica('people', ['age', 'income', 'share'], checks := 'off')",
    "anon.svd_swap('people', ['age', 'income', 'share'], checks := 'off')",
    "anon.copula_synthesize('people', ['age', 'income', 'sex'])",
    "anon.spectral_release('people', ['age', 'income', 'sex', 'share'])",
    "anon.synthesize('people', ['age', 'income', 'sex', 'share'])",
    "anon.quasi_identifiers('people')",
    "anon.quasi_identifiers('people', approximate := true)",
    "anon.optimal_partition('people', 'share', 10)",
    "anon.privacy_test('people', 'others', ['age', 'income', 'share'])",
    "anon.singling_out_risk('people', 'others', ['age', 'income', 'sex'])",
    "anon.detectability('people', 'others', ['age', 'income', 'sex'])",
    "anon.k_anonymity('people', ['age', 'zip'])",
)
FAILURES = (
    "SELECT error('stopped' || anon._pack('x', 'people', ['age'], NULL)::VARCHAR)",
    "FROM anon.swap('people', ['age'], seed := -1)",
    "FROM anon.plan('people', ['age', 'zip'], 1_000_000)",
    "FROM anon.privacy_test('people', 'nobody', ['age'])",
)
PEOPLE = """
    CREATE TABLE people AS
    SELECT 20 + hash(i) % 60 AS age, hash(i + 1) % 100_000 AS income, (100 + hash(i + 2) % 900)::VARCHAR AS zip,
           hash(i + 3) % 1_000_003 / 1_000_003 AS share, ['m', 'f'][1 + (hash(i + 4) % 2)::INTEGER] AS sex
    FROM range(20_000) AS r(i);
    CREATE TABLE others AS SELECT * REPLACE (income + 100 AS income) FROM people;
    CREATE TABLE nobody AS FROM people WHERE false;
"""


class Counts:
    """What has happened, and how long it took from an interrupt to the end of its query."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.events: collections.Counter[str] = collections.Counter()
        self.delays: list[float] = []
        self.surprises: list[str] = []

    def note(self, event: str, delay: float | None = None) -> None:
        with self._lock:
            self.events[event] += 1
            if delay is not None:
                self.delays.append(delay)


def run(seconds: float, seed: int) -> Counts:
    """Let the cursors loose for some time; fails where one of the promises is broken."""
    con = duckanon.connect()
    con.execute(PEOPLE).fetchall()
    counts, end = Counts(), time.monotonic() + seconds
    memory: list[int] = []
    threads = [threading.Thread(target=_user, args=(con, counts, end, seed + number)) for number in range(CURSORS)]
    for thread in threads:
        thread.start()
    while time.monotonic() < end:
        time.sleep(1)
        memory.append(resident())
    for thread in threads:
        thread.join(60)
        if thread.is_alive():
            faulthandler.dump_traceback()
        assert not thread.is_alive(), "a query hangs"
    gc.collect()
    assert counts.surprises == []
    assert max(counts.delays, default=0) < SLOWEST_END, f"{max(counts.delays):.1f} s after an interrupt"
    assert len(registry.PARCELS) == 0, "rows are left behind"
    assert len(registry.WAITING) == 0, "work is left behind"
    third = len(memory) // 3
    early, late = max(memory[third : 2 * third], default=0), max(memory[2 * third :], default=0)
    assert late < 1.25 * early + 50, f"memory grows from {early} to {late} MB"
    counts.events["MB at most, second third"], counts.events["MB at most, last third"] = early, late
    con.close()
    return counts


def _user(con: duckdb.DuckDBPyConnection, counts: Counts, end: float, seed: int) -> None:
    chance = random.Random(seed)
    cursor = con.cursor()
    while time.monotonic() < end:
        if chance.random() < 0.2:
            _fail(cursor, chance, counts)
        else:
            _ask(cursor, chance, counts)
        if chance.random() < 0.3:
            cursor.close()
            cursor = con.cursor()
            counts.note("cursors closed")
    cursor.close()


def _fail(cursor: duckdb.DuckDBPyConnection, chance: random.Random, counts: Counts) -> None:
    query = chance.choice(FAILURES)
    with pytest.raises(duckdb.Error):
        cursor.execute(query).fetchall()
    counts.note("queries failed")


def _ask(cursor: duckdb.DuckDBPyConnection, chance: random.Random, counts: Counts) -> None:
    """Run a function, which is interrupted after a moment unless it is quicker."""
    interrupted: list[float] = []
    is_over = threading.Event()

    def interrupt() -> None:
        while not is_over.is_set():  # again: it is lost on a query that has not begun
            cursor.interrupt()
            interrupted.append(time.monotonic())
            is_over.wait(0.2)

    timer = threading.Timer(chance.choice((0.05, 0.3, 1, 3)) * chance.random(), interrupt)
    timer.start()
    try:
        cursor.execute(f"SELECT count(*) FROM {chance.choice(CALLS)}").fetchall()
        counts.note("queries done")
    except duckdb.InterruptException:
        counts.note("queries interrupted", time.monotonic() - interrupted[0])
    except duckdb.Error as error:
        counts.note("other errors")
        counts.surprises.append(str(error)[:300])
    finally:
        is_over.set()
        timer.cancel()
        timer.join()
