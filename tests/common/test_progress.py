"""Progress and stopping: who sees it, and where work ends."""

from __future__ import annotations

import io
import sys
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import ClassVar

import pytest

from duckanon._core.common import progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_is_written_where_someone_watches(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Terminal()
    monkeypatch.setattr("sys.stderr", screen)
    with progress.show("anon.boxes", after=0, every=0) as tell:
        tell(0.25)
        assert screen.getvalue() == "\ranon.boxes:  25%"
    assert screen.getvalue().endswith("\033[K")  # the line is wiped


def test_quick_work_is_not_worth_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Terminal()
    monkeypatch.setattr("sys.stderr", screen)
    with progress.show("anon.boxes") as tell:
        tell(0.5)
    assert screen.getvalue() == ""


def test_no_progress_in_a_log(monkeypatch: pytest.MonkeyPatch) -> None:
    log = io.StringIO()
    monkeypatch.setattr("sys.stderr", log)
    with progress.show("anon.boxes", after=0, every=0) as tell:
        tell(0.5)
    assert log.getvalue() == ""


class Bar:
    """What tqdm does, as far as it is used."""

    output: ClassVar[list[Bar]] = []

    def __init__(self, total: int, desc: str, leave: bool, bar_format: str) -> None:
        self.n, self.total, self.desc, self.leave, self.is_open = 0.0, total, desc, leave, True
        assert bar_format.format(desc=desc, percentage=7.0, bar="##", elapsed="00:01") == "anon.boxes:   7%|##| 00:01"
        Bar.output.append(self)

    def update(self, by: float) -> None:
        assert by >= 0
        self.n += by

    def close(self) -> None:
        self.is_open = False


def notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    shell = SimpleNamespace(kernel=object())
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))


def test_a_notebook_shows_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    notebook(monkeypatch)
    monkeypatch.setitem(sys.modules, "tqdm.auto", SimpleNamespace(tqdm=Bar))
    Bar.output.clear()
    with progress.show("anon.boxes", after=0, every=0) as tell:
        tell(0.25)
        tell(0.2)  # never back
        tell(0.75)
        (bar,) = Bar.output
        assert (bar.n, bar.total, bar.desc, bar.is_open, bar.leave) == (75, 100, "anon.boxes", True, False)
    assert not bar.is_open


def test_a_notebook_without_tqdm_shows_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    notebook(monkeypatch)
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    with progress.show("anon.boxes", after=0, every=0) as tell:
        tell(0.25)
    assert capsys.readouterr() == ("", "")


def test_a_part_of_the_work_is_told_as_such() -> None:
    shares: list[float] = []
    with progress.watch(None, shares.append):
        progress.advance(0.0)
        with progress.step(0.5, 1.0), progress.step(0.0, 0.5):
            progress.advance(0.5)
        with progress.mute():
            progress.advance(0.1)
        progress.advance(1.0)
    progress.advance(0.3)  # nobody watches any more
    assert shares == [0.0, 0.625, 1.0]


def test_work_stops_where_it_is_asked_to_on_all_its_threads() -> None:
    def ask() -> None:
        raise progress.StoppedError

    with progress.watch(ask):
        shared = progress.share_watch(lambda: 1)
        for looks in (progress.check, lambda: progress.advance(0.5), shared):
            with pytest.raises(progress.StoppedError):
                looks()
    with ThreadPoolExecutor(1) as pool, pytest.raises(progress.StoppedError):
        pool.submit(shared).result()
    progress.check()
