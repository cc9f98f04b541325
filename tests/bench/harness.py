"""Measures tasks: each side in a process of its own, the sides in turn, the best of several runs.

A task compares what duckanon does (``ours``) with a floor, the least that anyone would have to do, or with a peer.
What counts is the ratio in one run: the machines that this runs on differ, and are shared. Where something else runs
beside it, the ratio of processor seconds tells more than that of the clock.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent.parent


@dataclass(frozen=True)
class Task:
    """One row of the benchmark per size."""

    name: str
    sizes: Sequence[int]
    prepare: Callable[[int], Any]
    ours: Callable[[Any], Any]
    other: Callable[[Any], Any]
    other_is: str
    repeats: int = 3
    of_child: bool = False  # each side runs a program, which is measured, and returns its peak memory in KB


@dataclass(frozen=True)
class Result:
    task: str
    rows: int
    ours_seconds: float
    other_is: str
    other_seconds: float
    ratio: float
    processor_ratio: float
    ours_peak_mb: float
    other_peak_mb: float
    memory_ratio: float


def processor_seconds(who: int = resource.RUSAGE_SELF) -> float:
    used = resource.getrusage(who)
    return used.ru_utime + used.ru_stime


def measure_here(task: Task, side: str, size: int) -> None:
    """Prepare and run one side once in this process; print seconds by clock and processor and peak memory as JSON."""
    state = task.prepare(size)
    who = resource.RUSAGE_CHILDREN if task.of_child else resource.RUSAGE_SELF
    started, used = time.perf_counter(), processor_seconds(who)
    returned = (task.ours if side == "ours" else task.other)(state)
    seconds, processor = time.perf_counter() - started, processor_seconds(who) - used
    peak = (returned if task.of_child else resource.getrusage(who).ru_maxrss) / 1024
    print(json.dumps({"seconds": seconds, "processor": processor, "peak_mb": peak}))
    sys.stdout.flush()


def run(module: str, task: Task, size: int) -> Result:
    """Measure both sides of a task at a size."""
    runs: dict[str, list[dict[str, float]]] = {"ours": [], "other": []}
    for _ in range(task.repeats):
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
        ours_seconds=round(seconds["ours"], 4),
        other_is=task.other_is,
        other_seconds=round(seconds["other"], 4),
        ratio=round(seconds["ours"] / seconds["other"], 2),
        processor_ratio=round(processor["ours"] / processor["other"], 2),
        ours_peak_mb=round(peak["ours"]),
        other_peak_mb=round(peak["other"]),
        memory_ratio=round(peak["ours"] / peak["other"], 2),
    )


HEADER = ("task", "rows", "ours s", "against", "s", "ratio", "processor", "ours MB", "MB", "ratio")


def table_line(result: Result) -> tuple[str, ...]:
    return (
        result.task,
        f"{result.rows:,}",
        f"{result.ours_seconds:.3f}",
        result.other_is,
        f"{result.other_seconds:.3f}",
        f"{result.ratio:.2f}",
        f"{result.processor_ratio:.2f}",
        f"{result.ours_peak_mb:.0f}",
        f"{result.other_peak_mb:.0f}",
        f"{result.memory_ratio:.2f}",
    )


def markdown(results: Sequence[Result]) -> str:
    lines = [
        HEADER,
        ("---", "---:", "---:", "---", "---:", "---:", "---:", "---:", "---:", "---:"),
        *map(table_line, results),
    ]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines) + "\n"


def save(results: Sequence[Result], path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps([asdict(result) for result in results], indent=2) + "\n", encoding="utf-8")
