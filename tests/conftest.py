"""Collects the `.test` files.

Each runs on a registered connection and in the stock shell: with the extension where it calls Python, and with the
script of `duckanon sql` where it is pure SQL; the extension has the same macros.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy: test processes that share processors wait otherwise

import contextlib
import functools
import gc
import importlib.util
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

import duckanon
from duckanon._bridge import macros
from tests import profiles
from tests.extension.shells import extension_file, stock_shell
from tests.sqltest import Engine, MismatchError, PythonEngine, ShellEngine, check, data_file, empty_schema, parse

profiles.register()


def pytest_sessionstart(session: pytest.Session) -> None:
    """Let the second worker of a whole run import the tests from the last one on.

    On a fresh clone, each of two workers then compiles one half of them and finds the other half compiled.
    """
    is_whole_run = session.config.args == session.config.getini("testpaths")
    if os.environ.get("PYTEST_XDIST_WORKER") == "gw1" and is_whole_run:
        folder = Path(__file__).parent
        for path in sorted(folder.glob("**/test_*.py"), reverse=True):
            module = ".".join(path.with_suffix("").relative_to(folder.parent).parts)
            with contextlib.suppress(pytest.skip.Exception, ImportError):  # as it will be when it is collected
                importlib.import_module(module)


def pytest_collection_finish() -> None:
    """Leave what stays for good, the tests and all that they import, out of every later search for garbage."""
    gc.collect()
    gc.freeze()


def pytest_sessionfinish() -> None:
    gc.unfreeze()


if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as shells let background jobs begin
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    """Connect a test to an empty schema."""
    with empty_schema() as connection:
        yield connection


@pytest.fixture(scope="module")
def shared() -> Iterator[duckdb.DuckDBPyConnection]:
    """Connect all tests of a module to one schema: for properties that replace the tables of the example before."""
    with empty_schema() as connection:
        yield connection


@pytest.fixture
def own_con() -> Iterator[duckdb.DuckDBPyConnection]:
    """Open a database for one test: one that uses cursors, functions of its own, or names of databases and schemas."""
    connection = duckanon.connect()
    yield connection
    connection.close()


@pytest.fixture(scope="session")
def adult() -> Iterator[duckdb.DuckDBPyConnection]:
    """UCI Adult as the table adult."""
    with empty_schema() as connection:
        connection.execute(f"CREATE TABLE adult AS FROM read_csv('{data_file('adult.csv')}')").fetchall()
        yield connection


@pytest.fixture
def short_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the search for a recoding give up early: for what must hold of any plan, not only of the best."""
    monkeypatch.setattr("duckanon._methods.generalize.recoding.search._STEPS", 8)


@functools.cache
def macros_of_shell(binary: Path, folder: Path) -> Path:
    """Run the script of `duckanon sql` once for all `.test` files; return one that attaches what it has made."""
    made = folder / "anon.duckdb"
    script = f"ATTACH '{made}' AS anon (STORAGE_VERSION 'latest');\n{macros.script()}"
    subprocess.run([binary, "-bail"], input=script, text=True, check=True, timeout=300)
    init_script = folder / "anon.sql"
    init_script.write_text(f"ATTACH '{made}' AS anon (READ_ONLY);\n", encoding="utf-8")
    return init_script


@functools.cache
def load_script(folder: Path) -> Path:
    """Return a script that loads the extension."""
    init_script = folder / "load.sql"
    init_script.write_text(f"LOAD '{extension_file()}';\n", encoding="utf-8")
    return init_script


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    return SqlTestFile.from_parent(parent, path=file_path) if file_path.suffix == ".test" else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the longest tests first: no worker is then left at the end with a study, a page or a long `.test` file."""

    def place(item: pytest.Item) -> tuple[bool, bool, int]:
        is_thorough = item.get_closest_marker("thorough") is not None
        return not is_thorough, item.path.name != "test_documentation.py", -_records(item.path)

    items.sort(key=place)


@functools.cache
def _records(path: Path) -> int:
    """Return how many records a `.test` file has; 0 for other files."""
    return len(parse(path)[0]) if path.suffix == ".test" else 0


LONG = {
    "apply_plan", "boxes", "compare_releases", "detectability", "generalize", "kept_column_risk", "optimal_uncertainty",
    "plan", "privacy_test", "recode", "verdict",
}  # fmt: skip
"""The `.test` files that take four seconds of the processor and more: they are for the thorough run."""


WITH_EXTENSION = {"k_anonymity", "swap"}
"""The `.test` files that `make test` runs in the shell with the extension, too: a macro, and a function of Python."""


class SqlTestFile(pytest.File):
    def collect(self) -> Iterator[pytest.Item]:
        _, requirements = parse(self.path)
        if not all(map(importlib.util.find_spec, requirements - {"python"})):
            return  # an extra is not installed
        in_python = SqlTest.from_parent(self, name="python")
        if self.path.stem in LONG:
            in_python.add_marker("thorough")
        yield in_python
        if "python" not in requirements:
            in_shell = SqlTest.from_parent(self, name="shell")
            in_shell.add_marker("shell")
            yield in_shell
        if "python" in requirements or self.path.stem in WITH_EXTENSION:
            with_extension = SqlTest.from_parent(self, name="extension")
            if self.path.stem not in WITH_EXTENSION:
                with_extension.add_marker("shell")
            yield with_extension


class SqlTest(pytest.Item):
    def runtest(self) -> None:
        records, _ = parse(self.path)
        if self.name in ("shell", "extension"):
            binary = stock_shell()
            folder = self.config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]
            if self.name == "shell":
                self._check(ShellEngine(binary, macros_of_shell(binary, folder)), records)
            else:
                self._check(ShellEngine(binary, load_script(folder), "-unsigned"), records)
        else:
            with empty_schema() as connection:
                self._check(PythonEngine(connection), records)

    def _check(self, engine: Engine, records: list) -> None:
        check(self.path, records, engine.run(records))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException]) -> str:
        return str(excinfo.value) if isinstance(excinfo.value, MismatchError) else str(super().repr_failure(excinfo))

    def reportinfo(self) -> tuple[Path, int, str]:
        return self.path, 0, f"{self.path.name} ({self.name})"
