"""Long work: it says how far it is, where someone watches, and stops where nobody waits for it any more.

Every loop that may run for more than half a second asks `check`, or tells its share of the work, which asks as well.
"""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import TypeAlias

Tell: TypeAlias = Callable[[float], None]
"""Is told the share of the work done, from 0 to 1."""


class StoppedError(BaseException):
    """The work was stopped from outside: like KeyboardInterrupt, nothing that an algorithm should catch."""


_THREAD = threading.local()  # who is to be asked whether the work of this thread should go on


@contextlib.contextmanager
def checked_by(ask: Callable[[], None]) -> Iterator[None]:
    """Let `check` ask a function as long as the context lasts, on this thread; it raises where the work should stop."""
    before = getattr(_THREAD, "ask", None)
    _THREAD.ask = ask
    try:
        yield
    finally:
        _THREAD.ask = before


def check() -> None:
    """Stop here, if the work was asked to: a fraction of a microsecond, so that any loop can afford it."""
    ask = getattr(_THREAD, "ask", None)
    if ask is not None:
        ask()


def shown(caller: str, every: float = 0.2) -> Tell:
    """Return a function that is told the share of the work done, and writes it on one line of a terminal.

    Nothing is written where standard error is no terminal: a job's log has no use for it.

    Parameters
    ----------
    caller
        What is at work: ``anon.boxes``.
    every
        Seconds between two updates.
    """
    last = [0.0]

    def tell(share: float) -> None:
        check()
        now = time.monotonic()
        if not sys.stderr.isatty() or (share < 1 and now - last[0] < every):
            return
        last[0] = now
        end = "\r\033[K" if share >= 1 else ""
        sys.stderr.write(f"\r{caller}: {share:4.0%}{end}")
        sys.stderr.flush()

    return tell


def silent(share: float) -> None:
    """Tell nobody, but stop where the work was asked to."""
    check()


def within(tell: Tell, start: float, stop: float) -> Tell:
    """Return what one step of the work tells: its own share, as that of the whole work from start to stop."""
    return lambda share: tell(start + (stop - start) * share)
