"""The line of progress: on a terminal only."""

from __future__ import annotations

import io

import pytest

from duckanon.common import progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_is_written_where_someone_watches(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Terminal()
    monkeypatch.setattr("sys.stderr", screen)
    tell = progress.shown("anon.boxes", every=0)
    tell(0.25)
    assert screen.getvalue() == "\ranon.boxes:  25%"
    tell(1.0)
    assert screen.getvalue().endswith("\033[K")  # the line is wiped


def test_no_progress_in_a_log(monkeypatch: pytest.MonkeyPatch) -> None:
    log = io.StringIO()
    monkeypatch.setattr("sys.stderr", log)
    progress.shown("anon.boxes", every=0)(0.5)
    assert log.getvalue() == ""
