"""The page about PostgreSQL: its Python, its policy, its command and its query do on a server what it shows."""

from __future__ import annotations

import contextlib
import io
import re
import shlex
from pathlib import Path

import duckdb
import pytest

from duckanon.cli import main as cli
from duckanon.cli import statements
from tests import documentation
from tests.rendered.servers import Postgres

PAGE = documentation.ROOT / "duckanon" / "postgresql" / "README.md"
BLOCK = re.compile(
    r"^```(?P<kind>\w*)\n(?P<code>.*?)^```\n(?:```text\n(?P<shown>.*?)^```\n)?", re.MULTILINE | re.DOTALL
)


def drawn(server: Postgres, folder: Path) -> list[tuple[str, str]]:
    """Return what the page shows below each block, and what is printed."""
    pairs = []
    for block in BLOCK.finditer(PAGE.read_text(encoding="utf-8")):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            if block["kind"] == "python":
                exec(block["code"], {})
            elif block["kind"] == "toml":
                (folder / "policy.toml").write_text(block["code"], encoding="utf-8")
            elif block["kind"] == "console":
                assert cli.main(shlex.split(block["code"].removeprefix("$ "))[1:]) == 0
            else:
                query = block["code"].strip().removeprefix("clinic=> ")
                print(server.run(f"\\c clinic\n\\pset format aligned\n\\pset tuples_only off\n{query}").rstrip())
        pairs.append((block["shown"] or "", printed.getvalue()))
    return pairs


@pytest.mark.engines
def test_the_page_is_true(
    folder: Path, database: duckdb.DuckDBPyConnection, postgres: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver = pytest.importorskip("adbc_driver_postgresql.dbapi")
    address = postgres.address()
    monkeypatch.setenv("PGHOST", address.partition("host=")[2])
    monkeypatch.setenv("PGUSER", "postgres")
    postgres.run("DROP DATABASE IF EXISTS clinic;\nCREATE DATABASE clinic;\n\\c clinic\nCREATE SCHEMA hospital;")
    population = (documentation.ROOT / "examples" / "population.sql").read_text(encoding="utf-8")
    with duckdb.connect() as con, driver.connect("postgresql:///clinic") as server, server.cursor() as cursor:
        for statement in statements.split(population.replace("100_001", "3_001")):
            con.execute(statement).fetchall()
        people = con.sql("FROM patients")
        rows = getattr(people, "to_arrow_reader", people.fetch_record_batch)()
        cursor.adbc_ingest("patients", rows, mode="create", db_schema_name="hospital")
        server.commit()
    for shown, printed in drawn(postgres, folder):
        assert printed == shown


def test_its_links_lead_somewhere() -> None:
    for target in documentation.links(PAGE.read_text(encoding="utf-8")):
        assert (PAGE.parent / target.partition("#")[0]).exists()
