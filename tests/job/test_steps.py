"""A job that is killed at any step of its publishing: what a reader finds, what is left, and what the next run does.

A process that is killed leaves the files as they are at that moment. So one run is enough for all of its steps: before
each of them, and in the middle of each write, the folder is copied, which is what a kill there would leave.
`test_journal` kills processes for good.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest

from duckanon.job import PromiseBroken, plans, readback, release, run, sources
from duckanon.job.places import places
from duckanon.job.policy_file import read
from tests.job.conftest import POLICY

STEPS: list[tuple[object, str]] = [
    *((os, name) for name in ("replace", "link", "unlink", "fsync", "mkdir", "rmdir", "open")),
    *((module, name) for module, name in ((readback, "write"), (readback, "read_back"), (sources, "hash_of"))),
    (plans, "write"),
    (Path, "write_text"),
]
SEVERAL = (
    POLICY.replace('[target]\npath = "release.parquet"\n', "")
    + """
[tables.a.target]
path = "a.parquet"
[tables.b.target]
path = "b.csv.gz"
[tables.c.target]
path = "c.duckdb"
"""
)


class Film:
    """Pictures of a folder: before each step of a run, and with the half of each file that is being written."""

    def __init__(self, folder: Path, store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._folder, self._store, self._monkeypatch = folder, store, monkeypatch
        self._is_copying = False
        self._seen: dict[str, Path] = {}
        self.steps: Counter[str] = Counter()
        self.pictures: list[Path] = []

    def record(self, job: Callable[[], object]) -> None:
        with self._monkeypatch.context() as patch:
            for owner, name in STEPS:
                patch.setattr(owner, name, self._filmed(name, getattr(owner, name)))
            job()

    def _filmed(self, name: str, function: Callable[..., object]) -> Callable[..., object]:
        def step(*arguments: object, **options: object) -> object:
            if self._is_copying:
                return function(*arguments, **options)
            self.steps[name] += 1
            self._take()
            result = function(*arguments, **options)
            if name in ("write", "write_text"):
                self._take(halved=Path(str(arguments[0] if name == "write_text" else arguments[-1])))
            return result

        return step

    def _take(self, halved: Path | None = None) -> None:
        self._is_copying = True
        try:
            picture = self._store / str(len(self._seen))
            shutil.copytree(self._folder, picture, symlinks=True)
            if halved is not None:
                half = picture / halved.relative_to(self._folder)
                os.truncate(half, half.stat().st_size // 2)
            state = digest(picture)
            if state in self._seen:
                shutil.rmtree(picture)
            else:
                self._seen[state] = picture
                self.pictures.append(picture)
        finally:
            self._is_copying = False


def digest(folder: Path) -> str:
    """Return what tells two states of a folder apart."""
    found = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        found.update(f"{path.relative_to(folder)} {path.stat().st_mode}".encode())
        found.update(path.read_bytes() if path.is_file() else b"")
    return found.hexdigest()


def restore(picture: Path, folder: Path) -> None:
    for path in folder.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    shutil.copytree(picture, folder, symlinks=True, dirs_exist_ok=True)


def untrue(folder: Path, record: Path) -> int:
    """Count the files whose hash is not that of the record that is beside them."""
    tables = json.loads(record.read_text())["tables"] if record.exists() else []
    outputs = {table["output"]["path"]: table["output"]["sha256"] for table in tables}
    return sum(sources.hash_of([folder / name]) != sha256 for name, sha256 in outputs.items())


def hidden(folder: Path) -> list[Path]:
    return [*folder.glob(".*"), *(folder / "temporary").iterdir()]


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("target", "every"),
    [
        ("release.csv", 30),
        *(
            pytest.param(f"release.{end}", 8, marks=pytest.mark.thorough)
            for end in ("csv", "csv.gz", "parquet", "duckdb")
        ),
        *(pytest.param(kind, 8, marks=pytest.mark.thorough) for kind in ("several", "first", "plan")),
    ],
)
def test_a_kill_at_any_step_leaves_nothing_wrong(
    target: str, every: int, folder: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = POLICY.replace("release.parquet", target if "." in target else "release.csv")
    if target == "plan":
        text = 'plan = "plan.parquet"\n' + text.replace("suppress_cells", "generalize")
    policy = folder / "policy.toml"
    policy.write_text(SEVERAL if target == "several" else text)
    (folder / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder / "temporary"))
    where = places(read(policy))
    files = where.written
    if target not in ("first", "plan"):
        release(policy)
    before = {path: path.read_bytes() if path.exists() else None for path in files}
    film = Film(folder, tmp_path_factory.mktemp("film"), monkeypatch)
    film.record(lambda: release(policy))
    after = {path: path.read_bytes() if path.exists() else None for path in files}
    assert {
        "replace",
        "link",
        "unlink",
        "fsync",
        "write",
        "write_text",
        "read_back",
        "hash_of",
    } <= film.steps.keys() | ({"link"} if target in ("first", "plan") else set())
    original = (folder / "people.parquet").read_bytes()
    wrong: Counter[str] = Counter()
    for picture in film.pictures:
        restore(picture, folder)
        wrong["files whose hash is not their record's"] += untrue(folder, where.record)
        for path in files:
            content = path.read_bytes() if path.exists() else None
            wrong["files of neither run"] += content not in (before[path], after[path], None)
        with run.Outbox(files):
            now = {path: path.read_bytes() if path.exists() else None for path in files}
        wrong["releases of two runs"] += now not in (before, after)
        wrong["files whose hash is not their record's"] += untrue(folder, where.record)
        wrong["leftovers"] += len(hidden(folder))
        wrong["originals"] += (folder / "people.parquet").read_bytes() != original
    for picture in film.pictures[::-every]:
        restore(picture, folder)
        try:
            release(policy)
        except Exception:
            wrong["blocked runs"] += 1
        wrong["files whose hash is not their record's"] += untrue(folder, where.record)
        wrong["leftovers"] += len(hidden(folder))
    assert +wrong == Counter()
    assert len(film.pictures) > 10


@pytest.mark.thorough
def test_a_kill_at_any_step_of_a_refusal_leaves_the_last_release(
    folder: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy = folder / "policy.toml"
    policy.write_text('report = "report.html"\n' + POLICY)
    (folder / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder / "temporary"))
    release(policy)
    where = places(read(policy))
    before = {path: path.read_bytes() for path in (where.targets["table"], where.record)}
    policy.write_text(policy.read_text().replace("k = 10", "k = 10\nl = 9"))

    def refused() -> None:
        with pytest.raises(PromiseBroken):
            release(policy)

    film = Film(folder, tmp_path_factory.mktemp("film"), monkeypatch)
    film.record(refused)
    assert where.refusal is not None
    assert where.refusal.exists()
    for picture in film.pictures:
        restore(picture, folder)
        with run.Outbox(where.written):
            assert {path: path.read_bytes() for path in before} == before
        assert hidden(folder) == []


def test_a_folder_of_a_killed_run_is_removed_by_the_next(tmp_path: Path) -> None:
    """Also by that of another policy, and also of a dry run: parts of originals are in it."""
    child = os.fork()
    if child == 0:
        with run.Outbox([], spill_in=tmp_path) as outbox:
            (outbox.spill / "original").write_text("Person 7")
            os._exit(9)
    os.waitpid(child, 0)
    assert len(list(tmp_path.iterdir())) == 2
    with run.Outbox([tmp_path / "x.csv"], spill_in=tmp_path) as outbox:
        spilled = {path.name for path in tmp_path.iterdir() if not path.name.startswith(".")}
        assert spilled == {outbox.spill.name, f"{outbox.spill.name}.lock"}
        with run.Outbox([], spill_in=tmp_path) as other:
            assert outbox.spill.exists()
            assert other.spill != outbox.spill
    assert list(tmp_path.iterdir()) == []
    assert duckdb.sql("SELECT 1").fetchall() == [(1,)]
