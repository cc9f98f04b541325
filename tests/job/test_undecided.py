"""Nothing that nobody decided leaves: drafts, columns without a role, columns that are left out."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import duckdb
import hypothesis.strategies as st
import pytest
from hypothesis import given

from duckanon._bridge import sql
from duckanon.job import release, run
from duckanon.job.draft import _one_person, draft
from duckanon.job.errors import PolicyError
from duckanon.report import tables
from tests.job.conftest import changed
from tests.job.test_commands import output
from tests.profiles import dear


def columns_of(database: duckdb.DuckDBPyConnection, path: Path) -> list[str]:
    return [row[0] for row in database.execute(f"DESCRIBE FROM '{path}'").fetchall()]


@pytest.mark.thorough
def test_an_insurance_number_does_not_leave_beside_a_diagnosis(
    folder: Path, database: duckdb.DuckDBPyConnection, capsys: pytest.CaptureFixture[str]
) -> None:
    """Three rows each: it was drafted as free, and released with three times "kept"."""
    database.execute(f"""COPY (SELECT 1234010180 + 7919 * (i // 3) AS svnr, ['m', 'w'][1 + i // 3 % 2] AS geschlecht,
                                      ['flu', 'cold', 'gout', 'ache'][1 + i % 4] AS diagnosis
                               FROM range(900) AS t(i) ORDER BY hash(i)) TO '{folder}/visits.csv'""").fetchall()
    assert output(capsys, "policy", "init", "--from", "visits.csv", "--to", "draft.toml")[0] == 0
    written = tomllib.loads((folder / "draft.toml").read_text())["columns"]
    assert written == {"svnr": "person", "geschlecht": "quasi_identifier", "diagnosis": "sensitive"}
    assert output(capsys, "release", "draft.toml")[0] == 0
    assert columns_of(database, folder / "visits_release.parquet") == ["geschlecht", "diagnosis"]


@pytest.mark.thorough
def test_a_survey_with_code_names_stops_until_it_is_decided(
    folder: Path, database: duckdb.DuckDBPyConnection, capsys: pytest.CaptureFixture[str]
) -> None:
    database.execute(f"""
        COPY (SELECT 10000 + 3 * (i // 4) AS db030, 1 + hash(i) % 2 AS rb090, hash(i // 4) % 9 AS db040,
                     hash(i + 1) % 80 + 16 AS rx020, hash(i + 2) % 4 AS pl031,
                     (hash(i + 3) % 40 = 0)::INTEGER AS ph030, 1 AS rb010,
                     (hash(i // 4 + 3) % 50 < 2)::INTEGER AS hh021
              FROM range(1200) AS t(i)) TO '{folder}/silc.parquet'""").fetchall()
    assert output(capsys, "policy", "init", "--from", "silc.parquet", "--to", "draft.toml")[0] == 0
    text = (folder / "draft.toml").read_text()
    written = tomllib.loads(text)["columns"]
    assert "free" not in written.values()
    assert written["db030"] == "identifier"
    assert written["rx020"] == "quasi_identifier"
    waiting = [name for name, role in written.items() if role == "?"]
    assert len(waiting) > 1
    assert all(f'{name} = "?"  # ' in text for name in waiting)  # with what was seen
    for command in (("policy", "check"), ("release",)):
        code, _, err = output(capsys, *command, "draft.toml")
        assert (code, err.count("\n")) == (2, 1)
        assert f'"?" is the role of {", ".join(waiting)}: ' in err
        assert err.startswith(f"draft.toml, line {1 + text[: text.index(waiting[0])].count(chr(10))}: ")
    assert not list(folder.glob("silc_release*"))


def test_a_column_is_left_out_without_being_called_a_name(folder: Path, database: duckdb.DuckDBPyConnection) -> None:
    record = release(changed(folder, ('name = "identifier"', 'name = "drop"')))
    entries = {column["name"]: column for column in record["tables"][0]["columns"]}
    assert entries["name"] == {"name": "name", "role": "drop", "treatment": "dropped"}
    assert "name" not in columns_of(database, folder / "release.parquet")
    assert (tables.ROLES["identifier"], tables.ROLES["drop"]) == ("names a person", "")


def test_undecided_columns_of_all_tables_are_named_at_once(folder: Path) -> None:
    table = changed(
        folder, ('sex = "quasi_identifier"', 'sex = "?"'), ('age = "quasi_identifier"', 'age = "?"')
    ).read_text()
    two = "".join(
        table.replace("[", f"[tables.{name}.").replace("release.parquet", f"{name}.parquet") for name in ("a", "b")
    )
    (folder / "policy.toml").write_text(two)
    with pytest.raises(PolicyError, match=r'"\?" is the role of a.age, a.sex, b.age, b.sex: '):
        release(folder / "policy.toml")


@pytest.mark.thorough
def test_a_hierarchy_of_another_column_is_refused(folder: Path) -> None:
    (folder / "levels.csv").write_text("sex,any\nmale,*\nfemale,*\n")
    path = changed(
        folder, ("[source]", '[hierarchies]\nsex = "levels.csv"\n[source]'), ("suppress_cells", "generalize")
    )
    with pytest.raises(PolicyError, match=r"line 2: hierarchies.sex: no value of the column stands in .* levels.csv"):
        release(path, dry_run=True)
    (folder / "levels.csv").write_text("sex,any\nm,*\nf,*\nm,one\n")
    with pytest.raises(PolicyError, match=r"line 2: hierarchies.sex: .*levels.csv must give each value one label"):
        release(path, dry_run=True)
    (folder / "levels.csv").write_text("sex,any\nm,*\nf,*\nm,*\n")
    assert release(path, dry_run=True)["outcome"] == "dry run"
    path.write_text(path.read_text().replace('"levels.csv"', '["levels.csv", "others.csv"]'))
    with pytest.raises(PolicyError, match=r"line 2: hierarchies.sex must be one file for generalize; a list is for"):
        release(path, dry_run=True)


def test_a_query_may_end_in_a_comment(folder: Path) -> None:
    asked = "-- first\nSELECT * FROM source WHERE name <> '--;'"
    for end in ("", ";", "-- all of them", " ; -- done;", "/* a */ ; /* b; */", ";;\n--é\n"):
        assert sql.bare(asked + end) == asked
    query = json.dumps(f"{asked}; -- done;")
    path = changed(folder, ('path = "people.parquet"', f'path = "people.parquet"\nquery = {query}'))
    assert release(path, dry_run=True)["tables"][0]["rows"] == 240


NAMES = st.sampled_from(
    ["v1", "db030", "income", "diagnosis", "weight", "alter", "note", "sexe", "zip", "kosten", "grp"]
)
COPIES = st.sampled_from(
    [
        "who",
        "who * 7 + 3",
        "'K' || who",
        "lpad(who::VARCHAR, 9, '0')",
        "who / 8",
        "md5(who::VARCHAR)",
        "-who",
        "who::DOUBLE",
    ]
)
OTHERS = st.sampled_from(
    ["['m', 'w'][1 + who % 2]", "20 + who % 50", "hash(i) % 3", "(hash(i) % 100000) / 100", "DATE '1950-01-01' + who",
     "NULL::INTEGER", "'a b c d e f ' || i", "i", "[i % 3]", "true"]
)  # fmt: skip


def test_the_first_key_of_people_is_that_of_the_draft_and_further_ones_are_dropped() -> None:
    seen = [
        ("age", "quasi-identifier", "named like an age."),
        ("pid", "person key", "as many values as people."),
        ("code", "undecided", "no hint."),
        ("svnr", "person key", "as many values as people."),
        ("weight", "weight", "named so."),
        ("flu", "sensitive", "a diagnosis."),
    ]
    another = "as many values as people. Another column is the person key already."
    assert _one_person(seen) == [
        ("age", "quasi_identifier", "named like an age."),
        ("pid", "person", "as many values as people."),
        ("code", "?", "no hint."),
        ("svnr", "identifier", another),
        ("weight", "?", "weight: named so."),
        ("flu", "sensitive", "a diagnosis."),
    ]


@pytest.mark.thorough
@dear
@given(
    people=st.integers(3, 60),
    visits=st.integers(1, 4),
    copies=st.lists(COPIES, min_size=1, max_size=3),
    others=st.lists(OTHERS, max_size=3),
    names=st.lists(NAMES, min_size=6, max_size=6, unique=True),
    key=st.sampled_from(["pid", "svnr", "subject", "x"]),
)
def test_a_draft_that_nobody_edited_releases_no_key(folder: Path, **drawn: Any) -> None:
    people, visits, key = drawn["people"], drawn["visits"], drawn["key"]
    written = dict(zip(drawn["names"], drawn["copies"] + drawn["others"], strict=False))
    columns = "".join(f', {expression} AS "{name}"' for name, expression in written.items())
    query = f"""SELECT who AS "{key}"{columns}
                FROM (SELECT (100003 + 41 * (i // {visits}))::INTEGER AS who, i::INTEGER AS i
                      FROM range({people * visits}) AS t(i))"""
    con = run.connection()
    con.execute(f"COPY ({query}) TO '{folder}/table.parquet'").fetchall()
    text = draft(con, "table.parquet", None, None, folder / "draft.toml")
    (folder / "draft.toml").write_text(text)
    roles = tomllib.loads(text)["columns"]
    assert "free" not in roles.values()
    if "?" in roles.values():
        with pytest.raises(PolicyError, match="must be decided"):
            release(folder / "draft.toml", dry_run=True)
        return
    repeated = [name for name, expression in written.items() if expression in drawn["copies"]]
    left = [name for name in (key, *repeated) if roles[name] in ("sensitive", "pseudonym", "numeric")]
    assert left == []
