"""`python -m tests.bench.backends [ROWS ...]`: one release in DuckDB, larger than memory, and on Spark, on one machine.

Needs PySpark and Java (`make test-engines` installs them into `.venv-engines`). Every release is a program of its own,
whose start is counted; seconds of the processor and memory are those of all processes that it starts, Java's too.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.bench.harness import ROOT
from tests.bench.large import ACS, ROADS, write_source

RELEASES = ("generalize", "boxes", "recode")
BACKENDS = ("DuckDB", "larger than memory", "Spark")
_OPTIONS = {"boxes": {}, "generalize": {}, "recode": {"effort": "quick"}}
_TICKS = os.sysconf("SC_CLK_TCK")
_PAUSE = 0.1  # seconds between two looks at the processes


def release(backend: str, road: str, source: str, target: str) -> None:
    """Release a Parquet file once."""
    cols, options = ROADS[road]["cols"], _OPTIONS[road]
    if backend == "DuckDB":
        import duckanon

        named = "".join(f", {name} := {value!r}" for name, value in options.items())
        con = duckanon.connect()
        con.execute(f"COPY (FROM anon.{road}('{source}', {cols}, 10{named})) TO '{target}.parquet'").fetchall()
    elif backend == "larger than memory":
        from duckanon import large

        getattr(large, road)(source, f"{target}.parquet", cols, 10, **options, memory="2GB")
    else:
        from pyspark.sql import SparkSession

        from duckanon import spark

        os.environ["PYSPARK_PYTHON"] = sys.executable
        builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
        session = builder.config("spark.driver.memory", "4g").getOrCreate()
        session.sparkContext.setLogLevel("ERROR")
        getattr(spark, road)(session.read.parquet(source), cols, 10, to=target, **options)
        session.stop()


def used(session: int) -> tuple[dict[str, float], float]:
    """Return the processor seconds of each process of a session, and the memory of all that is not shared, in MB."""
    seconds, memory = {}, 0.0
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text(encoding="ascii", errors="replace").rsplit(")", 1)[1].split()
            if int(fields[3]) == session:
                seconds[folder.name] = (int(fields[11]) + int(fields[12])) / _TICKS
                resident, shared = (folder / "statm").read_text(encoding="ascii").split()[1:3]
                memory += (int(resident) - int(shared)) * 4 / 1024
        except (OSError, IndexError):  # it has ended
            continue
    return seconds, memory


def measure(backend: str, road: str, source: Path, target: Path) -> tuple[float, float, float]:
    """Return the seconds of the clock and of the processor, and the peak memory in MB, of one release."""
    command = [sys.executable, "-m", "tests.bench.backends", "--worker", backend, road, str(source), str(target)]
    started, most, seconds = time.perf_counter(), 0.0, {}
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True
    ) as made:
        while made.poll() is None:
            now, memory = used(made.pid)
            seconds.update(now)
            most = max(most, memory)
            time.sleep(_PAUSE)
        if made.returncode:
            assert made.stderr is not None
            raise RuntimeError(f"{road} ({backend}):\n{made.stderr.read().decode()[-2000:]}")
    return time.perf_counter() - started, sum(seconds.values()), most


def main(sizes: list[int]) -> None:
    print("| release | rows | backend | clock s | processor s | peak MB |")
    print("| --- | ---: | --- | ---: | ---: | ---: |")
    for rows in sizes:
        with tempfile.TemporaryDirectory() as folder:
            source = Path(folder) / "source.parquet"
            write_source(rows, source)
            for road in RELEASES:
                for backend in BACKENDS:
                    clock, processor, most = measure(backend, road, source, Path(folder) / f"{road} {backend}")
                    print(f"| {road} | {rows:,} | {backend} | {clock:.0f} | {processor:.0f} | {most:.0f} |", flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--worker"]:
        release(*sys.argv[2:6])
    elif not ACS.exists():
        print("The table of ACS is not here; the environment variable DUCKANON_DATA names its folder.")
    else:
        main([int(float(word)) for word in sys.argv[1:]] or [10**6, 10**7])
