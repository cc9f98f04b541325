"""`python -m tests.bench.limits [ROWS ...] [FUNCTION ...]`: the memory that functions take.

Prints rows, columns, seconds of the processor, the peak memory of the process, and what it had before the call. Every
call is a process of its own; checks read a Parquet file, releases a table, as the release job has it. The source is
that of `tests.bench.large`; from a hundred million rows on, checks read numbers that DuckDB makes as it goes.

    --columns N       of so many columns, 4 if not given
    --limit AMOUNT    with DuckDB's memory_limit, beyond which it spills to the disk
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.bench.harness import ROOT
from tests.bench.large import ACS, peak, write_source

NUMBERS = ["AGEP", "PINCP", "WKHP", "POVPIP", "SEX", "SCHL"]
CATEGORIES = ["AGEP", "SEX", "SCHL", "PINCP", "WKHP", "POVPIP"]
CHECKS = {
    "k_anonymity": "anon.k_anonymity('t', {cols})",
    "k_anonymity of people": "anon.k_anonymity('t', {cols}, person := 'person')",
    "l_diversity": "anon.l_diversity('t', {cols}, 'POVPIP')",
    "individual_risk": "anon.individual_risk('t', {cols}, population := 330000000)",
    "quasi_identifiers": "anon.quasi_identifiers('t', {cols})",
    "quasi_identifiers approximate": "anon.quasi_identifiers('t', {cols}, approximate := true)",
}
RELEASES = {
    "boxes": (NUMBERS, "anon.boxes('t', {cols}, 10)"),
    "generalize": (CATEGORIES, "anon.generalize('t', {cols}, 10)"),
    "recode": (CATEGORIES, "anon.recode('t', {cols}, 10, effort := 'quick')"),
    "microaggregate": (NUMBERS, "anon.microaggregate('t', {cols}, 10, method := 'fast')"),
    "suppress_cells": (CATEGORIES, "anon.suppress_cells('t', {cols}, 10)"),
    "svd_swap": (NUMBERS, "anon.svd_swap('t', {cols})"),
    "pica": (NUMBERS, "anon.pica('t', {cols})"),
    "spectral_release": (NUMBERS, "anon.spectral_release('t', {cols})"),
    "synthesize": (NUMBERS, "anon.synthesize('t', {cols})"),
}


def measure_here(name: str, columns: int, source: str, limit: str) -> None:
    """Call once in this process and print what it took as JSON."""
    import duckanon

    con = duckanon.connect()
    if limit:
        con.execute(f"SET memory_limit = '{limit}'").fetchall()
    before, used = peak(), time.process_time()
    if name in CHECKS:
        con.execute(f"CREATE VIEW t AS FROM {source}").fetchall()
        call = CHECKS[name].format(cols=CATEGORIES[:columns])
        rows = con.execute(f"SELECT count(*) FROM {call}").fetchall()
    else:
        named, call = RELEASES[name]
        cols = named[:columns]
        con.execute(f"CREATE TABLE t AS SELECT {', '.join(cols)} FROM {source}").fetchall()
        con.execute(f"CREATE TABLE released AS FROM {call.format(cols=cols)}").fetchall()
        rows = con.execute("SELECT count(*) FROM released").fetchall()
    took = {"processor": time.process_time() - used, "peak_mb": peak(), "before_mb": before, "rows": rows[0][0]}
    print(json.dumps(took))


def rows_of(rows: int, path: Path) -> str:
    """Return what the rows are read from: a file that is written here, or numbers that are not stored."""
    if rows < 10**8:
        write_source(rows, path)
        return f"'{path}'"
    drawn = ", ".join(f"(hash(i, {n}) % {12 * (n + 1)})::INTEGER AS {name}" for n, name in enumerate(CATEGORIES))
    return f"(SELECT {drawn}, i // 2 AS person FROM range({rows}) AS t(i))"


def main(sizes: list[int], names: list[str], columns: int, limit: str) -> None:
    print("| function | rows | columns | processor s | peak MB | before MB |")
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    with tempfile.TemporaryDirectory() as folder:
        for rows in sizes:
            source = rows_of(rows, Path(folder) / "source.parquet")
            for name in names:
                command = [sys.executable, "-m", "tests.bench.limits", "--worker", name, str(columns), source, limit]
                done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
                if done.returncode:
                    print(f"| {name} | {rows:,} | {columns} | failed | | |", done.stderr[-300:], flush=True)
                    continue
                took = json.loads(done.stdout.splitlines()[-1])
                print(
                    f"| {name} | {rows:,} | {columns} | {took['processor']:.0f} | {took['peak_mb']:.0f} "
                    f"| {took['before_mb']:.0f} |",
                    flush=True,
                )


if __name__ == "__main__":
    if sys.argv[1:2] == ["--worker"]:
        measure_here(sys.argv[2], int(sys.argv[3]), sys.argv[4], sys.argv[5])
    elif not ACS.exists():
        print("The table of ACS is not here; the environment variable DUCKANON_DATA names its folder.")
    else:
        options, given = {"--columns": "4", "--limit": ""}, sys.argv[1:]
        for option in options:
            if option in given:
                options[option] = given.pop(given.index(option) + 1)
                given.remove(option)
        numbers = [int(float(word)) for word in given if word[0].isdigit()]
        known = [*CHECKS, *RELEASES]
        main(
            numbers or [1_000_000],
            [word for word in given if word in known] or known,
            int(options["--columns"]),
            options["--limit"],
        )
