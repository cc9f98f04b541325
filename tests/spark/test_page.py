"""The page of duckanon.spark: its example prints what it shows, and it names every function."""

from __future__ import annotations

import contextlib
import io
import os
from pathlib import Path
from typing import Any

import pytest

from tests.documentation import EXAMPLE, ROOT

pytestmark = pytest.mark.engines
PAGE = ROOT / "duckanon" / "spark" / "README.md"


def printed(code: str, folder: Path) -> str:
    """Run an example and return what it prints."""
    shown = io.StringIO()
    before = os.getcwd()
    os.chdir(folder)
    try:
        with contextlib.redirect_stdout(shown):
            exec(code, {})
    finally:
        os.chdir(before)
    return "".join(line.rstrip() + "\n" for line in shown.getvalue().splitlines() if line.strip())


def test_the_example_prints_what_the_page_shows(spark: Any, tmp_path: Path) -> None:
    found = list(EXAMPLE.finditer(PAGE.read_text(encoding="utf-8")))
    assert len(found) == 1
    assert printed(found[0]["code"], tmp_path) == found[0]["shown"]
    spark.sql("DROP TABLE released")


def test_the_page_names_every_function() -> None:
    from duckanon import spark

    text = PAGE.read_text(encoding="utf-8")
    assert [name for name in spark.__all__ if f"`{name}`" not in text] == []
