"""`python -m tests.bench [--only WORD] [--largest ROWS] [--record]`: runs the benchmarks and prints their table.

Names each ratio that became worse than the recorded one, and then ends with the exit code 1.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import sys
from pathlib import Path

from tests.bench import harness, recorded


def modules() -> list[str]:
    """Return the names of the modules with tasks."""
    return sorted(path.stem for path in Path(__file__).parent.glob("bench_*.py"))


def tasks_of(module: str) -> list[harness.Task]:
    """Return the tasks of a module."""
    return list(importlib.import_module(f"tests.bench.{module}").TASKS)


def run_unless_worse(module: str, task: harness.Task, size: int) -> harness.Result:
    """Measure a task, and once more if it seems to have become worse; return the better result."""
    result = harness.run(module, task, size)
    if recorded.slower([result], recorded.recorded_ratios()):
        result = min(result, harness.run(module, task, size), key=lambda one: one.ratio)
    print(recorded.table_line(result).strip("| "), file=sys.stderr, flush=True)
    return result


def main() -> int:
    """Run the tasks that were chosen; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="tasks whose name contains this")
    parser.add_argument("--largest", type=float, default=float("inf"), help="leave out sizes above this")
    parser.add_argument("--record", action="store_true", help="write the results into tests/bench/README.md")
    parser.add_argument("--json", type=Path, default=harness.ROOT / "build" / "bench.json")
    parser.add_argument("--worker", nargs=4, metavar=("MODULE", "TASK", "SIDE", "ROWS"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        module, name, side, size = options.worker
        task = next(task for task in tasks_of(module) if task.name == name)
        print(json.dumps(harness.measure(task, side, task.prepare(int(size)))), flush=True)
        os._exit(0)  # without taking apart what was measured
    begun = options.json.with_name("bench-recording.json")  # of a run that was interrupted, which is continued
    results = harness.saved(begun) if options.record else []
    done, failed = {(result.task, result.rows) for result in results}, []
    ratios = recorded.recorded_ratios()
    for module in modules():
        for task in tasks_of(module):
            for size in task.sizes:
                if options.only not in task.name or size > options.largest or (task.name, size) in done:
                    continue
                try:
                    results.append(run_unless_worse(module, task, size))
                except RuntimeError as error:  # the other tasks are worth measuring all the same
                    failed.append(f"{task.name}, {size:,} rows: {str(error).strip().splitlines()[-1]}")
                if options.record:
                    harness.save(results, begun)
    print(recorded.table([recorded.table_line(result) for result in results]))
    harness.save(results, options.json)
    print(f"as JSON: {options.json}", *(f"could not be measured: {one}" for one in failed), sep="\n")
    if options.record:
        is_whole = not options.only and options.largest == float("inf") and not failed
        write = recorded.replace_all if is_whole else recorded.record
        recorded.README.write_text(write(results, recorded.README.read_text(encoding="utf-8")), encoding="utf-8")
        if not failed:
            begun.unlink(missing_ok=True)
        return bool(failed)
    worse = recorded.slower(results, ratios)
    for result in worse:
        was = ratios[result.task, result.rows]
        print(f"worse: {result.task}, {result.rows:,} rows: {result.ratio} times {result.other_is}, recorded {was}")
    print(f"{len(worse)} of {len(results)} ratios became worse by more than {recorded.WORSE}.")
    return bool(worse or failed)


if __name__ == "__main__":
    sys.exit(main())
