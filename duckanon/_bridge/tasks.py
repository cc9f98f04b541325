"""Tasks: algorithms at work on threads of their own, while their queries wait for them in small turns.

A Python function that DuckDB calls is not told when the query is interrupted: DuckDB looks at its own flag between two
blocks of rows, and nowhere else. So no algorithm runs inside such a call. ``_anon_begin_<name>`` starts it on a thread
and returns the number of the task; ``anon._awaited`` scans an endless range and asks ``_anon_wait``, block after block,
whether the task is done, so that DuckDB can look at its flag ten times a second; ``_anon_<name>`` returns the result.
The query thus ends at once, whatever the algorithm is busy with. The algorithm notices at its next
`common.progress.check` that nobody asks for it any more: it pauses, and stops when its query is known to be
over.
"""

from __future__ import annotations

import atexit
import math
import threading
import time
import traceback
from collections.abc import Callable

import numpy as np
import pyarrow as pa

from duckanon._bridge.waiting import FOR_EVERY_ROW, Owner, Query, Waiting
from duckanon._core.common import progress

TURN = 0.1
"""Seconds that a query waits for its task before DuckDB may look whether it was interrupted."""

_SILENCE = 1.0  # seconds without a turn, after which a task pauses
_FAREWELL = 2.0  # seconds that tasks have to stop when the program ends

_MOST_TIMES_TOLD = 8  # that a task is done: blocks that DuckDB may have begun before it has what it asked for


class Task:
    """An algorithm at work for a query, and then its result or its error."""

    def __init__(self, query: Query, caller: str, compute: Callable[[], pa.Array]) -> None:
        self.query, self.caller = query, caller
        self.times_told = 0
        self._is_done = threading.Event()
        self._compute: Callable[[], pa.Array] | None = compute
        self._result: pa.Array | None = None
        self._error: BaseException | None = None
        self.thread = threading.Thread(target=self._run, name=caller, daemon=True)
        self.thread.start()

    def wait(self, seconds: float) -> bool:
        """Wait for its end at most so long, and tell whether it has come."""
        self.query.hear()
        return self._is_done.wait(seconds)

    def result(self) -> pa.Array:
        """Return what was computed, or raise what went wrong; afterwards the task has neither."""
        result, error, self._result, self._error = self._result, self._error, None, None
        if error is not None:
            raise error
        return result

    def check(self) -> None:
        """Pause while the query is not heard of, and stop where it is over: asked by the algorithm itself."""
        while not self.query.is_over:
            if self.query.silence < _SILENCE:
                return
            time.sleep(TURN)  # also lets the query's thread have Python's lock, which may be all that kept it silent
        raise progress.StoppedError

    def _run(self) -> None:
        query, compute, self._compute = self.query, self._compute, None
        try:
            if compute is not None:
                shown = progress.shown(self.caller, silence=lambda: math.inf if query.is_over else query.silence)
                with shown as tell, progress.watched_by(self.check, tell):
                    self._result = compute()
        except BaseException as error:  # to be raised where it is waited for
            traceback.clear_frames(error.__traceback__)  # which hold people's rows
            self._error = error
        self._is_done.set()


class Tasks:
    """The three functions by which SQL begins a task, waits for it and takes its result."""

    def __init__(self, waiting: Waiting) -> None:
        self._waiting = waiting
        atexit.register(self.stop)

    def begin(self, owner: Owner, caller: str, compute: Callable[[], pa.Array]) -> pa.Array:
        """Start a task and return its number."""
        return pa.array([self._waiting.open(owner, lambda query: Task(query, caller, compute))], pa.int64())

    def wait(self, *arguments: pa.Array) -> pa.Array:
        """Wait a turn for a task, and tell whether it is done, for all rows of the block alike.

        (DuckDB holds few rows back until there are more.) Whoever asks on and on after that is a query that wants the
        result for every row of another table: one that wants it once stops asking.
        """
        numbers, turns = arguments
        task: Task = self._waiting.thing(numbers[0].as_py(), lambda: None)
        try:
            is_done = task.wait(TURN)
        except KeyboardInterrupt:
            task.query.is_over = True
            raise ValueError(f"{task.caller}: it was interrupted.") from None
        task.times_told += is_done
        if task.times_told > _MOST_TIMES_TOLD:
            raise ValueError(f"{task.caller}: {FOR_EVERY_ROW}")
        return pa.array(np.full(len(turns), is_done))

    def result(self, *arguments: pa.Array) -> pa.Array:
        """Return what a task has computed, or raise what went wrong."""
        return self._waiting.take(arguments[0][0].as_py()).result()

    def running(self) -> list[Task]:
        """List the tasks that have not ended."""
        return [thing for thing in self._waiting.things() if isinstance(thing, Task) and thing.thread.is_alive()]

    def stop(self) -> None:
        """Ask all tasks to stop, when the program ends, and give them a moment: C code is not to be cut off."""
        running = self.running()
        for task in running:
            task.query.is_over = True
        end = time.monotonic() + _FAREWELL
        for task in running:
            task.thread.join(max(0.0, end - time.monotonic()))
