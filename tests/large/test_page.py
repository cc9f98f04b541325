"""The page of duckanon.large: its example prints what it shows, and it names every function."""

from __future__ import annotations

import contextlib
import io
from pathlib import Path

import duckdb
import pytest

from duckanon import large
from tests.documentation import EXAMPLE, ROOT

PAGE = ROOT / "duckanon" / "large" / "README.md"


@pytest.fixture(autouse=True)
def small_parts() -> None:
    """Let the example have the memory that it asks for."""


@pytest.mark.thorough
@pytest.mark.skipif(duckdb.__version__ < "2", reason="the output is drawn by DuckDB 2.0")
def test_the_example_prints_what_the_page_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (example,) = EXAMPLE.finditer(PAGE.read_text(encoding="utf-8"))
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown):
        exec(example["code"], {})
    assert "\n".join(line.rstrip() for line in shown.getvalue().splitlines() if line.strip()) + "\n" == example["shown"]


def test_the_page_names_every_function() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert [name for name in large.__all__ if f"`{name}`" not in text] == []
