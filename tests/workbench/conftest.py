"""Fixtures of the workbench: a file of people and the site of its policy, on one registered database."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest
from starlette.testclient import TestClient

import duckanon
from duckanon.job import run
from duckanon.workbench import site as sites
from duckanon.workbench.app import application
from duckanon.workbench.policy_text import PolicyText
from duckanon.workbench.site import Site
from duckanon.workbench.tree_editor import Editor
from duckanon.workbench.works import Works

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
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Open one workbench for all tests, on one registered database with its jobs: registering takes a second."""
    database, path = duckanon.connect(), tmp_path_factory.mktemp("workbench")

    def connection() -> duckdb.DuckDBPyConnection:
        cursor = database.cursor()
        for kind, name in cursor.execute("""
            SELECT 'VIEW', view_name FROM duckdb_views() WHERE database_name = 'memory' AND NOT internal
            UNION ALL SELECT 'TABLE', table_name FROM duckdb_tables()
            WHERE database_name = 'memory' AND table_name NOT IN ('people', 'sample')""").fetchall():
            cursor.execute(f'DROP {kind} memory.main."{name}"').fetchall()
        return cursor

    database.execute(f"COPY ({PEOPLE}) TO '{path}/people.parquet'").fetchall()
    (path / "policy.toml").write_text(POLICY, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run, "connection", connection)
        made = Site(PolicyText(path / "policy.toml"), "/token")
        made.opening.wait(60)
        assert made.opening.error is None
        yield made
        assert made.close()
    database.close()


@pytest.fixture
def folder(opened: Site) -> Path:
    """Return the folder with nothing but the policy, as it was, and its source."""
    path = opened.policy.path.parent
    for file in path.iterdir():
        if file.name not in ("people.parquet", "policy.toml"):
            file.unlink()
    (path / "policy.toml").write_text(POLICY, encoding="utf-8")
    return path


@pytest.fixture
def site(opened: Site, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """Return the workbench as if it were opened now, without looking for what would stop the release: it takes long."""
    monkeypatch.setattr(sites, "check_policy", lambda _: [])
    opened.policy = opened.bench.policy = PolicyText(folder / "policy.toml")
    opened.works, opened.moves, opened.editor = Works(), [], Editor(opened.bench)
    yield opened
    assert opened.works.stop()


@pytest.fixture
def client(site: Site) -> TestClient:
    return TestClient(application(site), base_url="http://127.0.0.1:8000")
