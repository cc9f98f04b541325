"""Forged and damaged releases: each is refused by `duckanon verify` and `duckanon evidence`, in one sentence.

One release is made for all of them. Each damage is made by plain JSON, text or SQL on a copy of its files.
"""

from __future__ import annotations

import copy
import functools
import json
import operator
import re
import shutil
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import duckdb
import pytest

import duckanon
from duckanon.cli import arguments
from duckanon.cli.main import main
from duckanon.job import JobError, run, signing
from duckanon.job import record as record_of
from duckanon.job.evidence import evidence
from duckanon.job.policy import Promises
from duckanon.job.promise_sentences import is_sentence_of
from duckanon.job.record import read
from duckanon.job.record_checks import PROMISES, contradictions
from tests.job.conftest import PEOPLE, POLICY

RELEASED = 'report = "report.html"\n[key]\nenvironment = "DUCKANON_TEST_KEY"\n\n' + POLICY.replace(
    'patient = "person"', 'patient = { role = "person", pseudonym = true }'
).replace("k = 10", "k = 10\nlinked_k = 2\nl = 2\nt = 0.9")

Json = Any
Damage = Callable[[Json], None]


@pytest.fixture(scope="module")
def original(
    tmp_path_factory: pytest.TempPathFactory, database: duckdb.DuckDBPyConnection
) -> Iterator[tuple[Path, Path]]:
    """Make one signed release with a report, in which pictures and utility are left out, and one of other people."""
    folder = tmp_path_factory.mktemp("release")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("duckanon.report.figures", lambda *_, **__: [])
        patch.setattr("duckanon.report.measures._utility", lambda *_: None)
        patch.setattr(arguments, "parser", functools.cache(arguments.parser))  # it is built for each command
        patch.setenv("DUCKANON_TEST_KEY", "a key of at least sixteen characters")
        database.execute(f"COPY ({PEOPLE}) TO '{folder}/people.parquet'").fetchall()
        signing.make_keys(folder / "signing.key")
        (folder / "policy.toml").write_text(RELEASED, encoding="utf-8")
        duckanon.release(folder / "policy.toml", sign=folder / "signing.key")
        other = tmp_path_factory.mktemp("other")
        database.execute(f"COPY (FROM ({PEOPLE}) WHERE id < 200) TO '{other}/people.parquet'").fetchall()
        (other / "policy.toml").write_text(RELEASED.replace('report = "report.html"', ""), encoding="utf-8")
        duckanon.release(other / "policy.toml")
        yield folder, other


@pytest.fixture
def copied(
    original: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, database: duckdb.DuckDBPyConnection
) -> Path:
    """Copy the release, its record without the signature."""
    shutil.copytree(original[0], tmp_path, dirs_exist_ok=True)
    monkeypatch.setattr(run, "connection", database.cursor)
    monkeypatch.chdir(tmp_path)
    change_record(lambda record: record.pop("signature"))
    return tmp_path


RECORD, RELEASE, REPORT = Path("release.parquet.record.json"), Path("release.parquet"), Path("report.html")


def change_record(change: Damage) -> None:
    record = json.loads(RECORD.read_text(encoding="utf-8"))
    change(record)
    RECORD.write_text(json.dumps(record), encoding="utf-8")


def change_rows(query: str) -> None:
    """Write the rows of a query about the release over it."""
    with duckdb.connect() as con:
        con.execute(f"COPY ({query.format('read_parquet(?)')}) TO 'damaged.parquet'", [str(RELEASE)])
    Path("damaged.parquet").replace(RELEASE)


def hash_again() -> None:
    """Give the record the hashes of the files as they are now."""
    release, report = (sha256(path.read_bytes()).hexdigest() for path in (RELEASE, REPORT))

    def change(record: Json) -> None:
        record["tables"][0]["output"]["sha256"] = release
        record["report"]["sha256"] = report

    change_record(change)


