"""The stock DuckDB shell, and the extension that it loads."""

from __future__ import annotations

import atexit
import functools
import importlib.util
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from duckanon._extension.extension_file import write_extension


@functools.cache
def stock_shell() -> Path:
    """Find the unmodified DuckDB shell that the package duckdb-cli installs, or skip the test."""
    spec = importlib.util.find_spec("duckdb_cli")  # the script beside Python only calls the program in the package
    found = Path(spec.submodule_search_locations[0], "duckdb") if spec and spec.submodule_search_locations else None
    if found is None or not found.exists():
        on_path = shutil.which("duckdb")
        found = Path(on_path) if on_path else None
    return found or pytest.skip("the stock DuckDB shell is not installed")


@functools.cache
def extension_file() -> Path:
    """Write the extension for this Python once for the process, or skip the test where that cannot be."""
    folder = Path(tempfile.mkdtemp(prefix="duckanon-extension-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    try:
        return write_extension(folder)
    except ValueError as error:
        pytest.skip(str(error))


def run_shell(
    script: str, *arguments: str, loads: bool = True, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a script in the stock shell, on standard input; it prints rows with bars between the values."""
    load = f"LOAD '{extension_file()}';\n" if loads else ""
    return subprocess.run(
        [str(stock_shell()), "-unsigned", "-list", "-noheader", *arguments],
        input=load + script,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        env=os.environ | (env or {}),
    )
