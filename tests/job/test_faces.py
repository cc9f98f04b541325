"""One awkward release: terminal, record, report, evidence and workbench say of it what plain SQL counts in the file."""

from __future__ import annotations

import html
import json
import re
import zipfile
from pathlib import Path
from typing import Any

import duckdb
import pytest
from starlette.testclient import TestClient

from duckanon.cli.release_command import summary
from duckanon.job import release, run
from duckanon.job.evidence import evidence
from duckanon.workbench import site as sites
from duckanon.workbench.app import application
from duckanon.workbench.policy_text import PolicyText
from tests.report.records import Page

POLICY = """\
report = "report.html"
source = { path = "visits.parquet" }
target = { path = "release.parquet" }
key = { environment = "DUCKANON_TEST_KEY" }

[columns]
patient = { role = "person", pseudonym = true }
age = "quasi_identifier"
sex = "quasi_identifier"
code = "quasi_identifier"
diagnosis = "sensitive"

[method]
name = "generalize"
narrowing = ["diagnosis"]

[promises]
k = 5
l = 2
max_suppressed_fraction = 0.05
"""

VISITS = """
    SELECT 'P' || i AS patient, 20 + 10 * (i % 4) AS age, ['f', 'm'][1 + i // 4 % 2] AS sex, 'C' || i AS code,
           ['flu', 'asthma', 'cold'][1 + (hash(i, j) % 3)::INTEGER] AS diagnosis
    FROM range(400) AS t(i), range(3) AS u(j) WHERE j <= i % 3
    UNION ALL
    SELECT NULL, 20 + 10 * (i % 4), 'f', 'C' || i, 'flu' FROM range(60) AS t(i)
    UNION ALL
    SELECT 'Q' || i, 95, 'x', 'D' || i, ['flu', 'cold'][1 + j % 2] FROM range(2) AS t(i), range(20) AS u(j)
"""
"""Two people, whose class is too small, have one row in twenty; the code is different for everybody."""


def words(text: str) -> str:
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", text)).split())


