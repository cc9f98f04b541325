"""`python -m tests.bench [--only WORD] [--largest ROWS]`: runs the benchmarks and prints their table."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from pathlib import Path

from tests.bench import harness


def modules() -> list[str]:
    return sorted(path.stem for path in Path(__file__).parent.glob("bench_*.py"))


def tasks_of(module: str) -> list[harness.Task]:
    return list(importlib.import_module(f"tests.bench.{module}").TASKS)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="tasks whose name contains this")
    parser.add_argument("--largest", type=float, default=float("inf"), help="leave out sizes above this")
    parser.add_argument("--json", type=Path, default=harness.ROOT / "build" / "bench.json")
    parser.add_argument("--worker", nargs=4, metavar=("MODULE", "TASK", "SIDE", "ROWS"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        module, name, side, size = options.worker
        harness.measure_here(next(task for task in tasks_of(module) if task.name == name), side, int(size))
        os._exit(0)  # without taking apart what was measured
    results = []
    for module in modules():
        for task in tasks_of(module):
            for size in task.sizes:
                if options.only in task.name and size <= options.largest:
                    results.append(harness.run(module, task, size))
                    print("  ".join(harness.table_line(results[-1])), file=sys.stderr, flush=True)
    print(harness.markdown(results))
    harness.save(results, options.json)
    print(f"as JSON: {options.json}")


main()
