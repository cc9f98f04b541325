"""Fixtures of the release job: one registered database for all of its tests, since registering takes a second."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

import duckanon
from duckanon.job import run

PEOPLE = """
    SELECT i AS id, i // 2 AS patient, 'Person ' || i AS name, 20 + 10 * (i // 2 % 4) AS age,
           ['f', 'm'][1 + i % 2] AS sex, ['flu', 'asthma', 'cold'][1 + i // 8 % 3] AS diagnosis
    FROM range(240) AS t(i)
"""
"""Eight classes of thirty rows over age and sex; two rows a person, in two classes."""

POLICY = """\
[source]
path = "people.parquet"

[target]
path = "release.parquet"

[columns]
id = "identifier"
patient = "person"
name = "identifier"
age = "quasi_identifier"
sex = "quasi_identifier"
diagnosis = "sensitive"

[method]
name = "suppress_cells"

[promises]
k = 10
"""

LINKED_PEOPLE = 120

LINKED_POLICY = """\
[key]
environment = "DUCKANON_TEST_KEY"

[promises]
k = 5
max_suppressed_fraction = 0.1

[method]
name = "release_linked"

[tables.patients]
source = { path = "patients.parquet" }
target = { path = "patients_out.parquet" }
method = { name = "recode" }
promises = { k = 30 }
[tables.patients.columns]
patient = { role = "person", pseudonym = true }
age = "quasi_identifier"

[tables.visits]
source = { path = "visits.parquet" }
target = { path = "visits_out.csv" }
[tables.visits.columns]
pid = { role = "person", pseudonym = true }
ward = "quasi_identifier"
day = "quasi_identifier"
diagnosis = "sensitive"

[tables.labs]
source = { path = "labs.parquet" }
target = { path = "labs_out.parquet" }
promises = { known_events = 1 }
[tables.labs.columns]
patient = { role = "person", pseudonym = true }
test = "quasi_identifier"
taken = "drop"
"""
"""Tables of events that are released together, and the people they are about."""


@pytest.fixture(scope="session")
def database() -> Iterator[duckdb.DuckDBPyConnection]:
    con = duckanon.connect()
    yield con
    con.close()


@pytest.fixture
def folder(tmp_path: Path, database: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a folder with a policy and its source, in which jobs run on the one database."""

    def connection() -> duckdb.DuckDBPyConnection:
        cursor = database.cursor()
        for kind, name in cursor.execute("""
            SELECT 'VIEW', view_name FROM duckdb_views() WHERE database_name = 'memory' AND NOT internal
            UNION ALL SELECT 'TABLE', table_name FROM duckdb_tables() WHERE database_name = 'memory'""").fetchall():
            cursor.execute(f'DROP {kind} memory.main."{name}"').fetchall()
        return cursor

    monkeypatch.setattr(run, "connection", connection)
    monkeypatch.chdir(tmp_path)
    database.execute(f"COPY ({PEOPLE}) TO '{tmp_path}/people.parquet'").fetchall()
    (tmp_path / "policy.toml").write_text(POLICY, encoding="utf-8")
    return tmp_path


def leave_release(path: Path, text: str | bytes) -> None:
    """Write a file and the record of its release, as a former run leaves them."""
    content = text if isinstance(text, bytes) else text.encode()
    path.write_bytes(content)
    output = {"path": path.name, "sha256": hashlib.sha256(content).hexdigest()}
    record = {"policy": {"path": "policy.toml"}, "tables": [{"output": output}]}
    path.with_name(f"{path.name}.record.json").write_text(json.dumps(record), encoding="utf-8")


def changed(folder: Path, *replacements: tuple[str, str], name: str = "policy.toml") -> Path:
    """Write the policy with some of its text replaced."""
    text = POLICY
    for before, after in replacements:
        assert before in text
        text = text.replace(before, after)
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture
def hospital(folder: Path, database: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make people with three visits and two lab results each."""
    monkeypatch.setenv("DUCKANON_TEST_KEY", "a key of at least sixteen characters")
    drawn = "(md5_number_lower(i || ' ' || j || '{}') % {})::INTEGER"
    database.execute(f"""
        COPY (SELECT i AS patient, 20 + {drawn.format("a", 60)} AS age
              FROM range({LINKED_PEOPLE}) AS t(i), range(1) AS s(j)) TO 'patients.parquet';
        COPY (SELECT i AS pid, ['eye', 'ear', 'skin'][1 + {drawn.format("w", 3)}] AS ward,
                     DATE '2025-01-01' + {drawn.format("d", 365)} AS day, 'd' || {drawn.format("x", 6)} AS diagnosis
              FROM range({LINKED_PEOPLE}) AS t(i), range(3) AS s(j)) TO 'visits.parquet';
        COPY (SELECT i AS patient, ['iron', 'zinc'][1 + {drawn.format("t", 2)}] AS test,
                     DATE '2025-01-01' + {drawn.format("d", 365)} AS taken
              FROM range({LINKED_PEOPLE}) AS t(i), range(2) AS s(j)) TO 'labs.parquet'""").fetchall()
    (folder / "policy.toml").write_text(LINKED_POLICY, encoding="utf-8")
    return folder
