"""What a job reads it never writes, by whatever name the file is reached."""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from duckanon._bridge.sql import watch_files
from duckanon._core.common import outbox
from duckanon._core.common.outbox import lock_path
from duckanon.cli import main as cli
from duckanon.job import FileProblem, JobError, check, policy_file, release, run
from duckanon.job.places import Originals, originals, places
from tests.job.conftest import PEOPLE, POLICY, changed
from tests.profiles import dear

SPELLINGS: dict[str, str] = {
    "dollar quotes": "FROM read_csv($${name}$$)",
    "tagged quotes": "FROM read_csv($x${name}$x$)",
    "home": "FROM '~/{name}'",
    "address": "FROM 'file://{folder}/{name}'",
    "host": "FROM 'file://localhost{folder}/{name}'",
    "expression": "FROM read_csv('peo' || 'ple.csv')",
    "list": "FROM read_csv(['none.csv', 'peo' || 'ple.csv'][2:2])",
    "parts": "FROM './{name}'",
    "above": "FROM '{folder}/../{last}/{name}'",
    "text": "FROM range(240) AS t(id), read_text('peo' || 'ple.csv') SELECT {columns} WHERE len(content) > 0",
    "view": "FROM seen",
    "view of a view": "FROM seen_twice",
    "macro": "FROM read_it('peo')",
    "one byte": "FROM read_csv('p?ople.csv')",
    "class": "FROM read_csv('[o-q]eople.csv')",
    "subquery": "FROM query('FROM ''' || 'people' || '.csv''')",
}
"""Queries that read people.csv, or another name, in a folder that is also the home."""


def spelled(how: str, folder: Path, name: str = "people.csv") -> str:
    columns = "id, id // 2 AS patient, content AS name, id // 2 % 4 AS age, '' AS sex, 'flu' AS diagnosis"
    text = (
        SPELLINGS[how]
        .replace("{columns}", columns)
        .replace("{name}", name.replace("'", "''") if "$" not in SPELLINGS[how] else name)
    )
    return text.replace("{folder}", str(folder)).replace("{last}", folder.name)


