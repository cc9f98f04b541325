"""A line that says how far long work is, where someone watches."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable


def shown(caller: str, every: float = 0.2) -> Callable[[float], None]:
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
