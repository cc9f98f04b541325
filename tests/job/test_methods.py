"""Every method of a policy, on files of both kinds: what it promises is counted again, by plain SQL."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from duckanon.job import PolicyError, PromiseBroken, release
from tests.job.conftest import changed

PARAMETERS = {
    "generalize": "",
    "recode": 'effort = "quick"',
    "suppress_cells": "",
    "boxes": 'by = ["sex"]',
    "microaggregate": 'method = "fast"\nby = ["sex"]',
}
QUICK = [("recode", "release.parquet"), ("boxes", "release.csv"), ("microaggregate", "release.parquet")]


@pytest.mark.parametrize(
    ("method", "target"),
    [
        pytest.param(method, target, marks=() if (method, target) in QUICK else pytest.mark.thorough)
        for method in PARAMETERS
        for target in ("release.parquet", "release.csv")
    ],
)
def test_classes_of_every_method(method: str, target: str, folder: Path) -> None:
    """With l and t of the sensitive column; the classes of the file are those of its columns but the sensitive one."""
    policy = changed(
        folder,
        ('name = "suppress_cells"', f'name = "{method}"\n{PARAMETERS[method]}'),
        ("k = 10", "k = 10\nl = 2\nt = 0.5"),
        ("release.parquet", target),
    )
    (table,) = release(policy)["tables"]
    rows = f"'{target}'" if target.endswith("parquet") else f"read_csv('{target}', all_varchar = true)"
    smallest, fewest, count = duckdb.sql(
        "SELECT min(n), min(l), sum(n) FROM "
        f"(SELECT * EXCLUDE diagnosis, count(*) AS n, count(DISTINCT diagnosis) AS l FROM {rows} GROUP BY ALL)"
    ).fetchall()[0]
    measured = {promise["name"]: promise["measured"] for promise in table["promises"]}
    assert 10 <= measured["k"] <= smallest
    assert measured["l of diagnosis"] == fewest
    assert 0 <= measured["t of diagnosis"] <= 0.5
    assert table["output"]["rows"] == count
    assert {column["name"]: column["treatment"] for column in table["columns"]}["name"] == "dropped"


@pytest.mark.thorough
def test_hierarchies_references_and_utility(folder: Path, database: duckdb.DuckDBPyConnection) -> None:
    (folder / "sexes.csv").write_text("value,group\nf,anybody\nm,anybody\n")
    database.execute("COPY (SELECT age, sex FROM 'people.parquet') TO 'others.csv'").fetchall()
    policy = changed(folder, ('"suppress_cells"', '"generalize"'), ("k = 10", "k = 50\nmax_marginal_difference = 0.01"))
    text = policy.read_text().replace("[source]", '[hierarchies]\nsex = "sexes.csv"\n[source]')
    policy.write_text(text)
    with pytest.raises(PromiseBroken, match=r"max_marginal_difference: promised 0\.01, measured 0\.\d+"):
        release(policy)
    policy.write_text(text.replace("0.01", "0.9"))
    (table,) = release(policy)["tables"]
    assert {promise["name"] for promise in table["promises"]} == {
        "k",
        "max_suppressed_fraction",
        "max_marginal_difference",
    }
    text = text.replace("0.01", "0.9\nprediction = true")
    policy.write_text(text.replace("[hierarchies]", 'reference = "others.csv"\n[hierarchies]'))
    names = {promise["name"] for promise in release(policy)["tables"][0]["promises"]}
    assert {"prediction: distance", "prediction: exact_copies"} <= names


def test_a_refusal_about_a_parameter_is_the_policy_s_fault(folder: Path) -> None:
    policy = changed(folder, ('"suppress_cells"', '"generalize"\nmethods = { age = "magic" }'))
    with pytest.raises(PolicyError, match=r"anon\.generalize: .*magic"):
        release(policy)
