"""Several files take their names together: a run that is killed or fails between two renames is completed or undone."""

from __future__ import annotations

import itertools
import os
import signal
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from duckanon._core.common import outbox, own_files
from duckanon.job import FileProblem, run
from duckanon.job.places import Outbox

NAMES = ("a.csv", "b.csv", "c.json")


@pytest.fixture
def places(tmp_path: Path) -> list[Path]:
    """Make three files of the last release, one of them in another folder."""
    (tmp_path / "far").mkdir()
    found = [tmp_path / "a.csv", tmp_path / "far" / "b.csv", tmp_path / "c.json"]
    for path in found:
        path.write_text("old")
    return found


def published(places: list[Path], commit: Callable[[str], None] | None = None) -> None:
    with Outbox(places) as outbox:
        for path in places:
            outbox.write(path, "new")
        outbox.publish(commit)


def killed(places: list[Path], step: int, commit: Callable[[str], None] | None = None) -> None:
    """Publish in a process that is gone at one of its renames, the first of which decides."""
    child = os.fork()
    if child == 0:
        replace, calls = os.replace, iter(range(100))

        def dying(*arguments: Path) -> None:
            if next(calls) == step:
                os._exit(9)
            replace(*arguments)

        os.replace = dying  # type: ignore[assignment]
        published(places, commit)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9


def texts(places: list[Path]) -> list[str]:
    return [path.read_text() if path.exists() else "" for path in places]


STATES = (["old"] * 3, ["old"] * 3, ["old", "old", ""], ["new", "old", ""], ["new", "new", ""])
"""What is there when a run is killed at its renames: the list of them, the record's, and those of the files."""


@pytest.mark.thorough
@pytest.mark.parametrize("step", range(5))
@pytest.mark.parametrize("whose", range(3))
def test_the_next_run_completes_what_was_decided(places: list[Path], step: int, whose: int) -> None:
    """Whichever of the files the next run has among its own; before the decision nothing has happened.

    The last file is the record of the others: it is never there beside files of another run.
    """
    killed(places, step)
    assert texts(places) == STATES[step]
    with Outbox([places[whose]]):
        assert texts(places) == ["new" if step else "old"] * 3
    with Outbox(places):
        assert texts(places) == ["new" if step else "old"] * 3
    assert not [path for folder in (places[0].parent, places[1].parent) for path in folder.glob(".*")]


def killed_at(step: int, places: list[Path], spill: Path) -> bool:
    """Publish in a process that kills itself before one of its steps; tell whether it was done before that."""
    child = os.fork()
    if child == 0:
        steps = itertools.count()

        def dying(function: Callable[..., object]) -> Callable[..., object]:
            def do(*arguments: object, **options: object) -> object:
                if next(steps) == step:
                    os.kill(os.getpid(), signal.SIGKILL)
                return function(*arguments, **options)

            return do

        for name in ("replace", "link", "unlink", "fsync", "mkdir", "rmdir", "open", "write"):
            setattr(os, name, dying(getattr(os, name)))
        Path.write_text = dying(Path.write_text)  # type: ignore[method-assign, assignment]
        with Outbox(places, spill_in=spill) as outbox:
            for path in places:
                outbox.write(path, "new")
            outbox.publish()
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.thorough
def test_a_process_that_is_killed_at_any_step_leaves_nothing_wrong(places: list[Path], tmp_path: Path) -> None:
    """Before each call of the file system, for good: rename, link, unlink, fsync, write, and those of folders."""
    spill = tmp_path / "spill"
    spill.mkdir()
    seen = set()
    for step in itertools.count():
        for path in places:
            path.write_text("old")
        is_done = killed_at(step, places, spill)
        seen.add("".join(text[:1] or "-" for text in texts(places)))
        with Outbox(places, spill_in=spill):
            assert texts(places) in (["old"] * 3, ["new"] * 3)
        assert not [path for folder in (tmp_path, tmp_path / "far") for path in folder.glob(".*")]
        assert not list(spill.iterdir())
        if is_done:
            break
    assert seen == {"ooo", "oo-", "no-", "nn-", "nnn"}
    assert step > 50


