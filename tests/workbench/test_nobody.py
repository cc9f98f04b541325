"""Rows without a person: the panel, `duckanon assess` and SQL count the same people, k and unique people."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest
from starlette.testclient import TestClient

import duckanon
from duckanon.cli.assess_command import assessment
from duckanon.job import run
from duckanon.workbench import bench as benches
from duckanon.workbench.app import application
from duckanon.workbench.policy_text import PolicyText
from duckanon.workbench.site import Site

POLICY = """\
source = { path = "visits.parquet" }
target = { path = "release.parquet" }
columns = { patient = "person", age = "quasi_identifier", sex = "quasi_identifier", ward = "free" }
method = { name = "generalize" }
promises = { k = 5 }
"""


@pytest.fixture(scope="module")
def database() -> Iterator[duckdb.DuckDBPyConnection]:
    con = duckanon.connect()
    yield con
    con.close()


def visits(nobody: int) -> str:
    """Return a query: one to four visits each of 300 people, and rows without a person in classes of their own."""
    return f"""
        SELECT 'P' || i AS patient, 18 + (hash(i) % 70)::INTEGER AS age,
               ['f', 'm'][1 + (hash(i, 1) % 2)::INTEGER] AS sex,
               ['eye', 'ear'][1 + j % 2] AS ward
        FROM range(300) AS t(i), range(4) AS u(j) WHERE j <= hash(i, 3) % 4
        UNION ALL
        SELECT NULL, 18 + (hash(i, 5) % 90)::INTEGER, 'm', 'eye' FROM range({nobody}) AS t(i)"""


def plain_counts(con: duckdb.DuckDBPyConnection) -> tuple[int, int, int]:
    """Return k, unique people and people, by GROUP BY and count(DISTINCT)."""
    return con.execute(
        """WITH sizes AS (SELECT age, sex, count(DISTINCT patient) AS size FROM assessed GROUP BY ALL)
           SELECT (SELECT min(size) FROM sizes),
                  (SELECT count(DISTINCT patient) FROM assessed JOIN sizes USING (age, sex) WHERE size = 1),
                  (SELECT count(DISTINCT patient) FROM assessed)"""
    ).fetchall()[0]


def told(text: str) -> dict[str, Any]:
    """Return the numbers of a sentence about unique people."""
    text = " ".join(re.sub(r"<[^>]*>", "", html.unescape(text)).split())
    found = re.search(r"(?:for )?([\d,]+) of ([\d,]+) people.*?smallest class has (\d+)", text)
    assert found, text
    unique, people, k = (int(number.replace(",", "")) for number in found.groups())
    return {"counts": (k, unique, people), "nobody": re.findall(r"(\d+) rows? ha(?:s|ve) no (?:person|patient)", text)}


@pytest.mark.parametrize("nobody", [pytest.param(0, marks=pytest.mark.thorough), 120])
def test_every_face_counts_the_same_people(
    nobody: int, tmp_path: Path, database: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    con = database.cursor()
    con.execute(f"CREATE OR REPLACE TEMP TABLE assessed AS {visits(nobody)}").fetchall()
    con.execute(f"COPY assessed TO '{tmp_path}/visits.parquet'").fetchall()
    k, _, people = expected = plain_counts(con)
    assert (k == 0) is (nobody > 0)
    query = "SELECT k, people FROM anon.k_anonymity('assessed', ['age', 'sex'], person := 'patient')"
    assert con.execute(query).fetchall() == [(k, people)]
    seen = {"counts": expected, "nobody": [str(nobody)] * (nobody > 0)}
    assert told(assessment(con, "visits.parquet", None, "patient")) == seen
    (tmp_path / "policy.toml").write_text(POLICY)
    monkeypatch.setattr(run, "connection", database.cursor)
    site = Site(PolicyText(tmp_path / "policy.toml"), "/token")
    try:
        assert site.opening.wait(60).error is None
        page = TestClient(application(site), base_url="http://127.0.0.1:8000").get("/token/risk").text
        assert told(page.partition("<aside")[2]) == seen
        assert site.bench.risk(["age", "sex"], table="sample").k == k
        monkeypatch.setattr(benches, "MOST_PEOPLE", 150)  # of 300
        site.bench._sampled_by = None
        site.bench.sample(con)
        sampled = site.bench.risk(["age", "sex"], con, "sample")
        assert sampled.people == 150
        assert sampled.nobody == pytest.approx(nobody / 2, abs=25)
    finally:
        site.works.stop()
        for name in ("people", "sample"):
            con.execute(f"DROP TABLE IF EXISTS memory.main.{name}").fetchall()
