"""`make stress`: faults at random moments, with counts in the end."""

from __future__ import annotations

import argparse
import gc
import tempfile
from pathlib import Path

import duckdb

import duckanon
from duckanon._bridge import registry
from tests.extension.test_interrupts import interrupts
from tests.stress import chaos, kills
from tests.stress.memory import resident


def connections(count: int) -> tuple[int, int]:
    """Open, register, use and close so many databases; return the megabytes after a tenth and after all of them."""
    early = 0
    for number in range(count):
        con = duckanon.register(duckdb.connect())
        con.execute("CREATE TABLE people AS SELECT i FROM range(1000) AS r(i)").fetchall()
        con.execute("SELECT count(*) FROM anon.swap('people', ['i'])").fetchall()
        con.close()
        if number == count // 10:
            gc.collect()
            early = resident()
    gc.collect()
    assert len(registry.WAITING) == 0
    return early, resident()


def main() -> None:
    """Run all that was asked for; an assertion fails where a promise is broken."""
    parser = argparse.ArgumentParser(prog="make stress")
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--connections", type=int, default=100)
    parser.add_argument("--interrupts", type=int, default=50, help="in the stock shell with the extension")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    counts = chaos.run(options.seconds, options.seed)
    for event, number in sorted(counts.events.items()):
        print(f"{number:7} {event}")
    if counts.delays:
        print(f"{max(counts.delays):7.2f} seconds from an interrupt to the end of its query, at most")
    with tempfile.TemporaryDirectory() as folder:
        for found, number in kills.run(Path(folder), options.kills, options.seed).items():
            print(f"{number:7} kills, after which the database held the {found}")
    interrupts(options.interrupts, options.seed)
    print(f"{options.interrupts:7} interrupts in the stock shell, which answered after each")
    early, late = connections(options.connections)
    print(f"{options.connections:7} connections: {early} MB after a tenth of them, {late} MB in the end")
    assert late < 1.1 * early + 20


if __name__ == "__main__":
    main()
