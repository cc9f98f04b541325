"""Aggregate tables of a policy: released, audited on the written file, verified by who receives them."""

from __future__ import annotations

import json
from pathlib import Path

import duckdb
import pytest

from duckanon.cli.main import main
from duckanon.job import PolicyError, PromiseBroken, aggregates, release

POLICY = """\
kind = "aggregate"

[source]
path = "visits.parquet"

[target]
path = "counts.parquet"

[columns]
id = "identifier"
region = "quasi_identifier"
sex = "quasi_identifier"
cost = "sensitive"

[method]
name = "protect_table"
measure = "cost"

[promises]
k = 5
"""


@pytest.fixture
def visits(folder: Path, database: duckdb.DuckDBPyConnection) -> Path:
    """Put the rows of 159 visits into the folder, three of them of women in region A."""
    database.execute(
        """COPY (SELECT unnest(range(people)) AS id, region, sex, 10 + id % 7 AS cost
        FROM (VALUES ('A', 'f', 3), ('A', 'm', 12), ('B', 'f', 14), ('B', 'm', 15), ('C', 'f', 60), ('C', 'm', 55))
             AS t(region, sex, people)) TO 'visits.parquet'"""
    ).fetchall()
    return folder


def written(folder: Path, *changes: tuple[str, str]) -> Path:
    text = POLICY
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    (folder / "policy.toml").write_text(text, encoding="utf-8")
    return folder / "policy.toml"


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["people", "value"])
def test_the_column_of_people_may_be_called_as_one_of_the_table(
    name: str, visits: Path, database: duckdb.DuckDBPyConnection
) -> None:
    """The release lost its own column of that name, and failed with words of DuckDB."""
    database.execute(
        f"COPY (SELECT id + 100 * row_number() OVER () AS {name}, region, sex, 1 AS cost "
        "FROM 'visits.parquet') TO 'named.parquet'"
    ).fetchall()
    record = release(written(visits, ("visits.parquet", "named.parquet"), ('id = "identifier"', f'{name} = "person"')))
    ((counted,),) = duckdb.sql(
        "SELECT people FROM 'counts.parquet' WHERE region = 'Total' AND sex = 'Total'"
    ).fetchall()
    assert counted == record["tables"][0]["people"] == 159


@pytest.mark.parametrize("name", ["Value", "PEOPLE"])
def test_columns_called_as_the_table_calls_its_own_are_refused(name: str, visits: Path) -> None:
    with pytest.raises(PolicyError, match="columns must not be called people, value"):
        release(written(visits, ("region =", f"{name} =")))


@pytest.mark.parametrize("target", ["counts.parquet", "counts.csv", "counts.duckdb"])
def test_the_written_table_is_audited_and_verified(
    visits: Path, capsys: pytest.CaptureFixture[str], target: str
) -> None:
    (table,) = release(written(visits, ("counts.parquet", target)))["tables"]
    measured = {promise["name"]: promise["measured"] for promise in table["promises"]}
    assert measured == {"k": 15, "open_cells": 0, "max_suppressed_fraction": pytest.approx(0.27, abs=0.03)}
    cells = table["cells"]
    assert (cells["cells"], cells["hidden"], cells["faults"]) == (12, 4, {})
    assert cells["narrowest_interval"] > 5
    assert [(one["columns"], one["hidden"]) for one in cells["margins"] if one["hidden"]] == [(["region", "sex"], 4)]
    assert main(["verify", str(visits / target)]) == 0
    assert "open_cells: confirmed" in capsys.readouterr().out


