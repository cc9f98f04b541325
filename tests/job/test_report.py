"""The report of a job: it appears with the release, and not without it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from duckanon.job import PromiseBroken, release
from tests.job.conftest import changed


@pytest.mark.thorough
def test_the_report_appears_with_the_release(folder: Path) -> None:
    with pytest.raises(PromiseBroken):
        release(changed(folder, ("k = 10", "k = 10\nl = 4")), report="report.html")
    assert sorted(os.listdir(folder)) == ["people.parquet", "policy.toml"]
    record = release(changed(folder), report="report.html")
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert record["tables"][0]["promises"][0]["words"] in page
    assert "Person 7" not in page
    assert record["tables"][0]["measures"]
