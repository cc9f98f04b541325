"""What the release refuses of a policy, policy check refuses before, in the same sentence and with the same line."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from duckanon.job import JobError, check
from duckanon.job.run import release
from tests.job.conftest import POLICY

TABLE = """
    SELECT i AS id, i // 2 AS patient, 'Person ' || i AS name, 20 + 10 * (i // 2 % 4) AS age,
           ['f', 'm'][1 + i % 2] AS sex, ['flu', 'asthma', 'cold'][1 + i // 8 % 3] AS diagnosis,
           CASE WHEN i % 7 > 0 THEN i % 5 END AS holes, CASE WHEN i = 3 THEN 'nan'::DOUBLE ELSE i / 4 END AS cost
    FROM range(240) AS t(i)
"""
COLUMNS = ('diagnosis = "sensitive"', 'diagnosis = "sensitive"\nholes = "drop"\ncost = "drop"')
NO_SEX = ('sex = "quasi_identifier"', 'sex = "drop"')
NO_DIAGNOSIS = ('diagnosis = "sensitive"', 'diagnosis = "drop"')
NEW = ("k = 10", "prediction = true")

WIDE = "SELECT *, (repeat('9', 28) || '.' || id % 20)::DECIMAL(38, 10) AS wide FROM source"

REFUSED = {
    "texts": (
        [("suppress_cells", "boxes")],
        "line 12: anon.boxes: columns.sex must hold numbers, dates or timestamps; its type is VARCHAR.",
    ),
    "texts of groups": (
        [("suppress_cells", "microaggregate")],
        "line 12: anon.microaggregate: columns.sex must hold numbers",
    ),
    "NULLs": (
        [("suppress_cells", "boxes"), NO_SEX, ('holes = "d', 'holes = "quasi_identifier" # ')],
        "line 14: anon.boxes: columns.holes has NULLs, which no interval contains; leave these rows out by",
    ),
    "NULLs of new records": (
        [("suppress_cells", "synthesize"), NEW, NO_DIAGNOSIS, ('holes = "d', 'holes = "numeric" # ')],
        "line 14: anon.synthesize: columns.holes",
    ),
    "numbers that no test of new records reads": (
        [
            ("suppress_cells", "spectral_release"),
            NEW,
            NO_DIAGNOSIS,
            ('path = "people.parquet"', f'path = "people.parquet"\nquery = "{WIDE}"'),
            ('holes = "d', 'wide = "numeric"\nholes = "d'),
        ],
        "line 15: anon.privacy_test: columns.wide holds numbers of more than 18 digits; cast it in source.query",
    ),
    "NaN in the measure": (
        [
            ("suppress_cells", 'protect_table"\nmeasure = "cost'),
            ("[source]", 'kind = "aggregate"\n[source]'),
            NO_DIAGNOSIS,
            ('cost = "d', 'cost = "sensitive" # '),
        ],
        "line 20: anon.protect_table: method.measure",
    ),
    "a method that is none": (
        [('"suppress_cells"', '"generalize"\nmethods = { age = "nonsense" }')],
        "line 19: anon.generalize: the method of columns.age must be one of",
    ),
    "a name that is needed": (
        [
            ("suppress_cells", 'boxes"\nnarrowing = ["box"]\nbox = "parts'),
            NO_SEX,
            ('path = "people.parquet"', 'path = "people.parquet"\nquery = "SELECT *, 1 AS box FROM source"'),
            ('diagnosis = "sensitive"', 'diagnosis = "drop"\nbox = "free"'),
        ],
        'line 15: anon.boxes: the table has a column "box", a name that is needed for the boxes; rename it',
    ),
    "a name that the file needs for an interval": (
        [
            ('"suppress_cells"', '"boxes"\nnarrowing = ["Age_LO"]'),
            NO_SEX,
            ("release.parquet", "release.csv"),
            ('path = "people.parquet"', 'path = "people.parquet"\nquery = "SELECT *, 1 AS Age_LO FROM source"'),
            ('diagnosis = "sensitive"', 'diagnosis = "drop"\nAge_LO = "free"'),
        ],
        "line 6: target.path: an interval is two columns there, and needs the name Age_LO, which is taken; rename that",
    ),
    "a hierarchy that is not there": (
        [('"suppress_cells"', '"generalize"\n[hierarchies]\nsex = "nothere.csv"')],
        "line 20: hierarchies.sex: there is no file nothere.csv.",
    ),
    "a hierarchy of another column": (
        [('"suppress_cells"', '"generalize"\n[hierarchies]\nsex = "other.csv"')],
        "line 20: hierarchies.sex: no value of the column stands in the first column of other.csv",
    ),
    "dates that are numbers": (
        [('age = "quasi', 'age = { role = "free", shift_days = 10 } #'), ("[source]", '[key]\nfile = "key"\n[source]')],
        "line 13: columns.age: shift_days is for dates and timestamps; the column has the type",
    ),
    "too small a population": (
        [('"suppress_cells"', '"generalize"\npopulation = 100')],
        "line 19: anon.generalize: method.population must be",
    ),
    "a folder that is not there": (
        [("release.parquet", "nowhere/release.parquet")],
        "nowhere/release.parquet: there is no folder ",
    ),
    "a type of no column": (
        [('path = "people.parquet"', 'path = "people.csv"\ntypes = { agee = "VARCHAR" }')],
        "line 3: source.types.agee: agee is no column of the source.",
    ),
    "a type that is none": (
        [('path = "people.parquet"', 'path = "people.csv"\ntypes = { age = "NUMBER" }')],
        "line 3: source.types.age: NUMBER is no type of DuckDB",
    ),
}


@pytest.fixture
def table(folder: Path, database: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a table with NULLs and a NaN, and let check run on the one database, too."""
    from duckanon.job import run

    monkeypatch.setattr(check, "connection", run.connection)
    database.execute(f"COPY ({TABLE}) TO 'people.parquet'; COPY ({TABLE}) TO 'people.csv'").fetchall()
    (folder / "other.csv").write_text("value,all\nx,*\n", encoding="utf-8")
    (folder / "key").write_text("a key of at least sixteen characters", encoding="utf-8")
    return folder


SLOW = ("NaN in the measure", "NULLs of new records", "too small a population", "texts of groups")


@pytest.mark.parametrize(
    "case", [pytest.param(case, marks=pytest.mark.thorough) if case in SLOW else case for case in REFUSED]
)
def test_check_and_release_refuse_in_the_same_sentence(case: str, table: Path) -> None:
    changes, sentence = REFUSED[case]
    path = _policy(table, changes)
    with pytest.raises(JobError) as checked:
        check.check_policy(path)
    with pytest.raises(JobError) as released:
        release(path)
    assert sentence in str(checked.value)
    assert str(checked.value) == str(released.value)
    assert type(checked.value) is type(released.value)
    assert not list(table.glob("release*"))


def _policy(folder: Path, changes: list[tuple[str, str]]) -> Path:
    text = POLICY
    for before, after in [COLUMNS, *changes]:
        assert before in text, before
        text = text.replace(before, after, 1)
    path = folder / "policy.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_what_a_sample_has_too_few_rows_for_is_not_refused(table: Path, database: duckdb.DuckDBPyConnection) -> None:
    """A column varies in one row of 3,000, another has a value a row in a sample; a NULL in 30,000 rows is found."""
    rows = "SELECT i AS id, CASE WHEN i <> 17 THEN i % 50 END AS holes, VARIED AS rare, i % 90 AS age"
    text = (
        '[source]\npath = "people.parquet"\n[target]\npath = "release.parquet"\n[columns]\nid = "drop"\n'
        'holes = "drop"\nrare = "numeric"\nage = "numeric"\n'
        '[method]\nname = "svd_swap"\n[promises]\nprediction = true\n'
    )
    path = table / "policy.toml"
    for rare in ("(i > 2998)::INTEGER", "i % 1500"):
        varied = rows.replace("VARIED", rare)
        database.execute(f"COPY ({varied} FROM range(3000) AS t(i)) TO 'people.parquet'").fetchall()
        path.write_text(text, encoding="utf-8")
        assert len(check.check_policy(path)) == 1
    database.execute(f"COPY ({rows.replace('VARIED', '1')} FROM range(30000) AS t(i)) TO 'people.parquet'").fetchall()
    classes = text.replace('"numeric"', '"drop"').replace('holes = "drop"', 'holes = "quasi_identifier"')
    path.write_text(classes.replace("svd_swap", "boxes").replace("prediction = true", "k = 5"), encoding="utf-8")
    with pytest.raises(JobError, match=r"line 7: anon\.boxes: columns\.holes has NULLs"):
        check.check_policy(path)