@pytest.fixture
def people(folder: Path, database: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a folder with people.csv and a database whose views read it, in which a policy releases to release.csv."""
    os.remove("people.parquet")
    database.execute(f"COPY ({PEOPLE}) TO 'people.csv'").fetchall()
    with duckdb.connect("clinic.duckdb") as con:
        con.execute("CREATE VIEW seen AS FROM read_csv('people.csv')").fetchall()
        con.execute("CREATE VIEW seen_twice AS SELECT * FROM seen WHERE id >= 0").fetchall()
        con.execute("CREATE MACRO read_it(name) AS TABLE FROM read_csv(name || 'ple.csv')").fetchall()
    monkeypatch.setenv("HOME", str(folder))
    return folder


def policy_of(folder: Path, query: str, target: str, end: str = "") -> Path:
    path = 'path = "clinic.duckdb"\n' if re.search("seen|read_it", query) else ""
    source = f"{path}query = {json.dumps(query, ensure_ascii=False)}"
    text = POLICY.replace('path = "people.parquet"', source).replace('"release.parquet"', f'"{target}"')
    (folder / "policy.toml").write_text(text + end, encoding="utf-8")
    return folder / "policy.toml"


def contents(folder: Path) -> dict[str, str]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


@pytest.mark.thorough
@pytest.mark.parametrize("how", SPELLINGS)
def test_a_source_is_not_overwritten_however_it_is_spelled(
    how: str, people: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    policy = policy_of(people, spelled(how, people), "people.csv")
    before = contents(people)
    assert cli.main(["release", str(policy)]) == 3
    (sentence,) = capsys.readouterr().err.splitlines()
    why = (
        "duckanon did not write this file, " if how == "text" else "the job reads this file, "
    )  # seen before it is read
    assert sentence.startswith(f"{people}/people.csv: {why}")
    assert contents(people) == before


@pytest.mark.thorough
def test_a_check_of_the_policy_says_it_too(people: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check, "connection", run.connection)
    for how in ("expression", "view"):
        with pytest.raises(FileProblem, match=r"people\.csv: the job reads this file"):
            check.check_policy(policy_of(people, spelled(how, people), "people.csv"))
    assert check.check_policy(policy_of(people, spelled("view", people), "release.csv"))


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["peo'ple.csv", 'peo"ple.csv', "peo\\ple.csv", "peo\nple.csv", "peo ple €.csv"])
def test_names_of_files_with_odd_letters(name: str, people: Path) -> None:
    shutil.move("people.csv", name)
    os.link(name, "other.csv")
    quoted = name.replace("'", "''").replace("\\", "\\\\").replace("\n", "\\n")
    policy = policy_of(people, f"FROM read_csv('' || E'{quoted}')", "other.csv")
    before = contents(people)
    with pytest.raises(FileProblem, match=r"other\.csv: the job reads this file, and must not overwrite it"):
        release(policy)
    assert contents(people) == before


WRITTEN = {"target": "x.csv", "report": "r.html", "record": "x.json"}
READ = {"source": "people.csv", "key": "secret.csv", "hierarchy": "ages.csv", "policy": "policy.csv"}


@pytest.mark.thorough
@pytest.mark.parametrize("link", [os.link, os.symlink, None], ids=["hard link", "symbolic link", "same name"])
def test_no_file_of_a_job_takes_the_place_of_one_that_it_reads(
    link: Callable[[str, str], None] | None, people: Path
) -> None:
    """Every file that is written against every file that is read; nothing of it needs rows."""
    Path("secret.csv").write_text("0123456789abcdef-not-to-be-seen")
    Path("ages.csv").write_text("age,coarse\n20,young\n")
    Path("policy.csv").touch()
    fixed = {"refused report": "r.not-released.html", "lock": ".x.csv.duckanon.lock"}
    for kind, read in itertools.product([*WRITTEN, *fixed], READ):
        place = READ[read]
        if kind in fixed or link is not None:
            place = fixed.get(kind, f"same.{kind}.csv")
            (link or os.link)(READ[read], place)
        written = WRITTEN | ({kind: place} if kind in WRITTEN else {})
        top = "".join(f'{name} = "{written[name]}"\n' for name in ("report", "record"))
        text = POLICY.replace("people.parquet", "people.csv").replace("release.parquet", written["target"])
        end = '[key]\nfile = "secret.csv"\n[hierarchies]\nage = "ages.csv"\n'
        Path("policy.csv").write_text(top + text.replace("suppress_cells", "generalize") + end)
        before = contents(people)
        with pytest.raises(FileProblem, match=r"the job reads this file"):
            release("policy.csv")
        assert contents(people) == before
        if place != READ[read]:
            os.remove(place)


def test_a_key_is_not_overwritten(people: Path) -> None:
    """The target was the file of the key: the run wrote its release there, and all pseudonyms were lost."""
    Path("release.csv").write_text("0123456789abcdef-not-to-be-seen")
    policy = policy_of(people, "FROM 'people.csv'", "release.csv", '[key]\nfile = "release.csv"\n')
    policy.write_text(policy.read_text().replace('"person"', '{ role = "person", pseudonym = true }'))
    with pytest.raises(FileProblem, match=r"release\.csv: the job reads this file"):
        release(policy)
    assert Path("release.csv").read_text() == "0123456789abcdef-not-to-be-seen"


def test_an_original_that_comes_into_the_targets_place_meanwhile_stays(
    people: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before each rename it is asked again: the last of the files is replaced while the others have their names."""
    policy = policy_of(people, "FROM 'people.csv'", "release.csv")
    release(policy)
    before = contents(people)
    decide = outbox.decide

    def moved(pairs: list[outbox.Pair], mark: str | None) -> None:
        decide(pairs, mark)
        os.replace("people.csv", pairs[0][1])

    monkeypatch.setattr(outbox, "decide", moved)
    with pytest.raises(FileProblem, match=r"release\.csv: the job reads this file, and must not overwrite it"):
        release(policy)
    after = contents(people)
    assert after["release.csv"] == before["people.csv"]
    assert after["release.csv.record.json"] == before["release.csv.record.json"]
    assert not list(people.glob(".*"))


def test_a_new_file_with_the_number_of_one_that_is_gone_is_another(tmp_path: Path) -> None:
    """A policy that was replaced while its job began left its number to the lock of the job, which was refused."""
    policy, target = tmp_path / "policy.toml", tmp_path / "release.csv"
    policy.write_text("k = 10")
    read, lock = Originals([target], [policy]), lock_path(target)
    os.replace(policy, lock)
    with pytest.raises(FileProblem, match="must not use it as its lock"):  # the file that was read, moved
        read.add([])
    lock.write_text("")  # the same number, and nothing else in common: so looks a new file
    read.add([])
    os.link(lock, policy)
    with pytest.raises(FileProblem, match="must not use it as its lock"):  # by the name that was read, too
        read.add([])


def test_stars_in_a_query_are_no_files(people: Path) -> None:
    release(policy_of(people, "SELECT * REPLACE (replace(name, '*', '%') AS name) FROM 'people.csv'", "release.csv"))


def test_globs_that_would_find_the_release_next_time(people: Path) -> None:
    for query in ("FROM '*.csv'", "FROM read_csv('**/*.csv')", f"FROM '{people}/*e*.csv'"):
        with pytest.raises(FileProblem, match=r"now or in the next run"):
            release(policy_of(people, query, "release.csv"))


def test_duckdb_tells_what_it_opened(tmp_path: Path, database: duckdb.DuckDBPyConnection) -> None:
    """Also what is opened while rows are read, and nothing of before or afterwards."""
    names = ["a.csv", 'quote".csv', "b.txt", "c1.parquet", "c2.parquet"]
    for name in names:
        if name.endswith("parquet"):
            database.execute(f"COPY (SELECT 1 AS a) TO '{tmp_path}/{name}'").fetchall()
        else:
            (tmp_path / name).write_text("a\n1\n")
    with watch_files(database) as so_far:
        assert so_far() == set()
        database.execute(f"SELECT * FROM '{tmp_path}/a.csv', '{tmp_path}/c*.parquet'").fetchall()
        database.execute(f"SELECT (SELECT content FROM read_text('{tmp_path}/b.txt'))").fetchall()
        database.execute("FROM read_csv(?)", [str(tmp_path / 'quote".csv')]).fetchall()
        assert so_far() == {tmp_path / name for name in names}
    database.execute(f"FROM '{tmp_path}/a.csv'").fetchall()
    assert database.execute("FROM duckdb_logs()").fetchall() == []


TARGETS = ["{name}", "./{name}", "{folder}/{name}", "{folder}/../{last}/{name}", "link.csv", "hard.csv", "new.csv"]


@dear
@example(how="text", target="hard.csv", other="")
@example(how="view", target="new.csv", other="")
@given(
    how=st.sampled_from(sorted(SPELLINGS)),
    target=st.sampled_from(TARGETS),
    other=st.sampled_from(["", 'record = "{}"\n', 'report = "{}"\n', '[key]\nfile = "{}"\n']),
)
def test_no_run_changes_a_file_that_it_read(
    how: str, target: str, other: str, people: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sources and targets, links among them, spelled in many ways: whatever is read is the same after the run."""
    store, work = people / "store", people / "work"
    if not store.exists():
        store.mkdir()
        shutil.move("people.csv", store)
        shutil.move("clinic.duckdb", store)
    shutil.rmtree(work, ignore_errors=True)
    shutil.copytree(store, work)
    os.symlink("people.csv", work / "link.csv")
    os.link(work / "people.csv", work / "hard.csv")
    monkeypatch.setenv("HOME", str(work))
    place = target.format(name="people.csv", folder=work, last=work.name)
    line = other.format(place)
    has_key = line.startswith("[")
    policy = policy_of(work, spelled(how, work), place if has_key or not other else "other.csv")
    policy.write_text(policy.read_text() + line if has_key else line + policy.read_text())
    before = contents(work)
    is_refused = False
    try:
        release(policy)
    except JobError:
        is_refused = True
    after = contents(work)
    assert {name: after[name] for name in before} == before  # nothing that was there is a former release
    assert is_refused == (place != "new.csv" or has_key)  # a key that is not there, too
    assert (after == before) == is_refused


def test_the_places_of_a_policy_are_checked_without_its_rows(folder: Path) -> None:
    file = policy_file.read(changed(folder, ("release.parquet", "people.parquet")))
    with pytest.raises(FileProblem, match=r"people\.parquet: the job reads this file"):
        originals(file, places(file))
    assert run.places is places
