"""Ctrl-C: ends what a statement is busy with, and nothing else.

Python's signals reach its main thread only, and not while that waits inside DuckDB. So statements run on another
thread, and the main one waits for them in Python.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Protocol, TypeVar

_LOOK_EVERY = 0.1  # seconds

_Result = TypeVar("_Result")


class Interruptible(Protocol):
    """Anything that can be interrupted, such as a connection of DuckDB."""

    def interrupt(self) -> None:
        """Stop it, from another thread."""


def interruptible(con: Interruptible, function: Callable[[], _Result]) -> _Result:
    """Call a function that runs statements on a connection; raise KeyboardInterrupt where Ctrl-C was pressed meanwhile.

    The statement has ended then, and the connection can be used again.
    """
    was_interrupted = False
    is_done = threading.Event()
    results: list[_Result] = []
    failures: list[BaseException] = []

    def work() -> None:
        try:
            results.append(function())
        except BaseException as error:  # to be raised where it is waited for
            failures.append(error)
        is_done.set()

    thread = threading.Thread(target=work, name="duckanon-statement")  # concurrent.futures imports logging
    thread.start()
    while not is_done.is_set():
        try:
            if was_interrupted:
                con.interrupt()  # again and again: it is lost on a statement that has not begun yet
            is_done.wait(_LOOK_EVERY)
        except KeyboardInterrupt:
            was_interrupted = True
    thread.join()
    if was_interrupted:
        raise KeyboardInterrupt
    if failures:
        raise failures[0]
    return results[0]
