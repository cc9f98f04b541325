"""Ctrl-C: ends what a statement is busy with, and nothing else.

Python's signals reach its main thread only, and not while that waits inside DuckDB. So statements run on another
thread, and the main one waits for them in Python.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

_LOOK_EVERY = 0.1  # seconds

_Result = TypeVar("_Result")


def interruptible(interrupt: Callable[[], None], function: Callable[[], _Result]) -> _Result:
    """Call a function that runs statements; where Ctrl-C is pressed, `interrupt` them and raise KeyboardInterrupt.

    The statement has ended then, and its connection can be used again.
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
                interrupt()  # again and again: it is lost on a statement that has not begun yet
            is_done.wait(_LOOK_EVERY)
        except KeyboardInterrupt:
            was_interrupted = True
    thread.join()
    if was_interrupted:
        raise KeyboardInterrupt
    if failures:
        raise failures[0]
    return results[0]
