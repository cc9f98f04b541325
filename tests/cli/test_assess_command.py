"""``duckanon assess`` and the population of ``duckanon demo``."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

import duckanon
from duckanon.cli import demo_command, statements
from duckanon.cli.main import main

PEOPLE = """
    SELECT 'P' || i // 2 AS patient_id, ['F', 'M'][1 + i // 2 % 2] AS sex,
           DATE '1950-01-01' + (i // 2 * 37)::INTEGER AS dob, ['flu', 'asthma', 'cold'][1 + i % 3] AS diagnosis
    FROM range(200) AS t(i)
"""


@pytest.fixture
def registered(con: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the command open the database of the tests, which other commands have attached files to."""

    def connect() -> duckdb.DuckDBPyConnection:
        con.execute("DETACH DATABASE IF EXISTS assessed_file").fetchall()
        return con.cursor()

    monkeypatch.setattr(duckanon, "connect", connect)


@pytest.fixture
def files(tmp_path: Path) -> Path:
    con = duckdb.connect(str(tmp_path / "clinic.duckdb"))
    con.execute(
        f'CREATE TABLE visits AS {PEOPLE}; CREATE SCHEMA "odd ""one"; CREATE TABLE "odd ""one".wards AS SELECT 1 AS n'
    )
    con.execute(f"COPY visits TO '{tmp_path}/it''s.csv'; COPY visits TO '{tmp_path}/visits.parquet'")
    con.close()
    return tmp_path


@pytest.mark.thorough
@pytest.mark.usefixtures("registered")
@pytest.mark.parametrize("arguments", [["it's.csv"], ["visits.parquet"], ["clinic.duckdb", "--table", "Visits"]])
def test_a_table_is_assessed(arguments: list[str], files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = (files / "clinic.duckdb").read_bytes()
    assert main(["assess", str(files / arguments[0]), *arguments[1:]]) == 0
    shown = capsys.readouterr().out
    assert "200 rows, 4 columns" in shown
    roles = {line.split()[0]: part.splitlines()[0] for part in shown.split("\n\n") for line in part.splitlines()[1:]}
    assert roles["patient_id"].startswith("Person keys")
    assert roles["dob"].startswith("Quasi-identifiers")
    assert roles["diagnosis"].startswith("Sensitive")
    assert "The 2 quasi-identifiers together are unique for 100 of 100 people (100.0%)" in shown
    assert "duckanon policy init --from " in shown
    assert "P17" not in shown  # no value of a person
    assert (files / "clinic.duckdb").read_bytes() == before


@pytest.mark.usefixtures("registered")
def test_wrong_files_and_tables_are_refused_in_a_sentence(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (files / "q.sql").write_text("SELECT 1 AS a", encoding="utf-8")
    for arguments, sentence in (
        (["nope.csv"], "duckanon assess: there is no file"),
        (["q.sql"], "q.sql is a file of SQL; run it with duckanon run "),
        (["visits.parquet", "--table", "x"], "duckanon assess: --table is for DuckDB files"),
        (["clinic.duckdb"], '--table must name one of its tables: main.visits, odd "one.wards.'),
        (["clinic.duckdb", "--table", "x"], "--table must be one of its tables, not x: main.visits"),
    ):
        assert main(["assess", str(files / arguments[0]), *arguments[1:]]) == 1
        assert sentence in capsys.readouterr().err


def test_the_demo_leaves_files_of_others_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "clinic.duckdb").write_text("mine")
    assert main(["demo", "--to", str(tmp_path)]) == 1
    assert "name another folder" in capsys.readouterr().err
    assert (tmp_path / "clinic.duckdb").read_text() == "mine"
    assert main(["demo", "--rows", "10", "--to", str(tmp_path / "new")]) == 1
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("name", ["clinic.duckdb", "policy.toml", "key", ".duckanon-demo.json"])
def test_a_demo_replaces_only_what_a_demo_left(name: str, tmp_path: Path) -> None:
    """With the policy of a demo beside it, the database and the key of somebody were lost."""
    for _ in range(2):
        demo_command._make_folder(tmp_path)
        (tmp_path / "clinic.duckdb").write_text("of the demo")
        demo_command._write_hashes(tmp_path)
    (tmp_path / name).write_text("mine")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(ValueError, match="is not as a demo left it; name another folder"):
        demo_command._make_folder(tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_the_population_is_the_same_everywhere() -> None:
    """On every version of DuckDB; with households, repeated visits, few frequent places and missing values."""
    con = duckdb.connect()
    con.execute("SET VARIABLE people = 3000").fetchall()
    for statement in statements.split(statements.script(demo_command.FILES / "population.sql")):
        con.execute(statement).fetchall()
    assert con.execute(
        """SELECT count(*), count(DISTINCT patient_id), count(DISTINCT household_id), count(occupation) < count(*),
                  max(rows_of_one), md5(string_agg(line, chr(10) ORDER BY line))
           FROM (SELECT *, count(*) OVER (PARTITION BY patient_id) AS rows_of_one, CAST(visits AS VARCHAR) AS line
                 FROM visits)"""
    ).fetchall() == [(5520, 3000, 1334, True, 10, "c29ee7f368f79c2c0637c1220ad7345e")]
    ((largest, places),) = con.execute(
        "SELECT max(n), count(*) FROM (SELECT count(DISTINCT patient_id) AS n FROM visits GROUP BY zip)"
    ).fetchall()
    assert largest > 8 * 3000 / places
    con.close()
