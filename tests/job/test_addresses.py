"""Addresses of servers in drafts and assessments: the user stays, the password does not; no server is asked."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import duckdb
import pytest

from duckanon.cli.main import main
from duckanon.job import draft, policy_file, run, warehouse
from duckanon.postgresql.source import Fetched
from tests.job.conftest import PEOPLE

ADDRESSES = {
    "postgresql://me@server/clinic": "postgresql://me@server/clinic",
    "postgresql://me:secret@server/clinic": "postgresql://me@server/clinic",
    "postgres://me:sec?re@t@server:5432/clinic?sslmode=require": "postgres://me@server:5432/clinic?sslmode=require",
    "postgresql://me:12/3secret@server/clinic": "postgresql://me@server/clinic",
    "postgresql://:secret@server/clinic": "postgresql://server/clinic",
    "postgresql://server/clinic?user=me&password=secret": "postgresql://server/clinic?user=me",
    "postgresql://server/clinic?sslpassword=secret": "postgresql://server/clinic",
    "postgresql://server:5432/clinic?application_name=a@b": "postgresql://server:5432/clinic?application_name=a@b",
    "postgresql:///clinic": "postgresql:///clinic",
}


@pytest.mark.parametrize("address", ADDRESSES)
def test_a_user_stays_and_a_password_goes(address: str) -> None:
    assert draft.without_password(address) == ADDRESSES[address]


@pytest.fixture
def server(folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Let a table come from where a server would be, and remember the addresses that were asked."""
    asked = []

    def fetch(
        con: duckdb.DuckDBPyConnection, address: str, table: str, query: str | None, into: str, **_: Any
    ) -> Fetched:
        asked.append(address)
        con.execute(f"CREATE OR REPLACE TEMP TABLE {into} AS {PEOPLE}").fetchall()
        return Fetched([], {}, set())

    monkeypatch.setattr(warehouse, "fetch", fetch)
    monkeypatch.setattr("duckanon.connect", run.connection)
    return asked


@pytest.mark.thorough
def test_a_draft_keeps_the_user_of_its_source(server: list[str], folder: Path) -> None:
    address = "postgresql://me:secret@server/clinic"
    assert main(["policy", "init", "--from", address, "--table", "people", "--to", "drafted.toml"]) == 0
    text = (folder / "drafted.toml").read_text(encoding="utf-8")
    assert tomllib.loads(text)["source"] == {"path": "postgresql://me@server/clinic", "table": "people"}
    assert "secret" not in text
    assert "PGPASSWORD" in text
    assert server == [address]
    assert policy_file.read(folder / "drafted.toml").policy.tables["people"].source.table == "people"


def test_a_table_of_a_server_is_assessed(server: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    address = "postgresql://me:secret@server/clinic"
    assert main(["assess", address, "--table", "people"]) == 0
    shown = capsys.readouterr().out
    assert "240 rows" in shown
    assert "duckanon policy init --from postgresql://me@server/clinic --table people" in shown
    assert "secret" not in shown
    assert main(["assess", address]) == 1
    assert "--table must say which table of the server is meant." in capsys.readouterr().err


@pytest.mark.thorough
def test_a_policy_that_is_there_is_kept_and_the_way_out_is_said(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = (folder / "policy.toml").read_bytes()
    assert main(["policy", "init", "--from", "people.parquet", "--to", "policy.toml"]) == 3
    assert "it is not replaced; name another with --to." in capsys.readouterr().err
    assert (folder / "policy.toml").read_bytes() == before
