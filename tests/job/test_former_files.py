"""A job replaces only files that are known as those of a former run, and removes only what has its mark."""

from __future__ import annotations

import gzip
import json
import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import duckdb
import pytest

from duckanon._core.common import outbox, own_files
from duckanon._core.common.outbox import lock_path
from duckanon._core.common.own_files import release_lock, take_lock, temporary_folder
from duckanon._extension import extension_file
from duckanon._extension.extension_file import NAME
from duckanon.cli import main as cli
from duckanon.job import FileProblem, check, release, run
from duckanon.job.places import Outbox
from duckanon.workbench.policy_text import PolicyText
from tests.job.conftest import POLICY, changed
from tests.job.test_originals import contents

METADATA: dict[str, str] = {
    "size": "(SELECT size FROM read_blob('peo' || 'ple.csv'))",
    "time": "(SELECT epoch(last_modified)::BIGINT FROM read_text('peo' || 'ple.csv'))",
    "glob": "(SELECT count(*) FROM glob('peo' || chr(42)))",
    "view": "(SELECT size FROM seen)",
}
"""What a query knows of people.csv without opening it."""

USUAL = [("size", None), ("view", os.link)]


@pytest.fixture
def people(folder: Path, database: duckdb.DuckDBPyConnection) -> Path:
    os.remove("people.parquet")
    Path("people.csv").write_text("".join(f"{number},Person {number}\n" for number in range(999)))
    with duckdb.connect("clinic.duckdb") as con:
        con.execute("CREATE VIEW seen AS FROM read_blob('peo' || 'ple.csv')").fetchall()
    return folder


def query(how: str) -> str:
    """Write a source whose rows need people.csv, of which DuckDB opens nothing."""
    rows = (
        f"SELECT i AS id, i AS patient, 'x' AS name, i % 4 + {METADATA[how]} * 0 AS age, 'f' AS sex, 'flu' AS diagnosis"
    )
    return f"{rows} FROM range(240) AS t(i)"


def policy_of(folder: Path, how: str, target: str) -> Path:
    source = ('path = "clinic.duckdb"\n' if how == "view" else "") + f"query = {json.dumps(query(how))}"
    replaced = ('path = "people.parquet"', source), ('"release.parquet"', f'"{target}"')
    return changed(folder, *replaced)


