"""`python -m tests.bench.large [ROWS ...]`: releases of tables larger than memory, from Parquet to Parquet.

Prints rows, seconds of processor and clock, the peak memory of the process, and the loss against the release in memory.
Every release is a process of its own; the source is ACS, repeated with other incomes.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import duckdb
import numpy as np

from tests.bench.harness import ROOT

ACS = Path(os.environ.get("DUCKANON_DATA", ROOT.parent / "shared" / "data")) / "acs_pums_2024_workers.parquet"
COLS = ["AGEP", "WKHP", "PINCP", "POVPIP"]
MEMORY = os.environ.get("MEMORY", "800MB")
ROADS = {
    "boxes": {"cols": COLS, "k": 10, "seed": 1},
    "generalize": {"cols": ["AGEP", "SEX", "SCHL", "PINCP"], "k": 10},
    "recode": {"cols": ["AGEP", "SEX", "SCHL", "PINCP"], "k": 10, "effort": "quick", "seed": 1},
    "microaggregate": {"cols": COLS, "k": 10, "seed": 1},
    "synthesize": {"cols": [*COLS, "SEX", "SCHL"], "seed": 1},
    "pica": {"cols": [*COLS, "SEX", "SCHL"], "cluster_size": 300, "seed": 1},
}
MOST_IN_MEMORY = {"boxes": 10_000_000, "generalize": 10_000_000, "recode": 10_000_000, "microaggregate": 1_000_000}
"""Rows up to which the release is made in memory too; boxes of the most take 3 GB."""


def write_source(rows: int, path: Path) -> None:
    """Repeat the people of ACS in a random order, each time with another income."""
    duckdb.connect().execute(
        f"""COPY (SELECT AGEP, WKHP, greatest(0, PINCP + (hash(i) % 2001)::INT - 1000)::INT AS PINCP, POVPIP, SEX, SCHL,
                         i // 2 AS person
                  FROM (SELECT *, row_number() OVER () - 1 AS place FROM '{ACS}')
                       JOIN (SELECT i, hash(i, 7) % (SELECT count(*) FROM '{ACS}') AS place FROM range({rows}) AS t(i))
                       USING (place)
                  ORDER BY i) TO '{path}'"""
    ).fetchall()


def width(source: Path, released: Path) -> float:
    """Return the loss that boxes for the means have: half-widths in tenths of standard deviations."""
    terms = " + ".join(f"avg({name}.hi - {name}.lo) / 2 / (0.4 * any_value(sd.{name}))" for name in COLS)
    deviations = ", ".join(f"stddev_pop({name}) AS {name}" for name in COLS)
    query = f"SELECT {terms} FROM '{released}' AS t, (SELECT {deviations} FROM '{source}') AS sd"
    for name in COLS:
        query = query.replace(f"avg({name}.hi - {name}.lo)", f"avg(t.{name}.hi - t.{name}.lo)")
    return float(duckdb.sql(query).fetchall()[0][0])


def width_in_memory(source: Path) -> float:
    from duckanon._methods.boxes.make import make_boxes

    columns = ", ".join(f"{name}::DOUBLE AS {name}" for name in COLS)
    arrays = duckdb.sql(f"SELECT {columns} FROM '{source}'").fetchnumpy()
    return make_boxes({name: np.asarray(values) for name, values in arrays.items()}, 10).uncertainty("parts")


def squared_error(source: Path, released: Path) -> float:
    """Return what means of groups lose of the columns' variance: that within groups, as a share."""
    terms = " + ".join(f"1 - var_pop(t.{name}) / any_value(s.{name})" for name in COLS)
    variances = ", ".join(f"var_pop({name}) AS {name}" for name in COLS)
    query = f"SELECT ({terms}) / {len(COLS)} FROM '{released}' AS t, (SELECT {variances} FROM '{source}') AS s"
    return float(duckdb.sql(query).fetchall()[0][0])


def label_loss(source: Path, released: Path) -> float:
    """Return the global certainty penalty of labels."""
    import duckanon

    cols = ROADS["recode"]["cols"]
    con = duckanon.connect()
    con.execute(f"CREATE VIEW s AS FROM '{source}'; CREATE VIEW r AS FROM '{released}'").fetchall()
    query = f"SELECT ncp FROM anon.generalization_loss('s', 'r', {cols}) WHERE column_name IS NULL"
    return float(con.execute(query).fetchall()[0][0])


def loss_ratio(road: str, source: Path, target: Path) -> float:
    """Compare the loss of a release with that of the same in memory."""
    if road == "boxes":
        return width(source, target) / width_in_memory(source)
    import duckanon

    options = {name: value for name, value in ROADS[road].items() if name not in ("cols", "k", "seed")}
    options |= {"method": "fast"} if road == "microaggregate" else {}
    named = "".join(f", {name} := '{value}'" for name, value in options.items())
    con = duckanon.connect()
    con.execute(f"CREATE TABLE t AS FROM '{source}'").fetchall()
    whole = target.with_name("whole.parquet")
    con.execute(f"COPY (FROM anon.{road}('t', {ROADS[road]['cols']}, 10{named})) TO '{whole}'").fetchall()
    con.close()
    loss = squared_error if road == "microaggregate" else label_loss
    return loss(source, target) / loss(source, whole)


def peak() -> float:
    """Return the most MB that this process had; what getrusage says is that of its parent, where that had more."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


def measure_here(road: str, source: Path, target: Path) -> None:
    """Release once in this process and print what it took as JSON."""
    from duckanon import large

    started, used = time.perf_counter(), time.process_time()
    made = getattr(large, road)(source, target, **ROADS[road], memory=MEMORY)
    seconds, processor = time.perf_counter() - started, time.process_time() - used
    print(json.dumps({"parts": made.parts, "seconds": seconds, "processor": processor, "peak_mb": peak()}))


def main(sizes: list[int], roads: list[str]) -> None:
    print("| release | rows | parts | s | processor s | peak MB | loss ratio |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "source.parquet", Path(folder) / "release.parquet"
        for rows in sizes:
            write_source(rows, source)
            for road in roads:
                command = [sys.executable, "-m", "tests.bench.large", "--worker", road, str(source), str(target)]
                output = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
                took = json.loads(output.splitlines()[-1])
                loss = f"{loss_ratio(road, source, target):.4f}" if rows <= MOST_IN_MEMORY.get(road, 0) else ""
                print(
                    f"| {road} | {rows:,} | {took['parts']} | {took['seconds']:.0f} | {took['processor']:.0f} "
                    f"| {took['peak_mb']:.0f} | {loss} |",
                    flush=True,
                )


if __name__ == "__main__":
    if sys.argv[1:2] == ["--worker"]:
        measure_here(sys.argv[2], Path(sys.argv[3]), Path(sys.argv[4]))
    elif not ACS.exists():
        print("The table of ACS is not here; the environment variable DUCKANON_DATA names its folder.")
    else:
        given = sys.argv[1:]
        numbers = [int(float(word)) for word in given if word[0].isdigit()]
        main(numbers or [10_000_000, 30_000_000], [word for word in given if word in ROADS] or list(ROADS))
