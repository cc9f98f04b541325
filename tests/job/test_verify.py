"""duckanon verify: a recipient's numbers are the record's, and a file that was changed is found out."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import duckdb
import pytest

import duckanon
from duckanon.cli.main import main
from duckanon.job import PolicyError
from duckanon.job.readback import Shape
from tests.job.conftest import POLICY

LINKED = POLICY.replace('patient = "person"', 'patient = { role = "person", pseudonym = true }').replace(
    "k = 10", "k = 10\nlinked_k = 2\nl = 2\nt = 0.9"
)
WITHOUT_PERSON = POLICY.replace('patient = "person"\n', 'patient = "identifier"\n') + "l = 3\nt = 0.9\n"


def released(folder: Path, policy: str, target: str = "release.parquet") -> Path:
    """Release the folder's table, and return the file."""
    text = policy.replace("release.parquet", target)
    if "pseudonym = true" in policy:
        text = f'[key]\nenvironment = "DUCKANON_TEST_KEY"\n\n{text}'
    (folder / "policy.toml").write_text(text, encoding="utf-8")
    duckanon.release(folder / "policy.toml")
    return folder / target


def verified(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, dict[str, str]]:
    """Run the command; return its exit code, and what it says of each number."""
    code = main(["verify", *map(str, arguments)])
    lines = [line.split(": ", 3) for line in capsys.readouterr().out.splitlines()]
    return code, {parts[1]: parts[2] for parts in lines if len(parts) == 4}


@pytest.mark.parametrize("target", ["release.parquet", "release.csv", "release.duckdb"])
def test_every_number_of_a_release_without_people_is_confirmed(
    folder: Path, capsys: pytest.CaptureFixture[str], target: str
) -> None:
    file = released(folder, WITHOUT_PERSON, target)
    code, found = verified(capsys, file)
    assert code == 0
    assert found == {
        "sha256": "confirmed",
        "rows": "confirmed",
        "columns": "confirmed",
        "labels": "confirmed",
        "k": "confirmed",
        "l of diagnosis": "confirmed",
        "t of diagnosis": "confirmed",
        "max_suppressed_fraction": "not in the file",
    }


