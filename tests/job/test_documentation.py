"""The page about releases: its policy and its commands work as they stand."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import duckdb
import pytest

from duckanon.cli import main as cli
from duckanon.cli import statements
from duckanon.job import release
from tests import documentation

PAGE = documentation.ROOT / "examples" / "release" / "README.md"


@pytest.mark.thorough
def test_the_page_is_true(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = PAGE.read_text(encoding="utf-8")
    population = (documentation.ROOT / "examples" / "population.sql").read_text(encoding="utf-8")
    with duckdb.connect() as con:
        for statement in statements.split(population.replace("100_001", "3_001")):
            con.execute(statement).fetchall()
        con.execute("COPY patients TO 'people.parquet'").fetchall()
    (policy,) = re.findall(r"^```toml\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    (folder / "policy.toml").write_text(policy, encoding="utf-8")
    commands = 0
    for example in documentation.EXAMPLE.finditer(text):
        if example["language"] == "console":
            name, *arguments = shlex.split(example["code"].removeprefix("$ "))
            assert name == "duckanon"
            assert cli.main(arguments) == 0, capsys.readouterr().err
            if example["shown"] is not None:
                assert capsys.readouterr().out == example["shown"]
            capsys.readouterr()
            commands += 1
        else:
            exec(example["code"], {})
    assert commands == 7
    assert (folder / "second.parquet").exists()


def test_its_links_lead_somewhere() -> None:
    for target in documentation.links(PAGE.read_text(encoding="utf-8")):
        assert (PAGE.parent / target.partition("#")[0]).exists()


@pytest.mark.thorough
def test_the_policy_of_several_tables_is_one(folder: Path, database: duckdb.DuckDBPyConnection) -> None:
    (policy,) = re.findall(r"^```\n(\[key\].*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    (folder / "policy.toml").write_text(policy.replace("/etc/duckanon/key", "key"), encoding="utf-8")
    (folder / "key").write_text("a key of at least sixteen characters\n")
    (folder / "visits").mkdir()
    with duckdb.connect("clinic.duckdb") as con:
        con.execute("CREATE TABLE patients AS SELECT i AS patient_id, ['f', 'm'][1 + i % 2] AS sex FROM range(80) t(i)")
    database.execute("COPY (SELECT i AS patient_id, i % 4 AS ward FROM range(80) t(i)) TO 'visits/a.csv'").fetchall()
    record = release("policy.toml")
    assert [table["name"] for table in record["tables"]] == ["patients", "visits"]
