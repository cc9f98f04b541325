"""Fixtures of the workbench: a file of people and the site of its policy, on one registered database."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest
from starlette.testclient import TestClient

import duckanon
from duckanon.job import run
from duckanon.workbench.app import application
from duckanon.workbench.policy_text import PolicyText
from duckanon.workbench.site import Site

RARE = "astronaut"
"""The occupation of one person."""

PEOPLE = f"""
    SELECT 'P' || i AS person_id, 20 + (hash(i) % 60)::INTEGER AS age, ['f', 'm'][1 + (i % 2)] AS sex,
           CASE WHEN i = 5 THEN '{RARE}' ELSE ['nurse', 'clerk', 'cook'][1 + (hash(i, 1) % 3)::INTEGER] END
               AS occupation,
           ['flu', 'asthma', 'cold'][1 + (hash(i, 2) % 3)::INTEGER] AS diagnosis, (i % 7)::INTEGER AS xq
    FROM range(600) AS t(i)
"""

POLICY = """\
[source]
path = "people.parquet"

[target]
path = "release.parquet"

[columns]
person_id = "person"
age = "quasi_identifier"
sex = "quasi_identifier"
occupation = "?"  # undecided: no hint
diagnosis = "sensitive"
xq = "?"  # undecided: no hint

[method]
name = "generalize"

[promises]
k = 10
max_suppressed_fraction = 0.05
"""


@pytest.fixture(scope="session")
def database() -> Iterator[duckdb.DuckDBPyConnection]:
    con = duckanon.connect()
    yield con
    con.close()


@pytest.fixture
def folder(tmp_path: Path, database: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a folder with a policy and its source; the workbench and its jobs use one registered database."""

    def connection() -> duckdb.DuckDBPyConnection:
        cursor = database.cursor()
        for kind, name in cursor.execute("""
            SELECT 'VIEW', view_name FROM duckdb_views() WHERE database_name = 'memory' AND NOT internal
            UNION ALL SELECT 'TABLE', table_name FROM duckdb_tables()
            WHERE database_name = 'memory' AND table_name NOT IN ('people', 'sample')""").fetchall():
            cursor.execute(f'DROP {kind} memory.main."{name}"').fetchall()
        return cursor

    monkeypatch.setattr(run, "connection", connection)
    for name in ("people", "sample"):
        database.execute(f"DROP TABLE IF EXISTS memory.main.{name}").fetchall()
    database.execute(f"COPY ({PEOPLE}) TO '{tmp_path}/people.parquet'").fetchall()
    (tmp_path / "policy.toml").write_text(POLICY, encoding="utf-8")
    return tmp_path


@pytest.fixture
def site(folder: Path) -> Iterator[Site]:
    opened = Site(PolicyText(folder / "policy.toml"), "/token")
    opened.opening.wait(60)
    assert opened.opening.error is None
    yield opened
    assert opened.close()


@pytest.fixture
def client(site: Site) -> TestClient:
    return TestClient(application(site), base_url="http://127.0.0.1:8000")
