"""A plugin of pytest that notes which blocks of the code each test executes.

    python -m pytest -p tests.mutants.reach

A hook of the import system inserts a call at the beginning of every block of a function. It costs a tenth of the run,
where a trace of lines would cost five times as much, and it sees the threads in which DuckDB calls the algorithms.
What a test does in another process is not seen.
"""

from __future__ import annotations

import ast
import importlib.abc
import importlib.machinery
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from types import CodeType

import pytest

from tests.mutants.blocks import MUTATED, ROOT, blocks_of

REACHED: set[str] = set()
FOLDER = Path(os.environ.get("DUCKANON_REACH", ROOT / "build" / "mutants" / "reach"))


class Noting(importlib.machinery.SourceFileLoader):
    """A loader that compiles a module with a note at the beginning of every block."""

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        tree = ast.parse(self.get_data(path))
        for block in list(blocks_of(tree, Path(path).relative_to(ROOT).as_posix())):
            is_described = (
                isinstance(block.statement, ast.FunctionDef) and ast.get_docstring(block.statement) is not None
            )
            first = 1 if is_described and block.body is block.statement.body else 0
            note = ast.parse(f"__duckanon_reached__({block.name!r})").body[0]
            for part in ast.walk(note):
                ast.copy_location(part, block.body[0])
            block.body.insert(first, note)
        return compile(ast.fix_missing_locations(tree), path, "exec")

    def exec_module(self, module) -> None:
        module.__dict__["__duckanon_reached__"] = REACHED.add
        super().exec_module(module)


class Finder(importlib.abc.MetaPathFinder):
    """Finds the modules that are mutated."""

    def find_spec(self, fullname, path=None, target=None):
        if not fullname.startswith(tuple(f"duckanon.{package}" for package in MUTATED)):
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path)
        if spec is not None and spec.origin and spec.origin.endswith(".py"):
            spec.loader = Noting(fullname, spec.origin)
        return spec


sys.meta_path.insert(0, Finder())


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Forget what was executed before."""
    REACHED.clear()
    return (yield)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Write what a test that passed has executed, a line each."""
    if report.when == "call" and report.passed and not hasattr(report, "node"):
        FOLDER.mkdir(parents=True, exist_ok=True)
        with (FOLDER / f"{os.getpid()}.jsonl").open("a", encoding="utf-8") as file:
            line = {"test": report.nodeid, "seconds": report.duration, "blocks": sorted(REACHED)}
            file.write(json.dumps(line) + "\n")
