"""One release where executors are processes of their own, or behind Spark Connect: a program that prints what came out.

    python -m tests.spark.places PLACE people.parquet FOLDER

PLACE is a master such as local-cluster[2,1,1024], or connect. The program runs in FOLDER.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from duckanon import spark as on_spark
from tests.spark.conftest import QUICK

COLS = ["STATE", "AGEP", "SEX", "RAC1P", "MAR"]
METHODS = {"RAC1P": "top", "MAR": "top", "SEX": "top"}
NUMBERS = ["AGEP", "WKHP", "PINCP"]
K = 10


def session_at(place: str, folder: Path) -> Any:
    """Start Spark."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.remote("local[2]") if place == "connect" else SparkSession.builder.master(place)
    if place != "connect":
        builder = builder.config("spark.executor.memory", "1g").config(
            "spark.sql.warehouse.dir", str(folder / "tables")
        )
        builder = builder.config("spark.executor.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
        for name, value in QUICK.items():
            builder = builder.config(name, value)
    session = builder.getOrCreate()
    if place == "connect":  # what a session may still be told
        for name in ("spark.sql.shuffle.partitions", "spark.sql.codegen.wholeStage", "spark.sql.adaptive.enabled"):
            session.conf.set(name, QUICK[name])
    return session


def executors() -> list[int]:
    """The processes of executors that this process has started, by way of others."""
    parents: dict[int, int] = {}
    commands: dict[int, str] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parents[int(entry.name)] = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
                commands[int(entry.name)] = (entry / "cmdline").read_text()
            except OSError:
                continue

    def is_ours(process: int) -> bool:
        while process in parents:
            process = parents[process]
            if process == os.getpid():
                return True
        return False

    return sorted(one for one, line in commands.items() if "CoarseGrainedExecutorBackend" in line and is_ours(one))


def kill_in_the_middle(folder: Path, killed: list[int]) -> threading.Thread:
    """Kill an executor as soon as a draft is being written."""

    def wait() -> None:
        deadline = time.monotonic() + 240
        while time.monotonic() < deadline:
            if any(path.name.startswith("_duckanon_") for path in folder.iterdir()):
                process = executors()[0]
                os.kill(process, signal.SIGKILL)
                killed.append(process)
                return
            time.sleep(0.02)

    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    return thread


def main(place: str, source: str, folder: Path) -> None:
    """Release the table in several ways and print what was found."""
    session = session_at(place, folder)
    frame = session.read.parquet(source)
    found: dict[str, Any] = {}
    coarse_to = "coarse" if place == "connect" else str(folder / "coarse")
    boxes_to = "boxed" if place == "connect" else str(folder / "boxed")
    coarse = on_spark.generalize(frame, COLS, K, methods=METHODS, to=coarse_to)
    pq.write_table(coarse.toArrow(), folder / "coarse.parquet")
    row = on_spark.k_anonymity(coarse, COLS).collect()[0]
    found["coarse"] = {"k": row["k"], "rows": row["rows"]}
    boxed = on_spark.boxes(frame, NUMBERS, K, to=boxes_to)
    sizes = boxed.groupBy(*NUMBERS).count().selectExpr("min(count)", "sum(count)").collect()[0]
    found["boxed"] = {"k": sizes[0], "rows": sizes[1]}
    widths = [f"avg(`{name}`.hi - `{name}`.lo)" for name in NUMBERS]
    found["widths"] = [float(width) for width in boxed.selectExpr(*widths).collect()[0]]
    found["new"] = {}
    for name, options in (("spectral_release", {"cluster_size": 200}), ("svd_swap", {})):
        new_to = name if place == "connect" else str(folder / name)
        new = getattr(on_spark, name)(frame, NUMBERS, **options, to=new_to)
        found["new"][name] = [
            float(mean) for mean in new.selectExpr("count(*)", "avg(AGEP)", "max(PINCP)").collect()[0]
        ]
    if place == "connect":
        try:
            on_spark.generalize(frame, COLS, K, to=str(folder / "path"))
        except ValueError as error:
            found["path"] = str(error)
    elif place.startswith("local-cluster"):
        found["killed"] = killed(frame, folder / "killed")
    print(json.dumps(found))
    session.stop()


def killed(frame: Any, folder: Path) -> dict[str, Any]:
    """Release while an executor is killed, and tell how it ended."""
    folder.mkdir()
    processes: list[int] = []
    thread = kill_in_the_middle(folder, processes)
    try:
        released = on_spark.boxes(frame, NUMBERS, K, to=str(folder / "boxed"))
        sizes = released.groupBy(*NUMBERS).count().selectExpr("min(count)", "sum(count)").collect()[0]
        outcome: dict[str, Any] = {"k": sizes[0], "rows": sizes[1]}
    except Exception as error:
        outcome = {"error": type(error).__name__}
    thread.join(5)
    return {**outcome, "processes": len(processes), "names": sorted(path.name for path in folder.iterdir())}


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