def test_people_are_counted_by_a_pseudonym_and_only_by_one(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DUCKANON_TEST_KEY", "a key of at least sixteen characters")
    code, found = verified(capsys, released(folder, LINKED))
    assert code == 0
    assert {name for name, outcome in found.items() if outcome == "not in the file"} == {"max_suppressed_fraction"}
    assert found["linked_k"] == "confirmed"
    (folder / "release.parquet").unlink()
    (folder / "release.parquet.record.json").unlink()
    code, found = verified(capsys, released(folder, POLICY))
    assert code == 0
    assert found["k"] == "not in the file"


def test_a_file_that_was_changed_is_found_out(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A row that somebody made finer, a column that should be gone, and a record that was made better."""
    file = released(folder, WITHOUT_PERSON)
    other = folder / "other.parquet"
    record = f"--record={file}.record.json"
    change = "SELECT * REPLACE (CASE WHEN row_number() OVER () = 1 THEN 21 ELSE age END AS age), 'x' AS name"
    duckdb.sql(f"COPY ({change} FROM '{file}') TO '{other}'")
    code, found = verified(capsys, other, record)
    assert code == 1
    assert {name for name, outcome in found.items() if outcome == "DIFFERS"} >= {"sha256", "columns", "k"}
    written = json.loads(Path(f"{file}.record.json").read_text(encoding="utf-8"))
    for promise in written["tables"][0]["promises"]:
        if promise["name"] in ("k", "l of diagnosis", "t of diagnosis"):
            promise["measured"] = 0.5 if promise["name"].startswith("t") else 1000
            promise["words"] = "It is kept."
    better = folder / "better.json"
    better.write_text(json.dumps(written), encoding="utf-8")
    code, found = verified(capsys, file, "--record", better)
    assert code == 1
    assert {name for name, outcome in found.items() if outcome == "DIFFERS"} == {
        "k",
        "l of diagnosis",
        "t of diagnosis",
    }


def test_finer_labels_are_found_out_where_every_promise_is_kept(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Somebody splits a label between enough people; the record is theirs, the hash and the promises too."""
    file = released(folder, WITHOUT_PERSON, "release.csv")
    written = json.loads(Path(f"{file}.record.json").read_text(encoding="utf-8"))
    labels = written["tables"][0]["output"]["labels"]
    counts = [f"(SELECT count(*) FROM (SELECT DISTINCT {name} FROM '{file}'))" for name in ("age", "sex")]
    assert labels == dict(zip(("age", "sex"), *duckdb.sql(f"SELECT {', '.join(counts)}").fetchall(), strict=True))
    assert verified(capsys, file)[1]["labels"] == "confirmed"
    finer = "CASE WHEN row_number() OVER () // 2 % 2 = 0 THEN 'a' ELSE 'b' END AS sex"
    duckdb.sql(f"COPY (SELECT * REPLACE (sex::VARCHAR || {finer}) FROM '{file}') TO '{folder}/finer.csv'")
    sha256 = hashlib.sha256((folder / "finer.csv").read_bytes()).hexdigest()
    written["tables"][0]["output"] |= {"sha256": sha256}
    (folder / "theirs.json").write_text(json.dumps(written), encoding="utf-8")
    assert main(["verify", f"{folder}/finer.csv", f"--record={folder}/theirs.json"]) == 1
    assert f"labels: DIFFERS: sex {2 * labels['sex']}, recorded as {labels['sex']}." in capsys.readouterr().out


def test_an_interval_of_two_columns_is_one_label() -> None:
    expressions = {name: name for name in ("a_hi_lo", "a_hi_hi", "b", "c_lo")}
    form = Shape(
        "csv",
        False,
        "t",
        expressions,
        {"a_hi": "STRUCT(lo INTEGER, hi INTEGER)", "b": "", "c_lo": ""},
        list(expressions),
    )
    assert form.labels == {"a_hi": ["a_hi_lo", "a_hi_hi"], "b": ["b"], "c_lo": ["c_lo"]}


def test_a_record_without_the_original_will_do(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = released(folder, WITHOUT_PERSON)
    written = json.loads(Path(f"{file}.record.json").read_text(encoding="utf-8"))
    for name in ("rows", "people", "sha256", "suppressed"):
        del written["tables"][0][name]
    (folder / "given.json").write_text(json.dumps(written), encoding="utf-8")
    code, found = verified(capsys, file.rename(folder / "received.parquet"), "--record", folder / "given.json")
    assert code == 0
    assert found["k"] == found["sha256"] == "confirmed"


def test_a_column_box_of_the_method_is_not_the_dropped_one(
    folder: Path, database: duckdb.DuckDBPyConnection, capsys: pytest.CaptureFixture[str]
) -> None:
    database.execute("COPY (SELECT *, 'x' || id AS box FROM 'people.parquet') TO 'clash.parquet'")
    policy = WITHOUT_PERSON.replace("people.parquet", "clash.parquet").replace("[method]", 'box = "drop"\n\n[method]')
    file = released(folder, policy.replace('"suppress_cells"', '"boxes"\nby = ["sex"]'), "release.csv")
    assert duckdb.sql(f"SELECT count(*) FROM '{file}' WHERE box::VARCHAR LIKE 'x%'").fetchall() == [(0,)]
    code, found = verified(capsys, file)
    assert (code, found["columns"]) == (0, "confirmed")


def test_the_ends_of_intervals_clash_in_any_case(folder: Path, database: duckdb.DuckDBPyConnection) -> None:
    database.execute("COPY (SELECT * RENAME (age AS Age), 7 AS age_lo FROM 'people.parquet') TO 'clash.parquet'")
    policy = WITHOUT_PERSON.replace("people.parquet", "clash.parquet").replace("age =", "Age =")
    policy = policy.replace("[method]", 'age_lo = "free"\n\n[method]')
    policy = policy.replace('"suppress_cells"', '"boxes"\nby = ["sex"]\nnarrowing = ["age_lo", "diagnosis"]')
    with pytest.raises(PolicyError, match="needs the name age_lo, which is taken; rename that column"):
        released(folder, policy, "release.csv")
    assert released(folder, policy, "release.parquet").exists()  # where an interval is one column


def test_what_cannot_be_verified_is_a_sentence(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = released(folder, WITHOUT_PERSON)
    for arguments, words in (
        ([folder / "nothing.parquet"], "the record cannot be read"),
        ([folder / "nothing.parquet", f"--record={file}.record.json"], "there is no such file"),
        ([file, folder / "people.parquet", f"--record={file}.record.json"], "the record has no release of that name"),
        ([folder / "policy.toml", f"--record={file}.record.json"], "the release cannot be read"),
    ):
        assert main(["verify", *map(str, arguments)]) == 3
        assert words in capsys.readouterr().err


@pytest.mark.parametrize("target", ["release.csv", "release.csv.gz"])
def test_names_with_blanks_are_those_of_a_csv_file(
    target: str, folder: Path, database: duckdb.DuckDBPyConnection, capsys: pytest.CaptureFixture[str]
) -> None:
    """DuckDB trims them where it guesses a file's form: verify took the columns for gone, as did the next release."""
    query = """SELECT * EXCLUDE (age, sex), age AS " ", sex AS " s,\nx" FROM 'people.parquet'"""
    database.execute(f"COPY ({query}) TO 'odd.parquet'").fetchall()
    policy = WITHOUT_PERSON.replace("people.parquet", "odd.parquet").replace("age =", '" " =')
    file = released(folder, policy.replace("sex =", '" s,\\nx" ='), target)
    code, found = verified(capsys, file)
    assert code == 0
    assert found["labels"] == found["k"] == found["l of diagnosis"] == "confirmed"
    record = duckanon.release(folder / "policy.toml")
    assert record["warnings"] == []
    assert record["tables"][0]["changes"]["classes_in_both"] == 8
