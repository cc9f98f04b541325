"""The evidence of a release: complete, of this release, and without any value of the data."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import duckdb
import pytest

from duckanon.job import FileProblem, JobError, release, run
from duckanon.job.evidence import _differing_promises, evidence
from duckanon.job.policy import Promises
from tests.job.conftest import changed

PLANTED = ("Person 7", "astronaut", "76543")
"""A name of everybody's kind, the job and the age of one person."""

HIERARCHY = "value,group\nf,any\nm,any\nastronaut,any\n"


def collected(policy: Path, to: Path) -> dict[str, str]:
    con = run.connection()
    try:
        evidence(con, policy, to)
    finally:
        con.close()
    with zipfile.ZipFile(to) as parts:
        return {name: parts.read(name).decode() for name in parts.namelist()}


@pytest.mark.thorough
def test_evidence_holds_everything_but_the_data(folder: Path, database: duckdb.DuckDBPyConnection) -> None:
    database.execute(
        f"""COPY (FROM 'people.parquet'
                  UNION ALL SELECT 999, 999, 'Person 999', 76543, 'astronaut', 'flu') TO '{folder}/more.parquet'"""
    ).fetchall()
    (folder / "sexes.csv").write_text(HIERARCHY, encoding="utf-8")
    policy = changed(
        folder,
        ("people.parquet", "more.parquet"),
        ('"suppress_cells"', '"generalize"'),
        ("[source]", 'report = "report.html"\nplan = "plan.parquet"\n\n[hierarchies]\nsex = "sexes.csv"\n\n[source]'),
    )
    release(policy)
    parts = collected(policy, folder / "evidence.zip")
    assert set(parts) == {
        "README.txt",
        "hierarchies.json",
        "plan.json",
        "policy.toml",
        "record.json",
        "report.html",
        "sha256.txt",
        "verify.txt",
        "versions.json",
    }
    for name, content in parts.items():
        assert not [value for value in PLANTED if value in content], name
    assert json.loads(parts["hierarchies.json"])["table.sex"]["levels"] == [{"any": 3}]
    assert {column["column"] for column in json.loads(parts["plan.json"])["columns"]} == {"age", "sex"}
    assert "table: rows: confirmed" in parts["verify.txt"]
    with pytest.raises(FileProblem, match="cannot be written"):
        collected(policy, folder / "evidence.zip")


def test_evidence_is_of_this_policy_and_of_a_release(folder: Path) -> None:
    policy = changed(folder)
    with pytest.raises(FileProblem, match="the record cannot be read"):
        collected(policy, folder / "evidence.zip")
    release(policy)
    assert "policy.toml" in collected(policy, folder / "evidence.zip")
    changed(folder, ("k = 10", "k = 5"))
    with pytest.raises(FileProblem, match=r"policy\.toml: the policy was changed after the release"):
        collected(policy, folder / "other.zip")
    assert not (folder / "other.zip").exists()


def test_there_is_no_evidence_of_another_file(folder: Path) -> None:
    policy = changed(folder)
    release(policy)
    (folder / "release.parquet").write_bytes((folder / "people.parquet").read_bytes())
    with pytest.raises(JobError, match="table: sha256") as refused:
        collected(policy, folder / "evidence.zip")
    assert refused.value.exit_code == 1
    assert not (folder / "evidence.zip").exists()


def test_a_promise_that_is_asked_for_without_a_number_is_compared_without_one() -> None:
    """Whatever had `prediction = true` was refused: its numbers are the limits of the tests."""
    new_records = SimpleNamespace(makes_cells=False, makes_classes=False)
    table: Any = SimpleNamespace(promises=Promises(prediction=True, max_suppressed_fraction=0.1), method=new_records)
    left = {"name": "max_suppressed_fraction", "asked": 0.1}
    entry: Any = {"promises": [{"name": "prediction: distance", "asked": 0.123}, left]}
    assert list(_differing_promises(table, entry)) == []
    more: Any = {"promises": [*entry["promises"], {"name": "joint_k", "asked": 2}]}
    assert list(_differing_promises(table, more)) == ["promises.joint_k"]
    without: Any = {"promises": [left]}
    assert list(_differing_promises(table, without)) == ["promises.prediction"]
    left["asked"] = 0.2
    assert list(_differing_promises(table, entry)) == ["promises.max_suppressed_fraction"]