def said(capsys: pytest.CaptureFixture[str], *command: str) -> tuple[int, str]:
    """Run a command; return its exit code and what it says on standard error."""
    capsys.readouterr()
    code = main(command)
    return code, capsys.readouterr().err


def refused_by_verify(capsys: pytest.CaptureFixture[str]) -> str:
    """Return the sentence with which the command has refused."""
    code, sentence = said(capsys, "verify", str(RELEASE), str(REPORT))
    assert code in (1, 3), sentence
    assert "unexpectedly" not in sentence
    assert re.fullmatch(r"[^\n]+\.\n", sentence), sentence
    return sentence


def refused(capsys: pytest.CaptureFixture[str]) -> list[str]:
    """Return the sentences of both commands, after both have refused with one."""
    sentence = refused_by_verify(capsys)
    with pytest.raises(JobError) as refusal:
        evidence(run.connection(), "policy.toml", "evidence.zip")
    assert refusal.value.exit_code in (1, 3)
    assert re.fullmatch(r"[^\n]+\.", str(refusal.value))
    assert not Path("evidence.zip").exists()
    return [sentence, str(refusal.value)]


def table(record: Json) -> Json:
    return record["tables"][0]


def promise(record: Json, name: str) -> Json:
    return next(one for one in table(record)["promises"] if one["name"] == name)


def put(*path: Any, value: Json) -> Damage:
    """Return the damage that puts a value at a path of the record, in which a promise is named."""

    def change(record: Json) -> None:
        place: Json = record
        for part in path[:-1]:
            place = promise(record, part) if place is table(record).get("promises") else place[part]
        place[path[-1]] = value

    return change


def without(*path: Any) -> Damage:
    def change(record: Json) -> None:
        place: Json = record
        for part in path[:-1]:
            place = place[part]
        del place[path[-1]]

    return change


TABLE, OUTPUT, KEPT = ("tables", 0), ("tables", 0, "output"), ("tables", 0, "promises")

