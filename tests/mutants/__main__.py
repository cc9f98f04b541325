"""`make mutants`: of so many random changes of the code, how many does a test notice?

First all tests run once, and note which blocks they execute (`reach`). Then one place changes at a time, in a copy of
the project, and the tests that execute its block run until one fails: the quickest and most specific first, for at most
`--budget` seconds as they took before. A change that no test notices is printed: it needs a test, or a reason in
`README.md` beside this file. Two hundred take three quarters of an hour on two cores.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import importlib.util
import json
import os
import queue
import random
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.mutants.blocks import ROOT, source_files
from tests.mutants.sites import Site, sites_of

WORK = ROOT / "build" / "mutants"
REACH = WORK / "reach"
TESTS = "not shell and not engines and not browser"
LONGEST = 15
"""Seconds of a test that mutants are tried with: one that takes longer cannot be told from one that does not end."""

ENDED = {0: "survived", 1: "killed", 2: "killed", 3: "killed", 4: "killed"}
"""What pytest's exit code says: 2 to 4 are modules that can no longer be imported."""
NOT_RUN = (4, 5)
"""Exit codes of tests that were not found: where they are not found without the mutant either, it survived."""


@dataclass(frozen=True)
class Reached:
    """A test and what it costs."""

    test: str
    seconds: float
    blocks: frozenset[str]


def map_tests() -> None:
    """Run all tests, the thorough ones too, and note what they execute."""
    shutil.rmtree(REACH, ignore_errors=True)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.mutants.reach", "-n", "2", "-m", TESTS]
    subprocess.run(command, cwd=ROOT, env={**os.environ, "DUCKANON_REACH": str(REACH)}, check=False)


def read_map() -> list[Reached]:
    """Read what the tests executed."""
    lines = [line for path in sorted(REACH.glob("*.jsonl")) for line in path.read_text("utf-8").splitlines()]
    records = sorted((json.loads(line) for line in lines), key=lambda record: -record["seconds"])
    reached = {
        record["test"]: Reached(record["test"], record["seconds"], frozenset(record["blocks"]))
        for record in records  # of a test that ran twice the quicker run stays
    }
    return [one for one in reached.values() if one.seconds <= LONGEST]


def related_tests(site: Site, reached: list[Reached], budget: float) -> list[str]:
    """List the tests that execute a site's block, within a budget of seconds."""
    related = [one for one in reached if site.block in one.blocks]
    related.sort(key=lambda one: (one.seconds + 0.02) * (len(one.blocks) + 50))
    tests, seconds = [], 0.0
    for one in related:
        seconds += one.seconds
        if tests and seconds > budget:
            break
        tests.append(one.test)
    return tests


def copy_project(folder: Path) -> None:
    """Copy the files that git knows."""
    names = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    shutil.rmtree(folder, ignore_errors=True)
    for name in names.stdout.splitlines():
        if (ROOT / name).is_file():
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target)


def run_tests(folder: Path, tests: list[str], limit: float) -> tuple[int | None, str]:
    """Run tests in a copy until one fails; return pytest's exit code, None where it did not end, and the test."""
    arguments = folder / "mutant_tests.txt"
    arguments.write_text("\n".join(tests), encoding="utf-8")
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-x",
        "-n",
        "0",
        "-p",
        "no:cacheprovider",
        "--timeout=60",
        "-m",
        "",
    ]
    environment = {
        **os.environ,
        "PYTHONPATH": str(folder),
        "DUCKANON_DATA": os.environ.get("DUCKANON_DATA", str(ROOT.parent / "shared" / "data")),
    }
    try:
        done = subprocess.run(
            [*command, f"@{arguments}"], cwd=folder, env=environment, capture_output=True, text=True, timeout=limit
        )
    except subprocess.TimeoutExpired:
        return None, ""
    failed = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return done.returncode, failed[0].split(" ")[1] if failed else ""


def try_mutant(site: Site, folder: Path, tests: list[str], budget: float) -> str:
    """Change a place in a copy, run the tests, and change it back."""
    if not tests:
        return "survived: no test executes it"
    path = folder / site.path
    source = path.read_bytes()
    compiled = Path(importlib.util.cache_from_source(str(path)))  # of the same second and size it would be taken again
    limit = 4 * budget + 120
    try:
        path.write_bytes(site.mutate(source))
        compiled.unlink(missing_ok=True)
        code, test = run_tests(folder, tests, limit)
    finally:
        path.write_bytes(source)
        compiled.unlink(missing_ok=True)
    if code is None:
        return "killed (did not end)"
    if code in NOT_RUN and run_tests(folder, tests[:1], limit)[0] in NOT_RUN:
        return "survived: its tests cannot be run"
    return ENDED.get(code, f"killed (exit {code})") + (f" by {test}" if test else "")


def main() -> int:
    """Try the mutants; return 1 where too many survive."""
    parser = argparse.ArgumentParser(prog="make mutants")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--budget", type=float, default=90, help="seconds of tests for a mutant")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--keep-map", action="store_true", help="do not run all tests first: the map is there")
    parser.add_argument("--only", default="", help="only modules whose path contains this")
    parser.add_argument("--at", default="", help="only sites of this module and line: duckanon/job/run.py:12")
    parser.add_argument("--out", type=Path, default=WORK / "outcomes.jsonl")
    options = parser.parse_args()
    if not options.keep_map:
        map_tests()
    reached = read_map()
    sites = [site for path in source_files() if options.only in path.as_posix() for site in sites_of(path)]
    if options.at:
        chosen = [site for site in sites if f"{site.path}:{site.line}" == options.at]
    else:
        chosen = random.Random(options.seed).sample(sites, min(options.count, len(sites)))
    folders: queue.Queue[Path] = queue.Queue()
    for number in range(options.jobs):
        copy_project(WORK / f"copy{number}")
        folders.put(WORK / f"copy{number}")

    def outcome_of(site: Site) -> str:
        folder = folders.get()
        try:
            tests = related_tests(site, reached, options.budget)
            return try_mutant(site, folder, tests, options.budget)
        finally:
            folders.put(folder)

    survivors = 0
    options.out.parent.mkdir(parents=True, exist_ok=True)
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool, options.out.open("w", encoding="utf-8") as out:
        for site, outcome in zip(chosen, pool.map(outcome_of, chosen), strict=True):
            survivors += outcome.startswith("survived")
            out.write(json.dumps({"site": str(site), "outcome": outcome}) + "\n")
            out.flush()
            if outcome.startswith("survived"):
                print(f"{outcome}: {site}", flush=True)
    share = 1 - survivors / max(len(chosen), 1)
    print(f"{len(chosen) - survivors} of {len(chosen)} mutants were killed ({share:.1%}); {len(sites)} places.")
    return int(share < 0.92)


if __name__ == "__main__":
    sys.exit(main())
