"""A job that another thread can stop."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import duckdb

from duckanon._core.common import progress
from duckanon.job.errors import Cancelled

_LOOK_EVERY = 0.1  # seconds


@contextmanager
def cancelled_by(cancel: threading.Event | None, con: duckdb.DuckDBPyConnection) -> Iterator[Callable[[], None]]:
    """Stop what the block does when an event is set; give a function that stops here, if it is.

    Raises:
        Cancelled: In place of whatever an interrupted step raises.
    """
    if cancel is None:
        yield lambda: None
        return
    is_over = threading.Event()

    def ask() -> None:
        if cancel.is_set():
            raise progress.StoppedError

    def watch() -> None:
        while not is_over.is_set():
            if cancel.wait(_LOOK_EVERY):
                con.interrupt()  # again and again: it is lost on a statement that has not begun yet
                is_over.wait(_LOOK_EVERY)

    watcher = threading.Thread(target=watch, name="duckanon-cancel", daemon=True)
    watcher.start()
    try:
        with progress.watched_by(ask):
            yield ask
    except (Exception, progress.StoppedError):
        if cancel.is_set():
            raise Cancelled("the job was cancelled; a file at the target, if any, passed all checks.") from None
        raise
    finally:
        is_over.set()
        watcher.join()