RECORDS: dict[str, Damage] = {
    "asked 50, measured 10, passed": put(*KEPT, "k", "asked", value=50),
    "a promise that is not passed": put(*KEPT, "k", "passed", value=False),
    "a measured number that is better": put(*KEPT, "k", "measured", value=60),
    "a better number in a sentence": put(*KEPT, "k", "words", value="Every class has at least 1000 people."),
    "nothing measured": put(*KEPT, "k", "measured", value=None),
    "l of a column that is not sensitive": put(*KEPT, "l of diagnosis", "name", value="l of age"),
    "a better l": put(*KEPT, "l of diagnosis", "measured", value=3.5),
    "a better t": put(*KEPT, "t of diagnosis", "measured", value=0.0123),
    "a t beyond what was asked": put(*KEPT, "t of diagnosis", "measured", value=0.95),
    "a better linked_k": put(*KEPT, "linked_k", "measured", value=77),
    "a promise with a name that nobody knows": put(*KEPT, "k", "name", value="kk"),
    "an asked number that is a text": put(*KEPT, "k", "asked", value="10"),
    "no promises": put(*KEPT, value=[]),
    "k is not promised": lambda record: table(record)["promises"].remove(promise(record, "k")),
    "a promise twice": lambda record: table(record)["promises"].append(copy.deepcopy(promise(record, "k"))),
    "suppressed contradicts its promise": put(*TABLE, "suppressed", "fraction", value=0.009),
    "more suppressed than there were": put(*TABLE, "suppressed", "rows", value=7),
    "fewer rows of the original": put(*TABLE, "rows", value=239),
    "an outcome: promise broken": put("outcome", value="promise broken"),
    "an outcome: dry run": put("outcome", value="dry run"),
    "an outcome that nobody knows": put("outcome", value="splendid"),
    "a run that ended before it began": put("finished", value="2001-01-01T00:00:00+00:00"),
    "a run that never ended": put("finished", value=None),
    "the hash of the release is null": put(*OUTPUT, "sha256", value=None),
    "the hash of the release is missing": without(*OUTPUT, "sha256"),
    "the hash of the release is another": put(*OUTPUT, "sha256", value="0" * 64),
    "the hash of the release is no hash": put(*OUTPUT, "sha256", value="yes"),
    "the hash of the report is null": put("report", value=None),
    "the hash of the report is another": put("report", "sha256", value="0" * 64),
    "rows as a text": put(*OUTPUT, "rows", value="240"),
    "rows less than none": put(*OUTPUT, "rows", value=-240),
    "more rows": put(*OUTPUT, "rows", value=241),
    "more people": put(*OUTPUT, "people", value=121),
    "another number of labels": put(*OUTPUT, "labels", "age", value=2),
    "labels of a column that has none": put(*OUTPUT, "labels", "diagnosis", value=3),
    "no labels": put(*OUTPUT, "labels", value={}),
    "a column more in the list": lambda record: table(record)["output"]["columns"].append("insurance_no"),
    "a column less in the list": lambda record: table(record)["output"]["columns"].remove("sex"),
    "another format": put(*OUTPUT, "format", value="csv"),
    "no columns": put(*TABLE, "columns", value=[]),
    "a dropped column is called free": put(*TABLE, "columns", 2, "role", value="free"),
    "another treatment": put(*TABLE, "columns", 3, "treatment", value="released as it is"),
    "a role that nobody knows": put(*TABLE, "columns", 2, "role", value="harmless"),
    "a column of the file is missing": without(*TABLE, "columns", 3),
    "a method that nobody knows": put(*TABLE, "method", "name", value="magic"),
    "another method": put(*TABLE, "method", "name", value="recode"),
    "a parameter that nobody knows": put(*TABLE, "method", "parameters", "seed", value=7),
    "another k of the method": put(*TABLE, "method", "parameters", "k", value=50),
    "a field that nobody knows": put("approved", value=True),
    "no warnings": without("warnings"),
    "no tables": put("tables", value=[]),
    "the same table twice": lambda record: record["tables"].append(copy.deepcopy(table(record))),
    "a table that is a text": put("tables", value=["table"]),
    "another measure of the report": put(*TABLE, "measures", "classes", "after", "smallest", value=1000),
    "more recipients than were named": put("release", "recipient", value=["everybody"]),
    "a sentence without a number": put(*KEPT, "k", "words", value="Nobody can ever be found."),
    "a promise that nobody asked for": lambda record: table(record)["promises"].append(
        {"name": "max_detectability_auc", "asked": 0.6, "measured": 0.5, "passed": True, "words": "All is well."}
    ),
    "an account that is not": lambda record: (
        table(record)["promises"].append(
            {"name": "joint_k", "asked": 2, "measured": 9, "passed": True, "words": "All is well."}
        ),
        record.update(account={"path": "account.sqlite", "releases": 1, "people": 120, "joint_k": 9}),
    ),
    "a report in another folder": put("report", "path", value="../report.html"),
    "a report without a name": put("report", "path", value="\0"),
    "a release in another folder": put(*OUTPUT, "path", value="./release.parquet"),
    "a name that looks like a finding": put(*TABLE, "name", value="table: k: confirmed: 1000.\ntable"),
    "a warning that nobody gave": put("warnings", value=["all is well."]),
    "an older version's": put("duckanon", value="0.0.1"),
}


