"""The report of a job: it appears with the release, and not without it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from duckanon.job import FileProblem, PromiseBroken, release
from tests.job.conftest import changed


@pytest.mark.thorough
def test_the_report_appears_with_the_release(folder: Path) -> None:
    with pytest.raises(PromiseBroken):
        release(changed(folder, ("k = 10", "k = 10\nl = 4")), report="report.html", dry_run=True)
    assert sorted(os.listdir(folder)) == ["people.parquet", "policy.toml"]
    with pytest.raises(PromiseBroken, match=r"not to be given away: \S+report\.not-released\.html\.$"):
        release(changed(folder, ("k = 10", "k = 10\nl = 4")), report="report.html")
    assert sorted(os.listdir(folder)) == ["people.parquet", "policy.toml", "report.not-released.html"]
    record = release(changed(folder), report="report.html")
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert record["tables"][0]["promises"][0]["words"] in page
    assert "Person 7" not in page
    assert record["tables"][0]["measures"]


def test_a_broken_promise_has_a_report_of_its_own(folder: Path) -> None:
    """The report of the release in place stays; the other says what was asked and reached, and shows no picture."""
    last = "<dl><dt>Policy</dt><dd>policy.toml</dd></dl>"
    (folder / "report.html").write_text(last)
    with pytest.raises(PromiseBroken):
        release(changed(folder, ("k = 10", "k = 10\nl = 4")), report="report.html")
    assert (folder / "report.html").read_text() == last
    page = (folder / "report.not-released.html").read_text(encoding="utf-8")
    assert "Do not release: 1 promise is broken" in page
    assert "Keep this page internal" in page
    assert "may leave together" not in page
    assert "<svg" not in page
    assert not any(value in page for value in ("asthma", "flu", "Person 1"))
    assert not list(folder.glob(".*"))
    with pytest.raises(FileProblem, match="two files of the job would have this name"):
        release(changed(folder, ("release.parquet", "report.not-released.csv")), report="report.csv")