def test_a_rename_that_fails_is_undone(places: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    replace = os.replace

    def failing(source: Path, target: Path) -> None:
        if Path(target) == places[2]:
            raise OSError(28, "No space left on device", str(target))
        replace(source, target)

    monkeypatch.setattr(os, "replace", failing)
    with pytest.raises(FileProblem, match=r"c\.json: it cannot be put in its place"):
        published(places)
    assert texts(places) == ["old"] * 3
    places[0].unlink()  # what was not there before is not there afterwards
    with pytest.raises(FileProblem):
        published(places)
    assert not places[0].exists()


def test_a_decision_counts_only_with_the_mark_of_its_tables(places: list[Path]) -> None:
    killed(places, 1, lambda mark: None)
    with Outbox(places, is_committed=lambda mark: False):
        assert texts(places) == ["old"] * 3
    killed(places, 1, lambda mark: None)
    with Outbox(places, is_committed=lambda mark: mark.startswith("A release of duckanon, run ")):
        assert texts(places) == ["new"] * 3


@pytest.mark.parametrize("attack", ["another folder", "open to others", "another name"])
def test_a_journal_of_somebody_else_is_not_believed(places: list[Path], attack: str) -> None:
    """Attack: whoever may write into the folder of the releases lays a list of renames there."""
    folder = places[0].parent / ".a.csv.duckanon-evil"
    folder.mkdir(mode=0o755 if attack == "open to others" else 0o700)
    own_files.mark_folder(folder)
    hidden = folder / "a.csv" if attack != "another name" else folder / "b.csv"
    hidden.write_text("evil")
    target = places[0] if attack == "open to others" else places[1]
    outbox.decide([(hidden, target)], None)
    with Outbox(places):
        assert texts(places) == ["old"] * 3
    assert not folder.exists()


@pytest.mark.parametrize(
    ("has_tables", "warehouse", "account", "is_out"),
    [
        (False, False, None, False),  # the policy names no account any more: nobody knows
        (False, False, True, True),
        (False, True, False, False),
        (True, True, None, True),
        (True, False, None, False),
        (True, True, True, True),
        (True, True, False, False),
        (True, False, True, False),
    ],
)
def test_a_killed_release_is_out_where_all_that_counted_it_say_so(
    places: list[Path], has_tables: bool, warehouse: bool, account: bool | None, is_out: bool
) -> None:
    """Its account, and the server that it wrote to: what a run finds that was killed after it had decided."""

    def knows(answer: bool) -> Any:
        return SimpleNamespace(has=lambda mark: answer and mark == "the mark")

    hidden = [Outbox.beside(Outbox(places), path) for path in places]
    for path in hidden:
        path.write_text("new")
    outbox.decide(list(zip(hidden, places, strict=True)), "the mark")
    where: Any = SimpleNamespace(tables=["t"] if has_tables else [], written=places, only_read=[])
    refuse: Any = SimpleNamespace(refuse=lambda path: None)
    with run._open_outbox(where, knows(warehouse), None if account is None else knows(account), refuse):
        assert texts(places) == (["new"] * 3 if is_out else ["old"] * 3)


def test_a_single_file_is_there_at_every_moment(tmp_path: Path) -> None:
    """Of several files the record goes first; of one, whoever reads it sees the old one or the new one."""
    (tmp_path / "hidden").mkdir()
    path, hidden = tmp_path / "a.csv", tmp_path / "hidden" / "a.csv"
    path.write_text("old")
    hidden.write_text("new")
    moments: list[list[str]] = []
    outbox.rename([(hidden, path)], lambda asked: moments.append(texts([asked])), is_undone=True)
    assert [*moments, texts([path])] == [["old"], ["new"]]