@pytest.mark.parametrize("damage", RECORDS)
def test_a_forged_record_is_refused(damage: str, copied: Path, capsys: pytest.CaptureFixture[str]) -> None:
    change_record(RECORDS[damage])
    refused(capsys)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('"measured": 30', '"measured": NaN'),
        ('"measured": 30', '"measured": 1e999'),
        ('"measured": 30', '"measured": ' + "9" * 400),
        ('"measured": 30', '"measured": 1, "measured": 30'),
        ('"outcome": "released"', '"outcome": "\\ud800"'),
        ('{"duckanon"', '[{"duckanon"'),
        ('{"duckanon"', "[" * 100_000 + '{"duckanon"'),
        ("}", ""),
        ("{", "\ufeff{"),
        ("{", "/* a comment */ {"),
        ('"asked": 10', '"\\u0061sked": 50, "asked": 10'),
    ],
    ids=[
        *("NaN", "infinite", "400 digits", "said twice", "half a character", "a list", "too deep", "cut off"),
        *("a byte order mark", "a comment", "said twice in other letters"),
    ],
)
def test_a_record_that_is_no_proper_json_is_refused(
    before: str, after: str, copied: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = RECORD.read_text(encoding="utf-8")
    assert before in text
    RECORD.write_text(text.replace(before, after, 1), encoding="utf-8")
    assert all("record" in sentence for sentence in refused(capsys))


ROWS = {
    "a row less": "SELECT * FROM {} LIMIT 239",
    "a row more": "SELECT * FROM {} UNION ALL VALUES ('x', 20, 'f', 'cold')",
    "a label changed": "SELECT * REPLACE (CASE WHEN row_number() OVER () = 1 THEN 21 ELSE age END AS age) FROM {}",
    "a column more": "SELECT *, 7 AS insurance_no FROM {}",
    "a dropped column is back": "SELECT *, 'x' AS name FROM {}",
    "a dropped column is back in another case": "SELECT *, 'x' AS \"Name\" FROM {}",
    "a column less": "SELECT * EXCLUDE sex FROM {}",
    "columns in another order": "SELECT sex, * EXCLUDE sex FROM {}",
    "a sensitive value changed": "SELECT * REPLACE ('cold' AS diagnosis) FROM {}",
    "people with other names": "SELECT * REPLACE (row_number() OVER () AS patient) FROM {}",
}


@pytest.mark.parametrize("damage", ROWS)
def test_a_forged_file_is_refused_whose_hash_was_forged_too(
    damage: str, copied: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    change_rows(ROWS[damage])
    hash_again()
    refused_by_verify(capsys)


@pytest.mark.thorough
@pytest.mark.parametrize("damage", ROWS)
def test_there_is_no_evidence_of_a_forged_file(damage: str, copied: Path, capsys: pytest.CaptureFixture[str]) -> None:
    change_rows(ROWS[damage])
    hash_again()
    refused(capsys)


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (put("tables", 0, "output", "rows", value="many"), "tables[0].output.rows must be a valid integer"),
        (without("tables", 0, "output", "rows"), "tables[0].output.rows is missing"),
        (put("tables", 0, "output", "weather", value=1), "tables[0].output.weather is no field of a record"),
        (put("tables", 0, "promises", 1, value=[]), "tables[0].promises[1] must be"),
    ],
)
def test_the_damaged_field_is_named(damage: Damage, says: str, copied: Path) -> None:
    change_record(damage)
    with pytest.raises(JobError) as refusal:
        record_of.read(RECORD)
    assert str(refusal.value).startswith(f"{RECORD}: the record is damaged: {says}")


def test_a_file_with_another_hash_is_refused(copied: Path, capsys: pytest.CaptureFixture[str]) -> None:
    change_rows("SELECT * FROM {} ORDER BY random()")
    assert all("table: sha256 differ" in sentence for sentence in refused(capsys))


