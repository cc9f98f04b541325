"""Ctrl-C: ends what a statement is busy with, and nothing else.

Python's signals reach its main thread only, and not while that waits inside DuckDB. So statements run on another
thread, and the main one waits for them in Python.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

import duckdb

_LOOK_EVERY = 0.1  # seconds

_Result = TypeVar("_Result")


class _Work(Generic[_Result]):
    """A call on a thread of its own, and then its result or its error."""

    def __init__(self, function: Callable[[], _Result]) -> None:
        self._function = function
        self._results: list[_Result] = []
        self._error: BaseException | None = None
        self.is_done = threading.Event()
        threading.Thread(target=self._run, name="duckanon-statement", daemon=True).start()

    def result(self) -> _Result:
        if self._error is not None:
            raise self._error
        return self._results[0]

    def _run(self) -> None:
        try:
            self._results.append(self._function())
        except BaseException as error:  # to be raised where it is waited for
            self._error = error
        self.is_done.set()


def interruptible(con: duckdb.DuckDBPyConnection, function: Callable[[], _Result]) -> _Result:
    """Call a function that runs statements on a connection.

    Raises
    ------
    KeyboardInterrupt
        When Ctrl-C was pressed meanwhile; the statement has ended then, and the connection can be used again.
    """
    work = _Work(function)
    was_interrupted = False
    while not work.is_done.is_set():
        try:
            if was_interrupted:
                con.interrupt()  # again and again: it is lost on a statement that has not begun yet
            work.is_done.wait(_LOOK_EVERY)
        except KeyboardInterrupt:
            was_interrupted = True
    if was_interrupted:
        raise KeyboardInterrupt
    return work.result()