def test_a_table_that_gives_a_cell_away_is_not_published(visits: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever made it: the audit counts on the file, and a file that was changed later does not verify."""
    policy = written(visits)
    true_call = aggregates.call

    def opened(*arguments: object) -> str:
        shown = "CASE WHEN region = 'A' AND sex = 'm' THEN 12 ELSE people END AS people"
        return f"SELECT * REPLACE ({shown}, CASE WHEN region = 'A' AND sex = 'm' THEN 143 ELSE value END AS value) " + (
            f"FROM ({true_call(*arguments)})"
        )

    monkeypatch.setattr(aggregates, "call", opened)
    with pytest.raises(PromiseBroken, match="open_cells: promised 0, measured"):
        release(policy)
    assert not (visits / "counts.parquet").exists()


def test_sums_that_are_known_too_closely_are_counted_beside_the_original(con: duckdb.DuckDBPyConnection) -> None:
    """Of two hidden sums of 95 one person gave 90: a reader knows each to be from 90 to 100.

    Without the original nobody can tell how uncertain a sum has to be.
    """
    con.execute("""
        CREATE TABLE gifts AS SELECT region, sex, unnest(list_resize([largest], people, 1)) AS amount
        FROM (VALUES ('A', 'f', 6, 90), ('A', 'm', 5, 1), ('A', 'x', 200, 1), ('B', 'f', 5, 1), ('B', 'm', 6, 90),
                     ('B', 'x', 200, 1), ('C', 'f', 200, 1), ('C', 'm', 200, 1)) AS t(region, sex, people, largest)
        """).fetchall()
    con.execute("""
        CREATE TABLE shown AS
        SELECT coalesce(region, 'Total') AS region, coalesce(sex, 'Total') AS sex, NULL::BIGINT AS people,
               CASE WHEN region IN ('A', 'B') AND sex IN ('f', 'm') THEN NULL ELSE sum(amount)::DOUBLE END AS value
        FROM gifts GROUP BY CUBE (gifts.region, gifts.sex)""").fetchall()
    given = {"by": ["region", "sex"], "k": 2, "p": 50, "measure": "amount", "linked": None, "overlapping": False}
    original = {"original": "gifts", "measure": "amount", "person": None}
    assert aggregates.open_cells(con, "shown", given, None, original) == 2
    assert aggregates.open_cells(con, "shown", given, None) == 0


def test_a_file_that_was_changed_does_not_verify(visits: Path, capsys: pytest.CaptureFixture[str]) -> None:
    release(written(visits, ("counts.parquet", "counts.csv")))
    file = visits / "counts.csv"
    lines = ["A,m,12,150.0,0,true,true" if line.startswith("A,m,") else line for line in file.read_text().split("\n")]
    file.write_text("\n".join(lines))
    assert main(["verify", str(file)]) == 1
    assert "open_cells: DIFFERS" in capsys.readouterr().out


@pytest.mark.thorough
def test_what_the_job_gave_away_before_is_known(visits: Path, database: duckdb.DuckDBPyConnection) -> None:
    """The first run has no former release; the second hides cells that few people joined."""
    changes = (('measure = "cost"', 'previous = "counts.parquet"'), ('cost = "sensitive"', 'cost = "drop"'))
    policy = written(visits, *changes)
    release(policy)
    before = database.execute("SELECT value FROM 'counts.parquet' WHERE region = 'C' AND sex = 'f'").fetchall()
    assert before == [(60,)]
    database.execute("COPY (FROM 'visits.parquet' UNION ALL SELECT 200, 'C', 'f', 12) TO 'more.parquet'").fetchall()
    (visits / "more.parquet").replace(visits / "visits.parquet")
    release(written(visits, *changes, ("k = 5", "k = 5\nmax_suppressed_fraction = 1")))
    after = database.execute("SELECT value FROM 'counts.parquet' WHERE region = 'C' AND sex = 'f'").fetchall()
    assert after == [(None,)]


def two_hierarchies(folder: Path) -> str:
    """Write two hierarchies of region, and return the part of the policy that names them."""
    (folder / "areas.csv").write_text("value,area,whole\nA,west,all\nB,west,all\nC,east,all\nD,west,all\n")
    (folder / "coasts.csv").write_text("value,coast\nA,coast\nB,inland\nC,coast\n")
    return '[hierarchies]\nregion = ["areas.csv", "coasts.csv"]\n\n'


@pytest.mark.thorough
def test_several_hierarchies_of_a_column_are_margins_and_verified(
    visits: Path, capsys: pytest.CaptureFixture[str], database: duckdb.DuckDBPyConnection
) -> None:
    """The record says which labels belong together, and names none; a file whose cell was opened later differs."""
    (table,) = release(
        written(visits, ("counts.parquet", "counts.csv"), ("[promises]", f"{two_hierarchies(visits)}[promises]"))
    )["tables"]
    regions = database.execute("SELECT DISTINCT region FROM 'counts.csv' ORDER BY ALL").fetchall()
    assert [name for (name,) in regions] == ["A", "B", "C", "Total", "coast", "east", "inland", "west"]
    assert table["cells"]["hierarchies"] == {"region": ["0 7 -1; 1 7 -1; 2 5 -1", "0 4; 1 6; 2 4"]}
    file = visits / "counts.csv"
    assert main(["verify", str(file)]) == 0
    told = capsys.readouterr().out
    assert "open_cells: confirmed: 0" in told
    assert "max_suppressed_fraction: confirmed" in told
    hidden = [line for line in file.read_text().split("\n") if line.startswith("A,m,")]
    assert hidden == ["A,m,,,,false,true"]
    file.write_text(file.read_text().replace(hidden[0], "A,m,12,150.0,0,true,true"))
    assert main(["verify", str(file)]) == 1
    assert "open_cells: DIFFERS" in capsys.readouterr().out
    file.write_text(file.read_text().replace("B,Total,", "X,Total,"))
    assert main(["verify", str(file)]) == 1
    assert "open_cells: DIFFERS: it cannot be counted" in capsys.readouterr().out


@pytest.mark.thorough
def test_rounding_hierarchies_people_and_a_report(
    visits: Path, database: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DUCKANON_TEST_KEY", "a key of at least sixteen characters")
    trees = two_hierarchies(visits)
    changes = (
        ('kind = "aggregate"', 'kind = "aggregate"\nreport = "report.html"'),
        ('measure = "cost"', 'method = "round"'),
        ('cost = "sensitive"', 'cost = "drop"'),
        ("[promises]", f'[key]\nenvironment = "DUCKANON_TEST_KEY"\n\n{trees}[promises]'),
    )
    (table,) = release(written(visits, *changes))["tables"]
    assert table["cells"]["hidden"] == 0
    assert table["cells"]["max_deviation"] == 9
    assert database.execute("SELECT count(*), max(people % 5) FROM 'counts.parquet'").fetchall()[0][1] == 0
    page = (visits / "report.html").read_text()
    assert "Hidden cells by margin" in page
    text = json.dumps(json.loads((visits / "counts.parquet.record.json").read_text()))
    assert "sixteen characters" not in text
    with pytest.raises(PolicyError, match=r"line \d+: method.method needs a key"):
        release(written(visits, *changes[:3]))


@pytest.mark.thorough
def test_people_without_a_measure_contribute_to_no_cell(
    visits: Path, capsys: pytest.CaptureFixture[str], database: duckdb.DuckDBPyConnection
) -> None:
    """Everybody has a second row elsewhere whose cost is NULL: the release is that of the first rows alone."""
    policy = written(visits, ('id = "identifier"', 'id = "person"'))
    tables = []
    for person, more in (
        ("sex || region || id", ""),
        ("id", "UNION ALL SELECT id, 'C', 'm', NULL FROM 'visits.parquet'"),
    ):
        rows = f"SELECT {person} AS id, region, sex, cost FROM 'visits.parquet' {more}"
        database.execute(f"COPY ({rows}) TO 'more.parquet'").fetchall()
        (visits / "more.parquet").replace(visits / "visits.parquet")
        (table,) = release(policy)["tables"]
        assert table["method"]["parameters"]["overlapping"] is False
        cells = database.execute("FROM 'counts.parquet' ORDER BY ALL").fetchall()
        tables.append((cells, table["cells"], [promise["measured"] for promise in table["promises"]]))
        assert main(["verify", str(visits / "counts.parquet")]) == 0
    assert tables[0] == tables[1]


@pytest.mark.thorough
def test_people_in_several_cells_are_counted(visits: Path, capsys: pytest.CaptureFixture[str]) -> None:
    changes = (
        ('id = "identifier"', 'id = "person"'),
        ('measure = "cost"', ""),
        ('cost = "sensitive"', 'cost = "drop"'),
    )
    (table,) = release(written(visits, *changes, ("k = 5", "k = 5\nmax_suppressed_fraction = 1")))["tables"]
    assert table["method"]["parameters"]["overlapping"] is True
    assert main(["verify", str(visits / "counts.parquet")]) == 0
    assert "open_cells: confirmed" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (('kind = "aggregate"', 'kind = "records"'), 'kind must be "aggregate" for protect_table'),
        (('cost = "sensitive"', 'cost = "free"'), "columns.cost: an aggregate table shows no rows|must have the role"),
        (("k = 5", "k = 5\nt = 0.5"), "promises.t is for records"),
        (("k = 5", "k = 5\njoint_k = 2"), "promises.joint_k is for records"),
        (("k = 5", "k = 5\njoint_l = 2"), "promises.joint_l is for records"),
        (("k = 5", "k = 5\njoint_t = 0.5"), "promises.joint_t is for records"),
        (("k = 5", "max_suppressed_fraction = 0.1"), "promises.k must say how many people every shown cell"),
        (('measure = "cost"', 'by = ["cost"]'), "cost must be one of region, sex|must have the role"),
    ],
)
def test_what_does_not_fit_is_refused(visits: Path, change: tuple[str, str], sentence: str) -> None:
    with pytest.raises(PolicyError, match=sentence):
        release(written(visits, change))
