"""A line that says how far long work is, where someone watches."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import TypeAlias

Tell: TypeAlias = Callable[[float], None]
"""Is told the share of the work done, from 0 to 1."""


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
        now = time.monotonic()
        if not sys.stderr.isatty() or (share < 1 and now - last[0] < every):
            return
        last[0] = now
        end = "\r\033[K" if share >= 1 else ""
        sys.stderr.write(f"\r{caller}: {share:4.0%}{end}")
        sys.stderr.flush()

    return tell


def silent(share: float) -> None:
    """Tell nobody."""


def within(tell: Tell, start: float, stop: float) -> Tell:
    """Return what one step of the work tells: its own share, as that of the whole work from start to stop."""
    return lambda share: tell(start + (stop - start) * share)