def test_a_record_that_says_something_twice_is_told_so(copied: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = RECORD.read_text(encoding="utf-8")
    RECORD.write_text(text.replace('"outcome"', '"outcome": "released", "outcome"'), encoding="utf-8")
    assert all("(it says something twice)" in sentence for sentence in refused(capsys))


def test_a_recipient_s_copy_is_no_evidence_of_the_release(copied: Path) -> None:
    change_record(lambda record: record.update(signing.copy_for_recipients(record)))
    with pytest.raises(JobError, match="a copy for recipients"):
        evidence(run.connection(), "policy.toml", "evidence.zip")


COUNTED_K = '<data value="30" data-path="/tables/0/promises/0/measured">30</data>'
PAGES = {
    "a sentence more": ("</main>", "<p>Every class has at least 1000 people.</p></main>"),
    "a number without its place": (COUNTED_K, "1000"),
    "a number in other quotes": (COUNTED_K, COUNTED_K.replace('"', "'").replace("30", "1000")),
    "a number of another place": (COUNTED_K, '<data value="240" data-path="/tables/0/rows">240</data>'),
    "a number in a comment": (COUNTED_K, f"<!-- {COUNTED_K} -->1000"),
    "a number in another form": (COUNTED_K, COUNTED_K.replace(">30<", ">3,000 %<")),
    "a style that hides": ("</head>", "<style>data { display: none }</style></head>"),
    "a script": ("</body>", "<script>document.body.textContent = 'k = 1000'</script></body>"),
    "a picture with a script": (
        '<div class="figures">\n',
        '<div class="figures">\n<figure>\n<svg><script>1</script></svg>\n\n<figcaption><strong>A</strong>b</figcaption>'
        "\n</figure>\n",
    ),
    "a picture that is a text": (
        '<div class="figures">\n',
        '<div class="figures">\n<p>Every class has 1000 people.</p>',
    ),
    "a mark of a reader": ("✓ Released", "✓ Released, and complies with the law"),
    "nothing of it": None,
}


@pytest.mark.parametrize("change", PAGES)
def test_a_report_that_the_job_did_not_write_is_refused_whose_hash_was_forged_too(
    change: str, copied: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text, words = REPORT.read_text(encoding="utf-8"), PAGES[change]
    assert words is None or words[0] in text
    REPORT.write_text(text.replace(*words) if words else "", encoding="utf-8")
    hash_again()
    assert "report: " in refused_by_verify(capsys)


def test_a_report_has_the_name_of_the_policy_or_that_of_evidence(
    copied: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    change_record(put("report", "path", value="march.html"))
    assert said(capsys, "verify", str(RELEASE), str(REPORT)) == (0, "")
    REPORT.rename("march.html")
    assert said(capsys, "verify", str(RELEASE)) == (0, "")
    assert said(capsys, "verify", str(RELEASE), "march.html") == (0, "")


def test_pictures_of_a_report_are_not_drawn_again(copied: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text, place = REPORT.read_text(encoding="utf-8"), '<div class="figures">\n'
    picture = "<figure>\n<svg><g/></svg>\n\n<figcaption><strong>A</strong>picture</figcaption>\n</figure>\n"
    REPORT.write_text(text.replace(place, place + picture, 1), encoding="utf-8")
    hash_again()
    assert said(capsys, "verify", str(RELEASE), str(REPORT)) == (0, "")


@pytest.mark.parametrize("is_hashed", [False, True])
def test_a_report_that_says_another_number_is_refused(
    is_hashed: bool, copied: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = REPORT.read_text(encoding="utf-8")
    number = '<data value="30" data-path="/tables/0/promises/0/measured">30</data>'
    assert number in text
    REPORT.write_text(text.replace(number, number.replace("30", "1000")), encoding="utf-8")
    if is_hashed:
        hash_again()
    assert all(f"report: {'numbers' if is_hashed else 'sha256'}" in sentence for sentence in refused(capsys))


@pytest.mark.parametrize(
    "damage",
    [
        put(*TABLE, "name", value="other"),
        put(*OUTPUT, "path", value="other.parquet"),
        put("release", "recipient", value="everybody"),
        put(*TABLE, "columns", 5, "role", value="free"),
        without(*TABLE, "columns", 0),
        lambda record: table(record)["promises"].remove(promise(record, "t of diagnosis")),
        lambda record: (
            put(*KEPT, "k", "asked", value=5)(record),
            put(*TABLE, "method", "parameters", "k", value=5)(record),
        ),
    ],
)
def test_there_is_no_evidence_of_another_policy(damage: Damage, copied: Path) -> None:
    """The record alone could be right: a promise less, another role of a column that is not in the file."""
    change_record(damage)
    with pytest.raises(JobError, match="the record ") as refusal:
        evidence(run.connection(), "policy.toml", "evidence.zip")
    assert refusal.value.exit_code == 1


def test_the_report_beside_the_release_is_compared(copied: Path, capsys: pytest.CaptureFixture[str]) -> None:
    REPORT.write_text(REPORT.read_text(encoding="utf-8") + " ", encoding="utf-8")
    code, sentence = said(capsys, "verify", str(RELEASE))
    assert (code, "report: sha256 differs" in sentence) == (1, True)
    assert said(capsys, "verify", str(RELEASE), "--record", str(RECORD)) == (0, "")  # who has it may be elsewhere


def test_another_release_s_record_is_refused(
    original: tuple[Path, Path], copied: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copy(original[1] / RECORD, RECORD)
    refused(capsys)


def test_what_is_not_damaged_is_believed(copied: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", str(RELEASE), str(REPORT)]) == 0
    assert main(["evidence", "policy.toml", "--to", "evidence.zip"]) == 0
    assert "differ" not in capsys.readouterr().out.lower()


def test_every_promise_of_a_policy_has_a_rule() -> None:
    asked = set(Promises.model_fields) - {"l_kind", "c"}
    assert asked <= set(PROMISES)
    for kind in PROMISES:
        assert not is_sentence_of(kind, "age", "All is well.")


def test_sentences_of_each_kind_are_taken_as_the_job_writes_them() -> None:
    """Those of which the tests of the job make no release."""
    small = "1 class differs from the previous release by fewer than 10 people: an attacker who knows who came or left "
    for kind, about, words in (
        ("recursive l", "a.b (c)", "In every class the top a.b (c) is less frequent than 1.5 times the rare values."),
        ("l", "a", "Every class has at least 2.7182818284590446 values of a, counted by their entropy."),
        ("t", "a", "In every class, a is distributed as in the whole release, up to a distance of 5.55e-17."),
        ("max_small_changes", "", small + "in between learns more than their class."),
        ("max_small_changes", "", "No class differs from the previous release by fewer than 10 rows."),
        ("max_correlation_difference", "", "Correlations differ from the original's by 0.0123 in the median."),
        ("max_marginal_difference", "", "The distribution of no column differs from the original's by more than 0."),
    ):
        assert is_sentence_of(kind, about, words)
        assert not is_sentence_of(kind, about, f"{words} All is well.")


@pytest.mark.parametrize(
    "words",
    [
        "Nobody can ever be found.",
        "Every class has at least 30 people, and nobody can ever be found.",
        "Every class has at least 30 people.\nNobody can ever be found.",
        "Every class has at least 30 people. Every class has at least 30 people.",
        "Every class has at least thirty people.",
        "\x1b[2JEvery class has at least 30 people.",
    ],
)
def test_a_sentence_that_the_job_does_not_write_is_a_contradiction(words: str, copied: Path) -> None:
    change_record(put(*KEPT, "k", "words", value=words))
    assert [(name, found) for _, name, found in contradictions(read(RECORD))] == [
        ("k", "its sentence is not that of the promise")
    ]


def test_a_promise_over_all_releases_needs_their_account(copied: Path) -> None:
    """The account is what says of how many releases the number was counted."""
    words = "Over all releases of the account (2 people), at least 10 people share every list of classes."
    joint = {"name": "joint_k", "asked": 2, "measured": 10, "passed": True, "words": words}
    change_record(lambda record: table(record)["promises"].append(joint))
    assert list(contradictions(read(RECORD))) == [("record", "account", "it is missing, and joint_k is promised")]
    change_record(put("account", value={"path": "a.sqlite", "releases": 2, "people": 120, "joint_k": 10}))
    assert list(contradictions(read(RECORD))) == []


def forge_everything() -> None:
    """Publish a finer release under the same record, consistently: files, hashes, labels, counts and sentences."""
    change_rows("SELECT * FROM {} WHERE age <> 50")

    def change(record: Json) -> None:
        entry = table(record)
        entry["rows"] = entry["output"]["rows"] = 180
        entry["people"] = entry["output"]["people"] = 90
        entry["output"]["labels"]["age"] = 3

    change_record(change)
    text = REPORT.read_text(encoding="utf-8")
    before = json.loads(RECORD.read_text(encoding="utf-8"))["tables"][0]["output"]["sha256"]
    after = sha256(RELEASE.read_bytes()).hexdigest()
    for old, new in ((">240<", ">180<"), ('"240"', '"180"'), (">120<", ">90<"), ('"120"', '"90"'), (before, after)):
        text = text.replace(old, new)
    REPORT.write_text(text, encoding="utf-8")
    hash_again()


def test_only_a_signature_notices_where_everything_was_forged(
    original: tuple[Path, Path], copied: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    forge_everything()
    verify, collect = ["verify", str(RELEASE), str(REPORT)], ["evidence", "policy.toml", "--to", "evidence.zip"]
    assert said(capsys, *verify) == (0, "")
    assert said(capsys, *collect) == (0, "")
    Path("evidence.zip").unlink()
    for command in (verify, collect):  # as it stands: the signature was taken away
        code, sentence = said(capsys, *command, "--key", "signing.key.pub")
        assert (code, "record: signature differs" in sentence) == (1, True)
    signature = json.loads((original[0] / RECORD).read_text(encoding="utf-8"))["signature"]
    change_record(lambda record: record.update(signature=signature))
    for command in (verify, collect):  # with the true signature, which needs no key to be told from a good one
        code, sentence = said(capsys, *command)
        assert (code, "record: signature differs" in sentence) == (1, True)
    signing.make_keys(Path("forger.key"))
    forged = json.loads(RECORD.read_text(encoding="utf-8"))
    change_record(lambda record: record.update(signature=signing.sign(forged, signing.read_key(Path("forger.key")))))
    assert said(capsys, *verify)[0] == 0
    for command in (verify, collect):  # signed by the forger: whose key it is, only --key tells
        code, sentence = said(capsys, *command, "--key", "signing.key.pub")
        assert (code, "record: signature differs" in sentence) == (1, True)


NOT_IN_ANY_FILE = re.compile(
    r"duckanon|duckdb|python|started|finished|warnings|tables/0/source"
    r"|tables/0/sha256|tables/0/measures/?(step|classes|risk|coarseness|narrowing|prediction|erased|utility|$).*"
)
"""What only a signature covers, or only the report says."""


def places(value: Json, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the paths of all parts of a record."""
    yield path
    for key, part in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from places(part, (*path, key))


def others(value: Json) -> list[Json]:
    """Return other values in place of one, of its type and of others."""
    if isinstance(value, bool) or value is None:
        return [not value, 7, "x"]
    if isinstance(value, int | float):
        return [value + 1, -1, 2 * value + 0.5, None, 10**16, "x"]
    if isinstance(value, str):
        return [f"{value}x", "", 5, None, *(["0" * 64] if len(value) == 64 else [])]
    return [[], {}, None, value + value[:1] if isinstance(value, list) else {**value, "more": 1}]


@pytest.mark.thorough
def test_a_change_of_any_part_of_a_record_is_noticed_by_evidence(
    copied: Path, database: duckdb.DuckDBPyConnection
) -> None:
    original = json.loads(RECORD.read_text(encoding="utf-8"))
    believed, sentences, con = [], [], database.cursor()
    for path in list(places(original))[1:]:
        whole = functools.reduce(operator.getitem, path, original)
        for other in others(whole):
            changed = copy.deepcopy(original)
            functools.reduce(operator.getitem, path[:-1], changed)[path[-1]] = other
            RECORD.write_text(json.dumps(changed), encoding="utf-8")
            if changed == original:
                continue
            try:
                evidence(con, "policy.toml", "evidence.zip")
            except JobError as refusal:
                sentences.append(str(refusal))
                continue
            Path("evidence.zip").unlink()
            believed.append("/".join(map(str, path)))
    assert [sentence for sentence in sentences if "\n" in sentence] == []
    assert [path for path in believed if not NOT_IN_ANY_FILE.fullmatch(path)] == []