@pytest.mark.parametrize(
    ("how", "link"),
    [
        pytest.param(how, link, marks=[] if (how, link) in USUAL else pytest.mark.thorough)
        for how in METADATA
        for link in (None, os.link, os.symlink)
    ],
)
def test_a_file_of_which_only_metadata_is_read_stays(
    how: str,
    link: Callable[[str, str], None] | None,
    people: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    target = "people.csv" if link is None else "linked.csv"
    if link is not None:
        link("people.csv", target)
    policy, before = policy_of(people, how, target), contents(people)
    monkeypatch.setattr(check, "connection", run.connection)
    for command in (["policy", "check"], ["release", "--dry-run"], ["release"]):
        assert cli.main([*command, str(policy)]) == 3
        (sentence,) = capsys.readouterr().err.splitlines()
        assert sentence.startswith(f"{people}/{target}: duckanon did not write this file")
        assert sentence.endswith("move it away, or name another.")
        assert contents(people) == before
    os.remove(target)
    if link is not None:
        assert cli.main(["release", str(policy)]) == 0
        assert contents(people)["people.csv"] == before["people.csv"]


CHANGES: dict[str, Callable[[Path], object]] = {
    "edited": lambda folder: (folder / "release.csv").open("a").write("\n"),
    "another's record": lambda folder: (folder / "release.csv.record.json").write_text('{"tables": []}'),
    "no record": lambda folder: (folder / "release.csv.record.json").unlink(),
    "no JSON": lambda folder: (folder / "release.csv.record.json").write_text("notes of mine"),
    "a report of mine": lambda folder: (folder / "report.html").write_text("<h1>notes of mine</h1>"),
    "a page of mine": lambda folder: (folder / "report.not-released.html").write_text("<h1>notes of mine</h1>"),
}
"""What somebody does to the files of a release, any of which is then no longer duckanon's to replace."""


@pytest.mark.parametrize("change", CHANGES)
def test_only_files_of_a_former_release_are_replaced(change: str, folder: Path) -> None:
    policy = changed(folder, ("release.parquet", "release.csv"))
    for _ in range(2):
        release(policy)
    CHANGES[change](folder)
    policy.write_text('report = "report.html"\n' + policy.read_text())
    before = contents(folder)
    for is_dry in (True, False):
        with pytest.raises(FileProblem, match="duckanon did not write this file, or it was changed"):
            release(policy, dry_run=is_dry)
        assert contents(folder) == before


def test_a_release_is_known_by_its_record_wherever_that_is(folder: Path) -> None:
    """A record beside the release, that of the policy, and one that several policies have had."""
    policy = folder / "policy.toml"
    release(policy)
    policy.write_text('record = "far.json"\n' + POLICY)
    for _ in range(2):
        release(policy)
    os.remove("release.parquet.record.json")
    release(policy)
    shutil.copy(policy, "other.toml")
    assert any("was made by another policy" in text for text in release("other.toml")["warnings"])


def test_a_file_that_appears_at_the_target_meanwhile_stays(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    decide = outbox.decide

    def written_meanwhile(pairs: list[outbox.Pair], mark: str | None) -> None:
        decide(pairs, mark)
        Path("release.parquet").write_text("notes of mine")

    monkeypatch.setattr(outbox, "decide", written_meanwhile)
    with pytest.raises(FileProblem, match=r"release\.parquet: duckanon did not write this file"):
        release("policy.toml")
    assert Path("release.parquet").read_text() == "notes of mine"
    assert not Path("release.parquet.record.json").exists()


FOLDERS: Mapping[str, Callable[[Path], object]] = {
    "files": lambda folder: (folder / "thesis.txt").write_text("years of work"),
    "folders": lambda folder: (folder / "thesis" / "chapters").mkdir(parents=True),
    "a mark of mine": lambda folder: (folder / ".duckanon-folder").write_text("mine"),
    "a journal": lambda folder: (folder / ".duckanon-journal").write_text('{"files": [], "mark": null}'),
}


@pytest.mark.parametrize("inside", FOLDERS)
def test_folders_with_names_of_leftovers_stay(inside: str, tmp_path: Path) -> None:
    beside = tmp_path / ".o2.csv.duckanon-mydata"
    run_folder = tmp_path / "duckanon-run-0123456789abcdef"
    for one in (beside, run_folder):
        one.mkdir(mode=0o700)
        FOLDERS[inside](one)
    (tmp_path / f"{run_folder.name}.lock").touch()
    before = {path for one in (beside, run_folder) for path in one.rglob("*")}
    assert before
    with Outbox([tmp_path / "o2.csv"], spill_in=tmp_path) as outbox:
        outbox.write(tmp_path / "o2.csv", "a")
        outbox.publish()
    assert {path for one in (beside, run_folder) for path in one.rglob("*")} == before


def test_a_link_to_a_marked_folder_is_not_followed(tmp_path: Path) -> None:
    folder = own_files.make_folder("thesis", tmp_path)
    (tmp_path / ".a.csv.duckanon-link").symlink_to(folder)
    with Outbox([tmp_path / "a.csv"]):
        assert folder.exists()


def test_what_cannot_be_removed_keeps_the_mark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = own_files.make_folder("left", tmp_path)
    (folder / "original").touch()
    with monkeypatch.context() as patched:
        patched.setattr(Path, "unlink", lambda path: (_ for _ in ()).throw(PermissionError()))
        own_files.remove_folder(folder)
    assert own_files.has_mark(folder)
    own_files.remove_folder(folder)
    assert not folder.exists()


LOCKS: Mapping[str, Callable[[Path], object]] = {
    "a file": lambda path: path.write_text("notes of mine"),
    "a link": lambda path: path.symlink_to(path.with_name("notes.txt")),
    "a folder": lambda path: path.mkdir(),
    "numbers": lambda path: path.write_text("2024\nBerlin\nMainz\nTrier\n"),
}


@pytest.mark.parametrize("what", LOCKS)
def test_a_file_with_the_name_of_a_lock_stays(what: str, folder: Path) -> None:
    path = lock_path(folder / "release.parquet")
    LOCKS[what](path)
    (folder / "notes.txt").write_text("notes of mine")
    before = contents(folder)
    with pytest.raises(FileProblem, match=r"\.duckanon\.lock has the name of its lock, and is none; move it away"):
        release("policy.toml")
    assert contents(folder) == before
    assert os.path.lexists(path)


def test_a_lock_of_a_killed_process_is_taken(tmp_path: Path) -> None:
    """Of this computer, or of one whose system has no locks of its own."""
    for text in ("", "123\ncomputer\n", "123\ncomputer\nstart 4\n"):
        path = tmp_path / "x.lock"
        path.write_text(text)
        lock = take_lock(path)
        assert lock is not None
        release_lock(lock)
        assert not path.exists()


def test_a_temporary_folder_has_the_mark_and_goes(tmp_path: Path) -> None:
    with temporary_folder(tmp_path) as folder:
        assert own_files.has_mark(folder)
        (folder / "parts").mkdir()
        (folder / "parts" / "original").touch()
    assert list(tmp_path.iterdir()) == []


def test_the_workbench_writes_the_policy_that_a_link_leads_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "shared.toml").write_text(POLICY)
    (tmp_path / "policy.toml").symlink_to(tmp_path / "shared.toml")
    policy = PolicyText(tmp_path / "policy.toml")
    policy._write(POLICY + "# two\n")
    assert (tmp_path / "shared.toml").read_text() == POLICY + "# two\n"
    assert (tmp_path / "policy.toml").is_symlink()
    monkeypatch.setattr(os, "replace", lambda *paths: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with pytest.raises(FileProblem, match="cannot be written"):
        policy._write(POLICY)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["policy.toml", "shared.toml"]


@pytest.mark.parametrize("name", [NAME, f"{NAME}.gz"])
def test_an_extension_of_somebody_else_stays(name: str, tmp_path: Path) -> None:
    path, ours = tmp_path / name, b"library DUCKANON\0fields"
    written = gzip.compress(ours) if name.endswith(".gz") else ours
    for _ in range(2):
        extension_file._replace(path, written)
    for other in (b"mine", gzip.compress(b"mine")):
        path.write_bytes(other)
        with pytest.raises(ValueError, match="is no extension of duckanon"):
            extension_file._replace(path, written)
        assert path.read_bytes() == other


@pytest.mark.parametrize(
    ("change_mark", "has_file", "is_marked"),
    [
        (None, False, True),  # a process was killed before it wrote the mark
        (lambda text: text[:9], False, True),
        (lambda text: text, True, True),
        (lambda text: text[:9], True, False),
        (lambda text: "of somebody else", False, False),
        (None, True, False),
    ],
)
def test_a_folder_is_ours_by_its_mark_or_by_nothing(
    tmp_path: Path, change_mark: Callable[[str], str] | None, has_file: bool, is_marked: bool
) -> None:
    folder = own_files.make_folder("folder", tmp_path)
    (mark,) = folder.iterdir()
    if change_mark is None:
        mark.unlink()
    else:
        mark.write_text(change_mark(mark.read_text(encoding="utf-8")), encoding="utf-8")
    if has_file:
        (folder / "a").write_text("b", encoding="utf-8")
    assert own_files.has_mark(folder) is is_marked
    (tmp_path / "link").symlink_to(folder)
    assert not own_files.has_mark(tmp_path / "link")
    assert not own_files.has_mark(tmp_path / "nowhere")
