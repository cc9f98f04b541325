"""Long work: it says how far it is, where someone watches, and stops where nobody waits for it any more.

Every loop that may run for more than half a second calls `check`, or `advance` with its share of the work, which
checks as well. Who is asked and told belongs to the thread: `watch` sets it, `step` narrows the share to a step of the
work, `mute` keeps it from those who watch, and `share_watch` takes it along to other threads.
"""

from __future__ import annotations

import contextlib
import importlib
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias, TypeVar

Tell: TypeAlias = Callable[[float], None]
"""Is told the share of the work done, from 0 to 1."""

_Result = TypeVar("_Result")

_UNHEARD = 0.2
"""Seconds of silence after which nothing is shown: a query that waits asks ten times a second."""

_FORGOTTEN = 1.0
"""Seconds of silence after which the line is not wiped any more: less may be a busy machine."""


class StoppedError(BaseException):
    """The work was stopped from outside: like KeyboardInterrupt, nothing that an algorithm should catch."""


class _Thread(threading.local):
    """For the work of one thread: who is asked whether it should go on, and who is told how far it is."""

    ask: Callable[[], None] | None = None
    tell: Tell | None = None


_THREAD = _Thread()


@contextlib.contextmanager
def watch(ask: Callable[[], None] | None, tell: Tell | None = None) -> Iterator[None]:
    """Watch the work of this thread: `ask` raises `StoppedError` where it should stop, `tell` is told its share."""
    before = _THREAD.ask, _THREAD.tell
    _THREAD.ask, _THREAD.tell = ask, tell
    try:
        yield
    finally:
        _THREAD.ask, _THREAD.tell = before


def get_watcher() -> Callable[[], None] | None:
    """Return what `check` asks in this thread, so that another watch can ask it too."""
    return _THREAD.ask


def check() -> None:
    """Stop here, if the work was asked to: a fraction of a microsecond, so that any loop can afford it."""
    if _THREAD.ask is not None:
        _THREAD.ask()


def advance(share: float) -> None:
    """Tell whoever watches this thread how far its work is, and stop here if it was asked to."""
    check()
    if _THREAD.tell is not None:
        _THREAD.tell(share)


@contextlib.contextmanager
def step(start: float, stop: float) -> Iterator[None]:
    """Let shares told within the context be those of one step of the work, from start to stop."""
    tell = _THREAD.tell
    with watch(_THREAD.ask, None if tell is None else lambda share: tell(start + (stop - start) * share)):
        yield


@contextlib.contextmanager
def mute() -> Iterator[None]:
    """Let nobody be told of shares within the context: they are not those of the work that is watched."""
    with watch(_THREAD.ask):
        yield


def share_watch(function: Callable[..., _Result]) -> Callable[..., _Result]:
    """Let a function that other threads call for the work of this one stop where this one should."""
    ask = _THREAD.ask

    def call(*arguments: Any) -> _Result:
        with watch(ask):
            check()
            return function(*arguments)

    return call


@contextlib.contextmanager
def show(
    caller: str, after: float = 1.0, every: float = 0.2, *, silence: Callable[[], float] = lambda: 0.0
) -> Iterator[Tell]:
    """Give a function that is told the share of the work done, and shows it to whoever watches, until the work ends.

    In a notebook that is a bar of tqdm, where tqdm is installed; on a terminal a line on standard error. Elsewhere
    nothing is shown: a job's log has no use for it. The first sign comes after `after` seconds. `silence` tells the
    seconds since somebody has asked for the work: after an interrupt, the line belongs to the prompt of a shell.
    """
    due = time.monotonic() + after
    display: _Line | _NotebookBar | None = None

    def tell(share: float) -> None:
        nonlocal due, display
        now = time.monotonic()
        if now < due or silence() > _UNHEARD:
            return
        due = now + every
        display = _open_display(caller) if display is None else display
        if display is not None:
            display.show(min(share, 1.0))

    try:
        yield tell
    finally:
        if display is not None and (silence() < _FORGOTTEN or not isinstance(display, _Line)):
            display.close()


class _Line:
    """A line of a terminal, wiped in the end."""

    def __init__(self, caller: str) -> None:
        self._caller = caller

    def show(self, share: float) -> None:
        sys.stderr.write(f"\r{self._caller}: {share:4.0%}")
        sys.stderr.flush()

    def close(self) -> None:
        sys.stderr.write("\r\033[K")
        sys.stderr.flush()


class _NotebookBar:
    """A bar of tqdm, which goes in the end."""

    def __init__(self, caller: str, make: Callable[..., Any]) -> None:
        self._bar = make(total=100, desc=caller, leave=False, bar_format="{desc}: {percentage:3.0f}%|{bar}| {elapsed}")

    def show(self, share: float) -> None:
        self._bar.update(max(0.0, 100 * share - self._bar.n))

    def close(self) -> None:
        self._bar.close()


def _open_display(caller: str) -> _Line | _NotebookBar | None:
    if _is_notebook():
        with contextlib.suppress(ImportError):
            return _NotebookBar(caller, importlib.import_module("tqdm.auto").tqdm)
        return None
    return _Line(caller) if sys.stderr.isatty() else None


def _is_notebook() -> bool:
    """Tell whether a Jupyter kernel runs the program: its shell talks to a browser, other shells to a terminal."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return shell is not None and hasattr(shell, "kernel")
