"""duckanon verify: a recipient's numbers are the record's, and a file that was changed is found out."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest

import duckanon
from duckanon.cli.main import main
from duckanon.job import PolicyError, verification
from duckanon.job.readback import Shape
from duckanon.job.verification import Finding, _compare_number
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


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "cut off": lambda content: content[: len(content) * 2 // 3 - 5],
    "a cell more in a row": lambda content: content.replace(b"\n", b",x\n").replace(b",x\n", b"\n", 1),
    "a line that is no row": lambda content: content + b"# a comment\n",
    "a byte that is no text": lambda content: content + b"\0\xff\n",
    "a name twice": lambda content: content.replace(b"age", b"sex", 1),
    "another encoding": lambda content: content.decode().encode("utf-16"),
    "nothing": lambda content: b"",
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_is_a_sentence(damage: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = released(folder, POLICY, "release.csv")
    file.write_bytes(DAMAGES[damage](file.read_bytes()))
    for command in (["verify", str(file)], ["evidence", str(folder / "policy.toml"), "--to", str(folder / "e.zip")]):
        capsys.readouterr()
        code = main(command)
        errors = capsys.readouterr().err
        assert code in (1, 3), errors
        assert "unexpectedly" not in errors
        assert re.fullmatch(r"[^\n]+\.\n", errors), errors


BESIDE_A_TABLE = {
    "a view in place of the table": "CREATE TABLE b AS FROM t; DROP TABLE t; CREATE VIEW t AS FROM range(240)",
    "a view": "CREATE VIEW v AS SELECT 'Anna' AS name",
    "a table": "CREATE TABLE v AS SELECT 'Anna' AS name",
    "a table of another schema": "CREATE SCHEMA s; CREATE TABLE s.v AS SELECT 'Anna' AS name",
    "a type": "CREATE TYPE names AS ENUM ('Anna', 'Berta')",
    "a macro": "CREATE MACRO names() AS TABLE SELECT 'Anna' AS name",
    "a sequence": "CREATE SEQUENCE anna",
    "a comment": "COMMENT ON COLUMN t.age IS 'the first row is Anna'",
    "a default": "ALTER TABLE t ALTER age SET DEFAULT 7",
    "an index": "CREATE INDEX anna ON t (age)",
}


def test_a_duckdb_file_holds_its_table_and_nothing_else(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = released(folder, POLICY, "release.duckdb")
    record, content = json.loads(Path(f"{file}.record.json").read_text(encoding="utf-8")), file.read_bytes()
    for number, (what, statements) in enumerate(BESIDE_A_TABLE.items()):
        file = folder / f"{number}.duckdb"
        file.write_bytes(content)
        with duckdb.connect(str(file)) as con:
            ((name,),) = con.execute("SELECT table_name FROM duckdb_tables()").fetchall()
            con.execute(f'ALTER TABLE "{name}" RENAME TO t; {statements}').fetchall()
        record["tables"][0]["output"]["sha256"] = hashlib.sha256(file.read_bytes()).hexdigest()
        (folder / "forged.json").write_text(json.dumps(record), encoding="utf-8")
        assert main(["verify", str(file), "--record", str(folder / "forged.json")]) == 3, what
        assert re.search(r"beside its table|a release has one", capsys.readouterr().err), what


def test_a_finding_is_one_line_whatever_the_record_says() -> None:
    found = [verification.Finding("table: k: confirmed: 60.\ntable", "l of a\u2028b", "differs", "1\r\n2")]
    assert len(verification.summary(found).splitlines()) == 1
    assert len((verification.refusal(found) or "").splitlines()) == 1


@pytest.mark.parametrize(
    ("measured", "recorded", "status", "words"),
    [
        (5, 5.0, "confirmed", "5"),
        (0.1 + 0.2, 0.3, "confirmed", "0.3"),  # which sums in another order round otherwise
        (1_234_567, 1_234_568, "differs", "1234567, recorded as 1234568"),
        (0.30001, 0.3, "differs", "0.30001, recorded as 0.3"),
        (None, None, "confirmed", "nothing"),
        (None, 3, "differs", "nothing, recorded as 3"),
        (3, None, "differs", "3, recorded as nothing"),
    ],
)
def test_numbers_are_the_same_but_for_rounding(
    measured: float | None, recorded: float | None, status: str, words: str
) -> None:
    assert _compare_number("people", "k", measured, recorded) == Finding("people", "k", status, words)


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


def test_classes_of_fewer_rows_than_people_are_found_out(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The file does not tell whose a row is; there are never more people than rows."""
    file, other = released(folder, POLICY), folder / "other.parquet"
    for change, expected in [
        ("WHERE age <> (SELECT min(age) FROM here)", "not in the file"),
        ("QUALIFY row_number() OVER (PARTITION BY age, sex) <= 9", "DIFFERS"),
        ("WHERE false", "DIFFERS"),
    ]:
        duckdb.sql(f"COPY (WITH here AS (FROM '{file}') FROM here {change}) TO '{other}'")
        assert verified(capsys, other, "--record", f"{file}.record.json")[1]["k"] == expected


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


def test_letters_beyond_ascii_have_two_cases_in_a_file(
    folder: Path, database: duckdb.DuckDBPyConnection, capsys: pytest.CaptureFixture[str]
) -> None:
    database.execute("COPY (SELECT *, age AS ä, sex AS Ä FROM 'people.parquet') TO 'cases.parquet'")
    policy = WITHOUT_PERSON.replace("people.parquet", "cases.parquet")
    file = released(folder, policy.replace("[method]", '"ä" = "drop"\n"Ä" = "quasi_identifier"\n\n[method]'))
    assert verified(capsys, file)[0] == 0


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