@pytest.fixture
def counted(folder: Path, database: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Release the visits, and count everything in the file with plain SQL."""
    monkeypatch.setenv("DUCKANON_TEST_KEY", "a key of at least sixteen characters")
    database.execute(f"COPY ({VISITS}) TO 'visits.parquet'").fetchall()
    (folder / "policy.toml").write_text(POLICY, encoding="utf-8")
    with duckdb.connect() as con:
        record = release("policy.toml")
        con.execute("CREATE VIEW file AS FROM 'release.parquet'; CREATE VIEW visits AS FROM 'visits.parquet'")
        one = con.execute(
            """WITH classes AS (SELECT count(DISTINCT patient) AS size, count(DISTINCT diagnosis) AS kinds
                                FROM file GROUP BY age, sex, code),
                    kept AS (SELECT count(DISTINCT patient) AS size FROM file GROUP BY age, sex, code, diagnosis),
                    before AS (SELECT age, sex, code, count(DISTINCT patient) AS size FROM visits GROUP BY ALL)
               SELECT (SELECT min(size) FROM classes) AS k, (SELECT min(kinds) FROM classes) AS l,
                      (SELECT min(size) FROM kept) AS k_with_diagnosis,
                      (SELECT count(*) FROM file) AS file_rows,
                      (SELECT count(DISTINCT patient) FROM file) AS file_people,
                      (SELECT count(*) FROM visits) AS all_rows,
                      (SELECT count(DISTINCT patient) FROM visits) AS all_people,
                      (SELECT min(size) FROM before) AS k_before,
                      (SELECT count(DISTINCT patient) FROM visits JOIN before USING (age, sex, code) WHERE size = 1)
                          AS unique_before,
                      (SELECT count(*) FROM visits WHERE patient IS NULL) AS nobody"""
        )
        names = [column[0] for column in one.description or []]
        found = dict(zip(names, one.fetchall()[0], strict=True))
        labels = {
            name: con.execute(f"SELECT count(*) FROM (SELECT DISTINCT {name} FROM file)").fetchall()[0][0]
            for name in ("age", "sex", "code")
        }
    gone = found["all_people"] - found["file_people"]
    return {**found, "labels": labels, "gone": gone, "record": record}


def test_all_faces_say_what_the_file_has(
    counted: dict[str, Any], folder: Path, database: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert counted["labels"]["code"] == 1  # erased
    assert (counted["nobody"], counted["k_before"]) == (60, 0)
    assert counted["gone"] == 2
    assert counted["all_rows"] - counted["file_rows"] >= 40  # a share of rows is none of people
    check_record(counted)
    check_terminal(counted)
    check_report(counted, folder)
    check_evidence(counted, folder, database)
    check_workbench(counted, folder, database, monkeypatch)


def check_record(counted: dict[str, Any]) -> None:
    (table,) = counted["record"]["tables"]
    promises = {promise["name"]: promise for promise in table["promises"]}
    share = counted["gone"] / counted["all_people"]
    assert (table["output"]["rows"], table["output"]["people"]) == (counted["file_rows"], counted["file_people"])
    assert (table["rows"], table["people"]) == (counted["all_rows"], counted["all_people"])
    assert table["output"]["labels"] == counted["labels"]
    assert promises["k"]["measured"] == counted["k"]
    assert promises["l of diagnosis"]["measured"] == counted["l"]
    assert promises["max_suppressed_fraction"]["measured"] == pytest.approx(share)
    assert table["suppressed"]["rows"] == counted["all_rows"] - counted["file_rows"]


def check_terminal(counted: dict[str, Any]) -> None:
    share = counted["gone"] / counted["all_people"]
    terminal = summary(counted["record"])
    assert f"{counted['file_rows']} rows, release.parquet" in terminal
    assert f"Every class has at least {counted['k']} people." in terminal
    gone = counted["all_rows"] - counted["file_rows"]
    assert f"suppressed: {gone} of {counted['all_rows']} rows ({gone / counted['all_rows']:.4%}); what" in terminal
    assert f"at least {counted['l']} values of diagnosis" in terminal
    assert re.search(rf"\b{counted['gone']} people were suppressed \({share:.4%}", terminal)


def check_report(counted: dict[str, Any], folder: Path) -> None:
    text = (folder / "report.html").read_text(encoding="utf-8")
    page = Page(text)
    shown = {attributes["data-path"]: json.loads(attributes["value"] or "") for attributes, _ in page.all("data")}
    told = {
        "/tables/0/output/rows": counted["file_rows"],
        "/tables/0/output/people": counted["file_people"],
        "/tables/0/measures/classes/before/smallest": str(counted["k_before"]),
        "/tables/0/measures/classes/after/smallest": counted["k"],
        "/tables/0/measures/narrowing/0/k": counted["k_with_diagnosis"],
        **{f"/tables/0/measures/coarseness/{at}/labels": n for at, n in enumerate(counted["labels"].values())},
    }
    assert {path: shown[path] for path in told} == told
    report = words(text)
    assert "max_suppressed_fraction share of the people all of whose rows are suppressed" in report
    assert "Erased : code . Every row of the release says the same there" in report
    assert "code erased" in report
    assert "finds as few as 0" not in report
    assert counted["k_with_diagnosis"] == 0 or "rows without a person" not in report


def check_evidence(counted: dict[str, Any], folder: Path, database: duckdb.DuckDBPyConnection) -> None:
    evidence(database.cursor(), "policy.toml", "evidence.zip")
    with zipfile.ZipFile("evidence.zip") as together:
        assert json.loads(together.read("record.json"))["tables"] == json.loads(json.dumps(counted["record"]["tables"]))
        assert together.read("report.html") == (folder / "report.html").read_bytes()
        assert "differs" not in together.read("verify.txt").decode().lower()


def check_workbench(
    counted: dict[str, Any], folder: Path, database: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "connection", database.cursor)
    monkeypatch.setattr(sites, "check_policy", lambda _: [])
    site = sites.Site(PolicyText(folder / "policy.toml"), "/token")
    try:
        assert site.opening.wait(60).error is None
        site.works.start("released", lambda _: counted["record"], site.policy.version).wait(10)
        page = words(TestClient(application(site), base_url="http://127.0.0.1:8000").get("/token/release").text)
        panel = (
            f"{counted['unique_before']:,} of {counted['all_people']:,} people are unique in the 3 columns that others"
        )
        assert panel in page
        assert f"the smallest class has {counted['k_before']} people" in page
        assert f"{counted['nobody']} rows have no person and count as nobody" in page
        assert f"k people in the smallest class 5 {counted['k']} ✓ kept" in page
        assert "suppressed_ fraction share of the people all of whose rows are suppressed 0.05" in page
        assert (
            f"of diagnosis different values of a sensitive column in a class, at least 2 {counted['l']} ✓ kept" in page
        )
    finally:
        site.works.stop()
        for name in ("people", "sample"):
            database.execute(f"DROP TABLE IF EXISTS memory.main.{name}").fetchall()


AGGREGATE = """\
kind = "aggregate"
report = "report.html"
source = { path = "stays.parquet" }
target = { path = "counts.parquet" }
columns = { id = "identifier", region = "quasi_identifier", sex = "quasi_identifier", cost = "sensitive" }
method = { name = "protect_table", measure = "cost" }
promises = { k = 5 }
"""


@pytest.mark.thorough
def test_the_hidden_value_of_a_table_is_no_share_of_rows(folder: Path, database: duckdb.DuckDBPyConnection) -> None:
    database.execute(
        """COPY (SELECT unnest(range(people)) AS id, region, sex, 10 + id % 7 AS cost
        FROM (VALUES ('A', 'f', 3), ('A', 'm', 12), ('B', 'f', 14), ('B', 'm', 15), ('C', 'f', 60), ('C', 'm', 55))
             AS t(region, sex, people)) TO 'stays.parquet'"""
    ).fetchall()
    (folder / "policy.toml").write_text(AGGREGATE, encoding="utf-8")
    record = release("policy.toml")
    with duckdb.connect() as con:
        ((share, smallest),) = con.execute(
            """WITH total AS (FROM 'counts.parquet' ORDER BY value DESC LIMIT 1)
               SELECT 1 - sum(cells.value) / any_value(total.value), (SELECT min(people) FROM 'counts.parquet')
               FROM 'counts.parquet' AS cells, total WHERE cells.region <> total.region AND cells.sex <> total.sex"""
        ).fetchall()
    (table,) = record["tables"]
    assert share > 0.2
    assert table["suppressed"]["fraction"] == pytest.approx(share)
    terminal = summary(record)
    assert f"{share:.4%} of the value of the inner cells is hidden" in terminal
    assert f"Every shown cell has at least {smallest} people." in terminal
    assert "No hidden cell can be computed from the whole table" in terminal
    report = words((folder / "report.html").read_text(encoding="utf-8"))
    assert "max_suppressed_fraction share of the value of the inner cells that is hidden" in report
    assert f"k people in the smallest cell that is shown 5 {smallest} ✓ kept" in report
    assert "Share of the value of the inner cells that is hidden, at most 0.5" in report
    assert "rows suppressed" not in report
    assert "share of the rows" not in report.lower()
