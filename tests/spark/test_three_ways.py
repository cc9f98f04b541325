"""One release on three roads: the example's counts come from what was written."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from typing import Any

import pytest

from tests.documentation import ROOT

pytestmark = pytest.mark.engines


def test_all_roads_keep_the_promise_at_the_same_loss(
    spark: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    example = runpy.run_path(str(ROOT / "examples" / "scale" / "three_ways.py"))
    example["main"](tmp_path, 30_000)
    told = [re.findall(r"[\d,.]*\d", line) for line in capsys.readouterr().out.splitlines()]
    numbers = [[float(text.replace(",", "")) for text in line] for line in told]
    assert len(numbers) == 3
    for rows, smallest, *widths in numbers:
        assert (rows, smallest) == (30_000, example["K"])
        assert widths == pytest.approx(numbers[0][2:], rel=0.05)
