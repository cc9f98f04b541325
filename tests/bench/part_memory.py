"""`python -m tests.bench.part_memory [ROWS ...]`: the memory that one part of a release larger than memory takes.

Prints for each release and number of columns the bytes a row of its steps: making the part, and writing rows in random
order; of `generalize` the planning, for each combination of values. `BYTES_OF_...` in `duckanon/large/` come from here.
Every release is a process of its own, with memory enough for one part; the source is that of `tests.bench.large`.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.bench.harness import ROOT
from tests.bench.large import ACS, ROADS, peak, write_source
from tests.bench.limits import CATEGORIES, NUMBERS

STEPS = {"release_parts": "pipeline", "mix_results": "pipeline", "_make_plan": "generalize_release"}


def measure_here(road: str, columns: int, source: Path) -> None:
    """Release once in this process and print the bytes of its steps as JSON."""
    from duckanon import large
    from duckanon._core.common.resources import measure_memory
    from duckanon.large import generalize_release, pipeline

    took: dict[str, float] = {}

    def watch(module: Any, name: str) -> None:
        step: Callable[..., Any] = getattr(module, name)

        def watched(*given: Any, **named: Any) -> Any:
            Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # the peak begins anew
            before = measure_memory()
            result = step(*given, **named)
            took[name] = peak() * 2**20 - before
            return result

        setattr(module, name, watched)

    for name, module in STEPS.items():
        watch({"pipeline": pipeline, "generalize_release": generalize_release}[module], name)
    options = {name: value for name, value in ROADS[road].items() if name != "cols"}
    cols = (NUMBERS if road in ("boxes", "microaggregate") else CATEGORIES)[:columns]
    with tempfile.TemporaryDirectory() as folder:
        made = getattr(large, road)(source, Path(folder) / "release.parquet", cols, **options, memory="9GB")
        import duckdb

        combinations = duckdb.sql(
            f"SELECT count(*) FROM (SELECT DISTINCT {', '.join(cols)} FROM '{source}')"
        ).fetchall()
    print(json.dumps({"parts": made.parts, "rows": made.rows, "combinations": combinations[0][0], **took}))


def main(sizes: list[int], roads: list[str]) -> None:
    print("| release | rows | columns | parts | making, bytes a row | mixing | planning, bytes a combination |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "source.parquet"
        for rows in sizes:
            write_source(rows, source)
            for road in roads:
                for columns in (2, 4, 6):
                    command = [sys.executable, "-m", "tests.bench.part_memory", "--worker", road, str(columns)]
                    output = subprocess.run(
                        [*command, str(source)], cwd=ROOT, capture_output=True, text=True, check=True
                    )
                    took = json.loads(output.stdout.splitlines()[-1])
                    a_row = [
                        f"{took[step] / took['rows']:.0f}" if step in took else ""
                        for step in ("release_parts", "mix_results")
                    ]
                    planning = f"{took['_make_plan'] / took['combinations']:.0f}" if "_make_plan" in took else ""
                    cells = [road, f"{rows:,}", columns, took["parts"], *a_row, planning]
                    print(f"| {' | '.join(map(str, cells))} |", flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--worker"]:
        measure_here(sys.argv[2], int(sys.argv[3]), Path(sys.argv[4]))
    elif not ACS.exists():
        print("The table of ACS is not here; the environment variable DUCKANON_DATA names its folder.")
    else:
        given = sys.argv[1:]
        numbers = [int(float(word)) for word in given if word[0].isdigit()]
        main(numbers or [1_000_000], [word for word in given if word in ROADS] or list(ROADS))
