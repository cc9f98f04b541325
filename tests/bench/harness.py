"""Measures tasks in processor seconds: each side in a process of its own, the sides in turn, the best of several runs.

A task compares what duckanon does (``ours``) with a floor, the least that anyone would have to do, or with a peer.
The ratio of processor seconds (user and system, of the whole process) counts: machines differ and are shared, and
whatever else runs changes the clock more than the processor's time.
"""

from __future__ import annotations

import json
import re
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent.parent
ENOUGH_SECONDS = 1.0
"""A side is called again in its process until it has taken so many processor seconds: imports do not count where
calls are short: the rows of the start show them."""
ENOUGH_CALLS = 12
LONG_SECONDS = 0.3
"""A side that takes this long is measured in one process: what noise adds is small beside it, and all tasks together
take less than an hour."""


@dataclass(frozen=True)
class Task:
    """One row of the benchmark per size."""

    name: str
    sizes: Sequence[int]
    prepare: Callable[[int], Any]
    ours: Callable[[Any], Any]
    other: Callable[[Any], Any]
    other_is: str
    repeats: int = 2  # processes for each side, where they take seconds
    of_child: bool = False  # each side runs a program, which is measured, and returns its peak memory in KB
    once: bool = False  # a side cannot be called again on what was prepared


@dataclass(frozen=True)
class Result:
    """The best of all calls, in processor seconds; memory is the peak after the first call."""

    task: str
    rows: int
    ours_seconds: float
    other_is: str
    other_seconds: float
    ratio: float
    clock_ratio: float
    ours_peak_mb: float
    other_peak_mb: float
    memory_ratio: float


def processor_seconds(who: int = resource.RUSAGE_SELF) -> float:
    """Return the user and system seconds of this process, or of its children that have ended."""
    used = resource.getrusage(who)
    return used.ru_utime + used.ru_stime


def peak_kilobytes() -> int:
    """Return the peak memory of this process; what getrusage tells may be the parent's, which forked it."""
    try:
        status = Path("/proc/self/status").read_text(encoding="utf-8")
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    found = re.search(r"VmHWM:\s+(\d+) kB", status)
    return int(found[1]) if found else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def measure(task: Task, side: str, state: Any) -> dict[str, float]:
    """Call one side until enough was measured; return the best seconds and the peak memory of the first call."""
    call = task.ours if side == "ours" else task.other
    who = resource.RUSAGE_CHILDREN if task.of_child else resource.RUSAGE_SELF
    seconds, processor, peak = [], [], 0.0
    if task.of_child and not task.once:
        call(state)  # the first program compiles its modules: nobody's speed, and seconds in a new environment
    while not seconds or (
        not task.of_child and not task.once and sum(processor) < ENOUGH_SECONDS and len(seconds) < ENOUGH_CALLS
    ):
        started, used = time.perf_counter(), processor_seconds(who)
        returned = call(state)
        seconds.append(time.perf_counter() - started)
        processor.append(processor_seconds(who) - used)
        peak = peak or (returned if task.of_child else peak_kilobytes()) / 1024
    return {"seconds": min(seconds), "processor": min(processor), "peak_mb": peak}


def run(module: str, task: Task, size: int) -> Result:
    """Measure both sides of a task at a size."""
    runs: dict[str, list[dict[str, float]]] = {"ours": [], "other": []}
    for _ in range(task.repeats):
        if any(done and done[0]["processor"] > LONG_SECONDS for done in runs.values()):
            break
        for side, done in runs.items():
            command = [sys.executable, "-m", "tests.bench", "--worker", module, task.name, side, str(size)]
            output = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
            if output.returncode:
                raise RuntimeError(f"{task.name} ({side}, {size}):\n{output.stderr}")
            done.append(json.loads(output.stdout.strip().splitlines()[-1]))
    seconds, processor, peak = (
        {side: min(one[what] for one in done) for side, done in runs.items()}
        for what in ("seconds", "processor", "peak_mb")
    )
    return Result(
        task=task.name,
        rows=size,
        ours_seconds=round(processor["ours"], 4),
        other_is=task.other_is,
        other_seconds=round(processor["other"], 4),
        ratio=round(processor["ours"] / processor["other"], 2),
        clock_ratio=round(seconds["ours"] / seconds["other"], 2),
        ours_peak_mb=round(peak["ours"]),
        other_peak_mb=round(peak["other"]),
        memory_ratio=round(peak["ours"] / peak["other"], 2),
    )


def save(results: Sequence[Result], path: Path) -> None:
    """Write the results as JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps([asdict(result) for result in results], indent=2) + "\n", encoding="utf-8")


def saved(path: Path) -> list[Result]:
    """Return the results that a run has written, none if there are none."""
    return [Result(**one) for one in json.loads(path.read_text(encoding="utf-8"))] if path.exists() else []
