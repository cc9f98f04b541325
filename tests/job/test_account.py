"""Jobs with an account: entered with the release or not at all, no plain value, promises over all releases."""

from __future__ import annotations

import hashlib
import json
import os
import re
import sqlite3
import zlib
from collections import deque
from pathlib import Path

import duckdb
import pytest

from duckanon._core.common import outbox
from duckanon._core.common.own_files import release_lock
from duckanon.cli.main import main
from duckanon.job import FileProblem, PolicyError, PromiseBroken, release
from duckanon.job.account import CountedReleases, _of_record
from tests.job.conftest import changed

KEY = "the key of this account"
ACCOUNT = '\n[account]\npath = "account.sqlite"\nkey = { environment = "ACCOUNT_KEY" }\n'
PEOPLE = """
    SELECT i AS id, 'patient-' || i AS patient, 'Person ' || i AS name, 'years ' || (i % 4) AS age, 'female' AS sex,
           ['influenza', 'asthma', 'cold'][1 + i // 4 % 3] AS diagnosis FROM range({}, {}) AS t(i)
"""
"""Four classes, a row each."""


@pytest.fixture
def policy(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ACCOUNT_KEY", KEY)
    return changed(folder, ("k = 10\n", f"k = 10\njoint_k = 10\njoint_l = 2\njoint_t = 0.02\n{ACCOUNT}"))


def write(database: duckdb.DuckDBPyConnection, first: int, last: int) -> None:
    database.execute(f"COPY ({PEOPLE.format(first, last)}) TO 'people.parquet'").fetchall()


def lines(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> list[str]:
    assert main(["account", *arguments]) == code
    return capsys.readouterr().out.splitlines()


def test_releases_are_counted_together(
    policy: Path, database: duckdb.DuckDBPyConnection, capsys: pytest.CaptureFixture[str]
) -> None:
    write(database, 0, 200)
    record = release(policy)
    told = {"path": "account.sqlite", "releases": 1, "people": 200, "joint_k": 50}
    assert {name: record["account"][name] for name in told} == told
    assert len(record["account"]["id"]) == 32
    before = Path("release.parquet").read_bytes()
    write(database, 8, 200)  # two people of each class are gone, whom k does not see
    with pytest.raises(PromiseBroken, match=r"joint_k: promised 10, measured 2\. Over all releases"):
        release(policy)
    assert Path("release.parquet").read_bytes() == before
    assert lines(capsys, "check", "policy.toml") == [
        "1  table: joint_k = 50, joint_l of diagnosis = 3, joint_t of diagnosis = 0"
    ]
    lax = changed(policy.parent, ("k = 10\n", f"k = 10\n{ACCOUNT}"), name="lax.toml")  # another policy, one account
    assert release(lax)["account"]["joint_k"] == 2
    shown = lines(capsys, "show", "policy.toml")
    assert [line.split("  ")[2:] for line in shown] == [
        ["policy.toml", "table: 200 people in 4 classes"],
        ["lax.toml", "table: 192 people in 4 classes"],
    ]
    last = lines(capsys, "check", "policy.toml", code=1)[-1]
    assert last == "2  table: joint_k = 2, joint_l of diagnosis = 3, joint_t of diagnosis = 0.0068"
    with sqlite3.connect("account.sqlite") as con:  # as an earlier version left it
        con.execute("DELETE FROM arrays WHERE name = 'counts of diagnosis' AND release = 1")
    promised = changed(policy.parent, ("k = 10\n", f"k = 10\njoint_t = 0.5\n{ACCOUNT}"), name="close.toml")
    with pytest.raises(FileProblem, match="joint_t of diagnosis cannot be counted, since an earlier version"):
        release(promised)
    assert lines(capsys, "check", "close.toml", code=1)[-1].endswith("joint_t of diagnosis = unknown")
    assert "forgotten" in lines(capsys, "forget", "policy.toml", "patient-5", "--never-again")[0]
    lines(capsys, "forget", "policy.toml", "patient-5", code=3)


def test_nobody_is_forgotten_who_would_come_back_as_somebody_new(
    policy: Path, database: duckdb.DuckDBPyConnection, capsys: pytest.CaptureFixture[str]
) -> None:
    """Their list of classes would be like nobody else's, and joint_k would count it as that of newcomers."""
    lax = changed(policy.parent, ("k = 10\n", f"k = 10\n{ACCOUNT}"), name="lax.toml")
    write(database, 0, 200)
    release(policy)
    release(lax)
    write(database, 1, 200)  # patient-0 is gone from the source, and still in both last releases
    before = Path("account.sqlite").read_bytes()

    def refused(person: str, words: str) -> None:
        assert main(["account", "forget", "policy.toml", person]) == 3
        assert words in capsys.readouterr().err
        assert Path("account.sqlite").read_bytes() == before

    refused("patient-0", "the person is in the last release of policy.toml, table table")
    refused("patient-1", "the person is still in the source of table")
    release(changed(policy.parent, ("k = 10\n", f"k = 10\n{ACCOUNT}")))
    before = Path("account.sqlite").read_bytes()
    refused("patient-0", "the person is in the last release of lax.toml, table table")
    assert main(["account", "forget", "policy.toml", "patient-1", "--never-again"]) == 3  # still in the source
    release(lax)
    assert "forgotten" in lines(capsys, "forget", "policy.toml", "patient-0")[0]


def as_an_earlier_version_left_it() -> None:
    """Take away what the account of an earlier version, its record and its folder do not have."""
    with sqlite3.connect("account.sqlite") as con:
        for statement in ("DROP TABLE adopted", "DROP TABLE adoptions", "ALTER TABLE releases DROP COLUMN folder"):
            con.execute(statement)
        con.execute("UPDATE parts SET version = 1 WHERE name = 'releases'")
    Path("account.sqlite.counter").unlink()
    record = Path("release.parquet.record.json")
    record.write_text(re.sub(r'\n *"id": "[0-9a-f]{32}",', "", record.read_text()))


def test_an_account_of_an_earlier_version_is_continued_and_missed(
    policy: Path, database: duckdb.DuckDBPyConnection
) -> None:
    write(database, 0, 200)
    release(policy)
    as_an_earlier_version_left_it()
    Path("kept.sqlite").write_bytes(Path("account.sqlite").read_bytes())
    for lose in (Path.unlink, lambda path: path.write_bytes(b"")):  # its record is enough
        lose(Path("account.sqlite"))
        with pytest.raises(FileProblem, match=r"the account lacks a release that the record release\.parquet\.record"):
            release(policy)
    Path("account.sqlite").write_bytes(Path("kept.sqlite").read_bytes())
    told = release(policy)["account"]
    assert (told["releases"], told["joint_k"]) == (2, 50)
    assert Path("account.sqlite.counter").exists()


@pytest.mark.thorough
def test_a_counter_that_a_killed_run_did_not_write_is_no_loss(
    policy: Path, database: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The entry is made before the counter is written: the account knows more than it, never less."""

    class Killed(BaseException):
        pass

    def kill(*_: object, **__: object) -> None:
        raise Killed

    write(database, 0, 200)
    counter = Path("account.sqlite.counter")
    for entered in (1, 3):  # a new account's counter is begun before the first entry; later ones follow the entry
        with monkeypatch.context() as patched:
            patched.setattr("duckanon._core.account.releases.update_counter", kill)
            with pytest.raises(Killed):
                release(policy)
        assert release(policy)["account"]["releases"] == entered
        assert json.loads(counter.read_text())["releases"] == entered
    assert json.loads(counter.read_text()).keys() == {"account", "releases", "last", "answers"}
    assert os.name == "nt" or counter.stat().st_mode & 0o077 == 0


def test_no_plain_value_is_in_the_file(policy: Path, database: duckdb.DuckDBPyConnection) -> None:
    write(database, 0, 200)
    release(policy)
    with sqlite3.connect("account.sqlite") as con:
        arrays = [zlib.decompress(data) for (data,) in con.execute("SELECT data FROM arrays")]
    everything = b"".join([Path("account.sqlite").read_bytes(), *arrays])
    for value in (b"patient-", b"Person", b"influenza", b"asthma", b"years", b"female", KEY.encode()):
        assert value not in everything
    for value in ("patient-7", "influenza"):  # nor a hash that anyone could compute
        for algorithm in ("md5", "sha1", "sha256", "blake2b"):
            assert hashlib.new(algorithm, value.encode()).digest()[:8] not in everything


@pytest.mark.thorough
@pytest.mark.parametrize("moment", ["before the entry", "after the entry"])
def test_a_killed_job_is_entered_and_published_or_neither(
    policy: Path, database: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    class Killed(BaseException):
        pass

    def kill(*_: object, **__: object) -> None:
        raise Killed

    write(database, 0, 200)
    release(policy)
    before = Path("release.parquet").read_bytes()
    with monkeypatch.context() as patched:
        patched.setattr(outbox.Outbox, "__exit__", lambda self, *_: deque(map(release_lock, self._locks), 0) and None)
        if moment == "after the entry":
            patched.setattr(outbox, "rename", kill)
        else:
            patched.setattr("duckanon.job.account.JobAccount.commit", kill)
        write(database, 40, 200)
        with pytest.raises(Killed):
            release(policy)
    assert Path("release.parquet").read_bytes() == before
    is_entered = moment == "after the entry"
    with pytest.raises(PolicyError, match="role"):  # a run that fails early completes the killed one all the same
        release(changed(policy.parent, ("id =", "other ="), ("k = 10\n", f"k = 10\n{ACCOUNT}")))
    policy = changed(policy.parent, ("k = 10\n", f"k = 10\njoint_k = 10\n{ACCOUNT}"))
    assert (Path("release.parquet").read_bytes() != before) == is_entered
    assert release(policy)["account"]["releases"] == (3 if is_entered else 2)


def test_what_is_wrong_is_said(
    policy: Path, database: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    for replaced, message in [
        (("k = 10\n", "k = 10\njoint_k = 10\n"), "promises.joint_k counts the releases of an account; add"),
        (("k = 10\n", f"k = 10\njoint_l = 1\n{ACCOUNT}"), "promises.joint_l must be at least 2"),
        (('patient = "person"', f'patient = "drop"\n{ACCOUNT}\n[x]'), "is not a field of a policy"),
    ]:
        with pytest.raises(PolicyError, match=message):
            release(changed(policy.parent, replaced, name="wrong.toml"))
    dropped = changed(policy.parent, ('patient = "person"', 'patient = "drop"'), ("k = 10\n", f"k = 10\n{ACCOUNT}"))
    with pytest.raises(PolicyError, match="columns must have a person: the account counts people"):
        release(dropped)
    policy = changed(policy.parent, ("k = 10\n", f"k = 10\n{ACCOUNT}"))
    release(policy, dry_run=True)
    assert not Path("account.sqlite").exists()
    release(policy)
    monkeypatch.setenv("ACCOUNT_KEY", "another key of an account")
    with pytest.raises(FileProblem, match="the account was made with another key"):
        release(policy)
    monkeypatch.setenv("ACCOUNT_KEY", "short")
    with pytest.raises(FileProblem, match=r"account\.key\.environment must have a key of at least 16 characters"):
        release(policy)
    with pytest.raises(FileProblem, match="the job reads this file"):
        release(policy, target="account.sqlite.parquet", report="account.sqlite")


@pytest.mark.parametrize(
    ("releases", "tables", "says"),
    [
        (1, 1, "cohorts, coarser quasi-identifiers, or a smaller promise"),
        (1, 2, "cohorts, coarser quasi-identifiers, fewer tables of the same people, or a smaller promise"),
        (2, 1, "cohorts, coarser quasi-identifiers, publishing less often, or a smaller promise"),
    ],
)
def test_what_may_help_is_possible(releases: int, tables: int, says: str) -> None:
    """There are no fewer tables than one, and nothing is published less often than once."""
    assert CountedReleases(releases, tables, 0).help == says


@pytest.mark.parametrize("account", [{}, {"account": None}, {"account": []}, {"account": {"releases": "2"}}])
def test_a_record_of_an_earlier_version_witnesses_its_hashes(tmp_path: Path, account: dict[str, object]) -> None:
    """Such a record has no account, or says nothing of it that could be counted."""
    outputs = [{"sha256": "a" * 64, "people": 5}, {"sha256": "b" * 64, "people": None}]
    path = tmp_path / "record.json"
    path.write_text(json.dumps({"outcome": "released", "tables": [{"output": one} for one in outputs], **account}))
    witness = _of_record(path, True)
    assert witness is not None
    assert "a" * 64 in str(witness)
    assert "b" * 64 not in str(witness)
