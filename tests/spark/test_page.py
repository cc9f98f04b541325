"""The pages about Spark: their examples print what they show, and the reference names every function."""

from __future__ import annotations

import contextlib
import io
import os
from pathlib import Path
from typing import Any

import pytest

from tests.documentation import EXAMPLE, ON_SPARK, ROOT

pytestmark = pytest.mark.engines
PAGE = ROOT / "duckanon" / "spark" / "README.md"


def printed(code: str, folder: Path, variables: dict[str, Any]) -> str:
    """Run an example and return what it prints."""
    shown = io.StringIO()
    before = os.getcwd()
    os.chdir(folder)
    try:
        with contextlib.redirect_stdout(shown):
            exec(code, variables)
    finally:
        os.chdir(before)
    return "".join(line.rstrip() + "\n" for line in shown.getvalue().splitlines() if line.strip())


@pytest.mark.parametrize("page", ON_SPARK, ids=lambda page: page.name)
def test_the_examples_print_what_the_page_shows(page: Path, spark: Any, tmp_path: Path) -> None:
    variables: dict[str, Any] = {}
    examples = list(EXAMPLE.finditer(page.read_text(encoding="utf-8")))
    assert examples
    for example in examples:
        assert printed(example["code"], tmp_path, variables) == (example["shown"] or "")
    spark.sql("DROP TABLE released")


def test_the_page_names_every_function() -> None:
    from duckanon import spark

    text = PAGE.read_text(encoding="utf-8")
    assert [name for name in spark.__all__ if f"`{name}`" not in text] == []
